//! Accepts connections: the caller is determined once per connection. Then hyper serves it, with a limit on
//! everything.

use super::guard::peer::{Peers, own_uid};
use super::guard::{Guard, HostNames};
use super::strangers::{Strangers, Visitor};
use super::tls::Certificate;
use super::transport::Transport;
use super::{Caller, write_timeout::WriteTimeout};
#[cfg(unix)]
use crate::control::{Bound, FolderSocket};
use axum::Router;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::throttle::Throttle;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
#[cfg(unix)]
use tokio::net::UnixStream;
#[cfg(unix)]
use tokio::net::unix::UCred;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tower::ServiceExt;

/// Time for a request's headers to arrive, from the connection's start or the end of the request before.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection is closed when its client reads nothing for this long while data is pending.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of connections. Beyond it unauthenticated ones are closed; otherwise new ones wait in the kernel's
/// queue.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum number of connections of users who may not read; they get an error and are closed.
const MAX_REFUSED_CONNECTIONS: usize = 16;
/// Maximum number of connections of a control socket.
#[cfg(unix)]
const MAX_CONTROL_CONNECTIONS: usize = 16;
/// Maximum number of connections of a socket that serves the page: a proxy's, with all its readers.
#[cfg(unix)]
const MAX_PAGE_CONNECTIONS: usize = 256;
/// Maximum size of a request's head, bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Maximum size of a request's head from a proxy, which passes on all its own cookies, bytes.
const MAX_PASSED_HEAD_BYTES: usize = 64 * 1024;

/// Unsent bytes in the kernel's buffer, beside those in flight.
#[cfg(target_os = "linux")]
const MAX_UNSENT_BYTES: libc::c_int = 16 * 1024;

/// State shared by the connections of a server.
struct Shared {
    router: Router,
    guard: Arc<Guard>,
    stop: watch::Receiver<bool>,
    peers: Peers,
    slots: Arc<Semaphore>,
    strangers: Arc<Strangers>,
    refused: Semaphore,
    /// Throttle of warnings that clients can cause at any rate.
    not_accepted: Mutex<Throttle>,
    not_known: Mutex<Throttle>,
    certificate: Option<Arc<Certificate>>,
}

/// Serves on the listeners until `stop` is true, with TLS if there is a certificate.
pub async fn serve(
    listeners: Vec<TcpListener>,
    router: Router,
    guard: Arc<Guard>,
    certificate: Option<Arc<Certificate>>,
    strangers: Arc<Strangers>,
    stop: watch::Receiver<bool>,
) {
    let shared = Arc::new(Shared {
        router,
        guard,
        stop,
        peers: Peers::default(),
        slots: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        strangers,
        refused: Semaphore::new(MAX_REFUSED_CONNECTIONS),
        not_accepted: Mutex::default(),
        not_known: Mutex::default(),
        certificate,
    });
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        tasks.spawn(accept(listener, shared.clone()));
    }
    let all = async { while tasks.join_next().await.is_some() {} };
    match &shared.certificate {
        Some(certificate) => tokio::select! {
            () = all => {}
            () = certificate.follow() => {}
        },
        None => all.await,
    }
}

/// Serves our own user and root on a Unix socket until `stop` is true.
#[cfg(unix)]
pub async fn serve_unix(mut bound: Bound, socket: FolderSocket, router: Router, mut stop: watch::Receiver<bool>) {
    let theirs = stop.clone();
    let (most, names) = match socket {
        FolderSocket::Control => (MAX_CONTROL_CONNECTIONS, HostNames::Own),
        FolderSocket::Page => (MAX_PAGE_CONNECTIONS, HostNames::Any),
    };
    let connected = |stream: UnixStream, peer: UCred, admitted: bool| {
        let local = (admitted && socket == FolderSocket::Control).then_some(peer.uid());
        // 0 is a process outside of our PID namespace.
        let pid = local.and_then(|_| u32::try_from(peer.pid()?).ok()).filter(|pid| *pid > 0);
        let caller = Caller { admitted, local, pid, uid: Some(peer.uid()), names, ..Caller::default() };
        connection(Transport::Unix(stream), caller, None, router.clone(), theirs.clone())
    };
    loop {
        tokio::select! {
            () = accept_unix(&bound, most, &connected) => return,
            () = bound.is_lost() => {}
            () = super::ended(&mut stop) => return,
        }
        match bound.renew() {
            Ok(()) => tracing::info!("the runtime folder was removed and made anew: listening there again"),
            Err(error) => tracing::debug!(%error, "cannot listen in the runtime folder again"),
        }
    }
}

