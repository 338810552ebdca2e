//! Listening sockets of a server.

use crate::config::Config;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpListener;

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
        match TcpListener::bind(SocketAddr::new(address, port)).await {
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
