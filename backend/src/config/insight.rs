//! `[insight]`: detection of problems in the samples, and the delays of reports.

use settings::length::within;
use settings::{nearest, table, value};
use std::time::Duration;

/// Minimum and maximum of the times.
const MIN_TIME: Duration = Duration::from_secs(30);
const MAX_TIME: Duration = Duration::from_secs(86_400);

table! {
    /// `[insight]`: times, and what is off. There are no thresholds to set.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct InsightSettings {
        /// Enable findings
        enabled: bool = true, text(value::switch);
        /// Time after which GPUs that are reserved but idle are reported, 30s to 1d
        idle_after: Duration = Duration::from_secs(15 * 60), text(length);
        /// Time after which a job that is stuck in one kernel is reported, 30s to 1d
        hang_after: Duration = Duration::from_secs(60), text(length);
        /// Kinds or rules of findings to suppress
        silence: Vec<String> = Vec::new(), text(rule), like "[\"idle\", \"hang.idle\"]";
    }
}

impl InsightSettings {
    /// The settings in the form of the crate `insight`.
    pub fn settings(&self) -> insight::Settings {
        insight::Settings {
            idle_after: self.idle_after.as_secs() as i64,
            hang_after: self.hang_after.as_secs() as i64,
            silence: self.silence.clone(),
        }
    }
}

fn length(text: &str) -> Result<Duration, String> {
    within(text, MIN_TIME, MAX_TIME)
}

/// The name of a kind or a rule of findings.
fn rule(text: &str) -> Result<String, String> {
    let rules = insight::Insight::new(insight::Settings::default()).rules();
    let known: Vec<&str> = rules.iter().map(|one| one.rule.as_str()).collect();
    match known.iter().any(|rule| *rule == text || rule.split('.').next() == Some(text)) {
        true => Ok(text.into()),
        false => Err(format!("there is no rule {text:?}{}", nearest(text, &known))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| InsightSettings::TABLE.read_text(text);
        assert_eq!(read("").expect("nothing"), InsightSettings::default());
        let own = read("enabled = false\nidle_after = \"30m\"\nsilence = [\"idle\"]").expect("a table");
        assert_eq!(
            InsightSettings::TABLE.read_text(&InsightSettings::TABLE.print(&own).to_string()).expect("a table"),
            own
        );
        for (text, part) in [
            ("idle_after = \"1s\"", "30s to 1d"),
            ("silence = [\"far.from.all\"]", "silence: there is no rule \"far.from.all\"; known are"),
            ("silence = [\"hang.idel\"]", "did you mean hang.idle?"),
            ("threshold = 3", "unknown key `threshold`"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
