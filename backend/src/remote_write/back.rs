//! Windows older than our own history, read back from the other server: min, max and mean over each step, by
//! `query_range`, which Prometheus and all compatible servers support.

use super::server::Server;
use serde::Deserialize;
use shared::catalog::Metric;
use shared::catalog::prometheus::{self, Family, SOURCE};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of points of a series in one response; Prometheus refuses 11,000 and more.
const MAX_POINTS: i64 = 10_000;
/// Maximum number of queries of one window.
const MAX_QUESTIONS: usize = 60;

/// A step of a series on the other server.
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
pub struct RemoteSeries<'a> {
    /// Name of its source.
    pub source: &'a str,
    /// Its row.
    pub metric: &'a Metric,
    /// Its instance.
    pub instance: &'a str,
}

/// The window: whole steps of `step` milliseconds, from the one that begins at or before `from` to the last that ends
/// at or before `to`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// First instant, milliseconds since the Unix epoch.
    pub from: i64,
    /// Last instant, milliseconds since the Unix epoch.
    pub to: i64,
    /// Length of a step, milliseconds.
    pub step: i64,
}

impl Window {
    /// Begin of the first and of the last step of each query; empty if no step fits.
    fn parts(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let step = self.step.max(1);
        let (first, last) = (self.from.div_euclid(step) * step, (self.to + 1).div_euclid(step) * step - step);
        let size = MAX_POINTS * step;
        (0..)
            .map(move |n| first + n * size)
            .take_while(move |&t| t <= last)
            .map(move |t| (t, (t + size - step).min(last)))
    }
}

#[derive(Deserialize)]
struct RangeAnswer {
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

/// A window that is read back query by query, so that the work can stop with its client.
pub struct ReadBack {
    step: i64,
    /// Pending queries, the next one last.
    questions: Vec<Question>,
    groups: Vec<Group>,
    /// By series, and the begin of the step.
    found: Vec<BTreeMap<i64, Summary>>,
}

/// Series of one row and source that share one query: for example a GPU metric for all GPUs.
struct Group {
    family: Family,
    selector: String,
    /// Position of each series among the requested ones, and its labels.
    series: Vec<(usize, Labels)>,
}

/// One function over one part of the window.
struct Question {
    group: usize,
    function: usize,
    first: i64,
    last: i64,
}

impl ReadBack {
    /// Starts a read-back.
    ///
    /// # Errors
    /// It needs too many queries; a sentence without a full stop.
    pub fn new(wanted: &[RemoteSeries], window: Window) -> Result<Self, String> {
        let mut by_row: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (at, one) in wanted.iter().enumerate() {
            by_row.entry((one.source, &one.metric.tag)).or_default().push(at);
        }
        if by_row.len() * window.parts().count() * FUNCTIONS.len() > MAX_QUESTIONS {
            return Err(format!(
                "{} metrics are too many to read back; request fewer, or use a longer step",
                by_row.len()
            ));
        }
        let group = |series: Vec<usize>| {
            let family = Family::from_metric(wanted[series[0]].metric);
            let series: Vec<_> = series.into_iter().map(|at| (at, labels(&wanted[at]))).collect();
            // The labels common to the group; for a single series all of its own.
            let common = series[0].1.iter().filter(|label| series.iter().all(|(_, other)| other.contains(label)));
            let common: Vec<String> = common.map(|(name, value)| format!("{name}={}", quoted(value))).collect();
            Group { selector: format!("{}{{{}}}", family.name, common.join(",")), family, series }
        };
        let groups: Vec<Group> = by_row.into_values().map(group).collect();
        let parts = |group| window.parts().map(move |part| (group, part));
        let questions = (0..groups.len()).flat_map(parts).flat_map(|(group, (first, last))| {
            (0..FUNCTIONS.len()).map(move |function| Question { group, function, first, last })
        });
        let mut questions: Vec<Question> = questions.collect();
        questions.reverse();
        Ok(ReadBack { step: window.step, questions, groups, found: vec![BTreeMap::new(); wanted.len()] })
    }

