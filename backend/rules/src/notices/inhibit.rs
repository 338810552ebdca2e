//! Suppressed alerts: inhibited by another alert that explains them, or silenced by a user.

use super::Notices;
use shared::alert::{Alert, AlertState, Silence};
use shared::catalog::glob;
use shared::rule::Nature;
use shared::xid::OFF_THE_BUS;

/// Scope of an inhibition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holds {
    /// Alerts of a machine.
    Source(String),
    /// Alerts of a run.
    Run(String),
    /// Alerts of a GPU: machine and number.
    Gpu(String, String),
}

impl Notices {
    /// Scope that an alert inhibits; None: it inhibits nothing.
    pub(super) fn holds(&self, alert: &Alert) -> Option<Holds> {
        if alert.state != AlertState::Firing {
            return None;
        }
        let label = |key: &str| alert.labels.get(key).cloned();
        match self.nature(alert) {
            Nature::SourceLost => label("source").map(Holds::Source),
            Nature::Run if self.rules.get(&alert.rule).is_some_and(|k| k.crash) => label("run").map(Holds::Run),
            Nature::Xid if alert.labels.get("xid").is_some_and(|xid| *xid == OFF_THE_BUS.to_string()) => {
                Some(Holds::Gpu(label("source")?, label("gpu")?))
            }
            _ => None,
        }
    }

    pub(super) fn put_holder(&mut self, id: &str, holds: Option<Holds>) {
        if self.holders.get(id) == holds.as_ref() {
            return;
        }
        if let Some(before) = self.holders.remove(id)
            && let Some(ids) = self.inhibitors.get_mut(&before)
        {
            ids.remove(id);
            if ids.is_empty() {
                self.inhibitors.remove(&before);
            }
        }
        if let Some(holds) = holds {
            self.inhibitors.entry(holds.clone()).or_default().insert(id.to_string());
            self.holders.insert(id.to_string(), holds);
        }
    }

    /// The alert that inhibits an alert.
    fn inhibitor(&self, alert: &Alert) -> Option<&Alert> {
        let label = |key: &str| alert.labels.get(key).cloned();
        let nature = self.nature(alert);
        let all = match nature {
            Nature::SourceLost | Nature::Run | Nature::Code => return None,
            _ => [
                label("source").map(Holds::Source),
                label("run").map(Holds::Run).filter(|_| matches!(nature, Nature::Missing | Nature::Idle)),
                label("source").zip(label("gpu")).map(|(s, g)| Holds::Gpu(s, g)).filter(|_| nature == Nature::Missing),
            ],
        };
        let ids = all.iter().flatten().filter_map(|whose| self.inhibitors.get(whose)).flatten();
        ids.filter_map(|id| self.alerts.get(id)).map(|live| &live.alert).find(|other| other.id != alert.id)
    }

    /// Reason for suppressing an alert now; None: it is not suppressed.
    pub(super) fn holds_back(&self, alert: &Alert, now: i64) -> Option<(String, Option<String>)> {
        if let Some(inhibitor) = self.inhibitor(alert) {
            return Some((format!("inhibited: {}", inhibitor.sentence), None));
        }
        let silence = self.silences.iter().find(|s| s.from * 1000 <= now && now < s.to * 1000 && silences(s, alert))?;
        let by = if silence.by.is_empty() { String::new() } else { format!(" by {}", silence.by) };
        let until = crate::engine::hour(silence.to * 1000, now);
        Some((format!("silenced{by} until {until}"), Some(silence.id.clone())))
    }

    /// Checks whether an alert is suppressed, and records it.
    pub(super) fn judge(&mut self, id: &str, now: i64) -> bool {
        let Some(live) = self.alerts.get(id) else { return true };
        let why = self.holds_back(&live.alert, now);
        let (text, silence) = why.map_or((String::new(), None), |(text, silence)| (text, silence));
        let held = !text.is_empty();
        let Some(live) = self.alerts.get_mut(id) else { return true };
        if live.alert.held != text {
            live.alert.held.clone_from(&text);
            self.held.insert(id.to_string(), text);
        }
        if silence.is_some() && live.silence != silence {
            *self.held_back.entry(silence.clone().unwrap_or_default()).or_default() += 1;
            live.silence = silence;
        }
        held
    }

    /// Alerts whose reason for suppression changed since the last call, with the reason; empty: no longer suppressed.
    pub fn held(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.held).into_iter().collect()
    }

    /// Number of further alerts that each silence suppressed since the last call.
    pub fn held_back(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.held_back).into_iter().collect()
    }
}

/// Whether a silence matches an alert.
pub(super) fn silences(silence: &Silence, alert: &Alert) -> bool {
    !silence.matches.is_empty()
        && silence.matches.iter().all(|(key, pattern)| match key.as_str() {
            // The id of a team's rule ends with `@` and the team.
            "rule" => glob(pattern, &alert.name) || alert.rule.split('@').next() == Some(pattern),
            "severity" => glob(pattern, alert.severity.as_str()),
            "subject" => glob(pattern, &alert.subject),
            "title" => glob(pattern, &alert.sentence) || alert.labels.get("title").is_some_and(|t| glob(pattern, t)),
            key => alert.labels.get(key).is_some_and(|value| glob(pattern, value)),
        })
}
