//! Texts and numbers of a tile: a value over several series, its total, the extreme series by name, and the points of
//! its sparkline.

use crate::findings::evidence::Subjects;
use crate::store::source::Source;
use crate::store::trace::{Trace, unit};
use crate::store::{Store, reading};
use charts::order;
use shared::catalog::{Fold, Note, Tile, gpu};
use shared::series::SeriesId;
use shared::unit::{Scale, Unit, number};
use std::collections::BTreeMap;

/// Length of the sparkline in ms.
pub const SPARKLINE_MS: i64 = 300_000;
/// Width of the sparkline's columns in ms.
const SPARKLINE_STEP_MS: i64 = 5_000;

/// A device is named as straggler if it was below its peers for this time in ms. The distance must exceed this number
/// of percentage points, and 1.5 times the spread of the others.
const STRAGGLER_MS: i64 = 60_000;
const STRAGGLER_POINTS: f64 = 6.0;

/// Beginning of a note about series without data; such notes get another color.
pub const MISSING_PREFIX: &str = "▲ ";

/// The number of a tile, with its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The number; a dash if there is none.
    pub number: String,
    /// Its unit, or its total; empty if there is no number.
    pub symbol: String,
    /// The scale of both.
    pub scale: Scale,
    /// The value, in the base unit.
    pub value: Option<f64>,
    /// The total, in the base unit.
    pub of: Option<f64>,
}

/// The history of a tile's series, kept between pictures.
#[derive(Default)]
pub struct Sparkline {
    traces: BTreeMap<SeriesId, Trace>,
}

impl Sparkline {
    /// Text for a device that was below its peers for a minute up to `to`, computed from the last points: `▲ GPU 3 at
    /// 77 %`. None unless the note is about the lowest one.
    pub fn straggler(&self, say: &Say, to: i64) -> Option<String> {
        let Note::Lowest(tag, _) = &say.tile.note else { return None };
        if say.unit() != Unit::Percent || !say.tile.metrics.contains(tag) || !say.ended().is_empty() {
            return None;
        }
        let mean = |id: SeriesId| {
            let means: Vec<f64> =
                self.traces.get(&id)?.within(to - STRAGGLER_MS, to).iter().map(|column| column.mean()).collect();
            (means.len() > 3).then(|| means.iter().sum::<f64>() / means.len() as f64)
        };
        let mut means: Vec<(f64, SeriesId)> =
            say.series(tag).into_iter().filter_map(|id| Some((mean(id)?, id))).collect();
        order::sort_by(&mut means, |a, b| a.0.total_cmp(&b.0));
        let ([(lowest, id), others @ ..], [_, _, _, ..]) = (&means[..], &means[..]) else { return None };
        let (median, width) = (others[others.len() / 2].0, others[others.len() - 1].0 - others[0].0);
        let (value, def) = (say.at(*id)?, &say.source.defs[*id as usize]);
        let far = median - lowest > STRAGGLER_POINTS.max(1.5 * width);
        far.then(|| format!("{MISSING_PREFIX}{} at {} %", say.store.catalog.label(def), number(value)))
    }

    /// Times (ms since the epoch) and values of the last [`SPARKLINE_MS`] up to `to`, in the base unit; NaN ends the
    /// line.
    pub fn points(&mut self, say: &Say, to: i64) -> Vec<(i64, f64)> {
        let from = to - SPARKLINE_MS;
        let mut sums: BTreeMap<i64, (i64, f64)> = BTreeMap::default();
        for tag in &say.tile.metrics {
            let mut slots: BTreeMap<i64, (i64, Vec<f64>)> = BTreeMap::default();
            for id in say.series(tag) {
                let fits = self.traces.get(&id).is_some_and(|t| t.fits(from, say.source));
                if !fits {
                    self.traces.insert(id, Trace::new(id, SPARKLINE_STEP_MS, from, say.source, &say.store.catalog));
                }
                if let Some(trace) = self.traces.get_mut(&id) {
                    trace.feed(say.source, from, to);
                    for c in trace.within(from, to) {
                        slots.entry(c.slot).or_insert_with(|| (c.t, Vec::new())).1.push(c.mean());
                    }
                }
            }
            for (slot, (t, values)) in slots {
                if let Some(v) = fold(say.tile.fold, values) {
                    sums.entry(slot).or_insert((t, 0.0)).1 += v;
                }
            }
        }
        let mut points = Vec::with_capacity(sums.len() + 4);
        let mut before = None;
        for (slot, (t, v)) in sums {
            if before.is_some_and(|b| slot > b + 1 && SPARKLINE_STEP_MS > say.source.info.interval) {
                points.push((t - SPARKLINE_STEP_MS, f64::NAN));
            }
            before = Some(slot);
            points.push((t.min(to), v));
        }
        points
    }
}

