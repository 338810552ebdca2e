//! Alerts: rules, channels, notices and silences.
//!
//! A [`Rule`] watches; each of its subjects that fires is one [`Alert`]; alerts of one group make one [`Notice`] to
//! each [`Channel`]. Times are whole seconds since the Unix epoch unless stated otherwise.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum bytes of a title, of a rule's name and of a channel's name.
pub const MAX_TITLE_BYTES: usize = 150;

/// Maximum bytes of a note or a text.
pub const MAX_TEXT_BYTES: usize = 2_000;

/// Alerts that one notice names, worst first; further ones are counted.
pub const MAX_NAMED: usize = 10;

/// Severity of an alert.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertSeverity {
    /// For information.
    Info,
    /// It needs attention.
    #[default]
    Warning,
    /// It needs attention at once; it is sent in quiet hours, too.
    Critical,
}

impl AlertSeverity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            AlertSeverity::Info => "info",
            AlertSeverity::Warning => "warning",
            AlertSeverity::Critical => "critical",
        }
    }
}

impl From<crate::finding::Severity> for AlertSeverity {
    fn from(severity: crate::finding::Severity) -> Self {
        match severity {
            crate::finding::Severity::Note => AlertSeverity::Info,
            crate::finding::Severity::Warning => AlertSeverity::Warning,
            crate::finding::Severity::Critical => AlertSeverity::Critical,
        }
    }
}

fn yes() -> bool {
    true
}

/// Source of a rule.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It comes with Watchglass; it can be disabled and silenced.
    BuiltIn,
    /// The configuration file; it can be silenced, and changed there.
    File,
    /// A person or program, through the page, API or command line.
    #[default]
    Made,
}

/// An alert rule: its condition, name and channels.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// 26 letters; for a built-in rule its short name, such as `run-crashed`. Set by the server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Its name, unique in its team; 1 to [`MAX_TITLE_BYTES`] bytes.
    pub name: String,
    #[serde(default)]
    #[allow(missing_docs, reason = "see AlertSeverity")]
    pub severity: AlertSeverity,
    /// Its condition, in the syntax of [`crate::rule`].
    pub when: String,
    /// Facts of the machine and the run that must match, as `source = "node-*"`, `project = "llm,vision"`,
    /// `job_type = "!eval"`; empty: everything. Keys: `source`, `run`, `project`, `job_type`, `user`, `group`, `failure`
    /// (a class of [`crate::failure`]), `gpu`, and labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub on: BTreeMap<String, String>,
    /// Names of channels; None: the team's default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// Title of the notice, with placeholders such as `{source}`; None: the alert's own sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Recommended action, with placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// An `https` address with help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Interval between notices of a group that still fires, such as `4h`; None: 4 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    /// Whether a notice of its end is sent, too.
    #[serde(default = "yes")]
    pub resolved: bool,
    /// Whether it waits during the quiet hours of its channel; critical alerts never wait.
    #[serde(default = "yes")]
    pub quiet: bool,
    /// Whether it is evaluated.
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    #[allow(missing_docs, reason = "see Origin")]
    pub origin: Origin,
    /// Its author, as displayed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Increases with each change; a change names the version that it replaces.
    #[serde(default)]
    pub version: i64,
}

/// State of an alert.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// Its condition holds, but not for long enough.
    Pending,
    /// It fires; also while no data about it arrives.
    Firing,
    /// It has ended.
    Resolved,
}

