//! What is answered in place of what was asked for.

use std::fmt;
use std::time::Duration;

/// A request that is not granted. Its text is one sentence that says what to do, and holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The question is wrong: 400.
    Invalid(String),
    /// Nobody is signed in, or who they say is not shown: 401.
    SignIn(String),
    /// Who asks may not: 403.
    Forbidden(String),
    /// The sign-in is too old for this: 403, and the password is to be given again.
    Again,
    /// There is no such thing, or not for who asks: 404.
    Unknown,
    /// It cannot be so beside what there is: 409.
    Conflict(String),
    /// Tried too often: 429.
    Throttled {
        /// When to try again.
        retry_after: Duration,
    },
    /// Too much is asked at once: 503.
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// The database cannot be used: 503.
    Unavailable,
    /// The disk with the database is full: 503.
    Full,
}

impl Denied {
    /// The status for it in HTTP.
    pub fn status(&self) -> u16 {
        match self {
            Denied::Invalid(_) => 400,
            Denied::SignIn(_) => 401,
            Denied::Forbidden(_) | Denied::Again => 403,
            Denied::Unknown => 404,
            Denied::Conflict(_) => 409,
            Denied::Throttled { .. } => 429,
            Denied::Busy { .. } | Denied::Unavailable | Denied::Full => 503,
        }
    }

    /// When to try again, where that helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Denied::Throttled { retry_after } | Denied::Busy { retry_after } => Some(*retry_after),
            Denied::Unavailable | Denied::Full => Some(Duration::from_secs(5)),
            _ => None,
        }
    }

    /// Whether the password is to be given again.
    pub fn asks_again(&self) -> bool {
        *self == Denied::Again
    }

    /// Whether somebody has to sign in first.
    pub fn asks_sign_in(&self) -> bool {
        matches!(self, Denied::SignIn(_))
    }

    pub(super) fn invalid(sentence: impl Into<String>) -> Self {
        Denied::Invalid(sentence.into())
    }

    pub(super) fn conflict(sentence: impl Into<String>) -> Self {
        Denied::Conflict(sentence.into())
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Invalid(text) | Denied::SignIn(text) | Denied::Forbidden(text) | Denied::Conflict(text) => {
                f.write_str(text)
            }
            Denied::Again => f.write_str("this needs a sign-in within the last 15 minutes; enter your password again"),
            Denied::Unknown => f.write_str("there is no such thing here"),
            Denied::Throttled { retry_after } => {
                write!(f, "too many attempts; retry in {} s", retry_after.as_secs().max(1))
            }
            Denied::Busy { retry_after } => {
                write!(f, "too many sign-ins at once; retry in {} s", retry_after.as_secs().max(1))
            }
            Denied::Unavailable => f.write_str("the database of the hub is unavailable; see its log"),
            Denied::Full => f.write_str(
                "the disk of the hub's database is full, so nothing was changed; free space on the hub, then retry",
            ),
        }
    }
}

impl std::error::Error for Denied {}

impl From<records::Error> for Denied {
    fn from(error: records::Error) -> Self {
        if error.is_full() {
            // It is said where the file is opened, and by whoever waits for room.
            tracing::debug!(%error, "the disk with the database is full");
            return Denied::Full;
        }
        tracing::error!(%error, "the database failed");
        Denied::Unavailable
    }
}
