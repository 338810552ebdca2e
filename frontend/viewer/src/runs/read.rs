//! Converts answers of the server to runs as pages list and draw them.

use super::{Figures, Listed, Measured, Ranked, STEPS, Whole};
use crate::curves::{Curve, CurveChart};
use charts::axis::Along;
use shared::answer::runs::{ListedProcess, MeasureLine, RunFigures, RunMeasure, RunRow};
use shared::catalog::{Range, job};
use shared::json::Number;
use shared::run::{About, RunState};

fn number(number: Option<Number>) -> Option<f64> {
    number.map(|number| number.0)
}

fn values(values: Vec<Option<Number>>) -> Vec<Option<f64>> {
    values.into_iter().map(number).collect()
}

impl Listed {
    /// A run from the parts of an answer.
    pub fn new(run: RunRow, about: About, figures: RunFigures) -> Listed {
        let text = |text: Option<String>| text.unwrap_or_default();
        let named = about.name.filter(|name| !name.is_empty());
        let program = Some(about.program.clone()).filter(|program| !program.is_empty());
        Listed {
            name: named.or(program).unwrap_or_else(|| run.id.clone()),
            id: run.id,
            project: text(about.project),
            group: text(about.group),
            job_type: text(about.job_type),
            user: text(about.user),
            state: run.state,
            sentence: run.sentence,
            failure: run.failure,
            began: run.began.ms(),
            ended: run.ended.map(|ended| ended.ms()),
            hosts: run.hosts,
            program: about.program,
            tags: about.tags.into_iter().collect(),
            gpu_models: figures.gpu_models,
            ranks: run.ranks as usize,
            figures: Figures {
                gpus: figures.gpus.map(|gpus| gpus as f64),
                gpu_hours: number(figures.gpu_hours),
                utilization: number(figures.gpu_utilization),
                idle: number(figures.idle_share),
                energy_kwh: number(figures.energy_kwh),
                coverage: number(figures.coverage),
                memory_peak: number(figures.gpu_memory_peak_bytes),
                cores_mean: number(figures.cores_mean),
                cores_peak: number(figures.cores_peak),
                host_memory_peak: number(figures.memory_peak_bytes),
                reserved: run.reserved.unwrap_or_default(),
                cost: number(figures.cost),
                currency: text(figures.currency),
                estimated: figures.energy_estimated,
                assumed: figures.gpus_assumed,
            },
            spark: values(run.spark.unwrap_or_default()),
        }
    }
}

fn ranked(process: ListedProcess) -> Ranked {
    let gpus = process.rank.as_ref().map(|rank| {
        let numbers: Vec<String> = rank.gpus.iter().map(u32::to_string).collect();
        let assumed = if rank.assumed { " ?" } else { "" };
        if numbers.is_empty() { String::new() } else { format!("GPU {}{assumed}", numbers.join(", ")) }
    });
    Ranked {
        source: process.source,
        pid: process.pid,
        rank: process.rank.map(|rank| rank.rank),
        label: process.label.unwrap_or_default(),
        gpus: gpus.unwrap_or_default(),
        state: process.state.unwrap_or(RunState::Running),
        sentence: process.sentence.unwrap_or_default(),
        began: process.began.ms(),
        ended: process.ended.map(|ended| ended.ms()),
        is_cause: false,
        is_ended_after: false,
    }
}

