//! Memory, paging and swap of a Linux host, or of the control group's limit if there is one.

use super::gpu_nodes::{self, GpuNodes, NodeMemory};
use super::process::stat::name_of;
use crate::host::facts;
use crate::host::total::Total;
use crate::read::Sources;
use crate::read::cgroup::{self, MemoryFiles};
use crate::read::procfs::{HotFile, fields, lines, number, trim};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::{MetricDef, memory};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;
const KIB: f64 = (1 << 10) as f64;

/// Interval of searching the limits, and nodes of GPUs: a group's limit can change, a process can move, and a driver can
/// start.
const LIMIT_INTERVAL: Duration = Duration::from_secs(10);

/// Interval of reading /proc/vmstat. The kernel sums each number over all cores, which takes longer than the rest of a
/// reading. Slightly short, so that a tick that is marginally early is not skipped.
const PAGING_INTERVAL: Duration = Duration::from_millis(4_900);

/// Opens the collector.
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let path = roots.proc.join("meminfo");
    let meminfo = HotFile::open(&path).map_err(|error| OpenError::from_io(&path, &error))?;
    let paging = Paging::new(HotFile::new(roots.proc.join("vmstat")), facts::page_size());
    let mut tried = vec![
        path.display().to_string(),
        paging.vmstat.path().display().to_string(),
        roots.process().join("cgroup").display().to_string(),
        cgroup::mount(&roots.sys).display().to_string(),
    ];
    tried.extend(gpu_nodes::find(roots).into_iter().map(|found| {
        format!("NUMA node {}: memory of the GPU at {}, counted there and not here", found.node, found.address)
    }));
    let gpus = GpuNodes::default();
    Ok(Part::only(tried, Memory { meminfo, paging, gpus, roots: roots.clone(), looked: None, group: None }))
}

struct Memory {
    meminfo: HotFile,
    paging: Paging,
    gpus: GpuNodes,
    roots: Roots,
    looked: Option<Duration>,
    group: Option<Group>,
}

/// The group with the effective limit.
struct Group {
    limit: f64,
    files: &'static MemoryFiles,
    current: HotFile,
    stat: HotFile,
}

impl Collector for Memory {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.look_for_a_limit(out.at());
        let mut sources = Sources::default();
        let mut host = match self.meminfo.read() {
            Ok(text) => {
                sources.answered();
                Host::parse(text)
            }
            Err(error) => {
                sources.failed(|| format!("{}: {error}", self.meminfo.path().display()));
                Host::default()
            }
        };
        host.subtract(self.gpus.read().map_err(|reason| sources.failed(|| reason)).ok());
        host.put(out);
        match &mut self.group {
            None => host.put_unlimited(out),
            Some(group) => group.put(out, &host, &mut sources),
        }
        self.paging.put(out, &mut sources);
        sources.outcome()
    }
}

impl Memory {
    fn look_for_a_limit(&mut self, now: Duration) {
        if self.looked.is_some_and(|then| now.saturating_sub(then) < LIMIT_INTERVAL) {
            return;
        }
        self.looked = Some(now);
        self.gpus.refresh(&self.roots);
        let found = std::fs::read(self.roots.process().join("cgroup")).ok().and_then(|text| {
            let (levels, files) = cgroup::memory_levels(&self.roots.sys, &text);
            Some((files.smallest(without_own_unit(&self.roots.proc, &levels))?, files))
        });
        // A limit above the machine's memory has no effect.
        let total = facts::memory_bytes(&self.roots).map_or(f64::INFINITY, |bytes| bytes as f64);
        self.group = found.filter(|((_, limit), _)| *limit < total).map(|((dir, limit), files)| Group {
            limit,
            files,
            current: HotFile::new(dir.join(files.current)),
            stat: HotFile::new(dir.join("memory.stat")),
        });
    }
}

/// The levels without the group of our own systemd unit. Its limit, as `MemoryMax=` of the units that we ship, is for
/// this program alone and says nothing of the machine.
fn without_own_unit<'a>(proc: &Path, levels: &'a [PathBuf]) -> &'a [PathBuf] {
    match levels.split_first() {
        Some((own, above)) if own.extension().is_some_and(|kind| kind == "service") && is_main_of_unit(proc) => above,
        _ => levels,
    }
}

