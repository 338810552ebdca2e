//! Arguments of `watchglass run`, `watchglass runs` and `watchglass logs`.

use super::ConfigError;
use super::when::{When, when};
use clap::{Args, Subcommand};
use shared::alert::{AlertSeverity, MAX_TEXT_BYTES as MAX_ALERT_TEXT, MAX_TITLE_BYTES};
use shared::failure::FailureClass;
use shared::new_values::{JobNumber, MAX_NAMES, NewValues, check_name};
use shared::output::OutputStream;
use shared::rule::{clean, duration};
use shared::run::{About, MARKS, MAX_LABEL_BYTES, MAX_MARK_BYTES, MAX_TAGS, MAX_TEXT_BYTES, Mark, RunState, check_id};
use shared::run_change::RunChange;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Below the flags in `--help`.
pub const AFTER_HELP: &str = "\
The command runs unchanged: it has the same terminal, files and signals, and its exit status is returned. Without a server
on this machine the command runs too; the run is listed as soon as a server starts.

  watchglass run -- python train.py
  watchglass run --name lr-3e-4 --project llm -- torchrun --nproc-per-node 8 train.py";

/// A training job, and its names.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct RunTask {
    /// Display name
    #[arg(id = "name", long = "name", value_name = "NAME", value_parser = text)]
    name: Option<String>,
    /// Project of the run
    #[arg(long, value_name = "NAME", value_parser = text)]
    project: Option<String>,
    /// Group of the run
    #[arg(long, value_name = "NAME", value_parser = text)]
    group: Option<String>,
    /// Task in the group, such as train or eval
    #[arg(long = "job-type", value_name = "TYPE", value_parser = text)]
    job_type: Option<String>,
    /// Tag with a value; may be repeated
    #[arg(long = "tag", value_name = "K=V", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Notes
    #[arg(long, value_name = "TEXT", value_parser = text)]
    notes: Option<String>,
    /// Label of this process, such as its rank [default: WATCHGLASS_LABEL]
    #[arg(id = "label", long = "label", value_name = "LABEL", value_parser = process_label)]
    label: Option<String>,
    /// Run ID [default: that of the enclosing run, else a new one]
    #[arg(long, value_name = "ID", value_parser = id)]
    pub id: Option<String>,
    /// Keep the output, with secrets redacted; only members can read it
    #[arg(long)]
    pub logs: bool,
    /// Take the stacks of the ranks with py-spy when the job hangs
    #[arg(long, requires = "logs")]
    pub stacks: bool,
    /// Program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

impl RunTask {
    /// The names of the run.
    ///
    /// # Errors
    /// It has too many tags.
    pub fn about(&self, environment_label: Option<String>) -> Result<About, ConfigError> {
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
            label: self.label.clone().or(environment_label.filter(|label| process_label(label).is_ok())),
            user: None,
            sent_by: None,
            program: String::new(),
        })
    }
}

/// Below the flags in `--help`.
pub const AFTER_MARK: &str = "\
In a job that `watchglass run` started, or whose ranks were detected, the marker belongs to that run. Without a server on this
machine the command prints a note and exits with 0, so that scripts continue.

  watchglass mark \"epoch 3\" --step 1200";

/// A marker.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct MarkTask {
    /// Text of the marker
    #[arg(value_name = "TEXT", value_parser = mark)]
    text: String,
    /// Training step; several of them give the speed of the job
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Run to mark [default: the current run]
    #[arg(long = "run", value_name = "ID", value_parser = id)]
    run: Option<String>,
    /// Kind of the marker
    #[arg(long, value_name = "KIND", value_parser = MARKS, default_value = "note")]
    kind: String,
}

impl MarkTask {
    /// The marker to send.
    pub fn mark(self) -> Mark {
        Mark { text: self.text, step: self.step, run: self.run, kind: self.kind }
    }
}

/// Below the flags in `--help`.
pub const AFTER_LOG: &str = "\
In a job that `watchglass run` started, or whose ranks were detected, the values belong to that run and rank. A value may be nan
or inf. Without a server on this machine the command prints a note and exits with 0, so that scripts continue.

  watchglass log loss=0.41 tokens_per_s=12400 --step 1200";

/// Values of a job.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct LogTask {
    /// Value with its name; may be repeated
    #[arg(value_name = "NAME=NUMBER", value_parser = value, required = true, num_args = 1..=MAX_NAMES)]
    values: Vec<(String, JobNumber)>,
    /// Training step
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Run that the values belong to [default: the current run]
    #[arg(long = "run", value_name = "ID", value_parser = id)]
    run: Option<String>,
}

