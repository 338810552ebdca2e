//! `[sessions]`: how long people stay signed in on a hub.

use super::value;
use serde::Deserialize;
use settings::FileTable;
use std::time::Duration;
use toml::Table;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// What either may be.
const LEAST: Duration = Duration::from_secs(300);
const MOST: Duration = Duration::from_secs(400 * 86_400);

/// `[sessions]`: when a sign-in is over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawSessions")]
pub struct SessionSettings {
    /// After so long without a request, 5 min to 400 d.
    pub idle: Duration,
    /// After so long in all, as long as `idle` at least.
    pub longest: Duration,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings { idle: 12 * HOUR, longest: 7 * DAY }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSessions {
    idle: Option<String>,
    longest: Option<String>,
}

impl TryFrom<RawSessions> for SessionSettings {
    type Error = String;

    fn try_from(raw: RawSessions) -> Result<Self, String> {
        let read = |key: &str, text: Option<String>, unless_said: Duration| match text.as_deref().map(value::retention)
        {
            None => Ok(unless_said),
            Some(Ok(length)) if (LEAST..=MOST).contains(&length) => Ok(length),
            Some(Ok(_)) => Err(format!("sessions.{key}: write 5m to 400d")),
            Some(Err(why)) => Err(format!("sessions.{key}: {why}")),
        };
        let usual = SessionSettings::default();
        let (idle, longest) = (read("idle", raw.idle, usual.idle)?, read("longest", raw.longest, usual.longest)?);
        match idle > longest {
            true => Err("sessions.longest: it is shorter than sessions.idle; write at least the value of idle".into()),
            false => Ok(SessionSettings { idle, longest }),
        }
    }
}

impl FileTable for SessionSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("idle", "After how long without a request a sign-in is over, 5m to 400d; 12h unless it is written"),
        ("longest", "After how long in all, at least `idle`; 7d unless it is written"),
    ];

    fn print(&self) -> Table {
        let keys = [("idle", self.idle), ("longest", self.longest)];
        keys.into_iter().map(|(key, length)| (key.to_string(), format!("{}s", length.as_secs()).into())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<SessionSettings>(text);
        assert_eq!(read("").expect("nothing"), SessionSettings::default());
        let own = read("idle = \"1h\"\nlongest = \"1d\"").expect("a table");
        assert_eq!(own, SessionSettings { idle: HOUR, longest: DAY });
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        for (wrong, said) in [
            ("idle = \"1m\"", "sessions.idle: write 5m to 400d"),
            ("longest = \"1h\"", "the value of idle"),
            ("idle = \"soon\"", "sessions.idle"),
            ("ever = true", "ever"),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
