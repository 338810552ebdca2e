//! Checks that a binary serves its page.

use crate::exec::cmd;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The binary serves its page, including wasm. The libraries of an emulated one are in `root`.
pub fn serves(binary: &Path, home: &Path, root: &Path) -> Result<(), String> {
    const SERVE: &str =
        "\"$0\" serve --port 0 --data-dir \"$1\" --collectors cpu > \"$1.address\" & echo $! > \"$1.pid\"; wait";
    std::fs::create_dir_all(home).map_err(|e| format!("{}: {e}", home.display()))?;
    let running = cmd("sh").args(["-c", SERVE]).arg(binary).arg(home).env("QEMU_LD_PREFIX", root).start()?;
    let (address, pid) = (home.with_added_extension("address"), home.with_added_extension("pid"));
    let begin = Instant::now();
    let found = loop {
        let text = std::fs::read_to_string(&address).unwrap_or_default();
        if let Some((url, _)) = text.split_once('\n') {
            break Ok(url.trim_start_matches("http://").trim_end_matches('/').replace("localhost", "127.0.0.1"));
        }
        if begin.elapsed() > Duration::from_secs(60) {
            break Err("it does not say its address within 60 s".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let tried = found.and_then(|address| {
        let page = get(&address, "/")?;
        let wasm = page
            .split('"')
            .find(|word| word.ends_with(".wasm"))
            .ok_or("its page names no wasm: build the page first")?;
        let path = format!("/{}", wasm.trim_start_matches("./").trim_start_matches('/'));
        let body = get(&address, &path)?;
        if body.contains("\0asm") { Ok(()) } else { Err(format!("{path} is no wasm")) }
    });
    if let Ok(pid) = std::fs::read_to_string(&pid) {
        let _ = cmd("kill").arg(pid.trim()).run();
    }
    let _ = running.wait();
    for file in [address, pid] {
        let _ = std::fs::remove_file(file);
    }
    tried
}

fn get(address: &str, path: &str) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("http://{address}{path}: {e}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(failed)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").map_err(failed)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.starts_with("HTTP/1.1 200") {
        Ok(text)
    } else {
        Err(format!("http://{address}{path} answers {}", text.lines().next().unwrap_or("nothing")))
    }
}
