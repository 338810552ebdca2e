//! Connection to a hub: name resolution, TCP, proxy, TLS. Each step has its own errors.
//!
//! All addresses of the name are tried, IPv6 and IPv4 alternately, the next after 250 ms or at once after a failure.
//! The name is resolved each time. Certificates are verified with the system's trust store, the authorities of a file,
//! or a single public key.

use crate::settings::{HubEntry, HubUrl, Pin, ProxyChoice, ProxyEnvironment, ProxyUrl};
use futures_util::stream::{FuturesUnordered, StreamExt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt;
use sha2::{Digest, Sha256};
use shared::unit::size;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Maximum time of each step.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for one address before the next is also tried.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// Maximum size of the head of a proxy's response, bytes.
const MAX_PROXY_HEAD: usize = 8 << 10;
/// Time for which the system retransmits unacknowledged data before it closes a connection.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(15);

/// Maximum unsent data in the system's buffer, bytes: a tick must not wait behind requested history.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: libc::c_uint = 16 << 10;

/// A connection to a hub, direct or through a proxy.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// The steps of a connection to a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Name resolution.
    Name,
    /// TCP connection.
    Tcp,
    /// CONNECT through the proxy.
    Proxy,
    /// TLS, with the check of the hub's certificate.
    Tls,
    /// Upgrade to the protocol of agents.
    Upgrade,
    /// Authentication with our key.
    Key,
    /// Comparison of the clocks.
    Clock,
}

impl Stage {
    /// Its name.
    pub fn text(self) -> &'static str {
        match self {
            Stage::Name => "name",
            Stage::Tcp => "TCP",
            Stage::Proxy => "proxy",
            Stage::Tls => "TLS",
            Stage::Upgrade => "upgrade",
            Stage::Key => "key",
            Stage::Clock => "clock",
        }
    }
}

/// The failed step, and the reason: a sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoadEnd {
    /// The step that failed.
    pub stage: Stage,
    /// The problem, and the remedy if it is known.
    pub why: String,
}

impl RoadEnd {
    pub(super) fn new(stage: Stage, why: impl Into<String>) -> Self {
        RoadEnd { stage, why: why.into() }
    }
}

impl fmt::Display for RoadEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// The completed steps, and the result of each.
pub type Trail = Vec<(Stage, String)>;

/// Connection settings of a hub.
pub struct Road {
    urls: Vec<HubUrl>,
    proxy: ProxyChoice,
    environment: ProxyEnvironment,
    tls: Arc<ClientConfig>,
    /// Number of addresses of the name at its last resolution.
    addresses: AtomicUsize,
    /// Number of addresses to skip.
    left: AtomicUsize,
}

impl Road {
    /// The connection settings of an entry.
    ///
    /// # Errors
    /// The file of authorities cannot be used; a sentence.
    pub fn new(hub: &HubEntry, environment: &ProxyEnvironment) -> Result<Road, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let tls = match (&hub.ca, hub.pin) {
            (_, Some(pin)) => {
                let verifier = Arc::new(Pinned { pin, provider });
                config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
            (Some(path), None) => {
                let wrong = |why: String| format!("--ca {}: {why}", path.display());
                let mut roots = RootCertStore::empty();
                let all = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
                for certificate in all {
                    let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                    roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(wrong("the file has no certificate; it must be PEM".into()));
                }
                config.with_root_certificates(roots).with_no_client_auth()
            }
            (None, None) => {
                let config = config.with_platform_verifier();
                config
                    .map_err(|error| format!("the CA certificates of this system cannot be read: {error}"))?
                    .with_no_client_auth()
            }
        };
        let (urls, environment) = (hub.urls.clone(), environment.clone());
        let (addresses, left) = (AtomicUsize::new(1), AtomicUsize::new(0));
        Ok(Road { urls, proxy: hub.proxy.clone(), environment, tls: Arc::new(tls), addresses, left })
    }

    /// The address for an attempt: the addresses of a cluster in turn.
    pub fn url(&self, attempt: usize) -> &HubUrl {
        &self.urls[attempt % self.urls.len()]
    }

    /// Possible number of hubs: the configured addresses, or the resolved addresses of a name.
    pub fn ways(&self) -> usize {
        self.urls.len() * self.addresses.load(Relaxed)
    }

    /// The next attempt starts with another resolved address, once all names have been tried with this one.
    pub fn move_on(&self) {
        self.left.fetch_add(1, Relaxed);
    }