/// One subject for which a rule fires or fired.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// Base32 of a SHA-256 of rule, subject and start: the same on each hub and after each restart.
    pub id: String,
    /// Id of its rule.
    pub rule: String,
    /// Name of its rule, as it was.
    pub name: String,
    /// The subject that fires, unique within the rule: a tag with its source, a run, a finding.
    pub subject: String,
    #[allow(missing_docs, reason = "see AlertSeverity")]
    pub severity: AlertSeverity,
    #[allow(missing_docs, reason = "see AlertState")]
    pub state: AlertState,
    /// When its condition began to hold, milliseconds since the Unix epoch; in JSON seconds.
    #[serde(with = "crate::json::instant")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::json::Seconds"))]
    pub began: i64,
    /// When it fired, likewise; None while it is pending.
    #[serde(default, with = "crate::json::instant_or_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::json::Seconds>"))]
    pub fired: Option<i64>,
    /// When it ended, likewise; None while it has not.
    #[serde(default, with = "crate::json::instant_or_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::json::Seconds>"))]
    pub ended: Option<i64>,
    /// The newest value, in the tag's unit; None if there is none.
    pub value: Option<f64>,
    /// The worst value since it began, likewise.
    pub worst: Option<f64>,
    /// Its sentence for people, such as `node-12 GPU 5 at 89.1 °C, above 85 °C for 2 min`.
    pub sentence: String,
    /// Text that code sent with it; placeholders in it are not filled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// `source`, `gpu`, `run`, `rank`, `project`, `tag` and other known labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Number of calls from code; 1 for an alert of a rule.
    #[serde(default = "one")]
    pub count: u64,
    /// The acknowledgment, if any; its notice is not repeated until it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked: Option<Acked>,
    /// Reason why no notice is sent, such as `silenced by sofia until 18:00` or `node-12 is lost`; empty if notices are
    /// sent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub held: String,
    /// Time since which no data of its subject arrived, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::instant_or_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::json::Seconds>"))]
    pub unknown_since: Option<i64>,
}

fn one() -> u64 {
    1
}

/// Acknowledgment of an alert.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acked {
    /// The person's name.
    pub by: String,
    /// When.
    pub at: i64,
}

/// `GET /api/v1/alerts/ID`: one alert and its history.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertHistory {
    #[allow(missing_docs, reason = "see Alert")]
    #[serde(flatten)]
    pub alert: Alert,
    #[allow(missing_docs, reason = "see AlertEvents")]
    #[serde(flatten)]
    pub history: AlertEvents,
}

/// History of an alert: the second part of [`AlertHistory`], which may be read by itself.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertEvents {
    /// Oldest first, at most 200.
    pub events: Vec<AlertHappened>,
}

/// An event of an alert.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertHappened {
    /// When, milliseconds since the Unix epoch; in JSON seconds.
    #[serde(with = "crate::json::instant")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::json::Seconds"))]
    pub t: i64,
    /// `firing`, `resolved`, `acked` or `flapping`.
    pub what: String,
    /// The person who caused it; empty for automatic events.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// In a sentence; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// `GET /api/v1/alerts`: newest first.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alerts {
    #[allow(missing_docs, reason = "see Alert")]
    pub alerts: Vec<Alert>,
    /// Number of firing alerts that the reader may see.
    pub firing: u64,
    /// There are more than were requested.
    pub more: bool,
    /// Problems of the alerting itself, in sentences: subjects over a limit, an unreachable database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trouble: Vec<String>,
}

/// `GET /api/v1/rules`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Those made here first, then those of the file, then the built-in ones.
    pub rules: Vec<RuleRow>,
}

/// A rule and its state.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleRow {
    #[allow(missing_docs, reason = "see Rule")]
    pub rule: Rule,
    /// Its condition in words, such as `GPU temperature above 85 °C for 2 min, until below 82 °C`.
    pub words: String,
    /// Alerts of it that fire now.
    pub firing: u64,
    /// When it last fired; None if it did not in the last 400 days.
    pub last: Option<i64>,
    /// Its problem, such as `more than 10,000 series; the first are watched`; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trouble: String,
}

/// `POST /api/v1/rules/check`: a rule to evaluate over the past.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleCheck {
    #[allow(missing_docs, reason = "see Rule")]
    pub rule: Rule,
    /// Seconds back from now; at most 12 h.
    pub span: u64,
}

