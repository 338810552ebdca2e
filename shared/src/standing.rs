//! How a source stands: whether its values come, and if not, why not.

use serde::{Deserialize, Serialize};

/// How a source stands. That its link ended says nothing of the machine: nobody calls it crashed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Standing {
    /// Its ticks come.
    #[default]
    Live,
    /// No tick has come for three of its intervals, although it is linked.
    Late,
    /// Its ticks come, and older ones are being fetched.
    Filling {
        /// How much is missing yet, milliseconds of its history.
        missing: i64,
        /// Seconds of history that come in a second; 0 before that is known.
        rate: f64,
    },
    /// Its link ended without a word.
    Unreachable,
    /// It said that it ends, and why.
    Stopped(String),
    /// It may not connect, and why.
    Refused(String),
    /// It will not come back.
    Ended,
}

impl Standing {
    /// The words of all of them; the place of each is its [code](Self::code).
    pub const WORDS: [&'static str; 7] = ["live", "late", "filling", "unreachable", "stopped", "refused", "ended"];

    /// A number for each, which the overview shows.
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

    /// One word for it.
    pub fn word(&self) -> &'static str {
        Self::WORDS[usize::from(self.code())]
    }

    /// Why, in words, where that was said.
    pub fn why(&self) -> Option<&str> {
        match self {
            Standing::Stopped(why) | Standing::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Whether its ticks are expected: of all others none comes.
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
            assert_eq!(standing.why().is_some(), ["stopped", "refused"].contains(word));
        }
    }
}
