//! Comparison of several training jobs: one line each, aligned by start or by the clock.

use super::Measured;
use crate::curves::{Curve, CurveChart};

/// Columns of a line.
const POINTS: i64 = 480;

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
        from: if by_clock { first } else { 0 },
        to: if by_clock { first + length } else { length },
        step,
        curves,
        subjects: Vec::new(),
        limits: Vec::new(),
        reach: Vec::new(),
    })
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
    fn by_the_clock_each_run_stands_where_it_was() {
        let a = measured("sum", 5_000, 1_000, &[&[1.0, 2.0, 3.0, 4.0]]);
        let b = measured("sum", 8_000, 1_000, &[&[7.0, 8.0, 9.0]]);
        let chart = aligned(&[("a".into(), &a), ("b".into(), &b)], true).expect("a chart");
        assert_eq!((chart.from, chart.to, chart.step), (5_000, 11_000, 1_000));
        assert_eq!(chart.curves[0].values, [Some(1.0), Some(2.0), Some(3.0), Some(4.0), None, None, None]);
        assert_eq!(chart.curves[1].values, [None, None, None, Some(7.0), Some(8.0), Some(9.0), None]);
    }
}
