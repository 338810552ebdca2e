//! `watchglass alerts`: firing and past alerts, tests of channels, rules of a file, silences.

use super::carrier::carry;
use super::order::{HubOrder, HubRequest};
use super::table::{ago, headed};
use super::{AdminFailed, Printed, read};
use crate::config::{Administration, AlertHistory, AlertsTask, Config, SilenceTask, rules_of_file};
use api::Operation;
use api::parameter::{ALERT_STATE, FROM, LIMIT, RULE, RUN, SOURCE, TEAM, TO};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::alert::{
    Alert, AlertHistory as Happened, AlertSeverity, AlertState, Alerts, Checked, Origin, Rule, RuleCheck, RuleRow,
    Rules, Silence, Silences, Tested,
};
use shared::controls::escaped_json;
use shared::rule::{duration_words, fill};
use shared::unit::instant::seconds;
use std::collections::BTreeMap;
use std::path::Path;
use stream::clock::{self, Clock};

/// Exit statuses of `list --exit-code`.
const WARNING: u8 = 10;
const CRITICAL: u8 = 11;

/// Maximum span of a check, milliseconds.
const LONGEST_CHECK: i64 = 12 * 3_600_000;

/// One command.
struct Asking<'a> {
    config: &'a Config,
    wanted: &'a Administration,
}

impl Asking<'_> {
    fn ask(&self, request: HubRequest) -> Result<Value, AdminFailed> {
        carry(self.config, self.wanted.hub.as_ref(), &HubOrder::Alerts(request))
    }

    fn of_team(&self, operation: Operation) -> HubRequest {
        HubRequest::asking(operation, &[], &[(TEAM, self.wanted.team.clone())])
    }

    fn get<T: DeserializeOwned>(&self, request: HubRequest) -> Result<(T, Value), AdminFailed> {
        let answer = self.ask(request)?;
        Ok((read(&answer)?, answer))
    }

    /// A list: the JSON of the response, or a table.
    fn printed(&self, answer: &impl Serialize, table: String) -> Printed {
        let json = || serde_json::to_string_pretty(answer).expect("answers hold only text, numbers and lists");
        let output = if self.wanted.json { format!("{}\n", escaped_json(json())) } else { table };
        Printed { output, ..Printed::default() }
    }
}

/// Runs a task of `watchglass alerts`.
pub(super) fn alerts(config: &Config, wanted: &Administration, task: &AlertsTask) -> Result<Printed, AdminFailed> {
    let asking = Asking { config, wanted };
    match task {
        AlertsTask::List { exit_code } => list(&asking, *exit_code),
        AlertsTask::History(history) => past(&asking, history),
        AlertsTask::Test { channel: Some(channel), .. } => test(&asking, channel),
        AlertsTask::Test { rule, .. } => show(&asking, rule.as_deref().unwrap_or_default()),
        AlertsTask::Check { file, from } => check(&asking, file, from.begin(clock::System.wall())),
        AlertsTask::Apply { file } => apply(&asking, file),
        AlertsTask::Import { file } => import(file),
        AlertsTask::Silence(SilenceTask { list: true, .. }) => {
            let (silences, answer) = asking.get::<Silences>(asking.of_team(Operation::ListSilences))?;
            Ok(asking.printed(&answer, silences_table(&silences, clock::System.wall() / 1_000)))
        }
        AlertsTask::Silence(SilenceTask { end: Some(id), .. }) => {
            asking.ask(HubRequest::new(Operation::EndSilence, &[id]))?;
            Ok(Printed { note: format!("Silence {id} has ended."), ..Printed::default() })
        }
        AlertsTask::Silence(silence) => add_silence(&asking, silence),
        AlertsTask::Ack { id } => {
            let answer = asking.ask(HubRequest::new(Operation::AcknowledgeAlert, &[id]))?;
            let alert: Alert = read(&answer)?;
            Ok(Printed {
                note: format!("{:?} is acknowledged; its notification is not repeated.", alert.sentence),
                ..Printed::default()
            })
        }
    }
}

