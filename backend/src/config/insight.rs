//! `[insight]`: detection of problems in the samples, and the delays of reports.

use settings::length::within;
use settings::{nearest, table, value};
use std::path::PathBuf;
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
        /// Take the stacks of ranks with py-spy when a job hangs, in each `watchglass run --logs` of this user; they become
        /// lines of its output
        stacks: bool = false, text(value::switch);
        /// Path of py-spy, which only root or this user may be able to write
        /// [default: /usr/local/bin/py-spy or /usr/bin/py-spy]
        py_spy: Option<PathBuf> = None, text(value::absolute), like "\"/opt/py-spy/bin/py-spy\"";
    }
}

/// Paths of py-spy that are tried without a configured one.
const PY_SPY: [&str; 2] = ["/usr/local/bin/py-spy", "/usr/bin/py-spy"];

impl InsightSettings {
    /// Path of py-spy: the configured one, else the first known one that exists, else the first known one.
    pub fn py_spy(&self) -> PathBuf {
        let known = PY_SPY.iter().map(PathBuf::from);
        let there = known.clone().find(|path| path.exists()).or_else(|| known.clone().next());
        self.py_spy.clone().or(there).unwrap_or_default()
    }

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
        let own = read("stacks = true\npy_spy = \"/opt/py-spy\"").expect("a table");
        assert_eq!((own.stacks, own.py_spy()), (true, PathBuf::from("/opt/py-spy")));
        assert!(PY_SPY.iter().any(|path| InsightSettings::default().py_spy() == PathBuf::from(path)));
        for (text, part) in [
            ("py_spy = \"py-spy\"", "from / on"),
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
