//! Values that training jobs log, as their loss.
//!
//! A name that a job logs becomes a row at run time, `job.{name}` with the placeholder `{labels}` after it. The labels
//! name the process: `rank` and `run`, `label` for a rank without a number, `kernel` for a notebook, `pid` for any
//! other process. A value that `watchglass log` sends outside of a run has none. Until its row exists, such a tag uses
//! [`VALUE`].

use super::{MetricDef, Range, label_text, labels};
use crate::unit::Unit;

/// Prefix of the tags.
pub const PREFIX: &str = "job.";

/// Placeholder for the labels.
pub const LABELS: &str = "{labels}";

/// Label of [`NOT_A_NUMBER`] with the name of the value, and of all values in Prometheus.
pub const NAME: &str = "name";

/// Id of the section of the page, and name of the collector.
pub const SECTION: &str = "job";

/// Any value of any job; template of the rows that are created at run time.
pub static VALUE: MetricDef = MetricDef::gauge("job.{value}", Unit::Count)
    .title("Values of the job")
    .on("job", "{value}")
    .range(Range::Fit)
    .steps(0.0)
    .help("A value that a job logged with watchglass.log() or `watchglass log`, as it was given: the last one of each interval, and none in an interval without one. Its labels name the run and the rank.");

/// Training step of the newest values.
pub static STEP: MetricDef = MetricDef::gauge("job.step{labels}", Unit::Count)
    .title("Training step")
    .on("job.step", "{labels}")
    .range(Range::Fit)
    .help("The training step that a job logged with its newest values. Absent in an interval in which it logged none.");

/// Values that are not finite, which no series can hold.
pub static NOT_A_NUMBER: MetricDef = MetricDef::gauge("job.not_a_number{labels}", Unit::Count)
    .title("Values that are not a number")
    .on("job.not_a_number", "{labels}")
    .range(Range::Fixed(0.0, 3.0))
    .help("Whether a job logged a value that is not finite: 1 is NaN, 2 infinity, 3 minus infinity, 0 a number again. The label name is that of the value, whose own series is absent meanwhile. A value that was always finite has no such series.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&VALUE, &STEP, &NOT_A_NUMBER];

/// A loss and a speed, as the simulated job of `watchglass demo` logs them.
pub static LOSS: MetricDef = MetricDef { tag: "job.loss{labels}", ..VALUE }.title("loss").on("job.loss", LABELS);
#[allow(missing_docs, reason = "see LOSS")]
pub static TOKENS_PER_SECOND: MetricDef =
    MetricDef { tag: "job.tokens_per_s{labels}", ..VALUE }.title("tokens_per_s").on("job.tokens_per_s", LABELS);

/// Seconds of a training step, and those of them in which it waits for data, as `watchglass.steps()` logs them.
pub static STEP_TIME: MetricDef =
    MetricDef { tag: "job.step_time_s{labels}", ..VALUE }.title("step_time_s").on("job.step_time_s", LABELS);
#[allow(missing_docs, reason = "see STEP_TIME")]
pub static DATA_TIME: MetricDef =
    MetricDef { tag: "job.data_time_s{labels}", ..VALUE }.title("data_time_s").on("job.data_time_s", LABELS);

/// The name of the value in the tag of a row that was created at run time.
pub fn name(tag: &str) -> Option<&str> {
    let name = tag.strip_prefix(PREFIX)?.strip_suffix(LABELS)?;
    (tag != STEP.tag && tag != NOT_A_NUMBER.tag).then_some(name)
}

/// Whether the series of a row are distinguished by the labels of a process. A tag without labels means all of them.
pub fn is_labeled(tag: &str) -> bool {
    tag.starts_with(PREFIX) && tag.ends_with(LABELS)
}

/// The process that logs values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValueSender {
    /// ID of its run.
    pub run: Option<String>,
    /// Its rank in the run.
    pub rank: Option<u32>,
    /// Its label in the run, if it has no rank.
    pub label: Option<String>,
    /// The first digits of the ID of its Jupyter kernel.
    pub kernel: Option<String>,
    /// Its PID, if none of the others is known.
    pub pid: Option<u32>,
}

