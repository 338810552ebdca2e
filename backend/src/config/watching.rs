//! Arguments of `watchglass alerts`: rules, alerts, silences and channels.

use super::{When, when};
use clap::{Args, Subcommand};
use shared::unit::time;
use std::path::PathBuf;

/// Manage alerts.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AlertsTask {
    /// List firing and pending alerts (the default command)
    List {
        /// Exit with 0 if nothing fires, 10 at a warning, 11 at a critical alert
        #[arg(long)]
        exit_code: bool,
    },
    /// List past alerts, newest first
    History(AlertHistory),
    /// Send a test notification to a channel, or print a rule's notification
    Test {
        /// Channel, by name or ID
        #[arg(value_name = "CHANNEL", required_unless_present = "rule")]
        channel: Option<String>,
        /// Rule whose notification is printed with its last values
        #[arg(long, value_name = "RULE", conflicts_with = "channel")]
        rule: Option<String>,
    },
    /// Evaluate the rules of a file over the stored history
    Check {
        /// TOML file with [[rules]], as in the configuration
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// First instant, at most 12 h ago
        #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true, default_value = "-12h")]
        from: When,
    },
    /// Create the rules of a file, or update those with the same names
    Apply {
        /// TOML file with [[rules]], as in the configuration
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Translate a rule file of Prometheus to [[rules]]; exit 1 if incomplete
    Import {
        /// YAML file of Prometheus or its operator
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Silence matching alerts for a while; without arguments list silences
    Silence(SilenceTask),
    /// Acknowledge an alert; its notification is not repeated
    Ack {
        /// Alert ID
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Filters of the list of alerts.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertHistory {
    /// Alert ID [default: all alerts]
    #[arg(value_name = "ALERT", conflicts_with_all = ["from", "to", "source", "run", "rule", "limit"])]
    pub alert: Option<String>,
    /// First instant, such as -1d, 2:15pm, 2026-05-01T14:00 or Unix seconds
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Last instant, in the same forms
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// Only alerts of this machine
    #[arg(long, value_name = "MACHINE")]
    pub source: Option<String>,
    /// Only alerts of this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only alerts of this rule, by name or ID
    #[arg(long, value_name = "RULE")]
    pub rule: Option<String>,
    /// Maximum number of alerts [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
}

/// Scope and duration of a silence.
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
    /// Other label of the alerts
    #[arg(long = "match", value_name = "LABEL=PATTERN", value_parser = matching)]
    pub labels: Vec<(String, String)>,
    /// Duration, such as 2h, at most 30d
    #[arg(long = "for", value_name = "DUR", value_parser = length, required_unless_present_any = ["end", "list"])]
    pub length: Option<u32>,
    /// Reason
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Silence to end, by ID
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