/// Translates rules of Prometheus. No server is needed.
fn import(file: &Path) -> Result<Printed, AdminFailed> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        AdminFailed::new(format!("{name} cannot be read: {error}; name a file with rules of Prometheus"))
    })?;
    let imported = rules::prometheus::import(&text, &collectors::catalog());
    let status = u8::from(!imported.refused.is_empty());
    let note = imported.refusals(&name).trim_end().to_string();
    Ok(Printed { output: imported.toml(), note, status })
}

fn list(asking: &Asking<'_>, exit_code: bool) -> Result<Printed, AdminFailed> {
    let names = |state: &str| {
        let parameters =
            [(TEAM, asking.wanted.team.clone()), (ALERT_STATE, Some(state.into())), (LIMIT, Some("1000".into()))];
        HubRequest::asking(Operation::ListAlerts, &[], &parameters)
    };
    let (firing, answer) = asking.get::<Alerts>(names("firing"))?;
    let (pending, _) = asking.get::<Alerts>(names("pending"))?;
    let all: Vec<&Alert> = firing.alerts.iter().chain(&pending.alerts).collect();
    let mut printed = asking.printed(&answer, alerts_table(&all, clock::System.wall()));
    printed.note = firing.trouble.join("\n");
    if exit_code {
        printed.status = match firing.alerts.iter().map(|alert| alert.severity).max() {
            Some(AlertSeverity::Critical) => CRITICAL,
            Some(AlertSeverity::Warning) => WARNING,
            Some(AlertSeverity::Info) | None => 0,
        };
    }
    Ok(printed)
}

fn past(asking: &Asking<'_>, history: &AlertHistory) -> Result<Printed, AdminFailed> {
    let now = clock::System.wall();
    if let Some(id) = &history.alert {
        let (found, answer) = asking.get::<Happened>(HubRequest::new(Operation::GetAlert, &[id]))?;
        let rows = found.history.events.iter().map(|event| {
            let when = ago(now / 1_000, Some(event.t / 1_000));
            vec![when, event.what.clone(), event.who.clone(), plain(&event.words)]
        });
        return Ok(asking.printed(&answer, headed(["WHEN", "WHAT", "WHO", "SENTENCE"], rows)));
    }
    let parameters = [
        (TEAM, asking.wanted.team.clone()),
        (FROM, history.from.map(|from| seconds(from.begin(now)))),
        (TO, history.to.map(|to| seconds(to.end(now)))),
        (SOURCE, history.source.clone()),
        (RUN, history.run.clone()),
        (RULE, history.rule.clone()),
        (LIMIT, history.limit.map(|limit| limit.to_string())),
    ];
    let (found, answer) = asking.get::<Alerts>(HubRequest::asking(Operation::ListAlerts, &[], &parameters))?;
    let mut printed = asking.printed(&answer, alerts_table(&found.alerts.iter().collect::<Vec<_>>(), now));
    if found.more {
        printed.note = "There are more alerts; narrow the list with --limit, --from and --to.".into();
    }
    Ok(printed)
}

fn alerts_table(alerts: &[&Alert], now: i64) -> String {
    let rows = alerts.iter().map(|alert| {
        let state = match (alert.state, alert.held.is_empty()) {
            (AlertState::Pending, _) => "pending",
            (AlertState::Resolved, _) => "resolved",
            (AlertState::Firing, true) => "firing",
            (AlertState::Firing, false) => "held",
        };
        let acked = alert.acked.as_ref().map(|acked| acked.by.clone()).unwrap_or_default();
        let began = ago(now / 1_000, Some(alert.began / 1_000));
        vec![alert.severity.as_str().into(), state.into(), began, acked, plain(&alert.sentence), alert.id.clone()]
    });
    headed(["SEVERITY", "STATE", "BEGAN", "ACKNOWLEDGED BY", "WHAT", "ID"], rows)
}

/// Text of other programs on one line of a terminal.
fn plain(text: &str) -> String {
    shared::rule::clean(text, usize::MAX, false)
}

