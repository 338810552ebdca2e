//! Alerts for display: part of the list, order, times, and the matching silence.

use crate::draft::When;
use charts::order;
use charts::{Bar, Grade};
use shared::alert::{Alert, AlertSeverity, AlertState, Rule, Silence};
use shared::catalog::{Catalog, glob};
use shared::unit::rough_duration;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
const DAY_MS: i64 = DAY * 1_000;
/// Bytes of a time as `14:03`, and of one with its date.
const TIMED: usize = 5;
const DATED: usize = 16;
/// The hour of the morning at which a silence until tomorrow ends.
const MORNING: i64 = 8;

/// Display state of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertStand {
    /// It fires, and notifications are sent.
    Firing,
    /// It fires, but a silence suppresses notifications.
    Silenced,
    /// Its condition holds, but not yet for long enough.
    Pending,
    /// It is over.
    Resolved,
}

impl AlertStand {
    /// The display state of an alert.
    pub fn from_alert(alert: &Alert) -> AlertStand {
        match alert.state {
            AlertState::Resolved => AlertStand::Resolved,
            AlertState::Pending => AlertStand::Pending,
            AlertState::Firing if alert.held.is_empty() => AlertStand::Firing,
            AlertState::Firing => AlertStand::Silenced,
        }
    }

    /// Its name in `data-state`.
    pub fn name(self) -> &'static str {
        match self {
            AlertStand::Firing => "firing",
            AlertStand::Silenced => "silenced",
            AlertStand::Pending => "pending",
            AlertStand::Resolved => "resolved",
        }
    }
}

/// Class and character of the shape of an alert: it shows the severity without color.
pub fn shape(severity: AlertSeverity, stand: AlertStand) -> (&'static str, &'static str) {
    match (stand, severity) {
        (AlertStand::Resolved, _) => ("shape is-ok", "●"),
        (AlertStand::Pending, _) => ("shape is-unknown", "◌"),
        (_, AlertSeverity::Critical) => ("shape is-bad", "■"),
        (_, AlertSeverity::Warning) => ("shape is-warn", "▲"),
        (_, AlertSeverity::Info) => ("shape is-unknown", "◆"),
    }
}

/// Filter of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// `firing`, `silenced`, `over`, or one of the words of severity; empty for all.
    pub state: String,
    /// Words that must all occur in the text of the alert.
    pub find: String,
}

impl Filter {
    /// Whether an alert is shown.
    pub fn fits(&self, alert: &Alert) -> bool {
        let stand = AlertStand::from_alert(alert);
        let state = match self.state.as_str() {
            "" => true,
            "over" => stand == AlertStand::Resolved,
            state => state == stand.name() || state == alert.severity.as_str(),
        };
        let mut all = format!("{} {} {} {}", alert.sentence, alert.name, alert.subject, alert.severity.as_str());
        for (name, value) in &alert.labels {
            all.push_str(&format!(" {name}:{value}"));
        }
        let all = all.to_lowercase();
        state && self.find.to_lowercase().split_whitespace().all(|word| all.contains(word))
    }
}

/// Open alerts, the most severe first and then the newest; and past alerts, newest first.
pub fn sorted<'a>(alerts: &'a [Alert], filter: &Filter) -> (Vec<&'a Alert>, Vec<&'a Alert>) {
    let (mut open, mut over): (Vec<&Alert>, Vec<&Alert>) = alerts
        .iter()
        .filter(|one| filter.fits(one))
        .partition(|one| AlertStand::from_alert(one) != AlertStand::Resolved);
    order::sort_by_key(&mut open, |one| (AlertStand::from_alert(one), Reverse(one.severity), Reverse(one.began)));
    order::sort_by_key(&mut over, |one| Reverse(one.ended));
    (open, over)
}

/// Duration so far, or in total; `now` is ms since the epoch.
pub fn lasted(alert: &Alert, now: i64) -> String {
    rough_duration((alert.ended.unwrap_or(now) - alert.began).max(0))
}

