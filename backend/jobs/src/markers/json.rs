//! Kernels, cells and markers in the form of API answers.

use super::cells::Cell;
use super::{Markers, had_begun, words};
use shared::answer::markers::{BusyCell, CellMemory, CellRow, KernelPhase, KernelRow, Marker};
use shared::json::{Number, Seconds};
use shared::wire::Source;
use stream::live::Live;

/// A run of a cell.
pub fn cell(cell: &Cell, source: &str) -> CellRow {
    let memory = CellMemory {
        before: cell.before,
        peak: cell.peak,
        after: cell.after,
        limit: cell.limit,
        at_least: cell.at_least && cell.peak.is_some(),
    };
    CellRow {
        source: source.into(),
        kernel: cell.kernel.clone(),
        cell: cell.cell.clone(),
        n: cell.n,
        from: Seconds(cell.from),
        to: cell.to.map(Seconds),
        seconds: Number(cell.seconds),
        ok: cell.ok,
        error: cell.error.clone(),
        label: cell.label.clone(),
        cpu_seconds: cell.cpu_seconds.map(Number),
        cores: cell.cores.map(Number),
        cores_of: cell.cores_of.map(Number),
        memory: (memory != CellMemory::default()).then_some(memory),
        gpus: cell.gpus.clone(),
        line: words::line(cell),
        finding: words::finding(cell),
    }
}

/// A marker of a machine, by its number and time.
pub fn marker(source: &str, n: u64, t: i64, marker: Marker) -> Marker {
    let id = marker.id.clone().or_else(|| Some(n.to_string()));
    Marker { t: Some(Seconds(t)), source: Some(source.into()), id, ..marker }
}

/// The kernels of a machine, and the number of running kernels that are not watched.
pub fn kernels(live: &Live, markers: &Markers, source: &Source) -> (Vec<KernelRow>, u64) {
    let (kernels, left_out) = live.source(source.id).kernels.all();
    let one = |kernel: &inventory::Kernel| {
        let busy = kernel.end.is_none().then(|| markers.open(live, source.id, &kernel.id)).flatten();
        let busy = busy.filter(|marker| had_begun(kernel, marker.begun));
        KernelRow {
            source: source.name.clone(),
            id: kernel.id.clone(),
            pid: kernel.pid,
            path: kernel.path.clone(),
            started: kernel.started.map(Seconds),
            state: if kernel.end.is_none() { KernelPhase::Running } else { KernelPhase::Ended },
            ended: kernel.end.as_ref().map(|end| Seconds(end.at)),
            how: words::how(kernel),
            warning: words::warning(kernel),
            processes: kernel.processes as u64,
            memory: kernel.memory,
            used: kernel.used,
            limit: kernel.limit,
            cores: kernel.cores.map(Number),
            busy: busy.map(|marker| BusyCell { cell: marker.cell, n: marker.n, from: Seconds(marker.begun) }),
        }
    };
    (kernels.iter().map(one).collect(), left_out)
}
