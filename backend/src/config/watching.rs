//! `watchglass alerts`: what is wanted of rules, alerts, silences and channels.

use super::{When, when};
use clap::{Args, Subcommand};
use shared::unit::time;
use std::path::PathBuf;

/// What is to be done with alerts.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AlertsTask {
    /// List what fires or is about to (what happens without a word)
    List {
        /// Exit with 0 where nothing fires, 10 at a warning, 11 at something critical
        #[arg(long)]
        exit_code: bool,
    },
    /// List what fired, newest first
    History(AlertHistory),
    /// Send a test to a channel, or show what a rule's notice says; that sends nothing
    Test {
        /// The channel, by name or id
        #[arg(value_name = "CHANNEL", required_unless_present = "rule")]
        channel: Option<String>,
        /// The rule whose text is shown, with its last values
        #[arg(long, value_name = "RULE", conflicts_with = "channel")]
        rule: Option<String>,
    },
    /// Say what the rules of a file would have done
    Check {
        /// TOML with [[rules]], as in the configuration
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// From when on, at most 12 h back
        #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true, default_value = "-12h")]
        from: When,
    },
    /// Make the rules of a file, or change those of the same names; others stay
    Apply {
        /// TOML with [[rules]], as in the configuration
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the rules of a Prometheus file as [[rules]], and why others are not translated (status 1 if any is)
    Import {
        /// YAML as Prometheus or its operator reads it
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Let nobody be told of what fits, for a while; without anything list what is silenced
    Silence(SilenceTask),
    /// Take an alert on: its notice is not repeated until it ends
    Ack {
        /// The alert, by id
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Which alerts are listed.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertHistory {
    /// What happened to this alert, by its id [default: all alerts]
    #[arg(value_name = "ALERT", conflicts_with_all = ["from", "to", "source", "run", "rule", "limit"])]
    pub alert: Option<String>,
    /// Not over before: Unix seconds, a date and time, or before now, such as -1d
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Begun by then, likewise
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// Of this machine
    #[arg(long, value_name = "MACHINE")]
    pub source: Option<String>,
    /// Of this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Of this rule, by name or id
    #[arg(long, value_name = "RULE")]
    pub rule: Option<String>,
    /// At most so many [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
}

/// What is silenced, and for how long.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct SilenceTask {
    /// Machines, such as node-*
    #[arg(long, value_name = "PATTERN")]
    pub source: Option<String>,
    /// Rules, by name
    #[arg(long, value_name = "PATTERN")]
    pub rule: Option<String>,
    /// Runs
    #[arg(long, value_name = "PATTERN")]
    pub run: Option<String>,
    /// Another label of alerts
    #[arg(long = "match", value_name = "LABEL=PATTERN", value_parser = matching)]
    pub labels: Vec<(String, String)>,
    /// For how long, such as 2h, at most 30d
    #[arg(long = "for", value_name = "DUR", value_parser = length, required_unless_present_any = ["end", "list"])]
    pub length: Option<u32>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// End the silence of this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["source", "rule", "run", "labels", "length", "comment"])]
    pub end: Option<String>,
    /// List silences
    #[arg(long, conflicts_with_all = ["source", "rule", "run", "labels", "length", "comment", "end"])]
    pub list: bool,
}

fn matching(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(label, pattern)| !label.is_empty() && !pattern.is_empty());
    pair.map(|(label, pattern)| (label.into(), pattern.into())).ok_or_else(|| "write it like project=llm".into())
}

/// Seconds, up to 30 days.
fn length(text: &str) -> Result<u32, String> {
    let wrong = || "write it like 30m, 2h or 7d, at most 30d".to_string();
    let ms = time::read(text).filter(|ms| ms % time::SECOND == 0).ok_or_else(wrong)?;
    let seconds = u32::try_from(ms / time::SECOND).map_err(|_| wrong())?;
    if (1..=30 * 86_400).contains(&seconds) { Ok(seconds) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_lasts_a_second_to_thirty_days() {
        for (text, seconds) in [("90s", 90), ("2h", 7_200), ("7d", 604_800), ("30d", 2_592_000)] {
            assert_eq!(length(text), Ok(seconds), "{text}");
        }
        for wrong in ["31d", "0s", "soon", "", "9999999999d"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
        assert_eq!(matching("project=llm"), Ok(("project".into(), "llm".into())));
        assert!(matching("project").is_err() && matching("=llm").is_err() && matching("a=").is_err());
    }
}