/// The span of charts that shows its start, ms since the epoch. The margin is a third of its duration, at least a
/// minute and at most half an hour.
pub fn span(alert: &Alert, now: i64) -> (i64, i64) {
    let end = alert.ended.unwrap_or(now).max(alert.began + 1_000);
    let margin = ((end - alert.began) / 3).clamp(60_000, 1_800_000);
    (alert.began - margin, if alert.ended.is_some() { (end + margin).min(now.max(end)) } else { end })
}

/// Its location: `GPU 5, rank 37, llama-70b`; the machine is in the sentence.
pub fn place(alert: &Alert) -> String {
    let of = |name: &str| alert.labels.get(name).filter(|value| !value.is_empty());
    let words = [("source", ""), ("gpu", "GPU "), ("rank", "rank "), ("run", "run "), ("project", "project ")];
    let said = words.iter().filter_map(|(name, word)| Some(format!("{word}{}", of(name)?)));
    said.collect::<Vec<_>>().join(", ")
}

/// The page that an alert is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertSubject {
    /// A training job.
    Run(String),
    /// A machine; the charts show the alert's series.
    Machine(String),
}

/// The subject of an alert. An alert about a series is about its machine, any other one about its run if it has one.
pub fn subject(alert: &Alert) -> Option<AlertSubject> {
    let of = |name: &str| alert.labels.get(name).filter(|value| !value.is_empty()).cloned();
    let (machine, run) = (of("source").map(AlertSubject::Machine), of("run").map(AlertSubject::Run));
    match of("tag") {
        Some(_) => machine.or(run),
        None => run.or(machine),
    }
}

/// Maximum length of a pattern of a silence, bytes.
const MAX_PATTERN_BYTES: usize = 200;

/// Labels of a silence for this alert: its rule, and where it fires. One rule may have several alerts on a machine: of its
/// disks, of all findings, of all XIDs, and from code. So theirs has the metric, the kind, the number or the title, too.
/// An alert about a series goes on after the run that was there.
pub fn matches(alert: &Alert) -> BTreeMap<String, String> {
    let mut found = BTreeMap::from([("rule".to_string(), alert.name.clone())]);
    let is_series = alert.labels.contains_key("tag");
    for name in ["source", "gpu", "tag", "finding", "user", "xid", "hub", "run", "title"] {
        // A user is a part of some findings; of other alerts it is that of a run.
        let is_part = match name {
            "run" => !is_series,
            "user" => alert.labels.contains_key("finding"),
            _ => true,
        };
        if let Some(value) = alert.labels.get(name).filter(|value| is_part && !value.is_empty()) {
            found.insert(name.to_string(), pattern_of(value));
        }
    }
    found
}

/// The pattern of a value: the value, or the beginning of a long one.
fn pattern_of(value: &str) -> String {
    if value.len() <= MAX_PATTERN_BYTES {
        return value.into();
    }
    let ends = value.char_indices().map(|(at, _)| at);
    let end = ends.take_while(|end| *end < MAX_PATTERN_BYTES).last().unwrap_or(0);
    format!("{}*", &value[..end])
}

/// Labels of a silence in words: its rule, and the rest.
pub fn of_silence(silence: &Silence) -> (String, String) {
    let rule = silence.matches.get("rule").cloned().unwrap_or_else(|| "everything".into());
    let rest = silence.matches.iter().filter(|(name, _)| *name != "rule").map(|(name, value)| match name.as_str() {
        "source" => value.clone(),
        "gpu" => format!("GPU {value}"),
        "tag" => value.clone(),
        "xid" => format!("XID {value}"),
        "title" => format!("\"{value}\""),
        name => format!("{name} {value}"),
    });
    let rest = rest.collect::<Vec<_>>().join(", ");
    (rule, if rest.is_empty() { rest } else { format!("of {rest}") })
}

/// Durations of a silence: the value in a form, and the text.
pub const LENGTHS: [(&str, &str); 5] = [
    ("1h", "for 1 hour"),
    ("4h", "for 4 hours"),
    ("tomorrow", "until tomorrow, 08:00"),
    ("7d", "for 7 days"),
    ("30d", "for 30 days"),
];

