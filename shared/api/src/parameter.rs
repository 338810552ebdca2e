//! The parameters of queries: each name once, unless it has two meanings.

/// A query parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: ParameterKind,
    /// Whether it may be repeated. Otherwise the last value counts.
    pub repeated: bool,
    /// Its purpose, without a full stop.
    pub meaning: &'static str,
}

/// Kind of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// A number that is no less than this.
    Number(u32),
    /// An instant: Unix seconds, a date, or a span before now.
    Instant,
    /// A length of time, as `90s`.
    Length,
    /// One of these words.
    Choice(&'static [&'static str]),
}
use ParameterKind::{Choice, Instant, Length, Number, Text};

impl Parameter {
    const fn new(name: &'static str, kind: ParameterKind, meaning: &'static str) -> Parameter {
        Parameter { name, kind, repeated: false, meaning }
    }

    const fn repeated(self) -> Parameter {
        Parameter { repeated: true, ..self }
    }

    /// Whether it represents parameters of any name.
    pub fn is_any(&self) -> bool {
        *self == ANY
    }
}

/// Any parameter, read by others: the page or a provider.
pub const ANY: Parameter = Parameter::new("*", Text, "Any other parameter").repeated();

macro_rules! parameters {
    ($($name:ident = $value:expr;)*) => { $(#[allow(missing_docs, reason = "its meaning says it")] pub const $name: Parameter = $value;)* };
}

parameters! {
    FROM = Parameter::new("from", Instant, "Start of the time span");
    TO = Parameter::new("to", Instant, "End of the time span");
    AT = Parameter::new("at", Instant, "Instant of the process table; the newest if absent");
    STEP = Parameter::new("step", Length, "Width of the buckets, as 10s or 1m");
    TAG = Parameter::new("tag", Text, "Tag of a metric in any spelling that W&B has used; * stands for any text").repeated();
    MATCH = Parameter::new("match", Text, "Pattern of tags; * stands for any text").repeated();
    SOURCE = Parameter::new("source", Text, "Name or ID of a machine");
    SOURCES = Parameter::new("source", Text, "Name or ID of a machine; * stands for any text").repeated();
    RUN = Parameter::new("run", Text, "ID of a training job");
    FUNCTION = Parameter::new("fn", Choice(&["rate"]), "Turns counters into their increase per second");
    EXPORT_FORMAT = Parameter::new("format", Choice(&["csv", "json", "openmetrics", "wandb-jsonl"]), "Format of the file; csv if absent");
    WIDTH = Parameter::new("width", Number(1), "Width of the picture, pixels");
    HEIGHT = Parameter::new("height", Number(1), "Height of the picture, pixels");
    THEME = Parameter::new("theme", Choice(&["light", "dark"]), "Colors of the picture; light if absent");
    FLEET_ROW = Parameter::new("row", Text, "Row of the fleet overview, as gpu or cpu");
    STATES = Parameter::new("state", Text, "States of training jobs, separated by commas; crashed means all ends by a fault").repeated();
    FAILURES = Parameter::new("failure", Text, "Class of the failure; a comma means or, a leading ! means not");
    PROJECT = Parameter::new("project", Text, "Project; a comma means or, a leading ! means not");
    GROUP = Parameter::new("group", Text, "Group; a comma means or, a leading ! means not");
    JOB_TYPE = Parameter::new("job_type", Text, "Job type; a comma means or, a leading ! means not");
    USER = Parameter::new("user", Text, "User; a comma means or, a leading ! means not");
    RUN_TAG = Parameter::new("tag", Text, "Tag of the job, as KEY=VALUE; a comma means or, a leading ! means not");
    SEARCH = Parameter::new("q", Text, "Part of the ID, name or program");
    BEFORE_RUN = Parameter::new("before", Text, "ID of a job: only older ones are listed");
    LIMIT = Parameter::new("limit", Number(1), "Largest number of rows");
    SUMS = Parameter::new("sums", Choice(&["true", "false"]), "Resources that each job used, in place of its processes");
    REPORT_FORMAT = Parameter::new("format", Choice(&["html", "json"]), "Format of the report; html if absent");
    RANK = Parameter::new("rank", Number(0), "Rank of the process");
    PROCESS_LABEL = Parameter::new("label", Text, "Label of the process");
    OUTPUT_STREAM = Parameter::new("stream", Choice(&["out", "err", "tty"]), "Where the line was written: standard output, standard error or a terminal");
    NOTE_TEXT = Parameter::new("q", Text, "Part of the text, in any case");
    LINE_TEXT = Parameter::new("text", Text, "Text in the line, in any case");
    LOG_FORMAT = Parameter::new("format", Choice(&["jsonl", "text", "json"]), "Format of the lines; jsonl if absent");
    FINDING_KIND = Parameter::new("kind", Text, "Kind of finding").repeated();
    ACTIVE = Parameter::new("active", Choice(&["0", "1", "false", "true"]), "Only findings that have not ended");
    KERNEL = Parameter::new("kernel", Text, "ID of a kernel, from the list of kernels");
    MARKER_KIND = Parameter::new("kind", Text, "Kind of marker");
    LIVE_FORMAT = Parameter::new("format", Choice(&["binary", "json"]), "Format of the messages: binary for the page, json for scripts");
    CURSOR = Parameter::new("cursor", Text, "Position in the stream of a page that polls");
    TEAM = Parameter::new("team", Text, "ID or name of a team");
    ALERT_STATE = Parameter::new("state", Choice(&["pending", "firing", "resolved"]), "State of the alert");
    RULE = Parameter::new("rule", Text, "ID of an alert rule");
    USAGE_BY = Parameter::new("by", Choice(&["day", "source", "key"]), "Division of the usage; day if absent");
    GPU_TIME_BY = Parameter::new("by", Choice(&["day", "month", "project", "user", "run"]), "Division of the GPU time; day if absent");
    USAGE_FORMAT = Parameter::new("format", Choice(&["json", "csv"]), "Format of the table; json if absent");
    WHO = Parameter::new("who", Text, "Name of the account or key that acted");
    ACTION = Parameter::new("action", Text, "Action, or its first part followed by a full stop");
    OBJECT = Parameter::new("object", Text, "Object of the action");
    BEFORE_ENTRY = Parameter::new("before", Number(1), "Number of an entry: only older ones are listed");
    CODE = Parameter::new("code", Text, "Code of the provider");
    FLOW = Parameter::new("state", Text, "Sign-in that the provider answers");
}
