//! `watchglass logs`: output of a training job, from the process that holds the data folder. No key can read it, so
//! there is no such way to a hub elsewhere.

use super::AdminFailed;
use crate::config::{Config, LogsTask};
use crate::control;
use ::api::Operation;
use ::api::parameter::{FROM, LIMIT, LINE_TEXT, OUTPUT_STREAM, PROCESS_LABEL, RANK};
use shared::answer::logs::{LogGap, LogRow};
use shared::answer::runs::RunRow;
use shared::controls::escaped_json;
use shared::json::Seconds;
use shared::output::plain;
use shared::session::Problem;
use shared::unit::instant::seconds;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use stream::clock::{self, Clock};
use uplink::settings::HubEntry;

/// Time between two requests while lines are followed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Overlap of two requests, milliseconds: lines are written in batches, and several processes write in parallel.
const OVERLAP_MS: i64 = 3_000;

/// Maximum number of lines of one request.
const MAX_LINES: u32 = 10_000;

/// A line: its machine, the start of its process, and the numbers of both. Missing lines have only the machine.
type LinePlace = (String, Seconds, u32, u64);

/// Prints the requested lines, each by `say`, which reports when the reader has gone.
///
/// # Errors
/// [`AdminFailed`], with the exit status.
pub fn logs(
    config: &Config,
    hub: Option<&HubEntry>,
    task: &LogsTask,
    say: &mut dyn FnMut(&str) -> bool,
) -> Result<(), AdminFailed> {
    if hub.is_some() {
        return Err(AdminFailed::usage(
            "output cannot be read with a key; run this without --hub on the machine of the job, or read it in the \
            page",
        ));
    }
    let folder = config.data_dir.as_deref().filter(|_| !config.memory);
    let folder = folder
        .ok_or_else(|| AdminFailed::folder("there is no data folder; name that of the server with --data-dir"))?;
    let mut rows = PrintedRows { task, say, known: HashMap::new(), newest: None, reads: true, unread: None };
    rows.ask(folder, &question(task, None, task.last.or(task.follow.then_some(100))))?;
    while task.follow && rows.reads {
        // Output after its end is not awaited.
        let is_over = ended(folder, &task.run)?;
        std::thread::sleep(POLL_INTERVAL);
        let from = rows.newest.unwrap_or_else(|| clock::System.wall()) - OVERLAP_MS;
        rows.forget_before(from);
        rows.ask(folder, &question(task, Some(from), Some(MAX_LINES)))?;
        if is_over {
            break;
        }
    }
    Ok(())
}

/// Printed rows: no row is printed twice.
struct PrintedRows<'a> {
    task: &'a LogsTask,
    say: &'a mut dyn FnMut(&str) -> bool,
    /// Those that may come again, with their times.
    known: HashMap<LinePlace, Option<i64>>,
    /// Time of the newest line, milliseconds since the Unix epoch; `None` before the first.
    newest: Option<i64>,
    /// The output still has a reader.
    reads: bool,
    /// The error of an unreadable row.
    unread: Option<serde_json::Error>,
}

impl PrintedRows<'_> {
    fn ask(&mut self, folder: &Path, path: &str) -> Result<(), AdminFailed> {
        ask(folder, path, &mut |row| self.row(row))?;
        self.unread.take().map_or(Ok(()), |error| Err(AdminFailed::version(&error)))
    }

    /// Forgets the rows of before this time, milliseconds since the Unix epoch: no later request returns them.
    fn forget_before(&mut self, from: i64) {
        self.known.retain(|_, t| t.is_none_or(|t| t >= from));
    }

    fn row(&mut self, row: &str) {
        let (place, t, text) = match read(row, self.task.rank.is_none()) {
            Ok(read) => read,
            Err(error) => return self.unread = Some(error),
        };
        // Only the first report of a gap counts.
        if self.known.insert(place, t).is_some() || !self.reads {
            return;
        }
        self.newest = self.newest.max(t);
        self.reads = (self.say)(&if self.task.json { format!("{}\n", escaped_json(row.into())) } else { text });
    }
}

/// A row: its place, its time, and the line to print. It is a line of output, or a note that a machine's lines are
/// missing.
fn read(row: &str, with_rank: bool) -> Result<(LinePlace, Option<i64>, String), serde_json::Error> {
    let line = match serde_json::from_str::<LogRow>(row) {
        Ok(line) => line,
        Err(error) => {
            let LogGap { source, missing } = serde_json::from_str(row).map_err(|_| error)?;
            let words = format!("(lines of {source} are missing: {missing})\n");
            return Ok(((source, Seconds(0), 0, 0), None, words));
        }
    };
    let words = shown(&line, with_rank);
    Ok(((line.source, line.began, line.pid, line.n), Some(line.t.ms()), words))
}