/// End of a silence with this duration, Unix seconds. `now` is in Unix seconds too; `local` gives local time minus UTC at
/// an instant, in seconds.
pub fn ends(length: &str, now: i64, local: &dyn Fn(i64) -> i64) -> i64 {
    match crate::draft::seconds(length) {
        Some(seconds) => now + seconds.min(30 * DAY),
        None => {
            let day = (now + local(now)).div_euclid(DAY);
            let morning = (day + 1) * DAY + MORNING * HOUR;
            // The clocks may change in the night.
            morning - local(morning - local(now))
        }
    }
}

/// Alerts in charts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alerted {
    /// A bar for each alert, in order of their start.
    pub bars: Vec<Bar>,
    /// Limits of rules: position of the metric in the catalog, value in its base unit, and name of the rule.
    pub limits: Vec<(u16, f64, String)>,
}

/// An instant later than all drawn ones, ms since the epoch.
const FAR_FUTURE: i64 = i64::MAX / 4;

/// The bars of alerts, in order of their start. The word has the severity and the name.
pub fn bars(alerts: &[Alert]) -> Vec<Bar> {
    let bar = |one: &Alert| {
        let stand = AlertStand::from_alert(one);
        let (grade, word) = match (stand, one.severity) {
            (AlertStand::Pending, _) => (Grade::Pending, "pending"),
            (_, AlertSeverity::Info) => (Grade::Info, "info"),
            (_, AlertSeverity::Warning) => (Grade::Warning, "warning"),
            (_, AlertSeverity::Critical) => (Grade::Critical, "critical"),
        };
        let alert = stand != AlertStand::Pending && one.severity != AlertSeverity::Info;
        let to = one.ended.unwrap_or(FAR_FUTURE);
        Bar { from: one.began, to, word: format!("{word}: {}", one.name), strength: 0.5, alert, grade }
    };
    let mut bars: Vec<Bar> = alerts.iter().map(bar).collect();
    order::sort_by_key(&mut bars, |bar| bar.from);
    bars
}

/// The position of the metric of a tag; a `*` in it matches each instance.
pub fn metric(catalog: &Catalog, tag: &str) -> Option<u16> {
    catalog.known(tag).or_else(|| catalog.known(&tag.replace('*', "0"))).map(|found| found.metric)
}

/// The limits of the rules that watch a machine of this name.
pub fn limits(rules: &[Rule], machine: &str, catalog: &Catalog) -> Vec<(u16, f64, String)> {
    let fits = |rule: &Rule| rule.on.get("source").is_none_or(|pattern| glob(pattern, machine));
    let limit = |rule: &Rule| {
        let When::Level(level) = When::read(&rule.when) else { return None };
        let metric = metric(catalog, &level.tag)?;
        let unit = level.unit_of(catalog.metrics.get(usize::from(metric))?.unit);
        Some((metric, level.base(unit)?, rule.name.clone()))
    };
    rules.iter().filter(|rule| rule.enabled && fits(rule)).filter_map(limit).collect()
}

/// Class and character of the shape of a delivery, by its state.
pub fn delivery(state: &str) -> (&'static str, &'static str) {
    match state {
        "ok" | "sent" => ("shape is-ok", "●"),
        "retrying" | "waiting" => ("shape is-warn", "▲"),
        "failed" => ("shape is-bad", "■"),
        _ => ("shape is-unknown", "◌"),
    }
}

/// A kind of channel: its id, its name for people, its sign, and its fields in order.
pub type Kind = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// The kinds of channels that a person can create.
pub const KINDS: [Kind; 10] = [
    ("slack", "Slack", "#", &["address"]),
    ("mattermost", "Mattermost", "#", &["address"]),
    ("discord", "Discord", "#", &["address"]),
    ("teams", "Microsoft Teams", "#", &["address"]),
    ("email", "E-mail", "@", &["to"]),
    ("webhook", "Webhook", "{}", &["address", "secret", "format"]),
    ("ntfy", "ntfy", "▷", &["address", "topic", "secret"]),
    ("telegram", "Telegram", "▷", &["secret", "topic"]),
    ("pagerduty", "PagerDuty", "!", &["secret"]),
    ("alertmanager", "Alertmanager", "{}", &["addresses"]),
];

