//! Maps an agent's rows and series to the hub's.
//!
//! Nothing of an agent is passed on as it came. Once a sample arrives, its series gets an ID of the hub, and its row
//! one of the hub's table. So a series of which the agent sends only its name costs the hub nothing. A series that the
//! hub has dropped automatically gets another ID.

use super::limits::{Cause, IngestLimits, MAX_LINK_BYTES, MAX_TABLE_ROWS, Refusals, SourcePace};
use shared::agent::{self, MAX_INSTANCE_BYTES, MAX_SERIES_IDS, MAX_TEXT_BYTES};
use shared::catalog::{Chart, Metric, Range, VOCABULARY};
use shared::series::{SeriesDef, SeriesId, Steps};
use shared::tick::TickState;
use shared::wire::SourceId;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use stream::store::Store;

/// ID of an agent's series without an ID here yet.
const UNMAPPED: SeriesId = SeriesId::MAX;
/// ID of a refused series.
const REFUSED: SeriesId = SeriesId::MAX - 1;

/// Size of an ID's slot, bytes: here, and its value and steps in the state of the stream.
const PLACE_BYTES: usize = size_of::<AgentSeries>() + size_of::<f64>() + size_of::<Steps>();

/// A row of the agent.
struct AgentRow {
    /// Its position in the hub's table, and the version of the row there; None if it was refused.
    here: Option<(u16, u64)>,
    steps: Steps,
}

/// A series of the agent.
#[derive(Clone, Default)]
struct AgentSeries {
    /// Position of its row in the agent's table, and its instance; None for an unused ID.
    def: Option<(u16, Box<str>)>,
    here: SeriesId,
    /// Generation of the ID here; see [`Store::generations`].
    generation: u32,
}

/// Error in an agent's names, which ends its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// A series names an unknown row, or a row has invalid steps.
    Nonsense,
    /// The names, or the highest ID, exceed the limit of one link.
    TooMuch,
}

