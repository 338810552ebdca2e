//! `GET /api/v1/runs/{id}/logs`: what a training job printed, for those who see the arguments of processes of its machines:
//! members, and who owns the server of one machine. No key, no viewer and no link reads it.

use super::answer::{history_slot, stream};
use super::params::Params;
use super::{seconds, unknown_run};
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use crate::runs::{PrintedRow, Ranks, fits, last_words};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use serde_json::{Value, json as object};
use shared::output::{LAST_LINES, OutputStream, plain};
use shared::run::{Cause, Run};
use shared::wire::Source;
use std::fmt::Write;
use std::sync::Arc;

/// The most lines of an answer that names how many it wants.
const MAX_LINES: usize = 10_000;
/// Rows that are made at once, where all are wanted.
const ROWS_AT_ONCE: usize = 500;
/// Lines from the end among which that is looked for which says why a rank ended.
const QUOTED_FROM: usize = LAST_LINES;

/// A machine of a run whose lines are here, and how its ranks are found.
pub(super) struct Readable {
    source: Arc<Source>,
    ranks: Ranks,
}

/// Which rows are asked for.
#[derive(Clone)]
struct LogWish {
    span: (i64, i64),
    rank: Option<u32>,
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
    fn of(params: &Params, now: i64) -> Result<LogWish, Refusal> {
        let rank = params.last("rank").map(str::parse).transpose();
        let rank = rank.map_err(|_| Refusal::bad("rank is the number of a rank"))?;
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
            // A list is made at once.
            None => (form == Form::List).then_some(1_000),
        };
        Ok(LogWish {
            span: (params.instant("from", now)?.unwrap_or(i64::MIN), params.instant("to", now)?.unwrap_or(i64::MAX)),
            rank,
            stream: params.last("stream").map(named).transpose()?,
            text: params.last("text").map(str::to_lowercase).filter(|text| !text.is_empty()),
            limit,
            form,
        })
    }

    fn keeps(&self, ranks: &Ranks, row: &PrintedRow) -> bool {
        fits(row, self.stream, self.text.as_deref()) && self.rank.is_none_or(|rank| ranks.of_row(row) == Some(rank))
    }
}

impl Readable {
    /// The newest lines of a process of a run, or of a rank.
    fn last_of(&self, app: &App, run: &Run, cause: &Cause) -> Vec<PrintedRow> {
        let own = |row: &PrintedRow| {
            row.process.1 == cause.pid || cause.rank.is_some_and(|rank| self.ranks.of_row(row) == Some(rank))
        };
        let mut rows = app.runs.logs.newest(&run.id, (i64::MIN, i64::MAX), QUOTED_FROM, &own);
        rows.retain(|row| row.line.lost == 0);
        rows
    }

    fn row(&self, row: &PrintedRow) -> Value {
        let line = &row.line;
        let mut made = object!({
            "t": seconds(line.t), "n": line.n, "source": self.source.name, "pid": row.process.1,
            "began": seconds(row.process.0),
        });
        let more = match line.lost {
            0 => vec![
                ("rank", self.ranks.of_row(row).map(Value::from)),
                ("label", self.ranks.label(row).map(Value::from)),
                ("stream", Some(line.stream.name().into())),
                ("text", Some(line.text.as_str().into())),
                ("cut", line.cut.then_some(true.into())),
            ],
            lost => vec![("lost", Some(lost.into()))],
        };
        let fields = made.as_object_mut().expect("made above");
        fields.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
        made
    }

    fn text(&self, row: &PrintedRow, into: &mut String) {
        let _ = match row.line.lost {
            0 => writeln!(into, "{}", plain(&row.line.text)),
            lost => writeln!(into, "({lost} lines not kept)"),
        };
    }
}

/// The machine of a run whose lines are here, where who asks may read them: by the rule for arguments of processes.
pub(super) async fn readable(app: &App, asker: &Asker, run: &Run) -> Option<Readable> {
    let own = app.runs.logs.source()?;
    let source = asker.reader(app).sources().into_iter().find(|source| source.id == own)?;
    let is_of_run = run.processes.iter().any(|process| process.source == source.name);
    let may = is_of_run && asker.sees_arguments(app, &source.key).await;
    may.then(|| Readable { ranks: Ranks::of(run, &source.name), source })
}

/// The line that says best why a run ended, of the first rank to fall, for who may read it. It reads the disk.
pub(super) fn words_of(app: &App, run: &Run, readable: &Readable) -> Option<String> {
    let cause = run.cause.as_ref().filter(|cause| cause.source == readable.source.name)?;
    last_words(&readable.last_of(app, run, cause))
}