impl LogTask {
    /// The values to send; of a repeated name the last one.
    pub fn values(self) -> NewValues {
        NewValues { values: self.values.into_iter().collect(), step: self.step, run: self.run, pid: None }
    }
}

/// Below the flags in `--help`.
pub const AFTER_ALERT: &str = "\
In a job that `watchglass run` started, or whose ranks were detected, the alert belongs to that run. The command ends within a
second. Without a server on this machine it exits with 1. The channels of the server receive the notification.

  watchglass alert \"loss is NaN\" --text \"step 1200, lr 3e-4\" --severity critical --wait 30m";

/// An alert from a script.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct AlertTask {
    /// Title of one line; the same title within --wait is the same alert
    #[arg(value_name = "TITLE", value_parser = title)]
    title: String,
    /// Details
    #[arg(long, value_name = "TEXT", value_parser = alert_text)]
    text: Option<String>,
    /// Severity: info, warning or critical
    #[arg(long, value_name = "SEVERITY", value_parser = severity, default_value = "warning")]
    severity: AlertSeverity,
    /// Period in which repeats are counted, not sent, 0s to 7d [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = wait)]
    wait: Option<String>,
    /// Run of the alert [default: the current run]
    #[arg(long = "run", value_name = "ID", value_parser = id)]
    run: Option<String>,
}

impl AlertTask {
    /// Title, text, severity, time to group repeats, and run.
    pub fn into_parts(self) -> (String, Option<String>, AlertSeverity, Option<String>, Option<String>) {
        (self.title, self.text, self.severity, self.wait, self.run)
    }
}

/// Below the flags in `--help`.
pub const AFTER_RUNS: &str = "\
A run is edited by its maker and by admins of its team. `watchglass erase --run ID` deletes it.

  watchglass runs --state running --project llm
  watchglass runs --failure out_of_gpu_memory,nccl_timeout --from -7d
  watchglass runs report a1b2c3d4 > report.html
  watchglass runs edit a1b2c3d4 --name lr-3e-4 --tag lr=3e-4 --notes \"the best so far\"";

/// New names of a run.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEditTask {
    /// Run ID
    #[arg(value_name = "ID", value_parser = id)]
    pub run: String,
    /// Display name; an empty text removes it, as for the following flags
    #[arg(id = "name", long = "name", value_name = "NAME", value_parser = text)]
    name: Option<String>,
    /// Group of the run
    #[arg(long, value_name = "NAME", value_parser = text)]
    group: Option<String>,
    /// Task in the group, such as train or eval
    #[arg(long = "job-type", value_name = "TYPE", value_parser = text)]
    job_type: Option<String>,
    /// Notes
    #[arg(long, value_name = "TEXT", value_parser = text)]
    notes: Option<String>,
    /// Tag with a value; may be repeated; replaces all tags
    #[arg(long = "tag", value_name = "K=V", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Remove all tags
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
}

impl RunEditTask {
    /// The change of the run.
    pub fn change(&self) -> RunChange {
        let tags = (self.no_tags || !self.tags.is_empty()).then(|| self.tags.iter().cloned().collect());
        let Self { name, group, job_type, notes, .. } = self.clone();
        RunChange { name, group, job_type, notes, tags, version: None }
    }
}

/// Changes of runs.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum RunsWord {
    /// Change the name, group, type, notes or tags of a run
    Edit(RunEditTask),
}

/// Filters of the list of runs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsTask {
    #[allow(missing_docs, reason = "see RunsWord; clap would print it as the help of the command")]
    #[command(subcommand)]
    pub word: Option<RunsWord>,
    /// Only runs in this state: running, finished, lost ...; crashed for all faults
    #[arg(long, value_name = "STATE", value_parser = state, value_delimiter = ',')]
    pub state: Vec<RunState>,
    /// Only runs with this class of failure: out_of_gpu_memory, nccl_timeout, disk_full, and others
    #[arg(long, value_name = "CLASS", value_parser = failure, value_delimiter = ',')]
    pub failure: Vec<FailureClass>,
    /// Only runs of this project
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// Only runs of this group
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Only runs of this job type
    #[arg(long = "job-type", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// Text in ID, name or program; or report, to print the report of a run
    #[arg(value_name = "TEXT")]
    pub part: Option<String>,
    /// Run ID after report; prints HTML, or JSON with --json
    #[arg(value_name = "ID", value_parser = id, requires = "part")]
    pub run: Option<String>,
    /// Only runs started since, such as -1d, 2:15pm, 2026-05-01T14:00
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Maximum number of runs, 1 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), default_value = "50")]
    pub limit: u16,
}

