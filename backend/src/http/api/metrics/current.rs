//! The current values of all series.

use super::SERIES_AT_ONCE;
use shared::catalog::Catalog;
use shared::series::{SeriesDef, SeriesId};
use shared::wire::Source;
use std::collections::VecDeque;
use std::sync::Arc;
use stream::live::{Live, Reader};
use stream::store::Snapshot;

/// A series' current value: source, series, value.
pub(super) type Current = (Arc<str>, SeriesDef, f64);

/// Maximum age of the newest sample of a slow series, milliseconds: the lookback of Prometheus itself.
const MAX_AGE_MS: i64 = 300_000;
/// Tolerance of the age of a source's newest tick, beyond two of its intervals, milliseconds. It applies both ways, as
/// a clock may be set back.
const MAX_LATE_MS: i64 = 5_000;

/// Collects the current values of every source. A value is current until two intervals of its series have passed. A
/// series that is read less often than there are ticks keeps its value in between.
#[derive(Default)]
pub(super) struct Gathering {
    catalog: Arc<Catalog>,
    sources: VecDeque<Arc<Source>>,
    /// Series without a value in their source's newest tick.
    slow: VecDeque<Slow>,
    current: Vec<Current>,
}

/// Series of a source whose newest values are older than its newest tick, which is at `t`.
struct Slow {
    host: Arc<str>,
    t: i64,
    series: VecDeque<(SeriesId, SeriesDef)>,
    snapshot: Snapshot,
}

impl Gathering {
    /// Starts without values.
    pub(super) fn new(reader: &Reader) -> Self {
        let catalog = reader.live().store().catalog().clone();
        let sources = reader.sources().into();
        Gathering { catalog, sources, ..Gathering::default() }
    }

    /// Collects some values; returns whether there may be more. The disk is read outside the store's lock.
    pub(super) fn gather(&mut self, live: &Live) -> bool {
        if let Some(source) = self.sources.pop_front() {
            self.newest(live, source);
            return true;
        }
        let Some(slow) = self.slow.front_mut() else { return false };
        let part = slow.series.len().min(SERIES_AT_ONCE);
        let (ids, defs): (Vec<_>, Vec<_>) = slow.series.drain(..part).unzip();
        for (def, samples) in defs.into_iter().zip(slow.snapshot.samples(&ids)) {
            self.current.extend(still(&samples, slow.t).map(|v| (slow.host.clone(), def, v)));
        }
        if slow.series.is_empty() {
            self.slow.pop_front();
        }
        true
    }

    /// The catalog, and all collected values.
    pub(super) fn end(self) -> (Arc<Catalog>, Vec<Current>) {
        (self.catalog, self.current)
    }

    /// The values of a source's newest tick, and the list of series that need a search.
    fn newest(&mut self, live: &Live, source: Arc<Source>) {
        // Read now: the response may have waited for its permit.
        let now = live.clock.wall();
        let store = live.store();
        // The catalog may have grown since.
        self.catalog = store.catalog().clone();
        let is_current = |(t, _): &(i64, _)| (now - t).abs() <= 2 * source.interval + MAX_LATE_MS;
        let Some((t, values)) = store.newest(source.id).filter(is_current) else { return };
        let host = Arc::<str>::from(source.name.as_str());
        let mut series = VecDeque::new();
        for (id, (def, &v)) in (0..).zip(store.series(source.id, 0).iter().zip(&values)) {
            if v.is_finite() {
                self.current.push((host.clone(), def.clone(), v));
            } else if store.span(source.id, id).is_some_and(|(_, last)| last >= t - MAX_AGE_MS) {
                series.push_back((id, def.clone()));
            }
        }
        let snapshot = if series.is_empty() { None } else { store.snapshot(source.id, t - MAX_AGE_MS, t) };
        self.slow.extend(snapshot.map(|snapshot| Slow { host, t, series, snapshot }));
    }
}

/// The last of these values, unless two intervals between them have passed.
pub(super) fn still(samples: &[(i64, f64)], now: i64) -> Option<f64> {
    let [.., (before, _), (last, value)] = samples else { return None };
    (now - last <= 2 * (last - before)).then_some(*value)
}