/// The upper end of a sparkline of these points.
pub fn top(points: &[(i64, f64)], of: Option<f64>, unit: Unit) -> f64 {
    let most = points.iter().map(|p| p.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
    of.unwrap_or(if unit == Unit::Percent && most <= 100.0 { 100.0 } else { most * 1.1 })
}

fn fold(fold: Fold, values: Vec<f64>) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| match fold {
        Fold::Mean => values.iter().sum::<f64>() / n as f64,
        Fold::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        Fold::Sum => values.iter().sum(),
    })
}

/// The texts of a tile at the instant `t`, ms since the epoch.
pub struct Say<'a> {
    /// All data.
    pub store: &'a Store,
    /// The machine.
    pub source: &'a Source,
    /// The tile.
    pub tile: &'a Tile,
    /// The instant.
    pub t: i64,
}

impl Say<'_> {
    fn series(&self, tag: &str) -> Vec<SeriesId> {
        let Some(metric) = self.store.catalog.position(tag) else { return Vec::new() };
        let defs = self.source.defs.iter().enumerate();
        defs.filter(|(_, d)| d.metric == metric).map(|(i, _)| i as SeriesId).collect()
    }

    fn at(&self, id: SeriesId) -> Option<f64> {
        reading::at(self.source, &self.store.catalog, id, self.t)
    }

    fn folded(&self, tags: &[String]) -> Option<f64> {
        let each = tags.iter().filter_map(|tag| {
            fold(self.tile.fold, self.series(tag).into_iter().filter_map(|id| self.at(id)).collect())
        });
        each.reduce(|a, b| a + b)
    }

    /// The base unit of its number.
    pub fn unit(&self) -> Unit {
        let first = self.tile.metrics.first().and_then(|tag| self.store.catalog.position(tag));
        first.and_then(|m| self.store.catalog.metrics.get(usize::from(m))).map_or(Unit::Count, unit)
    }

    /// The number.
    pub fn figure(&self) -> Figure {
        let value = self.folded(&self.tile.metrics);
        let of = self.tile.of.as_ref().and_then(|tag| self.folded(std::slice::from_ref(tag)));
        let scale = self.unit().scale(of.or(value).unwrap_or(0.0));
        let symbol = match of {
            Some(of) => format!("of {} {}", scale.number(of), scale.symbol),
            None => scale.symbol.to_string(),
        };
        let number = value.map_or("–".to_string(), |v| scale.steady(v));
        Figure { number, symbol: value.map_or(String::new(), |_| symbol), scale, value, of }
    }

    /// Text at the right of the title.
    pub fn corner(&self) -> String {
        let (text, tag) = &self.tile.corner;
        if tag.is_empty() {
            return text.clone();
        }
        // The memory of such a GPU is that of the machine, which the page shows, too.
        let is_shared = || self.series(gpu::MEMORY_SHARED.tag).into_iter().any(|id| self.at(id) == Some(1.0));
        if self.tile.metrics.iter().any(|metric| metric == gpu::MEMORY_ALLOCATED_BYTES.tag) && is_shared() {
            return "shared with the host".into();
        }
        let all = self.series(tag);
        let told = all.iter().filter(|id| self.at(**id).is_some()).count();
        match all.len() {
            0 => String::new(),
            1 if text.contains(" of ") => String::new(),
            n if told == 0 || told == n => text.replace("{n}", &n.to_string()),
            // A series that has ended is not part of the value, so the corner shows the number of the others.
            n => text.replace("{n}", &format!("{told} of {n}")),
        }
    }

    /// Names of the ended series among those that the corner counts.
    fn ended(&self) -> Vec<String> {
        let all = self.series(&self.tile.corner.1);
        let gone: Vec<SeriesId> = all.iter().copied().filter(|id| self.at(*id).is_none()).collect();
        // If no series has a value, the whole machine is silent, and none is named.
        let some = gone.len() < all.len();
        gone.into_iter().filter(|_| some).map(|id| self.store.catalog.label(&self.source.defs[id as usize])).collect()
    }

    /// The line under the number where series have ended; None where none has.
    pub fn lost(&self) -> Option<String> {
        match self.ended().as_slice() {
            [] => None,
            [one] => Some(format!("{MISSING_PREFIX}{one} has no data")),
            [one, rest @ ..] => Some(format!("{MISSING_PREFIX}{one} and {} more have no data", rest.len())),
        }
    }

    /// The line under the number; `scale` is that of the number.
    pub fn note(&self, scale: Scale) -> String {
        match &self.tile.note {
            Note::Highest(tag, word) => self.extreme(tag, word, |a, b| a.total_cmp(&b)),
            Note::Lowest(tag, word) => self.extreme(tag, word, |a, b| b.total_cmp(&a)),
            Note::Parts(parts) => {
                let parts = parts.iter().filter_map(|(tag, word)| {
                    let values: Vec<f64> = self.series(tag).into_iter().filter_map(|id| self.at(id)).collect();
                    Some(format!("{word} {}", scale.number(fold(Fold::Sum, values)?)))
                });
                let parts = parts.collect::<Vec<_>>().join(", ");
                // The unit stands once, after the last part.
                if parts.is_empty() || scale.symbol.is_empty() { parts } else { format!("{parts} {}", scale.symbol) }
            }
            Note::Share(word, part, whole) => {
                let sum =
                    |tag: &str| fold(Fold::Sum, self.series(tag).into_iter().filter_map(|id| self.at(id)).collect());
                let metric =
                    self.store.catalog.position(whole).and_then(|m| self.store.catalog.metrics.get(usize::from(m)));
                let (Some(part), Some(whole), Some(metric)) = (sum(part), sum(whole), metric) else {
                    return String::new();
                };
                let (own, scale) = (unit(metric).scale(part), unit(metric).scale(whole));
                // The unit is written once in `212 of 512 GiB`, but twice in `271 GiB of 1 TiB`.
                let symbol = if own.symbol == scale.symbol { String::new() } else { format!(" {}", own.symbol) };
                format!("{word} {}{symbol} of {} {}", own.number(part), scale.number(whole), scale.symbol)
            }
        }
    }

    /// The line under the number where a finding names a device: that device's value of the line's metric. None where
    /// the finding names none of these devices, or all.
    pub fn named(&self, subjects: &Subjects) -> Option<String> {
        let (tag, lowest) = match &self.tile.note {
            Note::Highest(tag, _) => (tag, false),
            Note::Lowest(tag, _) => (tag, true),
            _ => return None,
        };
        let all = self.series(tag);
        let own = subjects.among(all.iter().map(|id| (tag.as_str(), self.source.defs[*id as usize].instance.as_str())));
        let order =
            |a: &(SeriesId, f64), b: &(SeriesId, f64)| if lowest { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) };
        let (id, value) = own.into_iter().filter_map(|i| Some((all[i], self.at(all[i])?))).max_by(order)?;
        Some(format!("{}, {}", self.store.catalog.label(&self.source.defs[id as usize]), self.quantity(id, value)))
    }

    /// A value of a series with its unit.
    fn quantity(&self, id: SeriesId, value: f64) -> String {
        let def = &self.source.defs[id as usize];
        let scale = self.store.catalog.metric(def).map_or(Unit::Count, unit).scale(value);
        format!("{} {}", scale.number(value), scale.symbol)
    }

    fn extreme(&self, tag: &str, word: &str, order: impl Fn(f64, f64) -> std::cmp::Ordering) -> String {
        let all: Vec<(SeriesId, f64)> =
            self.series(tag).into_iter().filter_map(|id| Some((id, self.at(id)?))).collect();
        let Some((id, value)) = all.iter().copied().reduce(|a, b| if order(b.1, a.1).is_gt() { b } else { a }) else {
            return String::new();
        };
        let name = self.store.catalog.label(&self.source.defs[id as usize]);
        match all.len() {
            1 => format!("{name} {}", self.quantity(id, value)),
            _ => format!("{word}: {name}, {}", self.quantity(id, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::source::Tick;
    use shared::catalog::Catalog;
    use shared::series::SeriesDef;
    use shared::wire;

    #[test]
    fn memory_that_is_the_machines_is_said_to_be_shared() {
        let store = Store { catalog: Catalog::new(gpu::ROWS.iter().chain(gpu::MORE).copied()), ..Store::default() };
        let def = |tag: &str| SeriesDef { metric: store.catalog.position(tag).expect(tag), instance: "0".into() };
        let tile = store
            .catalog
            .layout
            .tiles
            .iter()
            .find(|tile| tile.metrics.iter().any(|tag| tag == gpu::MEMORY_ALLOCATED_BYTES.tag));
        let tile = tile.expect("the tile of memory");
        let corner = |shared: f64| {
            let mut source = Source::new(wire::Source::new(0, "spark".into(), 1_000, Vec::new()));
            source.announce(0, vec![def(gpu::MEMORY_ALLOCATED_BYTES.tag), def(gpu::MEMORY_SHARED.tag)], &store.catalog);
            source.head.push_back(Tick { seq: 1, t: 1_000, values: vec![5e9, shared] });
            Say { store: &store, source: &source, tile, t: 1_000 }.corner()
        };
        assert_eq!(corner(1.0), "shared with the host");
        assert_eq!(corner(f64::NAN), "", "one GPU with memory of its own");
    }
}
