//! Texts of findings, without a clock.

use crate::store::fleet::words::count;
use shared::finding::{Finding, Place, Severity};
use shared::unit::{number, rough_duration};

/// Splits a sentence after its first clause: at the first semicolon or colon, else at the first comma.
pub fn split(sentence: &str) -> (String, String) {
    let first = |marks: &[&str]| marks.iter().filter_map(|mark| sentence.find(mark)).min();
    match first(&["; ", ": "]).or_else(|| first(&[", "])) {
        Some(at) => (sentence[..=at].into(), sentence[at + 2..].into()),
        None => (sentence.into(), String::new()),
    }
}

/// The kind of a finding in words: `slow link`.
pub fn kind(kind: &str) -> String {
    match kind {
        "lost_gpu" => "lost GPU".into(),
        "gpu_memory" => "GPU memory".into(),
        "ecc" => "memory errors".into(),
        other => other.replace('_', " "),
    }
}

/// Class and character of the shape of a severity. A past one that is not critical has the shape of a healthy state.
pub fn shape(severity: Severity, over: bool) -> (&'static str, &'static str) {
    match (severity, over) {
        (Severity::Critical, _) => ("shape is-bad", "■"),
        (_, true) => ("shape is-ok", "●"),
        (Severity::Warning, false) => ("shape is-warn", "▲"),
        (Severity::Note, false) => ("shape is-unknown", "◌"),
    }
}

/// The shape of a finding; a dismissed one has the shape of an unknown state.
pub fn shape_of(finding: &Finding) -> (&'static str, &'static str) {
    match finding.dismissed {
        Some(_) => shape(Severity::Note, false),
        None => shape(finding.severity, finding.until.is_some()),
    }
}

/// Duration so far, or in total; `now` is ms since the epoch.
pub fn lasted(finding: &Finding, now: i64) -> String {
    rough_duration(finding.until.map_or(now, |until| until * 1_000) - finding.since * 1_000)
}

/// Minimum and maximum time shown before the start of a finding, ms. Between them it is a third of the duration.
const BEFORE_MS: (i64, i64) = (60_000, 1_800_000);

/// The span of charts that shows its start; `now` is ms since the epoch.
pub fn span(finding: &Finding, now: i64) -> (i64, i64) {
    let since = finding.since * 1_000;
    let end = finding.until.map_or(now, |until| until * 1_000).max(since);
    let margin = ((end - since) / 3).clamp(BEFORE_MS.0, BEFORE_MS.1);
    let to = if finding.until.is_some() { (end + margin).min(now) } else { end };
    (since - margin, to)
}

/// Numbers as ranges: `0–2, 5`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *n => *last = *n,
            _ => parts.push((*n, *n)),
        }
    }
    let part = |(a, b): (u32, u32)| match b - a {
        0 => a.to_string(),
        1 => format!("{a}, {b}"),
        _ => format!("{a}–{b}"),
    };
    parts.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// A machine or some of its GPUs: `GPU 3 of node-7`.
pub fn place(place: &Place) -> String {
    match place.gpus.len() {
        0 => place.source.clone(),
        1 => format!("GPU {} of {}", place.gpus[0], place.source),
        _ => format!("GPUs {} of {}", ranges(&place.gpus), place.source),
    }
}

/// The affected GPUs: `63 GPUs on 8 machines wait for it`; empty if there are none.
pub fn waits(finding: &Finding) -> String {
    let over = finding.until.is_some();
    let gpus: usize = finding.affects.iter().map(|place| place.gpus.len()).sum();
    let who = match &finding.affects[..] {
        [] => return String::new(),
        [one] if (1..=8).contains(&gpus) => place(one),
        [one] if gpus > 0 => format!("{} of {}", count(gpus, "GPU", "GPUs"), one.source),
        [one] => one.source.clone(),
        several if gpus == 0 => count(several.len(), "machine", "machines"),
        several => format!("{} on {} machines", count(gpus, "GPU", "GPUs"), several.len()),
    };
    let one = gpus == 1 || (gpus == 0 && finding.affects.len() == 1);
    match (over, one) {
        (true, _) => format!("{who} waited for it"),
        (false, true) => format!("{who} is waiting for it"),
        (false, false) => format!("{who} are waiting for it"),
    }
}

