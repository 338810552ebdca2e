//! One series as a chart draws it: in base units, counters as rates, reduced to columns. Only new samples are read.

use super::source::Source;
use charts::reduce::{Column, Reducer};
use shared::catalog::{Catalog, Kind, Metric};
use shared::segment::TIER_MS;
use shared::series::SeriesId;
use shared::unit::Unit;

/// The base unit in which a metric is drawn; per second for counters.
pub fn unit(metric: &Metric) -> Unit {
    if metric.kind == Kind::Counter { metric.unit.per_second() } else { metric.unit.base() }
}

/// Turns the samples of a counter into rates as [`shared::rollup::rate`] does, one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    before: Option<(i64, f64)>,
}

impl Rate {
    /// The rate per second from the last sample to this one; NaN when there is none. `t` and `longest` are in ms;
    /// samples further apart than `longest` give no rate.
    pub fn push(&mut self, t: i64, v: f64, longest: i64) -> f64 {
        if !v.is_finite() {
            return f64::NAN;
        }
        let Some((t0, v0)) = self.before.replace((t, v)) else { return f64::NAN };
        let ms = t - t0;
        if ms > 0 && ms <= longest && v >= v0 { (v - v0) * 1000.0 / ms as f64 } else { f64::NAN }
    }
}

/// Number of complete columns beyond each end of the window, so that lines begin and end outside of the plot.
const MARGIN_COLUMNS: i64 = 4;
/// Number of columns that are read at once when a view is moved beyond the read part.
const READ_AHEAD_COLUMNS: i64 = 120;
/// Number of columns that are read before the first complete one: a rate needs an earlier sample, and a line its gap.
const LEAD_COLUMNS: i64 = 4;

/// The columns of one series, and the extent that has been read.
pub struct Trace {
    series: SeriesId,
    reducer: Reducer,
    rate: Option<Rate>,
    factor: f64,
    longest: i64,
    /// Sequence of the last tick that was read.
    after: u64,
    /// Start of the complete columns, ms since the epoch.
    from: i64,
    /// End of the time that is read, ms since the epoch.
    upto: i64,
    /// Newest sequence, clock of the recording and end of reading at the last call of [`feed`](Self::feed).
    held: (Option<u64>, i64, i64),
    days: bool,
    epoch: u32,
}

impl Trace {
    /// Makes a trace with columns of `step` ms from `from` on (ms since the epoch). It has read nothing yet.
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

    /// Makes a trace of days, which reads minutes and the samples after them. `step` is a multiple of a minute.
    pub fn of_days(series: SeriesId, step: i64, from: i64, source: &Source, catalog: &Catalog) -> Self {
        let mut trace = Self::new(series, step, from, source, catalog);
        trace.longest = trace.longest.max(TIER_MS * 3 / 2);
        trace.reducer = Reducer::new(step, trace.longest);
        trace.days = true;
        trace.from = from - trace.width() * READ_AHEAD_COLUMNS;
        trace
    }

    /// True for a trace of days.
    pub fn is_of_days(&self) -> bool {
        self.days
    }

    /// True when the columns are `step` ms wide, and for `days` those of a trace of days.
    pub fn is_of(&self, step: i64, days: bool) -> bool {
        self.reducer.step() == step.max(1) && self.days == days
    }

    /// Width of a column, or the length of the shortest gap if that is more; in ms.
    fn width(&self) -> i64 {
        self.reducer.step().max(self.longest)
    }

    /// Number of columns that are read beyond both ends of a new view. It depends on the series, so that not all series
    /// must read more in the same frame when the view moves.
    fn slack(&self) -> i64 {
        MARGIN_COLUMNS + i64::from(self.series % 16) * 3
    }

    /// False if the trace must be made again: the span is far from the read part, older history arrived, or the cadence
    /// changed.
    pub fn fits(&self, from: i64, source: &Source) -> bool {
        let moved = self.from - from + self.width() * MARGIN_COLUMNS;
        // A span that begins slightly further left needs only some more reading.
        (moved <= 0 || moved <= self.width() * READ_AHEAD_COLUMNS && !self.days && source.in_order())
            && (self.upto == i64::MIN || from <= self.upto)
            && self.epoch == source.epoch
            && self.longest == (source.cadence(self.series) * 3 / 2).max(if self.days { TIER_MS * 3 / 2 } else { 0 })
    }

