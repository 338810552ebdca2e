//! Real loopback connections, by netlink and by table, of our own user and of another.

use super::linux::{Owner, by_netlink, by_table, find, read_answer};
use super::{Peers, own_uid};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const OTHER: u32 = 54321;

fn listen(ip: impl Into<IpAddr>) -> TcpListener {
    TcpListener::bind((ip.into(), 0)).expect("loopback")
}

/// The server's end, and its two addresses.
fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr, SocketAddr) {
    let (stream, remote) = listener.accept().expect("a connection");
    let local = stream.local_addr().expect("an address");
    (stream, local, remote)
}

#[track_caller]
fn both_ways(local: SocketAddr, remote: SocketAddr, uid: u32) {
    let canonical = |a: SocketAddr| SocketAddr::new(a.ip().to_canonical(), a.port());
    assert_eq!(Peers::default().caller_uid(local, remote), Ok(Some(uid)));
    let (local, remote) = (canonical(local), canonical(remote));
    let table = by_table("/proc", local, remote).expect("/proc/net").expect("the row");
    assert_eq!(table.uid, uid);
    match by_netlink(local, remote) {
        Ok(owner) => assert_eq!(owner, Some(table)),
        Err(error) => eprintln!("netlink was not tested: {error}"),
    }
}

#[test]
fn our_own_connection_is_ours() {
    is_ours(Ipv4Addr::LOCALHOST.into());
}

#[test]
#[ignore = "needs IPv6"]
fn with_ipv6_our_own_connection_is_ours() {
    is_ours(Ipv6Addr::LOCALHOST.into());
}

fn is_ours(ip: IpAddr) {
    let listener = listen(ip);
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (_server, local, remote) = accept(&listener);
    both_ways(local, remote, own_uid());
    drop(client);
}

#[test]
#[ignore = "needs IPv6"]
fn with_ipv6_mapped_addresses_are_looked_up_on_either_end() {
    let listener = listen(Ipv4Addr::LOCALHOST);
    let port = listener.local_addr().expect("an address").port();
    // An IPv6 socket of the caller, as Java and Node open them.
    let client = TcpStream::connect((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port)).expect("a connection");
    let (_server, local, remote) = accept(&listener);
    both_ways(local, remote, own_uid());
    // The addresses as a listener for both families reports them.
    let mapped = |addr: SocketAddr| match addr.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), addr.port()),
        IpAddr::V6(_) => addr,
    };
    both_ways(mapped(local), mapped(remote), own_uid());
    drop(client);
}

#[test]
fn a_caller_that_has_closed_is_nobody() {
    let listener = listen(Ipv4Addr::LOCALHOST);
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (mut server, local, remote) = accept(&listener);
    drop(client);
    assert_eq!(server.read(&mut [0]).expect("the end"), 0);
    assert_eq!(Peers::default().caller_uid(local, remote), Ok(None));
    drop(server);
    assert_eq!(Peers::default().caller_uid(local, remote), Ok(None));
}

#[test]
fn a_listener_on_the_callers_port_is_not_the_caller() {
    let listener = listen(Ipv4Addr::LOCALHOST);
    let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 9);
    assert_eq!(Peers::default().caller_uid(local, listener.local_addr().expect("an address")), Ok(None));
}

#[test]
fn a_connection_that_never_was_is_nobody() {
    let at = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    assert_eq!(Peers::default().caller_uid(at(1), at(2)), Ok(None));
}

#[test]
fn a_caller_that_is_missed_once_is_found() {
    let (answers, asked) = (AtomicBool::new(false), AtomicBool::new(false));
    let owner = Owner { uid: 7, inode: 8 };
    let misses_once = || Ok(asked.swap(true, Relaxed).then_some(owner));
    assert_eq!(find(&answers, misses_once, || unreachable!("it answers")), Ok(Some(owner)));
    assert!(answers.load(Relaxed));
}

#[test]
fn the_table_is_read_only_where_netlink_has_never_found_a_socket() {
    let owner = Owner { uid: 7, inode: 8 };
    let refused = || Err(std::io::ErrorKind::PermissionDenied.into());
    let answers = AtomicBool::new(false);
    assert_eq!(find(&answers, || Ok(None), || Ok(Some(owner))), Ok(Some(owner)));
    assert_eq!(find(&answers, refused, || Ok(Some(owner))), Ok(Some(owner)));
    assert_eq!(find(&answers, || Ok(None), refused), Ok(None));
    assert!(find(&answers, refused, refused).is_err_and(|error| error.to_string().contains("/proc/net/tcp")));
    answers.store(true, Relaxed);
    assert_eq!(find(&answers, || Ok(None), || unreachable!("netlink answers")), Ok(None));
    assert_eq!(find(&answers, refused, || Ok(Some(owner))), Ok(Some(owner)));
}

/// Not a test of its own: it connects to the port in its environment.
#[test]
#[ignore = "is run by the test below, as another user"]
fn connects_when_told_to() {
    let addr = std::env::var("WATCHGLASS_TEST_CONNECT").expect("an address");
    let mut stream = TcpStream::connect(addr).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    let _ = stream.read(&mut [0]);
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[allow(clippy::disallowed_methods, reason = "another user's connection needs another user's process")]
fn connect_as(uid: u32, addr: SocketAddr) -> Ended {
    // Not by its path: the build folder often lies below a private home.
    let child = std::process::Command::new("/proc/self/exe")
        .args(["--exact", "http::guard::peer::tests::connects_when_told_to", "--ignored"])
        .env("WATCHGLASS_TEST_CONNECT", addr.to_string())
        .current_dir("/")
        .stdout(Stdio::null())
        .uid(uid)
        .spawn()
        .expect("the caller starts");
    Ended(child)
}

#[test]
#[ignore = "needs root, to be another user"]
fn with_root_another_users_connection_is_theirs() {
    let listener = listen(Ipv4Addr::LOCALHOST);
    listener.set_nonblocking(true).expect("a listener");
    let _child = connect_as(OTHER, listener.local_addr().expect("an address"));
    let deadline = Instant::now() + Duration::from_secs(20);
    let (mut server, remote) = loop {
        match listener.accept() {
            Ok(accepted) => break accepted,
            Err(_) if Instant::now() < deadline => std::thread::yield_now(),
            Err(error) => panic!("nobody called: {error}"),
        }
    };
    both_ways(server.local_addr().expect("an address"), remote, OTHER);
    let _ = server.write_all(b".");
}

proptest::proptest! {
    #[test]
    fn no_answer_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120)) {
        let _ = read_answer(&bytes);
    }
}