/// The kind of this name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|(known, ..)| *known == name)
}

/// The sentence of an alert with its times as `clock` writes them (ms since the epoch). The server writes them in UTC:
/// `14:03 UTC` within half a day, else with the date. Text of an alert from code is unchanged.
pub fn alert_sentence(alert: &Alert, clock: impl Fn(i64) -> String) -> String {
    match alert.labels.contains_key("title") {
        true => alert.sentence.clone(),
        false => zoned(&alert.sentence, alert.began, clock),
    }
}

/// The length of the time in UTC at the end of a text, and the time in ms since the epoch. Without a date it is the one
/// nearest to `near`.
fn read_last_time(text: &str, near: i64) -> Option<(usize, i64)> {
    let read = |length: usize| {
        let text = text.get(text.len().checked_sub(length)?..)?;
        let whole = if length == DATED { text.to_string() } else { format!("1970-01-01T{text}") };
        Some((length, shared::date::from_date(&format!("{whole}:00Z"))?))
    };
    let (length, t) = read(DATED).or_else(|| read(TIMED))?;
    let days = if length == TIMED { (near - t + DAY_MS / 2).div_euclid(DAY_MS) } else { 0 };
    Some((length, t + days * DAY_MS))
}

/// A sentence of the server with its times as `clock` writes them, also both of `02:42–03:03 UTC`. A time without a date
/// is the one nearest to `near`; both are in ms since the epoch.
pub fn zoned(sentence: &str, near: i64, clock: impl Fn(i64) -> String) -> String {
    const ZONE: &str = " UTC";
    let (mut said, mut rest) = (String::new(), sentence);
    while let Some(at) = rest.find(ZONE) {
        let (before, after) = (&rest[..at], &rest[at + ZONE.len()..]);
        match read_last_time(before, near) {
            Some((length, t)) => {
                let head = &before[..before.len() - length];
                let begin = head.strip_suffix('–').and_then(|head| Some((head, read_last_time(head, t)?)));
                match begin {
                    Some((head, (length, from))) => {
                        said += &format!("{}{}–{}", &head[..head.len() - length], clock(from), clock(t));
                    }
                    None => said += &format!("{head}{}", clock(t)),
                }
            }
            None => said += &rest[..at + ZONE.len()],
        }
        rest = after;
    }
    said + rest
}

/// Alerts that fire now but not before, for a notification and for screen readers.
pub fn news<'a>(before: &[String], now: &'a [Alert]) -> Vec<&'a Alert> {
    now.iter().filter(|one| AlertStand::from_alert(one) == AlertStand::Firing && !before.contains(&one.id)).collect()
}

