//! Secrets that have to be used again, such as addresses of webhooks. They are sealed by ChaCha20-Poly1305 under a key
//! in a file of its own, so that a copy of the database alone reveals none. A sealed text is valid in its own row only.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
#[cfg(unix)]
use system::user::own_uid;

/// Name of the file of the key in a data folder.
pub const KEY_FILE: &str = "secret.key";

/// Bytes of the key.
const KEY: usize = 32;

/// The key that secrets are sealed under. Cheap to clone; it is never shown.
#[derive(Clone)]
pub struct SealingKey(Arc<LessSafeKey>);

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(***)")
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system always has random bytes once it has started");
    bytes
}

fn invalid(sentence: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, sentence)
}

impl SealingKey {
    fn from_bytes(bytes: &[u8; KEY]) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("the key of this cipher has 32 bytes");
        SealingKey(Arc::new(LessSafeKey::new(key)))
    }

    /// A key that ends with the program.
    pub fn fleeting() -> Self {
        SealingKey::from_bytes(&random())
    }

    /// Reads the key from a file; none without a file.
    ///
    /// # Errors
    /// The file cannot be read, has not 32 bytes, or others may read it.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut file = match system::file::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let about = file.metadata()?;
            if !is_private(about.mode(), about.uid(), own_uid()) {
                return Err(invalid("other users can read it; restrict it with chmod 600"));
            }
        }
        let mut bytes = Vec::with_capacity(KEY + 1);
        Read::by_ref(&mut file).take(KEY as u64 + 1).read_to_end(&mut bytes)?;
        let key = <[u8; KEY]>::try_from(bytes).map_err(|_| invalid("it is not a key of 32 bytes"))?;
        Ok(Some(SealingKey::from_bytes(&key)))
    }

    /// Copies a key file to a new file that only its owner may read; false: there is none.
    ///
    /// # Errors
    /// It cannot be read, or the copy already exists or cannot be written.
    pub fn copy(path: &Path, to: &Path) -> io::Result<bool> {
        if SealingKey::read(path)?.is_none() {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        system::file::open(path)?.take(KEY as u64).read_to_end(&mut bytes)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(to)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        Ok(true)
    }

    /// Creates a key in a new file, for its owner alone. If another process was first, its key is used.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn make(path: &Path) -> io::Result<Self> {
        let bytes: [u8; KEY] = random();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(mut file) => {
                file.write_all(&bytes)?;
                file.sync_all()?;
                Ok(SealingKey::from_bytes(&bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                SealingKey::read(path)?.ok_or_else(|| invalid("the file has been removed"))
            }
            Err(error) => Err(error),
        }
    }

    /// Seals a text for a row of a table.
    pub fn seal(&self, (table, id): (&str, &str), text: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = random();
        let mut sealed = text.to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad(table, id), &mut sealed)
            .expect("a text of this length can be sealed");
        [&nonce[..], &sealed].concat()
    }

    /// Opens a text sealed for this row of this table under this key; none if it was not.
    pub fn open(&self, (table, id): (&str, &str), sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let opened = self.0.open_in_place(nonce, aad(table, id), &mut text).ok()?;
        Some(opened.to_vec())
    }
}

/// Whether only its owner may read a file, or only root and a group of this process. Kubernetes mounts secrets in the
/// latter way for a program that is not root.
#[cfg(unix)]
fn is_private(mode: u32, owner: u32, us: u32) -> bool {
    let allowed = if owner == 0 && us != 0 { 0o040 } else { 0 };
    mode & 0o077 & !allowed == 0
}

fn aad(table: &str, id: &str) -> Aad<Vec<u8>> {
    Aad::from(format!("{table}/{id}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_key_is_read_by_its_owner_or_as_a_secret_that_root_hands_to_our_group() {
        let nobody = 65_532;
        for (mode, owner, us, is) in [
            (0o100_600, 7, 7, true),
            (0o100_400, 0, 0, true),
            (0o100_440, 7, 7, false),
            (0o100_440, 0, 0, false),
            (0o100_440, 0, nobody, true),
            (0o100_460, 0, nobody, false),
            (0o100_444, 0, nobody, false),
        ] {
            assert_eq!(is_private(mode, owner, us), is, "{mode:o} of {owner} for {us}");
        }
    }

    #[test]
    fn what_is_sealed_is_opened_in_its_own_row_under_its_own_key_alone() {
        let key = SealingKey::fleeting();
        let sealed = key.seal(("channels", "a"), b"https://hooks.example.org/s3cret");
        assert!(!sealed.windows(6).any(|part| part == b"s3cret"));
        assert_ne!(sealed, key.seal(("channels", "a"), b"https://hooks.example.org/s3cret"), "never the same twice");
        let opened = |key: &SealingKey, row, sealed: &[u8]| key.open(row, sealed);
        assert_eq!(opened(&key, ("channels", "a"), &sealed).as_deref(), Some(&b"https://hooks.example.org/s3cret"[..]));
        assert_eq!(opened(&key, ("channels", "b"), &sealed), None, "another row");
        assert_eq!(opened(&key, ("rules", "a"), &sealed), None, "another table");
        assert_eq!(opened(&SealingKey::fleeting(), ("channels", "a"), &sealed), None, "another key");
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert_eq!(opened(&key, ("channels", "a"), &other), None, "byte {at} was changed");
        }
        assert_eq!(opened(&key, ("channels", "a"), &sealed[..5]), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join(KEY_FILE);
        assert!(SealingKey::read(&path).expect("no file is no error").is_none());
        let key = SealingKey::make(&path).expect("made");
        let sealed = key.seal(("channels", "a"), b"text");
        let mode = path.metadata().expect("the file").permissions().mode();
        assert_eq!((mode & 0o777, path.metadata().expect("the file").len()), (0o600, 32));
        for again in [SealingKey::read(&path).expect("read").expect("there"), SealingKey::make(&path).expect("kept")] {
            assert!(again.open(("channels", "a"), &sealed).is_some());
        }
        let copy = folder.path().join("copy.key");
        assert!(SealingKey::copy(&path, &copy).expect("copied") && SealingKey::copy(&path, &copy).is_err());
        let again = SealingKey::read(&copy).expect("nobody else may read it").expect("there");
        assert!(again.open(("channels", "a"), &sealed).is_some());
        assert!(!SealingKey::copy(&folder.path().join("none"), &folder.path().join("other")).expect("none"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        let why = SealingKey::read(&path).expect_err("other users can read it").to_string();
        assert!(why.contains("chmod 600"), "{why}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
        std::fs::write(&path, "short").expect("written");
        assert!(SealingKey::read(&path).expect_err("no key").to_string().contains("32 bytes"));
    }
}
