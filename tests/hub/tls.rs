//! TLS of the hub itself.

use super::JSON;
use rustls::pki_types::ServerName;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::server::ServerAnswer;
use watchglass_tests::waiting::{MAX_WAIT, until};

fn made() -> rcgen::CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate")
}

/// Sends a request over TLS that trusts only this certificate; None when the server presents another.
fn ask(
    addr: std::net::SocketAddr,
    trusted: &rcgen::CertifiedKey<rcgen::KeyPair>,
    lines: &str,
    body: &str,
) -> Option<ServerAnswer> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.cert.der().clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = TcpStream::connect(addr).expect("it listens");
    socket.set_read_timeout(Some(MAX_WAIT)).expect("a time limit");
    let mut stream = rustls::StreamOwned::new(client, socket);
    let length = body.len();
    let request = format!("{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    // A connection may end without a close_notify; earlier bytes count.
    let _ = stream.read_to_end(&mut bytes);
    (!bytes.is_empty()).then(|| ServerAnswer::read(&bytes))
}

#[test]
fn a_hub_behind_its_own_certificate_is_asked_by_tls_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (chain, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let first = made();
    let write = |one: &rcgen::CertifiedKey<rcgen::KeyPair>| {
        std::fs::write(&key, one.signing_key.serialize_pem()).expect("a folder");
        std::fs::write(&chain, one.cert.pem()).expect("a folder");
    };
    write(&first);
    let text = |path: &std::path::Path| path.to_str().expect("plain").to_string();
    let (chain, key) = (text(&chain), text(&key));
    let hub = Hub::start(["--no-local", "--bind", "127.0.0.1", "--tls-cert", &chain, "--tls-key", &key]);
    let (addr, host) = (hub.server.addr(), format!("localhost:{}", hub.server.addr().port()));
    assert!(hub.server.url.starts_with("https://"), "{}", hub.server.url);
    let page = ask(addr, &first, &format!("GET /api/v1/session HTTP/1.1\r\nHost: {host}\r\n"), "").expect("an answer");
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(page.header("strict-transport-security"), "max-age=31536000");
    assert!(!page.body.contains("\"plain_http\":true"));
    let body = format!("{{\"name\":\"ada\",\"password\":\"{PASSWORD}\"}}");
    let sign_in = |origin: &str| {
        let head = format!("POST /api/v1/session HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n{JSON}\r\n");
        ask(addr, &first, &head, &body).expect("an answer")
    };
    let begun = sign_in(&format!("https://{host}"));
    assert_eq!(begun.status, 200, "{begun:?}");
    let cookie = begun.header("set-cookie");
    assert!(cookie.starts_with("__Host-wg-") && cookie.contains("Secure") && cookie.contains("Path=/"), "{cookie}");
    assert_eq!(sign_in(&format!("http://{host}")).status, 403, "a page that came without TLS is not ours");
    assert!(ask(addr, &made(), &format!("GET / HTTP/1.1\r\nHost: {host}\r\n"), "").is_none(), "no other is believed");
    // A renewed certificate is used without a restart.
    let renewed = made();
    write(&renewed);
    let health = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n");
    let shown = until("the renewed certificate", || ask(addr, &renewed, &health, ""));
    assert_eq!(shown.status, 200);
}
