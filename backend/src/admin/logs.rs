//! `watchglass logs`: what a training job printed, from the process that has the data folder. A key reads none of it, so that
//! there is no such road to a hub elsewhere.

use super::AdminFailed;
use super::order::seconds;
use crate::config::{Config, HubEntry, LogsTask};
use crate::control;
use ::api::Operation;
use ::api::parameter::{FROM, LIMIT, LINE_TEXT, OUTPUT_STREAM, RANK};
use serde_json::Value;
use shared::controls::escaped_json;
use shared::output::plain;
use shared::session::Problem;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use stream::clock::{self, Clock};

/// Time between two questions, while lines are followed.
const PERIOD: Duration = Duration::from_secs(1);

/// How far back is asked again, milliseconds: lines are written together, and those of several processes beside each other.
const OVERLAP_MS: i64 = 3_000;

/// The most lines of one question.
const MOST: u32 = 10_000;

/// A line: its process and number, and when it was, milliseconds since the Unix epoch.
type Place = (String, i64, u64, u64);

/// Prints the lines that are wanted, each by `say`, which gives up where nobody reads.
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
    let mut known: HashSet<Place> = HashSet::new();
    let (mut newest, mut reads) = (i64::MIN, true);
    let mut print = |row: &str, known: &mut HashSet<Place>, newest: &mut i64, reads: &mut bool| {
        let Ok(line) = serde_json::from_str::<Value>(row) else { return };
        let t = line["t"].as_f64().map_or(0, |t| (t * 1_000.0).round() as i64);
        let number = |name: &str| line[name].as_u64().unwrap_or_default();
        let began = (line["began"].as_f64().unwrap_or_default() * 1_000.0) as i64;
        let place = (line["source"].as_str().unwrap_or_default().to_string(), began, number("pid"), number("n"));
        // Of a gap only what is told first counts.
        if !known.insert(place) || !*reads {
            return;
        }
        *newest = t.max(*newest);
        *reads =
            say(&if task.json { format!("{}\n", escaped_json(row.into())) } else { shown(&line, task.rank.is_none()) });
    };
    let first = question(task, None, task.last.or(task.follow.then_some(100)));
    ask(folder, &first, &mut |row| print(row, &mut known, &mut newest, &mut reads))?;
    while task.follow && reads {
        // What is printed after it has ended is not waited for.
        let is_over = ended(folder, &task.run)?;
        std::thread::sleep(PERIOD);
        let from = if newest == i64::MIN { clock::System.wall() } else { newest } - OVERLAP_MS;
        ask(folder, &question(task, Some(from), Some(MOST)), &mut |row| {
            print(row, &mut known, &mut newest, &mut reads)
        })?;
        if is_over {
            break;
        }
    }
    Ok(())
}

fn question(task: &LogsTask, from: Option<i64>, limit: Option<u32>) -> String {
    let parameters = [
        (FROM, from.map(seconds)),
        (RANK, task.rank.map(|rank| rank.to_string())),
        (OUTPUT_STREAM, task.stream.map(|stream| stream.name().to_string())),
        (LINE_TEXT, task.grep.clone()),
        (LIMIT, limit.map(|limit| limit.to_string())),
    ];
    Operation::ListRunLogs.asking(&[&task.run], &parameters)
}

/// A line for people.
fn shown(line: &Value, with_rank: bool) -> String {
    if let Some(lost) = line["lost"].as_u64() {
        return format!("({lost} lines dropped)\n");
    }
    let text = plain(line["text"].as_str().unwrap_or_default());
    let mark = if line["cut"] == true { "…" } else { "" };
    match line["rank"].as_u64().filter(|_| with_rank && !text.starts_with('[')) {
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
    let run: Value = serde_json::from_str(&text).unwrap_or_default();
    Ok(!run["ended"].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_is_shown_without_what_acts_on_a_terminal() {
        let line = json!({ "text": "\u{1b}[31mred\u{1b}[0m", "rank": 3, "cut": true });
        assert_eq!((shown(&line, true), shown(&line, false)), ("rank 3: red…\n".into(), "red…\n".into()));
        assert_eq!(shown(&json!({ "text": "[rank3]: x", "rank": 3 }), true), "[rank3]: x\n");
        assert_eq!(shown(&json!({ "lost": 12 }), true), "(12 lines dropped)\n");
    }

    #[test]
    fn a_question_names_what_was_wanted() {
        let task = LogsTask { run: "a b".into(), rank: Some(3), grep: Some("CUDA out".into()), ..LogsTask::default() };
        assert_eq!(question(&task, None, None), "api/v1/runs/a%20b/logs?rank=3&text=CUDA%20out");
        assert_eq!(question(&LogsTask::default(), Some(-1), Some(5)), "api/v1/runs//logs?from=-1.999&limit=5");
    }
}
