//! `GET /api/v1/runs`: the training jobs of the machines, newest first.

use super::params::Params;
use super::{named, seconds};
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use crate::runs;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json as object};
use shared::run::{Run, RunProcess, RunState};
use std::sync::Arc;

/// The most runs of an answer, and how many it has where nothing is said.
const MAX_RUNS: usize = 1_000;
const DEFAULT_RUNS: usize = 50;

/// `?state=`, `project=`, `group=`, `job_type=`, `source=` and `q=` (a part of id, name or program) choose; `from=` and `to=`
/// are the time of the begin; `limit=` runs are listed, and `before=ID` those that began before that one.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Json<Value>, Refusal> {
    let now = app.live.clock.wall();
    let wish = Wish::of(&params, now)?;
    let (from, to) = asker.within(now, 0, now)?;
    let sources = named(&app, &asker, &params).await?;
    let (slot, live) = (app.answers.history.take()?, app.live.clone());
    // Records of a begin lie where the begin is, those of an end where the end is: all that may be seen are read.
    let all = slot.blocking(move || runs::list(&live, &sources, from, to)).await?;
    Ok(Json(wish.answer(all)))
}

/// What is asked for.
#[derive(Default)]
struct Wish {
    states: Vec<RunState>,
    project: Option<String>,
    group: Option<String>,
    job_type: Option<String>,
    part: Option<String>,
    from: Option<i64>,
    to: Option<i64>,
    before: Option<String>,
    limit: usize,
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
            part: text("q").map(|part| part.to_lowercase()),
            from: params.instant("from", now)?,
            to: params.instant("to", now)?,
            before: text("before"),
            limit: limit.ok_or_else(|| Refusal::bad(format!("limit is a number from 1 to {MAX_RUNS}")))?,
        })
    }

    fn chooses(&self, run: &Run) -> bool {
        let is = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        let has = |part: &String| {
            let texts = [Some(&run.id), run.about.name.as_ref(), Some(&run.about.program)];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(part))
        };
        (self.states.is_empty() || self.states.contains(&run.state))
            && is(&self.project, &run.about.project)
            && is(&self.group, &run.about.group)
            && is(&self.job_type, &run.about.job_type)
            && self.part.as_ref().is_none_or(has)
            && self.from.is_none_or(|from| run.began >= from)
            && self.to.is_none_or(|to| run.began <= to)
    }

    /// The runs, and behind which one the next answer goes on.
    fn answer(&self, all: Vec<Run>) -> Value {
        let begin = match &self.before {
            Some(id) => all.iter().position(|run| run.id == *id).map_or(all.len(), |at| at + 1),
            None => 0,
        };
        let mut chosen = all.into_iter().skip(begin).filter(|run| self.chooses(run));
        let runs: Vec<Value> = chosen.by_ref().take(self.limit).map(|one| run(&one)).collect();
        let next = chosen.next().and_then(|_| runs.last().map(|last| last["id"].clone()));
        object!({ "runs": runs, "next": next })
    }
}

fn run(one: &Run) -> Value {
    let about = serde_json::to_value(&one.about).expect("texts only");
    let mut row = object!({
        "id": one.id, "state": one.state, "sentence": one.sentence, "began": seconds(one.began),
        "ended": one.ended.map(seconds), "processes": one.processes.iter().map(process).collect::<Vec<_>>(),
        "further": one.further,
    });
    if let (Some(row), Value::Object(about)) = (row.as_object_mut(), about) {
        row.extend(about);
    }
    row
}

fn process(one: &RunProcess) -> Value {
    let how = one.how.as_ref();
    object!({
        "source": one.source, "pid": one.pid, "label": one.label, "began": seconds(one.began),
        "ended": one.ended.map(seconds), "state": how.map(|how| how.state()), "sentence": how.map(|how| how.sentence()),
        "exit": how.and_then(|how| how.exit), "signal": how.and_then(|how| how.signal.clone()),
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
        let answer = wish.answer(runs());
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
        assert_eq!(first.answer(runs())["next"], "b");
        assert_eq!(ids(&Wish { before: Some("b".into()), ..all() }), ["a"]);
        assert_eq!(all().answer(runs())["next"], Value::Null);
        assert_eq!(ids(&Wish { before: Some("gone".into()), ..all() }), [""; 0]);
    }
}
