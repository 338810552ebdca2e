//! Test of a rule against stored samples.

use crate::{Engine, Machine, Tick, What};
use shared::alert::{Checked, Fired, Rule};
use shared::catalog::Catalog;
use shared::finding::Finding;
use shared::rule::check;
use shared::run::Run;
use shared::series::SeriesDef;
use shared::unit::rough_duration;
use std::collections::BTreeMap;

/// Maximum number of spans in the result.
const MAX_SPANS: usize = 1_000;

/// Evaluates a rule over past samples.
///
/// Machines, their series and runs come first, then their samples in order of time: raw, or as roll-ups, whose step is
/// then the machine's interval.
#[derive(Debug)]
pub struct Checker {
    engine: Engine,
    words: String,
    open: BTreeMap<String, Fired>,
    done: Vec<Fired>,
    times: u64,
    values: BTreeMap<String, Vec<f64>>,
    subjects: u64,
}

impl Checker {
    /// A test of `rule`; `from` is the begin of the samples, milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// The fault of the rule, in a sentence.
    pub fn new(rule: &Rule, catalog: &Catalog, from: i64) -> Result<Self, String> {
        let words = check(rule, catalog)?.words();
        let rule = Rule { id: "check".into(), enabled: true, ..rule.clone() };
        let mut engine = Engine::new(from);
        engine.set_rules(&[rule], catalog, from);
        Ok(Checker {
            engine,
            words,
            open: BTreeMap::new(),
            done: Vec::new(),
            times: 0,
            values: BTreeMap::new(),
            subjects: 0,
        })
    }

    /// Adds a machine.
    pub fn source(&mut self, machine: &Machine) {
        self.engine.source(machine);
    }

    /// Defines a series of a machine.
    pub fn define(&mut self, source: &str, index: u32, series: &SeriesDef, catalog: &Catalog) {
        self.engine.define(source, index, series, catalog);
    }

    /// Adds samples of a machine: time in milliseconds, series, value; in order of time.
    pub fn feed(&mut self, source: &str, samples: impl IntoIterator<Item = (i64, u32, f64)>) {
        let mut values = self.values.remove(source).unwrap_or_default();
        let mut at: Option<i64> = None;
        for (t, series, value) in samples {
            if let Some(before) = at.filter(|before| *before != t) {
                self.tick(source, before, &values);
                values.fill(f64::NAN);
            }
            at = Some(t);
            let place = series as usize;
            if values.len() <= place {
                values.resize(place + 1, f64::NAN);
            }
            values[place] = value;
        }
        if let Some(t) = at {
            self.tick(source, t, &values);
            values.fill(f64::NAN);
        }
        self.values.insert(source.to_string(), values);
    }

    /// Adds all samples of a machine at one instant, by number of the series.
    pub fn tick(&mut self, source: &str, t: i64, values: &[f64]) {
        self.engine.tick(&Tick { source, t, now: t, clock_step: false, values });
        self.take();
    }

    /// Adds a run in its state at `t`.
    pub fn run(&mut self, run: &Run, t: i64) {
        self.engine.run(run, t);
        self.engine.poll(t);
        self.take();
    }

    /// Adds a finding in its state at `t`.
    pub fn finding(&mut self, finding: &Finding, t: i64) {
        self.engine.poll(t);
        self.engine.finding(finding, t);
        self.take();
    }

    /// Advances time to `t`.
    pub fn poll(&mut self, t: i64) {
        self.engine.poll(t);
        self.take();
    }

    fn take(&mut self) {
        for change in self.engine.take() {
            let alert = change.alert;
            match change.what {
                What::Fired => {
                    self.times += 1;
                    self.open.insert(
                        alert.id.clone(),
                        Fired {
                            source: alert.labels.get("source").cloned().unwrap_or_default(),
                            subject: alert.subject,
                            from: alert.fired.unwrap_or(alert.began),
                            to: None,
                            worst: alert.worst,
                        },
                    );
                }
                What::Changed | What::Ended => {
                    if let Some(open) = self.open.get_mut(&alert.id) {
                        open.worst = alert.worst.or(open.worst);
                    }
                    if change.what == What::Ended
                        && let Some(mut over) = self.open.remove(&alert.id)
                    {
                        over.to = if change.event { Some(over.from) } else { alert.ended };
                        if self.done.len() < MAX_SPANS {
                            self.done.push(over);
                        }
                    }
                }
                What::Pending | What::Dropped => {}
            }
        }
        self.subjects = self.subjects.max(self.engine.subjects() as u64);
    }

    /// The result; `now` is the end of the samples, milliseconds, and `span` their length, seconds.
    pub fn finish(mut self, now: i64, span: u64) -> Checked {
        self.take();
        let mut fired = self.done;
        fired.extend(self.open.into_values());
        fired.sort_by(|a, b| (a.from, &a.subject).cmp(&(b.from, &b.subject)));
        fired.truncate(MAX_SPANS);
        let together: i64 = union(fired.iter().map(|f| (f.from, f.to.unwrap_or(now).max(f.from))));
        let last = rough_duration(span as i64 * 1000);
        let times = match self.times {
            0 => format!("would not have fired in the last {last}"),
            1 => format!("would have fired once in the last {last}"),
            n => format!("would have fired {n} times in the last {last}"),
        };
        let sentence = match together {
            0 => times,
            ms => format!("{times}, for {} together", rough_duration(ms)),
        };
        Checked { words: self.words, sentence, fired, times: self.times, subjects: self.subjects }
    }
}

/// Total time covered by at least one span; the spans are ordered by their begins.
fn union(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
    let (mut sum, mut end) = (0, i64::MIN);
    for (from, to) in spans {
        sum += (to - from.max(end)).max(0);
        end = end.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::VOCABULARY;

    const T: i64 = 1_790_000_000_000;

    #[test]
    fn a_rule_says_what_it_would_have_done() {
        let catalog = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
        let found = catalog.find("gpu.0.temp").expect("a tag");
        let when = "gpu.*.temp > 85 C for 1m, until < 82 C for 10s";
        let rule = Rule { name: "hot".into(), when: when.into(), ..Rule::default() };
        let mut checker = Checker::new(&rule, &catalog, T).expect("a rule");
        checker.source(&Machine { id: "1".into(), name: "a".into(), interval_ms: 10_000, ..Machine::default() });
        for series in 0..2 {
            let def = SeriesDef { metric: found.metric, instance: series.to_string() };
            checker.define("1", series, &def, &catalog);
        }
        // An hour in which GPU 0 is hot for ten minutes twice; GPU 1 never is.
        let hot = |i: i64| if (60..120).contains(&i) || (200..260).contains(&i) { 90.0 } else { 70.0 };
        checker.feed("1", (0..360).flat_map(|i| [(T + i * 10_000, 0, hot(i)), (T + i * 10_000, 1, 60.0)]));
        let answer = checker.finish(T + 3_600_000, 3600);
        assert_eq!((answer.times, answer.subjects, answer.fired.len()), (2, 2, 2));
        assert_eq!(answer.sentence, "would have fired 2 times in the last 1 h, for 18 min together");
        assert_eq!((answer.fired[0].subject.as_str(), answer.fired[0].worst), ("a gpu.0.temp", Some(90.0)));
        assert_eq!(answer.fired[0].from, T + 66 * 10_000);
        let rule = Rule { when: "gpu.*.temp > 2 GiB".into(), ..rule };
        assert!(Checker::new(&rule, &catalog, T).expect_err("wrong").contains("write it as 2 °C"));
    }
}