/// Proxies connections of a Unix socket to another one, byte for byte, until dropped. Only our own user and root are
/// accepted.
#[cfg(unix)]
pub async fn relay(bound: &Bound, to: &[PathBuf]) {
    accept_unix(bound, MAX_PAGE_CONNECTIONS, |mut stream, _, admitted| {
        let to = to.to_vec();
        async move {
            for path in to.iter().filter(|_| admitted) {
                if let Ok(mut other) = UnixStream::connect(path).await {
                    // Either side can end it; there is no receiver for an error.
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut other).await;
                    return;
                }
            }
        }
    })
    .await;
}

/// There is no such socket on this system.
#[cfg(not(unix))]
pub async fn relay(_: &crate::control::Bound, _: &[std::path::PathBuf]) {
    std::future::pending().await
}

/// Accepts at most `most` connections at once; passes on the peer and whether it is our own user or root. Never ends.
#[cfg(unix)]
async fn accept_unix<F>(bound: &Bound, most: usize, connected: impl Fn(UnixStream, UCred, bool) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (slots, not_accepted) = (Arc::new(Semaphore::new(most)), Mutex::default());
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let accepted = bound.listener.accept().await;
        let called = accepted.and_then(|(stream, _)| Ok((stream.peer_cred()?, stream)));
        let (peer, stream) = match called {
            Ok(called) => called,
            Err(error) => {
                if let Some(before) = came(&not_accepted) {
                    tracing::warn!(%error, before, "cannot accept a connection of a Unix socket");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // The mode of the file enforces this too, but not on every system.
        let admitted = peer.uid() == own_uid() || peer.uid() == 0;
        let connected = connected(stream, peer, admitted);
        tokio::spawn(async move {
            connected.await;
            drop(slot);
        });
    }
}

/// Serves this process itself until `stop` is true or all senders are dropped.
pub async fn serve_within(
    connections: Option<mpsc::Receiver<DuplexStream>>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let Some(mut connections) = connections else { return };
    let theirs = stop.clone();
    let caller = Caller { admitted: true, local: Some(own_uid()), ..Caller::default() };
    loop {
        let stream = tokio::select! {
            stream = connections.recv() => stream,
            () = super::ended(&mut stop) => return,
        };
        let Some(stream) = stream else { return };
        tokio::spawn(connection(Transport::Within(stream), caller, None, router.clone(), theirs.clone()));
    }
}

fn came(throttle: &Mutex<Throttle>) -> Option<u64> {
    throttle.lock().came(Instant::now())
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut stop = shared.stop.clone();
    loop {
        let next = async {
            let slot = shared.slot().await?;
            shared.strangers.room().await;
            Some((slot, listener.accept().await))
        };
        let next = tokio::select! {
            next = next => next,
            () = super::ended(&mut stop) => return,
        };
        let Some((slot, accepted)) = next else { return };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The usual cause is a lack of file descriptors: wait for connections to end instead of spinning.
                if let Some(before) = came(&shared.not_accepted) {
                    tracing::warn!(%error, before, "cannot accept a connection");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let shared = shared.clone();
        let Some(visit) = shared.strangers.enter(remote.ip()) else { continue };
        tokio::spawn(async move {
            let caller = shared.ask(&stream, remote);
            let (router, stop) = (shared.router.clone(), shared.stop.clone());
            match caller {
                Some(caller) if caller.admitted => {
                    let served = async {
                        if let Some(stream) = shared.agree(stream).await {
                            connection(stream, caller, Some(visit.visitor()), router, stop).await;
                        }
                    };
                    tokio::select! {
                        () = served => {}
                        () = visit.closed() => {}
                    }
                    drop((visit, slot));
                }
                Some(caller) => {
                    // Other users of this machine must not be able to hold our own slots.
                    drop((visit, slot));
                    match shared.refused.try_acquire() {
                        Ok(_few) => connection(Transport::Tcp(stream), caller, None, router, stop).await,
                        Err(_) => {
                            tracing::debug!(%remote, "another user calls too often to be told that it may not read")
                        }
                    }
                }
                None => {}
            }
        });
    }
}

impl Shared {
    /// Waits for a slot, and closes an unauthenticated connection if needed. None when the server has ended.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let mut slot = std::pin::pin!(self.slots.clone().acquire_owned());
        loop {
            tokio::select! {
                biased;
                slot = &mut slot => return slot.ok(),
                closed = self.strangers.close_oldest() => {
                    if closed {
                        return slot.await.ok();
                    }
                }
            }
        }
    }

    /// The connection after the TLS handshake, if there is a certificate. None when the handshake fails.
    async fn agree(&self, stream: TcpStream) -> Option<Transport> {
        match &self.certificate {
            Some(certificate) => certificate.accept(stream).await,
            None => Some(Transport::Tcp(stream)),
        }
    }

    /// The caller of a connection; none when it is already closed.
    fn ask(&self, stream: &TcpStream, remote: SocketAddr) -> Option<Caller> {
        let gone = |error: &std::io::Error| tracing::debug!(%remote, %error, "a caller has gone");
        let local = stream.local_addr().inspect_err(gone).ok()?;
        let _ = stream.set_nodelay(true);
        keep_little(stream);
        let peer = Some(remote.ip().to_canonical());
        let caller = Caller { admitted: true, peer, tls: self.certificate.is_some(), ..Caller::default() };
        if !self.guard.asks_uid() {
            return Some(caller);
        }
        match self.peers.caller_uid(local, remote) {
            Ok(Some(uid)) => Some(Caller { admitted: self.guard.admits(uid), uid: Some(uid), ..caller }),
            Ok(None) => {
                tracing::debug!(%remote, "a caller has gone before it was known who it is");
                None
            }
            Err(error) => {
                if let Some(before) = came(&self.not_known) {
                    let way = "--local-auth off allows every user of this machine to read";
                    tracing::warn!(%error, before, "cannot tell who calls; refused ({way})");
                }
                Some(Caller { admitted: false, ..caller })
            }
        }
    }
}

/// Limits the kernel's send buffer for slow clients; fast clients lose no throughput.
#[cfg(target_os = "linux")]
fn keep_little(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let unsent = MAX_UNSENT_BYTES;
    let (value, size) = ((&raw const unsent).cast(), size_of_val(&unsent) as libc::socklen_t);
    // SAFETY: the pointer and the length are those of `unsent`. A kernel that does not know the option holds more.
    unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, value, size);
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_little(_: &TcpStream) {}

/// Our address ends in a slash, so a script's `$URL/metrics` has two. The guard checks the path that is served.
fn single_slashes(uri: &mut Uri) {
    if !uri.path().contains("//") {
        return;
    }
    let mut path = String::with_capacity(uri.path().len());
    for c in uri.path().chars() {
        if c != '/' || !path.ends_with('/') {
            path.push(c);
        }
    }
    if let Some(query) = uri.query() {
        path.extend(["?", query]);
    }
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).expect("letters were only left out"));
    *uri = Uri::from_parts(parts).expect("it was one before");
}

