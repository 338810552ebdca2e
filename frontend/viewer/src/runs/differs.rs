//! Differences between several training jobs: one row per measure that at least one of them has, and per configuration
//! value.

use super::Whole;
use super::words::{energy, figure, percent, size, where_it_ran};
use crate::store::fleet::words::thousands;
use shared::unit::{number, rough_duration};
use std::collections::BTreeSet;

/// A row: its name, its text for each run, and its value as a number.
pub struct Compared {
    /// Name of the row.
    pub what: &'static str,
    /// Text for a run, at a time of the server, ms.
    pub said: fn(&Whole, i64) -> String,
    /// Value as a number.
    pub value: fn(&Whole, i64) -> Option<f64>,
    /// Whether differences are in percentage points (for shares), and not in percent of the value.
    points: bool,
}

const fn part(what: &'static str, said: fn(&Whole, i64) -> String, value: fn(&Whole, i64) -> Option<f64>) -> Compared {
    Compared { what, said, value, points: false }
}

const fn share(what: &'static str, said: fn(&Whole, i64) -> String, value: fn(&Whole, i64) -> Option<f64>) -> Compared {
    Compared { what, said, value, points: true }
}

/// All rows of measures.
pub static ROWS: [Compared; 12] = [
    part("Steps per minute", |run, _| figure(a_minute(run), ""), |run, _| a_minute(run)),
    part("Steps", |run, _| figure(run.step, ""), |run, _| run.step),
    part("Duration", |run, now| rough_duration(run.run.lasted(now)), |run, now| Some(run.run.lasted(now) as f64)),
    share(
        "Mean GPU utilization",
        |run, _| figure(run.run.figures.utilization.map(|v| (v * 10.0).round() / 10.0), "%"),
        |run, _| run.run.figures.utilization,
    ),
    share("Idle share", |run, _| percent(run.run.figures.idle), |run, _| run.run.figures.idle.map(|v| v * 100.0)),
    part(
        "Energy of GPUs",
        |run, _| {
            let (number, unit) = energy(&run.run.figures);
            format!("{number} {unit}")
        },
        |run, _| run.run.figures.energy_kwh,
    ),
    part("Energy of GPUs per 1,000 steps", |run, _| figure(a_thousand(run), "kWh"), |run, _| a_thousand(run)),
    part("Mean power of GPUs", |run, now| figure(mean_power(run, now), "kW"), mean_power),
    part(
        "Cost",
        |run, _| figure(run.run.figures.cost.map(|cost| (cost * 100.0).round() / 100.0), &run.run.figures.currency),
        |run, _| run.run.figures.cost,
    ),
    part("Peak memory", |run, _| size(run.run.figures.memory_peak), |run, _| run.run.figures.memory_peak),
    part("GPU-hours", |run, _| figure(run.run.figures.gpu_hours, ""), |run, _| run.run.figures.gpu_hours),
    part("GPUs", |run, _| figure(run.run.figures.gpus, ""), |run, _| run.run.figures.gpus),
];

/// Steps per minute, from markers.
fn a_minute(run: &Whole) -> Option<f64> {
    run.per_second.map(|rate| rate * 60.0)
}

/// Energy of a thousand steps, kWh; None if the energy is not completely known.
fn a_thousand(run: &Whole) -> Option<f64> {
    let step = run.step.filter(|step| *step > 0.0)?;
    run.run.figures.energy_kwh.filter(|_| !run.run.figures.assumed).map(|kwh| kwh / step * 1_000.0)
}

/// Mean power of its GPUs over its duration, kW.
fn mean_power(run: &Whole, now: i64) -> Option<f64> {
    let hours = run.run.lasted(now) as f64 / 3_600_000.0;
    run.run.figures.energy_kwh.filter(|_| hours > 0.0).map(|kwh| kwh / hours)
}

/// Configuration of a run: names and values.
fn words(run: &Whole) -> Vec<(String, String)> {
    let own = &run.run;
    let fixed = [
        ("GPU model", own.gpu_models.join(", ")),
        ("Driver", run.drivers.join(", ")),
        ("Where", where_it_ran(own)),
        ("Program", own.program.clone()),
        ("Project", own.project.clone()),
        ("Group", own.group.clone()),
        ("Type", own.job_type.clone()),
        ("User", own.user.clone()),
        ("Failure", own.failure_words().to_string()),
    ];
    let fixed = fixed.into_iter().map(|(what, value)| (what.to_string(), value));
    // A tag without a value is either set or not.
    let tag =
        |(name, value): &(String, String)| (name.clone(), if value.is_empty() { "yes" } else { value }.to_string());
    fixed.chain(own.tags.iter().map(tag)).filter(|(_, value)| !value.is_empty()).collect()
}

