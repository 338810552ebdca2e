//! Missing ticks of a link: the time shift of received blocks, and the next requests.

use super::Intake;
use crate::ingest::clock::Beside;
use crate::ingest::coverage::{self, Lacking, Span};
use crate::ingest::fetch::CheckedBlock;
use crate::ingest::limits::{self, Cause};
use shared::agent::HubMessage;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stream::store::{Chunk, Column};

/// Ticks that expire within this time are not fetched any more, milliseconds.
const EXPIRES_MS: i64 = 60_000;

impl Intake {
    /// The shift of a block's timestamps, milliseconds. If the clock was set while nothing could be sent, only its
    /// timestamps show that. Then the shift is used with which the block continues from the neighboring ticks.
    fn shift_of(&self, (first, last): Span, clock_step: bool, times: &[i64]) -> i64 {
        let known = self.clock.shift_at(first, self.life);
        // Timestamps of a relaying hub are already corrected.
        let (Some(&from), Some(&to), false) = (times.first(), times.last(), self.relayed) else { return known };
        if let Some((_, shift)) = self.shifted.filter(|(before, _)| before + 1 == first && !clock_step) {
            return shift;
        }
        let mut runs = self.ingest.live.store().runs(self.source);
        let (of_life, interval) = (first >= self.life, self.interval);
        // Sequences of other lives do not indicate the time between them.
        runs.retain(|run| run.last >= self.life || !of_life);
        let at = runs.partition_point(|run| run.first <= last);
        let ticks = |n: u64| i64::try_from(n).unwrap_or(i64::MAX).saturating_mul(interval);
        let before = runs[..at].last().filter(|run| run.last < first);
        let goes_on = before.map(|run| run.to.saturating_add(ticks(first - run.last)).saturating_sub(from));
        let leads_to = runs.get(at).map(|run| run.from.saturating_sub(ticks(run.first - last)).saturating_sub(to));
        let set = clock_step && before.is_some_and(|run| run.last + 1 == first);
        self.clock.shift_between(known, Beside { goes_on, leads_to, set, of_life, interval })
    }

    /// Stores a requested block; None: it is damaged.
    pub fn filled(&mut self, span: (u64, u64), block: Option<CheckedBlock>) {
        let Some(CheckedBlock { first, last, clock_step, mut times, columns }) = block else {
            self.refusals.add(Cause::Fill, 1);
            return self.fetch.refused(span, true);
        };
        let unnamed = columns.iter().filter(|(id, _)| !self.map.is_named(*id)).count();
        if unnamed > 0 && self.fetch.asks_again(span) {
            // The names may be in transit. The second time, the other columns are stored.
            return self.refusals.add(Cause::Unnamed, unnamed as u64);
        }
        let live = self.ingest.live.clone();
        let shift = self.shift_of((first, last), clock_step, &times);
        self.shifted = Some((last, shift));
        times.iter_mut().for_each(|t| *t = t.saturating_add(shift));
        let (Some(&from), Some(&to)) = (times.first(), times.last()) else { return };
        let retention = live.store().retention(self.source);
        if !limits::is_year(from) || !limits::is_time(to, live.clock.wall(), retention) {
            self.refusals.add(Cause::Time, times.len() as u64);
            return self.fetch.refused(span, false);
        }
        let columns: Vec<Column> = {
            let mut store = live.store();
            if store.holds_any(self.source, span) {
                self.ingest.totals.duplicates.fetch_add(times.len() as u64, Ordering::Relaxed);
                return self.fetch.refused(span, false);
            }
            let steady = live.clock.steady();
            let pace = &mut self.used.lock().pace;
            let mapped = self.map.columns(&mut store, columns, pace, steady, &self.refusals);
            mapped.into_iter().map(|(id, column)| Column { id, ..column }).collect()
        };
        let samples: u64 = columns.iter().map(|column| column.samples).sum();
        self.ingest.totals.ticks.fetch_add(last - first + 1, Ordering::Relaxed);
        self.ingest.totals.samples.fetch_add(samples, Ordering::Relaxed);
        // Ticks between two blocks may never have existed, so no gap is recorded.
        let chunk = Chunk::new(first, &times, columns).after_gap(clock_step);
        live.fill(self.source, vec![Arc::new(chunk)]);
        let known = self.refilled.unwrap_or((from, to));
        self.refilled = Some((known.0.min(from), known.1.max(to)));
    }

    /// Searches for missing ticks.
    pub(super) fn find_missing(&mut self) {
        let live = self.ingest.live.clone();
        let (mut covered, newest, damages, retention) = {
            let store = live.store();
            let newest = store.state(self.source).map_or((0, 0), |state| (state.seq(), state.t()));
            (store.coverage(self.source), newest, store.damages().count(), store.retention(self.source))
        };
        self.erased.iter().for_each(|span| coverage::add(&mut covered, *span));
        let was_lacking = !self.fetch.holes.is_empty();
        self.fetch.holes = Lacking {
            offers: &self.fetch.offers,
            newest,
            interval: self.interval,
            shift: self.clock.shift(),
            oldest: live.clock.wall().saturating_sub(retention).saturating_add(EXPIRES_MS),
            covered: &covered,
            tried: &self.fetch.tried(),
        }
        .holes();
        (self.looked, self.damages) = (Some(live.clock.steady()), damages);
        if was_lacking && self.fetch.holes.is_empty() {
            live.complete_fills();
        }
    }

    /// Whether there is a request to make now.
    pub fn wants_turn(&self) -> bool {
        let live = &self.ingest.live;
        // Fetching pauses while a disk fails.
        self.fetch.is_due() && self.knows_clock() && !live.is_full_of_fills() && live.is_logged()
    }

    /// Whether an answer to a request is awaited.
    pub fn is_fetching(&self) -> bool {
        self.fetch.is_open()
    }

    /// Requests missing ticks.
    pub fn ask(&mut self) -> Option<HubMessage> {
        let clock = &self.ingest.live.clock;
        let (id, (first, last)) = self.fetch.ask(clock.wall(), clock.steady(), self.interval)?;
        Some(HubMessage::Want { id, first, last })
    }
}
