//! Series hidden from a page that follows their source: those of charts that a share link excludes. Frames are shared
//! by all pages, so such a page gets frames of its own.

use crate::store::{Cursor, Store};
use shared::scope::Scope;
use shared::series::SeriesId;
use shared::tick::TickState;
use shared::wire::SourceId;
use std::sync::Arc;

/// Whether each series of a source is hidden, by id.
#[derive(Clone, Debug, Default)]
pub struct HiddenSeries(Option<Arc<[bool]>>);

impl HiddenSeries {
    /// The series of a source that a scope hides.
    pub fn from_scope(store: &Store, source: SourceId, scope: &Scope) -> Self {
        if !scope.hides_any() {
            return HiddenSeries(None);
        }
        let catalog = store.catalog();
        let hides = |def| catalog.metric(def).is_none_or(|metric| scope.hides(&metric.chart));
        HiddenSeries(Some(store.series(source, 0).iter().map(hides).collect()))
    }

    /// Whether a series is hidden. A series added later is hidden until its definition is known.
    pub fn has(&self, id: SeriesId) -> bool {
        self.0.as_ref().is_some_and(|hidden| hidden.get(id as usize).copied().unwrap_or(true))
    }
}

/// The ticks of a source without its hidden series, as frames that follow each other.
#[derive(Default)]
pub struct ShownTicks {
    state: TickState,
    hidden: HiddenSeries,
}

impl ShownTicks {
    /// The keyframe of a reader's position; these series are hidden from there on.
    pub fn begin(&mut self, cursor: &Cursor, hidden: HiddenSeries) -> Vec<u8> {
        (self.state, self.hidden) = (TickState::default(), hidden);
        if let Some(state) = cursor.state() {
            self.state = TickState::after(state.seq().saturating_sub(1), state.t());
            self.state.extend(state.steps().iter().copied());
            if state.seq() > 0 {
                self.tick(state, false);
            }
        }
        self.state.keyframe()
    }

    /// Updates the hidden series when the page receives these series of the reader's position, which are new or
    /// redefined.
    pub fn announce(&mut self, cursor: &Cursor, series: &[SeriesId], hidden: HiddenSeries) {
        self.hidden = hidden;
        let steps = cursor.state().map_or(&[][..], TickState::steps);
        series.iter().filter_map(|id| Some((*id, *steps.get(*id as usize)?))).for_each(|(id, steps)| {
            if (id as usize) < self.state.steps().len() {
                self.state.redefine(id, steps);
            } else {
                self.state.extend([steps]);
            }
        });
    }

    /// The frame of the tick that the reader just consumed.
    pub fn take(&mut self, cursor: &Cursor, clock_step: bool) -> Vec<u8> {
        cursor.state().map_or_else(Vec::new, |state| self.tick(state, clock_step))
    }

    fn tick(&mut self, state: &TickState, clock_step: bool) -> Vec<u8> {
        let all = (0..).zip(state.values());
        let shown: Vec<f64> = all.map(|(id, value)| if self.hidden.has(id) { f64::NAN } else { *value }).collect();
        self.state.encode_at(state.seq(), state.t(), clock_step, &shown)
    }
}