fn test(asking: &Asking<'_>, channel: &str) -> Result<Printed, AdminFailed> {
    let answer = asking.ask(HubRequest::new(Operation::TestChannel, &[channel]))?;
    let tested: Tested = read(&answer)?;
    let status = u8::from(!tested.ok);
    let mut printed = asking.printed(&answer, format!("{channel}: {}\n", tested.sentence));
    printed.status = status;
    Ok(printed)
}

/// The notification of a rule, with the values of its last alert.
fn show(asking: &Asking<'_>, name: &str) -> Result<Printed, AdminFailed> {
    let (rules, _) = asking.get::<Rules>(asking.of_team(Operation::ListRules))?;
    let row = rules.rules.into_iter().find(|row| row.rule.name == name || row.rule.id == name);
    let row = row.ok_or_else(|| AdminFailed::new(format!("there is no rule {name:?}")))?;
    let parameters = [(TEAM, asking.wanted.team.clone()), (RULE, Some(row.rule.id.clone())), (LIMIT, Some("1".into()))];
    let (last, answer) = asking.get::<Alerts>(HubRequest::asking(Operation::ListAlerts, &[], &parameters))?;
    Ok(asking.printed(&answer, shown(&row, last.alerts.first())))
}

fn shown(row: &RuleRow, last: Option<&Alert>) -> String {
    let rule = &row.rule;
    let Some(alert) = last else {
        return format!("{}\n{}\nIt has not fired yet, so there are no values to show.\n", rule.name, row.words);
    };
    let value = |name: &str| match name {
        "rule" => rule.name.clone(),
        "severity" => alert.severity.as_str().into(),
        "subject" => alert.subject.clone(),
        "state" => if alert.state == AlertState::Resolved { "resolved" } else { "firing" }.into(),
        "value" => alert.value.map(shared::rule::number_text).unwrap_or_default(),
        "count" => alert.count.to_string(),
        other => alert.labels.get(other).cloned().unwrap_or_default(),
    };
    let title = rule.title.as_ref().map_or_else(|| plain(&alert.sentence), |title| fill(title, value));
    let note = rule.note.as_ref().map(|note| format!("{}\n", fill(note, value))).unwrap_or_default();
    format!("{title}\n{note}")
}

/// Output of `check --json` for a rule.
#[derive(Serialize)]
struct CheckedRule {
    rule: String,
    checked: Checked,
}

/// Output of `apply --json` for a rule.
#[derive(Serialize)]
struct AppliedRule {
    rule: String,
    done: Done,
}

/// Actions of `apply` on a rule.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Done {
    Made,
    Changed,
    Unchanged,
}

impl Done {
    fn as_str(self) -> &'static str {
        match self {
            Done::Made => "made",
            Done::Changed => "changed",
            Done::Unchanged => "unchanged",
        }
    }
}

fn check(asking: &Asking<'_>, file: &Path, from: i64) -> Result<Printed, AdminFailed> {
    let ago = clock::System.wall() - from;
    if !(1_000..=LONGEST_CHECK + 1_000).contains(&ago) {
        return Err(AdminFailed::usage("--from must be within the last 12 h, such as -12h"));
    }
    let span = u64::try_from(ago.min(LONGEST_CHECK) / 1_000).unwrap_or(0);
    let (mut text, mut all) = (String::new(), Vec::new());
    for rule in rules_of_file(file).map_err(AdminFailed::usage)? {
        let name = rule.name.clone();
        let wanted = RuleCheck { rule: as_made(rule, 0), span };
        let answer = asking.ask(HubRequest::new(Operation::CheckRule, &[]).with(&wanted))?;
        let checked: Checked = read(&answer)?;
        text += &format!("{name}: {}\n", plain(&checked.sentence));
        all.push(CheckedRule { rule: name, checked });
    }
    Ok(asking.printed(&all, text))
}

/// A rule of a file in the form of one created on the page.
fn as_made(rule: Rule, version: i64) -> Rule {
    Rule { id: String::new(), origin: Origin::Made, version, ..rule }
}

