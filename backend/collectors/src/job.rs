//! Values that training jobs log. They arrive between ticks; each tick has the last value of its interval.

use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use inventory::{JobValue, JobValues};
use shared::catalog::job::{LABELS, NOT_A_NUMBER, STEP, VALUE};
use shared::catalog::{MetricDef, Range};
use shared::unit::Unit;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of names with a row and a chart of their own, in the life of this program: rows are never freed.
/// Further names are instances of [`VALUE`], with all their values.
const MAX_ROWS: usize = 1_024;

/// Dropped values.
pub static DROPPED: MetricDef =
    MetricDef::counter("monitor.job.dropped", Unit::Count).title("Job values dropped").on("monitor.job.dropped", "dropped").range(Range::FromZero).help(
        "Values of jobs that were dropped since the start: a process may log 64 names and 10 times a second. Absent while no job logs values.",
    );

/// Rows of this collector itself.
pub static ROWS: &[&MetricDef] = &[&DROPPED];

/// Opens it.
///
/// # Errors
/// None: values arrive over the server's socket or its API, which this collector does not need.
pub fn open(options: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    Ok(Part::only([], Job { values: options.job_values.clone(), rows: HashMap::new() }))
}

struct Job {
    values: Arc<JobValues>,
    rows: HashMap<String, &'static MetricDef>,
}

impl Collector for Job {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        for (sender, values) in self.values.take() {
            let instance = sender.instance(None);
            for value in values {
                match value {
                    JobValue::Step(step) => out.put(&STEP, &*instance, step),
                    JobValue::Odd(name, kind) => out.put(&NOT_A_NUMBER, &*sender.instance(Some(&name)), kind),
                    JobValue::Of(name, value) => match self.row(&name) {
                        Some(row) => out.put(row, &*instance, value),
                        None => out.put(&VALUE, &*format!("{name}{instance}"), value),
                    },
                }
            }
        }
        out.put_some(&DROPPED, (), self.values.dropped().map(|dropped| dropped as f64));
        Ok(())
    }
}

impl Job {
    /// The row of a name, if there is room for one.
    fn row(&mut self, name: &str) -> Option<&'static MetricDef> {
        if !self.rows.contains_key(name) && self.rows.len() < MAX_ROWS {
            self.rows.insert(name.into(), made(name));
        }
        self.rows.get(name).copied()
    }
}

/// The row of a name that a job logs.
fn made(name: &str) -> &'static MetricDef {
    let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let tag = keep(format!("{}{LABELS}", VALUE.tag_of(name)));
    let chart = &tag[..tag.len() - LABELS.len()];
    Box::leak(Box::new(MetricDef { tag, ..VALUE }.title(keep(name.into())).on(chart, LABELS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::job::ValueSender;
    use std::time::Duration;

    #[test]
    fn each_tick_has_the_values_logged_since_the_one_before() {
        let options = Options::default();
        let mut parts = open(&options, &Roots::default()).expect("it needs nothing");
        let mut out = Out::default();
        let mut tick = |second: u64| {
            out.begin(Duration::from_secs(second));
            parts[0].collector.collect(&mut out).expect("collected");
            out.present()
        };
        assert_eq!(tick(0), [], "a machine without a job has no series");
        let rank = ValueSender { run: Some("abc".into()), rank: Some(3), ..ValueSender::default() };
        let values = [("loss".to_string(), 0.1 + 0.2), ("train/acc".to_string(), f64::NAN)];
        options.job_values.put(rank, values, Some(1_200), Duration::ZERO);
        options.job_values.drop_some(2);
        let series = |tag: &str, value: f64| (tag.to_string(), value);
        assert_eq!(
            tick(1),
            [
                series(r#"job.loss{rank="3",run="abc"}"#, 0.1 + 0.2),
                series(r#"job.not_a_number{name="train/acc",rank="3",run="abc"}"#, 1.0),
                series(r#"job.step{rank="3",run="abc"}"#, 1_200.0),
                series("monitor.job.dropped", 2.0),
            ]
        );
        assert_eq!(tick(2), [series("monitor.job.dropped", 2.0)], "a value is a sample once");
    }

    #[test]
    fn names_beyond_the_rows_keep_their_tags() {
        let mut job = Job { values: Arc::default(), rows: HashMap::new() };
        for n in 0..MAX_ROWS {
            assert!(job.row(&format!("n{n}")).is_some());
        }
        assert!(job.row("n7").is_some() && job.row("more").is_none());
        job.values.put(ValueSender::default(), [("more".to_string(), 2.5)], None, Duration::ZERO);
        let mut out = Out::default();
        job.collect(&mut out).expect("collected");
        assert_eq!(out.present()[0], ("job.more".to_string(), 2.5));
    }
}
