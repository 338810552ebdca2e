//! The connection state of a source: whether its values arrive, and if not, the reason.

use serde::{Deserialize, Serialize};

/// Connection state of a source. The end of its link does not mean that the machine crashed, so no state claims that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Standing {
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

impl Standing {
    /// The words of all states; the position of each is its [code](Self::code).
    pub const WORDS: [&'static str; 7] = ["live", "late", "filling", "unreachable", "stopped", "refused", "ended"];

    /// Its number, which the overview shows.
    pub fn code(&self) -> u8 {
        match self {
            Standing::Live => 0,
            Standing::Late => 1,
            Standing::Filling { .. } => 2,
            Standing::Unreachable => 3,
            Standing::Stopped(_) => 4,
            Standing::Refused(_) => 5,
            Standing::Ended => 6,
        }
    }

    /// Its word.
    pub fn word(&self) -> &'static str {
        Self::WORDS[usize::from(self.code())]
    }

    /// The reason in words, if one was given.
    pub fn why(&self) -> Option<&str> {
        match self {
            Standing::Stopped(why) | Standing::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Whether its stop was announced, so that its silence is no loss.
    pub fn has_signed_off(&self) -> bool {
        matches!(self, Standing::Stopped(_) | Standing::Ended)
    }

    /// Whether its ticks are expected; in all other states none arrives.
    pub fn is_linked(&self) -> bool {
        matches!(self, Standing::Live | Standing::Late | Standing::Filling { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_word_of_its_own() {
        let all = [
            (Standing::Live, "live"),
            (Standing::Late, "late"),
            (Standing::Filling { missing: 60_000, rate: 0.0 }, "filling"),
            (Standing::Unreachable, "unreachable"),
            (Standing::Stopped("it was told to".into()), "stopped"),
            (Standing::Refused("its key was ended".into()), "refused"),
            (Standing::Ended, "ended"),
        ];
        for (at, (standing, word)) in all.iter().enumerate() {
            assert_eq!((usize::from(standing.code()), standing.word()), (at, *word));
            assert_eq!(standing.is_linked(), at < 3);
            assert_eq!(standing.has_signed_off(), ["stopped", "ended"].contains(word));
            assert_eq!(standing.why().is_some(), ["stopped", "refused"].contains(word));
        }
    }
}
