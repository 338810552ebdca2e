//! Cost of W&B itself: its service and what that starts. It is summed from the process table, so nothing more is read.

use super::MIB;
use crate::host::linux::process::limits::TreeLimits;
use crate::{Out, Roots};
use shared::catalog::process;
use shared::processes::Process;
use std::collections::HashSet;

/// Name of the service, one for each user or login.
const SERVICE: &str = "wandb-core";

/// Puts CPU and memory of all services with their direct children; nothing where none runs.
pub(super) fn put(rows: &[Process], roots: &Roots, out: &mut Out) {
    let services: HashSet<u32> = rows.iter().filter(|row| row.name == SERVICE).map(|row| row.pid).collect();
    let own = || rows.iter().filter(|row| services.contains(&row.pid) || services.contains(&row.parent));
    if services.is_empty() {
        return;
    }
    out.put(&process::WANDB_RSS, (), own().map(|row| row.rss).sum::<u64>() as f64 / MIB);
    // Use needs two tables, and the sum of none is not 0.
    let used: Vec<f64> = own().filter_map(|row| row.cpu.map(f64::from)).collect();
    if !used.is_empty() {
        let mut limits = TreeLimits::default();
        limits.refresh(roots, &services.into_iter().collect::<Vec<_>>());
        out.put_rounded(&process::WANDB_CPU, (), limits.capacity.map(|cores| used.iter().sum::<f64>() / cores));
    }
}
