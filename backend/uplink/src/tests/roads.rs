//! Connections to a hub: TLS with an authority and with a pin, proxies, refusals, and error texts.

use super::*;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

/// A hub behind TLS: its certificate in PEM, and the pin of its key.
async fn tls(names: &[&str]) -> (Hub<TlsStream<TcpStream>>, SocketAddr, String, String) {
    use sha2::{Digest, Sha256};
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let pin =
        crate::settings::Pin(Sha256::digest(rcgen::PublicKeyData::subject_public_key_info(&made.signing_key)).into());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("it fits");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (give, incoming) = tokio::sync::mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust this certificate disconnects.
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            if give.send(stream).await.is_err() {
                return;
            }
        }
    });
    (Hub::from_wires(incoming), address, made.cert.pem(), pin.to_string())
}

/// An agent whose entry of a hub has these keys.
fn agent(keys: &[(&str, &str)]) -> Agent {
    let text: String = keys.iter().map(|(key, value)| format!("{key} = {value:?}\n")).collect();
    let mut agent = Agent::with(HubEntry::TABLE.read_text(&text).expect("an entry"), None);
    agent.tick();
    agent
}

async fn away(agent: &Agent) -> String {
    let uplink = agent.start();
    let state = until(&uplink, |state| matches!(state, LinkState::Away(_))).await;
    uplink.stop().await;
    let LinkState::Away(why) = state else { panic!("{state:?}") };
    why
}

async fn arrives<S: road::Wire>(hub: &mut Hub<S>, agent: &Agent) {
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, _) = hub.link("wg_a_1").await;
    link.welcome(0, 0).await;
    assert_eq!(link.ticks().await.len(), 1);
    uplink.stop().await;
}

#[tokio::test]
async fn a_hub_is_trusted_by_its_authority_or_its_pin_and_by_nothing_else() {
    let (mut hub, address, pem, pin) = tls(&["localhost"]).await;
    let url = format!("https://localhost:{}", address.port());
    let folder = tempfile::tempdir().expect("a folder");
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &pem).expect("written");
    let ca = ca.to_str().expect("text");
    arrives(&mut hub, &agent(&[("url", &url), ("ca", ca)])).await;
    hub.joined = 0;
    // With a pin alone the name is not checked.
    let by_address = format!("https://127.0.0.1:{}", address.port());
    arrives(&mut hub, &agent(&[("url", &by_address), ("pin", &pin)])).await;
    let why = away(&agent(&[("url", &url)])).await;
    assert!(why.contains("--ca FILE") && why.contains("--pin"), "{why}");
    let why = away(&agent(&[("url", &by_address), ("ca", ca)])).await;
    assert!(why.contains("another host name"), "{why}");
    let other = crate::settings::Pin([7; 32]).to_string();
    let why = away(&agent(&[("url", &url), ("pin", &other)])).await;
    assert!(why.contains("a different key") && why.contains(&pin), "{why}");
}

#[tokio::test]
async fn what_is_no_hub_is_told_from_what_is_not_there() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let why = away(&agent(&[("url", &format!("http://{gone}"))])).await;
    assert!(why.contains("connection refused"), "{why}");
    let why = away(&agent(&[("url", "http://watchglass.invalid"), ("proxy", "none")])).await;
    assert!(why.contains("the host \"watchglass.invalid\" cannot be resolved"), "{why}");
    for (answer, said) in [
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "no Watchglass hub"),
        (
            "HTTP/1.1 308 Moved\r\nLocation: https://b/x/api/v1/ingest/enrol\r\n\r\n",
            "the hub redirects to https://b/x; write that",
        ),
        ("SSH-2.0-OpenSSH\r\n\r\n", "is not a web server"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("one who calls");
            let mut asked = Vec::new();
            // The whole request is read, because unread data would reset the connection.
            while !asked.ends_with(b"}") {
                asked.push(stream.read_u8().await.expect("a byte"));
            }
            stream.write_all(answer.as_bytes()).await.expect("written");
        });
        let why = away(&agent(&[("url", &url)])).await;
        assert!(why.contains(said), "{why}");
    }
}

/// A proxy that connects, or returns a status; and the requests that it received.
async fn relay(status: &'static str, to: SocketAddr) -> (SocketAddr, tokio::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (tell, heads) = tokio::sync::mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.expect("a byte"));
            }
            let _ = tell.send(String::from_utf8(head).expect("text")).await;
            client.write_all(format!("HTTP/1.1 {status}\r\nVia: x\r\n\r\n").as_bytes()).await.expect("written");
            if status.starts_with("200") {
                let mut server = TcpStream::connect(to).await.expect("a hub");
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
            }
        }
    });
    (address, heads)
}

#[tokio::test]
async fn a_proxy_is_asked_to_connect_and_what_it_refuses_is_told() {
    let (mut hub, address, _, pin) = tls(&["hub.example.org"]).await;
    let (proxy, mut heads) = relay("200 Connection established", address).await;
    // The proxy resolves the name.
    let url = "https://hub.example.org:8443";
    let by = format!("http://me:s%40cret@{proxy}");
    arrives(&mut hub, &agent(&[("url", url), ("pin", &pin), ("proxy", &by)])).await;
    let head = soon("a head", heads.recv()).await.expect("a head");
    assert!(head.starts_with("CONNECT hub.example.org:8443 HTTP/1.1\r\nHost: hub.example.org:8443\r\n"), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6c0BjcmV0\r\n"), "{head}");
    for (status, said) in [("407 Who", "user and a password"), ("403 No", "returns 403"), ("x", "is not an HTTP proxy")]
    {
        let (proxy, _heads) = relay(status, address).await;
        let by = format!("http://me:s3cret@{proxy}");
        let why = away(&agent(&[("url", url), ("pin", &pin), ("proxy", &by)])).await;
        assert!(why.contains(said) && !why.contains("s3cret"), "{why}");
    }
}