    /// Sends the next query; returns whether there are more. Blocks until the server has answered.
    ///
    /// # Errors
    /// The reason why there is no data at all, a sentence without a full stop.
    pub(super) fn ask(&mut self, server: &Server) -> Result<bool, String> {
        let Some(Question { group, function, first, last }) = self.questions.pop() else { return Ok(false) };
        let (Group { family, selector, series }, (function, set)) = (&self.groups[group], FUNCTIONS[function]);
        let query = format!("{function}({selector}[{}ms])", self.step);
        for matrix in ask(server, &query, first, last, self.step)? {
            let is = |own: &Labels| own.iter().all(|(n, v)| matrix.metric.get(n).is_some_and(|theirs| theirs == v));
            let Some((at, _)) = series.iter().find(|(_, own)| is(own)) else { continue };
            for (time, value) in matrix.values {
                let t = (time * 1000.0).round() as i64 + 1 - self.step;
                let Some(value) = value.parse().ok().filter(|v: &f64| v.is_finite()) else { continue };
                let nothing = Summary { t, min: f64::NAN, max: f64::NAN, mean: f64::NAN };
                set(self.found[*at].entry(t).or_insert(nothing), family.stored(value));
            }
        }
        Ok(!self.questions.is_empty())
    }

    /// The steps of each requested series, after the last query; empty for a series unknown to the server.
    pub fn end(self) -> Vec<Vec<Summary>> {
        let whole = |s: &Summary| s.min.is_finite() && s.max.is_finite() && s.mean.is_finite();
        self.found.into_iter().map(|steps| steps.into_values().filter(whole).collect()).collect()
    }
}

type Labels = Vec<(String, String)>;

fn labels(wanted: &RemoteSeries) -> Labels {
    let labels = prometheus::labels(wanted.metric, wanted.instance).into_iter();
    let own = labels.map(|(name, value)| (name.into_owned(), value.into_owned()));
    own.chain([(SOURCE.into(), wanted.source.into())]).filter(|(_, value): &(_, String)| !value.is_empty()).collect()
}

type Set = fn(&mut Summary, f64);
const FUNCTIONS: [(&str, Set); 3] =
    [("min_over_time", |s, v| s.min = v), ("max_over_time", |s, v| s.max = v), ("avg_over_time", |s, v| s.mean = v)];

/// The steps that begin from `first` to `last`. A step is evaluated at its last millisecond. The open end of its range
/// is then the millisecond before the step, whether the server includes it or not.
fn ask(server: &Server, query: &str, first: i64, last: i64, step: i64) -> Result<Vec<Matrix>, String> {
    let seconds = |ms: i64| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
    let parameters = [
        ("query", query.to_string()),
        ("start", seconds(first + step - 1)),
        ("end", seconds(last + step - 1)),
        ("step", seconds(step)),
        // VictoriaMetrics aligns start and end to its cache by default.
        ("nocache", "1".into()),
    ];
    let text = server.read("/api/v1/query_range", &parameters)?;
    let answer: RangeAnswer =
        serde_json::from_str(&text).map_err(|_| "the response is not that of Prometheus's query_range")?;
    Ok(answer.data.result)
}

/// Duplicate samples on the server: equal in time, because a request was repeated. A server that keeps both counts
/// them twice in sums and means.
#[derive(Debug, Default)]
pub(super) struct Doubled(AtomicU64);

impl Doubled {
    /// Number of duplicates found.
    pub fn met(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A series on the server: every sample, by its time in milliseconds since the Unix epoch and its value in the base
/// unit.
pub(super) struct RawSeries {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub samples: Vec<(i64, f64)>,
}

/// Reads the samples of all series with these labels from `window` milliseconds before `to` (exclusive) up to `to`.
/// Blocks until the server has answered.
///
/// # Errors
/// The reason why there are none, a sentence without a full stop.
pub(super) fn raw(
    server: &Server,
    labels: &[(&str, &str)],
    to: i64,
    window: i64,
    doubled: &Doubled,
) -> Result<Vec<RawSeries>, String> {
    let selector: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    let seconds = format!("{}.{:03}", to.div_euclid(1000), to.rem_euclid(1000));
    let query = format!("{{{}}}[{window}ms]", selector.join(","));
    let text = server.read("/api/v1/query", &[("query", query), ("time", seconds), ("nocache", "1".into())])?;
    let answer: RangeAnswer =
        serde_json::from_str(&text).map_err(|_| "the response is not that of Prometheus's query")?;
    let series = |mut matrix: Matrix| {
        let name = matrix.metric.remove("__name__")?;
        let sample = |(time, value): (f64, String)| {
            let (t, value) = ((time * 1000.0).round() as i64, value.parse::<f64>().ok()?);
            (t > to - window && t <= to && value.is_finite()).then_some((t, value))
        };
        let mut samples: Vec<(i64, f64)> = matrix.values.into_iter().filter_map(sample).collect();
        samples.sort_by_key(|(t, _)| *t);
        let all = samples.len();
        samples.dedup_by_key(|(t, _)| *t);
        doubled.0.fetch_add((all - samples.len()) as u64, Relaxed);
        Some(RawSeries { name, labels: matrix.metric, samples })
    };
    Ok(answer.data.result.into_iter().filter_map(series).collect())
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
