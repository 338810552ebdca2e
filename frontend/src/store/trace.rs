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

/// Columns beyond either end of the window that are whole, so that lines come in and go out.
const WHOLE: i64 = 4;
/// Columns that are read at once when a view is moved beyond what was read.
const MORE: i64 = 120;
/// Columns before the first whole one that are read: a rate needs its first sample, a line its gap.
const LEAD: i64 = 4;

/// A series on its way to the screen.
pub struct Trace {
    series: SeriesId,
    reducer: Reducer,
    rate: Option<Rate>,
    factor: f64,
    longest: i64,
    /// Sequence up to which it is read.
    after: u64,
    /// Columns that begin from here on are whole, ms.
    from: i64,
    /// What is read goes so far, ms.
    upto: i64,
    /// What there was to read at the last time, and how far of it was read.
    held: (Option<u64>, i64, i64),
    days: bool,
    epoch: u32,
}

impl Trace {
    /// A series in columns of `step` ms from `from` on; nothing is read yet.
    pub fn new(series: SeriesId, step: i64, from: i64, source: &Source, catalog: &Catalog) -> Self {
        let metric = source.defs.get(series as usize).and_then(|d| catalog.metric(d));
        let longest = source.cadence(series) * 3 / 2;
        let mut trace = Trace {
            series,
            reducer: Reducer::new(step, longest),
            rate: metric.is_some_and(|m| m.kind == Kind::Counter).then(Rate::default),
            factor: metric.map_or(1.0, |m| m.unit.to_base()),
            longest,
            after: 0,
            from,
            upto: i64::MIN,
            held: (None, 0, 0),
            days: false,
            epoch: source.epoch,
        };
        trace.from = from - trace.width() * trace.slack();
        trace
    }

    /// Likewise of days, from minutes and the samples behind them; `step` is whole minutes.
    pub fn of_days(series: SeriesId, step: i64, from: i64, source: &Source, catalog: &Catalog) -> Self {
        let mut trace = Self::new(series, step, from, source, catalog);
        trace.longest = trace.longest.max(TIER_MS * 3 / 2);
        trace.reducer = Reducer::new(step, trace.longest);
        trace.days = true;
        trace.from = from - trace.width() * MORE;
        trace
    }

    /// Whether it is made of days.
    pub fn is_of_days(&self) -> bool {
        self.days
    }

    /// Width of a column, or what a gap must be longer than, ms.
    fn width(&self) -> i64 {
        self.reducer.step().max(self.longest)
    }

    /// Columns that are read beyond both ends of a new view: of each series others, so that when it is moved not all
    /// need more in the same frame.
    fn slack(&self) -> i64 {
        WHOLE + i64::from(self.series % 16) * 3
    }

    /// False when it must be built anew: other columns, a span that lies apart from what was read, older history, another
    /// cadence.
    pub fn fits(&self, step: i64, from: i64, source: &Source) -> bool {
        let moved = self.from - from + self.width() * WHOLE;
        self.reducer.step() == step.max(1)
            // What lies a little to the left is read in addition.
            && (moved <= 0 || moved <= self.width() * MORE && !self.days && source.in_order())
            && (self.upto == i64::MIN || from <= self.upto)
            && self.epoch == source.epoch
            && self.longest == (source.cadence(self.series) * 3 / 2).max(if self.days { TIER_MS * 3 / 2 } else { 0 })
    }

    /// Takes in what is new since the last time up to a little behind `to` and before `from`, and forgets what lies
    /// further away.
    pub fn feed(&mut self, source: &Source, from: i64, to: i64) {
        let width = self.width();
        let wanted = from - width * WHOLE;
        if wanted < self.from && !self.read_before(source, wanted - width * MORE) {
            self.restart(wanted - width * MORE);
        }
        // What lies far to the right of a view that was moved is read again when it comes back.
        if self.upto > i64::MIN && self.columns().last().is_some_and(|c| c.t > to + width * MORE * 4) {
            self.restart(wanted);
        }
        if self.upto < to + width * WHOLE {
            self.upto = to + width * if self.upto == i64::MIN { self.slack() } else { MORE };
        }
        // Most often a frame has nothing new.
        let held = (source.last_seq(), source.until, self.upto);
        if std::mem::replace(&mut self.held, held) == held && self.after > 0 {
            return self.forget(from);
        }
        let reach = self.from - width * LEAD;
        if self.days && self.after == 0 {
            let (reducer, factor) = (&mut self.reducer, self.factor);
            source.days.minutes(self.series, reach, |b, last| {
                reducer.push_many((b.t, last), [b.min, b.max, b.mean].map(|v| v * factor), b.count);
            });
            self.after = source.days.last_seq();
        }
        let Trace { reducer, rate, factor, longest, .. } = self;
        self.after = source.runs(self.series, self.after, (reach, self.upto), &mut |times, values| {
            reduce(reducer, rate, (*factor, *longest), times, values);
        });
        self.forget(from);
    }

    /// Forgets what lies far before a view.
    fn forget(&mut self, from: i64) {
        let width = self.width();
        // What was forgotten must be read again when the view goes back to it.
        let old = from - width * MORE * 2;
        if old > self.from {
            self.reducer.forget_before(old - width);
            self.from = old;
        }
    }

    /// Begins anew, whole from `from` on.
    fn restart(&mut self, from: i64) {
        self.reducer = Reducer::new(self.reducer.step(), self.longest);
        self.rate = self.rate.map(|_| Rate::default());
        (self.after, self.upto, self.from) = (0, i64::MIN, from);
    }

    /// Reads what lies before the first whole column, so that columns are whole from `from` on; false when there is none.
    fn read_before(&mut self, source: &Source, from: i64) -> bool {
        let step = self.reducer.step();
        let columns = self.columns();
        let Some(slot) = columns.get(columns.partition_point(|c| c.slot * step < self.from)).map(|c| c.slot) else {
            return false;
        };
        let mut older = Reducer::new(step, self.longest);
        let mut rate = self.rate.map(|_| Rate::default());
        let how = (self.factor, self.longest);
        source.runs(self.series, 0, (from - self.width() * LEAD, slot * step - 1), &mut |times, values| {
            let here = times.partition_point(|t| *t < slot * step);
            reduce(&mut older, &mut rate, how, &times[..here], values);
        });
        self.from = from;
        self.reducer.precede(older, slot);
        true
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

    /// The newest column that begins before `to` and lies after `from`, or so near before it that another may follow.
    pub fn newest(&self, from: i64, to: i64) -> Option<&Column> {
        let columns = self.columns();
        let newest = columns[..columns.partition_point(|c| c.first_t <= to)].last();
        newest.filter(|c| c.last_t >= from - self.width() * 2)
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

/// Takes samples as they are into columns: in base units, of a counter as rates.
fn reduce(
    reducer: &mut Reducer,
    rate: &mut Option<Rate>,
    (factor, longest): (f64, i64),
    times: &[i64],
    values: &[f64],
) {
    match rate {
        None => reducer.extend(times, values, factor),
        Some(rate) => {
            let rates: Vec<f64> = times.iter().zip(values).map(|(t, v)| rate.push(*t, *v, longest)).collect();
            reducer.extend(times, &rates, factor);
        }
    }
}