/// Rows of the configuration: GPUs and drivers always, all others only if they differ.
pub fn rows_of_words(runs: &[Whole]) -> Vec<(String, Vec<String>)> {
    let said: Vec<Vec<(String, String)>> = runs.iter().map(words).collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in said.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |all: &[(String, String)], name: &str| {
        all.iter().find(|(own, _)| own == name).map_or_else(|| "–".to_string(), |(_, value)| value.clone())
    };
    let row = |name: &String| (name.clone(), said.iter().map(|all| of(all, name)).collect::<Vec<_>>());
    let is_shown = |(name, values): &(String, Vec<String>)| {
        matches!(name.as_str(), "GPU model" | "Driver") || values.iter().collect::<BTreeSet<_>>().len() > 1
    };
    names.into_iter().map(row).filter(is_shown).collect()
}

/// Difference of the first value from the second: `+11 %`, `−2.9 points`; a dash if one is unknown.
pub fn difference(row: &Compared, a: Option<f64>, b: Option<f64>) -> String {
    let Some((a, b)) = a.zip(b) else { return "–".into() };
    let sign = |v: f64| if v < 0.0 { "−" } else { "+" };
    match row.points {
        true if (a - b).abs() < 0.05 => "same".into(),
        true => format!("{}{} points", sign(a - b), number((a - b).abs())),
        false if b == 0.0 => "–".into(),
        false if ((a - b) / b).abs() < 0.005 => "same".into(),
        false => format!("{}{} %", sign(a - b), thousands(((a - b) / b * 100.0).abs().round() as usize)),
    }
}

/// Speed and energy of the first of two runs, compared: `11 % more steps a minute and 9 % less energy a step`. Empty if
/// no steps are reported.
pub fn headline(runs: &[Whole]) -> String {
    let [a, b] = runs else { return String::new() };
    let more = |what: &str, of: fn(&Whole) -> Option<f64>| {
        let (a, b) = of(a).zip(of(b).filter(|b| *b > 0.0))?;
        let part = ((a - b) / b * 100.0).round();
        let word = if part > 0.0 { "more" } else { "less" };
        Some(match part == 0.0 {
            true => format!("as {} {what}", if what.starts_with("steps") { "many" } else { "much" }),
            false => format!("{:.0} % {word} {what}", part.abs()),
        })
    };
    let said = [more("steps per minute", a_minute), more("energy per step", a_thousand)];
    said.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::super::{Figures, Listed};
    use super::*;
    use shared::run::RunState;

    fn run(driver: &str, tags: &[(&str, &str)], per_second: Option<f64>) -> Whole {
        let tags = tags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let run = Listed {
            id: "a".into(),
            name: "a".into(),
            project: "llm".into(),
            group: String::new(),
            job_type: String::new(),
            user: String::new(),
            state: RunState::Finished,
            sentence: String::new(),
            failure: None,
            began: 0,
            ended: Some(3_600_000),
            hosts: Vec::new(),
            program: "python".into(),
            tags,
            gpu_models: vec!["H100".into()],
            ranks: 8,
            figures: Figures { energy_kwh: Some(2.0), ..Figures::default() },
            spark: Vec::new(),
        };
        Whole {
            run,
            processes: Vec::new(),
            words: None,
            drivers: vec![driver.into()],
            is_kept: false,
            step: per_second.map(|rate| rate * 3_600.0),
            per_second,
            left_out: 0,
            measures: Vec::new(),
            given_name: String::new(),
            notes: String::new(),
            version: 0,
            may: shared::answer::runs::RunRights::default(),
        }
    }

    #[test]
    fn differences_are_parts_or_points() {
        let (lasted, used) = (&ROWS[2], &ROWS[3]);
        assert_eq!(difference(lasted, Some(111.0), Some(100.0)), "+11 %");
        assert_eq!(difference(lasted, Some(1_780.0), Some(10.0)), "+17,700 %");
        assert_eq!(difference(used, Some(90.0), Some(92.9)), "−2.9 points");
        assert_eq!(difference(used, None, Some(1.0)), "–");
        assert_eq!(difference(lasted, Some(100.1), Some(100.0)), "same");
    }

    #[test]
    fn what_they_ran_with_is_said_where_it_differs_and_of_gpus_always() {
        let both = [run("590", &[("lr", "1"), ("best", "")], None), run("575", &[("lr", "2")], None)];
        let rows: Vec<(String, String)> =
            rows_of_words(&both).into_iter().map(|(name, values)| (name, values.join("/"))).collect();
        let wanted = [("GPU model", "H100/H100"), ("Driver", "590/575"), ("lr", "1/2"), ("best", "yes/–")];
        assert_eq!(rows, wanted.map(|(name, values)| (name.to_string(), values.to_string())));
    }

    #[test]
    fn two_runs_are_told_apart_in_a_sentence() {
        let two = [run("", &[], Some(1.11)), run("", &[], Some(1.0))];
        assert_eq!(headline(&two), "11 % more steps per minute and 10 % less energy per step");
        assert_eq!(headline(&[run("", &[], None), run("", &[], Some(1.0))]), "");
        assert_eq!((a_thousand(&two[1]), mean_power(&two[0], 0)), (Some(2.0 / 3.6), Some(2.0)));
    }
}