/// A device with its machine: `GPU 3 of node-7`.
pub fn device(label: &str, source: &str) -> String {
    if label.is_empty() { source.to_string() } else { format!("{label} of {source}") }
}

/// Confidence, as measured on labeled data.
pub fn sure(confidence: Option<f64>) -> String {
    match confidence {
        Some(share) => {
            format!("Precision on the labeled test set: at least {} %.", number((share * 1_000.0).round() / 10.0))
        }
        None => "The labeled test set has too few cases of this rule.".into(),
    }
}

/// Number of further ones: `and 2 more`.
pub fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!("and {others} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clause_ends_at_its_mark_and_never_within_a_time() {
        let said = |sentence: &str| {
            let (head, rest) = split(sentence);
            format!("{head}|{rest}")
        };
        assert_eq!(
            said("All 8 ranks stalled since 14:03: use 100 %, power 21 %."),
            "All 8 ranks stalled since 14:03:|use 100 %, power 21 %."
        );
        assert_eq!(
            said("GPU 3 fell off at 14:03 (XID 79); 63 GPUs wait."),
            "GPU 3 fell off at 14:03 (XID 79);|63 GPUs wait."
        );
        assert_eq!(said("It is slow, 12 of 99."), "It is slow,|12 of 99.");
        assert_eq!((said("It is slow."), said("")), ("It is slow.|".into(), "|".into()));
    }

    #[test]
    fn charts_show_how_it_began_with_a_third_before_and_a_minute_at_least() {
        let of = |since: i64, until: Option<i64>, now: i64| {
            let nothing = Finding {
                id: String::new(),
                kind: String::new(),
                rule: String::new(),
                severity: Severity::Note,
                subject: Vec::new(),
                affects: Vec::new(),
                device: None,
                since,
                told: since,
                until,
                sentence: String::new(),
                sentence_template: None,
                next: String::new(),
                user: None,
                evidence: Vec::new(),
                changed: Vec::new(),
                because: None,
                confidence: None,
                dismissed: None,
            };
            span(&nothing, now)
        };
        assert_eq!(of(1_000, None, 1_030_000), (940_000, 1_030_000));
        assert_eq!(of(1_000, None, 1_600_000), (800_000, 1_600_000));
        assert_eq!(of(10_000, Some(10_060), 10_070_000), (9_940_000, 10_070_000), "not beyond now");
    }

    #[test]
    fn who_waits_is_counted_in_devices_and_machines() {
        let place = |source: &str, gpus: &[u32]| Place { source: source.into(), gpus: gpus.into() };
        let of = |affects: Vec<Place>, until: Option<i64>| {
            let finding = Finding {
                id: String::new(),
                kind: String::new(),
                rule: String::new(),
                severity: Severity::Note,
                subject: Vec::new(),
                affects,
                device: None,
                since: 0,
                told: 0,
                until,
                sentence: String::new(),
                sentence_template: None,
                next: String::new(),
                user: None,
                evidence: Vec::new(),
                changed: Vec::new(),
                because: None,
                confidence: None,
                dismissed: None,
            };
            waits(&finding)
        };
        assert_eq!(of(vec![], None), "");
        assert_eq!(of(vec![place("a", &[3])], None), "GPU 3 of a is waiting for it");
        assert_eq!(of(vec![place("a", &[0, 1, 2, 4, 5, 7])], None), "GPUs 0–2, 4, 5, 7 of a are waiting for it");
        assert_eq!(of(vec![place("a", &[0, 1]), place("b", &[0])], Some(9)), "3 GPUs on 2 machines waited for it");
        assert_eq!(of(vec![place("a", &[]), place("b", &[])], None), "2 machines are waiting for it");
        assert_eq!(of(vec![place("a", &[])], None), "a is waiting for it");
    }

    #[test]
    fn how_sure_it_is_is_said_in_words_and_not_where_it_was_not_measured() {
        assert!(sure(Some(0.9834)).contains("at least 98.3 %"));
        assert!(!sure(None).contains('%'));
        assert_eq!((device("GPU 3", "node-7"), device("", "node-7")), ("GPU 3 of node-7".into(), "node-7".into()));
    }

    #[test]
    fn what_is_alone_has_nothing_behind_it() {
        assert_eq!((more(0), more(2)), (String::new(), "and 2 more".into()));
    }
}
