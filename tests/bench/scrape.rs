//! Measures scraped endpoints: CPU of reading a page, and of the whole server with sixteen endpoints.

use crate::cost;
use crate::table::Table;
use collectors::{Out, openmetrics};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::Instant;

/// Number of readings of a page.
const READINGS: u32 = 1_000;

/// Measures both figures.
pub fn measure(table: &mut Table) {
    let page = page();
    let samples = page.lines().filter(|line| !line.starts_with('#')).count();
    let on = format!("the recording, {samples} samples, {} KB, mean of {READINGS}", page.len() / 1000);
    table.at_most("CPU of reading a node_exporter page", read(&page), "µs", 1_000.0, "1,000 µs", "", &on);
    let page: String =
        page.lines().filter(|line| !line.starts_with('#')).take(500).fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "{line}");
            all
        });
    let urls: Vec<String> = (0..16).map(|i| format!("e{i}={}", serve(page.clone()))).collect();
    let what = "CPU of 16 endpoints at 1 Hz, a minute";
    match cost::running(30, &["--openmetrics", &urls.join(",")]) {
        Ok(seconds) => {
            let on = "16 x 500 samples, whole process, 30 s without a viewer, doubled";
            table.at_most(what, seconds, "s", f64::INFINITY, "", "", on);
        }
        Err(why) => table.missing(what, "", &why),
    }
}

/// A page of node_exporter.
fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recordings/openmetrics/node_exporter_e2e-output.prom");
    std::fs::read_to_string(path).expect("the recording is in the tree")
}

/// Mean CPU time in microseconds of reading the page again. The kernel's figure is too coarse for a single reading.
fn read(page: &str) -> f64 {
    let (mut reader, mut out) = (openmetrics::reader("node"), Out::default());
    let start = Instant::now();
    assert!(reader(page, false, &mut out).is_some(), "the page is read");
    let before = cost::thread_cpu();
    for _ in 0..READINGS {
        out.begin(start.elapsed());
        reader(page, false, &mut out);
    }
    (cost::thread_cpu() - before).as_secs_f64() * 1e6 / f64::from(READINGS)
}

/// Serves the page on a free port of loopback while the bench runs, and returns its address.
fn serve(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback is free");
    let url = format!("http://{}/metrics", listener.local_addr().expect("a bound socket has an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let page = page.clone();
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut lines = BufReader::new(stream.try_clone()?).lines();
                while let Some(line) = lines.next().transpose()? {
                    if line.is_empty() {
                        write!(&stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}", page.len())?;
                    }
                }
                Ok(())
            });
        }
    });
    url
}
