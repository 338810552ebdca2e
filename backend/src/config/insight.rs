//! `[insight]`: what is looked for in the samples, and after how long it is told.

use super::value;
use serde::Deserialize;
use settings::FileTable;
use std::time::Duration;
use toml::{Table, Value};

/// What the times may be.
const LEAST: Duration = Duration::from_secs(30);
const MOST: Duration = Duration::from_secs(86_400);

/// `[insight]`: times, and what is off. There are no thresholds to set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawInsight")]
pub struct InsightSettings {
    /// Whether anything is looked for.
    pub enabled: bool,
    /// How long GPUs are held without work before it is told, 30 s to 1 d.
    pub idle_after: Duration,
    /// How long the GPUs of a job wait in one kernel before it is told, 30 s to 1 d.
    pub hang_after: Duration,
    /// Kinds or rules that are not told.
    pub silence: Vec<String>,
}

impl Default for InsightSettings {
    fn default() -> Self {
        InsightSettings {
            enabled: true,
            idle_after: Duration::from_secs(15 * 60),
            hang_after: Duration::from_secs(60),
            silence: Vec::new(),
        }
    }
}

impl InsightSettings {
    /// The same for the crate that looks.
    pub fn settings(&self) -> insight::Settings {
        insight::Settings {
            idle_after: self.idle_after.as_secs() as i64,
            hang_after: self.hang_after.as_secs() as i64,
            silence: self.silence.clone(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInsight {
    enabled: Option<bool>,
    idle_after: Option<String>,
    hang_after: Option<String>,
    silence: Option<Vec<String>>,
}

impl TryFrom<RawInsight> for InsightSettings {
    type Error = String;

    fn try_from(raw: RawInsight) -> Result<Self, String> {
        let usual = InsightSettings::default();
        let read = |key: &str, text: Option<String>, usual: Duration| match text.as_deref().map(value::duration) {
            None => Ok(usual),
            Some(Ok(length)) if (LEAST..=MOST).contains(&length) => Ok(length),
            Some(Ok(_)) => Err(format!("insight.{key}: write 30s to 1d")),
            Some(Err(why)) => Err(format!("insight.{key}: {why}")),
        };
        let silence = raw.silence.unwrap_or_default();
        let known = insight::Insight::new(insight::Settings::default()).rules();
        let is_known =
            |name: &str| known.iter().any(|one| one.rule == name || one.rule.split('.').next() == Some(name));
        if let Some(unknown) = silence.iter().find(|name| !is_known(name)) {
            let names: Vec<&str> = known.iter().map(|one| one.rule.as_str()).collect();
            return Err(format!("insight.silence: unknown rule {unknown:?}; known rules are {}", names.join(", ")));
        }
        Ok(InsightSettings {
            enabled: raw.enabled.unwrap_or(usual.enabled),
            idle_after: read("idle_after", raw.idle_after, usual.idle_after)?,
            hang_after: read("hang_after", raw.hang_after, usual.hang_after)?,
            silence,
        })
    }
}

impl FileTable for InsightSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("enabled", "Whether anything is looked for; true unless it is written"),
        ("idle_after", "After how long GPUs that are held without work are told, 30s to 1d; 15m unless it is written"),
        ("hang_after", "After how long a job that waits in one kernel is told, 30s to 1d; 1m unless it is written"),
        ("silence", "Kinds or rules that are not told, as [\"idle\", \"hang.idle\"]"),
    ];

    fn print(&self) -> Table {
        let usual = InsightSettings::default();
        let mut table = Table::new();
        let mut put = |differs: bool, key: &str, value: Value| {
            if differs {
                table.insert(key.into(), value);
            }
        };
        put(!self.enabled, "enabled", false.into());
        let show = |length| Value::from(value::show_duration(length));
        put(self.idle_after != usual.idle_after, "idle_after", show(self.idle_after));
        put(self.hang_after != usual.hang_after, "hang_after", show(self.hang_after));
        put(!self.silence.is_empty(), "silence", self.silence.clone().into());
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<InsightSettings>(text);
        assert_eq!(read("").expect("nothing"), InsightSettings::default());
        let own = read("enabled = false\nidle_after = \"30m\"\nsilence = [\"idle\"]").expect("a table");
        assert_eq!(toml::from_str::<InsightSettings>(&own.print().to_string()).expect("a table"), own);
        for (text, part) in [
            ("idle_after = \"1s\"", "30s to 1d"),
            ("silence = [\"idel\"]", "known are"),
            ("threshold = 3", "unknown field"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
