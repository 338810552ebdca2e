//! `GET /api/v1/runs`: the training jobs of the machines, newest first; `GET /api/v1/runs/ID`: one of them, with what it
//! held and used.

use super::params::Params;
use super::{logs, named, number, seconds, unknown_run};
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use crate::markers;
use crate::runs::{self, RunMeasures, Sums};
use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Map, Value, json as object};
use shared::run::{Run, RunProcess, RunState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most runs of an answer, and how many it has where nothing is said.
const MAX_RUNS: usize = 1_000;
const DEFAULT_RUNS: usize = 50;
/// Runs of an answer whose figures are read from the history; further ones have none.
const MAX_MEASURED: usize = 200;
/// Columns of a line of one run.
const POINTS: usize = 480;

/// `?state=`, `project=`, `group=`, `job_type=`, `user=`, `source=` and `q=` (a part of id, name or program) choose; `from=` and `to=`
/// are the time of the begin; `limit=` runs are listed, and `before=ID` those that began before that one. With `sums=true`
/// each has what it held and used, and a small line of its utilisation, in place of its processes.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Json<Value>, Refusal> {
    let now = app.live.clock.wall();
    let wish = Wish::of(&params, now)?;
    let (from, to) = asker.within(now, 0, now)?;
    let sources = named(&app, &asker, &params).await?;
    let (slot, theirs) = (app.answers.history.take()?, app.clone());
    // Records of a begin lie where the begin is, those of an end where the end is: all that may be seen are read.
    // Of one machine are those that its records tell of; of all also those whose records have gone.
    let (of_one, reader) = (params.last("source").is_some(), asker.reader(&app));
    let answered = move || {
        let all = match of_one {
            true => theirs.runs.newest_first(&theirs.live, &sources, (from, to)).collect::<Vec<_>>(),
            false => theirs.runs.seen(&reader, (from, to)).collect(),
        };
        wish.answer(all, |run| {
            let brief = theirs.briefs.brief(&theirs.live, &sources, run, now);
            let mut fields = figures(&brief.sums);
            fields.insert("spark".into(), short(&brief.spark));
            fields
        })
    };
    Ok(Json(slot.blocking(answered).await?))
}

