//! Errors of the database.

use std::fmt;
use std::path::PathBuf;

/// A statement that failed.
#[derive(Debug)]
pub struct Error(sqlx::Error);

impl Error {
    /// The disk has no room for the write.
    pub fn is_full(&self) -> bool {
        is_full(&self.0)
    }

    /// A unique value exists already.
    pub fn is_taken(&self) -> bool {
        matches!(&self.0, sqlx::Error::Database(error) if error.is_unique_violation())
    }
}

/// Whether a statement failed because a file could not grow: SQLITE_FULL and, of the file that connections share,
/// SQLITE_IOERR_SHMSIZE.
pub(crate) fn is_full(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("13" | "4874"))
}

impl From<Error> for sqlx::Error {
    fn from(error: Error) -> Self {
        error.0
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Error(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

/// A database that cannot be opened. No existing byte is changed.
#[derive(Debug)]
pub enum OpenError {
    /// A newer version has written it.
    Newer {
        /// The file, or the server's database.
        place: String,
        /// Its schema.
        schema: i64,
        /// The newest that this version knows.
        known: i64,
    },
    /// The file cannot be used.
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The attempted action.
        what: &'static str,
        /// The error of the system.
        error: String,
    },
    /// The disk has no room for a write that must come first: a new file, or a migration.
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The server's database has no hub yet, but there is a hub's file.
    Behind {
        /// The server's database.
        place: String,
        /// The file.
        file: PathBuf,
    },
    /// The server's database cannot be used.
    Server {
        /// The server's database.
        place: String,
        /// The attempted action.
        what: &'static str,
        /// The error of the server or of the system.
        error: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Newer { place, schema, known } => write!(
                f,
                "a newer version wrote {place} (schema {schema}, this version knows {known}): use that version, or \
                restore an older backup (for a file it lies beside it)",
            ),
            OpenError::Io { path, what, error } => write!(f, "{}: cannot {what}: {error}", path.display()),
            OpenError::Full { path } => {
                write!(f, "the disk with {} is full: free space there, then start again", path.display())
            }
            OpenError::Behind { place, file } => write!(
                f,
                "{place} is empty, and {file} has the accounts and keys of this hub. Import them with watchglass \
                restore {file}, with this configuration; or move that file away to start empty",
                file = file.display()
            ),
            OpenError::Server { place, what, error } => {
                write!(
                    f,
                    "cannot {what} {place}: {error}; check [database] in the configuration and the log of the server"
                )
            }
        }
    }
}

impl std::error::Error for OpenError {}
