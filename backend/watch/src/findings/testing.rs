//! Findings for tests, of this crate and of those that depend on it.

use shared::finding::{Finding, Place, Severity};

/// A warning of one card, between these times, seconds; without an end it is open.
pub fn finding(kind: &str, source: &str, since: i64, until: Option<i64>) -> Finding {
    Finding {
        id: format!("{kind}:{source}:0:{since}"),
        kind: kind.into(),
        rule: format!("{kind}.one"),
        severity: Severity::Warning,
        subject: vec![Place { source: source.into(), gpus: vec![0] }],
        affects: Vec::new(),
        device: None,
        since,
        told: since + 60,
        until,
        sentence: format!("{source} is wrong since {{since}}"),
        sentence_template: None,
        next: String::new(),
        user: None,
        evidence: Vec::new(),
        changed: Vec::new(),
        because: None,
        confidence: None,
        dismissed: None,
    }
}