/// Whether this program is the main process of a unit: systemd is its parent, and made it the leader of a session. In the
/// unit of another program, such as a notebook server, it is neither.
fn is_main_of_unit(proc: &Path) -> bool {
    let text = std::fs::read(proc.join("self/stat")).unwrap_or_default();
    let Some(name_ends) = text.iter().rposition(|&b| b == b')') else { return false };
    let own = fields(&text).next().and_then(number);
    // State, parent, process group, session.
    let behind: Vec<Option<u64>> = fields(&text[name_ends + 1..]).take(4).map(number).collect();
    let [_, Some(parent), _, session @ Some(_)] = behind[..] else { return false };
    let parent_is_systemd = || {
        let text = std::fs::read(proc.join(parent.to_string()).join("stat")).unwrap_or_default();
        name_of(&text) == Some(b"systemd".as_slice())
    };
    session == own && (parent == 1 || parent_is_systemd())
}

impl Group {
    fn put(&mut self, out: &mut Out, host: &Host, sources: &mut Sources) {
        out.put(&memory::TOTAL, (), host.total.map_or(self.limit, |total| self.limit.min(total)));
        let current = match self.current.read().map(|text| number(trim(text))) {
            Ok(Some(current)) => current as f64,
            Ok(None) => {
                return sources.failed(|| format!("{}: not a number", self.current.path().display()));
            }
            Err(error) => return sources.failed(|| format!("{}: {error}", self.current.path().display())),
        };
        sources.answered();
        out.put_rounded(&memory::PERCENT, (), 100.0 * current / self.limit);
        out.put(&memory::AVAILABLE, (), (self.limit - current).max(0.0) / MIB);
        match self.stat.read().map(|text| cgroup::value_of(text, self.files.droppable)) {
            Ok(Some(inactive)) => {
                let used = (current - inactive as f64).max(0.0);
                out.put(&memory::USED, (), used);
                out.put_rounded(&memory::WORKING_SET, (), 100.0 * used / self.limit);
            }
            Ok(None) => sources.failed(|| format!("{}: no {}", self.stat.path().display(), self.files.droppable)),
            Err(error) => sources.failed(|| format!("{}: {error}", self.stat.path().display())),
        }
    }
}

/// Counters of /proc/vmstat since the start.
struct Paging {
    vmstat: HotFile,
    read: Option<Duration>,
    counts: [Count; 6],
}

/// One counter.
struct Count {
    name: &'static [u8],
    row: &'static MetricDef,
    /// Factor to the metric's unit.
    each: u64,
    total: Total,
}

impl Paging {
    fn new(vmstat: HotFile, page: u64) -> Paging {
        let count = |name, row, each| Count { name, row, each, total: Total::default() };
        // In the order of the file.
        let counts = [
            count(b"pgpgin", &memory::PAGED_IN, 1 << 10),
            count(b"pgpgout", &memory::PAGED_OUT, 1 << 10),
            count(b"pswpin", &memory::SWAPPED_IN, page),
            count(b"pswpout", &memory::SWAPPED_OUT, page),
            count(b"pgmajfault", &memory::MAJOR_FAULTS, 1),
            count(b"oom_kill", &memory::OOM_KILLS, 1),
        ];
        Paging { vmstat, read: None, counts }
    }

