//! `GET /api/v1/runs`: the training jobs of the machines, newest first; `GET /api/v1/runs/ID`: one of them, with its
//! resources and usage.

use super::params::Params;
use super::{logs, named, unknown_run};
use crate::http::admit::Asker;
use crate::http::names::HiddenNames;
use crate::http::run_edits::rights;
use crate::http::{App, Refusal};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jobs::markers;
use jobs::runs::{self, Line, RunMeasures, RunNumbers, RunSummary, Sums};
use shared::answer::runs::{
    ListedCause, ListedProcess, ListedRun, MeasureLine, RunCurves, RunFigures, RunList, RunMeasure, RunRow, RunSteps,
    RunTotals,
};
use shared::catalog::{Kind, MetricDef, cpu, gpu, job};
use shared::failure::FailureClass;
use shared::json::{Number, Seconds};
use shared::linked;
use shared::run::{Cause, How, Run, RunProcess, RunState};
use shared::unit::Unit;
use shared::wire::Source;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::live::Reader;

/// Maximum and default number of runs of a response.
const MAX_RUNS: usize = 1_000;
const DEFAULT_RUNS: usize = 50;
/// Runs of a response whose figures are read from the history; further ones have none.
const MAX_MEASURED: usize = 200;
/// Points of a chart line of one run.
const POINTS: usize = 480;
/// Maximum number of points of a stored line, and of steps.
const MAX_KEPT_POINTS: i64 = 1_024;
/// Stored curves: their names here, their metrics, and the reduction of several series to one.
static STORED_CURVES: [(&str, &MetricDef, &str); 4] = [
    ("gpu", &gpu::UTILIZATION, "mean"),
    ("gpu_memory_share", &gpu::MEMORY_ALLOCATED, "mean"),
    ("gpu_power", &gpu::POWER_WATTS, "mean"),
    ("cpu", &cpu::CPU_PERCENT, "mean"),
];

/// Filters of runs by what a link does not show.
const LINK_REFUSES: [&str; 5] = ["user", "group", "job_type", "tag", "q"];

/// `?state=`, `failure=`, `project=`, `group=`, `job_type=`, `user=`, `tag=` (commas mean or, a leading `!` not),
/// `source=` and `q=` (a part of id, name or program) choose; `from=` and `to=` limit the time of the begin. The response lists
/// `limit=` runs, and with `before=ID` those that began before that one. With `sums=true` each run has its resources
/// and usage, and a small line of its utilization, in place of its processes.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Json<RunList>, Refusal> {
    let now = app.live.clock.wall();
    let names = HiddenNames::from_asker(&app, &asker);
    // Filters would tell what a link hides about its run.
    if let Some(name) = LINK_REFUSES.into_iter().find(|name| params.last(name).is_some())
        && asker.linked().is_some()
    {
        let sentence = format!("a link does not filter runs by {name}; leave it out");
        return Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    }
    let wish = Wish { names, ..Wish::from_params(&params, now)? };
    let (from, to) = asker.within(now, 0, now)?;
    let sources = named(&app, &asker, &params).await?;
    let (slot, theirs) = (app.answers.history.take()?, app.clone());
    // Records of a begin are stored at the begin, those of an end at the end, so all visible records are read. With
    // one machine named, only runs in its records are listed; without it, also runs whose records were deleted.
    let (of_one, reader) = (params.last("source").is_some(), asker.reader(&app));
    let link = asker.linked().map(|(objects, _)| objects.clone());
    let answered = move || {
        let all = match of_one {
            true => theirs.runs.newest_first(&theirs.live, &sources, (from, to)).collect::<Vec<_>>(),
            false => theirs.runs.seen(&reader, (from, to)).collect(),
        };
        let all = match &link {
            Some(objects) => all.into_iter().filter(|run| objects.has_run(&run.id)).collect(),
            None => all,
        };
        let mut list = wish.answer(all, |run, row| {
            if link.is_some() {
                // The page of the run has them, within the times and charts of the link.
                return;
            }
            let summary = theirs.summaries.summary(&theirs.live, &sources, run, now);
            row.figures = figures(&theirs, &summary.sums);
            row.row.spark = Some(short(&summary.spark));
            // Its samples were deleted: the stored summary counts.
            if summary.sums.measured_s == 0.0
                && let Some(kept) = theirs.runs.kept.numbers(&run.id, |key| reader.scope().sees(key))
            {
                fill_kept(row, &kept);
            }
        });
        if link.is_some() {
            list.runs = list.runs.into_iter().map(|row| for_link(row, &reader)).collect();
        }
        list
    };
    Ok(Json(slot.blocking(answered).await?))
}