/// Below the flags in `--help`.
pub const AFTER_LOGS: &str = "\
Lines stay on the machine where the job ran, for the retention of its samples; the last 100 lines of a rank stay as long as
the run. Run this command on that machine: lines cannot be read through a hub with a key.

  watchglass logs a1b2c3d4 --rank 3 --last 50
  watchglass logs a1b2c3d4 --grep error --follow";

/// Lines of a training job that are printed.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct LogsTask {
    /// Run ID
    #[arg(value_name = "RUN", value_parser = id)]
    pub run: String,
    /// Only lines of this rank
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// Only lines of the processes with this label
    #[arg(id = "label", long = "label", value_name = "LABEL", conflicts_with = "rank", value_parser = process_label)]
    pub label: Option<String>,
    /// Only lines of this stream: out, err, or tty for a terminal
    #[arg(long, value_name = "STREAM", value_parser = stream)]
    pub stream: Option<OutputStream>,
    /// Only lines with this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// Print new lines until the job ends
    #[arg(long)]
    pub follow: bool,
    /// Number of last lines, 1 to 10000 [default: all; with --follow 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub last: Option<u32>,
    /// Print JSON lines: time, rank, stream and text
    #[arg(long)]
    pub json: bool,
}

fn stream(name: &str) -> Result<OutputStream, String> {
    OutputStream::named(name)
        .ok_or_else(|| format!("known kinds are {}", OutputStream::ALL.map(OutputStream::name).join(", ")))
}

fn text(text: &str) -> Result<String, String> {
    match text.len() <= MAX_TEXT_BYTES && !text.chars().any(char::is_control) {
        true => Ok(text.into()),
        false => Err(format!("write at most {MAX_TEXT_BYTES} bytes on one line")),
    }
}

fn process_label(text: &str) -> Result<String, String> {
    match (1..=MAX_LABEL_BYTES).contains(&text.len()) && !text.chars().any(char::is_control) {
        true => Ok(text.into()),
        false => Err(format!("write 1 to {MAX_LABEL_BYTES} bytes on one line")),
    }
}

fn mark(text: &str) -> Result<String, String> {
    match (1..=MAX_MARK_BYTES).contains(&text.len()) && !text.chars().any(char::is_control) {
        true => Ok(text.into()),
        false => Err(format!("write 1 to {MAX_MARK_BYTES} bytes on one line")),
    }
}

fn title(text: &str) -> Result<String, String> {
    match text.len() <= MAX_TITLE_BYTES && !clean(text, MAX_TITLE_BYTES, false).is_empty() {
        true => Ok(text.into()),
        false => Err(format!("write 1 to {MAX_TITLE_BYTES} bytes")),
    }
}

fn alert_text(text: &str) -> Result<String, String> {
    match text.len() <= MAX_ALERT_TEXT {
        true => Ok(text.into()),
        false => Err(format!("write at most {MAX_ALERT_TEXT} bytes")),
    }
}

fn severity(word: &str) -> Result<AlertSeverity, String> {
    let all = [AlertSeverity::Info, AlertSeverity::Warning, AlertSeverity::Critical];
    all.into_iter().find(|one| one.as_str() == word).ok_or_else(|| "write info, warning or critical".into())
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

fn value(pair: &str) -> Result<(String, JobNumber), String> {
    let (name, number) = pair.split_once('=').ok_or("write it as NAME=NUMBER")?;
    check_name(name).map_err(|bad| bad.to_string())?;
    let number = number.parse().map_err(|_| format!("{number:?} is not a number; write {name}=0.41"))?;
    Ok((name.into(), JobNumber(number)))
}

fn id(text: &str) -> Result<String, String> {
    check_id(text).map(|()| text.into())
}

fn failure(name: &str) -> Result<FailureClass, String> {
    let known = || format!("known classes are {}", FailureClass::ALL.map(FailureClass::name).join(", "));
    FailureClass::named(name).ok_or_else(known)
}

fn state(name: &str) -> Result<RunState, String> {
    RunState::named(name).ok_or_else(|| format!("known states are {}", RunState::ALL.map(RunState::name).join(", ")))
}