/// The last lines of a run: of each process, and of each rank that a launcher names. It reads the disk.
pub(super) fn tail(app: &App, run: &Run, readable: &Readable) -> Vec<PrintedRow> {
    let many = LAST_LINES * (1 + run.processes.len());
    let all = app.runs.logs.newest(&run.id, (i64::MIN, i64::MAX), many.min(MAX_LINES), &|_| true);
    let mut left = std::collections::BTreeMap::new();
    let mut rows: Vec<PrintedRow> = all
        .into_iter()
        .rev()
        .filter(|row| {
            let left = left.entry((row.process, readable.ranks.of_row(row))).or_insert(LAST_LINES);
            *left = usize::saturating_sub(*left, usize::from(row.line.lost == 0));
            row.line.lost == 0 && *left > 0
        })
        .collect();
    rows.reverse();
    rows
}

/// Rows of a report: time, rank and text.
pub(super) fn document(rows: &[PrintedRow], readable: &Readable) -> Vec<Value> {
    rows.iter().map(|row| readable.row(row)).collect()
}

/// Lines of a report: when, of whom, and what, without colours.
pub(super) fn lines(rows: &[PrintedRow], readable: &Readable) -> Vec<(i64, String, String)> {
    let name = |row: &PrintedRow| match (readable.ranks.label(row), readable.ranks.of_row(row)) {
        (Some(label), _) => label.to_string(),
        (None, Some(rank)) => format!("rank {rank}"),
        (None, None) => String::new(),
    };
    rows.iter().map(|row| (row.line.t, name(row), plain(&row.line.text))).collect()
}

/// `?from=`, `to=`, `rank=`, `stream=out|err|tty` and `text=` (case ignored) choose; with `limit=N` the newest N of those lines,
/// else all of them. `?format=jsonl` is a row of JSON a line, `text` the bare lines, `json` one list.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let closed = |sentence: &str| Refusal::new(StatusCode::FORBIDDEN, sentence);
    if asker.who.as_ref().is_some_and(|who| who.scopes.is_some()) {
        return Err(closed(
            "no key reads what a job printed, as none reads arguments; sign in, or ask on the machine itself",
        ));
    }
    let now = app.live.clock.wall();
    let mut wish = LogWish::of(&params, now)?;
    wish.span = asker.within(now, wish.span.0, wish.span.1)?;
    let slot = history_slot(&app, &asker)?;
    let (theirs, reader, wanted) = (app.clone(), asker.reader(&app), id.clone());
    let run = slot.blocking(move || theirs.runs.seen(&reader, (0, i64::MAX)).find(|run| run.id == wanted)).await?;
    let run = run.ok_or_else(|| unknown_run(&id))?;
    let Some(readable) = readable(&app, &asker, &run).await else {
        let is_here = app.runs.logs.source().is_some_and(|own| {
            let known = asker.reader(&app).sources();
            known.iter().any(|one| one.id == own && run.processes.iter().any(|process| process.source == one.name))
        });
        return Err(match is_here {
            true => closed("what a job printed is for members of a team of its machine"),
            false => Refusal::new(
                StatusCode::NOT_FOUND,
                format!("what {id:?} printed is kept on its machine, not here; ask there by watchglass logs {id}"),
            ),
        });
    };
    if let Some(limit) = wish.limit {
        let (theirs, form) = (app.clone(), wish.form);
        let made = move || {
            let keeps = |row: &PrintedRow| wish.keeps(&readable.ranks, row);
            let rows = theirs.runs.logs.newest(&run.id, wish.span, limit, &keeps);
            match form {
                Form::List => object!({ "lines": document(&rows, &readable) }).to_string(),
                _ => rows.iter().fold(String::new(), |text, row| written(text, row, form, &readable)),
            }
        };
        return Ok(answered(form, slot.blocking(made).await?));
    }
    let mut rows = app.runs.logs.all(&run.id, wish.span);
    let (mime, form) = (mime(wish.form), wish.form);
    let make = move || {
        let mut text = String::new();
        let mut count = 0;
        for row in rows.by_ref() {
            if row.line.lost > 0 || wish.keeps(&readable.ranks, &row) {
                text = written(text, &row, form, &readable);
            }
            count += 1;
            if count == ROWS_AT_ONCE {
                return (text, true);
            }
        }
        (text, false)
    };
    Ok(stream(slot, mime, make).await)
}

fn written(mut text: String, row: &PrintedRow, form: Form, readable: &Readable) -> String {
    match form {
        Form::Text => readable.text(row, &mut text),
        Form::Rows | Form::List => {
            let _ = writeln!(text, "{}", readable.row(row));
        }
    }
    text
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
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, axum::http::HeaderValue::from_static(mime(form)));
    response
}