    fn put(&mut self, out: &mut Out, sources: &mut Sources) {
        if self.read.is_some_and(|then| out.at().saturating_sub(then) < PAGING_INTERVAL) {
            return;
        }
        self.read = Some(out.at());
        let text = match self.vmstat.read() {
            Ok(text) => text,
            // Sandboxed kernels (such as gVisor) have no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return sources.failed(|| format!("{}: {error}", self.vmstat.path().display())),
        };
        sources.answered();
        let mut missing = self.counts.len();
        for line in lines(text) {
            // All wanted names begin with these letters, and most lines do not.
            if !matches!(line.first(), Some(b'p' | b'o')) {
                continue;
            }
            let mut words = fields(line);
            let name = words.next().unwrap_or_default();
            let Some(count) = self.counts.iter_mut().find(|count| count.name == name) else { continue };
            if let Some(raw) = words.next().and_then(number) {
                count.total.add(raw);
                out.put(count.row, (), (count.total.sum() as f64) * count.each as f64);
            }
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
}

/// Fields of /proc/meminfo, in bytes.
#[derive(Debug, Default, PartialEq)]
struct Host {
    total: Option<f64>,
    free: Option<f64>,
    available: Option<f64>,
    buffers: Option<f64>,
    cached: Option<f64>,
    dirty: Option<f64>,
    writeback: Option<f64>,
    shared: Option<f64>,
    slab: Option<f64>,
    swap_total: Option<f64>,
    swap_free: Option<f64>,
}

impl Host {
    fn parse(text: &[u8]) -> Host {
        let mut host = Host::default();
        for line in lines(text) {
            let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
            let value = match &line[..colon] {
                b"MemTotal" => &mut host.total,
                b"MemFree" => &mut host.free,
                b"MemAvailable" => &mut host.available,
                b"Buffers" => &mut host.buffers,
                b"Cached" => &mut host.cached,
                b"Dirty" => &mut host.dirty,
                b"Writeback" => &mut host.writeback,
                b"Shmem" => &mut host.shared,
                b"Slab" => &mut host.slab,
                b"SwapTotal" => &mut host.swap_total,
                b"SwapFree" => &mut host.swap_free,
                _ => continue,
            };
            *value = fields(&line[colon + 1..]).next().and_then(number).map(|kib| kib as f64 * KIB);
            if host.is_whole() {
                // The rest of the file is as long again.
                break;
            }
        }
        host
    }

    /// Whether every field was found. The pattern names all fields, so that a new one cannot be forgotten.
    fn is_whole(&self) -> bool {
        let Host { total, free, available, buffers, cached, dirty, writeback, shared, slab, swap_total, swap_free } =
            self;
        [total, free, available, buffers, cached, dirty, writeback, shared, slab, swap_total, swap_free]
            .into_iter()
            .all(Option::is_some)
    }

    /// Leaves out the memory of GPUs. Without it the machine's own is unknown.
    fn subtract(&mut self, gpus: Option<NodeMemory>) {
        let Some(gpus) = gpus else {
            (self.total, self.free, self.available) = (None, None, None);
            return;
        };
        let less = |all: Option<f64>, part: f64| all.map(|all| (all - part).max(0.0));
        self.total = less(self.total, gpus.total);
        self.free = less(self.free, gpus.free);
        // The kernel's estimate leaves out reserves of each node, so the rest can exceed the machine's memory a little.
        let available = less(self.available, gpus.available);
        self.available = available.map(|bytes| self.total.map_or(bytes, |total| bytes.min(total)));
    }

    fn put(&self, out: &mut Out) {
        out.put_some(&memory::CACHED, (), self.cached);
        out.put_some(&memory::DIRTY, (), self.dirty.zip(self.writeback).map(|(dirty, writeback)| dirty + writeback));
        out.put_some(&memory::FREE, (), self.free);
        out.put_some(&memory::BUFFERS, (), self.buffers);
        out.put_some(&memory::SHARED, (), self.shared);
        out.put_some(&memory::SLAB, (), self.slab);
        out.put_some(&memory::SWAP_TOTAL, (), self.swap_total);
        if let Some((total, free)) = self.swap_total.zip(self.swap_free) {
            let used = (total - free).max(0.0);
            out.put(&memory::SWAP_USED, (), used);
            out.put_rounded(&memory::SWAP_PERCENT, (), if total > 0.0 { 100.0 * used / total } else { 0.0 });
        }
    }

    fn put_unlimited(&self, out: &mut Out) {
        out.put_some(&memory::TOTAL, (), self.total);
        out.put_some(&memory::AVAILABLE, (), self.available.map(|bytes| bytes / MIB));
        if let Some((total, available)) = self.total.zip(self.available).filter(|(total, _)| *total > 0.0) {
            let used = (total - available).max(0.0);
            out.put(&memory::USED, (), used);
            out.put_rounded(&memory::PERCENT, (), 100.0 * used / total);
            out.put_rounded(&memory::WORKING_SET, (), 100.0 * used / total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_missing_or_no_number_is_absent() {
        let host = Host::parse(b"MemTotal:  1024 kB\nMemAvailable: many kB\nCached:\nWriteback: 4 kB\n");
        assert_eq!(host, Host { total: Some(1_048_576.0), writeback: Some(4096.0), ..Host::default() });
    }

    proptest! {
        #[test]
        fn every_field_is_found_in_any_order(
            lines in Just([
                "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "Dirty", "Writeback", "Shmem", "Slab",
                "SwapTotal", "SwapFree", "Other",
            ])
            .prop_shuffle()
        ) {
            let text: String = lines.iter().map(|name| format!("{name}: 4 kB\n")).collect();
            prop_assert!(Host::parse(text.as_bytes()).is_whole(), "{text}");
        }

        #[test]
        fn no_text_panics(text: Vec<u8>) {
            Host::parse(&text);
        }
    }
}
