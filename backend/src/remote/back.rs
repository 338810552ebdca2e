//! Windows older than our own history, read back from the other server: min, max and mean over each step, by
//! `query_range`, which Prometheus and everything that speaks its language answers.

use super::server::Server;
use serde::Deserialize;
use shared::catalog::Metric;
use shared::catalog::prometheus::{self, Family, SOURCE};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Points of a series in one answer; Prometheus refuses 11,000 and more.
const POINTS: i64 = 10_000;
/// Questions that one window may take.
const QUESTIONS: usize = 60;

/// A step of a series as the other server has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Its begin, milliseconds since the Unix epoch, a multiple of the step.
    pub t: i64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Arithmetic mean of the samples.
    pub mean: f64,
}

/// A series to be read back.
pub struct Wanted<'a> {
    /// Name of its source.
    pub source: &'a str,
    /// Its row.
    pub metric: &'a Metric,
    /// Its instance.
    pub instance: &'a str,
}

/// The window: whole steps of `step` milliseconds, from the one that begins at or before `from` to the last that ends at
/// or before `to`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Milliseconds since the Unix epoch.
    pub from: i64,
    /// Likewise.
    pub to: i64,
    /// Milliseconds.
    pub step: i64,
}

impl Window {
    /// Begin of the first and of the last step of each question; nothing where no step fits.
    fn parts(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let step = self.step.max(1);
        let (first, last) = (self.from.div_euclid(step) * step, (self.to + 1).div_euclid(step) * step - step);
        let size = POINTS * step;
        (0..)
            .map(move |n| first + n * size)
            .take_while(move |&t| t <= last)
            .map(move |t| (t, (t + size - step).min(last)))
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Matrix>,
}

#[derive(Deserialize)]
struct Matrix {
    metric: BTreeMap<String, String>,
    values: Vec<(f64, String)>,
}

/// What the server has of each wanted series in a window; a series that it does not know has nothing.
///
/// # Errors
/// Why there is nothing at all, a sentence without a full stop.
pub(super) fn read(server: &Server, wanted: &[Wanted], window: Window) -> Result<Vec<Vec<Summary>>, String> {
    // Series of one row and source are one question: a GPU's reading for all GPUs.
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, one) in wanted.iter().enumerate() {
        groups.entry((one.source, &one.metric.tag)).or_default().push(at);
    }
    if groups.len() * window.parts().count() * 3 > QUESTIONS {
        return Err(format!(
            "{} metrics are too many to read back at once; ask for fewer or with a longer step",
            groups.len()
        ));
    }
    let mut all: Vec<BTreeMap<i64, Summary>> = wanted.iter().map(|_| BTreeMap::new()).collect();
    for group in groups.values() {
        let family = Family::of(wanted[group[0]].metric);
        let labels: Vec<_> = group.iter().map(|&at| labels(&wanted[at])).collect();
        // The labels that all of the group have: of a single series all of its own.
        let common = labels[0].iter().filter(|label| labels.iter().all(|other| other.contains(label)));
        let common: Vec<String> = common.map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let selector = format!("{}{{{}}}", family.name, common.join(","));
        for (first, last) in window.parts() {
            for (function, set) in FUNCTIONS {
                for matrix in
                    ask(server, &format!("{function}({selector}[{}ms])", window.step), first, last, window.step)?
                {
                    let is = |own: &Labels| own.iter().all(|(n, v)| matrix.metric.get(&**n).is_some_and(|t| *t == **v));
                    let Some(at) = labels.iter().position(is).map(|at| group[at]) else { continue };
                    for (time, value) in matrix.values {
                        let t = (time * 1000.0).round() as i64 + 1 - window.step;
                        let Some(value) = value.parse().ok().filter(|v: &f64| v.is_finite()) else { continue };
                        let nothing = Summary { t, min: f64::NAN, max: f64::NAN, mean: f64::NAN };
                        set(all[at].entry(t).or_insert(nothing), family.stored(value));
                    }
                }
            }
        }
    }
    let whole = |s: &Summary| s.min.is_finite() && s.max.is_finite() && s.mean.is_finite();
    Ok(all.into_iter().map(|steps| steps.into_values().filter(whole).collect()).collect())
}

type Labels<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

fn labels<'a>(wanted: &Wanted<'a>) -> Labels<'a> {
    let mut labels = prometheus::labels(wanted.metric, wanted.instance);
    labels.push((SOURCE.into(), wanted.source.into()));
    labels.retain(|(_, value)| !value.is_empty());
    labels
}

type Set = fn(&mut Summary, f64);
const FUNCTIONS: [(&str, Set); 3] =
    [("min_over_time", |s, v| s.min = v), ("max_over_time", |s, v| s.max = v), ("avg_over_time", |s, v| s.mean = v)];

/// The steps that begin from `first` to `last`. A step is read at its last millisecond: what a range reaches back to is
/// then the millisecond before the step, whether the server counts that in or not.
fn ask(server: &Server, query: &str, first: i64, last: i64, step: i64) -> Result<Vec<Matrix>, String> {
    let seconds = |ms: i64| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
    let parameters = [
        ("query", query.to_string()),
        ("start", seconds(first + step - 1)),
        ("end", seconds(last + step - 1)),
        ("step", seconds(step)),
        // VictoriaMetrics moves start and end to where it can use its cache, unless it is told not to.
        ("nocache", "1".into()),
    ];
    let text = server.read("/api/v1/query_range", &parameters)?;
    let answer: Answer =
        serde_json::from_str(&text).map_err(|_| "its answer is not that of Prometheus's query_range")?;
    Ok(answer.data.result)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_whole_steps_in_questions_of_bounded_size() {
        let parts = |from, to, step| Window { from, to, step }.parts().collect::<Vec<_>>();
        assert_eq!(parts(60_000, 179_999, 60_000), [(60_000, 120_000)]);
        assert_eq!(parts(61_000, 179_998, 60_000), [(60_000, 60_000)]);
        assert_eq!(parts(61_000, 100_000, 60_000), []);
        assert_eq!(parts(0, 19_999, 1), [(0, 9_999), (10_000, 19_999)]);
        assert_eq!(parts(0, 10_000, 1), [(0, 9_999), (10_000, 10_000)]);
    }

    #[test]
    fn a_value_cannot_leave_its_quotation_marks() {
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
    }
}