/// A run with its processes, what it held and used, and its charts.
pub(in crate::http) async fn one(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<Value>, Refusal> {
    let now = app.live.clock.wall();
    let (from, to) = asker.within(now, 0, now)?;
    let sources = named(&app, &asker, &params).await?;
    let (slot, reader) = (app.answers.history.take()?, asker.reader(&app));
    let live = app.live.clone();
    let (sought, seeing) = (id.clone(), app.clone());
    let found = slot.blocking(move || seeing.runs.seen(&reader, (from, to)).find(|run| run.id == sought)).await?;
    let Some(found) = found else { return Err(unknown_run(&id)) };
    let words = match logs::readable(&app, &asker, &found).await {
        Some(readable) => logs::words_of(&app, &slot, &found, &readable).await,
        None => None,
    };
    let made = move || {
        let measured = runs::measure(&live, &sources, &found, now, (POINTS, true));
        let mut row = run(&found);
        row.as_object_mut().expect("an object").extend(figures(&measured.sums));
        row["curves"] = curves(&measured);
        let span = (found.began, found.ended.unwrap_or(now));
        if let Some(steps) = markers::steps::of_run(&live, &sources, &found.id, span) {
            row["steps"] = object!({ "step": steps.step, "per_second": steps.per_second.map(rounded) });
        }
        // It is a quotation, for who may read what the job printed; state and cause stay the kernel's.
        if let Some(line) = words {
            row["cause"]["line"] = line.into();
        }
        row
    };
    Ok(Json(slot.blocking(made).await?))
}

/// What is asked for.
#[derive(Default)]
struct Wish {
    states: Vec<RunState>,
    project: Option<String>,
    group: Option<String>,
    job_type: Option<String>,
    user: Option<String>,
    part: Option<String>,
    from: Option<i64>,
    to: Option<i64>,
    before: Option<String>,
    limit: usize,
    sums: bool,
}

impl Wish {
    fn of(params: &Params, now: i64) -> Result<Wish, Refusal> {
        let states = params.each("state").flat_map(|states| states.split(','));
        let state = |name: &str| {
            let known = RunState::ALL.map(RunState::name).join(", ");
            RunState::named(name).ok_or_else(|| Refusal::bad(format!("state {name:?} is none; known are {known}")))
        };
        let limit = params.last("limit").map_or(Ok(DEFAULT_RUNS), str::parse).ok();
        let limit = limit.filter(|limit| (1..=MAX_RUNS).contains(limit));
        let text = |name: &str| params.last(name).map(String::from);
        Ok(Wish {
            states: states.map(state).collect::<Result<_, _>>()?,
            project: text("project"),
            group: text("group"),
            job_type: text("job_type"),
            user: text("user"),
            part: text("q").map(|part| part.to_lowercase()),
            from: params.instant("from", now)?,
            to: params.instant("to", now)?,
            before: text("before"),
            limit: limit.ok_or_else(|| Refusal::bad(format!("limit is a number from 1 to {MAX_RUNS}")))?,
            sums: match params.last("sums") {
                None | Some("false") => false,
                Some("true") => true,
                Some(other) => return Err(Refusal::bad(format!("sums is true or false, not {other:?}"))),
            },
        })
    }

    fn chooses(&self, run: &Run) -> bool {
        let is = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        let has = |part: &String| {
            let texts = [Some(&run.id), run.about.name.as_ref(), Some(&run.about.program)];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(part))
        };
        is(&self.project, &run.about.project)
            && is(&self.group, &run.about.group)
            && is(&self.job_type, &run.about.job_type)
            && is(&self.user, &run.about.user)
            && self.part.as_ref().is_none_or(has)
            && self.from.is_none_or(|from| run.began >= from)
            && self.to.is_none_or(|to| run.began <= to)
    }

    /// The runs, behind which one the next answer goes on, and how many of each state there are among those that fit all
    /// else.
    fn answer(&self, all: Vec<Run>, figures: impl Fn(&Run) -> Map<String, Value>) -> Value {
        // The last run of the answer before may fit no more; its place counts all the same.
        let begin =
            self.before.as_ref().map(|id| all.iter().position(|run| run.id == *id).map_or(all.len(), |at| at + 1));
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut total, mut chosen) = (0, Vec::new());
        for (at, run) in all.iter().enumerate().filter(|(_, run)| self.chooses(run)) {
            *states.entry(run.state.name()).or_default() += 1;
            if self.states.is_empty() || self.states.contains(&run.state) {
                total += 1;
                chosen.extend((at >= begin.unwrap_or(0)).then_some(run));
            }
        }
        let further = chosen.len() > self.limit;
        chosen.truncate(self.limit);
        let row = |(at, one): (usize, &&Run)| {
            let mut row = run(one);
            if let Some(row) = row.as_object_mut().filter(|_| self.sums && at < MAX_MEASURED) {
                row.remove("processes");
                row.extend(figures(one));
            }
            row
        };
        let runs: Vec<Value> = chosen.iter().enumerate().map(row).collect();
        let next = chosen.last().filter(|_| further).map(|last| &last.id);
        object!({ "runs": runs, "next": next, "total": total, "states": states })
    }
}

pub(super) fn run(one: &Run) -> Value {
    let about = serde_json::to_value(&one.about).expect("texts only");
    let cause = one.cause.as_ref().map(|cause| {
        object!({
            "source": cause.source, "pid": cause.pid, "rank": cause.rank, "t": seconds(cause.t), "state": cause.state,
            "sentence": cause.sentence,
        })
    });
    let hosts: BTreeSet<&str> = one.processes.iter().map(|process| process.source.as_str()).collect();
    let mut row = object!({
        "hosts": hosts, "ranks": one.processes.iter().filter(|process| process.rank.is_some()).count(),
        "id": one.id, "state": one.state, "sentence": one.sentence, "cause": cause, "began": seconds(one.began),
        "ended": one.ended.map(seconds), "processes": one.processes.iter().map(process).collect::<Vec<_>>(),
        "further": one.further,
    });
    if let (Some(row), Value::Object(about)) = (row.as_object_mut(), about) {
        row.extend(about);
    }
    row
}

