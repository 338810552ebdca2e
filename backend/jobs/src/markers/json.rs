//! Kernels, cells and markers as JSON.

use super::cells::{Cell, CellGpu};
use super::marker::Marker;
use super::{Markers, had_begun, words};
use serde_json::{Map, Value, json};
use shared::wire::Source;
use stream::live::Live;

/// Milliseconds as Unix seconds.
fn seconds(ms: i64) -> Value {
    if ms % 1_000 == 0 { Value::from(ms / 1_000) } else { Value::from(ms as f64 / 1_000.0) }
}

/// An object without what is not known.
fn compact(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null() && *value != Value::Object(Map::new()));
    }
    value
}

/// A run of a cell; what is not known is left out.
pub fn cell(cell: &Cell, source: &str) -> Value {
    let seconds = |ms: i64| ms as f64 / 1_000.0;
    let gpu = |gpu: &CellGpu| {
        compact(json!({
            "gpu": gpu.gpu, "before": gpu.before, "peak": gpu.peak, "after": gpu.after, "total": gpu.total,
            "mean": gpu.mean, "idle": gpu.idle, "kernel": gpu.kernel,
        }))
    };
    let memory = compact(json!({
        "before": cell.before, "peak": cell.peak, "after": cell.after, "limit": cell.limit,
        "at_least": Some(true).filter(|_| cell.at_least && cell.peak.is_some()),
    }));
    compact(json!({
        "source": source, "kernel": cell.kernel, "cell": cell.cell, "n": cell.n, "from": seconds(cell.from),
        "to": cell.to.map(seconds), "seconds": cell.seconds, "ok": cell.ok, "error": cell.error, "label": cell.label,
        "cpu_seconds": cell.cpu_seconds, "cores": cell.cores, "cores_of": cell.cores_of, "memory": memory,
        "gpus": cell.gpus.iter().map(gpu).collect::<Vec<_>>(), "line": words::line(cell), "finding": words::finding(cell),
    }))
}

/// A marker of a machine, by its number and time.
pub fn marker(source: &str, n: u64, t: i64, marker: &Marker) -> Value {
    let mut value = serde_json::to_value(marker).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("t".into(), seconds(t));
        fields.insert("source".into(), source.into());
        fields.entry("id").or_insert_with(|| n.to_string().into());
    }
    value
}

/// The kernels of a machine, and how many run that are not watched.
pub fn kernels(live: &Live, markers: &Markers, source: &Source) -> (Vec<Value>, u64) {
    let (kernels, left_out) = live.source(source.id).kernels.all();
    let one = |kernel: &inventory::Kernel| {
        let busy = kernel.end.is_none().then(|| markers.open(live, source.id, &kernel.id)).flatten();
        let busy = busy.filter(|marker| had_begun(kernel, marker.begun));
        compact(json!({
            "source": source.name, "id": kernel.id, "pid": kernel.pid, "path": kernel.path,
            "started": kernel.started.map(seconds), "state": if kernel.end.is_none() { "running" } else { "ended" },
            "ended": kernel.end.as_ref().map(|end| seconds(end.at)), "how": words::how(kernel),
            "warning": words::warning(kernel), "processes": kernel.processes, "memory": kernel.memory,
            "used": kernel.used, "limit": kernel.limit, "cores": kernel.cores,
            "busy": busy.map(|marker| {
                compact(json!({ "cell": marker.cell, "n": marker.n, "from": seconds(marker.begun) }))
            }),
        }))
    };
    (kernels.iter().map(one).collect(), left_out)
}
