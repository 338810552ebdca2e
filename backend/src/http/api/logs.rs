//! `GET /api/v1/runs/{id}/logs`: output of a training job. Readers are the accounts that see the arguments of
//! processes of its machines: members, and the owner of the server of one machine. No key, no viewer and no link reads
//! it.
//!
//! Lines are stored on the machine of the job. A hub requests them from the agents on demand, in parts. A machine that
//! does not answer delays no other, and the response names it.

use super::answer::{AnswerSlot, history_slot};
use super::params::Params;
use super::unknown_run;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use futures_util::future::join_all;
use jobs::runs::{PrintedRow, Ranks, last_words};
use serde::Serialize;
use shared::answer::logs::{LogGap, LogList, LogMissing, LogRow};
use shared::json::Seconds;
use shared::output::{LAST_LINES, LinesAsked, LinesPart, OutputStream, plain};
use shared::run::Run;
use shared::wire::Source;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of lines of a response with a limit.
const MAX_LINES: usize = 10_000;
/// Rows per chunk of a response without a limit.
const ROWS_AT_ONCE: usize = 500;
/// Lines from the end that are searched for the reason why a rank ended.
const QUOTED_FROM: usize = LAST_LINES;
/// Maximum number of machines of a run that are requested.
const MAX_MACHINES: usize = 256;
/// Maximum number of parts of a machine in a response with a limit.
const MAX_PARTS: usize = 400;
/// Bytes of a part of this machine. Each part has a fixed cost of repeated reads, so parts are large.
const OWN_PART_BYTES: usize = 4 << 20;
/// Time that the page of a run waits for the line with the reason of its end.
const WORDS_TIMEOUT: Duration = Duration::from_secs(1);

/// The machines of a run whose lines the caller may read.
pub(super) struct Readable(Vec<Machine>);

struct Machine {
    source: Arc<Source>,
    ranks: Ranks,
    /// Whether its lines are on this machine; otherwise its agent is requested.
    is_here: bool,
    /// The only process whose lines are wanted, by its start and PID; `None`: all.
    process: Option<(i64, u32)>,
    /// Spans in which processes of deleted runs of this ID began: their lines stay on the machine for a while.
    deleted: Vec<(i64, i64)>,
}

/// A line, with the index of its machine.
pub(super) struct LoggedLine {
    machine: usize,
    row: PrintedRow,
}

/// Lines, and the machines whose lines are missing, each with a reason as a sentence.
#[derive(Default)]
pub(super) struct LoggedLines {
    lines: Vec<LoggedLine>,
    missing: Vec<(String, String)>,
}

/// The requested rows.
#[derive(Clone)]
struct LogWish {
    span: (i64, i64),
    rank: Option<u32>,
    label: Option<String>,
    stream: Option<OutputStream>,
    text: Option<String>,
    limit: Option<usize>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Rows,
    Text,
    List,
}

impl LogWish {
    fn from_params(params: &Params, now: i64) -> Result<LogWish, Refusal> {
        let rank = params.last("rank").map(str::parse).transpose();
        let rank = rank.map_err(|_| Refusal::bad("rank is the number of a rank"))?;
        let label = params.last("label").filter(|label| !label.is_empty()).map(String::from);
        if rank.is_some() && label.is_some() {
            return Err(Refusal::bad("choose by rank or by label, not by both"));
        }
        let named = |name: &str| {
            let known = OutputStream::ALL.map(OutputStream::name).join(", ");
            OutputStream::named(name).ok_or_else(|| Refusal::bad(format!("stream is one of {known}, not {name:?}")))
        };
        let limit = params.last("limit").map(|limit| limit.parse().ok().filter(|n| (1..=MAX_LINES).contains(n)));
        let form = match params.last("format") {
            None | Some("jsonl") => Form::Rows,
            Some("text") => Form::Text,
            Some("json") => Form::List,
            Some(other) => return Err(Refusal::bad(format!("format is jsonl, text or json, not {other:?}"))),
        };
        let limit = match limit {
            Some(None) => return Err(Refusal::bad(format!("limit is a number from 1 to {MAX_LINES}"))),
            Some(limit) => limit,
            // A list is made in one piece.
            None => (form == Form::List).then_some(1_000),
        };
        Ok(LogWish {
            span: (params.instant("from", now)?.unwrap_or(i64::MIN), params.instant("to", now)?.unwrap_or(i64::MAX)),
            rank,
            label,
            stream: params.last("stream").map(named).transpose()?,
            text: params.last("text").map(str::to_lowercase).filter(|text| !text.is_empty()),
            limit,
            form,
        })
    }

