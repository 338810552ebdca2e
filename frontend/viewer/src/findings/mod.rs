//! Findings of the machines, as last received: the leading ones of a page, and their marks in charts.
//!
//! [`list`] has the order of findings, [`words`] their texts, [`rules`] the state of the rules, and [`evidence`] the
//! data of a finding's charts.

pub mod evidence;
pub mod list;
pub mod rules;
pub mod words;

use charts::marks::CellMark;
use charts::order;
use shared::alert::Alert;
use shared::finding::{Finding, RuleState, Severity};
use std::cmp::Reverse;
use std::rc::Rc;

/// An instant later than all drawn ones, ms since the epoch.
const FAR_FUTURE: i64 = i64::MAX / 4;

/// Present and past findings, as last received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The machine of the request; empty for all.
    pub machine: String,
    /// All findings, newest first.
    pub all: Vec<Finding>,
    /// State of each rule.
    pub rules: Vec<RuleState>,
    /// False until the first answer.
    pub known: bool,
    /// True if the server denies access.
    pub refused: bool,
}

impl Findings {
    /// The leading findings among those that `shown` accepts: the most severe first, then those without a cause, then
    /// the oldest. Notes and dismissed findings are excluded.
    pub fn leading(&self, shown: impl Fn(&Finding) -> bool) -> Vec<&Finding> {
        let mut found: Vec<&Finding> = self
            .all
            .iter()
            .filter(|one| one.severity > Severity::Note && one.dismissed.is_none() && shown(one))
            .collect();
        order::sort_by_key(&mut found, |one| (Reverse(one.severity), one.because.is_some(), one.since));
        // A consequence is reported with its cause, if that is in the list.
        let follows = |one: &Finding| one.because.as_ref().is_some_and(|id| found.iter().any(|root| root.id == *id));
        let own: Vec<&Finding> = found.iter().copied().filter(|one| !follows(one)).collect();
        if own.is_empty() { found } else { own }
    }

    /// Whether it belongs to this machine, or affects it.
    pub fn of_machine(finding: &Finding, machine: &str) -> bool {
        let named = finding.subject.iter().chain(&finding.affects);
        machine.is_empty() || named.into_iter().any(|place| place.source == machine)
    }

    /// Whether an alert is about one of them, so that it repeats the finding.
    pub fn is_about_one(&self, alert: &Alert) -> bool {
        self.all.iter().any(|one| one.id == alert.subject)
    }

    /// Marks for charts, in order of time: a hairline at the start of each finding, and its duration.
    pub fn marks(&self) -> Rc<[CellMark]> {
        let found = self.leading(|one| Findings::of_machine(one, &self.machine));
        let mut marks: Vec<CellMark> = found.into_iter().map(|one| mark(one, false)).collect();
        order::sort_by_key(&mut marks, |mark| mark.from);
        marks.into()
    }
}

/// Whether it reports the end of a job. It leads its machine's page until the user has seen it, also after its end.
pub fn is_end(finding: &Finding) -> bool {
    finding.rule.ends_with(".ended")
}

/// A finding as a mark in charts; with `strong` its time has a background.
pub fn mark(finding: &Finding, strong: bool) -> CellMark {
    CellMark {
        from: finding.since * 1_000,
        to: finding.until.map_or(FAR_FUTURE, |until| until * 1_000),
        name: finding.kind.replace('_', " "),
        failed: finding.severity == Severity::Critical,
        strong,
        fault: true,
    }
}

/// New marks, and those of `before` outside of the new marks' span, so that keys can return to them.
pub fn with_others(told: &[CellMark], before: &[CellMark], (from, to): (i64, i64)) -> Rc<[CellMark]> {
    let is_told = |mark: &CellMark| told.iter().any(|other| (other.from, &other.name) == (mark.from, &mark.name));
    let others = before.iter().filter(|mark| (mark.from > to || mark.to < from) && !is_told(mark));
    let mut all: Vec<CellMark> = told.iter().chain(others).cloned().collect();
    order::sort_by_key(&mut all, |mark| mark.from);
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::finding::Place;

    fn finding(id: &str, severity: Severity, since: i64, because: Option<&str>) -> Finding {
        Finding {
            id: id.into(),
            kind: "lost_gpu".into(),
            rule: String::new(),
            severity,
            subject: vec![Place { source: "a".into(), gpus: vec![3] }],
            affects: Vec::new(),
            device: None,
            since,
            told: since,
            until: None,
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

    fn findings(all: Vec<Finding>) -> Findings {
        Findings { all, known: true, ..Findings::default() }
    }

    #[test]
    fn the_most_severe_leads_then_what_follows_from_nothing_then_the_oldest() {
        use Severity::{Critical, Note, Warning};
        let ids = |all: &Findings| all.leading(|_| true).iter().map(|one| one.id.clone()).collect::<Vec<_>>();
        let all = findings(vec![
            finding("late", Warning, 30, None),
            finding("old", Warning, 10, None),
            finding("note", Note, 1, None),
            finding("follows", Critical, 5, Some("worst")),
            finding("worst", Critical, 20, None),
        ]);
        assert_eq!(ids(&all), ["worst", "old", "late"], "a consequence is told with its cause, a note nowhere");
        let mut wrong = finding("wrong", Critical, 1, None);
        wrong.dismissed = Some(shared::finding::Dismissed { at: 2, by: "ada".into(), why: "no".into() });
        assert_eq!(ids(&findings(vec![wrong, finding("old", Warning, 10, None)])), ["old"]);
        let of_other = findings(vec![finding("follows", Critical, 5, Some("of another machine"))]);
        assert_eq!(ids(&of_other), ["follows"], "where its cause is not here, it leads itself");
        assert_eq!(ids(&findings(vec![finding("note", Note, 1, None)])), [""; 0]);
    }

    #[test]
    fn marks_outside_of_the_span_that_was_told_of_stay_and_those_in_it_are_as_told() {
        let marks = |list: &[(&str, i64, i64)]| -> Vec<CellMark> {
            let all = list.iter().map(|(kind, since, until)| {
                let mut one = finding(kind, Severity::Warning, *since, None);
                (one.kind, one.until) = ((*kind).into(), Some(*until));
                mark(&one, false)
            });
            all.collect()
        };
        let before = marks(&[("hang", 10, 20), ("throttle", 50, 60), ("ecc", 90, 95)]);
        let kept = with_others(&marks(&[("idle", 52, 58)]), &before, (40_000, 80_000));
        let names: Vec<&str> = kept.iter().map(|mark| mark.name.as_str()).collect();
        assert_eq!(names, ["hang", "idle", "ecc"], "what was in the span is no more, as it was not told");
        assert_eq!(with_others(&before, &before, (40_000, 80_000)).len(), 3);
    }

    #[test]
    fn charts_draw_each_that_leads_in_order_of_time() {
        let mut over = finding("over", Severity::Warning, 30, None);
        over.until = Some(50);
        let marks = findings(vec![over, finding("open", Severity::Critical, 10, None)]).marks();
        let drawn: Vec<(i64, i64, &str)> = marks.iter().map(|m| (m.from, m.to, m.name.as_str())).collect();
        assert_eq!(drawn, [(10_000, FAR_FUTURE, "lost gpu"), (30_000, 50_000, "lost gpu")]);
        assert!(marks.iter().all(|mark| mark.fault && !mark.strong));
    }
}