/// What a run held and used. What is not known is left out.
fn figures(sums: &Sums) -> Map<String, Value> {
    let known = [
        ("gpu_hours", sums.gpu_hours()),
        ("gpu_utilisation", sums.gpu_utilisation()),
        ("idle_share", sums.idle_share()),
        ("energy_kwh", sums.energy_kwh()),
        ("coverage", sums.coverage()),
        ("gpu_memory_peak_bytes", sums.memory_peak),
    ];
    let mut fields: Map<String, Value> =
        known.into_iter().filter_map(|(name, value)| Some((name.into(), rounded(value?)))).collect();
    if sums.gpus > 0 {
        fields.insert("gpus".into(), sums.gpus.into());
    }
    let marks = [("energy_estimated", sums.estimated), ("gpus_assumed", sums.assumed)];
    fields.extend(marks.into_iter().filter(|(_, is)| *is).map(|(name, is)| (name.into(), is.into())));
    fields
}

fn curves(measured: &RunMeasures) -> Value {
    let measures = measured.measures.iter().map(|measure| {
        let lines = measure.lines.iter().map(|line| {
            object!({ "source": line.source, "rank": line.rank, "label": line.label, "values": short(&line.values) })
        });
        object!({
            "id": measure.id, "title": measure.title, "unit": measure.unit.name(), "of_gpus": measure.together.name(),
            "lines": lines.collect::<Vec<_>>(),
        })
    });
    object!({
        "from": seconds(measured.from), "step": seconds(measured.step), "measures": measures.collect::<Vec<_>>(),
        "left_out": measured.left_out,
    })
}

fn short(values: &[Option<f64>]) -> Value {
    values.iter().map(|value| value.map_or(Value::Null, rounded)).collect()
}

/// A number with six digits: more are noise in a mean.
fn rounded(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return number(if value.is_finite() { 0.0 } else { return Value::Null });
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    number((value * scale).round() / scale)
}

fn process(one: &RunProcess) -> Value {
    let how = one.how.as_ref();
    object!({
        "source": one.source, "pid": one.pid, "label": one.label, "began": seconds(one.began),
        "ended": one.ended.map(seconds), "state": how.map(|how| how.state()), "sentence": how.map(|how| how.sentence()),
        "exit": how.and_then(|how| how.exit), "signal": how.and_then(|how| how.signal.clone()), "rank": one.rank,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::About;

    fn runs() -> Vec<Run> {
        let one = |id: &str, state, project: Option<&str>, began| Run {
            id: id.into(),
            state,
            sentence: String::new(),
            cause: None,
            began,
            ended: None,
            about: About { project: project.map(String::from), program: "Train.py".into(), ..About::default() },
            processes: Vec::new(),
            further: 0,
        };
        vec![
            one("c", RunState::Running, Some("llm"), 3_000),
            one("b", RunState::Failed, Some("llm"), 2_000),
            one("a", RunState::Failed, None, 1_000),
        ]
    }

    fn ids(wish: &Wish) -> Vec<String> {
        let answer = wish.answer(runs(), |_| Map::new());
        answer["runs"].as_array().expect("a list").iter().map(|run| run["id"].as_str().expect("text").into()).collect()
    }

    #[test]
    fn runs_are_chosen_and_leafed_through() {
        let all = || Wish { limit: 10, ..Wish::default() };
        assert_eq!(ids(&all()), ["c", "b", "a"]);
        assert_eq!(ids(&Wish { states: vec![RunState::Failed], ..all() }), ["b", "a"]);
        assert_eq!(ids(&Wish { project: Some("llm".into()), ..all() }), ["c", "b"]);
        assert_eq!(ids(&Wish { part: Some("train".into()), ..all() }).len(), 3);
        assert_eq!(ids(&Wish { from: Some(2_000), to: Some(2_000), ..all() }), ["b"]);
        let first = Wish { limit: 2, ..Wish::default() };
        assert_eq!(first.answer(runs(), |_| Map::new())["next"], "b");
        assert_eq!(ids(&Wish { before: Some("b".into()), ..all() }), ["a"]);
        assert_eq!(all().answer(runs(), |_| Map::new())["next"], Value::Null);
        let failed = Wish { states: vec![RunState::Failed], limit: 1, ..all() }
            .answer(runs(), |run| Map::from_iter([("gpus".to_string(), Value::from(run.began))]));
        assert_eq!((&failed["total"], &failed["states"]), (&2.into(), &object!({ "failed": 2, "running": 1 })));
        assert_eq!(failed["runs"][0].get("gpus"), None, "nobody asked for sums");
        assert_eq!(ids(&Wish { before: Some("gone".into()), ..all() }), [""; 0]);
    }
}
