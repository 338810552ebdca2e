//! TLS of a hub: a certificate and its key from files. Changed files are reloaded, so a renewal needs no restart.

use super::transport::Transport;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use uplink::settings::Pin;

/// Timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two checks whether the files have changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The certificate of a server, as last loaded from its files.
pub struct Certificate {
    files: [PathBuf; 2],
    now: Mutex<Shown>,
}

/// The certificate sent to clients.
#[derive(Clone)]
struct Shown {
    config: Arc<ServerConfig>,
    /// Pin of a self-signed certificate.
    pin: Option<Pin>,
}

/// Marks of a file's version: modification time and size. None if they cannot be read.
type Stamps = [Option<(SystemTime, u64)>; 2];

impl Certificate {
    /// Reads a chain of certificates, our own first, and its private key, both PEM.
    ///
    /// # Errors
    /// One sentence: the file and its fault.
    pub fn read(chain: &Path, key: &Path) -> Result<Certificate, String> {
        let now = Mutex::new(read(chain, key)?);
        Ok(Certificate { files: [chain.into(), key.into()], now })
    }

    fn now(&self) -> Shown {
        self.now.lock().clone()
    }

    /// Pin by which agents verify a self-signed certificate; none for one of an authority.
    pub fn pin(&self) -> Option<Pin> {
        self.now().pin
    }

    fn stamps(&self) -> Stamps {
        self.files.each_ref().map(|path| {
            let about = std::fs::metadata(path).ok()?;
            Some((about.modified().ok()?, about.len()))
        })
    }

    /// Reloads the files when they change. If they are unusable, the old certificate stays. Never ends.
    pub async fn follow(&self) {
        let mut known = self.stamps();
        loop {
            sleep(CHECK_INTERVAL).await;
            self.reload_if_changed(&mut known);
        }
    }

    /// Reloads the files if they have changed. Returns whether there is a new certificate.
    fn reload_if_changed(&self, known: &mut Stamps) -> bool {
        let stamps = self.stamps();
        if stamps == *known {
            return false;
        }
        *known = stamps;
        let [chain, key] = &self.files;
        match read(chain, key) {
            Ok(new) => {
                *self.now.lock() = new;
                tracing::info!("the certificate was read anew");
                true
            }
            // The two files are written one after the other. The next check follows when the second has changed.
            Err(error) => {
                tracing::warn!("{error}; the certificate of before is shown on");
                false
            }
        }
    }

    /// Does the TLS handshake; none when it fails, which is the client's fault.
    pub async fn accept(&self, stream: TcpStream) -> Option<Transport> {
        match timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(self.now().config).accept(stream)).await {
            Ok(Ok(stream)) => Some(Transport::Tls(Box::new(stream))),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a caller and we found no common TLS");
                None
            }
            Err(_) => None,
        }
    }
}

fn read(chain: &Path, key: &Path) -> Result<Shown, String> {
    let cannot = |path: &Path, why: &dyn std::fmt::Display| format!("cannot use {}: {why}", path.display());
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect);
    let certificates = certificates.map_err(|why| cannot(chain, &why))?;
    let Some(own) = certificates.first() else {
        return Err(cannot(chain, &"the file has no certificate; write PEM, with the server's certificate first"));
    };
    let pin = pin(own);
    let private = PrivateKeyDer::from_pem_file(key).map_err(|why| cannot(key, &why))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|why| format!("{} and {} do not match: {why}", chain.display(), key.display()))?;
    Ok(Shown { config: Arc::new(config), pin })
}

/// The pin of a certificate whose issuer is its subject.
fn pin(certificate: &CertificateDer) -> Option<Pin> {
    let key = ParsedCertificate::try_from(certificate).ok()?.subject_public_key_info();
    is_own_issuer(certificate).unwrap_or(false).then(|| Pin(Sha256::digest(key.as_ref()).into()))
}

/// Whether issuer and subject of a certificate are the same (RFC 5280, 4.1); none if the bytes are no certificate.
fn is_own_issuer(certificate: &[u8]) -> Option<bool> {
    let (_, signed, _) = der(certificate)?;
    let (_, mut fields, _) = der(signed)?;
    // The version, a single field in front, is optional.
    if fields.first() == Some(&0xa0) {
        fields = der(fields)?.2;
    }
    let mut next = || {
        let (whole, _, rest) = der(fields)?;
        fields = rest;
        Some(whole)
    };
    let (_serial, _signature, issuer, _validity, subject) = (next()?, next()?, next()?, next()?, next()?);
    Some(issuer == subject)
}

/// The first element of DER: the whole element, its content, and the bytes behind it.
fn der(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (head, length) = match *bytes.get(1)? {
        short @ 0..=0x7f => (2, usize::from(short)),
        long => {
            let count = usize::from(long & 0x7f);
            let digits = bytes.get(2..2 + count).filter(|_| (1..=4).contains(&count))?;
            (2 + count, digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)))
        }
    };
    let end = head.checked_add(length)?;
    Some((bytes.get(..end)?, bytes.get(head..end)?, bytes.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    fn write(folder: &Path, name: &str, made: &CertifiedKey<rcgen::KeyPair>) -> (PathBuf, PathBuf) {
        let (chain, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
        std::fs::write(&chain, made.cert.pem()).expect("a folder");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("a folder");
        (chain, key)
    }

    fn made(name: &str) -> CertifiedKey<rcgen::KeyPair> {
        generate_simple_self_signed([name.to_string()]).expect("a certificate")
    }

    fn shown(certificate: &Certificate) -> *const ServerConfig {
        Arc::as_ptr(&certificate.now().config)
    }

    #[test]
    fn files_that_change_are_read_anew_and_bad_ones_change_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (chain, key) = write(folder.path(), "a", &made("localhost"));
        let certificate = Certificate::read(&chain, &key).expect("a certificate");
        let mut known = certificate.stamps();
        let first = shown(&certificate);
        assert!(!certificate.reload_if_changed(&mut known), "nothing has changed");
        std::fs::write(&chain, "no certificate").expect("a folder");
        assert!(!certificate.reload_if_changed(&mut known) && shown(&certificate) == first, "half of a renewal");
        write(folder.path(), "a", &made("a-longer-name.example.org"));
        assert!(certificate.reload_if_changed(&mut known) && shown(&certificate) != first);
    }

    #[test]
    fn a_certificate_that_vouches_for_itself_has_a_pin_and_that_of_an_authority_none() {
        let own = made("localhost");
        assert!(pin(own.cert.der()).is_some());
        let mut params = rcgen::CertificateParams::new(["localhost".to_string()]).expect("a name");
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority");
        let authority = rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().expect("a key"));
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(["localhost".to_string()]).expect("a name");
        let issued = params.signed_by(&key, &authority.expect("an authority")).expect("a certificate");
        assert!(pin(issued.der()).is_none());
        for cut in 0..own.cert.der().len() {
            assert_eq!(is_own_issuer(&own.cert.der()[..cut]), None);
        }
    }

    #[test]
    fn what_cannot_be_used_is_said_with_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (chain, key) = write(folder.path(), "a", &made("localhost"));
        let (_, other) = write(folder.path(), "b", &made("localhost"));
        let said = |chain: &Path, key: &Path| Certificate::read(chain, key).err().unwrap_or_default();
        assert!(said(&folder.path().join("none"), &key).contains("none"));
        assert!(said(&key, &key).contains("no certificate"));
        assert!(said(&chain, &chain).contains("a.pem"));
        assert!(said(&chain, &other).contains("do not match"));
    }
}
