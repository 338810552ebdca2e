//! Why a collector does not open, and why a reading fails. Handled once: the sampler turns them into checks.

/// A collector could not be opened. It is tried again later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// What kind of failure.
    pub kind: OpenErrorKind,
    /// Paths, libraries and addresses that were tried.
    pub tried: Vec<String>,
    /// Why, one sentence without a full stop.
    pub reason: String,
    /// What to do about it; a command or a setting where there is one.
    pub remedy: String,
}

/// Kinds of [`OpenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// The thing is not on this machine. Normal; listed by doctor with its reason, never logged.
    Absent,
    /// It is here, but this user may not read it; the remedy is a command.
    Denied,
    /// It is here and does not work.
    Failed,
}

impl OpenError {
    /// Not on this machine.
    pub fn absent(tried: impl Into<Vec<String>>, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind: OpenErrorKind::Absent, tried: tried.into(), reason: reason.into(), remedy: remedy.into() }
    }

    /// From an I/O error on a path: missing is absent, refused is denied, anything else failed.
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

/// A reading failed, whole or in part. What was put before is used all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectError {
    /// Why, one sentence without a full stop.
    pub reason: String,
    /// True when some values were read all the same.
    pub partial: bool,
}

impl CollectError {
    /// Nothing could be read.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), partial: false }
    }

    /// Some values could not be read.
    pub fn partial(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), partial: true }
    }
}
