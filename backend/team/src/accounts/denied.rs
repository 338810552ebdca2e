//! Reasons for which a request is refused.

use std::fmt;
use std::time::Duration;

/// A request that is not granted. Its text is one sentence with the action to take, and holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The request is invalid: 400.
    Invalid(String),
    /// Nobody is signed in, or the credentials are not valid: 401.
    SignIn(String),
    /// The principal has no permission: 403.
    Forbidden(String),
    /// The sign-in is too old for this: 403, and the password has to be entered again.
    Again,
    /// Not found, or not visible to the principal: 404.
    Unknown,
    /// It conflicts with existing data: 409.
    Conflict(String),
    /// Too many attempts: 429.
    Throttled {
        /// Time until the next attempt.
        retry_after: Duration,
    },
    /// Too many concurrent requests: 503.
    Busy {
        /// Time until the next attempt.
        retry_after: Duration,
    },
    /// The database cannot be used: 503.
    Unavailable,
    /// The disk with the database is full: 503.
    Full,
}

impl Denied {
    /// Its HTTP status.
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

    /// Time until the next attempt, if one helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Denied::Throttled { retry_after } | Denied::Busy { retry_after } => Some(*retry_after),
            Denied::Unavailable | Denied::Full => Some(Duration::from_secs(5)),
            _ => None,
        }
    }

    /// Whether the password has to be entered again.
    pub fn asks_again(&self) -> bool {
        *self == Denied::Again
    }

    /// Whether the caller has to sign in first.
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
            // Logged at the opening of the file, and by tasks that wait for space.
            tracing::debug!(%error, "the disk with the database is full");
            return Denied::Full;
        }
        tracing::error!(%error, "the database failed");
        Denied::Unavailable
    }
}
