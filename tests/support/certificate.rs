//! Certificates made for a test: a certificate authority, and certificates that it signs for a hub.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::path::{Path, PathBuf};

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// Makes a new authority.
    pub fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Writes its certificate into a file of a folder, and returns the path.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("ca.pem");
        std::fs::write(&path, &self.pem).expect("written");
        path
    }

    /// Signs a certificate with a new key for this name, and writes both into files of a folder. Returns the paths of
    /// the chain and the key.
    pub fn sign(&self, name: &str, folder: &Path) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_string()]).expect("a name");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let files = (folder.join("cert.pem"), folder.join("key.pem"));
        // The key comes first: a reader between the two writes finds a pair that does not match, and reads again.
        std::fs::write(&files.1, key.serialize_pem()).expect("written");
        std::fs::write(&files.0, signed.pem()).expect("written");
        files
    }
}