/// The answer to [`RuleCheck`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The condition in words, see [`RuleRow::words`].
    pub words: String,
    /// In a sentence: `would have fired 3 times in the last 12 h, for 14 min together`.
    pub sentence: String,
    /// Each time that it would have fired, oldest first; at most 1,000.
    pub fired: Vec<Fired>,
    /// Number of times, also if it exceeds the list.
    pub times: u64,
    /// Number of series or other subjects that it would watch.
    pub subjects: u64,
}

/// A span in which a rule would have fired for a subject.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fired {
    /// The subject as displayed: `node-13 GPU 2`.
    pub subject: String,
    /// The machine, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Start, milliseconds since the Unix epoch; in JSON seconds.
    #[serde(with = "crate::json::instant")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::json::Seconds"))]
    pub from: i64,
    /// End, likewise; None: it still fires.
    #[serde(default, with = "crate::json::instant_or_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::json::Seconds>"))]
    pub to: Option<i64>,
    /// The worst value in it.
    pub worst: Option<f64>,
}

/// A silence: notices of matching alerts are withheld for a while.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// 26 letters. Set by the server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Labels of an alert and patterns that all must match, see [`crate::catalog::glob`]: `rule`, `source`, `run`,
    /// `severity` and others.
    #[serde(rename = "match")]
    pub matches: BTreeMap<String, String>,
    /// From when.
    pub from: i64,
    /// Until when; at most 30 days after `from`.
    pub to: i64,
    /// Reason.
    #[serde(default)]
    pub comment: String,
    /// Author.
    #[serde(default)]
    pub by: String,
    /// Notices that it withheld. Counted by the server.
    #[serde(default)]
    pub held: u64,
}

/// `GET /api/v1/silences`: current and future ones, then ended ones, newest first.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silences {
    #[allow(missing_docs, reason = "see Silence")]
    pub silences: Vec<Silence>,
}

/// Quiet hours of a channel.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quiet {
    /// Days on which it begins: `mon-fri`, `sat,sun`; empty: every day.
    #[serde(default)]
    pub days: String,
    /// Time of day, as `22:00`.
    pub from: String,
    /// Time of day; if it is not after `from`, it is on the next day.
    pub to: String,
}

/// A channel as it is created or changed. It includes every secret, which the server never returns.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelInput {
    /// Unique in its team.
    pub name: String,
    /// Kind of sink: `slack`, `mattermost`, `discord`, `teams`, `webhook`, `email`, `ntfy`, `telegram`, `pagerduty`,
    /// `alertmanager`.
    pub kind: String,
    /// The address; for most sinks it is a secret itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Secret>,
    /// Further addresses of the same kind, such as for `alertmanager`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Secret>,
    /// Addresses of e-mail; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Topic of `ntfy`, or chat of `telegram`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Key, token or signing secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// The previous signing secret, during a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret: Option<Secret>,
    /// Format of `webhook`: `json` (default) or `cloudevents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[allow(missing_docs, reason = "see Quiet")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quiet: Vec<Quiet>,
    /// Zone of the quiet hours, as `Europe/Berlin`; None: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether it receives notices of rules that name no channel.
    #[serde(default = "yes")]
    pub is_default: bool,
}

/// A channel as it is shown.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// 26 letters.
    pub id: String,
    #[allow(missing_docs, reason = "see ChannelInput")]
    pub name: String,
    #[allow(missing_docs, reason = "see ChannelInput")]
    pub kind: String,
    /// Displayable part of its address: `…h4Fz` of a secret address, `pager.example.org`, `ops@example.org`.
    pub target: String,
    #[allow(missing_docs, reason = "see Quiet")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quiet: Vec<Quiet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[allow(missing_docs, reason = "see ChannelInput")]
    pub zone: Option<String>,
    #[allow(missing_docs, reason = "see ChannelInput")]
    pub is_default: bool,
    /// State of its deliveries.
    pub delivery: Delivery,
}

