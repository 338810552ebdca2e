//! The page in a real browser: weight, time to its charts, time to redraw.

use crate::table::Table;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

/// Redraws of 24 charts of 43,200 points fit into one frame of a 60 Hz screen.
const FRAME_MS: f64 = 16.7;

/// Measures all three. `redraw` is the folder with our drawing as wasm and uPlot, when `cargo xtask bench` could make it.
pub fn measure(table: &mut Table, redraw: Option<&Path>) {
    let (bytes, font) = backend::http::page::weight();
    if bytes == 0 {
        table.missing("page, brotli", "200 KB", "this binary has no page: cargo xtask bench builds it");
        return;
    }
    table.at_most("page, brotli", bytes as f64 / 1000.0, "kB", 200.0, "200 KB", "", "all files but the font");
    table.at_most("its font", font as f64 / 1000.0, "kB", 60.0, "60 KB", "", "the page does not wait for it");
    let server = Server::start([]);
    let browser = Browser::start();
    first_chart(table, &server, &browser);
    match redraw {
        Some(folder) => drawing(table, &browser, folder),
        None => table.missing(
            "redraw, 24 x 43,200 points",
            "16.7 ms",
            "run it by cargo xtask bench; it needs npm for uPlot",
        ),
    }
}

/// From the start of navigation to 20 charts drawn from real samples, median of five loads with an empty cache.
fn first_chart(table: &mut Table, server: &Server, browser: &Browser) {
    browser.open(&server.url);
    browser.until("window.__live");
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            browser.open("about:blank");
            browser.open(&server.url);
            browser.until("window.__live").as_f64().unwrap_or(f64::NAN)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let what = "navigation to 20 drawn charts";
    table.at_most(what, times[2], "ms", 1000.0, "1 s", "", "headless, median of 5 loads");
}

fn drawing(table: &mut Table, browser: &Browser, folder: &Path) {
    let Ok(address) = serve(folder.to_path_buf()) else {
        table.missing("redraw, 24 x 43,200 points", "16.7 ms", "no port for the bench's own files");
        return;
    };
    browser.open(&format!("http://{address}/index.html"));
    let title = browser.until("document.title.startsWith('{') && document.title");
    let result: serde_json::Value = serde_json::from_str(title.as_str().unwrap_or_default()).unwrap_or_default();
    let number = |key: &str| result[key].as_f64().unwrap_or(f64::NAN);
    let peer = format!("uPlot 1.6 {} ms", shared::unit::number(number("theirs")));
    let on = "headless without a GPU, script and raster, median of 12";
    let what = "redraw, 24 x 43,200 points";
    table.at_most(what, number("ours"), "ms", FRAME_MS, "16.7 ms", &peer, on);
    table.at_most("... against uPlot, pair by pair", number("ratio"), "of its time", 0.6, "0.6", "", on);
}

/// Serves the files of one folder on loopback while the bench runs.
fn serve(folder: PathBuf) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let mut head = BufReader::new(&stream);
            let _ = head.read_line(&mut line);
            let mut rest = String::new();
            while head.read_line(&mut rest).is_ok_and(|n| n > 2) {
                rest.clear();
            }
            let name = line.split(' ').nth(1).unwrap_or("").trim_start_matches('/').to_string();
            let mime = match name.rsplit('.').next() {
                Some("js") => "text/javascript",
                Some("wasm") => "application/wasm",
                Some("css") => "text/css",
                _ => "text/html",
            };
            let body = if name.contains("..") { None } else { std::fs::read(folder.join(&name)).ok() };
            let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            // A browser that goes away needs no answer.
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&body);
        }
    });
    Ok(address)
}
