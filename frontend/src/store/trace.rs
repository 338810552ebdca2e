//! One series as a chart draws it: base units, counters as rates, reduced to columns; fed with what is new only.

use super::source::Source;
use charts::reduce::{Column, Reducer};
use shared::catalog::{Catalog, Kind, Metric};
use shared::segment::TIER_MS;
use shared::series::SeriesId;
use shared::unit::Unit;

/// The base unit in which a metric is drawn: per second for counters.
pub fn unit(metric: &Metric) -> Unit {
    if metric.kind == Kind::Counter { metric.unit.per_second() } else { metric.unit.base() }
}

/// Makes rates of a counter's samples as [`shared::rollup::rate`] does, one by one; NaN where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    before: Option<(i64, f64)>,
}

impl Rate {
    /// The rate per second up to this sample.
    pub fn push(&mut self, t: i64, v: f64, longest: i64) -> f64 {
        if !v.is_finite() {
            return f64::NAN;
        }
        let Some((t0, v0)) = self.before.replace((t, v)) else { return f64::NAN };
        let ms = t - t0;
        if ms > 0 && ms <= longest && v >= v0 { (v - v0) * 1000.0 / ms as f64 } else { f64::NAN }
    }
}

/// Columns before the window that are kept, and behind it that are read, so that a view that is moved is not built anew
/// with each step.
const SLACK: i64 = 240;

/// A series on its way to the screen.
pub struct Trace {
    series: SeriesId,
    reducer: Reducer,
    rate: Option<Rate>,
    factor: f64,
    longest: i64,
    after: u64,
    from: i64,
    upto: i64,
    days: bool,
    epoch: u32,
}

impl Trace {
    /// A series in columns of `step` ms from `from` on; nothing is read yet.
    pub fn new(series: SeriesId, step: i64, from: i64, source: &Source, catalog: &Catalog) -> Self {
        let metric = source.defs.get(series as usize).and_then(|d| catalog.metric(d));
        let longest = source.cadence(series) * 3 / 2;
        let from = from - step.max(longest) * SLACK;
        Trace {
            series,
            reducer: Reducer::new(step, longest),
            rate: metric.is_some_and(|m| m.kind == Kind::Counter).then(Rate::default),
            factor: metric.map_or(1.0, |m| m.unit.to_base()),
            longest,
            after: 0,
            from,
            upto: i64::MIN,
            days: false,
            epoch: source.epoch,
        }
    }

    /// Likewise of days, from minutes and the samples behind them; `step` is whole minutes.
    pub fn of_days(series: SeriesId, step: i64, from: i64, source: &Source, catalog: &Catalog) -> Self {
        let mut trace = Self::new(series, step, from, source, catalog);
        trace.longest = trace.longest.max(TIER_MS * 3 / 2);
        trace.reducer = Reducer::new(step, trace.longest);
        trace.days = true;
        trace
    }

    /// Whether it is made of days.
    pub fn is_of_days(&self) -> bool {
        self.days
    }

    /// False when it must be built anew: other columns, an earlier start, a start behind what was read, older history,
    /// another cadence.
    pub fn fits(&self, step: i64, from: i64, source: &Source) -> bool {
        self.reducer.step() == step.max(1)
            && self.from <= from
            && (self.upto == i64::MIN || from <= self.upto)
            && self.epoch == source.epoch
            && self.longest == (source.cadence(self.series) * 3 / 2).max(if self.days { TIER_MS * 3 / 2 } else { 0 })
    }

    /// Takes in what is new since the last time up to a little behind `to`, and forgets what lies before `from`. True when
    /// it now reaches further than before: spreads of several series are then made anew.
    pub fn feed(&mut self, source: &Source, from: i64, to: i64) -> bool {
        let slack = self.reducer.step().max(self.longest) * SLACK;
        let further = to > self.upto;
        if further {
            self.upto = to + slack;
        }
        // A little earlier than the window, so that the line comes in from the left and a rate has its first sample.
        let reach = self.from - self.longest.max(self.reducer.step()) * 2;
        let Trace { reducer, rate, factor, longest, .. } = self;
        if self.days && self.after == 0 {
            source.days.minutes(self.series, reach, |b, last| {
                reducer.push_many((b.t, last), [b.min, b.max, b.mean].map(|v| v * *factor), b.count);
            });
            self.after = source.days.last_seq();
        }
        self.after = source.samples(self.series, self.after, (reach, self.upto), |t, v| {
            let v = rate.as_mut().map_or(v, |r| r.push(t, v, *longest));
            reducer.push(t, v * *factor);
        });
        self.reducer.forget_before(from - slack);
        // What was forgotten must be read again when the view goes back to it.
        self.from = self.from.max(from - slack);
        further
    }

    /// Its columns, oldest first, some of them before the window.
    pub fn columns(&self) -> &[Column] {
        self.reducer.columns()
    }

    /// The columns that begin within a span.
    pub fn within(&self, from: i64, to: i64) -> &[Column] {
        let columns = self.columns();
        let start = columns.partition_point(|c| c.last_t < from);
        let end = columns.partition_point(|c| c.first_t <= to);
        &columns[start..end.max(start)]
    }

    /// The column nearest to an instant, when one is within reach of it.
    pub fn at(&self, t: i64) -> Option<&Column> {
        let columns = self.columns();
        let after = columns.partition_point(|c| c.t < t);
        let candidates = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|i| columns.get(i));
        let nearest = candidates.min_by_key(|c| (c.t - t).abs())?;
        ((nearest.t - t).abs() <= self.longest.max(self.reducer.step())).then_some(nearest)
    }
}
