//! Texts of notices.

use crate::engine::{hour, hour_without_zone};
use shared::alert::{Alert, AlertState, MAX_NAMED, MAX_TEXT_BYTES, MAX_TITLE_BYTES, Notice, NoticeKind, Rule};
use shared::rule::{clean, fill, value_words};
use shared::unit::{Unit, rough_duration};
use std::collections::BTreeSet;

/// The value of a placeholder.
pub fn value_of(name: &str, alert: &Alert, (limit, unit): (&str, Unit), count: u64, link: Option<&str>) -> String {
    let label = |key: &str| alert.labels.get(key).cloned().unwrap_or_default();
    match name {
        "rule" => alert.name.clone(),
        "severity" => alert.severity.as_str().into(),
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
        "duration" => rough_duration(alert.ended.or(alert.fired).unwrap_or(alert.began) - alert.began),
        "count" => count.to_string(),
        "link" => link.unwrap_or("").to_string(),
        _ => String::new(),
    }
}

/// Title and note of a notice about these alerts, the first of which is the worst. `is_news`: one of them was in no
/// notice before.
pub fn title_and_note(
    rule: &Rule,
    alerts: &[&Alert],
    is_news: bool,
    (limit, link): ((&str, Unit), Option<&str>),
) -> (String, String) {
    let Some(worst) = alerts.first() else { return (rule.name.clone(), String::new()) };
    let count = alerts.len() as u64;
    let value = |name: &str| value_of(name, worst, limit, count, link);
    let over = alerts.iter().all(|a| a.state == AlertState::Resolved);
    let own = match &rule.title {
        Some(title) => fill(title, value),
        None => worst.sentence.clone(),
    };
    let title = match (alerts.len(), over) {
        (1, false) => own,
        // An end alone would leave open what has fired.
        (1, true) if is_news => with_span(&own, alerts.iter().copied()),
        (n, true) if is_news => with_span(&format!("{}: {n} fired; {own}", worst.name), alerts.iter().copied()),
        (1, true) => format!("{RESOLVED}{own}"),
        (n, false) => {
            let over = alerts.iter().filter(|a| a.state == AlertState::Resolved).count();
            let fire = n - over;
            let over = if over > 0 { format!(", {over} resolved") } else { String::new() };
            format!("{}: {fire} firing{over}; {own}", worst.name)
        }
        (n, true) => format!("{RESOLVED}{}, all {n}", worst.name),
    };
    let note = rule.note.as_ref().map(|note| fill(note, value)).unwrap_or_default();
    (clean(&title, MAX_TITLE_BYTES, false), clean(&note, MAX_TEXT_BYTES, true))
}

/// A title with the time in which these alerts fired.
fn with_span<'a>(title: &str, alerts: impl Iterator<Item = &'a Alert> + Clone) -> String {
    let first = alerts.clone().filter_map(|a| a.fired).min().unwrap_or_default();
    let last = alerts.filter_map(|a| a.ended).max().unwrap_or(first);
    let was = format!("{WAS}{}–{})", hour_without_zone(first, last), hour(last, last));
    // An earlier merge may already have added this text with a shorter time.
    let title = match title.rfind(WAS) {
        Some(at) if title.ends_with(')') => &title[..at],
        _ => title,
    };
    clean(title, MAX_TITLE_BYTES.saturating_sub(was.len()), false) + &was
}

/// Group of the notices that contain all firing alerts.
pub const STANDING: &str = "standing";

/// Maximum bytes of alerts in such a notice: with the rest of it and JSON escapes, it stays under 128 KiB.
pub const STANDING_BYTES: usize = 96 * 1024;

/// Begin of the title of a notice about an end.
const RESOLVED: &str = "Resolved: ";

/// End of a sentence with the time of firing.
const WAS: &str = " (was firing ";

/// Approximate size of an alert as JSON, bytes.
pub fn bytes_of(alert: &Alert) -> usize {
    let labels: usize = alert.labels.iter().map(|(key, value)| escaped(key) + escaped(value) + 6).sum();
    let own = [&alert.sentence, &alert.text, &alert.name, &alert.subject, &alert.rule, &alert.held];
    let acked = alert.acked.as_ref().map_or(0, |by| escaped(&by.by) + 40);
    own.into_iter().map(|text| escaped(text)).sum::<usize>() + labels + acked + 400
}

fn escaped(text: &str) -> usize {
    let of = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(of).sum()
}

/// Merges a notice with the older ones of its group that are still queued, newest first. If an alert was in none that was
/// sent, the result says that it fired, also if it has ended.
pub fn fold_all(new: &Notice, older: impl Iterator<Item = Notice>) -> Notice {
    let mut is_news = false;
    let mut one = older.fold(new.clone(), |new, old| {
        is_news |= old.kind == NoticeKind::Firing;
        fold(&old, &new)
    });
    if is_news && one.kind == NoticeKind::Resolved {
        one.kind = NoticeKind::Firing;
        one.title = one.title.strip_prefix(RESOLVED).unwrap_or(&one.title).into();
    }
    one
}

/// Merges two notices of one group while the first is still queued: newest state, all alerts, first time. With more
/// than two, the newest two are merged first, then the next older one as `old`: newer data wins.
pub fn fold(old: &Notice, new: &Notice) -> Notice {
    let mut one = new.clone();
    let known: BTreeSet<&str> = new.alerts.iter().map(|alert| alert.id.as_str()).collect();
    let missing = old.alerts.iter().filter(|alert| !known.contains(alert.id.as_str()));
    if new.group == STANDING {
        // The newer one has all firing alerts; the older one only adds ends.
        let mut bytes: usize = new.alerts.iter().map(bytes_of).sum();
        for over in missing.filter(|alert| alert.state == AlertState::Resolved) {
            bytes += bytes_of(over);
            if bytes > STANDING_BYTES {
                break;
            }
            one.alerts.push(over.clone());
        }
        return one;
    }
    one.at = old.at.min(new.at);
    // Once all have ended, alerts that fire in an older notice are stale.
    let (stays, stale): (Vec<_>, Vec<_>) =
        missing.partition(|alert| new.kind != NoticeKind::Resolved || alert.state == AlertState::Resolved);
    one.alerts.extend(stays.into_iter().cloned());
    let further = one.alerts.len().saturating_sub(MAX_NAMED) + stale.len();
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
        one.title = with_span(&one.title, old.alerts.iter().chain(&new.alerts));
    }
    one
}
