//! Our own health on `GET /metrics`: what came in, what was stored, what was left out and why, and who reads.

use crate::export::text::number;
use crate::http::App;
use crate::live::Live;
use crate::store::{Counts, Figures};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name without `watchglass_self_` and `_total`, whether it counts, help, value.
type Row = (&'static str, bool, &'static str, f64);

const fn counts(name: &'static str, help: &'static str, value: u64) -> Row {
    (name, true, help, value as f64)
}

const fn stands(name: &'static str, help: &'static str, value: u64) -> Row {
    (name, false, help, value as f64)
}

/// Writes all rows, each a family of its own.
pub(in crate::http) fn health(app: &App, text: &mut String, open: bool) {
    let kept = app.live.store().counts();
    let mut rows = store(&kept).to_vec();
    rows.extend(kept.history.iter().flat_map(folder));
    rows.extend(live(&app.live));
    rows.push(counts("stderr_lines_dropped", "Lines of our log that could not be written.", crate::stderr::dropped()));
    for (name, kind, help, value) in app.remote.iter().flat_map(|remote| remote.figures()) {
        rows.push((name, kind == "counter", help, value as f64));
    }
    for (name, counts, help, value) in rows {
        let total = if counts { "_total" } else { "" };
        // In OpenMetrics a counter's samples alone end in `_total`.
        let family = if open { "" } else { total };
        let _ = writeln!(text, "# HELP watchglass_self_{name}{family} {help}");
        let _ = writeln!(text, "# TYPE watchglass_self_{name}{family} {}", if counts { "counter" } else { "gauge" });
        let _ = write!(text, "watchglass_self_{name}{total} ");
        number(text, value);
        text.push('\n');
    }
}

fn store(kept: &Counts) -> [Row; 12] {
    [
        counts("ticks", "Ticks appended to the store.", kept.ticks),
        counts("samples", "Samples appended to the store.", kept.samples),
        stands("stored_bytes", "Bytes of sealed columns in memory.", kept.chunk_bytes as u64),
        stands("stored_samples", "Samples in sealed columns, on disk or in memory.", kept.chunk_samples),
        counts("chunks_dropped", "Columns dropped before their time because memory was full.", kept.chunks_dropped),
        counts("corrupt_blocks", "Damaged columns and blocks that were left out of answers.", kept.damaged),
        counts(
            "refused_again",
            "Samples refused because the clock was set back to an instant that has its values.",
            kept.refused_again,
        ),
        counts("records", "Records (markers, runs, findings) appended to the store.", kept.records),
        counts("records_dropped", "Records that memory had no room for before they were sealed.", kept.records_dropped),
        counts("refused_series", "Times a series found no room; it is tried again every minute.", kept.series_refused),
        stands("series", "Series with a value in the last 15 minutes.", kept.series_alive),
        stands(
            "stored_series",
            "Series that are kept, those of which only history is left included.",
            kept.series_stored,
        ),
    ]
}

fn folder(figures: &Figures) -> [Row; 11] {
    [
        stands("segments", "Files of sealed history on disk.", figures.segments),
        stands("segment_bytes", "Bytes of sealed history on disk.", figures.segment_bytes),
        stands("log_bytes", "Bytes of the write-ahead log.", figures.log_bytes),
        (
            "log_unsynced_seconds",
            false,
            "Age of the oldest tick that a power cut would lose.",
            figures.unsynced_ms as f64 / 1000.0,
        ),
        counts("log_unwritten", "Writes that the log could not take.", figures.unlogged),
        stands("log_skipped_bytes", "Bytes of the log that could not be read at the start.", figures.skipped_bytes),
        stands("log_cut_files", "Log files that ended in the middle of a record at the start.", figures.cut_logs),
        stands("history_missing_ticks", "Ticks that were stored once and missing at the start.", figures.missing_ticks),
        stands("history_failing", "1 while history is not written to disk.", figures.failing),
        stands("history_damaged", "Damaged places met at the start and in merging.", figures.damaged),
        stands("unclean_start", "1 when the run before was not ended in order.", figures.unclean),
    ]
}

fn live(live: &Live) -> [Row; 4] {
    let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let live = &live.counts;
    [
        stands("viewers", "Pages and scripts connected now.", now(&live.viewers)),
        counts("live_bytes", "Bytes sent to pages and scripts.", now(&live.bytes)),
        counts("live_resyncs", "Times everything was sent anew.", now(&live.resyncs)),
        counts("live_held_back", "Times ticks were held back for a slow page.", now(&live.held_back)),
    ]
}
