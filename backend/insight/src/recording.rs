//! Findings of a recording.

use crate::{Insight, Settings};
use shared::column;
use shared::finding::Finding;
use shared::recording::{Machine, Recording};
use shared::series::SeriesId;
use shared::wire::Columns;

/// Interval of judgments, milliseconds.
const SECOND: i64 = 1_000;

/// One machine of the recording, read block by block.
struct Reading<'a> {
    blocks: std::slice::Iter<'a, Columns>,
    times: Vec<i64>,
    columns: Vec<(SeriesId, Vec<f64>)>,
    at: usize,
}

impl<'a> Reading<'a> {
    fn new(machine: &'a Machine) -> Self {
        Reading { blocks: machine.blocks.iter(), times: Vec::new(), columns: Vec::new(), at: 0 }
    }

    /// Time of its next tick.
    fn next(&mut self) -> Option<i64> {
        while self.at >= self.times.len() {
            let block = self.blocks.next()?;
            let ticks = block.ticks as usize;
            // A damaged block is a gap; opening the file reported it.
            self.times = column::decode_times(&block.times, ticks).unwrap_or_default();
            let decoded =
                block.columns.iter().filter_map(|(id, bytes)| Some((*id, column::decode(&bytes.0, ticks).ok()?)));
            self.columns = decoded.collect();
            self.at = 0;
        }
        Some(self.times[self.at])
    }

    /// The samples of its next tick.
    fn take(&mut self) -> impl Iterator<Item = (SeriesId, f64)> {
        let at = self.at;
        self.at += 1;
        self.columns.iter().filter_map(move |(id, values)| Some((*id, *values.get(at)?))).filter(|(_, v)| v.is_finite())
    }
}

/// All findings of a recording in their final state, in the order in which they were raised.
pub fn look_through(recording: &Recording, settings: Settings) -> Vec<Finding> {
    let mut insight = Insight::new(settings);
    let mut readings: Vec<Reading> = Vec::new();
    for (source, machine) in (0..).zip(&recording.machines) {
        insight.source(source, &machine.info.name, machine.info.interval);
        for (id, def) in (0..).zip(&machine.series) {
            if let Some(metric) = recording.catalog.metric(def) {
                insight.series(source, id, metric, &def.instance);
            }
        }
        readings.push(Reading::new(machine));
    }
    let (mut told, mut all, mut looked) = (Vec::new(), Vec::<Finding>::new(), i64::MIN);
    let mut take = |told: &mut Vec<Finding>| {
        for finding in told.drain(..) {
            match all.iter_mut().rev().find(|known| known.id == finding.id) {
                Some(known) => *known = finding,
                None => all.push(finding),
            }
        }
    };
    let next = |readings: &mut Vec<Reading>| {
        let times = readings.iter_mut().enumerate().filter_map(|(place, reading)| Some((reading.next()?, place)));
        times.min()
    };
    let mut end = None;
    while let Some((t, place)) = next(&mut readings) {
        let second = t - t.rem_euclid(SECOND);
        if second > looked {
            insight.judge(second, &mut told);
            take(&mut told);
            looked = second;
        }
        insight.tick(place as u32, t, readings[place].take());
        end = Some(t);
    }
    if let Some(end) = end {
        insight.judge(end + 1, &mut told);
        take(&mut told);
    }
    all
}