/// Clears the figures that are made of hidden measures.
fn clear_hidden(figures: &mut RunFigures, is_hidden: impl Fn(&str) -> bool) {
    if is_hidden("gpu") {
        (figures.gpu_utilization, figures.idle_share) = (None, None);
    }
    if is_hidden("gpu_power") {
        figures.energy_kwh = None;
    }
    if is_hidden("gpu_memory") {
        figures.gpu_memory_peak_bytes = None;
    }
    if is_hidden("rank_cpu") {
        (figures.cores_mean, figures.cores_peak) = (None, None);
    }
    if is_hidden("rank_memory") {
        figures.memory_peak_bytes = None;
    }
}

/// The part of a run that a share link shows.
fn for_link(row: ListedRun, reader: &Reader) -> ListedRun {
    let sources = reader.sources();
    linked::run(row, |name| sources.iter().any(|source| source.name == name))
}

/// A run with its processes, resources, usage and charts.
pub(in crate::http) async fn one(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<ListedRun>, Refusal> {
    let now = app.live.clock.wall();
    let (from, to) = asker.within(now, 0, now)?;
    if asker.linked().is_some_and(|(objects, _)| !objects.has_run(&id)) {
        return Err(unknown_run(&id));
    }
    let is_link = asker.linked().is_some();
    let scope = asker.scope.clone();
    let sources = named(&app, &asker, &params).await?;
    let (slot, reader, reader_again) = (app.answers.history.take()?, asker.reader(&app), asker.reader(&app));
    let (theirs, live) = (app.clone(), app.live.clone());
    let (sought, seeing) = (id.clone(), app.clone());
    let found = slot.blocking(move || {
        let found = seeing.runs.seen(&reader, (from, to)).find(|run| run.id == sought)?;
        Some((found, seeing.runs.placed(&reader, &sought)))
    });
    let Some((found, placed)) = found.await? else { return Err(unknown_run(&id)) };
    let may = match placed {
        Some(placed) => Some(rights(&app, &asker, &placed).await),
        None => None,
    };
    let words = match logs::readable(&app, &asker, &found).await {
        Some(readable) => logs::words_of(&app, &slot, &found, &readable).await,
        None => None,
    };
    let made = move || {
        // A link shows its own times and charts only.
        let shown = if is_link { Arc::new(runs::limited(&found, (from, to))) } else { found.clone() };
        let mut measured = runs::measure(&live, &sources, &shown, now, (POINTS, true));
        runs::add_logged(&live, &sources, &shown, now, &mut measured);
        measured.join_moved(&shown);
        let is_hidden = |measure: &str| is_link && runs::chart_of(measure).is_some_and(|chart| scope.hides(chart));
        measured.measures.retain(|measure| !is_hidden(&measure.id));
        let mut row = run(&found, now);
        row.row.may = may;
        row.figures = figures(&theirs, &measured.sums);
        let used = runs::measure_use(&live, &sources, &shown, now);
        row.figures.cores_mean = used.cores_mean.and_then(rounded);
        row.figures.cores_peak = used.cores_peak.and_then(rounded);
        row.figures.memory_peak_bytes = used.memory_peak.and_then(rounded);
        let span = (shown.began, shown.ended.unwrap_or(now));
        let read_steps = runs::steps(&live, &sources, &shown, span);
        row.row.curves = Some(curves(&measured, span, &read_steps));
        let steps = markers::steps::steps(&read_steps);
        row.row.steps = steps.map(|of| RunSteps { step: of.step, per_second: of.per_second.and_then(rounded) });
        let own = |source: &&Arc<Source>| found.processes.iter().any(|process| process.source == source.name);
        let machines: Vec<Arc<Source>> = sources.iter().filter(own).cloned().collect();
        row.row.drivers = Some(runs::drivers(&machines));
        if is_link {
            clear_hidden(&mut row.figures, is_hidden);
        }
        // For an ended run the values at that time count; for one without samples all of its stored summary. That is of
        // the whole run, with all charts.
        let is_whole = shown.began == found.began && shown.ended == found.ended;
        let is_whole = is_whole && !runs::charts().any(|chart| scope.hides(chart));
        let sees = |key: &str| (!is_link || is_whole) && reader_again.scope().sees(key);
        if found.ended.is_some()
            && measured.measures.is_empty()
            && let Some(kept) = theirs.runs.kept.summary(&found.id, sees)
        {
            fill_kept(&mut row, &kept.numbers);
            row.row.curves = Some(kept_curves(&kept));
        } else if let Some(kept) = theirs.runs.kept.numbers(&found.id, sees) {
            row.row.drivers = Some(kept.drivers);
        }
        // The line is a quotation, for accounts that may read the job's output. State and cause come from the kernel.
        if let Some(cause) = row.row.cause.as_mut() {
            cause.line = words;
        }
        if is_link { for_link(row, &reader_again) } else { row }
    };
    Ok(Json(slot.blocking(made).await?))
}

/// Comma-separated words of which one must match, or none with a leading `!`.
#[derive(Default)]
struct Words {
    not: bool,
    words: Vec<String>,
}

impl Words {
    fn from_params(params: &Params, name: &str) -> Words {
        let text = params.last(name).unwrap_or_default();
        let (not, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        Words { not, words: text.split(',').filter(|word| !word.is_empty()).map(String::from).collect() }
    }

    fn choose(&self, has: Option<&str>) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| Some(word.as_str()) == has) != self.not
    }

    fn choose_one(&self, mut has: impl Iterator<Item = String>) -> bool {
        self.words.is_empty() || has.any(|one| self.words.contains(&one)) != self.not
    }
}

