//! What the server says of runs.

use crate::fetch::Json;
use shared::catalog::Range;
use shared::run::RunState;
use shared::unit::Unit;
use viewer::curves::{Curve, CurveChart};
pub use viewer::runs::{Figures, Listed, Measured, Ranked, STEPS, Whole};

/// Seconds of the server as ms.
pub fn ms(json: &Json) -> Option<i64> {
    json.number().map(|seconds| (seconds * 1_000.0).round() as i64)
}

fn values(json: &Json) -> Vec<Option<f64>> {
    json.list().iter().map(Json::number).collect()
}

/// Reads a run; None where it is none.
pub fn listed(run: &Json) -> Option<Listed> {
    let text = |name: &str| run.get(name).text();
    let number = |name: &str| run.get(name).number();
    let names = [text("name"), text("program"), text("id")];
    Some(Listed {
        id: text("id"),
        name: names.into_iter().find(|name| !name.is_empty())?,
        project: text("project"),
        group: text("group"),
        job_type: text("job_type"),
        user: text("user"),
        state: RunState::named(&text("state"))?,
        sentence: text("sentence"),
        began: ms(&run.get("began"))?,
        ended: ms(&run.get("ended")),
        hosts: run.get("hosts").list().iter().map(Json::text).collect(),
        program: text("program"),
        tags: run.get("tags").pairs(),
        gpu_models: run.get("gpu_models").list().iter().map(Json::text).collect(),
        ranks: number("ranks").unwrap_or(0.0) as usize,
        figures: Figures {
            gpus: number("gpus"),
            gpu_hours: number("gpu_hours"),
            utilization: number("gpu_utilization"),
            idle: number("idle_share"),
            energy_kwh: number("energy_kwh"),
            coverage: number("coverage"),
            memory_peak: number("gpu_memory_peak_bytes"),
            cost: number("cost"),
            currency: text("currency"),
            estimated: run.get("energy_estimated").is_true(),
            assumed: run.get("gpus_assumed").is_true(),
        },
        spark: values(&run.get("spark")),
    })
}

fn ranked(process: &Json) -> Option<Ranked> {
    let rank = process.get("rank");
    let gpus: Vec<String> = rank.get("gpus").list().iter().filter_map(Json::number).map(|n| n.to_string()).collect();
    let assumed = if rank.get("assumed").is_true() { " ?" } else { "" };
    Some(Ranked {
        source: process.get("source").text(),
        pid: process.get("pid").number()? as u32,
        rank: rank.get("rank").number().map(|n| n as u32),
        label: process.get("label").text(),
        gpus: if gpus.is_empty() { String::new() } else { format!("GPU {}{assumed}", gpus.join(", ")) },
        state: RunState::named(&process.get("state").text()).unwrap_or(RunState::Running),
        sentence: process.get("sentence").text(),
        began: ms(&process.get("began"))?,
        ended: ms(&process.get("ended")),
        is_cause: false,
    })
}

/// Reads a run with its processes and charts, as it is at `now`, ms.
pub fn whole(json: &Json, now: i64) -> Option<Whole> {
    let run = listed(json)?;
    let cause = json.get("cause");
    let is_cause = |one: &Ranked| {
        cause.get("pid").number() == Some(f64::from(one.pid))
            && cause.get("source").text() == one.source
            && ms(&cause.get("t")) == one.ended
    };
    let mut processes: Vec<Ranked> = json.get("processes").list().iter().filter_map(ranked).collect();
    processes.iter_mut().for_each(|one| one.is_cause = is_cause(one));
    processes.sort_by(|a, b| (&a.source, a.rank, a.began).cmp(&(&b.source, b.rank, b.began)));
    let curves = json.get("curves");
    let (from, step) = (ms(&curves.get("from")).unwrap_or(run.began), ms(&curves.get("step")).unwrap_or(1_000).max(1));
    let to = run.ended.unwrap_or(now).max(from + 1_000);
    let several = run.hosts.len() > 1;
    let line = |line: &Json| {
        let (source, label) = (line.get("source").text(), line.get("label").text());
        let name = match line.get("rank").number() {
            None => source,
            Some(_) if !label.is_empty() => label,
            Some(rank) if several => format!("rank {rank} · {source}"),
            Some(rank) => format!("rank {rank}"),
        };
        Curve { name, values: values(&line.get("values")) }
    };
    let measure = |measure: &Json| {
        let id = measure.get("id").text();
        let (unit, range) = drawn(&id)?;
        let curves: Vec<Curve> = measure.get("lines").list().iter().map(line).collect();
        let of_gpus = if curves.is_empty() || matches!(id.as_str(), "cpu" | "memory" | STEPS) {
            String::new()
        } else {
            measure.get("of_gpus").text()
        };
        let chart = CurveChart {
            unit,
            range,
            from,
            to,
            step,
            curves,
            subjects: Vec::new(),
            limits: Vec::new(),
            reach: Vec::new(),
        };
        Some(Measured { id, title: measure.get("title").text(), of_gpus, chart })
    };
    let further = |json: Json| json.number().unwrap_or(0.0) as usize;
    let steps = json.get("steps");
    Some(Whole {
        words: cause.get("line").maybe(),
        drivers: json.get("drivers").list().iter().map(Json::text).collect(),
        is_kept: curves.get("kept").is_true(),
        step: steps.get("step").number(),
        per_second: steps.get("per_second").number(),
        left_out: further(json.get("further")) + further(curves.get("left_out")),
        measures: curves.get("measures").list().iter().filter_map(measure).collect(),
        processes,
        run,
    })
}

/// Unit and range of a chart; None for one that this page does not know.
fn drawn(id: &str) -> Option<(Unit, Range)> {
    Some(match id {
        "gpu" | "gpu_memory_share" | "cpu" | "memory" => (Unit::Percent, Range::PERCENT),
        STEPS => (Unit::Count, Range::FromZero),
        "gpu_memory" => (Unit::Bytes, Range::FromZero),
        "gpu_power" => (Unit::Watts, Range::FromZero),
        "gpu_clock" => (Unit::Megahertz, Range::Fit),
        "gpu_temp" => (Unit::Celsius, Range::Fit),
        _ => return None,
    })
}
