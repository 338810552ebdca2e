//! What `watchglass run` is to start, what `watchglass runs` lists, and what `watchglass logs` prints.

use super::ConfigError;
use super::when::{When, when};
use clap::Args;
use shared::alert::{AlertSeverity, MAX_TEXT_BYTES as MAX_ALERT_TEXT, MAX_TITLE_BYTES};
use shared::output::OutputStream;
use shared::rule::{clean, duration};
use shared::run::{About, MARKS, MAX_MARK_BYTES, MAX_TAGS, MAX_TEXT_BYTES, Mark, RunState, check_id};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Below the flags in `--help`.
pub const AFTER: &str = "\
Runs the command as it would run without it: same terminal, files, signals, and its status is the status. With no server on
this machine the command runs all the same, and the run is listed once one starts.

  watchglass run -- python train.py
  watchglass run --name lr-3e-4 --project llm -- torchrun --nproc-per-node 8 train.py";

/// A training job, and its names.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct RunTask {
    /// A name for people
    #[arg(id = "name", long = "name", value_name = "NAME", value_parser = text)]
    name: Option<String>,
    /// The project that it belongs to
    #[arg(long, value_name = "NAME", value_parser = text)]
    project: Option<String>,
    /// The group of runs that it belongs to
    #[arg(long, value_name = "NAME", value_parser = text)]
    group: Option<String>,
    /// What it does in its group, as train or eval
    #[arg(long = "job-type", value_name = "TYPE", value_parser = text)]
    job_type: Option<String>,
    /// A tag and its value; may be repeated
    #[arg(long = "tag", value_name = "K=V", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Notes for people
    #[arg(long, value_name = "TEXT", value_parser = text)]
    notes: Option<String>,
    /// Its id [default: that of the run it is started in, else a new one]
    #[arg(long, value_name = "ID", value_parser = id)]
    pub id: Option<String>,
    /// Keep what it prints, line by line, without what looks like a secret; members alone read it
    #[arg(long)]
    pub logs: bool,
    /// The program, and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

impl RunTask {
    /// Its names.
    ///
    /// # Errors
    /// It has too many tags.
    pub fn about(&self, label: Option<String>) -> Result<About, ConfigError> {
        let tags: BTreeMap<String, String> = self.tags.iter().cloned().collect();
        if tags.len() > MAX_TAGS {
            return Err(ConfigError::new(format!("--tag: a run has at most {MAX_TAGS} tags")));
        }
        Ok(About {
            name: self.name.clone(),
            project: self.project.clone(),
            group: self.group.clone(),
            job_type: self.job_type.clone(),
            tags,
            notes: self.notes.clone(),
            label: label.filter(|label| text(label).is_ok()),
            user: None,
            program: String::new(),
        })
    }
}

/// Below the flags in `--help`.
pub const AFTER_MARK: &str = "\
In a job that `watchglass run` started, or whose ranks were found, it is a marker of that run. With no server on this machine
it says so, and the status is 0 all the same: a script that goes by the status goes on.

  watchglass mark \"epoch 3\" --step 1200";

/// A marker.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct MarkTask {
    /// What it says
    #[arg(value_name = "TEXT", value_parser = mark)]
    text: String,
    /// The number of the training step; several of them say how fast the job goes
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// The run that it is of [default: the run that this is called in]
    #[arg(long = "run", value_name = "ID", value_parser = id)]
    run: Option<String>,
    /// What it is
    #[arg(long, value_name = "KIND", value_parser = MARKS, default_value = "note")]
    kind: String,
}

impl MarkTask {
    /// What is told.
    pub fn mark(self) -> Mark {
        Mark { text: self.text, step: self.step, run: self.run, kind: self.kind }
    }
}

/// Below the flags in `--help`.
pub const AFTER_ALERT: &str = "\
In a job that `watchglass run` started, or whose ranks were found, it is an alert of that run. It ends within a second; with no
server on this machine it says so, and the status is 1. Who is told is a matter of the server's channels.

  watchglass alert \"loss is NaN\" --text \"step 1200, lr 3e-4\" --severity critical --wait 30m";

/// An alert from a script.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct AlertTask {
    /// What is wrong, on one line; what is said again within --wait is the same alert
    #[arg(value_name = "TITLE", value_parser = title)]
    title: String,
    /// More of it
    #[arg(long, value_name = "TEXT", value_parser = alert_text)]
    text: Option<String>,
    /// How much it matters: info, warning or critical
    #[arg(long, value_name = "SEVERITY", value_parser = severity, default_value = "warning")]
    severity: AlertSeverity,
    /// For how long repeats are counted and tell nobody, 0s to 7d [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = wait)]
    wait: Option<String>,
    /// The run that it is of [default: the run that this is called in]
    #[arg(long = "run", value_name = "ID", value_parser = id)]
    run: Option<String>,
}

