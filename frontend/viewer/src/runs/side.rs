//! Comparison of several training jobs: one line each, aligned by start, by the clock or by training step.

use super::{Measured, STEPS, Whole};
use crate::curves::{Curve, CurveChart};
use charts::axis::Along;
use shared::catalog::job;

/// Columns of a line.
const POINTS: i64 = 480;
/// Minimum number of columns of a line by step, however unevenly the job told its steps.
const MIN_POINTS: i64 = 24;

/// The line of a run: the lines of its ranks, merged per column. It begins `later` ms after the first column.
fn line(measured: &Measured, later: i64, step: i64, points: usize) -> Vec<Option<f64>> {
    let own = &measured.chart;
    let fold = |values: Vec<f64>| {
        let n = values.len() as f64;
        let all = values.into_iter().reduce(match measured.of_gpus.as_str() {
            "max" => f64::max,
            _ => |a: f64, b: f64| a + b,
        })?;
        Some(if matches!(measured.of_gpus.as_str(), "sum" | "max") { all } else { all / n })
    };
    let one = |column: usize| {
        let (begin, end) = (column as i64 * step - later, (column as i64 + 1) * step - later);
        if end <= 0 {
            return None;
        }
        // The columns of the run within this one, at least the one under it.
        let first = (begin.max(0) / own.step) as usize;
        let last = ((end - 1) / own.step) as usize;
        let mean = |curve: &Curve| {
            let values: Vec<f64> = (first..=last).filter_map(|at| *curve.values.get(at)?).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        fold(own.curves.iter().filter_map(mean).collect())
    };
    (0..points).map(one).collect()
}

/// One measure of several runs, aligned by start or by the clock; None if fewer than two of them have it.
pub fn aligned(runs: &[(String, &Measured)], by_clock: bool) -> Option<CurveChart> {
    let first = runs.iter().map(|(_, m)| m.chart.from).min().filter(|_| runs.len() > 1)?;
    let later = |m: &Measured| if by_clock { m.chart.from - first } else { 0 };
    let length = runs.iter().map(|(_, m)| m.chart.to - m.chart.from + later(m)).max()?;
    let coarsest = runs.iter().map(|(_, m)| m.chart.step).max().unwrap_or(1_000);
    let step = (length / POINTS).max(coarsest).max(1);
    let points = (length / step + 1) as usize;
    let curve = |(name, m): &(String, &Measured)| Curve { name: name.clone(), values: line(m, later(m), step, points) };
    let chart = &runs.first()?.1.chart;
    let curves = runs.iter().map(curve).collect();
    Some(CurveChart {
        unit: chart.unit,
        range: chart.range,
        along: Along::Time,
        from: if by_clock { first } else { 0 },
        to: if by_clock { first + length } else { length },
        step,
        curves,
        subjects: Vec::new(),
        limits: Vec::new(),
        reach: Vec::new(),
    })
}

/// The steps of a run over its time: those that the job logged, else those of its markers. None without any.
pub fn steps_of(whole: &Whole) -> Option<&Measured> {
    let of = |id: &str| whole.measures.iter().find(|measured| measured.id == id);
    of(job::STEP.chart).or_else(|| of(STEPS))
}

/// The name of a run, one of its measures, and its steps if it has told any.
pub type RunBySteps<'a> = (String, &'a Measured, Option<&'a Measured>);

/// One measure of several runs by training step, each with the steps of its run; None if fewer than two of them have
/// both.
pub fn by_step(runs: &[RunBySteps<'_>]) -> Option<CurveChart> {
    let pairs: Vec<Vec<(f64, f64)>> = runs.iter().map(|(_, own, steps)| pairs(own, *steps)).collect();
    if pairs.iter().filter(|pairs| !pairs.is_empty()).count() < 2 {
        return None;
    }
    let all = || pairs.iter().flatten().map(|(step, _)| *step);
    let (first, last) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), s| (lo.min(s), hi.max(s)));
    // A column of the widest distance between two told steps leaves no holes in a line.
    let widest = pairs.iter().flat_map(|pairs| pairs.windows(2)).map(|w| w[1].0 - w[0].0).fold(1.0, f64::max);
    let range = (last - first).max(1.0);
    let step = widest.min(range / MIN_POINTS as f64).max(range / POINTS as f64).ceil().max(1.0) as i64;
    let from = (first as i64).div_euclid(step) * step;
    let points = ((last as i64 - from) / step + 1) as usize;
    let curve = |((name, ..), pairs): (&RunBySteps<'_>, &Vec<(f64, f64)>)| {
        let mut sums = vec![(0.0, 0u32); points];
        for (at, value) in pairs {
            if let Some((sum, count)) = sums.get_mut(((*at as i64 - from) / step) as usize) {
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
        let mean = |(sum, count): (f64, u32)| (count > 0).then(|| sum / f64::from(count));
        Curve { name: name.clone(), values: sums.into_iter().map(mean).collect() }
    };
    let chart = &runs.first()?.1.chart;
    Some(CurveChart {
        unit: chart.unit,
        range: chart.range,
        along: Along::Steps,
        from,
        to: from + step * points as i64,
        step,
        curves: runs.iter().zip(&pairs).map(curve).collect(),
        subjects: Vec::new(),
        limits: Vec::new(),
        reach: Vec::new(),
    })
}

/// Steps and values of a run at the same times, ascending by step. A job that was resumed repeats steps: the later
/// value counts, too.
fn pairs(own: &Measured, steps: Option<&Measured>) -> Vec<(f64, f64)> {
    let Some(steps) = steps else { return Vec::new() };
    let (step, length) = (own.chart.step.max(1), own.chart.to - own.chart.from);
    let points = (length / step + 1).clamp(1, 100_000) as usize;
    let later = steps.chart.from - own.chart.from;
    let both = line(own, 0, step, points).into_iter().zip(line(steps, later, step, points));
    let mut all: Vec<(f64, f64)> =
        both.filter_map(|(value, at)| Some((at.filter(|at| at.is_finite())?.round(), value?))).collect();
    charts::order::sort_by(&mut all, |a, b| a.0.total_cmp(&b.0));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::Range;
    use shared::unit::Unit;

    fn measured(of_gpus: &str, from: i64, step: i64, lines: &[&[f64]]) -> Measured {
        let curve = |values: &&[f64]| Curve { name: String::new(), values: values.iter().map(|v| Some(*v)).collect() };
        let to = from + step * lines.iter().map(|values| values.len() as i64).max().unwrap_or(0);
        let curves = lines.iter().map(curve).collect();
        let nothing = CurveChart::clone(&CurveChart::nothing());
        let chart = CurveChart { unit: Unit::Watts, range: Range::FromZero, from, to, step, curves, ..nothing };
        Measured { id: "x".into(), title: "X".into(), of_gpus: of_gpus.into(), chart }
    }

    #[test]
    fn runs_are_aligned_at_their_starts_whenever_they_were() {
        let a = measured("sum", 5_000, 1_000, &[&[1.0, 2.0, 3.0, 4.0], &[10.0, 10.0]]);
        let b = measured("sum", 90_000, 2_000, &[&[7.0]]);
        let both = [("a".into(), &a), ("b".into(), &b)];
        let chart = aligned(&both, false).expect("a chart");
        assert_eq!((chart.from, chart.to, chart.step), (0, 4_000, 2_000), "as coarse as the coarser");
        assert_eq!(chart.curves[0].values, [Some(11.5), Some(3.5), None]);
        assert_eq!(chart.curves[1].values, [Some(7.0), None, None]);
        let mean = measured("mean", 0, 1_000, &[&[1.0], &[3.0]]);
        assert_eq!(line(&mean, 0, 1_000, 1), [Some(2.0)]);
        assert_eq!(aligned(&both[..1], false), None);
    }

    #[test]
    fn by_step_runs_of_another_pace_stand_above_each_other() {
        let loss = measured("mean", 5_000, 1_000, &[&[4.0, 3.0, 2.0, 1.0]]);
        let slow = measured("max", 5_000, 1_000, &[&[0.0, 100.0, 200.0, 300.0]]);
        let other = measured("mean", 90_000, 2_000, &[&[5.0, 1.0]]);
        let quick = measured("max", 90_000, 2_000, &[&[100.0, 300.0]]);
        let runs = [("a".into(), &loss, Some(&slow)), ("b".into(), &other, Some(&quick))];
        let chart = by_step(&runs).expect("a chart");
        assert_eq!((chart.along, chart.from, chart.step), (Along::Steps, 0, 13), "at least 24 columns");
        let at = |run: usize, step: i64| chart.curves[run].values[(step / chart.step) as usize];
        assert_eq!([0, 100, 200, 300].map(|step| at(0, step)), [Some(4.0), Some(3.0), Some(2.0), Some(1.0)]);
        assert_eq!([0, 100, 200, 300].map(|step| at(1, step)), [None, Some(5.0), None, Some(1.0)]);
        assert_eq!(by_step(&[runs[0].clone(), ("b".into(), &other, None)]), None, "one has told no step");
        // A job that tells a step each second has no holes.
        let even: Vec<f64> = (0..400).map(|n| f64::from(n) * 7.0).collect();
        let own = measured("mean", 0, 1_000, &[&even]);
        let runs = [("a".into(), &own, Some(&own)), ("b".into(), &own, Some(&own))];
        let chart = by_step(&runs).expect("a chart");
        assert!(chart.step == 7 && chart.curves[0].values.iter().all(Option::is_some));
    }

    #[test]
    fn by_the_clock_each_run_stands_where_it_was() {
        let a = measured("sum", 5_000, 1_000, &[&[1.0, 2.0, 3.0, 4.0]]);
        let b = measured("sum", 8_000, 1_000, &[&[7.0, 8.0, 9.0]]);
        let chart = aligned(&[("a".into(), &a), ("b".into(), &b)], true).expect("a chart");
        assert_eq!((chart.from, chart.to, chart.step), (5_000, 11_000, 1_000));
        assert_eq!(chart.curves[0].values, [Some(1.0), Some(2.0), Some(3.0), Some(4.0), None, None, None]);
        assert_eq!(chart.curves[1].values, [None, None, None, Some(7.0), Some(8.0), Some(9.0), None]);
    }
}
