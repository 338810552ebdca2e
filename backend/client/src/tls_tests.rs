//! The client against a real TLS server: trusted servers, and the errors for untrusted ones.

use super::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use ureq::tls::Certificate;

// An authority of these tests, and its certificate for a server named localhost; both are valid for a hundred years.
const AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBnDCCAUOgAwIBAgIUZyOQWb3Vpy5DYePUyT+ci1ZccOowCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQYSB0ZXN0IGF1dGhvcml0eTAgFw0yNjExMjExNzIxMDlaGA8y
MTI2MTAyODE3MjEwOVowGzEZMBcGA1UEAwwQYSB0ZXN0IGF1dGhvcml0eTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABHw1z5QeywLEKYZP5J694U2iOJbMwRKyFDXF
916WiohpqO5Te9Lb2zpEn8i2lPx7inR+CXjmeMYh/FTGo3SJ51ujYzBhMB0GA1Ud
DgQWBBTZ+XAzXDijsKeyhqGVAq527BKjxzAfBgNVHSMEGDAWgBTZ+XAzXDijsKey
hqGVAq527BKjxzAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwICBDAKBggq
hkjOPQQDAgNHADBEAiAr4YoR1Aja7dLEzLX02YLoaUpObOaEG3BLVQXqpmLEKQIg
XQTuTkoxcR8la+Ri5AFPIHJnxbxCJRSCr4NKmEWGMns=
-----END CERTIFICATE-----
";
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBqjCCAVGgAwIBAgIUAY6k7+8LKHKni2dxKPkwaj8Dmq0wCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQYSB0ZXN0IGF1dGhvcml0eTAgFw0yNjExMjExNzIxMDlaGA8y
MTI2MTAyODE3MjEwOVowFDESMBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0C
AQYIKoZIzj0DAQcDQgAE1zwYEQAoggZKXEuHMXU80N3XoLKHNcriSys3r8r0zyDt
IwiZq1/US3vIV1czBz4dqU0ZGYzsWLy+Gq9/mMceuaN4MHYwFAYDVR0RBA0wC4IJ
bG9jYWxob3N0MAkGA1UdEwQCMAAwEwYDVR0lBAwwCgYIKwYBBQUHAwEwHQYDVR0O
BBYEFMwc1QJ9ne7iHxMVLZJua1yO27+HMB8GA1UdIwQYMBaAFNn5cDNcOKOwp7KG
oZUCrnbsEqPHMAoGCCqGSM49BAMCA0cAMEQCIHk3Ie9Cyoa/5FOpVO5VvMjdjng5
Upq2dFvZVZz8eQViAiBrXv7Z5IqlNQ9iTvCz2E1AbdZlalPFTz5jCNrRi1lzig==
-----END CERTIFICATE-----
";
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7HC8+UaQSbysY7VK
CgcHGBVHOclzGSbDekmaTStvVhahRANCAATXPBgRACiCBkpcS4cxdTzQ3degsoc1
yuJLKzevyvTPIO0jCJmrX9RLe8hXVzMHPh2pTRkZjOxYvL4ar3+Yxx65
-----END PRIVATE KEY-----
";

/// Serves one page to each of `connections`, and returns its port. Errors of clients that close the connection are
/// ignored.
fn server(connections: usize) -> u16 {
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("it fits");
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().take(connections).map_while(Result::ok) {
            let mut tls = rustls::ServerConnection::new(config.clone()).expect("a connection");
            let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                request.push(byte[0]);
            }
            if !request.is_empty() {
                let page = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nup 1\n";
                let _ = stream.write_all(page.as_bytes());
            }
        }
    });
    port
}

fn fetch(url: &str, roots: Option<RootCerts>) -> Result<Vec<u8>, String> {
    let uri = url.parse().expect("an address");
    // A busy machine may need more time.
    let limit = Duration::from_secs(5);
    let limits = Limits { connect: limit, whole: limit, idle: limit };
    let client = roots.map_or_else(|| Client::new(limits), |roots| Client::trusting(limits, roots));
    let response = client.get(&uri, &[], [])?;
    assert_eq!(client.connections(), 1);
    Ok(read(response, MaxBytes { sent: 100, unpacked: 100 }).expect("a short body"))
}

fn own() -> Option<RootCerts> {
    let authority = Certificate::from_pem(AUTHORITY.as_bytes()).expect("a certificate");
    Some(RootCerts::from(vec![authority]))
}

#[test]
fn a_page_comes_over_tls_from_whom_is_trusted_under_its_own_name_only() {
    let port = server(2);
    let page = fetch(&format!("https://localhost:{port}/metrics"), own());
    assert_eq!(page, Ok(b"up 1\n".to_vec()));
    let reason = fetch(&format!("https://127.0.0.1:{port}/metrics"), own()).expect_err("another name");
    assert!(reason.contains("for another name") && reason.contains("its address"), "{reason}");
}

#[test]
fn an_unknown_authority_is_refused_with_what_to_do() {
    let port = server(1);
    let reason = fetch(&format!("https://localhost:{port}/metrics"), None).expect_err("nobody knows it");
    assert!(reason.contains("does not trust") && reason.contains("SSL_CERT_FILE"), "{reason}");
}

#[test]
fn a_server_without_tls_is_told_from_one_with() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        if let Ok((mut tcp, _)) = listener.accept() {
            let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let reason = fetch(&format!("https://localhost:{port}/metrics"), own()).expect_err("it speaks plain");
    assert!(reason.contains("http://"), "{reason}");
}

/// Resolves every name to this machine, and counts the requests.
#[derive(Debug)]
struct Here(AtomicU64);

impl Gate for Here {
    fn addresses(&self, uri: &Uri, _: Duration) -> Result<Vec<SocketAddr>, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match uri.host() {
            Some("refused.example") => Err("nobody goes there".into()),
            _ => Ok(vec![([127, 0, 0, 1], uri.port_u16().unwrap_or(443)).into()]),
        }
    }
}

#[test]
fn a_gate_says_where_a_name_is_and_the_certificate_is_that_names() {
    let port = server(3);
    let limit = Duration::from_secs(5);
    let limits = Limits { connect: limit, whole: limit, idle: limit };
    let gate = Arc::new(Here(AtomicU64::new(0)));
    let roots = own().expect("an authority");
    let client = Client::gated_trusting(limits, gate.clone(), None, roots).expect("a client");
    let get = |host: &str| client.get(&format!("https://{host}:{port}/").parse().expect("an address"), &[], []);
    assert_eq!(get("localhost").expect("a page").status(), 200);
    assert_eq!(client.met(), Some(([127, 0, 0, 1], port).into()));
    assert_eq!(client.met(), None);
    // The address from a gate does not affect the check of the name in the certificate.
    let reason = get("other.example").expect_err("another's certificate");
    assert!(reason.contains("for another name"), "{reason}");
    assert_eq!(get("refused.example").expect_err("the gate is shut"), "nobody goes there");
    // No connection is kept: each request passes the gate.
    assert_eq!(get("localhost").expect("a page").status(), 200);
    assert_eq!(gate.0.load(Ordering::Relaxed), 4);
}
