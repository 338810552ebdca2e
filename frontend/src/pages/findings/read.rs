//! What the server says of findings.

use crate::fetch::Json;
use shared::date;
use shared::finding::{Change, Dismissed, Evidence, Finding, Place, RuleState, Severity, Watch};

fn places(json: &Json) -> Vec<Place> {
    let gpus = |place: &Json| place.get("gpus").list().iter().filter_map(Json::number).map(|n| n as u32).collect();
    json.list().iter().map(|place| Place { source: place.get("source").text(), gpus: gpus(place) }).collect()
}

fn integer(json: &Json) -> Option<i64> {
    json.number().map(|number| number as i64)
}

fn evidence(json: &Json) -> Option<Evidence> {
    Some(Evidence {
        tag: json.get("tag").text(),
        source: json.get("source").text(),
        instance: json.get("instance").text(),
        words: json.get("words").text(),
        value: json.get("value").number(),
        level: json.get("level").number(),
        from: integer(&json.get("from"))?,
        to: integer(&json.get("to"))?,
    })
}

fn change(json: &Json) -> Option<Change> {
    Some(Change {
        source: json.get("source").text(),
        tag: json.get("tag").text(),
        instance: json.get("instance").text(),
        before: json.get("before").number()?,
        after: json.get("after").number()?,
        score: json.get("score").number().unwrap_or(0.0),
        first: json.get("first").is_true(),
    })
}

/// Reads what was said against a finding; None where it is nothing.
pub fn dismissed(json: &Json) -> Option<Dismissed> {
    Some(Dismissed { at: integer(&json.get("at"))?, by: json.get("by").text(), why: json.get("why").maybe()? })
}

/// Reads a finding; None where it is none. Its onset, which the server wrote in UTC, stands in its sentence as a place again,
/// for a time in the zone of the reader.
pub fn finding(json: &Json) -> Option<Finding> {
    let text = |name: &str| json.get(name).text();
    let severity = [Severity::Note, Severity::Warning, Severity::Critical]
        .into_iter()
        .find(|severity| severity.word() == text("severity"))?;
    let since = integer(&json.get("since"))?;
    let onset = format!("{} UTC", date::text(since * 1_000).get(11..16).unwrap_or_default());
    Some(Finding {
        id: json.get("id").maybe()?,
        kind: text("kind"),
        rule: text("rule"),
        severity,
        subject: places(&json.get("subject")),
        affects: places(&json.get("affects")),
        device: json.get("device").maybe(),
        since,
        told: integer(&json.get("told")).unwrap_or(since),
        until: integer(&json.get("until")),
        sentence: text("sentence").replace(&onset, "{since}"),
        evidence: json.get("evidence").list().iter().filter_map(evidence).collect(),
        changed: json.get("changed").list().iter().filter_map(change).collect(),
        because: json.get("because").maybe(),
        confidence: json.get("confidence").number(),
        dismissed: dismissed(&json.get("dismissed")),
    })
}

/// Reads what a rule can see.
pub fn rule(json: &Json) -> Option<RuleState> {
    let state = match json.get("state").text().as_str() {
        "watching" => Watch::Watching,
        "weaker" => Watch::Weaker,
        "needs" => Watch::Needs,
        _ => return None,
    };
    Some(RuleState { rule: json.get("rule").maybe()?, state, words: json.get("words").text() })
}