    /// The request to a machine.
    fn asked(&self, run: &str) -> LinesAsked {
        LinesAsked {
            run: run.into(),
            span: self.span,
            rank: self.rank,
            process: None,
            stream: self.stream,
            text: self.text.clone().unwrap_or_default(),
            limit: u32::try_from(self.limit.unwrap_or(MAX_LINES)).unwrap_or(u32::MAX),
            newest: self.limit.is_some(),
            marks: Vec::new(),
        }
    }
}

impl Machine {
    /// A part of its lines, or the reason why there is none, as a sentence.
    async fn part(&self, app: &Arc<App>, slot: &AnswerSlot, mut asked: LinesAsked) -> Result<LinesPart, String> {
        asked.process = self.process.or(asked.process);
        let part = match (&app.hub, self.is_here) {
            (_, true) => {
                let theirs = app.clone();
                let read = move || theirs.runs.lines(&theirs.live, &asked, OWN_PART_BYTES);
                slot.blocking(read).await.map_err(|_| "the lines could not be read; see the log".to_string())
            }
            (Some(hub), false) => hub.ingest.lines(self.source.id, asked).await.map_err(|why| why.to_string()),
            (None, false) => Ok(LinesPart::default()),
        };
        part.map(|part| without_deleted(part, &self.deleted))
    }

    /// The newest lines up to the requested number, in the order of their times.
    async fn newest(
        &self,
        app: &Arc<App>,
        slot: &AnswerSlot,
        mut asked: LinesAsked,
    ) -> Result<Vec<PrintedRow>, String> {
        let (wanted, mut all) = (asked.limit as usize, VecDeque::new());
        for _ in 0..MAX_PARTS {
            let part = self.part(app, slot, asked.clone()).await?;
            part.rows.into_iter().rev().for_each(|row| all.push_front(printed(row)));
            if !part.more || all.len() >= wanted {
                break;
            }
            asked.limit = u32::try_from(wanted - all.len()).unwrap_or(u32::MAX);
            asked.marks = part.marks;
        }
        Ok(all.into())
    }
}

/// The part without lines of processes that began in these spans.
fn without_deleted(mut part: LinesPart, deleted: &[(i64, i64)]) -> LinesPart {
    part.rows.retain(|(began, ..)| !deleted.iter().any(|(from, to)| (from..=to).contains(&began)));
    part
}

fn printed((began, pid, line): (i64, u32, shared::output::OutputLine)) -> PrintedRow {
    PrintedRow { process: (began, pid), line }
}

impl Readable {
    /// The processes with this label alone.
    ///
    /// # Errors
    /// 404 without such a process, with the labels that there are.
    fn labeled(self, run: &Run, label: &str) -> Result<Readable, Refusal> {
        let mut all = Vec::new();
        for process in run.processes.iter().filter(|process| process.label.as_deref() == Some(label)) {
            let machine = self.0.iter().find(|machine| machine.source.name == process.source);
            all.extend(machine.map(|machine| Machine {
                source: machine.source.clone(),
                ranks: Ranks::from_run(run, &process.source),
                is_here: machine.is_here,
                process: Some((process.began, process.pid)),
                deleted: machine.deleted.clone(),
            }));
        }
        all.truncate(MAX_MACHINES);
        if all.is_empty() {
            let labels: BTreeSet<&str> = run.processes.iter().filter_map(|process| process.label.as_deref()).collect();
            let labels = labels.into_iter().take(20).collect::<Vec<_>>().join(", ");
            let known = if labels.is_empty() { "it has no labels".into() } else { format!("labels are {labels}") };
            return Err(Refusal::new(
                StatusCode::NOT_FOUND,
                format!("no process of this run with readable output has the label {label:?}; {known}"),
            ));
        }
        Ok(Readable(all))
    }