/// The parsed request.
#[derive(Default)]
struct Wish {
    states: Vec<RunState>,
    failure: Words,
    project: Words,
    group: Words,
    job_type: Words,
    user: Words,
    tag: Words,
    part: Option<String>,
    from: Option<i64>,
    to: Option<i64>,
    before: Option<String>,
    limit: usize,
    sums: bool,
    /// Time of the request, milliseconds since the Unix epoch.
    now: i64,
    /// The hidden names of the caller; None: the caller sees all names.
    names: Option<HiddenNames>,
}

impl Wish {
    fn from_params(params: &Params, now: i64) -> Result<Wish, Refusal> {
        let states = params.each("state").flat_map(|states| states.split(','));
        let of_word = |name: &str| {
            let known = RunState::ALL.map(RunState::name).join(", ");
            RunState::of_word(name)
                .ok_or_else(|| Refusal::bad(format!("state {name:?} is unknown; states are {known}")))
        };
        let failure = Words::from_params(params, "failure");
        if let Some(other) = failure.words.iter().find(|name| FailureClass::named(name).is_none()) {
            let known = FailureClass::ALL.map(FailureClass::name).join(", ");
            return Err(Refusal::bad(format!("failure {other:?} is unknown; classes of failures are {known}")));
        }
        let limit = params.last("limit").map_or(Ok(DEFAULT_RUNS), str::parse).ok();
        let limit = limit.filter(|limit| (1..=MAX_RUNS).contains(limit));
        let text = |name: &str| params.last(name).map(String::from);
        Ok(Wish {
            states: states.map(of_word).collect::<Result<Vec<_>, _>>()?.concat(),
            failure,
            project: Words::from_params(params, "project"),
            group: Words::from_params(params, "group"),
            job_type: Words::from_params(params, "job_type"),
            user: Words::from_params(params, "user"),
            tag: Words::from_params(params, "tag"),
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
            now,
            names: None,
        })
    }

