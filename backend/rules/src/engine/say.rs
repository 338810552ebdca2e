//! Alerts of subjects, with their sentences.

use super::compile::Compiled;
use super::group::Group;
use super::state::SubjectState;
use super::{Engine, Host, Series, Subject};
use crate::{Transition, What, id};
use shared::alert::{Alert, AlertState};
use shared::catalog::job::{self, ValueSender};
use shared::rule::{Comparison, Condition, Threshold, Value, duration_words, limit_words, value_words};
use shared::unit::{Unit, rough_duration};
use std::collections::BTreeMap;

/// A time of the day in UTC, as `03:40 UTC`; with the date where it is more than half a day away.
pub fn hour(t: i64, now: i64) -> String {
    format!("{} UTC", hour_without_zone(t, now))
}

/// The same without the zone, for sentences that name it later.
pub fn hour_without_zone(t: i64, now: i64) -> String {
    let text = shared::date::text(t);
    match (t - now).abs() < 12 * 3_600_000 {
        true => text[11..16].into(),
        false => text[..16].into(),
    }
}

/// Location of a series: `node-12 GPU 5`, `node-12 /data`.
pub fn place(host: &Host, series: &Series) -> String {
    let name = &host.machine.name;
    match (series.gpu(), &*series.instance) {
        (Some(_), gpu) => format!("{name} GPU {gpu}"),
        (None, "") => name.clone(),
        (None, instance) => match job::process(&series.row.template, instance) {
            Some(process) => format!("{name} {process}"),
            None => format!("{name} {instance}"),
        },
    }
}

fn title(value: &Value, title: &str) -> String {
    match value {
        Value::Of(_) => title.to_string(),
        value => value.words(),
    }
}

fn limit(comparison: &Comparison) -> String {
    format!("{} {}", comparison.op.words(), limit_words(comparison.limit, comparison.value.unit()))
}

/// Sentence of a threshold for a subject now.
fn threshold(of: &Threshold, what: What, state: &SubjectState, place: &str, name: &str) -> String {
    let value = value_words(state.value, of.first.value.unit());
    let name = title(&of.first.value, name);
    let also = of.and.as_ref().map(|and| format!(" with {} {}", and.value.words(), limit(and))).unwrap_or_default();
    if what == What::Ended {
        let (began, _) = state.times();
        let lasted = rough_duration(state.seen - began);
        return format!("{place}: {name} {value} now, was {}{also} for {lasted}", limit(&of.first));
    }
    let hold = if of.hold == 0 { String::new() } else { format!(" for {}", duration_words(of.hold)) };
    format!("{place}: {name} {value}, {}{also}{hold}", limit(&of.first))
}

fn more(state: &SubjectState, sentence: &mut String) {
    if let Some(flaps) = state.flaps.as_ref().filter(|f| f.on) {
        *sentence += &format!("; flapping: fired {} times", flaps.count);
    }
    if state.unknown != 0 {
        *sentence += &format!("; no data since {}", hour(state.unknown, state.unknown));
    }
}

/// The alert of a state.
pub fn alert(
    rule: &Compiled,
    what: What,
    state: &SubjectState,
    subject: String,
    labels: BTreeMap<String, String>,
    sentence: String,
) -> Alert {
    let (began, fired) = state.times();
    let subject_id = id::alert(&rule.rule.id, &subject, began);
    let (standing, fired, ended) = match what {
        What::Pending => (AlertState::Pending, None, None),
        What::Dropped => (AlertState::Resolved, None, Some(state.seen.max(began))),
        What::Fired | What::Changed => (AlertState::Firing, Some(fired), None),
        What::Ended => (AlertState::Resolved, Some(fired), Some(state.seen.max(began))),
    };
    Alert {
        id: subject_id,
        rule: rule.rule.id.clone(),
        name: rule.rule.name.clone(),
        subject,
        severity: rule.rule.severity,
        state: standing,
        began,
        fired,
        ended,
        value: Some(state.value).filter(|v| v.is_finite()),
        worst: Some(state.worst).filter(|v| v.is_finite()),
        sentence,
        text: String::new(),
        labels,
        count: state.flaps.as_ref().filter(|f| f.on).map_or(1, |f| f.count),
        acked: None,
        held: String::new(),
        unknown_since: Some(state.unknown).filter(|t| *t != 0),
    }
}

