//! Debian's node_exporter on a free port, when it is installed.

use crate::server::{Answer, PATIENCE, ask, command};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A running exporter. Dropped, it is ended.
pub struct Exporter {
    child: Child,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Exporter {
    /// What it prints now.
    pub fn page(&self) -> String {
        let answer: Answer = ask(self.addr, "GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n");
        answer.body
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // Either fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it; `WATCHGLASS_NODE_EXPORTER` names one that is not on the path. None when there is none.
///
/// # Panics
/// When it is there and does not listen in time.
pub fn start() -> Option<Exporter> {
    // It takes no port 0 that it would tell of.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let program = std::env::var_os("WATCHGLASS_NODE_EXPORTER").unwrap_or("prometheus-node-exporter".into());
    let mut start = command(program);
    start.arg(format!("--web.listen-address={free}")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let exporter = Exporter { child: start.spawn().ok()?, addr: free };
    let begin = Instant::now();
    while TcpStream::connect(free).is_err() {
        assert!(begin.elapsed() < PATIENCE, "it does not listen at {free}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(exporter)
}
