//! Sentences about kernels and cells, of known facts only.

use super::cells::Cell;
use inventory::{Kernel, MemoryWarning};
use shared::answer::markers::CellGpu;
use shared::unit::{self, Unit, fixed, time};

/// Share of a limit from which on memory counts as short.
const SHORT_SHARE: f64 = 0.95;
/// Smaller growth of memory is not reported, bytes.
const MIN_KEPT: u64 = 4 << 20;

/// `12.3 GiB`.
fn bytes(value: u64) -> String {
    unit::text(value as f64, Unit::Bytes)
}

/// `12.3 of 15.9 GiB`: both in the unit of the second.
fn share_of(part: u64, whole: u64) -> String {
    unit::part_of(part as f64, whole as f64, Unit::Bytes)
}

/// `41 s`, `6 min 12 s`, `1 h 2 min`.
fn duration(seconds: f64) -> String {
    time::duration((seconds * 1_000.0).round() as i64)
}

/// The last part of a notebook's path; `a kernel` without one.
fn name(kernel: &Kernel) -> String {
    let file = kernel.path.as_deref().and_then(|path| path.rsplit(['/', '\\']).next()).filter(|name| !name.is_empty());
    file.map_or_else(|| "The kernel".into(), |name| format!("The kernel of {name}"))
}

/// Owner of the memory limit: a container, or the machine.
fn whose(kernel: &Kernel) -> &'static str {
    if kernel.limited { "this container" } else { "this machine" }
}

/// A sentence about the end of a kernel, and its cell at that time.
pub fn how(kernel: &Kernel) -> Option<String> {
    let end = kernel.end.as_ref()?;
    let known = kernel.used.zip(kernel.limit).filter(|(_, limit)| *limit > 0);
    let held = kernel.memory.map(|memory| format!(", {} of it in the kernel", bytes(memory))).unwrap_or_default();
    let memory = known.map(|(used, limit)| format!("{} of {} was in use{held}", share_of(used, limit), whose(kernel)));
    let during = end.cell.as_ref().map(|cell| format!(", while cell {cell} ran")).unwrap_or_default();
    let short = known.is_some_and(|(used, limit)| used as f64 >= SHORT_SHARE * limit as f64);
    let name = name(kernel);
    Some(match (end.killed_for_memory, memory) {
        (true, Some(memory)) => format!("{name} was killed for memory: {memory}{during}."),
        (true, None) => format!("{name} was killed for memory{during}."),
        (false, Some(memory)) if short => {
            format!("{name} ended{during}; memory was short ({memory}). The cause cannot be determined.")
        }
        (false, Some(_)) => format!("{name} ended{during}; memory was not short. The cause cannot be determined."),
        (false, None) => format!("{name} ended{during}. The cause cannot be determined."),
    })
}

/// A warning, if there is a reason for one.
pub fn warning(kernel: &Kernel) -> Option<String> {
    let (used, limit) = kernel.used.zip(kernel.limit)?;
    let memory = format!("{} of {} is in use", share_of(used, limit), whose(kernel));
    Some(match kernel.warning? {
        MemoryWarning::Full => format!("Memory is nearly full: {memory}."),
        MemoryWarning::Seconds(0) => format!("Memory is almost full: {memory}."),
        MemoryWarning::Seconds(seconds) => {
            format!("Memory will be full in about {seconds} s at this rate: {memory}.")
        }
    })
}

fn gpu(gpu: &CellGpu) -> String {
    let mut parts = Vec::new();
    parts.extend(gpu.mean.map(|mean| format!("{} % busy", mean.round())));
    parts.extend(gpu.peak.map(|peak| match gpu.total {
        Some(total) => format!("peak {}", share_of(peak, total)),
        None => format!("peak {}", bytes(peak)),
    }));
    format!("GPU {} {}", gpu.gpu, parts.join(", "))
}

/// One line about a run of a cell: `[7] 41 s · GPU 0 83 % busy, peak 12.3 of 15.9 GiB · +2.1 GiB retained · 3.9 of 8 cores`.
pub fn line(cell: &Cell) -> String {
    let mut head = format!("{} {}", cell.name(), duration(cell.seconds));
    if cell.to.is_none() {
        head += " so far";
    }
    if cell.ok == Some(false) {
        head += &format!(", {}", cell.error.as_deref().unwrap_or("failed"));
    }
    let mut parts = vec![head];
    parts.extend(cell.gpus.iter().filter(|gpu| gpu.mean.is_some() || gpu.peak.is_some()).map(gpu));
    if let (Some(before), Some(after), true) = (cell.before, cell.after, cell.to.is_some()) {
        let kept = after.abs_diff(before);
        if kept >= MIN_KEPT {
            let (word, sign) = if after > before { ("retained", "+") } else { ("freed", "") };
            parts.push(format!("{sign}{} {word}", bytes(kept)));
        }
    }
    if let Some(cores) = cell.cores {
        let number = if cores < 9.95 { fixed(cores, 1) } else { fixed(cores, 0) };
        parts.push(match cell.cores_of {
            Some(all) => format!("{number} of {} cores", unit::number(all)),
            None => format!("{number} cores"),
        });
    }
    parts.join(" · ")
}

/// The bottleneck, if it is known: `GPU 0 was idle for 12 of 41 s; one core was fully used`, or `GPU 0 was full: 15.2
/// of 15.9 GiB was in use, 11 GiB of it by this kernel`.
pub fn finding(cell: &Cell) -> Option<String> {
    full_gpu(cell).or_else(|| waited(cell))
}

/// Names of the errors by which frameworks report that a GPU is out of memory.
const OUT_OF_MEMORY: [&str; 3] = ["OutOfMemoryError", "ResourceExhaustedError", "CudaOutOfMemoryError"];

/// The GPU that was full when a cell asked for memory, and the holder of that memory.
fn full_gpu(cell: &Cell) -> Option<String> {
    cell.error.as_deref().filter(|error| OUT_OF_MEMORY.contains(error))?;
    let known = cell.gpus.iter().filter_map(|gpu| Some((gpu, gpu.peak?, gpu.total.filter(|total| *total > 0)?)));
    let share = |(_, peak, total): &(&CellGpu, u64, u64)| *peak as f64 / *total as f64;
    let (gpu, peak, total) = known.max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let own = gpu.kernel.map(|held| format!(", {} of it by this kernel", bytes(held))).unwrap_or_default();
    Some(format!("GPU {} was full: {} was in use{own}", gpu.gpu, share_of(peak, total)))
}

fn waited(cell: &Cell) -> Option<String> {
    let gpu = cell.gpus.iter().filter(|gpu| gpu.mean.is_some_and(|mean| mean >= 5.0));
    let (gpu, idle) = gpu.filter_map(|gpu| Some((gpu, gpu.idle?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    if idle < 5.0 || idle < 0.2 * cell.seconds {
        return None;
    }
    let core = cell.cores.filter(|cores| (0.85..=1.3).contains(cores)).map_or("", |_| "; one core was fully used");
    Some(format!("GPU {} was idle for {} of {}{core}", gpu.gpu, fixed(idle, 0), duration(cell.seconds)))
}