    /// Connects up to the point where bytes for the hub can be written.
    ///
    /// # Errors
    /// [`RoadEnd`].
    pub async fn connect(&self, url: &HubUrl, trail: &mut Trail) -> Result<Box<dyn Wire>, RoadEnd> {
        let proxy = match &self.proxy {
            ProxyChoice::Environment => self.environment.proxy(url).map_err(|why| RoadEnd::new(Stage::Proxy, why))?,
            ProxyChoice::Direct => None,
            ProxyChoice::Named(proxy) => Some(proxy.clone()),
        };
        let (host, port) = proxy.as_ref().map_or((&url.host, url.port), |proxy| (&proxy.host, proxy.port));
        let first = self.left.load(Relaxed) / self.urls.len();
        let (mut stream, addresses) = tcp(host, port, (proxy.is_some(), first), trail).await?;
        // A proxy resolves the name itself.
        self.addresses.store(if proxy.is_some() { 1 } else { addresses }, Relaxed);
        if let Some(proxy) = &proxy {
            let asked = timeout(STEP_TIMEOUT, tunnel(&mut stream, proxy, url)).await;
            let late = || format!("the proxy {proxy} timed out after {} s", STEP_TIMEOUT.as_secs());
            let answered = asked.unwrap_or_else(|_| Err(late()));
            answered.map_err(|why| RoadEnd::new(Stage::Proxy, why))?;
            trail.push((Stage::Proxy, format!("{proxy} connects")));
        }
        if !url.tls {
            return Ok(Box::new(stream));
        }
        let failed = |why: String| RoadEnd::new(Stage::Tls, why);
        let name = ServerName::try_from(url.host.clone()).map_err(|error| failed(error.to_string()))?;
        let made = TlsConnector::from(self.tls.clone()).connect(name, stream);
        let stream = timeout(STEP_TIMEOUT, made)
            .await
            .map_err(|_| failed(format!("the TLS handshake timed out after {} s", STEP_TIMEOUT.as_secs())))?
            .map_err(|error| failed(untrusted(&error)))?;
        let version = stream.get_ref().1.protocol_version().and_then(|version| version.as_str().map(str::to_string));
        trail.push((Stage::Tls, version.unwrap_or_default()));
        Ok(Box::new(stream))
    }
}

/// A connection to the first responding address, from the one at `begin` on, and the number of addresses.
async fn tcp(
    host: &str,
    port: u16,
    (proxy, begin): (bool, usize),
    trail: &mut Trail,
) -> Result<(TcpStream, usize), RoadEnd> {
    let of = if proxy { " of the proxy" } else { "" };
    let failed = |stage, why: String| RoadEnd::new(stage, why);
    let found = timeout(STEP_TIMEOUT, tokio::net::lookup_host((host, port))).await;
    let none = || format!("the host {host:?}{of} cannot be resolved; check the address, and the DNS of this machine");
    let mut found: Vec<SocketAddr> = match found {
        Ok(Ok(found)) => found.collect(),
        Ok(Err(_)) => return Err(failed(Stage::Name, none())),
        Err(_) => {
            let why = format!("the DNS lookup of {host:?}{of} timed out after {} s", STEP_TIMEOUT.as_secs());
            return Err(failed(Stage::Name, why));
        }
    };
    if found.is_empty() {
        return Err(failed(Stage::Name, none()));
    }
    let shown: Vec<String> = found.iter().map(|address| address.ip().to_string()).collect();
    trail.push((Stage::Name, shown.join(", ")));
    let many = found.len();
    found.rotate_left(begin % many);
    let late = || {
        io::Error::new(io::ErrorKind::TimedOut, format!("the connection timed out after {} s", STEP_TIMEOUT.as_secs()))
    };
    let stream = timeout(STEP_TIMEOUT, first(in_turn(found))).await.unwrap_or_else(|_| Err(late()));
    let stream = stream.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_string(),
            _ => error.to_string(),
        };
        failed(Stage::Tcp, format!("no connection to port {port}{of}: {why}"))
    })?;
    set_up(&stream).map_err(|error| failed(Stage::Tcp, error.to_string()))?;
    let peer = stream.peer_addr().map_or_else(|_| host.to_string(), |peer| peer.to_string());
    trail.push((Stage::Tcp, peer));
    Ok((stream, many))
}

/// The addresses, IPv6 and IPv4 alternately, each kind in its order.
fn in_turn(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (ahead, behind): (Vec<_>, Vec<_>) = found.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut ahead, mut behind) = (ahead.into_iter(), behind.into_iter());
    std::iter::from_fn(|| {
        let pair: Vec<SocketAddr> = ahead.next().into_iter().chain(behind.next()).collect();
        (!pair.is_empty()).then_some(pair)
    })
    .flatten()
    .collect()
}

