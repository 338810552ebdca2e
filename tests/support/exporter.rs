//! An endpoint to scrape, whose page is generated for each scrape.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Serves a page until the process ends; the argument is the number of the scrape, from 0. Returns the address.
///
/// # Panics
/// When there is no port.
pub fn serve(page: impl Fn(usize) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/metrics", listener.local_addr().expect("an address"));
    let (page, scrapes) = (Arc::new(page), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (page, scrapes) = (page.clone(), scrapes.clone());
            // The thread ends with an error when the reader was killed.
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut lines = BufReader::new(stream.try_clone()?);
                let mut line = String::new();
                while lines.read_line(&mut line)? > 0 {
                    if line == "\r\n" {
                        let body = page(scrapes.fetch_add(1, Ordering::SeqCst));
                        write!(&stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
                    }
                    line.clear();
                }
                Ok(())
            });
        }
    });
    url
}