fn apply(asking: &Asking<'_>, file: &Path) -> Result<Printed, AdminFailed> {
    let wanted = rules_of_file(file).map_err(AdminFailed::usage)?;
    let (known, _) = asking.get::<Rules>(asking.of_team(Operation::ListRules))?;
    let (mut text, mut all) = (String::new(), Vec::new());
    for rule in wanted {
        let name = rule.name.clone();
        let old = known.rules.iter().map(|row| &row.rule).find(|old| old.origin == Origin::Made && old.name == name);
        let rule = as_made(rule, old.map_or(0, |old| old.version));
        let done = match old {
            None => {
                asking.ask(asking.of_team(Operation::AddRule).with(&rule))?;
                Done::Made
            }
            Some(old) if rule == (Rule { id: String::new(), by: String::new(), ..old.clone() }) => Done::Unchanged,
            Some(old) => {
                asking.ask(HubRequest::new(Operation::ChangeRule, &[&old.id]).with(&rule))?;
                Done::Changed
            }
        };
        text += &format!("{name}: {}\n", done.as_str());
        all.push(AppliedRule { rule: name, done });
    }
    Ok(asking.printed(&all, text))
}

fn add_silence(asking: &Asking<'_>, task: &SilenceTask) -> Result<Printed, AdminFailed> {
    let mut matches: BTreeMap<String, String> = task.labels.iter().cloned().collect();
    let given = [("source", &task.source), ("rule", &task.rule), ("run", &task.run)];
    matches.extend(given.into_iter().filter_map(|(label, pattern)| Some((label.to_string(), pattern.clone()?))));
    if matches.is_empty() {
        return Err(AdminFailed::usage("a silence needs a matcher: --source, --rule, --run or --match LABEL=PATTERN"));
    }
    let length = task.length.unwrap_or(0);
    let from = clock::System.wall() / 1_000;
    let to = from + i64::from(length);
    let silence =
        Silence { matches, from, to, comment: task.comment.clone().unwrap_or_default(), ..Silence::default() };
    let answer = asking.ask(asking.of_team(Operation::AddSilence).with(&silence))?;
    let made: Silence = read(&answer)?;
    let mut printed = asking.printed(&answer, format!("{}\n", made.id));
    printed.note = format!(
        "Matching alerts are silenced for {}; end it with watchglass alerts silence --end {}.",
        duration_words(length),
        made.id
    );
    Ok(printed)
}

fn silences_table(silences: &Silences, now: i64) -> String {
    let rows = silences.silences.iter().map(|silence| {
        let what: Vec<String> = silence.matches.iter().map(|(label, pattern)| format!("{label}={pattern}")).collect();
        let state = match (silence.from <= now, silence.to > now) {
            (_, false) => "over",
            (true, true) => "holds",
            (false, true) => "will",
        };
        let until = shared::date::text(silence.to * 1_000);
        let held = silence.held.to_string();
        vec![state.into(), until, what.join(" "), silence.by.clone(), held, plain(&silence.comment), silence.id.clone()]
    });
    headed(["STATE", "UNTIL", "WHAT", "BY", "HELD", "WHY", "ID"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rules_text_is_shown_with_the_values_of_its_last_alert() {
        let rule = Rule {
            name: "Full".into(),
            title: Some("{source}: {tag}".into()),
            note: Some("Look at {source}.".into()),
            ..Rule::default()
        };
        let row = RuleRow { rule, words: "words".into(), firing: 0, last: None, trouble: String::new() };
        assert!(shown(&row, None).contains("not fired yet"));
        let alert = Alert {
            id: "a".into(),
            rule: "r".into(),
            name: "Full".into(),
            subject: "s".into(),
            severity: AlertSeverity::Warning,
            state: AlertState::Firing,
            began: 0,
            fired: None,
            ended: None,
            value: None,
            worst: None,
            sentence: "node-1 is full".into(),
            text: String::new(),
            labels: [("source".to_string(), "{tag}\u{1b}[31m".to_string())].into(),
            count: 1,
            acked: None,
            held: String::new(),
            unknown_since: None,
        };
        let text = shown(&row, Some(&alert));
        assert!(text.starts_with("{tag}") && text.contains("Look at {tag}"), "a value is never read again: {text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let table = alerts_table(&[&alert], 60_000);
        assert!(table.contains("firing") && table.contains("node-1 is full"), "{table}");
    }
}