    /// The newest lines of all machines together, up to the requested number.
    async fn newest(&self, app: &Arc<App>, slot: &AnswerSlot, asked: &LinesAsked) -> LoggedLines {
        let answers = join_all(self.0.iter().map(|machine| machine.newest(app, slot, asked.clone()))).await;
        let mut all = LoggedLines::default();
        for ((machine, one), answer) in self.0.iter().enumerate().zip(answers) {
            match answer {
                Ok(rows) => all.lines.extend(rows.into_iter().map(|row| LoggedLine { machine, row })),
                Err(why) => all.missing.push((one.source.name.clone(), why)),
            }
        }
        all.lines.sort_by_key(|line| (line.row.line.t, line.machine, line.row.process, line.row.line.n));
        let surplus = all.lines.len().saturating_sub(asked.limit as usize);
        all.lines.drain(..surplus);
        all
    }

    fn rank_of(&self, line: &LoggedLine) -> Option<u32> {
        self.0[line.machine].ranks.of_row(&line.row)
    }

    fn label_of(&self, line: &LoggedLine) -> Option<&str> {
        self.0[line.machine].ranks.label(&line.row)
    }

    fn row(&self, of: &LoggedLine) -> LogRow {
        let line = &of.row.line;
        let row = LogRow {
            t: Seconds(line.t),
            n: line.n,
            source: self.0[of.machine].source.name.clone(),
            pid: of.row.process.1,
            began: Seconds(of.row.process.0),
            ..LogRow::default()
        };
        match line.lost {
            0 => LogRow {
                rank: self.rank_of(of),
                label: self.label_of(of).map(String::from),
                stream: Some(line.stream),
                text: Some(line.text.clone()),
                cut: line.cut,
                ..row
            },
            lost => LogRow { lost: Some(lost), ..row },
        }
    }

    fn write(&self, line: &LoggedLine, form: Form, into: &mut String) {
        let printed = &line.row.line;
        let _ = match (form, printed.lost) {
            (Form::Rows | Form::List, _) => writeln!(into, "{}", written(&self.row(line))),
            (Form::Text, 0) => writeln!(into, "{}", plain(&printed.text)),
            (Form::Text, lost) => writeln!(into, "({lost} lines dropped)"),
        };
    }
}

/// A value as JSON.
fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers")
}

/// Writes the machines whose lines are missing.
fn write_missing(missing: &[(String, String)], form: Form, into: &mut String) {
    for (source, why) in missing {
        let _ = match form {
            Form::Rows | Form::List => {
                writeln!(into, "{}", written(&LogGap { source: source.clone(), missing: why.clone() }))
            }
            Form::Text => writeln!(into, "(lines of {source} are missing: {why})"),
        };
    }
}

/// The machines of a run whose lines the caller may read, by the rule for arguments of processes; `None` if there are
/// none.
pub(super) async fn readable(app: &App, asker: &Asker, run: &Run) -> Option<Readable> {
    let mut all = Vec::new();
    for (source, is_here) in kept_on(app, asker, run) {
        if all.len() < MAX_MACHINES && asker.sees_arguments(app, &source.key).await {
            let ranks = Ranks::from_run(run, &source.name);
            let deleted = app.runs.deleted_spans(run.machine_id(), &source.key);
            all.push(Machine { ranks, source, is_here, process: None, deleted });
        }
    }
    (!all.is_empty()).then_some(Readable(all))
}

/// The machines of a run that the caller sees and that have its lines or are requested for them; the bool: they are
/// here.
fn kept_on(app: &App, asker: &Asker, run: &Run) -> Vec<(Arc<Source>, bool)> {
    let own = app.runs.logs.source();
    let is_of_run = |source: &Arc<Source>| run.processes.iter().any(|process| process.source == source.name);
    let all = asker.reader(app).sources().into_iter().filter(is_of_run).map(|source| {
        let is_here = own == Some(source.id);
        (source, is_here)
    });
    all.filter(|(source, is_here)| *is_here || app.hub.as_ref().is_some_and(|hub| hub.ingest.has_agent(source.id)))
        .collect()
}

