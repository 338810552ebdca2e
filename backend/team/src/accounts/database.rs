//! The database of a hub's records: a file in its data folder, or a PostgreSQL server.

use super::OpenError;
use records::{FILE, Records, Server};
use shared::secret::Secret;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum length of a database password, bytes.
const MAX_PASSWORD: u64 = 4 << 10;

/// Temporary file of a restore to PostgreSQL, in the data folder.
const BETWEEN: &str = "hub.db.restore";

/// The database of a hub.
#[derive(Clone, Debug)]
pub struct Database {
    folder: PathBuf,
    server: Option<Server>,
}

impl Database {
    /// The file in this data folder.
    pub fn in_folder(folder: &Path) -> Self {
        Database { folder: folder.into(), server: None }
    }

    /// The PostgreSQL at this address, if given, with the password of this file; else the file in the data folder.
    ///
    /// # Errors
    /// A sentence: the address is invalid, or the password file cannot be read.
    pub fn from_settings(folder: &Path, url: Option<&str>, password_file: Option<&Path>) -> Result<Self, String> {
        let Some(url) = url else { return Ok(Database::in_folder(folder)) };
        let password = password_file.map(password).transpose()?;
        let server = Server::parse(url, password.as_ref()).map_err(|why| format!("database.url: {why}"))?;
        Ok(Database { folder: folder.into(), server: Some(server) })
    }

    /// Whether a hub exists, or may exist, in it, without a request to a server.
    pub fn is_there(&self) -> bool {
        self.server.is_some() || self.folder.join(FILE).exists()
    }

    /// The PostgreSQL server, if it is one.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Opens it. A new PostgreSQL beside an existing file is refused: the records have to be moved first.
    pub(super) async fn open(&self) -> Result<Records, OpenError> {
        let Some(server) = &self.server else {
            let records = Records::open(&self.folder).await?;
            if records.is_read_only() {
                tracing::error!(
                    "the disk with {} is full: accounts and keys are read, and none can be changed until there is room",
                    self.folder.join(FILE).display()
                );
            }
            return Ok(records);
        };
        let records = Records::connect(server).await?;
        let file = self.folder.join(FILE);
        if file.exists() && records.is_new().await.map_err(|error| server.unread(&error))? {
            records.close().await;
            return Err(OpenError::Behind { place: server.to_string(), file });
        }
        Ok(records)
    }

    /// Converts an error after the opening.
    pub(super) fn failed(&self, error: &records::Error) -> OpenError {
        match &self.server {
            Some(server) => server.unread(error),
            None => OpenError::Io { path: self.folder.join(FILE), what: "read", error: error.to_string() },
        }
    }

    /// Restores a hub's file, or a copy of it, into an empty database. An older one is migrated.
    ///
    /// # Errors
    /// [`OpenError`]: the file is no database of a hub, a newer version wrote it, or the database already has a hub.
    pub async fn restore(&self, file: &Path) -> Result<(), OpenError> {
        match &self.server {
            Some(server) => records::transfer(file, &self.folder.join(BETWEEN), server).await,
            None => records::restore(file, &self.folder).await,
        }
    }
}

/// The first line of a file.
fn password(path: &Path) -> Result<Secret, String> {
    let failed = |why: String| format!("database.password_file: {} cannot be read: {why}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    file.take(MAX_PASSWORD).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(failed("the file is empty".into())),
        line if line.contains('\n') => Err(failed("the file has more than one line".into())),
        line => Ok(Secret::new(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line_of_a_file_and_is_never_shown() {
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("password");
        let of = |text: &str| {
            std::fs::write(&file, text).expect("written");
            Database::from_settings(folder.path(), Some("postgres://me@db/hub"), Some(&file))
        };
        let shown = format!("{:?}", of("s3cret\n").expect("a server"));
        assert!(shown.contains("database hub") && !shown.contains("s3cret"), "{shown}");
        for (text, said) in [("", "empty"), ("\n", "empty"), ("s3cret\nmore", "one line")] {
            let why = of(text).expect_err(text);
            assert!(why.contains(said) && !why.contains("s3cret"), "{why}");
        }
        let absent =
            Database::from_settings(folder.path(), Some("postgres://me@db/hub"), Some(&folder.path().join("none")));
        assert!(absent.expect_err("absent").starts_with("database.password_file: "));
        assert!(!Database::in_folder(folder.path()).is_there(), "nobody was here yet");
    }
}
