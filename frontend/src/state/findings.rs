//! Findings of the machines on the page: the one that leads it, and the marks in its charts.

use super::Page;
use super::notes::mark as note_mark;
use crate::store::Changed;
use crate::store::fleet::words::Checked;
use charts::marks::CellMark;
use leptos::prelude::*;
use shared::alert::Alert;
use shared::finding::Finding;
use std::rc::Rc;
use viewer::alerts::AlertStand;
use viewer::findings::evidence::Subjects;
pub use viewer::findings::{Findings, mark};
use viewer::findings::{is_end, with_others};

/// Most charts that a finding puts first.
const MAX_PROOFS: usize = 4;

impl Page {
    /// Stores the server's response about findings.
    pub fn set_findings(self, new: Findings) {
        if self.findings.with_untracked(|old| *old != new) {
            let same = self.findings.with_untracked(|old| old.machine == new.machine);
            let before = if same { self.faults.get_value() } else { Rc::default() };
            self.faults.set_value(with_others(&new.marks(), &before, self.span()));
            self.findings.set(new);
            self.redraw();
        }
    }

    /// Whether the findings and alerts of all machines are known.
    pub fn checked(self) -> Checked {
        let untold = self.over.get() || self.view.with(|view| view.share.is_some());
        let (found, refused) =
            self.findings.with(|findings| (findings.known && findings.machine.is_empty(), findings.refused));
        self.alerts.with(|told| match (found, told.known) {
            _ if untold || refused || told.refused => Checked::Untold,
            (true, true) => Checked::Told(told.firing),
            _ => Checked::Asked,
        })
    }

    /// Whether a finding counts for what the page shows: on a live page those that are open now and ends not yet seen,
    /// in a recording those open at its clock, in a fixed span all that were open in it.
    fn counts(self, finding: &Finding) -> bool {
        let (since, until) = (finding.since * 1_000, finding.until.map_or(i64::MAX, |until| until * 1_000));
        match (self.view.with(|view| view.frozen), self.player.with(|player| player.as_ref().map(|p| p.t))) {
            (Some((from, to)), _) => since <= to && until >= from,
            (None, Some(t)) => finding.told * 1_000 <= t && t < until,
            (None, None) => finding.until.is_none() || (is_end(finding) && !self.is_dismissed(&finding.id)),
        }
    }

    /// The finding that leads the page, and how many more would.
    pub fn leads(self) -> Option<(Finding, usize)> {
        self.findings.with(|findings| {
            let of_here = |one: &Finding| self.counts(one) && Findings::of_machine(one, &findings.machine);
            let found = findings.leading(of_here);
            found.first().map(|first| ((*first).clone(), found.len() - 1))
        })
    }

    /// The open findings, the earliest first; a consequence is reported with its cause.
    pub fn open_findings(self) -> Vec<Finding> {
        self.findings.with(|findings| findings.leading(|one| one.until.is_none()).into_iter().cloned().collect())
    }

    /// Number of firing alerts without those about a finding of the page, which are counted with it.
    pub fn firing_beside_findings(self) -> usize {
        let about = self.findings.with(|findings| {
            let fires = |one: &&Alert| AlertStand::from_alert(one) == AlertStand::Firing && findings.is_about_one(one);
            self.alerts.with(|told| told.open.iter().filter(fires).count())
        });
        (self.alerts.with(|told| told.firing) as usize).saturating_sub(about)
    }

    /// All that would lead a page of all machines, the first first.
    pub fn all_leading(self) -> Vec<Finding> {
        self.findings.with(|findings| findings.leading(|one| self.counts(one)).into_iter().cloned().collect())
    }

    /// Marks the subjects of a finding in charts and tiles, and moves the charts that prove it to the front.
    pub fn set_subjects(self, subjects: Subjects) {
        if self.subjects.with_value(|old| **old != subjects) {
            self.subjects.set_value(subjects.into());
            self.changed(Changed { plan: true, ..Changed::default() });
        }
    }

    /// Ids of the charts that prove the finding on the page, the strongest proof first. Beside a notebook its own
    /// charts come first.
    pub fn proof(self) -> Vec<String> {
        if self.view.with_untracked(|view| view.kernel.is_some()) {
            return Vec::new();
        }
        let (store, subjects) = (self.store.read_value(), self.subjects.get_value());
        let metric = |tag: &str| store.catalog.metrics.get(usize::from(store.catalog.position(tag)?));
        let mut charts: Vec<String> = Vec::new();
        for metric in subjects.tags().filter_map(metric) {
            if charts.len() < MAX_PROOFS && !charts.contains(&metric.chart) {
                charts.push(metric.chart.clone());
            }
        }
        charts
    }

    /// The finding that leads the page, without tracking its changes.
    pub(super) fn lead(self) -> Option<Finding> {
        untrack(|| self.leads()).map(|(finding, _)| finding)
    }

    /// The mark of the charts that begins next after an instant, or the last before it, ms since the epoch.
    pub fn mark_beside(self, t: i64, by: i32) -> Option<CellMark> {
        let marks = self.drawn_marks();
        match by > 0 {
            true => marks.iter().filter(|mark| mark.from > t).min_by_key(|mark| mark.from).cloned(),
            false => marks.iter().filter(|mark| mark.from < t).max_by_key(|mark| mark.from).cloned(),
        }
    }

    /// The marks under the lines of all charts.
    pub fn drawn_marks(self) -> Rc<[CellMark]> {
        let faults = self.faults.get_value();
        let notes = self.notes.with_untracked(|notes| notes.iter().map(note_mark).collect::<Vec<_>>());
        if faults.is_empty() && notes.is_empty() {
            return self.marks.get_value();
        }
        // The clock of a recording has not reached all of them.
        let told = self.player.with_untracked(|player| player.as_ref().map(|p| p.t)).unwrap_or(i64::MAX);
        let mut all: Vec<CellMark> = faults.iter().filter(|mark| mark.from <= told).cloned().collect();
        all.extend(self.marks.get_value().iter().cloned());
        all.extend(notes);
        all.into()
    }
}