/// Tags of the collectors' own rows, which every source has.
pub struct Vocabulary(HashSet<&'static str>);

impl Vocabulary {
    /// The tags of this version.
    pub fn new() -> Self {
        Vocabulary(VOCABULARY.iter().flat_map(|rows| rows.iter()).map(|row| row.tag).collect())
    }
}

/// Mapping of one link's rows and series to those of the hub.
pub struct Map {
    source: SourceId,
    limits: IngestLimits,
    rows: BTreeMap<u16, AgentRow>,
    series: Vec<AgentSeries>,
    /// Number of series that have an ID here.
    mapped: usize,
    /// Size of the names, and of the slots of IDs here and in the state of the stream, bytes.
    bytes: usize,
}

impl Map {
    /// For a new link of this source.
    pub fn new(source: SourceId, limits: IngestLimits) -> Self {
        Map { source, limits, rows: BTreeMap::new(), series: Vec::new(), mapped: 0, bytes: 0 }
    }

    fn hold(&mut self, bytes: usize) -> Result<(), MapError> {
        self.bytes += bytes;
        if self.bytes > MAX_LINK_BYTES { Err(MapError::TooMuch) } else { Ok(()) }
    }

    /// Adds rows; missing ones are added to the table. `brought` has the source's own rows, with their versions. A
    /// source may have at most as many of these as there are free rows. So even sources that take their maximum leave
    /// the next one as many as each of them has.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn rows(
        &mut self,
        store: &mut Store,
        vocabulary: &Vocabulary,
        (rows, charts): (Vec<(u16, Metric)>, Vec<Chart>),
        brought: &mut BTreeMap<u16, u64>,
        refusals: &Refusals,
    ) -> Result<(), MapError> {
        for (position, mut metric) in rows {
            self.hold(size_of::<AgentRow>() + metric.tag.len())?;
            if !metric.steps.is_finite() || metric.steps < 0.0 || metric.steps.is_subnormal() {
                return Err(MapError::Nonsense);
            }
            // Aliases would take tags away from other sources.
            metric.aliases = Vec::new();
            if matches!(metric.range, Range::Fixed(from, to) if !(from.is_finite() && to.is_finite() && from < to)) {
                metric.range = Range::FromZero;
            }
            let (own, steps) = (!vocabulary.0.contains(&metric.tag[..]), metric.steps);
            let chart = chart_of(&metric, &charts);
            let is_new = own && store.known_row(self.source, &metric, &chart).is_none();
            let most = store.free_rows(MAX_TABLE_ROWS).min(self.limits.rows as usize);
            if is_new && brought.len() >= most {
                // Some rows may have been reused for others.
                brought.retain(|position, version| store.row_version(*position) == *version);
            }
            let here = match is_new && brought.len() >= most {
                true => Err(Cause::Rows),
                false => row(store, self.source, metric, chart),
            };
            let here = here.map(|position| (position, store.row_version(position)));
            match here {
                Ok((position, version)) if own => drop(brought.insert(position, version)),
                Ok(_) => {}
                Err(cause) => refusals.add(cause, 1),
            }
            self.rows.insert(position, AgentRow { here: here.ok(), steps });
        }
        Ok(())
    }

    /// Adds series, also to `state`. They get an ID here once they have a sample.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn series(
        &mut self,
        defs: Vec<(SeriesId, SeriesDef)>,
        state: &mut TickState,
        refusals: &Refusals,
    ) -> Result<(), MapError> {
        for (id, SeriesDef { metric, instance }) in defs {
            let at = id as usize;
            let steps = self.rows.get(&metric).ok_or(MapError::Nonsense)?.steps;
            if id >= MAX_SERIES_IDS {
                return Err(MapError::TooMuch);
            }
            self.hold(instance.len())?;
            if at >= self.series.len() {
                self.hold((at + 1 - self.series.len()) * PLACE_BYTES)?;
                self.series.resize(at + 1, AgentSeries { here: UNMAPPED, ..AgentSeries::default() });
                state.extend(std::iter::repeat_n(0.0, at + 1 - state.steps().len()));
            }
            state.redefine(id, steps);
            let sound = instance.len() <= MAX_INSTANCE_BYTES && agent::is_text(&instance);
            refusals.add(Cause::Text, u64::from(!sound));
            let old = &mut self.series[at];
            self.mapped -= usize::from(old.here < REFUSED);
            self.bytes -= old.def.take().map_or(0, |(_, instance)| instance.len());
            let here = if sound { UNMAPPED } else { REFUSED };
            *old = AgentSeries { def: Some((metric, instance.into_boxed_str())), here, generation: 0 };
        }
        Ok(())
    }

    /// Whether the agent has named the series of this ID.
    pub fn is_named(&self, id: SeriesId) -> bool {
        self.series.get(id as usize).is_some_and(|known| known.def.is_some())
    }

    /// The ID here of an agent's series; None if it was refused, which is counted.
    fn id(
        &mut self,
        store: &mut Store,
        id: SeriesId,
        pace: &mut SourcePace,
        now: Duration,
        refusals: &Refusals,
    ) -> Option<SeriesId> {
        if !self.is_named(id) {
            refusals.add(Cause::Unnamed, 1);
            return None;
        }
        let known = self.series.get_mut(id as usize)?;
        if known.here < REFUSED {
            if store.generations(self.source).get(known.here as usize) == Some(&known.generation) {
                return Some(known.here);
            }
            known.here = UNMAPPED;
            self.mapped -= 1;
        }
        let (row, instance) = known.def.as_ref()?;
        let row = self.rows.get(row)?;
        let here = row.here.filter(|_| known.here == UNMAPPED);
        // A row without series for a long time may have been reused.
        let Some((metric, _)) = here.filter(|(here, version)| store.row_version(*here) == *version) else {
            known.here = REFUSED;
            return None;
        };
        if self.mapped >= self.limits.series as usize {
            refusals.add(Cause::Series, 1);
            return None;
        }
        let def = SeriesDef { metric, instance: instance.to_string() };
        if store.id(self.source, &def).is_none() && !pace.series(now) {
            refusals.add(Cause::SeriesRate, 1);
            return None;
        }
        let Some(here) = store.intern_among(self.source, def, self.limits.series as usize) else {
            refusals.add(Cause::Series, 1);
            return None;
        };
        (known.here, known.generation) = (here, store.generations(self.source)[here as usize]);
        self.mapped += 1;
        Some(here)
    }

    /// Converts values of the agent's series to those of the hub's, by ID here.
    pub fn values(
        &mut self,
        store: &mut Store,
        values: &[f64],
        pace: &mut SourcePace,
        now: Duration,
        refusals: &Refusals,
    ) -> Vec<f64> {
        let mut out = vec![f64::NAN; store.series(self.source, 0).len()];
        for (id, value) in (0..).zip(values).filter(|(_, value)| value.is_finite()) {
            let Some(here) = self.id(store, id, pace, now, refusals) else { continue };
            if out.len() <= here as usize {
                out.resize(here as usize + 1, f64::NAN);
            }
            out[here as usize] = *value;
        }
        out
    }

    /// The IDs here of a fill's columns, sorted; refused and unnamed ones are dropped.
    pub fn columns<T>(
        &mut self,
        store: &mut Store,
        columns: Vec<(SeriesId, T)>,
        pace: &mut SourcePace,
        now: Duration,
        refusals: &Refusals,
    ) -> Vec<(SeriesId, T)> {
        let mapped = columns.into_iter();
        let mapped = mapped.filter_map(|(id, column)| Some((self.id(store, id, pace, now, refusals)?, column)));
        // Two IDs of an agent may mean the same series, by its text: the first one is used.
        mapped.collect::<Vec<_>>().into_iter().rev().collect::<BTreeMap<_, _>>().into_iter().collect()
    }
}

