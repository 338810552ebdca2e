//! The list of findings: each cause followed by its consequences.

use crate::store::fleet::words::{count, thousands};
use charts::order;
use shared::finding::{Finding, Severity};
use std::cmp::Reverse;

/// Maximum number of rows in each part of the list.
const MAX_LISTED: usize = 200;

/// A row: the finding, and whether it is listed under its cause.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingRow {
    /// The finding.
    pub finding: Finding,
    /// Whether it is listed under its cause.
    pub follows: bool,
}

/// The rows of a part of the list: each cause followed by its consequences.
pub fn rows(all: &[Finding], open: bool) -> Vec<FindingRow> {
    let part: Vec<&Finding> = all.iter().filter(|one| one.until.is_none() == open).collect();
    let cause = |one: &Finding| one.because.as_ref().and_then(|id| part.iter().find(|other| other.id == *id));
    let mut roots: Vec<&Finding> = part.iter().copied().filter(|one| cause(one).is_none()).collect();
    if open {
        order::sort_by_key(&mut roots, |one| (one.dismissed.is_some(), Reverse(one.severity), one.since));
    } else {
        order::sort_by_key(&mut roots, |one| Reverse(one.told));
    }
    // Indirect consequences are listed under the first cause, too.
    let root_of = |one: &Finding| {
        let mut at = one.id.clone();
        for _ in 0..part.len() {
            match part.iter().find(|other| other.id == at).and_then(|now| cause(now)) {
                Some(before) => at = before.id.clone(),
                None => break,
            }
        }
        at
    };
    let mut found = Vec::new();
    for root in roots {
        found.push(FindingRow { finding: root.clone(), follows: false });
        let mut own: Vec<&Finding> =
            part.iter().copied().filter(|one| one.id != root.id && root_of(one) == root.id).collect();
        order::sort_by_key(&mut own, |one| one.since);
        found.extend(own.into_iter().map(|one| FindingRow { finding: one.clone(), follows: true }));
    }
    found.truncate(MAX_LISTED);
    found
}

/// Number of open findings: `2 open, 1 note`. Consequences and dismissed findings do not count.
pub fn gist(rows: &[FindingRow]) -> String {
    let own = || rows.iter().filter(|row| !row.follows && row.finding.dismissed.is_none());
    let notes = own().filter(|row| row.finding.severity == Severity::Note).count();
    let open = own().count() - notes;
    let open = if open > 0 { format!("{} open", thousands(open)) } else { String::new() };
    let notes = if notes > 0 { count(notes, "note", "notes") } else { String::new() };
    [open, notes].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, severity: Severity, since: i64, until: Option<i64>, because: Option<&str>) -> Finding {
        Finding {
            id: id.into(),
            kind: "hang".into(),
            rule: String::new(),
            severity,
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
            because: because.map(String::from),
            confidence: None,
            dismissed: None,
        }
    }

    #[test]
    fn what_follows_stands_under_its_cause_and_what_is_over_by_itself() {
        use Severity::{Critical, Note, Warning};
        let all = [
            finding("idle", Note, 1, None, None),
            finding("straggler", Warning, 12, None, Some("throttle")),
            finding("throttle", Warning, 10, None, Some("lost")),
            finding("lost", Critical, 9, None, None),
            finding("slow", Warning, 5, None, None),
            finding("old", Warning, 2, Some(3), Some("older")),
            finding("newer", Note, 4, Some(5), None),
        ];
        let said =
            |open: bool| rows(&all, open).iter().map(|row| (row.finding.id.clone(), row.follows)).collect::<Vec<_>>();
        let of =
            |list: &[(&str, bool)]| list.iter().map(|(id, follows)| (id.to_string(), *follows)).collect::<Vec<_>>();
        assert_eq!(
            said(true),
            of(&[("lost", false), ("throttle", true), ("straggler", true), ("slow", false), ("idle", false)])
        );
        assert_eq!(gist(&rows(&all, true)), "2 open, 1 note");
        assert_eq!((gist(&rows(&all[..1], true)), gist(&[])), ("1 note".into(), String::new()));
        assert_eq!(said(false), of(&[("newer", false), ("old", false)]));
    }

    #[test]
    fn a_circle_of_causes_ends() {
        let all = [
            finding("a", Severity::Warning, 1, None, Some("b")),
            finding("b", Severity::Warning, 2, None, Some("a")),
            finding("c", Severity::Warning, 3, None, None),
        ];
        assert_eq!(rows(&all, true).len(), 1, "neither is the first cause");
    }
}
