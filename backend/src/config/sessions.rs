//! `[sessions]`: session lifetimes on a hub.

use settings::length::within;
use settings::{Fault, table};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// Minimum and maximum of both.
const MIN_LIFETIME: Duration = Duration::from_secs(300);
const MAX_LIFETIME: Duration = Duration::from_secs(400 * 86_400);

table! {
    /// `[sessions]`: when a sign-in is over.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SessionSettings, checked by SessionSettings::check {
        /// Idle timeout of a session, 5m to 400d
        idle: Duration = 12 * HOUR, text(length);
        /// Maximum lifetime of a session, at least `idle`
        longest: Duration = 7 * DAY, text(length);
    }
}

impl SessionSettings {
    fn check(&self) -> Result<(), Fault> {
        match self.idle > self.longest {
            true => Err(Fault::new(
                "longest",
                "a session that is used lasts as long as an unused one at least; write no less than idle",
            )),
            false => Ok(()),
        }
    }
}

fn length(text: &str) -> Result<Duration, String> {
    within(text, MIN_LIFETIME, MAX_LIFETIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| SessionSettings::TABLE.read_text(text);
        assert_eq!(read("").expect("nothing"), SessionSettings::default());
        let own = read("idle = \"1h\"\nlongest = \"1d\"").expect("a table");
        assert_eq!(own, SessionSettings { idle: HOUR, longest: DAY });
        assert_eq!(read(&SessionSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        for (wrong, said) in [
            ("idle = \"1m\"", "idle: 1m is out of range; write 5m to 400d"),
            ("longest = \"1h\"", "longest: a session that is used"),
            ("idle = \"soon\"", "idle: "),
            ("ever = true", "unknown key `ever`"),
            ("longst = \"1d\"", "did you mean longest?"),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
