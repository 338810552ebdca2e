//! Data found in a data folder: segments, and the machines with the data that is in logs alone.

use crate::segments::Segment;
use shared::catalog::{Chart, Metric};
use shared::record::Record;
use shared::series::{SeriesDef, SeriesId};
use shared::tick::TickState;
use std::fmt;
use std::sync::Arc;

/// Data found in a folder.
#[derive(Default)]
pub struct Found {
    /// Segments by serial, without those replaced by an hour.
    pub segments: Vec<Arc<Segment>>,
    /// Machines of segments and logs, in order of appearance.
    pub sources: Vec<FoundSource>,
    /// Rows of the table that series of `sources` use, one per tag, kind and unit, as they were written last.
    pub rows: Vec<Metric>,
    /// Charts of these rows.
    pub charts: Vec<Chart>,
    /// Number of the last log file; 0 without any. All their data is in `segments` or in `sources`.
    pub log: u64,
    /// Faults found.
    pub report: Report,
}

/// A machine as it was found.
#[derive(Debug, Default)]
pub struct FoundSource {
    /// Host name, which identifies it.
    pub name: String,
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// Constant facts: key and value.
    pub facts: Vec<(String, String)>,
    /// By id, with positions in [`Found::rows`]; none if no stored data uses the id, which is not reassigned.
    pub series: Vec<Option<SeriesDef>>,
    /// Ticks that are in no segment, ascending by sequence. There are several spans if ticks are missing in between, or
    /// if the log started again with another state.
    pub spans: Vec<TickSpan>,
    /// Sequence and time of the newest tick, in logs or segments; every series is absent.
    pub state: TickState,
    /// Records that are in no segment, ascending by number.
    pub records: Vec<Record>,
    /// Number of the newest record, in logs or segments; 0 without any.
    pub last_record: u64,
    /// Late samples that are in no segment: series, milliseconds since the Unix epoch, value.
    pub late: Vec<(SeriesId, i64, f64)>,
}

impl FoundSource {
    /// Sequence of the newest tick, in logs or segments; the source continues with the next.
    pub fn last_seq(&self) -> u64 {
        self.state.seq()
    }
}

/// Consecutive ticks.
#[derive(Debug)]
pub struct TickSpan {
    /// State before the first, with the steps of all series in the frames.
    pub base: TickState,
    /// Ticks whose frames can be applied in order.
    pub ticks: Vec<LoggedTick>,
    /// By series: whether it has a value in any of them.
    pub present: Vec<bool>,
}

/// A tick of a log, with the data that is known without the ticks before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTick {
    /// Its sequence.
    pub seq: u64,
    /// Sequence of the tick before it; there is none between the two.
    pub before: u64,
    /// Milliseconds since the Unix epoch.
    pub t: i64,
    /// The wall clock was set between the tick before and this one.
    pub clock_step: bool,
    /// Its frame.
    pub frame: Vec<u8>,
}

/// Faults found at the start, and the amount of data read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Damaged parts.
    pub damages: Vec<Damage>,
    /// Bytes of log files in `damages` and `torn`.
    pub skipped_bytes: u64,
    /// Ticks in logs that could not be placed because one before them is damaged.
    pub skipped_ticks: u64,
    /// Ticks that are in no segment and no log, although later ones of their source are known.
    pub missing_ticks: u64,
    /// Ticks that were taken from logs.
    pub ticks: u64,
    /// Log files that end in the middle of a record, with the offset. The rest was never written, so this is no damage.
    pub torn: Vec<(String, u64)>,
    /// The last log was not closed in order: the process was killed, or the machine lost power.
    pub unclean: bool,
}

/// A stretch of a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File in the folder.
    pub file: String,
    /// Its offset.
    pub offset: u64,
    /// The fault, in words.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.what)
    }
}