/// A connection to the first responding address.
async fn first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let (mut waiting, mut running) = (addresses.into_iter(), FuturesUnordered::new());
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(next) = waiting.next() {
            running.push(TcpStream::connect(next));
        } else if running.is_empty() {
            return Err(last);
        }
        // The last address gets the caller's full timeout.
        let pause = if waiting.len() > 0 { NEXT_ADDRESS } else { STEP_TIMEOUT };
        match timeout(pause, running.next()).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => last = error,
            Ok(None) | Err(_) => {}
        }
    }
}

fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let ms = UNACKNOWLEDGED.as_millis() as libc::c_uint;
        for (option, value) in [(libc::TCP_USER_TIMEOUT, ms), (libc::TCP_NOTSENT_LOWAT, UNSENT_BYTES)] {
            // SAFETY: the descriptor is open, and the pointer is to a value of the size that is named. Where the system
            // does not know the option, silence is noticed by the link itself.
            let _ = unsafe {
                libc::setsockopt(
                    stream.as_raw_fd(),
                    libc::IPPROTO_TCP,
                    option,
                    (&raw const value).cast(),
                    size_of_val(&value) as libc::socklen_t,
                )
            };
        }
    }
    Ok(())
}

/// Requests a connection to the hub from a proxy.
async fn tunnel(stream: &mut TcpStream, proxy: &ProxyUrl, url: &HubUrl) -> Result<(), String> {
    let target = url.host_and_port();
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(authorization) = &proxy.authorization {
        request += &format!("Proxy-Authorization: {authorization}\r\n");
    }
    request += "\r\n";
    let lost = |error: io::Error| format!("the proxy {proxy} has closed the connection: {error}");
    stream.write_all(request.as_bytes()).await.map_err(lost)?;
    // Byte by byte: the bytes after the head belong to the hub.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_PROXY_HEAD {
            return Err(format!("the response of the proxy {proxy} is longer than {}", size(MAX_PROXY_HEAD as u64)));
        }
        head.push(stream.read_u8().await.map_err(lost)?);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or("");
    let mut words = line.splitn(3, ' ');
    let status = words.next().filter(|version| version.starts_with("HTTP/1.")).and_then(|_| words.next());
    match status.and_then(|status| status.parse::<u16>().ok()) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(format!(
            "the proxy {proxy} requires a user and a password (407): write them into its address, \
            http://USER:PASSWORD@HOST:PORT"
        )),
        Some(status) => Err(format!("the proxy {proxy} does not connect to {target}: it returns {status}")),
        None => Err(format!("{proxy} is not an HTTP proxy")),
    }
}

/// Trusts the holder of one key, without any other check.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

/// The certificate has this key instead of the pinned one.
#[derive(Debug)]
struct OtherKey(Pin);

impl fmt::Display for OtherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its certificate has a different key than the pinned one, {}", self.0)
    }
}
impl std::error::Error for OtherKey {}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        let found = Pin(Sha256::digest(key.as_ref()).into());
        match found == self.pin {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::Other(OtherError(Arc::new(OtherKey(found)))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Error text for a response that is not HTTP.
pub(super) fn no_web_server(url: &HubUrl) -> String {
    let known = "the server is not a web server";
    if url.tls { known.into() } else { format!("{known}: write https:// if it speaks TLS") }
}

/// Describes a TLS error, with a remedy.
fn untrusted(error: &io::Error) -> String {
    use CertificateError as Bad;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature)) => {
            "this machine does not trust the CA of its certificate: name the CA certificate with --ca FILE, or use \
            the hub's join line with --pin"
                .into()
        }
        Some(rustls::Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. })) => {
            "its certificate has another host name: use the host name of the certificate".into()
        }
        Some(rustls::Error::InvalidCertificate(
            Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. },
        )) => "its certificate has expired or is not valid yet: renew it, or correct the clock".into(),
        Some(rustls::Error::InvalidCertificate(Bad::Other(other))) => match other.0.downcast_ref::<OtherKey>() {
            Some(other) => format!("{other}: use the current join line of the hub, if this is the right hub"),
            // A certificate whose owner marked it as an authority, as openssl does by default.
            None if other.to_string().contains("CaUsedAsEndEntity") => {
                "its certificate is a CA certificate: create a server certificate for the hub, or use the hub's join \
                line with --pin"
                    .into()
            }
            None => format!("its certificate is not trusted: {other}"),
        },
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS: write http:// if that is intended".into(),
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it closed the connection during the TLS handshake".into()
        }
        None => error.to_string(),
    }
}
