//! History as minutes, for windows of days. Gauges use the minutes stored on disk. Counters use minutes of their rate,
//! computed from their samples, so that the extremes are exact.

use super::hidden::HiddenSeries;
use crate::store::{Block, Damages, Store};
use bytes::Bytes;
use shared::catalog::Kind;
use shared::rollup::{rate, roll};
use shared::segment::{TIER_MS, tier};
use shared::series::{SeriesId, Steps};
use shared::wire::{self, ColumnBytes, MAX_MESSAGE, Minutes, ServerMessage, SourceId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Sealed blocks to be sent to a page as minutes.
pub struct Stretches {
    source: SourceId,
    blocks: VecDeque<Block>,
    /// Number of series of the first block that were sent.
    sent: usize,
    /// Series by id: the steps of a gauge, none for a counter.
    steps: Vec<Option<Steps>>,
    interval: i64,
    /// The newest sample of each counter, since a rate spans two blocks.
    before: HashMap<SeriesId, (i64, f64)>,
    damages: Arc<Damages>,
    hidden: HiddenSeries,
}

impl Stretches {
    /// The sealed blocks of a source in a span; none for an unknown source. Late samples are included after their hour
    /// is merged.
    pub fn new(store: &Store, source: SourceId, from: i64, to: i64) -> Option<Self> {
        let snapshot = store.snapshot(source, from, to)?;
        let kind = |def| store.catalog().metric(def).map(|m| (m.kind == Kind::Counter, m.steps));
        let steps = store.series(source, 0).iter().map(|def| match kind(def) {
            Some((true, _)) => None,
            Some((false, steps)) => Some(steps),
            None => Some(0.0),
        });
        Some(Stretches {
            source,
            blocks: snapshot.blocks().iter().filter(|block| !block.late()).cloned().collect(),
            sent: 0,
            steps: steps.collect(),
            interval: store.source(source).map_or(1_000, |(info, _)| info.interval),
            before: HashMap::new(),
            damages: store.damages().clone(),
            hidden: HiddenSeries::default(),
        })
    }

    /// Without these series.
    pub fn without(self, hidden: HiddenSeries) -> Self {
        Stretches { hidden, ..self }
    }

    /// The next message, at most [`MAX_MESSAGE`] bytes or one column, and the rest. Damaged data is left out.
    pub fn read(mut self) -> (Option<Bytes>, Option<Self>) {
        let Some(block) = self.blocks.front().cloned() else { return (None, None) };
        let series = block.series();
        let mut times = None;
        let (mut columns, mut size) = (Vec::new(), 64);
        while let Some(&id) = series.get(self.sent) {
            if size >= MAX_MESSAGE / 2 {
                break;
            }
            if !self.hidden.has(id)
                && let Some(bytes) = self.column(&block, id, &mut times)
            {
                size += bytes.len() + 16;
                columns.push((id, ColumnBytes(bytes)));
            }
            self.sent += 1;
        }
        if self.sent >= series.len() {
            self.blocks.pop_front();
            self.sent = 0;
        }
        let message = wire::encode(&ServerMessage::Minutes(Minutes {
            source: self.source,
            first_seq: block.first_seq(),
            last_seq: block.last_seq(),
            from: block.from(),
            to: block.to(),
            columns,
        }));
        (Some(message.into()), (!self.blocks.is_empty()).then_some(self))
    }

    fn column(&mut self, block: &Block, id: SeriesId, times: &mut Option<Vec<i64>>) -> Option<Vec<u8>> {
        let steps = self.steps.get(id as usize).copied().flatten();
        if let Some(bytes) = steps.and_then(|_| block.kept_minutes(id)) {
            return Some(bytes);
        }
        if times.is_none() {
            *times = self.damages.checked(block, None, block.read_times());
        }
        let values = self.damages.checked(block, Some(id), block.read(id)).flatten()?;
        let samples = times.as_ref()?.iter().copied().zip(values).filter(|(_, v)| v.is_finite());
        if let Some(steps) = steps {
            return Some(tier::encode(&roll(samples, TIER_MS), steps));
        }
        let samples: Vec<(i64, f64)> = self.before.remove(&id).into_iter().chain(samples).collect();
        self.before.extend(samples.last().map(|last| (id, *last)));
        // The usual distance of its samples. A greater distance is a gap.
        let cadence = samples.windows(2).map(|w| w[1].0 - w[0].0).filter(|ms| *ms > 0).min().unwrap_or(0);
        let rates = rate(samples, cadence.max(self.interval) * 3 / 2);
        // Rates have no steps: single precision takes a third of the bytes.
        Some(tier::encode(&roll(rates.map(|(t, v)| (t, f64::from(v as f32))), TIER_MS), 0.0))
    }
}