/// Announcement of new or ended alerts; empty if there is none.
pub fn announced(new: &[&Alert], ended: usize) -> String {
    match (new, ended) {
        ([], 0) => String::new(),
        ([], 1) => "An alert has ended.".into(),
        ([], n) => format!("{n} alerts have ended."),
        ([one], _) => format!("{} alert: {}", one.severity.as_str(), one.sentence),
        (all, _) => {
            let worst = all.iter().max_by_key(|one| one.severity).map_or("", |one| &one.sentence);
            format!("{} new alerts, the worst: {worst}", all.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(id: &str, severity: AlertSeverity, state: AlertState, began: i64, held: &str) -> Alert {
        Alert {
            id: id.into(),
            rule: "r".into(),
            name: "Hot".into(),
            subject: "node-1 gpu.3.temp".into(),
            severity,
            state,
            began,
            fired: None,
            ended: (state == AlertState::Resolved).then_some(began + 90_000),
            value: None,
            worst: None,
            sentence: format!("GPU 3 of node-1 is hot ({id})"),
            text: String::new(),
            labels: BTreeMap::from([("source".into(), "node-1".into()), ("gpu".into(), "3".into())]),
            count: 1,
            acked: None,
            held: held.into(),
            unknown_since: None,
        }
    }

    #[test]
    fn times_of_a_sentence_are_in_the_zone_of_its_reader_and_what_code_wrote_stays() {
        // 20 November 2026, 23:50 UTC.
        let mut one = alert("a", AlertSeverity::Warning, AlertState::Firing, 1_795_218_600_000, "");
        let mut said = |sentence: &str| {
            one.sentence = sentence.into();
            alert_sentence(&one, |t| format!("<{t}>"))
        };
        assert_eq!(said("no data since 23:40 UTC; 00:05 UTC"), "no data since <1795218000000>; <1795219500000>");
        assert_eq!(said("node-1: XID 79 at 2026-11-18 12:34 UTC, then"), "node-1: XID 79 at <1795005240000>, then");
        assert_eq!(said("the zone UTC and 12:3x UTC"), "the zone UTC and 12:3x UTC");
        one.labels.insert("title".into(), "loss".into());
        one.sentence = "loss is NaN at 12:34 UTC in its log".into();
        assert_eq!(alert_sentence(&one, |_| String::new()), one.sentence);
    }

    #[test]
    fn the_worst_that_is_told_stands_first_and_what_is_over_by_itself() {
        use AlertSeverity::{Critical, Info, Warning};
        use AlertState::{Firing, Pending, Resolved};
        let all = [
            alert("old", Warning, Firing, 1, ""),
            alert("gone", Critical, Resolved, 5, ""),
            alert("held", Critical, Firing, 2, "silenced by sofia until 18:00"),
            alert("new", Warning, Firing, 3, ""),
            alert("later", Info, Resolved, 9, ""),
            alert("waits", Critical, Pending, 4, ""),
            alert("worst", Critical, Firing, 1, ""),
        ];
        let ids = |filter: &Filter| {
            let (open, over) = sorted(&all, filter);
            [open, over].map(|part| part.iter().map(|one| one.id.clone()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(ids(&Filter::default()), ["worst new old held waits", "later gone"]);
        let of = |state: &str, find: &str| ids(&Filter { state: state.into(), find: find.into() });
        assert_eq!(of("silenced", ""), ["held", ""]);
        assert_eq!(of("over", ""), ["", "later gone"]);
        assert_eq!(of("critical", "gpu:3 HOT"), ["worst held waits", "gone"]);
        assert_eq!(of("", "node-2"), ["", ""]);
    }

    #[test]
    fn a_shape_says_severity_without_a_color() {
        use AlertSeverity::{Critical, Info, Warning};
        let shapes: Vec<&str> = [Info, Warning, Critical].iter().map(|s| shape(*s, AlertStand::Firing).1).collect();
        assert_eq!(shapes, ["◆", "▲", "■"]);
        assert_eq!(shape(Critical, AlertStand::Resolved).1, "●");
        assert_eq!(shape(Critical, AlertStand::Pending).1, "◌");
    }

    #[test]
    fn its_charts_begin_before_it_does() {
        let mut one = alert("a", AlertSeverity::Info, AlertState::Firing, 1_000_000, "");
        assert_eq!(span(&one, 1_030_000), (940_000, 1_030_000));
        one.ended = Some(1_600_000);
        assert_eq!(span(&one, 9_000_000), (800_000, 1_800_000));
        assert_eq!(span(&one, 1_700_000), (800_000, 1_700_000), "not beyond now");
    }

    #[test]
    fn a_silence_is_of_the_rule_and_the_place() {
        let one = alert("a", AlertSeverity::Info, AlertState::Firing, 1, "");
        let silence = Silence { matches: matches(&one), ..Silence::default() };
        assert_eq!(of_silence(&silence), ("Hot".into(), "of GPU 3, node-1".into()));
        assert_eq!(of_silence(&Silence::default()), ("everything".into(), String::new()));
        assert_eq!(place(&one), "node-1, GPU 3");
    }

    #[test]
    fn a_silence_of_an_alert_from_code_is_of_its_title_alone() {
        let mut one = alert("a", AlertSeverity::Info, AlertState::Firing, 1, "");
        one.labels = [("source", "node-1"), ("title", "loss is NaN")].map(|(a, b)| (a.into(), b.into())).into();
        let silence = Silence { matches: matches(&one), ..Silence::default() };
        assert_eq!(silence.matches.get("title").map(String::as_str), Some("loss is NaN"));
        assert_eq!(of_silence(&silence), ("Hot".into(), "of node-1, \"loss is NaN\"".into()));
    }

    #[test]
    fn a_silence_of_one_alert_matches_no_other_of_its_rule() {
        let silence = |labels: &[(&str, &str)]| {
            let mut one = alert("a", AlertSeverity::Info, AlertState::Firing, 1, "");
            one.labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let matches = matches(&one);
            let text = of_silence(&Silence { matches: matches.clone(), ..Silence::default() }).1;
            (matches.into_iter().filter(|(name, _)| name != "rule").map(|(name, _)| name).collect::<Vec<_>>(), text)
        };
        let (labels, text) =
            silence(&[("source", "n"), ("tag", "disk./data.usagePercent"), ("run", "r1"), ("team", "x")]);
        assert_eq!((labels.join(" "), text.as_str()), ("source tag".into(), "of n, disk./data.usagePercent"));
        let (labels, text) = silence(&[("source", "n"), ("finding", "idle"), ("user", "ann"), ("gpu", "3")]);
        assert_eq!(
            (labels.join(" "), text.as_str()),
            ("finding gpu source user".into(), "of finding idle, GPU 3, n, user ann")
        );
        let (labels, text) = silence(&[("source", "n"), ("xid", "79"), ("user", "ann")]);
        assert_eq!((labels.join(" "), text.as_str()), ("source xid".into(), "of n, XID 79"));
        assert_eq!(silence(&[("run", "r1"), ("user", "ann")]).0, ["run"]);
        let long = format!("disk./{}", "é".repeat(150));
        let pattern = pattern_of(&long);
        assert!(pattern.len() <= MAX_PATTERN_BYTES && shared::catalog::glob(&pattern, &long), "{pattern}");
    }

    #[test]
    fn both_times_of_a_span_are_in_the_zone_of_the_reader() {
        let midnight = 1_795_392_000_000; // 2026-11-23T00:00Z
        let hour = |t: i64| format!("{} h", (t - midnight) / 3_600_000);
        let of = |sentence: &str| zoned(sentence, midnight + 3 * 3_600_000, hour);
        assert_eq!(of("gone (was firing 02:00–03:00 UTC)"), "gone (was firing 2 h–3 h)");
        assert_eq!(of("gone (was firing 23:00–01:00 UTC)"), "gone (was firing -1 h–1 h)");
        assert_eq!(
            of("gone (was firing 2026-11-22 02:00–03:00 UTC), since 04:00 UTC"),
            "gone (was firing -22 h–3 h), since 4 h"
        );
        assert_eq!(of("a–b 03:00 UTC, in UTC"), "a–b 3 h, in UTC");
    }

    #[test]
    fn an_alert_leads_to_its_run_and_one_about_a_series_to_its_machine() {
        let of = |labels: &[(&str, &str)]| {
            let mut one = alert("a", AlertSeverity::Info, AlertState::Firing, 1, "");
            one.labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            subject(&one)
        };
        let (run, machine) = (AlertSubject::Run("r1".into()), AlertSubject::Machine("node-1".into()));
        assert_eq!(of(&[("source", "node-1"), ("run", "r1")]), Some(run.clone()));
        assert_eq!(of(&[("source", "node-1"), ("run", "r1"), ("tag", "gpu.0.temp")]), Some(machine.clone()));
        assert_eq!((of(&[("source", "node-1"), ("run", "")]), of(&[("run", "r1")])), (Some(machine), Some(run)));
        assert_eq!(of(&[("title", "x")]), None);
    }

    #[test]
    fn a_silence_until_tomorrow_ends_in_the_morning_where_its_reader_is() {
        // 2026-11-23 22:30 in UTC, which is 23:30 in Berlin.
        let now = 1_795_473_000;
        let berlin = |_: i64| HOUR;
        assert_eq!(ends("tomorrow", now, &berlin) - now, (8 * HOUR + HOUR / 2));
        // A minute after midnight tomorrow is a day ahead.
        assert_eq!(ends("tomorrow", now + 31 * 60, &berlin) - now, (32 * HOUR + HOUR / 2));
        assert_eq!((ends("4h", now, &|_| 0) - now, ends("90d", now, &|_| 0) - now), (4 * HOUR, 30 * DAY));
        // Clocks go back by an hour in the night.
        let back = |t: i64| if t < now + 3 * HOUR { 2 * HOUR } else { HOUR };
        assert_eq!(ends("tomorrow", now, &back) - now, 32 * HOUR + HOUR / 2);
    }

    #[test]
    fn only_what_fires_anew_is_announced_and_many_as_one() {
        use AlertSeverity::{Critical, Warning};
        let all = [
            alert("a", Warning, AlertState::Firing, 1, ""),
            alert("b", Critical, AlertState::Firing, 1, ""),
            alert("held", Critical, AlertState::Firing, 1, "node-1 is lost"),
            alert("waits", Critical, AlertState::Pending, 1, ""),
        ];
        let new = news(&[], &all);
        assert_eq!(announced(&new, 0), "2 new alerts, the worst: GPU 3 of node-1 is hot (b)");
        assert_eq!(announced(&news(&["a".into()], &all), 1), "critical alert: GPU 3 of node-1 is hot (b)");
        assert_eq!((announced(&[], 0), announced(&[], 2)), (String::new(), "2 alerts have ended.".into()));
    }

    #[test]
    fn a_bar_says_how_much_it_matters_and_a_limit_stands_on_its_machine() {
        let all = [
            alert("b", AlertSeverity::Critical, AlertState::Firing, 9, ""),
            alert("a", AlertSeverity::Warning, AlertState::Pending, 2, ""),
        ];
        let bars = bars(&all);
        let said: Vec<_> = bars.iter().map(|bar| (bar.from, bar.grade, bar.word.as_str(), bar.alert)).collect();
        assert_eq!(said, [(2, Grade::Pending, "pending: Hot", false), (9, Grade::Critical, "critical: Hot", true)]);
        let rows = shared::catalog::VOCABULARY.iter().flat_map(|rows| rows.iter().copied());
        let catalog = Catalog::new(rows);
        let rule = |when: &str, source: &str, enabled: bool| Rule {
            name: "Hot".into(),
            when: when.into(),
            on: BTreeMap::from([("source".to_string(), source.to_string())]),
            enabled,
            ..Rule::default()
        };
        let rules = [
            rule("gpu.*.temp > 85 C for 2m", "node-*", true),
            rule("gpu.*.temp > 86 C for 2m", "node-*", false),
            rule("gpu.*.temp > 87 C for 2m", "rack-*", true),
            rule("gpu.*.temp > 87 W for 2m", "*", true),
            rule("run crashed", "*", true),
        ];
        let found = limits(&rules, "node-1", &catalog);
        assert_eq!(found, [(catalog.position("gpu.{i}.temp").expect("it is known"), 85.0, "Hot".to_string())]);
    }

    #[test]
    fn each_kind_has_a_field_and_no_name_twice() {
        assert!(KINDS.iter().all(|(name, _, _, fields)| {
            !fields.is_empty() && KINDS.iter().filter(|(other, ..)| other == name).count() == 1
        }));
        assert_eq!((kind("ntfy").map(|kind| kind.1), kind("sms")), (Some("ntfy"), None));
        assert_eq!(["ok", "retrying", "failed", "none"].map(|state| delivery(state).1), ["●", "▲", "■", "◌"]);
    }
}