    /// Reads the new samples up to a little after `to`, and older ones if the view has moved to the left. Drops columns
    /// far from the view. Times are ms since the epoch.
    pub fn feed(&mut self, source: &Source, from: i64, to: i64) {
        let width = self.width();
        let wanted = from - width * MARGIN_COLUMNS;
        if wanted < self.from && !self.read_before(source, wanted - width * READ_AHEAD_COLUMNS) {
            self.restart(wanted - width * READ_AHEAD_COLUMNS);
        }
        // If a view has moved far to the left, columns far to its right are dropped. They are read again when the view
        // returns.
        if self.upto > i64::MIN && self.columns().last().is_some_and(|c| c.t > to + width * READ_AHEAD_COLUMNS * 4) {
            self.restart(wanted);
        }
        if self.upto < to + width * MARGIN_COLUMNS {
            self.upto = to + width * if self.upto == i64::MIN { self.slack() } else { READ_AHEAD_COLUMNS };
        }
        // Most frames bring nothing new.
        let held = (source.last_seq(), source.until, self.upto);
        if std::mem::replace(&mut self.held, held) == held && self.after > 0 {
            return self.forget(from);
        }
        let reach = self.from - width * LEAD_COLUMNS;
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

    /// Drops columns far before a view.
    fn forget(&mut self, from: i64) {
        let width = self.width();
        // The start moves with them, so that they are read again when the view returns.
        let old = from - width * READ_AHEAD_COLUMNS * 2;
        if old > self.from {
            self.reducer.forget_before(old - width);
            self.from = old;
        }
    }

    /// Drops all columns; those from `from` on will be read again.
    fn restart(&mut self, from: i64) {
        self.reducer = Reducer::new(self.reducer.step(), self.longest);
        self.rate = self.rate.map(|_| Rate::default());
        (self.after, self.upto, self.from) = (0, i64::MIN, from);
    }

    /// Reads the columns from `from` up to the first complete one. Returns false when there is no complete column.
    fn read_before(&mut self, source: &Source, from: i64) -> bool {
        let step = self.reducer.step();
        let columns = self.columns();
        let Some(slot) = columns.get(columns.partition_point(|c| c.slot * step < self.from)).map(|c| c.slot) else {
            return false;
        };
        let mut older = Reducer::new(step, self.longest);
        let mut rate = self.rate.map(|_| Rate::default());
        let how = (self.factor, self.longest);
        source.runs(self.series, 0, (from - self.width() * LEAD_COLUMNS, slot * step - 1), &mut |times, values| {
            let here = times.partition_point(|t| *t < slot * step);
            reduce(&mut older, &mut rate, how, &times[..here], values);
        });
        self.from = from;
        self.reducer.precede(older, slot);
        true
    }

    /// The columns, oldest first. Some lie before the window.
    pub fn columns(&self) -> &[Column] {
        self.reducer.columns()
    }

    /// The columns with samples within a span.
    pub fn within(&self, from: i64, to: i64) -> &[Column] {
        let columns = self.columns();
        let start = columns.partition_point(|c| c.last_t < from);
        let end = columns.partition_point(|c| c.first_t <= to);
        &columns[start..end.max(start)]
    }

    /// The newest column up to `to`. It is after `from`, or at most two widths before; else the result is None.
    pub fn newest(&self, from: i64, to: i64) -> Option<&Column> {
        let columns = self.columns();
        let newest = columns[..columns.partition_point(|c| c.first_t <= to)].last();
        newest.filter(|c| c.last_t >= from - self.width() * 2)
    }

    /// The column nearest to an instant; None when it is too far away.
    pub fn at(&self, t: i64) -> Option<&Column> {
        let columns = self.columns();
        let after = columns.partition_point(|c| c.t < t);
        let candidates = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|i| columns.get(i));
        let nearest = candidates.min_by_key(|c| (c.t - t).abs())?;
        ((nearest.t - t).abs() <= self.longest.max(self.reducer.step())).then_some(nearest)
    }
}

/// Reduces samples to columns: in base units, and for a counter as rates.
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