fn question(task: &LogsTask, from: Option<i64>, limit: Option<u32>) -> String {
    let parameters = [
        (FROM, from.map(seconds)),
        (RANK, task.rank.map(|rank| rank.to_string())),
        (PROCESS_LABEL, task.label.clone()),
        (OUTPUT_STREAM, task.stream.map(|stream| stream.name().to_string())),
        (LINE_TEXT, task.grep.clone()),
        (LIMIT, limit.map(|limit| limit.to_string())),
    ];
    Operation::ListRunLogs.asking(&[&task.run], &parameters)
}

/// A line for people.
fn shown(line: &LogRow, with_rank: bool) -> String {
    if let Some(lost) = line.lost {
        return format!("({lost} lines dropped)\n");
    }
    let text = plain(line.text.as_deref().unwrap_or_default());
    let mark = if line.cut { "…" } else { "" };
    match line.rank.filter(|_| with_rank && !text.starts_with('[')) {
        Some(rank) => format!("rank {rank}: {text}{mark}\n"),
        None => format!("{text}{mark}\n"),
    }
}

fn ask(folder: &Path, path: &str, row: &mut dyn FnMut(&str)) -> Result<(), AdminFailed> {
    let mut problem = String::new();
    let mut all = |status: u16, text: &str| match status {
        200 => row(text),
        _ => problem += text,
    };
    let failed = |error: std::io::Error| AdminFailed::new(format!("the control socket does not respond: {error}"));
    match control::ask_rows(folder, path, &mut all).map_err(failed)? {
        Some(200) => Ok(()),
        Some(status) => {
            let sentence = serde_json::from_str::<Problem>(&problem).map(|problem| problem.error);
            Err(AdminFailed::answered(
                status,
                sentence.unwrap_or_else(|_| format!("the server is not a hub: status {status}")),
            ))
        }
        None => Err(AdminFailed::folder(format!(
            "no watchglass runs with {}; start it, or name another folder with --data-dir",
            folder.display()
        ))),
    }
}

fn ended(folder: &Path, run: &str) -> Result<bool, AdminFailed> {
    let mut text = String::new();
    ask(folder, &Operation::GetRun.at(&[run]), &mut |row| text += row)?;
    let run: RunRow = serde_json::from_str(&text).map_err(|error| AdminFailed::version(&error))?;
    Ok(run.ended.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_without_what_acts_on_a_terminal() {
        let of = |text: &str| LogRow { text: Some(text.into()), rank: Some(3), ..LogRow::default() };
        let line = LogRow { cut: true, ..of("\u{1b}[31mred\u{1b}[0m") };
        assert_eq!((shown(&line, true), shown(&line, false)), ("rank 3: red…\n".into(), "red…\n".into()));
        assert_eq!(shown(&of("[rank3]: x"), true), "[rank3]: x\n");
        assert_eq!(shown(&LogRow { lost: Some(12), ..LogRow::default() }, true), "(12 lines dropped)\n");
    }

    #[test]
    fn a_row_is_a_line_or_says_whose_are_missing_and_no_other() {
        let line = r#"{"t":1.5,"n":1,"source":"node-1","pid":7,"began":1,"text":"step 1"}"#;
        let place = ("node-1".into(), Seconds(1_000), 7, 1);
        assert_eq!(read(line, true).expect("a line"), (place, Some(1_500), "step 1\n".into()));
        let gap = read(r#"{"source":"node-2","missing":"it is away"}"#, true).expect("a gap");
        assert_eq!((gap.1, gap.2.as_str()), (None, "(lines of node-2 are missing: it is away)\n"));
        let error = read(r#"{"t":1.5,"source":"node-1"}"#, true).expect_err("no row of ours");
        assert!(error.to_string().contains("missing field `n`"), "{error}");
    }

    #[test]
    fn rows_that_cannot_come_again_are_forgotten_and_no_row_is_printed_twice() {
        let (task, mut printed) = (LogsTask::default(), String::new());
        let mut say = |text: &str| {
            printed += text;
            true
        };
        let (known, newest) = (HashMap::new(), None);
        let mut rows = PrintedRows { task: &task, say: &mut say, known, newest, reads: true, unread: None };
        let line = |n: u32| format!(r#"{{"t":{n},"n":{n},"source":"node-1","pid":7,"began":1,"text":"step {n}"}}"#);
        (1..=9).for_each(|n| rows.row(&line(n)));
        rows.row(r#"{"source":"node-2","missing":"it is away"}"#);
        rows.forget_before(8_000);
        assert_eq!(rows.known.len(), 3, "two lines, and the machine");
        (8..=10).for_each(|n| rows.row(&line(n)));
        rows.row(r#"{"source":"node-2","missing":"it is away"}"#);
        assert_eq!((rows.newest, printed.lines().count()), (Some(10_000), 11));
    }

    #[test]
    fn a_question_names_what_was_wanted() {
        let task = LogsTask { run: "a b".into(), rank: Some(3), grep: Some("CUDA out".into()), ..LogsTask::default() };
        assert_eq!(question(&task, None, None), "api/v1/runs/a%20b/logs?rank=3&text=CUDA%20out");
        assert_eq!(question(&LogsTask::default(), Some(-1), Some(5)), "api/v1/runs//logs?from=-0.001&limit=5");
    }
}