impl Whole {
    /// A run with its processes and charts, from the parts of an answer; `now` is ms since the epoch.
    pub fn new(mut run: RunRow, about: About, figures: RunFigures, now: i64) -> Whole {
        let cause = run.cause.take();
        let is_cause = |one: &Ranked| {
            cause.as_ref().is_some_and(|cause| {
                (cause.pid, &cause.source, Some(cause.t.ms())) == (one.pid, &one.source, one.ended)
            })
        };
        let mut processes: Vec<Ranked> = run.processes.take().into_iter().flatten().map(ranked).collect();
        processes.iter_mut().for_each(|one| one.is_cause = is_cause(one));
        if let Some(failed) = processes.iter().find(|one| one.is_cause).and_then(|one| one.ended) {
            let others = processes.iter_mut().filter(|one| !one.is_cause);
            others.for_each(|one| one.is_ended_after = one.was_ended_after(failed));
        }
        processes.sort_by(|a, b| (&a.source, a.rank, a.began).cmp(&(&b.source, b.rank, b.began)));
        let (curves, steps, drivers) = (run.curves.take().unwrap_or_default(), run.steps, run.drivers.take());
        let further = run.further as usize;
        let (may, version) = (run.may.unwrap_or_default(), run.edited.as_ref().map_or(0, |edited| edited.version));
        let (given_name, notes) = (about.name.clone().unwrap_or_default(), about.notes.clone().unwrap_or_default());
        let run = Listed::new(run, about, figures);
        // An answer without charts has no span for them.
        let (from, step) = if curves.step.ms() > 0 { (curves.from.ms(), curves.step.ms()) } else { (run.began, 1_000) };
        let to = run.ended.unwrap_or(now).max(from + 1_000);
        let several = run.hosts.len() > 1;
        let measure = |measure| measured(measure, (from, to, step), several);
        Whole {
            words: cause.and_then(|cause| cause.line),
            drivers: drivers.unwrap_or_default(),
            is_kept: curves.kept,
            step: steps.map(|steps| steps.step as f64),
            per_second: steps.and_then(|steps| number(steps.per_second)),
            left_out: further + curves.left_out as usize,
            measures: curves.measures.into_iter().filter_map(measure).collect(),
            processes,
            run,
            given_name,
            notes,
            version,
            may,
        }
    }
}

fn measured(measure: RunMeasure, (from, to, step): (i64, i64, i64), several: bool) -> Option<Measured> {
    let (unit, range) = (measure.unit, range(&measure.id)?);
    let curves: Vec<Curve> = measure.lines.into_iter().map(|line| curve(line, several)).collect();
    let of_gpus =
        if curves.is_empty() || matches!(measure.id.as_str(), "cpu" | "memory" | "rank_cpu" | "rank_memory" | STEPS) {
            String::new()
        } else {
            measure.of_gpus
        };
    let chart = CurveChart {
        unit,
        range,
        along: Along::Time,
        from,
        to,
        step,
        curves,
        subjects: Vec::new(),
        limits: Vec::new(),
        reach: Vec::new(),
    };
    Some(Measured { id: measure.id, title: measure.title, of_gpus, chart })
}

fn curve(line: MeasureLine, several: bool) -> Curve {
    let name = match (line.rank, line.label.filter(|label| !label.is_empty())) {
        (None, Some(label)) => label,
        (None, None) => line.source,
        (Some(_), Some(label)) => label,
        (Some(rank), None) if several => format!("rank {rank} · {}", line.source),
        (Some(rank), None) => format!("rank {rank}"),
    };
    Curve { name, values: values(line.values) }
}

/// The range of a chart; None for an unknown one.
fn range(id: &str) -> Option<Range> {
    Some(match id {
        "gpu" | "gpu_memory_share" | "cpu" | "memory" | "rank_cpu" => Range::PERCENT,
        STEPS | "gpu_memory" | "gpu_power" | "rank_memory" => Range::FromZero,
        "gpu_clock" | "gpu_temp" => Range::Fit,
        id if id.starts_with(job::PREFIX) => Range::Fit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::unit::Unit;

    #[test]
    fn values_that_a_job_logs_have_a_chart_with_a_line_for_each_process() {
        let line = |rank, label: Option<&str>| MeasureLine {
            source: "node-1".into(),
            rank,
            label: label.map(String::from),
            values: vec![Some(Number(0.5)), None],
        };
        let measure = |id: &str| RunMeasure {
            id: id.into(),
            title: "loss".into(),
            unit: Unit::Count,
            of_gpus: "mean".into(),
            lines: vec![line(Some(3), None), line(None, Some("loader")), line(None, None)],
        };
        let read = measured(measure("job.train/loss"), (0, 2_000, 1_000), false).expect("a chart");
        let names: Vec<&str> = read.chart.curves.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!((names, read.chart.range), (vec!["rank 3", "loader", "node-1"], Range::Fit));
        assert_eq!(measured(measure("of a later version"), (0, 2_000, 1_000), false), None);
    }
}
