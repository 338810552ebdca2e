//! A chart of lines that the server computed: one per rank, or one per run. Too many for lines are drawn as a band,
//! with the lines that differ most by name.

use charts::axis::{Along, Axis};
use charts::band::quantile;
use charts::order;
use charts::reduce::{Column, Reducer};
use charts::{Band, Hue, Limit, axis};
use shared::catalog::Range;
use shared::unit::Unit;
use std::sync::Arc;

/// Maximum number of lines with hues of their own.
pub const MAX_HUES: usize = 8;
/// Number of named lines beside a band.
const MAX_ODD: usize = 2;
/// A line differs if its distance from the median is this multiple of the general distance.
const ODD_TIMES: f64 = 4.0;
/// It must also be this share of the range of the chart.
const ODD_SHARE: f64 = 0.06;

/// One line: its name, and a value per column; None for a column without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its values, in the base unit.
    pub values: Vec<Option<f64>>,
}

/// Content of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveChart {
    /// Unit of the values.
    pub unit: Unit,
    /// Range of the axis.
    pub range: Range,
    /// The meaning of `from`, `to` and `step`.
    pub along: Along,
    /// Start of the lines, ms since the epoch; 0 if they show the time since a start, or steps.
    pub from: i64,
    /// End of the span.
    pub to: i64,
    /// Width of a column, ms.
    pub step: i64,
    /// The lines.
    pub curves: Vec<Curve>,
    /// Positions of the lines that the chart is about: they are emphasized, and all others are their peers. Empty if
    /// there are none.
    pub subjects: Vec<usize>,
    /// Limits to draw.
    pub limits: Vec<Limit>,
    /// Values that the axis must include, besides those of the lines and the limits.
    pub reach: Vec<f64>,
}

/// Derived data of the lines, computed once.
pub struct Prepared {
    /// The columns of each line.
    pub columns: Vec<Vec<Column>>,
    /// The hue of each line; None for a line that is not drawn separately.
    pub hues: Vec<Option<Hue>>,
    /// The spread of many lines; empty if each line is drawn.
    pub band: Vec<Band>,
}

impl CurveChart {
    /// An empty chart, for the moment in which a chart is removed.
    pub fn nothing() -> Arc<CurveChart> {
        Arc::new(CurveChart {
            unit: Unit::Percent,
            range: Range::PERCENT,
            along: Along::Time,
            from: 0,
            to: 1,
            step: 1,
            curves: Vec::new(),
            subjects: Vec::new(),
            limits: Vec::new(),
            reach: Vec::new(),
        })
    }

