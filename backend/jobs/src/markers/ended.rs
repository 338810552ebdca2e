//! Ended kernels as records of their machine: they outlive this process.

use super::{had_begun, recalled};
use inventory::{Kernel, KernelEnd, KernelEndListener};
use serde::{Deserialize, Serialize};
use shared::answer::markers::Marker;
use shared::record::Record;
use shared::wire::SourceId;
use std::sync::Arc;
use stream::live::Live;

/// Kind of the record of a kernel's end; its time is that of the end.
pub const KERNEL_RECORD: &str = "kernel";

/// The stored part of an ended kernel; times are milliseconds since the Unix epoch, sizes bytes.
#[derive(Debug, Deserialize, Serialize)]
struct Ended {
    id: String,
    pid: u32,
    path: Option<String>,
    started: Option<i64>,
    processes: usize,
    memory: Option<u64>,
    used: Option<u64>,
    limit: Option<u64>,
    limited: bool,
    cores: Option<f64>,
    killed_for_memory: bool,
    cell: Option<String>,
}

/// Lists the stored kernels of a machine. It may read the disk.
pub fn recall(live: &Live, source: SourceId) {
    live.source(source).kernels.put_former(former(live, source));
}

/// Stores each kernel of a machine when it ends, with the cell that it ran.
pub fn keeper(live: &Arc<Live>, source: SourceId) -> KernelEndListener {
    let live = live.clone();
    KernelEndListener::new(move |kernel| {
        let busy = recalled(&live, source, &kernel.id).open.filter(|marker| had_begun(kernel, marker.begun));
        let Some(end) = &mut kernel.end else { return };
        end.cell = busy.as_ref().map(Marker::cell_name);
        let (at, body) = (end.at, serde_json::to_vec(&Ended::from_kernel(kernel)));
        let kept = body.map_err(|why| why.to_string()).and_then(|body| {
            live.append_record(source, at, KERNEL_RECORD, body).map(drop).map_err(|why| why.to_string())
        });
        if let Err(error) = kept {
            tracing::warn!(%error, "how a kernel ended is told until this program ends: it cannot be kept");
        }
    })
}

/// The stored kernels, in order of their ends.
pub(super) fn former(live: &Live, source: SourceId) -> Vec<Kernel> {
    let now = live.clock.wall();
    let records = live.store().records(source, now.saturating_sub(live.retention), now);
    let mut ended: Vec<Kernel> =
        records.into_iter().flatten().flatten().filter_map(|record| kernel_of(&record)).collect();
    ended.sort_by_key(|kernel| kernel.end.as_ref().map(|end| end.at));
    ended
}

fn kernel_of(record: &Record) -> Option<Kernel> {
    let body = Some(&record.body).filter(|_| record.kind == KERNEL_RECORD)?;
    let Ended { id, pid, path, started, processes, memory, used, limit, limited, cores, killed_for_memory, cell } =
        serde_json::from_slice(body).ok()?;
    let end = Some(KernelEnd { at: record.t, killed_for_memory, cell });
    Some(Kernel { id, pid, path, started, processes, memory, used, limit, limited, cores, warning: None, end })
}

impl Ended {
    fn from_kernel(kernel: &Kernel) -> Ended {
        let Kernel { id, pid, path, started, processes, memory, used, limit, limited, cores, warning: _, end } =
            kernel.clone();
        let KernelEnd { killed_for_memory, cell, .. } = end.unwrap_or_default();
        Ended { id, pid, path, started, processes, memory, used, limit, limited, cores, killed_for_memory, cell }
    }
}
