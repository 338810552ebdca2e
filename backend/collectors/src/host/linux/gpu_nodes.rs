//! Memory of GPUs that the kernel counts as the machine's.
//!
//! On modules such as GH200 and GB200, NVIDIA's driver can bring the memory of a GPU online as a NUMA node without
//! processors. `MemTotal` of /proc/meminfo then has it too, and NVML reports it again as the GPU's own. The driver names
//! the node in `/proc/driver/nvidia/gpus/ADDRESS/numa_status` (`nv-procfs.c` of its open kernel modules). A driver that
//! manages the memory itself (`NVreg_CoherentGPUMemoryMode=driver`) has no such file.

use crate::Roots;
use crate::read::procfs::{HotFile, fields, lines, number};
use crate::read::sysfs;
use std::io;

const KIB: f64 = (1 << 10) as f64;

/// Maximum number of nodes to read: more GPUs than one machine has.
const MAX_NODES: usize = 64;

/// A NUMA node that is the memory of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GpuNode {
    /// Its number.
    pub node: u32,
    /// PCI address of the GPU.
    pub address: String,
}

impl GpuNode {
    /// The file with its memory.
    fn meminfo(&self, roots: &Roots) -> HotFile {
        HotFile::new(roots.sys.join(format!("devices/system/node/node{}/meminfo", self.node)))
    }
}

/// Finds the nodes that are online, by their number.
pub(crate) fn find(roots: &Roots) -> Vec<GpuNode> {
    let gpus = roots.proc.join("driver/nvidia/gpus");
    let node = |address: String| {
        let text = sysfs::text(&gpus.join(&address).join("numa_status"))?;
        let node = text.lines().find_map(|line| line.strip_prefix("Node:"))?.trim().parse().ok()?;
        Some(GpuNode { node, address })
    };
    // A node with processors has memory of the machine, whatever the file names.
    let is_gpu = |found: &GpuNode| {
        let dir = roots.sys.join(format!("devices/system/node/node{}", found.node));
        dir.join("meminfo").exists() && sysfs::text(&dir.join("cpulist")).is_some_and(|list| list.is_empty())
    };
    let mut nodes: Vec<GpuNode> = sysfs::names(&gpus).into_iter().filter_map(node).filter(is_gpu).collect();
    nodes.sort_by_key(|found| found.node);
    nodes.dedup_by_key(|found| found.node);
    nodes.truncate(MAX_NODES);
    nodes
}

/// Memory of all these nodes, bytes; none if any cannot be read: the sum of only some is too low.
pub(crate) fn total(roots: &Roots, nodes: &[GpuNode]) -> Option<u64> {
    let mut files: Vec<HotFile> = nodes.iter().map(|node| node.meminfo(roots)).collect();
    files.iter_mut().map(|file| read(file).ok().map(|memory| memory.total as u64)).sum()
}

/// Memory in use on all nodes now, bytes; none if any cannot be read.
pub(crate) fn used(roots: &Roots) -> Option<f64> {
    let of = |node: GpuNode| read(&mut node.meminfo(roots)).ok().map(|memory| memory.total - memory.available);
    find(roots).into_iter().map(of).sum()
}

/// The files of the nodes, which stay open.
#[derive(Debug, Default)]
pub(crate) struct GpuNodes {
    nodes: Vec<GpuNode>,
    files: Vec<HotFile>,
}

/// Memory of nodes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NodeMemory {
    /// All of it.
    pub total: f64,
    /// The part without use.
    pub free: f64,
    /// The part that programs can have: free, file data and structures that the kernel gives back.
    pub available: f64,
}

impl GpuNodes {
    /// Searches the nodes anew. The driver brings them online when it starts.
    pub fn refresh(&mut self, roots: &Roots) {
        let nodes = find(roots);
        if nodes != self.nodes {
            self.files = nodes.iter().map(|node| node.meminfo(roots)).collect();
            self.nodes = nodes;
        }
    }

    /// Memory of all nodes together.
    ///
    /// # Errors
    /// A file that cannot be read or lacks a value.
    pub fn read(&mut self) -> Result<NodeMemory, String> {
        let mut all = NodeMemory::default();
        for file in &mut self.files {
            let memory = read(file).map_err(|error| format!("{}: {error}", file.path().display()))?;
            all.total += memory.total;
            all.free += memory.free;
            all.available += memory.available;
        }
        Ok(all)
    }
}

/// Parses the file of a node: lines such as `Node 1 MemTotal: 97239040 kB`.
fn read(file: &mut HotFile) -> io::Result<NodeMemory> {
    let (mut total, mut free, mut given_back) = (None, None, 0.0);
    for line in lines(file.read()?) {
        let mut words = fields(line).skip(2);
        let name = words.next().unwrap_or_default();
        let bytes = words.next().and_then(number).map(|kib| kib as f64 * KIB);
        match name {
            b"MemTotal:" => total = bytes,
            b"MemFree:" => free = bytes,
            b"Active(file):" | b"Inactive(file):" | b"SReclaimable:" => given_back += bytes.unwrap_or(0.0),
            _ => {}
        }
    }
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "no MemTotal or no MemFree");
    let (total, free) = total.zip(free).ok_or_else(missing)?;
    Ok(NodeMemory { total, free, available: free + given_back })
}