impl AlertTask {
    /// Title, text, severity, time to fold, and run.
    pub fn said(self) -> (String, Option<String>, AlertSeverity, Option<String>, Option<String>) {
        (self.title, self.text, self.severity, self.wait, self.run)
    }
}

/// Which runs are to be listed.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsTask {
    /// Those in this state alone: running, finished, failed, crashed, out_of_memory, cancelled, lost ...
    #[arg(long, value_name = "STATE", value_parser = state, value_delimiter = ',')]
    pub state: Vec<RunState>,
    /// Those of this project
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// Those with this text in id, name or program; the word report prints the report of the run that follows
    #[arg(value_name = "TEXT")]
    pub part: Option<String>,
    /// Behind the word report: the run, by its id; its report is HTML, or JSON with --json
    #[arg(value_name = "ID", value_parser = id, requires = "part")]
    pub run: Option<String>,
    /// Those that began since: Unix seconds, a date and time, or before now, such as -1d
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// At most so many, 1 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), default_value = "50")]
    pub limit: u16,
}

/// Below the flags in `--help`.
pub const AFTER_LOGS: &str = "\
Lines are kept on the machine where the job ran, as long as its samples, the last 100 of a rank as long as the run. It is asked
there: no key reads them through a hub.

  watchglass logs a1b2c3d4 --rank 3 --last 50
  watchglass logs a1b2c3d4 --grep error --follow";

/// Which lines of a training job are to be printed.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct LogsTask {
    /// The run, by its id
    #[arg(value_name = "RUN", value_parser = id)]
    pub run: String,
    /// Those of this rank alone
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// Those of one stream: out, err, or tty for a terminal
    #[arg(long, value_name = "STREAM", value_parser = stream)]
    pub stream: Option<OutputStream>,
    /// Those with this text, in large or small letters
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// Go on until the job has ended
    #[arg(long)]
    pub follow: bool,
    /// The last so many, 1 to 10000 [default: all; with --follow 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub last: Option<u32>,
    /// A row of JSON for each line: when, rank, stream and text
    #[arg(long)]
    pub json: bool,
}

fn stream(name: &str) -> Result<OutputStream, String> {
    OutputStream::named(name)
        .ok_or_else(|| format!("known are {}", OutputStream::ALL.map(OutputStream::name).join(", ")))
}

fn text(text: &str) -> Result<String, String> {
    match text.len() <= MAX_TEXT_BYTES && !text.chars().any(char::is_control) {
        true => Ok(text.into()),
        false => Err(format!("at most {MAX_TEXT_BYTES} bytes on one line")),
    }
}

fn mark(text: &str) -> Result<String, String> {
    match (1..=MAX_MARK_BYTES).contains(&text.len()) && !text.chars().any(char::is_control) {
        true => Ok(text.into()),
        false => Err(format!("1 to {MAX_MARK_BYTES} bytes on one line")),
    }
}

fn title(text: &str) -> Result<String, String> {
    match text.len() <= MAX_TITLE_BYTES && !clean(text, MAX_TITLE_BYTES, false).is_empty() {
        true => Ok(text.into()),
        false => Err(format!("1 to {MAX_TITLE_BYTES} bytes")),
    }
}

fn alert_text(text: &str) -> Result<String, String> {
    match text.len() <= MAX_ALERT_TEXT {
        true => Ok(text.into()),
        false => Err(format!("at most {MAX_ALERT_TEXT} bytes")),
    }
}

fn severity(word: &str) -> Result<AlertSeverity, String> {
    let all = [AlertSeverity::Info, AlertSeverity::Warning, AlertSeverity::Critical];
    all.into_iter().find(|one| one.word() == word).ok_or_else(|| "known are info, warning and critical".into())
}

fn wait(text: &str) -> Result<String, String> {
    duration(text).map(|_| text.into())
}

fn tag(pair: &str) -> Result<(String, String), String> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((text(name)?, text(value)?)),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

fn id(text: &str) -> Result<String, String> {
    check_id(text).map(|()| text.into())
}

fn state(name: &str) -> Result<RunState, String> {
    RunState::named(name).ok_or_else(|| format!("known are {}", RunState::ALL.map(RunState::name).join(", ")))
}
