//! Records of a log file, such that a damaged one costs little. Definitions of sources and series are written twice, a
//! minute apart, and every source has a keyframe a minute.

use crate::log::{Entry, Table, put};
use shared::catalog::Catalog;
use shared::record::Record;
use shared::series::{SeriesDef, SeriesId};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Time between keyframes of a source, milliseconds: the maximum loss by a damaged tick.
pub const KEYFRAME_MS: i64 = 60_000;

/// Maximum number of series in a record.
const MAX_ENTRY_SERIES: usize = 512;
/// Maximum number of rows in a record.
const MAX_ENTRY_ROWS: usize = 64;

/// Makes records for one log file; a new file needs a new journal. The bytes are passed to
/// [`Log::begin`](crate::Log::begin) and [`Log::write`](crate::Log::write) in the order of their creation.
#[derive(Debug, Default)]
pub struct Journal {
    sources: HashMap<u16, JournaledFacts>,
    rows: HashSet<u16>,
}

#[derive(Debug, Default)]
struct JournaledFacts {
    /// By id, whether it is defined in the file.
    series: Vec<bool>,
    /// Ticks from one keyframe to the next.
    every: u32,
    /// Ticks since the last keyframe.
    ticks: u32,
    /// Definitions to be repeated with the next keyframe.
    again: Vec<u8>,
}

impl Journal {
    /// Whether a source is defined in the file.
    pub fn knows(&self, source: u16) -> bool {
        self.sources.contains_key(&source)
    }

    /// Defines a source: before anything else of it, and when its facts changed.
    pub fn source(&mut self, out: &mut Vec<u8>, source: u16, name: &str, interval: i64, facts: &[(String, String)]) {
        let said = self.sources.entry(source).or_default();
        said.every = (KEYFRAME_MS / interval.max(1)).clamp(1, KEYFRAME_MS) as u32;
        said.append(out, &Entry::Source { source, name: name.into(), interval, facts: facts.to_vec() });
    }

    /// Defines those of these series that are not defined in the file, with their rows and charts; before the first
    /// frame with them.
    pub fn series<'a>(
        &mut self,
        out: &mut Vec<u8>,
        source: u16,
        catalog: &Catalog,
        series: impl IntoIterator<Item = (SeriesId, &'a SeriesDef)>,
    ) {
        let said = self.sources.entry(source).or_default();
        let series = series.into_iter().filter(|(id, _)| said.is_new(*id));
        let series: Vec<(SeriesId, u16, Cow<'_, str>)> =
            series.map(|(id, def)| (id, def.metric, def.instance.as_str().into())).collect();
        let mut rows: Vec<u16> = series.iter().map(|(_, row, _)| *row).filter(|row| self.rows.insert(*row)).collect();
        rows.sort_unstable();
        for rows in rows.chunks(MAX_ENTRY_ROWS) {
            let rows: Vec<_> =
                rows.iter().filter_map(|&row| Some((row, catalog.metrics.get(usize::from(row))?.clone()))).collect();
            let ids: HashSet<&str> = rows.iter().map(|(_, metric)| metric.chart.as_str()).collect();
            let charts = catalog.layout.charts.iter().filter(|c| ids.contains(c.id.as_str())).cloned().collect();
            said.append(out, &Entry::Rows(Table { rows, charts }));
        }
        for series in series.chunks(MAX_ENTRY_SERIES) {
            said.append(out, &Entry::Series { source, series: series.to_vec() });
        }
    }

    /// The state that the next ticks continue from: in an opening, and where ticks were left out.
    pub fn keyframe(&mut self, out: &mut Vec<u8>, source: u16, frame: &[u8]) {
        put(out, &Entry::Keyframe { source, frame });
        self.sources.entry(source).or_default().ticks = 0;
    }

    /// A tick. `keyframe` returns the state after it, and is called once a minute.
    pub fn tick(&mut self, out: &mut Vec<u8>, source: u16, frame: &[u8], keyframe: impl FnOnce() -> Vec<u8>) {
        put(out, &Entry::Tick { source, frame });
        let said = self.sources.entry(source).or_default();
        said.ticks += 1;
        if said.ticks >= said.every {
            said.ticks = 0;
            out.extend(std::mem::take(&mut said.again));
            put(out, &Entry::Keyframe { source, frame: &keyframe() });
        }
    }

    /// A record of a source, after the ticks before it.
    pub fn record(&mut self, out: &mut Vec<u8>, source: u16, record: &Record) {
        put(out, &Entry::Record { source, record: record.clone() });
    }
}

impl JournaledFacts {
    /// Marks a series as defined in the file; returns whether it was not before.
    fn is_new(&mut self, id: SeriesId) -> bool {
        let at = id as usize;
        self.series.resize(self.series.len().max(at + 1), false);
        !std::mem::replace(&mut self.series[at], true)
    }

    fn append(&mut self, out: &mut Vec<u8>, record: &Entry<'_>) {
        let at = out.len();
        put(out, record);
        self.again.extend(&out[at..]);
    }
}
