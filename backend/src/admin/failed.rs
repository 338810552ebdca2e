//! The error of an order, and its exit status.

use std::fmt;
use team::accounts::Denied;

/// A failed order: one sentence, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminFailed {
    status: u8,
    sentence: String,
    /// The named object does not exist.
    is_unknown: bool,
}

impl AdminFailed {
    /// The hub does not respond, or the response is not that of a hub.
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        AdminFailed { status: 1, sentence: sentence.into(), is_unknown: false }
    }

    /// The response has a format that this program cannot read.
    pub(super) fn version(error: &serde_json::Error) -> Self {
        AdminFailed::new(format!("the answer is of another version ({error}); use the watchglass of that server"))
    }

    /// Wrong usage.
    pub(super) fn usage(sentence: impl Into<String>) -> Self {
        AdminFailed { status: 2, sentence: sentence.into(), is_unknown: false }
    }

    /// The data folder cannot be used.
    pub(super) fn folder(sentence: impl Into<String>) -> Self {
        AdminFailed { status: 4, sentence: sentence.into(), is_unknown: false }
    }

    /// The error response of a hub.
    pub(super) fn answered(status: u16, sentence: impl Into<String>) -> Self {
        let is_unknown = status == 404;
        let status = match status {
            400 | 413 | 415 | 422 => 2,
            401 => 6,
            403 => 5,
            _ => 1,
        };
        AdminFailed { status, sentence: sentence.into(), is_unknown }
    }

    /// Adds the missing object if the order named it: its kind, its name, and the command that lists all.
    pub(super) fn naming(self, named: Option<(&str, &str, &str)>) -> Self {
        match named.filter(|_| self.is_unknown) {
            Some((what, name, list)) => {
                let sentence = format!("there is no {what} {name:?}; `watchglass {list}` lists them");
                AdminFailed { sentence, ..self }
            }
            None => self,
        }
    }

    /// 1: failure. 2: wrong usage. 4: the data folder cannot be used. 5: refused, for lack of a role. 6: not signed
    /// in.
    pub fn status(&self) -> u8 {
        self.status
    }
}

impl fmt::Display for AdminFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<Denied> for AdminFailed {
    fn from(denied: Denied) -> Self {
        AdminFailed::answered(denied.status(), denied.to_string())
    }
}