/// State of the deliveries of a channel.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// `ok`, `retrying`, `failed`, or `none` before the first.
    pub state: String,
    /// In a sentence: `accepted in 180 ms`, `502, tried 4 times, again in 40 s`.
    pub words: String,
    /// When the last attempt was made.
    pub at: Option<i64>,
    /// Queued notices.
    pub waiting: u64,
    /// When the oldest of them was queued.
    pub oldest: Option<i64>,
    /// Notices that were accepted in the last 7 days.
    pub sent: u64,
    /// Notices that were dropped in the last 7 days.
    pub lost: u64,
}

/// `GET /api/v1/channels`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    #[allow(missing_docs, reason = "see Channel")]
    pub channels: Vec<Channel>,
    /// Notices of the last 24 h, newest first, at most 100.
    pub sent: Vec<Sent>,
}

/// A notice and its delivery.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its id, the same in each attempt.
    pub id: String,
    /// Name of the channel.
    pub channel: String,
    /// When it was made.
    pub at: i64,
    /// Its title.
    pub title: String,
    /// `waiting`, `sent`, `retrying`, `failed`, `folded` into a newer one, or `quiet`.
    pub state: String,
    /// In words, see [`Delivery::words`].
    pub words: String,
}

/// Result of a channel's test.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// Whether it was accepted.
    pub ok: bool,
    /// Status, time, address family, and recommended action.
    pub sentence: String,
}

/// Reason for a notice.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Alerts began, or still fire after the repeat interval.
    Firing,
    /// All alerts of the group have ended.
    Resolved,
    /// Too many notices of a channel, combined into one.
    Digest,
    /// A test of the channel.
    Test,
}

/// One message to one channel. It is complete: a sink needs no other data.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The row's id in the outbox, 26 letters: the same in each try.
    pub id: String,
    #[allow(missing_docs, reason = "see NoticeKind")]
    pub kind: NoticeKind,
    /// The group that it is about; messages of one group are threaded where a sink can.
    pub group: String,
    /// Number of the message in its group, from 1.
    pub seq: u64,
    #[allow(missing_docs, reason = "see AlertSeverity")]
    pub severity: AlertSeverity,
    /// Name of the rule; empty for a digest.
    pub rule: String,
    /// One line, at most [`MAX_TITLE_BYTES`] bytes, placeholders filled, clean of control characters; not escaped.
    pub title: String,
    /// Recommended action, likewise; may contain newlines. May be empty.
    pub note: String,
    /// Its alerts, worst first, at most [`MAX_NAMED`].
    pub alerts: Vec<Alert>,
    /// Further alerts that are not named.
    pub more: u64,
    /// Alerts by rule, for a digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<(String, u64)>,
    /// Address of the page that shows it; None without `public_url`.
    pub link: Option<String>,
    /// Address of the run or the charts that its only alert is about; None without `public_url` and for several alerts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charts: Option<String>,
    /// The rule's own address with help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Name of the team; empty in `serve`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub team: String,
    /// Name of the sending host, if there is no link.
    pub host: String,
    /// When it was made, seconds since the Unix epoch.
    pub at: i64,
}

/// `POST /api/v1/alerts`: an alert from code.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeAlert {
    /// 1 to [`MAX_TITLE_BYTES`] bytes; longer ones are cut.
    pub title: String,
    /// At most [`MAX_TEXT_BYTES`] bytes; longer ones are cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default)]
    #[allow(missing_docs, reason = "see AlertSeverity")]
    pub severity: AlertSeverity,
    /// Time in which repeats are merged, as `30m`, 0 s to 7 d; None: 10 min.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// The run's id; for a datagram, the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The machine's name; None: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When; None: now. Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t: Option<f64>,
    /// Makes repeats of one call idempotent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The answer to [`CodeAlert`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeAlertTaken {
    /// The alert's id.
    pub id: String,
    /// Number of calls so far.
    pub count: u64,
}
