//! Constant facts of the host.

use crate::Roots;
use sysinfo::System;

/// The machine's host name; none if it has none.
pub fn host_name() -> Option<String> {
    System::host_name().ok().filter(|name| !name.is_empty())
}

/// Facts of the host as key and value: os, kernel, architecture, cpu, cores (logical), physical cores, memory.
/// Cheap, for one read at the start. Facts that cannot be read are left out.
pub fn facts(roots: &Roots) -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().ok().map(|n| n.to_string());
    let facts = [
        // The most distinctive facts come first, because a bar has room only for those.
        ("cores", logical_cores(roots).map(|n| n.to_string()).or(cores)),
        ("memory", memory(roots)),
        ("cpu", cpu_model(roots)),
        ("os", System::long_os_version().ok()),
        ("kernel", System::kernel_version().ok()),
        ("architecture", Some(System::cpu_arch())),
        ("physical cores", System::physical_core_count().ok().map(|n| n.to_string())),
    ];
    facts.into_iter().filter_map(|(word, value)| Some((word.to_string(), value.filter(|v| !v.is_empty())?))).collect()
}

fn memory(roots: &Roots) -> Option<String> {
    let bytes = memory_bytes(roots)?;
    let (number, symbol) = shared::unit::quantity(bytes as f64, shared::unit::Unit::Bytes);
    Some(format!("{number} {symbol}"))
}

/// Memory of the machine, bytes, without that of GPUs.
#[cfg(target_os = "linux")]
pub(crate) fn memory_bytes(roots: &Roots) -> Option<u64> {
    use super::linux::gpu_nodes;
    use crate::read::procfs::{fields, lines, number};
    let text = std::fs::read(roots.proc.join("meminfo")).ok()?;
    let line = lines(&text).find_map(|line| line.strip_prefix(b"MemTotal:"))?;
    let all = fields(line).next().and_then(number)?.checked_mul(1 << 10)?;
    all.checked_sub(gpu_nodes::total(roots, &gpu_nodes::find(roots))?)
}

/// Number of online logical cores.
#[cfg(target_os = "linux")]
pub(crate) fn logical_cores(roots: &Roots) -> Option<usize> {
    use crate::read::procfs::lines;
    let text = std::fs::read(roots.proc.join("stat")).ok()?;
    let is_core =
        |line: &&[u8]| line.strip_prefix(b"cpu").and_then(|rest| rest.first()).is_some_and(u8::is_ascii_digit);
    Some(lines(&text).filter(is_core).count()).filter(|n| *n > 0)
}

/// Model name of the first core. Only the beginning of /proc/cpuinfo is read, because the kernel queries the clock of
/// each core while the file is read.
#[cfg(target_os = "linux")]
fn cpu_model(roots: &Roots) -> Option<String> {
    use std::io::Read;
    let mut text = Vec::new();
    std::fs::File::open(roots.proc.join("cpuinfo")).ok()?.take(2 << 10).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let named = |line: &&str| line.starts_with("model name") || line.starts_with("Model");
    text.lines().find(named).and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_string())
}

/// Size of a memory page, bytes.
#[cfg(target_os = "linux")]
pub(crate) fn page_size() -> u64 {
    // SAFETY: the call takes a number and returns one.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4 << 10)
}

/// Ticks per second in which /proc counts CPU time.
#[cfg(target_os = "linux")]
pub(crate) fn ticks_per_second() -> f64 {
    // SAFETY: the call takes a number and returns one.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

/// Seconds since the kernel started, in which /proc counts the starts of processes.
///
/// In a container of LXC the file `uptime` has the age of the container (lxcfs), and the starts remain the kernel's. So
/// where `proc` is this kernel's, its clock is asked: only there `self` is a link.
#[cfg(target_os = "linux")]
pub(crate) fn since_boot(proc: &std::path::Path) -> Option<f64> {
    if std::fs::symlink_metadata(proc.join("self")).is_ok_and(|about| about.is_symlink()) {
        return system::boot::since_boot().map(|since| since.as_secs_f64());
    }
    let text = std::fs::read_to_string(proc.join("uptime")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

/// Memory of the machine, bytes.
#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_bytes(_: &Roots) -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    Some(system.total_memory()).filter(|bytes| *bytes > 0)
}

/// Number of online logical cores.
#[cfg(not(target_os = "linux"))]
pub(crate) fn logical_cores(_: &Roots) -> Option<usize> {
    std::thread::available_parallelism().ok().map(|n| n.get())
}

#[cfg(not(target_os = "linux"))]
fn cpu_model(_: &Roots) -> Option<String> {
    let mut system = System::new().ok()?;
    system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
    system.cpus().first().map(|cpu| cpu.brand().trim().to_string())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn starts_are_counted_from_the_kernels_start_and_not_from_a_containers() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(since_boot(dir.path()), None);
        std::fs::write(dir.path().join("uptime"), "0.25 1.00\n").expect("a file");
        assert_eq!(since_boot(dir.path()), Some(0.25), "files of a machine");
        // Below LXC the kernel's files are beside one of lxcfs, by which the container has just started.
        std::os::unix::fs::symlink("812", dir.path().join("self")).expect("a link");
        let ours = since_boot(dir.path()).expect("a clock");
        let kernels = since_boot(Path::new("/proc")).expect("a clock");
        assert!(ours > 0.25 && (kernels - ours).abs() < 60.0, "{ours} {kernels}");
    }
}
