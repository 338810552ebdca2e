//! `watchglass findings`: problems in a recording, in a file of another program, or in the data folder.

use crate::config::{CheckFrom, Config, FindingsTask};
use crate::terminal;
use history::Folder;
use shared::controls::escaped_json;
use shared::finding::{Finding, Severity, next_line};
use shared::unit::rough_duration;
use shared::wire::Recorded;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use stream::clock::{Clock, System};
use stream::live::Live;
use stream::recording;
use stream::store::{Limits, Store};
use system::file;
use watch::findings::{FindingRegistry, WantedFindings, answer, look_through};

/// The reason of a failure: the exit status, and the sentence.
#[derive(Debug)]
pub struct FindingsFailed {
    /// 2: invalid arguments. 4: the data folder cannot be read. 1: the file cannot be read.
    pub status: u8,
    /// The sentence.
    pub sentence: String,
}

/// The list of findings as text.
#[derive(Debug)]
pub struct Listed {
    /// For standard output.
    pub text: String,
    /// For standard error: unreadable parts.
    pub notes: Vec<String>,
    /// Whether there is a finding of the severity of `--check`.
    pub found: bool,
}

/// Runs the detection over the requested data.
///
/// # Errors
/// [`FindingsFailed`].
pub fn run(config: &Config, task: &FindingsTask) -> Result<Listed, FindingsFailed> {
    let now = System.wall();
    let (from, to) = (task.from.map(|from| from.begin(now)), task.to.map(|to| to.end(now)));
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        return Err(FindingsFailed { status: 2, sentence: "--from is later than --to".into() });
    }
    let (live, notes) = match &task.file {
        Some(file) => of_file(file)?,
        None => of_folder(config)?,
    };
    let sources = live.store().sources();
    if let Some(unknown) = task.sources.iter().find(|name| !sources.iter().any(|source| source.name == **name)) {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let sentence = format!("--source {unknown:?}: there is no such machine; machines are {}", names.join(", "));
        return Err(FindingsFailed { status: 2, sentence });
    }
    let span = (from.is_some() || to.is_some()).then(|| (from.unwrap_or(i64::MIN / 4), to.unwrap_or(i64::MAX / 4)));
    let registry = FindingRegistry::default();
    look_through(&live, &registry, config.insight.settings(), span);
    let wanted = WantedFindings { span, sources: task.sources.clone(), kinds: task.kinds.clone(), active: false };
    let findings = registry.seen(&wanted, |_| true);
    let found = task.check.is_some_and(|check| {
        let least = match check {
            CheckFrom::Warning => Severity::Warning,
            CheckFrom::Critical => Severity::Critical,
        };
        findings.iter().any(|finding| finding.severity >= least)
    });
    // The clock of the data is at its end.
    let last = live.clock.wall();
    let written = || {
        let answer = answer(last, &findings, registry.rules());
        serde_json::to_string(&answer).expect("texts and numbers")
    };
    let text = match task.json {
        true => format!("{}\n", escaped_json(written())),
        false => lines(&findings, last / 1000),
    };
    Ok(Listed { text, notes, found })
}

/// A line each with its next step below it, the oldest first; `at` is the last instant that was read, seconds.
fn lines(findings: &[Finding], at: i64) -> String {
    let mut text = String::new();
    for finding in findings.iter().rev() {
        let lasted = finding.until.unwrap_or(at) - finding.since;
        let lasted = match finding.until {
            Some(_) => rough_duration(lasted * 1_000),
            None => format!("{} so far", rough_duration(lasted * 1_000)),
        };
        let indent = if finding.because.is_some() { "  " } else { "" };
        let sentence = finding.sentence_utc();
        let sentence = terminal::visible(&sentence);
        let since = shared::date::text(finding.since * 1000);
        let _ = writeln!(text, "{since}  {lasted:>14}  {:<8}  {indent}{sentence}", finding.severity.as_str());
        if let Some(next) = next_line(&finding.next) {
            let _ = writeln!(text, "{:width$}{indent}{}", "", terminal::visible(&next), width = since.len() + 28);
        }
    }
    if text.is_empty() {
        text.push_str("There are no findings.\n");
    }
    text
}

fn of_file(path: &Path) -> Result<(Arc<Live>, Vec<String>), FindingsFailed> {
    let failed = |sentence: String| FindingsFailed { status: 1, sentence };
    let opened = imports::open(path, file::open, collectors::catalog());
    let opened = opened.map_err(|error| failed(format!("{} cannot be opened: {error}", path.display())))?;
    let notes = opened.notes.iter().map(|note| format!("{}: {note}", path.display())).collect();
    let (Some(recorded), simulated) = (opened.describe(), opened.simulated()) else {
        return Err(failed(format!("{} has no samples", path.display())));
    };
    let store = recording::store(opened, &collectors::catalog());
    Ok((Live::of_recording(store, 0, recorded, simulated), notes))
}

fn of_folder(config: &Config) -> Result<(Arc<Live>, Vec<String>), FindingsFailed> {
    let failed = |sentence: String| FindingsFailed { status: 4, sentence };
    let Some(folder) = config.data_dir.as_deref().filter(|folder| !config.memory && folder.is_dir()) else {
        return Err(failed(
            "there is no data folder to read; name a file, or the folder of the server with --data-dir".into(),
        ));
    };
    let shown = folder.display();
    let found = Folder::read_only(folder)
        .map_err(|error| failed(format!("the data folder {shown} cannot be read: {error}")))?;
    let mut notes: Vec<String> = found.report.damages.iter().map(|damage| format!("skipped: {damage}")).collect();
    if found.sources.is_empty() {
        notes.push(format!("there is no history in {shown}; name the folder of the server with --data-dir"));
    }
    let limits = Limits { retention: i64::MAX / 4, bytes: usize::MAX };
    let (store, _) = Store::of_found(Arc::new(collectors::catalog()), &found, limits, None);
    let last =
        store.sources().iter().flat_map(|source| store.spans(source.id, 0)).flatten().map(|(_, last)| last).max();
    let recorded = Recorded { from: 0, to: last.unwrap_or_default(), title: String::new(), notes: Vec::new() };
    Ok((Live::of_recording(store, 0, recorded, false), notes))
}
