//! Tries a rule over stored data: its past alerts, by the same code that evaluates live data.

use crate::findings::{FindingRegistry, WantedFindings};
use jobs::runs::RunRegistry;
use rules::{CLASS_SETTLES_MS, Checker, Machine};
use shared::alert::{Checked, Rule};
use shared::catalog::gpu;
use shared::finding::Finding;
use shared::rule::{self, Condition};
use shared::run::Run;
use shared::series::SeriesId;
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::live::Reader;
use stream::store::Snapshot;

/// Approximate maximum of samples in memory, and the minimum and maximum length of a part, milliseconds.
const SAMPLES_HELD: i64 = 4_000_000;
const PART_MS: (i64, i64) = (60_000, 60 * 60_000);

/// Maximum number of samples read for one answer. With more, only the newest part of the span is tried, which the
/// sentence shows by its span.
const MOST_SAMPLES: i64 = 60_000_000;

/// Interval of evaluation for conditions that depend on time alone, milliseconds.
const STEP_MS: i64 = 10_000;

/// Tries rules over the samples, runs and findings of the history.
pub struct StoredChecker {
    /// Jobs of the history.
    pub runs: Arc<RunRegistry>,
    /// Findings of the history.
    pub findings: Arc<FindingRegistry>,
}

/// A machine that is read.
struct Read {
    key: String,
    series: Vec<SeriesId>,
    snapshot: Option<Snapshot>,
}

/// An event besides samples.
enum Event {
    Run(Box<Run>),
    Finding(Box<Finding>),
}

impl StoredChecker {
    /// The alerts that the rule would have raised between two times, milliseconds since the Unix epoch, on the data
    /// visible to the reader. It takes up to a second and blocks the thread.
    ///
    /// # Errors
    /// In a sentence: the rule cannot be tried over stored data.
    pub fn check(&self, reader: &Reader, rule: &Rule, (from, to): (i64, i64)) -> Result<Checked, String> {
        let live = reader.live();
        let catalog = reader.catalog();
        let condition = rule::check(rule, &catalog)?;
        let mut checker = Checker::new(rule, &catalog, from)?;
        let sources = reader.sources();
        let mut all = Vec::new();
        for source in &sources {
            let labels: BTreeMap<String, String> = live.source(source.id).labels().into_iter().collect();
            let interval_ms = u32::try_from(source.interval).unwrap_or(u32::MAX);
            let (key, name) = (source.key.clone(), source.name.clone());
            checker.source(&Machine { id: key.clone(), name, interval_ms, labels });
            let store = live.store();
            let mut series = Vec::new();
            for (id, def) in (0..).zip(store.series(source.id, 0)) {
                let Some(metric) = catalog.metric(def) else { continue };
                if watches(&condition, &metric.tag, &def.instance, series.is_empty()) {
                    // Numbered in the order of reading, so that a tick has no space for unused series.
                    checker.define(&key, series.len() as u32, def, &catalog);
                    series.push(id);
                }
            }
            all.push(Read { key, series, snapshot: store.snapshot(source.id, from, to) });
        }
        let interval = sources.iter().map(|source| source.interval).min().unwrap_or(1_000).max(1);
        let count = all.iter().map(|read| read.series.len() as i64).sum::<i64>().max(1);
        let from = from.max(to - MOST_SAMPLES / count * interval);
        let mut events = self.events(reader, &condition, (from, to));
        events.sort_by_key(|(t, _)| *t);
        let mut events = events.into_iter().peekable();
        let part = (SAMPLES_HELD / count * interval).clamp(PART_MS.0, PART_MS.1);
        let (mut at, mut looked) = (from, from);
        while at <= to {
            let end = (at + part - 1).min(to);
            for (t, key, values) in ticks(&all, (at, end)) {
                while events.peek().is_some_and(|(when, _)| *when <= t) {
                    let (when, event) = events.next().expect("it was seen just now");
                    tell(&mut checker, when, &event);
                }
                checker.tick(key, t, &values);
                if t - looked >= STEP_MS {
                    looked = t;
                    checker.poll(t);
                }
            }
            at = end + 1;
        }
        for (when, event) in events {
            tell(&mut checker, when, &event);
        }
        checker.poll(to);
        Ok(checker.finish(to, u64::try_from((to - from) / 1_000).unwrap_or(0)))
    }

    /// Events of the span besides samples: begin and end of runs, detection and end of findings.
    fn events(&self, reader: &Reader, condition: &Condition, (from, to): (i64, i64)) -> Vec<(i64, Event)> {
        let mut events = Vec::new();
        let (live, scope) = (reader.live(), reader.scope());
        for run in self.runs.newest_first(live, &reader.sources(), (from, to)).map(Arc::unwrap_or_clone) {
            let began = Run { state: shared::run::RunState::Running, ended: None, cause: None, ..run.clone() };
            events.push((run.began.max(from), Event::Run(Box::new(began))));
            // The class of its failure is final some time after its end.
            let settled = run.ended.map(|ended| ended + CLASS_SETTLES_MS).filter(|settled| *settled <= to);
            events.extend(settled.map(|settled| (settled, Event::Run(Box::new(run.clone())))));
            events.push((run.ended.unwrap_or(to), Event::Run(Box::new(run))));
        }
        if matches!(condition, Condition::Finding { .. }) {
            let wanted = WantedFindings { span: Some((from, to)), ..WantedFindings::default() };
            for finding in self.findings.seen(&wanted, |key| scope.sees(key)) {
                let told = Finding { until: None, ..finding.clone() };
                events.push(((finding.told * 1_000).max(from), Event::Finding(Box::new(told))));
                if let Some(until) = finding.until {
                    events.push((until * 1_000, Event::Finding(Box::new(finding))));
                }
            }
        }
        events
    }
}

fn tell(checker: &mut Checker, t: i64, event: &Event) {
    match event {
        Event::Run(run) => checker.run(run, t),
        Event::Finding(finding) => checker.finding(finding, t),
    }
}

/// Whether the condition uses this series. A condition without series, as one on missing data, uses the first.
fn watches(condition: &Condition, template: &str, instance: &str, first: bool) -> bool {
    match condition {
        Condition::HeldIdle(_) | Condition::RunIdle(_) => {
            [gpu::UTILIZATION.tag, gpu::MEMORY_ALLOCATED_BYTES.tag].contains(&template)
        }
        Condition::CollectorFailed(_) => template.starts_with("monitor."),
        condition => {
            let tags = condition.tags();
            tags.iter().any(|tag| tag.fits(template, instance)) || (tags.is_empty() && first)
        }
    }
}

/// The ticks of all machines in a part of the span, in order of time: each with its values by number of the series.
fn ticks(all: &[Read], (from, to): (i64, i64)) -> impl Iterator<Item = (i64, &str, Vec<f64>)> {
    let mut ticks: Vec<(i64, &str, Vec<f64>)> = Vec::new();
    for read in all {
        let Some(part) = read.snapshot.as_ref().and_then(|whole| whole.part(from, to)) else { continue };
        let mut by_time: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (at, samples) in part.samples(&read.series).into_iter().enumerate() {
            for (t, value) in samples {
                by_time.entry(t).or_insert_with(|| vec![f64::NAN; read.series.len()])[at] = value;
            }
        }
        ticks.extend(by_time.into_iter().map(|(t, values)| (t, read.key.as_str(), values)));
    }
    ticks.sort_by_key(|(t, ..)| *t);
    ticks.into_iter()
}