/// The line that explains best why a run ended, of the first rank to fail, if the caller may read it. `None` also if
/// its machine does not send it within a second.
pub(super) async fn words_of(app: &Arc<App>, slot: &AnswerSlot, run: &Run, readable: &Readable) -> Option<String> {
    let cause = run.cause.as_ref()?;
    let machine = readable.0.iter().find(|machine| machine.source.name == cause.source)?;
    let process = run.processes.iter().find(|one| one.source == cause.source && one.pid == cause.pid)?;
    let asked = LinesAsked {
        run: run.machine_id().into(),
        span: (i64::MIN, i64::MAX),
        rank: cause.rank,
        process: Some((process.began, cause.pid)),
        limit: QUOTED_FROM as u32,
        newest: true,
        ..LinesAsked::default()
    };
    let rows = tokio::time::timeout(WORDS_TIMEOUT, machine.newest(app, slot, asked)).await.ok()?.ok()?;
    last_words(process.how.as_ref()?, &rows)
}

/// The last lines of a run: of each process, and of each rank that a launcher names.
pub(super) async fn tail(app: &Arc<App>, slot: &AnswerSlot, run: &Run, readable: &Readable) -> LoggedLines {
    let many = (LAST_LINES * (1 + run.processes.len())).min(MAX_LINES);
    let (run, span, limit) = (run.machine_id().to_string(), (i64::MIN, i64::MAX), many as u32);
    let mut all =
        readable.newest(app, slot, &LinesAsked { run, span, limit, newest: true, ..LinesAsked::default() }).await;
    let mut left = BTreeMap::new();
    let mut last: Vec<LoggedLine> = std::mem::take(&mut all.lines)
        .into_iter()
        .rev()
        .filter(|line| {
            let left = left.entry((line.machine, line.row.process, readable.rank_of(line))).or_insert(LAST_LINES);
            let is_line = line.row.line.lost == 0;
            let fits = is_line && *left > 0;
            *left = left.saturating_sub(usize::from(is_line));
            fits
        })
        .collect();
    last.reverse();
    LoggedLines { lines: last, ..all }
}

impl LoggedLines {
    /// Rows of a report: time, rank and text.
    pub fn document(&self, readable: &Readable) -> Vec<LogRow> {
        self.lines.iter().map(|line| readable.row(line)).collect()
    }

    /// Lines of a report: time, origin and text, without colors.
    pub fn shown(&self, readable: &Readable) -> Vec<(i64, String, String)> {
        let name = |line: &LoggedLine| match (readable.label_of(line), readable.rank_of(line)) {
            (Some(label), _) => label.to_string(),
            (None, Some(rank)) => format!("rank {rank}"),
            (None, None) => String::new(),
        };
        self.lines.iter().map(|line| (line.row.line.t, name(line), plain(&line.row.line.text))).collect()
    }
}

/// `?from=`, `to=`, `rank=` or `label=`, `stream=out|err|tty` and `text=` (case ignored) choose; with `limit=N` the newest N of
/// those lines, else all of them. `?format=jsonl` is a row of JSON a line, `text` the bare lines, `json` one list.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let closed = |sentence: &str| Refusal::new(StatusCode::FORBIDDEN, sentence);
    if asker.who.as_ref().is_some_and(|who| who.scopes.is_some()) {
        return Err(closed(
            "output and arguments cannot be read with a key; sign in, or run watchglass logs on the machine",
        ));
    }
    let now = app.live.clock.wall();
    let mut wish = LogWish::from_params(&params, now)?;
    wish.span = asker.within(now, wish.span.0, wish.span.1)?;
    let slot = history_slot(&app, &asker)?;
    let (theirs, reader, wanted) = (app.clone(), asker.reader(&app), id.clone());
    let run = slot.blocking(move || theirs.runs.seen(&reader, (0, i64::MAX)).find(|run| run.id == wanted)).await?;
    let run = run.ok_or_else(|| unknown_run(&id))?;
    let Some(readable) = readable(&app, &asker, &run).await else {
        return Err(match kept_on(&app, &asker, &run).is_empty() {
            false if app.hub.is_none() => {
                closed("only the user who runs this Watchglass can read the output of jobs; ask them")
            }
            false => closed("only members of a team with access to the machine can read the output of a job"),
            true => Refusal::new(
                StatusCode::NOT_FOUND,
                format!("the output of {id:?} is on its machine; run watchglass logs {id} there"),
            ),
        });
    };
    let readable = match &wish.label {
        Some(label) => readable.labeled(&run, label)?,
        None => readable,
    };
    let (asked, form) = (wish.asked(run.machine_id()), wish.form);
    if wish.limit.is_none() {
        return Ok(all(app, slot, readable, &asked, form).await);
    }
    let found = readable.newest(&app, &slot, &asked).await;
    if found.missing.len() == readable.0.len() {
        let (source, why) = &found.missing[0];
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, format!("{source}: {why}")));
    }
    if form == Form::List {
        let lines = found.document(&readable);
        let missing = found.missing.into_iter().map(|(source, why)| LogMissing { source, why }).collect();
        return Ok(answered(form, written(&LogList { lines, missing })));
    }
    let mut text = String::new();
    found.lines.iter().for_each(|line| readable.write(line, form, &mut text));
    write_missing(&found.missing, form, &mut text);
    Ok(answered(form, text))
}

