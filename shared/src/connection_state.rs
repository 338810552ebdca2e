//! The connection state of a source: whether its values arrive, and if not, the reason.

use serde::{Deserialize, Serialize};

/// Connection state of a source. The end of its link does not mean that the machine crashed, so no state claims that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum ConnectionState {
    /// Its ticks arrive.
    #[default]
    Live,
    /// No tick has arrived for three of its intervals, although it is linked.
    Late,
    /// Its ticks arrive, and older ones are being fetched.
    Filling {
        /// Missing history, milliseconds.
        missing: i64,
        /// Seconds of history that arrive per second; 0 before that is known.
        rate: f64,
    },
    /// Its link ended without a message.
    Unreachable,
    /// It announced its stop, with this reason.
    Stopped(String),
    /// It may not connect, for this reason.
    Refused(String),
    /// It is removed for good.
    Ended,
}

impl ConnectionState {
    /// The words of all states; the position of each is its [code](Self::code).
    pub const WORDS: [&'static str; 7] = ["live", "late", "filling", "unreachable", "stopped", "refused", "ended"];

    /// Its number, which the overview shows.
    pub fn code(&self) -> u8 {
        match self {
            ConnectionState::Live => 0,
            ConnectionState::Late => 1,
            ConnectionState::Filling { .. } => 2,
            ConnectionState::Unreachable => 3,
            ConnectionState::Stopped(_) => 4,
            ConnectionState::Refused(_) => 5,
            ConnectionState::Ended => 6,
        }
    }

    /// Its word.
    pub fn as_str(&self) -> &'static str {
        Self::WORDS[usize::from(self.code())]
    }

    /// The reason in words, if one was given.
    pub fn why(&self) -> Option<&str> {
        match self {
            ConnectionState::Stopped(why) | ConnectionState::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Whether its stop was announced, so that its silence is no loss.
    pub fn has_signed_off(&self) -> bool {
        matches!(self, ConnectionState::Stopped(_) | ConnectionState::Ended)
    }

    /// Whether its ticks are expected; in all other states none arrives.
    pub fn is_linked(&self) -> bool {
        matches!(self, ConnectionState::Live | ConnectionState::Late | ConnectionState::Filling { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_word_of_its_own() {
        let all = [
            (ConnectionState::Live, "live"),
            (ConnectionState::Late, "late"),
            (ConnectionState::Filling { missing: 60_000, rate: 0.0 }, "filling"),
            (ConnectionState::Unreachable, "unreachable"),
            (ConnectionState::Stopped("it was told to".into()), "stopped"),
            (ConnectionState::Refused("its key was ended".into()), "refused"),
            (ConnectionState::Ended, "ended"),
        ];
        for (at, (connection_state, word)) in all.iter().enumerate() {
            assert_eq!((usize::from(connection_state.code()), connection_state.as_str()), (at, *word));
            assert_eq!(connection_state.is_linked(), at < 3);
            assert_eq!(connection_state.has_signed_off(), ["stopped", "ended"].contains(word));
            assert_eq!(connection_state.why().is_some(), ["stopped", "refused"].contains(word));
        }
    }
}
