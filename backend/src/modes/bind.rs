//! Listening sockets of a server.

use crate::config::Config;
use std::io;
#[cfg(unix)]
use std::net::Ipv6Addr;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::TcpSocket;

/// Maximum number of connections that wait in the kernel until they are accepted.
#[cfg(unix)]
const MAX_WAITING: u32 = 1_000;

/// Binds every address of the configuration to one port; none if a Unix socket replaces the port.
///
/// # Errors
/// The first address could not be bound. Further addresses that do not exist here (no IPv6) are skipped.
pub async fn bind(config: &Config) -> io::Result<Vec<TcpListener>> {
    if config.no_port {
        return Ok(Vec::new());
    }
    // With port 0 the system chooses a port by the first address. Another program may hold it on the second one, so
    // there are retries.
    let attempts = if config.port == 0 { 20 } else { 1 };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for _ in 0..attempts {
        match bind_all(&config.bind, config.port).await {
            Ok(listeners) => return Ok(listeners),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn bind_all(addresses: &[IpAddr], port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut port = port;
    for &address in addresses {
        match listen(SocketAddr::new(address, port), addresses).await {
            Ok(listener) => {
                port = listener.local_addr()?.port();
                listeners.push(listener);
            }
            Err(error) if !listeners.is_empty() && error.kind() != io::ErrorKind::AddrInUse => {
                tracing::info!(%address, %error, "not listening there");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(listeners)
}

/// Listens on one of these addresses. A socket on all addresses of IPv6 takes those of IPv4 as well, which could then not
/// be bound beside it. So it keeps to its own if there are others of IPv4.
async fn listen(address: SocketAddr, among: &[IpAddr]) -> io::Result<TcpListener> {
    #[cfg(unix)]
    if address.ip() == Ipv6Addr::UNSPECIFIED && among.iter().any(IpAddr::is_ipv4) {
        return listen_on_v6_alone(address);
    }
    let _ = among;
    TcpListener::bind(address).await
}

#[cfg(unix)]
fn listen_on_v6_alone(address: SocketAddr) -> io::Result<TcpListener> {
    use std::os::fd::AsRawFd;
    let socket = TcpSocket::new_v6()?;
    socket.set_reuseaddr(true)?;
    let yes: libc::c_int = 1;
    let (value, length) = ((&raw const yes).cast(), size_of_val(&yes) as libc::socklen_t);
    // SAFETY: `value` points to a live value of `length` bytes.
    if unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, value, length) } != 0 {
        return Err(io::Error::last_os_error());
    }
    socket.bind(address)?;
    socket.listen(MAX_WAITING)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[tokio::test]
    async fn all_addresses_of_both_kinds_have_one_port() {
        let has_v6 = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).await.is_ok();
        let (all_v4, all_v6) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        for addresses in [[all_v4, all_v6], [all_v6, all_v4]].into_iter().take(if has_v6 { 2 } else { 1 }) {
            let config = Config { bind: addresses.to_vec(), port: 0, ..Config::default() };
            let listeners = bind(&config).await.expect("bound");
            assert_eq!(listeners.len(), if has_v6 { 2 } else { 1 });
            let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().expect("an address").port()).collect();
            assert!(ports.iter().all(|port| *port == ports[0]), "{ports:?}");
        }
    }
}