    fn chooses(&self, run: &Run) -> bool {
        let tags = run.about.tags.iter().flat_map(|(name, value)| [name.clone(), format!("{name}={value}")]);
        let has = |part: &String| {
            let texts = [Some(&run.id), run.about.name.as_ref(), Some(&run.about.program)];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(part))
        };
        // A hidden user is no user: otherwise the filter would reveal it.
        let hides = || self.names.as_ref().is_some_and(|names| names.hides_run(run));
        self.project.choose(run.about.project.as_deref())
            && self.group.choose(run.about.group.as_deref())
            && self.job_type.choose(run.about.job_type.as_deref())
            && self.user.choose(run.about.user.as_deref().filter(|_| !hides()))
            && self.tag.choose_one(tags)
            && self.part.as_ref().is_none_or(has)
            && self.from.is_none_or(|from| run.began >= from)
            && self.to.is_none_or(|to| run.began <= to)
    }

    /// The runs, the run after which the next page begins, and the numbers of runs of each state, and of each class of
    /// failure, among those that match all other filters.
    fn answer(&self, all: Vec<Arc<Run>>, measure: impl Fn(&Run, &mut ListedRun)) -> RunList {
        // The last run of the page before may no longer match; its position still counts.
        let begin =
            self.before.as_ref().map(|id| all.iter().position(|run| run.id == *id).map_or(all.len(), |at| at + 1));
        let mut totals = RunTotals::default();
        let mut chosen = Vec::new();
        for (at, run) in all.iter().enumerate().filter(|(_, run)| self.chooses(run)) {
            let is_of_class = self.failure.choose(run.failure.map(FailureClass::name));
            let is_in_state = self.states.is_empty() || self.states.contains(&run.state);
            if is_of_class {
                *totals.states.entry(run.state.name().into()).or_default() += 1;
            }
            if let Some(class) = run.failure.filter(|_| is_in_state) {
                *totals.failures.entry(class.name().into()).or_default() += 1;
            }
            if is_of_class && is_in_state {
                totals.total += 1;
                chosen.extend((at >= begin.unwrap_or(0)).then_some(run));
            }
        }
        let further = chosen.len() > self.limit;
        chosen.truncate(self.limit);
        let row = |(at, one): (usize, &&Arc<Run>)| {
            let mut row = run(one, self.now);
            if self.sums && at < MAX_MEASURED {
                row.row.processes = None;
                measure(one, &mut row);
            }
            row
        };
        let runs = chosen.iter().enumerate().map(row).collect();
        let next = chosen.last().filter(|_| further).map(|last| last.id.clone());
        RunList { runs, next, totals }
    }
}

/// A run without its resources and usage at `now`, milliseconds since the Unix epoch.
pub(in crate::http) fn run(one: &Run, now: i64) -> ListedRun {
    let hosts: BTreeSet<&str> = one.processes.iter().map(|process| process.source.as_str()).collect();
    let cause = |cause: &Cause| ListedCause {
        source: cause.source.clone(),
        pid: cause.pid,
        rank: cause.rank,
        t: Seconds(cause.t),
        state: cause.state,
        sentence: cause.sentence.clone(),
        line: None,
    };
    let row = RunRow {
        id: one.id.clone(),
        state: one.state,
        sentence: one.sentence.clone(),
        cause: one.cause.as_ref().map(cause),
        failure: one.failure,
        began: Seconds(one.began),
        ended: one.ended.map(Seconds),
        hosts: hosts.into_iter().map(String::from).collect(),
        reserved: one.reserved(now),
        ranks: one.processes.iter().filter(|process| process.rank.is_some()).count() as u64,
        processes: Some(one.processes.iter().map(process).collect()),
        further: one.further,
        edited: one.edited.clone(),
        ..RunRow::default()
    };
    ListedRun { row, about: one.about.clone(), figures: RunFigures::default() }
}

fn process(one: &RunProcess) -> ListedProcess {
    let how = one.how.as_ref();
    ListedProcess {
        source: one.source.clone(),
        pid: one.pid,
        label: one.label.clone(),
        began: Seconds(one.began),
        ended: one.ended.map(Seconds),
        state: how.map(How::state),
        sentence: how.map(How::sentence),
        exit: how.and_then(|how| how.exit),
        signal: how.and_then(|how| how.signal.clone()),
        rank: one.rank.clone(),
    }
}

/// Resources and usage of a run.
fn figures(app: &App, sums: &Sums) -> RunFigures {
    let prices = app.runs.prices.as_ref();
    let cost = prices.and_then(|prices| sums.cost(prices)).and_then(rounded);
    RunFigures {
        gpus: (sums.gpus > 0).then_some(sums.gpus),
        gpu_hours: sums.gpu_hours().and_then(rounded),
        gpu_utilization: sums.gpu_utilization().and_then(rounded),
        idle_share: sums.idle_share().and_then(rounded),
        energy_kwh: sums.energy_kwh().and_then(rounded),
        coverage: sums.coverage().and_then(rounded),
        gpu_memory_peak_bytes: sums.memory_peak.and_then(rounded),
        gpu_models: sums.gpu_models(),
        currency: prices.filter(|_| cost.is_some()).map(|prices| prices.currency.clone()),
        cost,
        energy_estimated: sums.estimated,
        gpus_assumed: sums.assumed,
        ..RunFigures::default()
    }
}