/// The chart of a row, from the charts of the same message.
fn chart_of(metric: &Metric, charts: &[Chart]) -> Chart {
    let chart = charts.iter().find(|chart| chart.id == metric.chart).cloned();
    chart.unwrap_or_else(|| Chart { id: metric.chart.clone(), title: metric.title.clone(), section: String::new() })
}

/// The position of a source's row in the table; a new row is added.
fn row(store: &mut Store, source: SourceId, metric: Metric, chart: Chart) -> Result<u16, Cause> {
    if let Some(position) = store.known_row(source, &metric, &chart) {
        let known = &store.catalog().metrics[usize::from(position)];
        return if known.is_row_of(&metric) { Ok(position) } else { Err(Cause::RowConflict) };
    }
    let texts = [&metric.tag, &metric.title, &metric.label, &metric.help, &metric.chart];
    let texts = texts.into_iter().chain([&chart.id, &chart.title, &chart.section]);
    let sound = |text: &String| text.len() <= MAX_TEXT_BYTES && agent::is_text(text);
    if metric.tag.is_empty() || !texts.into_iter().all(sound) {
        return Err(Cause::Text);
    }
    if store.free_rows(MAX_TABLE_ROWS) == 0 {
        return Err(Cause::Rows);
    }
    store.add_row_of(Some(source), metric, chart).ok_or(Cause::Rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{Catalog, cpu};
    use std::sync::Arc;
    use stream::store::Limits;

    fn called(tag: &str) -> Metric {
        Metric { tag: tag.into(), title: "Temperature".into(), chart: tag.into(), ..Metric::from(cpu::ROWS[0]) }
    }

    #[test]
    fn a_table_that_is_full_takes_no_new_row_and_knows_its_own() {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: i64::MAX, bytes: usize::MAX });
        let source = store.add_source("a".into(), 1_000, Vec::new());
        let long = Metric { title: "x".repeat(MAX_TEXT_BYTES + 1), ..called("room.long") };
        let mut row = |metric: Metric| super::row(&mut store, source, metric.clone(), chart_of(&metric, &[]));
        assert_eq!(row(long), Err(Cause::Text));
        let longest = Metric { title: "x".repeat(MAX_TEXT_BYTES), ..called("room.longest") };
        assert!(row(longest).is_ok());
        for n in 0..MAX_TABLE_ROWS - cpu::ROWS.len() - 1 {
            row(called(&format!("room.{n}"))).expect("there is room");
        }
        assert_eq!(row(called("room.more")), Err(Cause::Rows));
        assert!(row(called("room.7")).is_ok(), "it is known");
    }
}