impl ValueSender {
    /// The instance of its series: sorted labels in braces, or an empty text. `name` is the label of [`NOT_A_NUMBER`].
    pub fn instance(&self, name: Option<&str>) -> String {
        let (rank, pid) = (self.rank.map(|rank| rank.to_string()), self.pid.map(|pid| pid.to_string()));
        let all = [
            ("kernel", self.kernel.as_deref()),
            ("label", self.label.as_deref()),
            (NAME, name),
            ("pid", pid.as_deref()),
            ("rank", rank.as_deref()),
            ("run", self.run.as_deref()),
        ];
        let all: Vec<(&str, &str)> = all.into_iter().filter_map(|(label, value)| Some((label, value?))).collect();
        label_text(&all)
    }

    /// The process of a series, and the label `name`.
    pub fn from_instance(instance: &str) -> (ValueSender, Option<String>) {
        let (mut sender, mut name) = (ValueSender::default(), None);
        for (label, value) in labels(instance) {
            match label {
                "kernel" => sender.kernel = Some(value),
                "label" => sender.label = Some(value),
                NAME => name = Some(value),
                "pid" => sender.pid = value.parse().ok(),
                "rank" => sender.rank = value.parse().ok(),
                "run" => sender.run = Some(value),
                _ => {}
            }
        }
        (sender, name)
    }
}

/// The name of a series' line on its chart: `rank 3 · a1b2c3d4`.
pub(super) fn line(title: &str, instance: &str) -> String {
    let (sender, name) = ValueSender::from_instance(instance);
    let parts: Vec<String> = [name, words(&sender)].into_iter().flatten().collect();
    if parts.is_empty() { title.to_string() } else { parts.join(" · ") }
}

/// A process and its run: `rank 3 · a1b2c3d4`.
fn words(sender: &ValueSender) -> Option<String> {
    let process = match sender {
        ValueSender { rank: Some(rank), .. } => Some(format!("rank {rank}")),
        ValueSender { label: Some(label), .. } => Some(label.clone()),
        ValueSender { kernel: Some(kernel), .. } => Some(format!("kernel {kernel}")),
        ValueSender { pid: Some(pid), .. } => Some(format!("process {pid}")),
        _ => None,
    };
    let parts: Vec<String> = process.into_iter().chain(sender.run.clone()).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The process of a series in words, if its row is one of jobs.
pub fn process(tag: &str, instance: &str) -> Option<String> {
    if is_labeled(tag) { words(&ValueSender::from_instance(instance).0) } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::{Catalog, Metric, VOCABULARY};
    use super::*;
    use crate::series::SeriesDef;

    #[test]
    fn the_process_of_a_series_is_in_its_labels_and_comes_back() {
        let ranked = ValueSender {
            run: Some("a\"1".into()),
            rank: Some(3),
            label: Some("b\\".into()),
            ..ValueSender::default()
        };
        assert_eq!(ranked.instance(None), r#"{label="b\\",rank="3",run="a\"1"}"#);
        assert_eq!(ValueSender::from_instance(&ranked.instance(Some("loss"))), (ranked, Some("loss".into())));
        assert_eq!(ValueSender::default().instance(None), "");
        let kernel = ValueSender { kernel: Some("0a1b2c3d".into()), pid: Some(7), ..ValueSender::default() };
        assert_eq!(ValueSender::from_instance(&kernel.instance(None)), (kernel, None));
    }

    #[test]
    fn a_line_is_named_by_rank_and_run() {
        let mut catalog = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
        let mut row = Metric::from(&VALUE);
        (row.tag, row.title, row.label) = ("job.loss{labels}".into(), "loss".into(), LABELS.into());
        catalog.metrics.push(row);
        let line = |tag: &str| {
            let found = catalog.find(tag).expect("known");
            let series = SeriesDef { metric: found.metric, instance: found.instance };
            assert_eq!(catalog.tag(&series), tag);
            catalog.label(&series)
        };
        assert_eq!(line(r#"job.loss{rank="3",run="abc"}"#), "rank 3 · abc");
        assert_eq!(line(r#"job.loss{label="loader",run="abc"}"#), "loader · abc");
        assert_eq!(line(r#"job.loss{kernel="0a1b2c3d"}"#), "kernel 0a1b2c3d");
        assert_eq!(line(r#"job.loss{pid="77"}"#), "process 77");
        assert_eq!(line("job.loss"), "loss");
        assert_eq!(line(r#"job.not_a_number{name="loss",rank="0",run="abc"}"#), "loss · rank 0 · abc");
        assert_eq!(line("job.other"), "other", "a name without a row");
        assert_eq!((name("job.loss{labels}"), name(STEP.tag), name("job.loss")), (Some("loss"), None, None));
    }
}
