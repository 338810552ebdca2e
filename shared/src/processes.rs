//! The process table: the processes of a machine, by usage. It is no series: processes come and go by the thousand.

use serde::{Deserialize, Serialize};

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Name of its user, or the user's number if it has no name.
    pub user: String,
    /// Its name in the kernel, at most 15 bytes.
    pub name: String,
    /// Its arguments with secrets redacted, at most 1 KiB; empty unless the operator enabled them.
    pub args: String,
    /// CPU since the table before, percent of one core; absent in its first table.
    pub cpu: Option<f32>,
    /// Resident set, bytes.
    pub rss: u64,
    /// Threads.
    pub threads: u32,
    /// It is in the watched tree.
    pub watched: bool,
    /// Read from disks, bytes per second; for the watched tree and the busiest, if this user may read it.
    pub read: Option<f32>,
    /// Written to disks, bytes per second; likewise.
    pub written: Option<f32>,
    /// First twelve digits of its container's id; likewise, empty outside of one.
    pub container: String,
    /// Memory that it holds on GPUs, bytes.
    pub gpu_memory: Option<u64>,
    /// Share of a GPU's multiprocessors that it used, percent; on AMD and Intel that of its busiest kind of engine.
    pub gpu_share: Option<f32>,
    /// Numbers of the GPUs that it uses, ascending.
    pub gpus: Vec<u32>,
    /// When it started, milliseconds since the Unix epoch; None if unknown.
    pub started: Option<i64>,
    /// State letter of the kernel, as in proc(5): R runs, S sleeps, D waits for a disk or a driver, T is stopped, Z has
    /// ended; None if unknown.
    pub state: Option<char>,
}

/// The processes at one instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTable {
    /// When, milliseconds since the Unix epoch.
    pub t: i64,
    /// Processes on the machine, including those without a row.
    pub total: u32,
    /// False when only the largest users of CPU and memory of that instant are kept.
    pub whole: bool,
    /// Rows, busiest first, then largest.
    pub rows: Vec<Process>,
}

impl Process {
    /// The program that an interpreter runs, from the arguments: the file name of the script, or the module after `-m`.
    /// None if the arguments are unknown or name none.
    pub fn script(&self) -> Option<&str> {
        let mut words = self.args.split(' ');
        let program = words.next()?.rsplit('/').next()?;
        let named = ["python", "torchrun", "accelerate", "deepspeed", "node", "ruby", "perl", "bash", "sh", "julia"];
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        if !named.contains(&program.trim_end_matches(digits)) {
            return None;
        }
        let script = |word: &&str| {
            [".py", ".pyc", ".sh", ".js", ".mjs", ".rb", ".pl", ".jl"].iter().any(|kind| word.ends_with(kind))
        };
        let mut before = "";
        let found = words.find(|word| std::mem::replace(&mut before, word) == "-m" || script(word))?;
        found.rsplit('/').next()
    }
}

/// One process over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessPast {
    /// Its number.
    pub pid: u32,
    /// When it was among the largest users, ascending: milliseconds since the Unix epoch, CPU in percent of one core,
    /// resident set in bytes. At most [`MAX_PAST_POINTS`].
    pub points: Vec<(i64, Option<f32>, u64)>,
}

/// Maximum points of a process over time; beyond it, the largest of each stretch are sent.
pub const MAX_PAST_POINTS: usize = 720;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_told_by_the_arguments() {
        for (args, script) in [
            ("/usr/bin/python3.11 -u train/main.py --lr 1e-4", Some("main.py")),
            ("python -m torch.distributed.run --nproc 8 x.py", Some("torch.distributed.run")),
            ("torchrun --nproc_per_node=8 /srv/pretrain.py", Some("pretrain.py")),
            ("/usr/sbin/sshd -D", None),
            ("python3", None),
            ("", None),
        ] {
            assert_eq!(Process { args: args.into(), ..Process::default() }.script(), script, "{args}");
        }
    }
}