/// The remaining lines of a machine.
struct Feed {
    asked: LinesAsked,
    rows: VecDeque<PrintedRow>,
    more: bool,
    missing: Option<String>,
}

/// All lines of the machines in the order of time, read as they are sent.
async fn all(app: Arc<App>, slot: AnswerSlot, readable: Readable, asked: &LinesAsked, form: Form) -> Response<Body> {
    let feed = || Feed { asked: asked.clone(), rows: VecDeque::new(), more: true, missing: None };
    let feeds: Vec<Feed> = readable.0.iter().map(|_| feed()).collect();
    let parts = futures_util::stream::unfold(Some((app, slot, readable, feeds)), move |state| async move {
        let (app, slot, readable, mut feeds) = state?;
        let mut text = String::new();
        for _ in 0..ROWS_AT_ONCE {
            let empty = readable.0.iter().zip(&mut feeds).filter(|(_, feed)| feed.rows.is_empty() && feed.more);
            join_all(empty.map(|(machine, feed)| feed.fill(&app, &slot, machine))).await;
            if feeds.iter().any(|feed| feed.rows.is_empty() && feed.more) {
                // A search with few matches releases its permit after a while.
                return Some((Ok::<_, std::io::Error>(text), Some((app, slot, readable, feeds))));
            }
            let next = feeds.iter().enumerate().filter_map(|(at, feed)| Some((feed.rows.front()?.line.t, at))).min();
            let Some((_, machine)) = next else {
                let names = readable.0.iter().map(|machine| machine.source.name.clone());
                let missing = names.zip(&feeds).filter_map(|(name, feed)| Some((name, feed.missing.clone()?)));
                write_missing(&missing.collect::<Vec<_>>(), form, &mut text);
                return Some((Ok(text), None));
            };
            if let Some(row) = feeds[machine].rows.pop_front() {
                readable.write(&LoggedLine { machine, row }, form, &mut text);
            }
        }
        Some((Ok(text), Some((app, slot, readable, feeds))))
    });
    let mut response = Response::new(Body::from_stream(parts));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(mime(form)));
    response
}

impl Feed {
    async fn fill(&mut self, app: &Arc<App>, slot: &AnswerSlot, machine: &Machine) {
        match machine.part(app, slot, self.asked.clone()).await {
            Ok(part) => {
                // A machine without progress would be requested forever.
                self.more = part.more && (!part.rows.is_empty() || part.marks != self.asked.marks);
                self.asked.marks = part.marks;
                self.rows.extend(part.rows.into_iter().map(printed));
            }
            Err(why) => (self.more, self.missing) = (false, Some(why)),
        }
    }
}

fn mime(form: Form) -> &'static str {
    match form {
        Form::Rows => "application/x-ndjson",
        Form::Text => "text/plain; charset=utf-8",
        Form::List => "application/json",
    }
}

fn answered(form: Form, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(mime(form)));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::output::OutputLine;

    #[test]
    fn lines_of_a_deleted_run_are_not_those_of_a_later_one_of_its_id() {
        let row = |began: i64| (began, 7, OutputLine { t: began, n: 1, ..OutputLine::default() });
        let part = LinesPart { rows: vec![row(100), row(200), row(300)], more: true, ..LinesPart::default() };
        let left = without_deleted(part.clone(), &[(i64::MIN, 200)]);
        assert_eq!((left.rows, left.more), (vec![row(300)], true), "further parts are still requested");
        assert_eq!(without_deleted(part.clone(), &[]), part);
    }
}
