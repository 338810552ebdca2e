//! Errors of opening a collector and of reading it. They are handled in one place: the sampler turns them into checks.

/// A collector could not be opened. Opening is retried later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// Kind of failure.
    pub kind: OpenErrorKind,
    /// Paths, libraries and addresses that were tried.
    pub tried: Vec<String>,
    /// Reason, one sentence without a full stop.
    pub reason: String,
    /// Remedy; a command or a setting if there is one.
    pub remedy: String,
}

/// Kinds of [`OpenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// The source does not exist on this machine. Normal; listed by doctor with its reason, never logged.
    Absent,
    /// The source exists, but this user may not read it; the remedy is a command.
    Denied,
    /// The source exists and does not work.
    Failed,
}

impl OpenError {
    /// The source does not exist on this machine.
    pub fn absent(tried: impl Into<Vec<String>>, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind: OpenErrorKind::Absent, tried: tried.into(), reason: reason.into(), remedy: remedy.into() }
    }

    /// Converts an I/O error on a path: not found is absent, permission denied is denied, anything else failed.
    pub fn from_io(path: &std::path::Path, error: &std::io::Error) -> Self {
        let shown = path.display();
        let (kind, remedy) = match error.kind() {
            std::io::ErrorKind::NotFound => (OpenErrorKind::Absent, String::new()),
            std::io::ErrorKind::PermissionDenied => (OpenErrorKind::Denied, format!("sudo chmod a+r {shown}")),
            _ => (OpenErrorKind::Failed, String::new()),
        };
        Self { kind, tried: vec![shown.to_string()], reason: format!("{shown}: {error}"), remedy }
    }
}

/// A reading failed, completely or in part. Values put before are still used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectError {
    /// Reason, one sentence without a full stop.
    pub reason: String,
    /// True if some values were read.
    pub partial: bool,
}

impl CollectError {
    /// No value could be read.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), partial: false }
    }

    /// Some values could not be read.
    pub fn partial(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), partial: true }
    }
}
