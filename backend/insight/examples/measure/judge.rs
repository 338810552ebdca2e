//! Runs the crate on a trace, and collects its findings.

use super::world::Sink;
use insight::{Insight, Settings};
use shared::catalog::Metric;
use shared::finding::{Finding, Severity};
use shared::processes::ProcessTable;
use shared::series::SeriesId;
use std::collections::HashMap;

/// A finding with its history.
#[derive(Clone, Debug)]
pub struct JudgedFinding {
    /// Its last state.
    pub finding: Finding,
    /// When it was first reported, and first reported above a note, ms.
    pub first: i64,
    pub above: Option<i64>,
    /// When it ended, ms.
    pub ended: Option<i64>,
    /// All its severities.
    pub severities: Vec<Severity>,
}

impl JudgedFinding {
    /// Its highest severity.
    pub fn worst(&self) -> Severity {
        self.severities.iter().copied().max().unwrap_or(Severity::Note)
    }
}

pub struct Judge {
    insight: Insight,
    new: Vec<Finding>,
    places: HashMap<String, usize>,
    pub found: Vec<JudgedFinding>,
}

impl Judge {
    pub fn new(follows: bool) -> Self {
        let mut insight = Insight::new(Settings::default());
        insight.follow(follows);
        Judge { insight, new: Vec::new(), places: HashMap::new(), found: Vec::new() }
    }
}

impl Sink for Judge {
    fn source(&mut self, source: u32, name: &str, interval_ms: i64) {
        self.insight.source(source, name, interval_ms);
    }

    fn series(&mut self, source: u32, id: SeriesId, metric: &Metric, instance: &str) {
        self.insight.series(source, id, metric, instance);
    }

    fn tick(&mut self, source: u32, t: i64, samples: &[(SeriesId, f64)]) {
        self.insight.tick(source, t, samples.iter().copied());
    }

    fn processes(&mut self, source: u32, table: &ProcessTable) {
        self.insight.processes(source, table);
    }

    fn jobs(&mut self, jobs: &[insight::Job]) {
        self.insight.jobs(jobs);
    }

    fn goodbye(&mut self, source: u32, t: i64) {
        self.insight.goodbye(source, t);
    }

    fn record_reason(&mut self, source: u32, t: i64, collector: &str, reason: &str) {
        self.insight.record_reason(source, t, collector, reason);
    }

    fn now(&mut self, now: i64) {
        self.insight.judge(now, &mut self.new);
        for finding in self.new.drain(..) {
            let found = &mut self.found;
            let at = *self.places.entry(finding.id.clone()).or_insert_with(|| {
                let finding = finding.clone();
                found.push(JudgedFinding { finding, first: now, above: None, ended: None, severities: Vec::new() });
                found.len() - 1
            });
            let known = &mut self.found[at];
            if finding.severity > Severity::Note && known.above.is_none() {
                known.above = Some(now);
            }
            if finding.until.is_some() && known.ended.is_none() {
                known.ended = Some(now);
            }
            if !known.severities.contains(&finding.severity) {
                known.severities.push(finding.severity);
            }
            known.finding = finding;
        }
    }
}
