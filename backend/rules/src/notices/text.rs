//! What a notice says.

use crate::engine::{hour, lasted};
use shared::alert::{Alert, AlertState, MAX_NAMED, MAX_TEXT_BYTES, MAX_TITLE_BYTES, Notice, NoticeKind, Rule};
use shared::rule::{clean, fill, value_words};
use shared::unit::Unit;

/// The value of a placeholder.
pub fn value_of(name: &str, alert: &Alert, (limit, unit): (&str, Unit), count: u64, link: Option<&str>) -> String {
    let label = |key: &str| alert.labels.get(key).cloned().unwrap_or_default();
    match name {
        "rule" => alert.name.clone(),
        "severity" => alert.severity.word().into(),
        "state" => match alert.state {
            AlertState::Pending => "pending".into(),
            AlertState::Firing => "firing".into(),
            AlertState::Resolved => "resolved".into(),
        },
        "subject" => alert.subject.clone(),
        "run" => alert.labels.get("name").cloned().unwrap_or_else(|| label("run")),
        "source" | "project" | "rank" | "gpu" | "tag" => label(name),
        "value" => alert.value.map(|v| value_words(v, unit)).unwrap_or_default(),
        "limit" => limit.to_string(),
        "began" => hour(alert.began, alert.ended.or(alert.fired).unwrap_or(alert.began)),
        "duration" => lasted(alert.ended.or(alert.fired).unwrap_or(alert.began) - alert.began),
        "count" => count.to_string(),
        "link" => link.unwrap_or("").to_string(),
        _ => String::new(),
    }
}

/// Title and note of a notice about these alerts, the first of which is the worst.
pub fn title_and_note(rule: &Rule, alerts: &[&Alert], limit: (&str, Unit), link: Option<&str>) -> (String, String) {
    let Some(worst) = alerts.first() else { return (rule.name.clone(), String::new()) };
    let count = alerts.len() as u64;
    let value = |name: &str| value_of(name, worst, limit, count, link);
    let over = alerts.iter().all(|a| a.state == AlertState::Resolved);
    let own = match &rule.title {
        Some(title) => fill(title, value),
        None => worst.sentence.clone(),
    };
    let title = match (alerts.len(), over, &rule.title) {
        (1, false, _) => own,
        (1, true, _) => format!("Resolved: {own}"),
        (n, false, _) => {
            let over = alerts.iter().filter(|a| a.state == AlertState::Resolved).count();
            let fire = n - over;
            let over = if over > 0 { format!(", {over} over") } else { String::new() };
            format!("{}: {fire} firing{over}; {own}", worst.name)
        }
        (n, true, _) => format!("Resolved: {}, all {n}", worst.name),
    };
    let note = rule.note.as_ref().map(|note| fill(note, value)).unwrap_or_default();
    (clean(&title, MAX_TITLE_BYTES, false), clean(&note, MAX_TEXT_BYTES, true))
}

/// Two notices of one group, of which the first still waits, as one: the newest state, all alerts, the first time.
pub fn fold(old: &Notice, new: &Notice) -> Notice {
    let mut one = new.clone();
    one.at = old.at;
    let missing = old.alerts.iter().filter(|a| !new.alerts.iter().any(|b| b.id == a.id));
    one.alerts.extend(missing.cloned());
    let further = one.alerts.len().saturating_sub(MAX_NAMED);
    one.alerts.truncate(MAX_NAMED);
    one.more = new.more.max(old.more) + further as u64;
    one.severity = new.severity.max(old.severity);
    for (rule, count) in &old.counts {
        match one.counts.iter_mut().find(|(name, _)| name == rule) {
            Some((_, sum)) => *sum += count,
            None => one.counts.push((rule.clone(), *count)),
        }
    }
    if new.kind == NoticeKind::Resolved && old.kind == NoticeKind::Firing {
        let first = one.alerts.iter().filter_map(|a| a.fired).min().unwrap_or(old.at * 1000);
        let last = one.alerts.iter().filter_map(|a| a.ended).max().unwrap_or(new.at * 1000);
        let was = format!(" (was firing {}–{})", &hour(first, last)[..5], hour(last, last));
        let room = MAX_TITLE_BYTES.saturating_sub(was.len());
        one.title = clean(&one.title, room, false) + &was;
    }
    one
}