impl Engine {
    /// The transition of a series.
    pub(super) fn of_series(&self, host: &Host, subject: &Subject, what: What) -> Transition {
        let rule = &self.rules[subject.rule as usize];
        let state = &subject.state;
        let flapping = state.flaps();
        let Some(series) = &host.series[subject.series as usize] else {
            let alert = alert(rule, what, state, String::new(), BTreeMap::new(), String::new());
            return Transition { what, alert, event: false, flapping };
        };
        let place = place(host, series);
        let unit = series.row.unit;
        let row = &series.row.title;
        let mut value = true;
        let mut sentence = match (&rule.threshold, &rule.condition) {
            (_, Condition::NotANumber { .. }) => {
                value = false;
                let name = ValueSender::from_instance(&series.instance).1.unwrap_or_default();
                match what {
                    What::Ended => format!(
                        "{place}: {name} is a number again, was not for {}",
                        rough_duration(state.seen - state.times().0)
                    ),
                    _ => format!("{place}: {name} is not a number since {}", hour(state.began, state.began)),
                }
            }
            (Some(of), _) => threshold(of, what, state, &place, row),
            (None, Condition::Missing { .. }) => {
                value = false;
                match what {
                    What::Ended => format!(
                        "{place}: {row} has data again, was missing for {}",
                        rough_duration(state.seen - state.times().0)
                    ),
                    _ => format!("{place}: {row} missing since {}", hour(state.began, state.began)),
                }
            }
            (None, Condition::Reaches { limit, .. }) => {
                let now = value_words(state.value, unit);
                let limit = limit_words(*limit, unit);
                match what {
                    What::Ended => format!("{place}: {row} {now}, no longer reaches {limit} soon"),
                    _ => format!(
                        "{place}: {row} {now}, reaches {limit} at about {}",
                        hour((state.worst * 1000.0) as i64, state.seen)
                    ),
                }
            }
            (None, Condition::Increases { .. }) => {
                format!("{place}: {row} increased by {}", value_words(state.worst, unit))
            }
            _ => place,
        };
        more(state, &mut sentence);
        let event = rule.condition.is_event();
        let mut alert = alert(rule, what, state, Self::subject_of(host, series), self.labels(host, series), sentence);
        if !value {
            (alert.value, alert.worst) = (None, None);
        }
        if matches!(rule.condition, Condition::Reaches { .. }) {
            alert.worst = alert.value;
        }
        Transition { what, alert, event, flapping }
    }

    /// The transition of a group.
    pub(super) fn of_group(&self, group: &Group, what: What) -> Transition {
        let rule = &self.rules[group.rule as usize];
        let state = &group.state;
        let mut sentence = match &rule.threshold {
            Some(of) => threshold(of, what, state, &group.place, ""),
            None => group.place.clone(),
        };
        more(state, &mut sentence);
        let alert = alert(rule, what, state, group.key.clone(), group.labels.clone(), sentence);
        Transition { what, alert, event: false, flapping: state.flaps() }
    }

    pub(super) fn tell(&mut self, rule: usize, what: What, alert: Alert, flapping: bool) {
        let event = self.rules.get(rule).is_some_and(|r| r.condition.is_event());
        self.out.push(Transition { what, alert, event, flapping });
    }
}

/// The limit of a rule, for the placeholder; empty where it has none.
pub fn limit_of(condition: &Condition) -> String {
    match condition {
        Condition::Threshold(t) => limit_words(t.first.limit, t.first.value.unit()),
        Condition::Reaches { tag, limit, .. } => limit_words(*limit, tag.unit),
        Condition::RunIdle(_) | Condition::HeldIdle(_) => limit_words(5.0, Unit::Percent),
        _ => String::new(),
    }
}

/// Unit of the values of a rule's alerts.
pub fn unit_of(condition: &Condition) -> Unit {
    match condition {
        Condition::Threshold(t) => t.first.value.unit(),
        Condition::Reaches { tag, .. } | Condition::Increases { tag } => tag.unit,
        Condition::RunIdle(_) | Condition::HeldIdle(_) => Unit::Percent,
        _ => Unit::Count,
    }
}
