//! What was found in a data folder: segments, and the machines with what of them is in logs alone.

use crate::segments::Segment;
use shared::catalog::{Chart, Metric};
use shared::record::Record;
use shared::series::{SeriesDef, SeriesId};
use shared::tick::TickState;
use std::fmt;
use std::sync::Arc;

/// What was in a folder.
#[derive(Default)]
pub struct Found {
    /// Segments by serial, those that an hour stands for apart.
    pub segments: Vec<Arc<Segment>>,
    /// Machines of segments and logs, in the order in which they are met.
    pub sources: Vec<FoundSource>,
    /// Rows of the table that series of `sources` name, one a tag, kind and unit, as they were written last.
    pub rows: Vec<Metric>,
    /// Charts of these rows.
    pub charts: Vec<Chart>,
    /// Number of the last log file; 0 without any. All that these hold is in `segments` or in `sources`.
    pub log: u64,
    /// What was wrong.
    pub report: Report,
}

/// A machine as it was found.
#[derive(Debug, Default)]
pub struct FoundSource {
    /// Host name, which tells it apart.
    pub name: String,
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// What does not change: key and value.
    pub facts: Vec<(String, String)>,
    /// By id, with positions in [`Found::rows`]; none where nothing that is kept speaks of the id, which is not given again.
    pub series: Vec<Option<SeriesDef>>,
    /// Ticks that are in no segment, rising by sequence. More than one span where some are missing in between, or where
    /// the log began anew with another state.
    pub spans: Vec<TickSpan>,
    /// Sequence and time of the newest tick, wherever it is; every series is absent.
    pub state: TickState,
    /// Records that are in no segment, rising by number.
    pub records: Vec<Record>,
    /// Number of the newest record, wherever it is; 0 without any.
    pub last_record: u64,
    /// Samples that came late and are in no segment: series, milliseconds since the Unix epoch, value.
    pub late: Vec<(SeriesId, i64, f64)>,
}

impl FoundSource {
    /// Sequence of the newest tick, wherever it is; the source goes on with the next.
    pub fn last_seq(&self) -> u64 {
        self.state.seq()
    }
}

/// Ticks that follow each other.
#[derive(Debug)]
pub struct TickSpan {
    /// Before the first, with the steps of all series that the frames speak of.
    pub base: TickState,
    /// Ticks whose frames can be applied in order.
    pub ticks: Vec<LoggedTick>,
    /// By series: whether it has a value in any of them.
    pub present: Vec<bool>,
}

/// A tick of a log, and what of it can be known without the ticks before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTick {
    /// Its sequence.
    pub seq: u64,
    /// Sequence of the tick before it; between the two there is none.
    pub before: u64,
    /// Milliseconds since the Unix epoch.
    pub t: i64,
    /// The wall clock was set between the tick before and this one.
    pub clock_step: bool,
    /// Its frame.
    pub frame: Vec<u8>,
}

/// What was wrong at the start, and how much was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What could not be read.
    pub damages: Vec<Damage>,
    /// Bytes of log files in `damages` and `torn`.
    pub skipped_bytes: u64,
    /// Ticks in logs that could not be placed because one before them is damaged.
    pub skipped_ticks: u64,
    /// Ticks that neither a segment nor a log holds, although later ones of their source are known.
    pub missing_ticks: u64,
    /// Ticks that were taken from logs.
    pub ticks: u64,
    /// Log files that end in the middle of a record, and where: the rest was never written, which is no damage.
    pub torn: Vec<(String, u64)>,
    /// The log before was not closed in order: the process was killed, or the machine lost power.
    pub unclean: bool,
}

/// A stretch of a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File in the folder.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// What is wrong, in words.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.what)
    }
}
