//! Measures the bytes of a tick on the wire, and of a sample in memory.

use crate::record::{COLUMN, Recording};
use crate::table::Table;
use shared::column;
use shared::tick::TickState;

/// Measures both figures on both recordings.
pub fn measure(table: &mut Table, procfs: &Recording, own: &Recording) {
    let on = |r: &Recording| format!("{} series, {} ticks recorded here", r.steps.len(), r.ticks.len());
    let goals = [
        ("a tick of 500 procfs series", procfs, 300.0, "300 B", "JSON 12,100 B"),
        ("a tick of our own series", own, f64::INFINITY, "", ""),
    ];
    for (what, recording, most, goal, peer) in goals {
        table.at_most(what, tick_bytes(recording), "B", most, goal, peer, &on(recording));
    }
    let goals = [
        ("a stored sample, procfs", procfs, 0.40, "0.40 B", "VictoriaMetrics 0.36, Prometheus 1.59"),
        ("a stored sample, our own series", own, 0.80, "0.80 B", ""),
    ];
    for (what, recording, most, goal, peer) in goals {
        match stored(recording) {
            Some(bytes) => table.at_most(what, bytes, "B", most, goal, peer, &on(recording)),
            None => table.missing(what, goal, &format!("needs {COLUMN} ticks: cargo xtask bench -- --record {COLUMN}")),
        }
    }
}

/// Mean size of a frame in bytes, without the first frame, which holds every value.
fn tick_bytes(recording: &Recording) -> f64 {
    let mut state = TickState::default();
    state.extend(recording.steps.iter().copied());
    let sizes: Vec<usize> = recording
        .ticks
        .iter()
        .enumerate()
        .map(|(i, values)| state.encode(1_700_000_000_000 + i as i64 * 1_000, false, values).len())
        .collect();
    sizes[1..].iter().sum::<usize>() as f64 / (sizes.len() - 1) as f64
}

/// Bytes for each sample of sealed columns, with the times and the index.
fn stored(recording: &Recording) -> Option<f64> {
    let (mut bytes, mut samples) = (0, 0);
    for ticks in recording.ticks.chunks_exact(COLUMN) {
        bytes += column::encode_times(&(0..ticks.len() as i64).map(|i| i * 1_000).collect::<Vec<_>>()).len();
        for series in 0..recording.steps.len() {
            let values: Vec<f64> = ticks.iter().map(|tick| tick.get(series).copied().unwrap_or(f64::NAN)).collect();
            samples += values.iter().filter(|v| v.is_finite()).count();
            bytes += column::encode(&values, recording.steps[series]).len() + size_of::<(u32, Box<[u8]>)>();
        }
    }
    (samples > 0).then(|| bytes as f64 / samples as f64)
}
