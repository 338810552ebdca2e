//! Series that a page is not shown though it follows their source: those of charts that a share link leaves out. Frames are
//! shared by all pages, so that such a page gets its own.

use crate::store::{Cursor, Store};
use shared::scope::Scope;
use shared::series::SeriesId;
use shared::tick::TickState;
use shared::wire::SourceId;
use std::sync::Arc;

/// Which series of a source are not shown, by id.
#[derive(Clone, Debug, Default)]
pub struct HiddenSeries(Option<Arc<[bool]>>);

impl HiddenSeries {
    /// Those of a source that a scope hides.
    pub fn of(store: &Store, source: SourceId, scope: &Scope) -> Self {
        if !scope.hides_any() {
            return HiddenSeries(None);
        }
        let catalog = store.catalog();
        let hides = |def| catalog.metric(def).is_none_or(|metric| scope.hides(&metric.chart));
        HiddenSeries(Some(store.series(source, 0).iter().map(hides).collect()))
    }

    /// Whether a series is one of them; one that came later is, too, until it is known what it is.
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
    /// The keyframe of a reader's place; these are hidden from there on.
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

    /// The page is told of these series of the reader's place: they are new, or others than they were.
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

    /// The frame of the tick that the reader has just taken.
    pub fn take(&mut self, cursor: &Cursor, clock_step: bool) -> Vec<u8> {
        cursor.state().map_or_else(Vec::new, |state| self.tick(state, clock_step))
    }

    fn tick(&mut self, state: &TickState, clock_step: bool) -> Vec<u8> {
        let all = (0..).zip(state.values());
        let shown: Vec<f64> = all.map(|(id, value)| if self.hidden.has(id) { f64::NAN } else { *value }).collect();
        self.state.encode_at(state.seq(), state.t(), clock_step, &shown)
    }
}