/// Figures of a run whose samples were deleted, in place of those known without them.
pub(super) fn fill_kept(row: &mut ListedRun, kept: &RunNumbers) {
    let before = std::mem::take(&mut row.figures);
    let number = |kept: Option<f64>, before: Option<Number>| kept.map(Number).or(before);
    row.figures = RunFigures {
        gpus: kept.gpus.or(before.gpus),
        gpu_hours: number(kept.gpu_hours, before.gpu_hours),
        gpu_utilization: number(kept.gpu_utilization, before.gpu_utilization),
        idle_share: number(kept.idle_share, before.idle_share),
        energy_kwh: number(kept.energy_kwh, before.energy_kwh),
        coverage: Some(Number(kept.coverage)),
        gpu_memory_peak_bytes: number(kept.gpu_memory_peak_bytes, before.gpu_memory_peak_bytes),
        cores_mean: number(kept.cores_mean, before.cores_mean),
        cores_peak: number(kept.cores_peak, before.cores_peak),
        memory_peak_bytes: number(kept.memory_peak_bytes, before.memory_peak_bytes),
        gpu_models: if kept.gpu_models.is_empty() { before.gpu_models } else { kept.gpu_models.clone() },
        cost: number(kept.cost, before.cost),
        currency: kept.currency.clone().or(before.currency),
        ..before
    };
    row.row.seconds = Some(Number(kept.seconds));
    if let Some(step) = kept.step {
        row.row.steps = Some(RunSteps { step, per_second: kept.steps_per_second.map(Number) });
    }
    if !kept.drivers.is_empty() {
        row.row.drivers = Some(kept.drivers.clone());
    }
}

/// The stored curves of a run: the mean of each measure, in the columns of the widest.
fn kept_curves(kept: &RunSummary) -> RunCurves {
    let (from, step) = (kept.run.began, kept.step.max(1));
    let to = kept.run.ended.unwrap_or(kept.made);
    let points = ((to - from) / step + 1).clamp(1, MAX_KEPT_POINTS) as usize;
    // The job's own values stand above what its machines did.
    let (own, rest): (Vec<_>, Vec<_>) = kept.curves.iter().partition(|curve| curve.tag.starts_with(job::PREFIX));
    let measures = own.into_iter().chain(rest).filter_map(|curve| {
        let (id, of, together) = match STORED_CURVES.iter().find(|(_, of, _)| of.tag == curve.tag) {
            Some((id, of, together)) => ((*id).to_string(), *of, *together),
            None if curve.tag.starts_with(job::PREFIX) => (curve.tag.clone(), &job::VALUE, "mean"),
            None => return None,
        };
        let title = curve.tag.strip_prefix(job::PREFIX).unwrap_or(of.title).to_string();
        let mut values = vec![None; points];
        for (t, _, _, mean) in &curve.points {
            // A column begins at a multiple of its width, which may be before the run.
            if let Some(place) = values.get_mut(((t - from).max(0) / step) as usize) {
                *place = Some(*mean);
            }
        }
        let name =
            if curve.series > 1 { format!("mean of {}", curve.series) } else { of.label.replace("{value}", &title) };
        let unit = if of.kind == Kind::Counter { of.unit.per_second() } else { of.unit };
        let lines = vec![MeasureLine { source: name, rank: None, label: None, values: short(&values) }];
        Some(RunMeasure { id, title, unit, of_gpus: together.into(), lines })
    });
    RunCurves { from: Seconds(from), step: Seconds(step), measures: measures.collect(), left_out: 0, kept: true }
}

fn curves(measured: &RunMeasures, span: (i64, i64), told: &[(i64, u64)]) -> RunCurves {
    let points = ((span.1 - span.0) / measured.step.max(1) + 1).clamp(1, MAX_KEPT_POINTS) as usize;
    let steps = (told.len() > 1).then(|| {
        let values = markers::steps::line(told, measured.from, measured.step, points);
        let line = MeasureLine { source: "step".into(), rank: None, label: None, values: short(&values) };
        RunMeasure {
            id: "steps".into(),
            title: "Steps".into(),
            unit: Unit::Count,
            of_gpus: "max".into(),
            lines: vec![line],
        }
    });
    let line = |line: &Line| MeasureLine {
        source: line.source.clone(),
        rank: line.rank,
        label: line.label.clone(),
        values: short(&line.values),
    };
    let measures = measured.measures.iter().map(|measure| RunMeasure {
        id: measure.id.clone(),
        title: measure.title.clone(),
        unit: measure.unit,
        of_gpus: measure.together.name().into(),
        lines: measure.lines.iter().map(line).collect(),
    });
    RunCurves {
        from: Seconds(measured.from),
        step: Seconds(measured.step),
        measures: measures.chain(steps).collect(),
        left_out: measured.left_out as u64,
        kept: false,
    }
}