async fn connection<S>(
    stream: S,
    caller: Caller,
    visitor: Option<Visitor>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = router.map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
        single_slashes(request.uri_mut());
        request.extensions_mut().insert(caller);
        if let Some(visitor) = visitor.clone() {
            request.extensions_mut().insert(visitor);
        }
        request
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(match caller.names {
            HostNames::Own => MAX_HEAD_BYTES,
            HostNames::Any => MAX_PASSED_HEAD_BYTES,
        })
        .keep_alive(caller.admitted);
    let stream = TokioIo::new(WriteTimeout::new(stream, STALL_TIMEOUT));
    let serving = builder.serve_connection(stream, TowerToHyperService::new(service)).with_upgrades();
    tokio::pin!(serving);
    let stopped = tokio::select! {
        // Errors here are the client's (a reset, a missing head), and there is no receiver for them.
        _ = &mut serving => false,
        () = super::ended(&mut stop) => true,
    };
    if stopped {
        serving.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant as TokioInstant;

    #[test]
    fn slashes_are_single_and_all_else_stays() {
        for (asked, served) in [
            ("//metrics", "/metrics"),
            ("///", "/"),
            ("/base//api/v1/query?tag=disk.//data&step=1", "/base/api/v1/query?tag=disk.//data&step=1"),
            ("http://127.0.0.1:7171//metrics", "http://127.0.0.1:7171/metrics"),
            ("/%2f/x", "/%2f/x"),
            ("*", "*"),
        ] {
            let mut uri: Uri = asked.parse().unwrap();
            single_slashes(&mut uri);
            assert_eq!(uri.to_string(), served);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_never_comes_is_waited_for_no_longer_than_is_promised() {
        let paths = Router::new().route("/", axum::routing::get(|| async { "here" }));
        for (sent, answer) in [("GET / HTTP/1.1\r\nHost: loc", ""), ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "here")] {
            let ((mut theirs, ours), (_stopping, stop)) = (duplex(4096), watch::channel(false));
            tokio::spawn(connection(ours, Caller { admitted: true, ..Caller::default() }, None, paths.clone(), stop));
            let begun = TokioInstant::now();
            theirs.write_all(sent.as_bytes()).await.unwrap();
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.unwrap();
            assert!(read.ends_with(answer), "{read}");
            assert!((HEADER_TIMEOUT..HEADER_TIMEOUT * 11 / 10).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        }
    }
}
