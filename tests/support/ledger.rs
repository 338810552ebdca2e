//! An endpoint that counts what it served, scraped by the server under test: what was lost, doubled or changed shows as a
//! number.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A running ledger; its thread ends with the process.
pub struct Ledger {
    /// Where it is scraped.
    pub url: String,
    served: Arc<AtomicU64>,
}

impl Ledger {
    /// Begins to serve.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/metrics", listener.local_addr().expect("an address"));
        let served = Arc::new(AtomicU64::new(0));
        let count = served.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let count = count.clone();
                // Ends with an error when the reader was killed.
                std::thread::spawn(move || -> std::io::Result<()> {
                    let mut lines = BufReader::new(stream.try_clone()?);
                    let mut line = String::new();
                    while lines.read_line(&mut line)? > 0 {
                        if line == "\r\n" {
                            let n = count.fetch_add(1, Ordering::SeqCst) + 1;
                            let wave = Self::wave(n);
                            let body = format!(
                                "# TYPE ledger counter\nledger_total {n}\n# TYPE wave gauge\nwave{{of=\"ledger\"}} {wave}\n"
                            );
                            write!(&stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
                        }
                        line.clear();
                    }
                    Ok(())
                });
            }
        });
        Ledger { url, served }
    }

    /// Scrapes that were answered.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::SeqCst)
    }

    /// What the gauge said at scrape `n`: no two neighbours alike, and no whole number.
    pub fn wave(n: u64) -> f64 {
        (n as f64 * 0.7).sin() * 100.0
    }
}
