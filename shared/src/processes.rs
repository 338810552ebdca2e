//! The process table: what runs on a machine, by how much it uses. It is no series: processes come and go by the thousand.

use serde::{Deserialize, Serialize};

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Name of its user, or the user's number where it has no name.
    pub user: String,
    /// Its name as the kernel keeps it, at most 15 bytes; arguments are never read.
    pub name: String,
    /// CPU since the table before, percent of one core; absent in its first table.
    pub cpu: Option<f32>,
    /// Resident set, bytes.
    pub rss: u64,
    /// Threads.
    pub threads: u32,
    /// It is in the watched tree.
    pub watched: bool,
    /// Read from disks, bytes per second; for the watched tree and the busiest, where this user may see it.
    pub read: Option<f32>,
    /// Written to disks, bytes per second; likewise.
    pub written: Option<f32>,
    /// First twelve digits of its container's id; likewise, empty outside of one.
    pub container: String,
    /// Memory that it holds on GPUs, bytes.
    pub gpu_memory: Option<u64>,
    /// Share of a GPU's multiprocessors that it used, percent.
    pub gpu_share: Option<f32>,
}

/// What ran at one instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTable {
    /// When, milliseconds since the Unix epoch.
    pub t: i64,
    /// Processes on the machine, those included that have no row.
    pub total: u32,
    /// False when only the largest users of CPU and memory of that instant are kept.
    pub whole: bool,
    /// Rows, busiest first, then largest.
    pub rows: Vec<Process>,
}