fn short(values: &[Option<f64>]) -> Vec<Option<Number>> {
    values.iter().map(|value| value.and_then(rounded)).collect()
}

/// A number with six digits: more are noise in a mean. `None` if it is not finite.
fn rounded(value: f64) -> Option<Number> {
    if value == 0.0 || !value.is_finite() {
        return value.is_finite().then_some(Number(0.0));
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    Some(Number((value * scale).round() / scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::About;

    fn runs() -> Vec<Arc<Run>> {
        let one = |id: &str, state, project: Option<&str>, began| {
            Arc::new(Run {
                id: id.into(),
                known_as: None,
                state,
                sentence: String::new(),
                cause: None,
                failure: (state == RunState::Failed).then_some(FailureClass::DiskFull),
                began,
                ended: None,
                about: About {
                    project: project.map(String::from),
                    program: "Train.py".into(),
                    tags: (id == "c").then(|| ("seed".into(), "1".into())).into_iter().collect(),
                    ..About::default()
                },
                processes: Vec::new(),
                further: 0,
                edited: None,
            })
        };
        vec![
            one("c", RunState::Running, Some("llm"), 3_000),
            one("b", RunState::Failed, Some("llm"), 2_000),
            one("a", RunState::Failed, None, 1_000),
        ]
    }

    fn ids(wish: &Wish) -> Vec<String> {
        wish.answer(runs(), |_, _| ()).runs.into_iter().map(|run| run.row.id).collect()
    }

    #[test]
    fn runs_are_chosen_and_leafed_through() {
        let all = || Wish { limit: 10, ..Wish::default() };
        assert_eq!(ids(&all()), ["c", "b", "a"]);
        assert_eq!(ids(&Wish { states: vec![RunState::Failed], ..all() }), ["b", "a"]);
        let words = |not, words: &[&str]| Words { not, words: words.iter().map(|word| word.to_string()).collect() };
        assert_eq!(ids(&Wish { project: words(false, &["x", "llm"]), ..all() }), ["c", "b"]);
        assert_eq!(ids(&Wish { project: words(true, &["llm"]), ..all() }), ["a"]);
        assert_eq!(ids(&Wish { tag: words(false, &["seed=1"]), ..all() }), ["c"]);
        assert_eq!(ids(&Wish { tag: words(true, &["seed"]), ..all() }), ["b", "a"]);
        assert_eq!(ids(&Wish { part: Some("train".into()), ..all() }).len(), 3);
        assert_eq!(ids(&Wish { from: Some(2_000), to: Some(2_000), ..all() }), ["b"]);
        let first = Wish { limit: 2, ..Wish::default() };
        assert_eq!(first.answer(runs(), |_, _| ()).next.as_deref(), Some("b"));
        assert_eq!(ids(&Wish { before: Some("b".into()), ..all() }), ["a"]);
        assert_eq!(all().answer(runs(), |_, _| ()).next, None);
        let failed = Wish { states: vec![RunState::Failed], limit: 1, ..all() }
            .answer(runs(), |run, row| row.figures.gpus = Some(run.began as u64));
        let states = [("failed".to_string(), 2), ("running".to_string(), 1)].into();
        let failures = [("disk_full".to_string(), 2)].into();
        assert_eq!(failed.totals, RunTotals { total: 2, states, failures });
        assert_eq!(failed.runs[0].figures.gpus, None, "nobody asked for sums");
        assert_eq!(ids(&Wish { before: Some("gone".into()), ..all() }), [""; 0]);
        assert_eq!(ids(&Wish { failure: words(false, &["disk_full"]), ..all() }), ["b", "a"]);
        let others = Wish { failure: words(true, &["disk_full"]), ..all() }.answer(runs(), |_, _| ()).totals;
        let states = [("running".to_string(), 1)].into();
        let failures = [("disk_full".to_string(), 2)].into();
        assert_eq!(others, RunTotals { total: 1, states, failures }, "classes are counted whichever was requested");
    }
}