    /// The same with the lines of these names highlighted, with or without their machine, as `rank 3`.
    pub fn highlighting(&self, names: &[String]) -> CurveChart {
        let is_named = |curve: &Curve| {
            names.iter().any(|name| {
                curve.name.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(" · "))
            })
        };
        let subjects: Vec<usize> = (0..self.curves.len()).filter(|at| is_named(&self.curves[*at])).collect();
        CurveChart { subjects: if subjects.is_empty() { self.subjects.clone() } else { subjects }, ..self.clone() }
    }

    /// The axis that includes all lines.
    pub fn axis(&self) -> Axis {
        let limits = self.limits.iter().map(|limit| &limit.value).chain(&self.reach);
        let all = self.curves.iter().flat_map(|curve| curve.values.iter().flatten()).chain(limits);
        let (lo, hi) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
        axis::values(self.unit, self.range, lo, hi)
    }

    /// The symbol of the unit of its values, which fits the largest one.
    pub fn symbol(&self) -> &'static str {
        self.axis().scale.symbol
    }

    fn columns(&self, values: &[Option<f64>]) -> Vec<Column> {
        let mut reducer = Reducer::new(self.step, self.step * 3 / 2);
        for (i, value) in (0..).zip(values) {
            reducer.push(self.from + i * self.step + self.step / 2, value.unwrap_or(f64::NAN));
        }
        reducer.columns().to_vec()
    }

    /// The sorted values of all lines in a column, without those of its subjects.
    fn sorted(&self, column: usize) -> Vec<f64> {
        let peers = self.curves.iter().enumerate().filter(|(i, _)| !self.subjects.contains(i));
        let mut all: Vec<f64> = peers.filter_map(|(_, curve)| *curve.values.get(column)?).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    /// The spread in each column. For each line, the sum of its distances from the median and the number of columns.
    fn spread(&self) -> (Vec<Band>, Vec<(f64, u32)>) {
        let length = self.curves.iter().map(|curve| curve.values.len()).max().unwrap_or(0);
        let mut band: Vec<Band> = Vec::new();
        let mut apart = vec![(0.0, 0u32); self.curves.len()];
        for column in 0..length {
            let sorted = self.sorted(column);
            if sorted.is_empty() {
                continue;
            }
            let values = [0.0, 0.1, 0.5, 0.9, 1.0].map(|share| quantile(&sorted, share));
            let t = self.from + column as i64 * self.step + self.step / 2;
            let slot = t.div_euclid(self.step);
            let joined = band.last().is_some_and(|before| slot - before.slot <= 1);
            band.push(Band { slot, t, values, joined });
            for ((sum, count), curve) in apart.iter_mut().zip(&self.curves) {
                if let Some(Some(value)) = curve.values.get(column) {
                    *sum += (value - values[2]).abs();
                    *count += 1;
                }
            }
        }
        (band, apart)
    }

    /// The lines of its subjects, and their peers: one peer as a line, several as a band.
    fn against_peers(&self, columns: Vec<Vec<Column>>) -> Prepared {
        let n = self.curves.len();
        let alone = n == self.subjects.len() + 1;
        let hue = |i: usize| match self.subjects.iter().position(|subject| *subject == i) {
            Some(at) => Some(Hue::Odd(at as u8)),
            None => alone.then_some(Hue::Ink),
        };
        let band = if alone { Vec::new() } else { self.spread().0 };
        Prepared { columns, hues: (0..n).map(hue).collect(), band }
    }

    /// Computes the derived data of the lines.
    pub fn prepared(&self) -> Prepared {
        let columns = self.curves.iter().map(|curve| self.columns(&curve.values)).collect();
        let n = self.curves.len();
        if !self.subjects.is_empty() {
            return self.against_peers(columns);
        }
        if n <= MAX_HUES {
            let hue = |i: usize| Some(if n == 1 { Hue::Ink } else { Hue::Of(i as u8) });
            return Prepared { columns, hues: (0..n).map(hue).collect(), band: Vec::new() };
        }
        let (band, apart) = self.spread();
        let apart: Vec<f64> = apart.iter().map(|(sum, count)| sum / f64::from((*count).max(1))).collect();
        let mut usual = apart.clone();
        usual.sort_unstable_by(f64::total_cmp);
        let height = band.iter().map(|b| b.values[4]).fold(0.0, f64::max);
        let least = (quantile(&usual, 0.5) * ODD_TIMES).max(height * ODD_SHARE);
        let mut far: Vec<usize> = (0..n).filter(|i| apart[*i] > least).collect();
        order::sort_by(&mut far, |a, b| apart[*b].total_cmp(&apart[*a]));
        let place = |i: usize| far.iter().take(MAX_ODD).position(|odd| *odd == i).map(|at| Hue::Odd(at as u8));
        Prepared { columns, hues: (0..n).map(place).collect(), band }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[f64]) -> CurveChart {
        let curve = |(i, v): (usize, &f64)| Curve { name: format!("rank {i}"), values: vec![Some(*v), None, Some(*v)] };
        let curves = values.iter().enumerate().map(curve).collect();
        CurveChart {
            unit: Unit::Percent,
            range: Range::PERCENT,
            along: Along::Time,
            from: 500,
            to: 3_500,
            step: 1_000,
            curves,
            ..CurveChart::clone(&CurveChart::nothing())
        }
    }

    #[test]
    fn few_lines_have_hues_and_many_are_a_band_that_names_who_is_unlike() {
        let few = chart(&[1.0, 2.0]).prepared();
        assert_eq!((few.hues, few.band.len()), (vec![Some(Hue::Of(0)), Some(Hue::Of(1))], 0));
        assert_eq!(few.columns[0].iter().map(|c| c.joined).collect::<Vec<_>>(), [false, false], "the gap stays one");
        let mut values = vec![90.0; 12];
        values[5] = 20.0;
        let many = chart(&values).prepared();
        assert_eq!(many.band.iter().map(|b| b.values[2]).collect::<Vec<_>>(), [90.0, 90.0]);
        let odd: Vec<usize> = (0..12).filter(|i| many.hues[*i] == Some(Hue::Odd(0))).collect();
        assert_eq!(odd, [5]);
        assert!(chart(&[90.0; 12]).prepared().hues.iter().all(Option::is_none), "equals have no name");
    }

    #[test]
    fn whom_the_chart_is_about_stands_out_and_its_peers_are_one() {
        let odd = CurveChart { subjects: vec![1], ..chart(&[90.0, 20.0, 92.0]) }.prepared();
        assert_eq!(odd.hues, [None, Some(Hue::Odd(0)), None]);
        assert_eq!(odd.band.iter().map(|b| b.values[2]).collect::<Vec<_>>(), [91.0, 91.0], "it is none of its peers");
        let named = |name: &str| chart(&[90.0; 12]).highlighting(&[name.to_string()]).subjects;
        assert_eq!((named("rank 1"), named("rank 11"), named("nobody")), (vec![1], vec![11], vec![]));
        let two = CurveChart { subjects: vec![0], ..chart(&[20.0, 92.0]) }.prepared();
        assert_eq!((two.hues, two.band.len()), (vec![Some(Hue::Odd(0)), Some(Hue::Ink)], 0));
    }

    #[test]
    fn the_unit_is_that_of_the_numbers_at_its_axis() {
        let of = |unit, values: &[f64]| CurveChart { unit, range: Range::FromZero, ..chart(values) }.symbol();
        assert_eq!(of(Unit::Bytes, &[64.0 * (1u64 << 30) as f64, 1.0]), "GiB");
        assert_eq!((of(Unit::Watts, &[635.0]), of(Unit::Watts, &[4_940.0])), ("W", "kW"));
        assert_eq!(of(Unit::Percent, &[]), "%");
    }
}
