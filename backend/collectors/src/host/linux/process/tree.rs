//! The watched processes with all their descendants.

use super::stat::Stat;
use crate::read::procfs::{fields, number};
use crate::read::sysfs;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Children are listed by thread. In a tree with more threads than this, checking every new process of the machine is
/// cheaper.
const MAX_THREADS_BY_CHILDREN: u64 = 64;

/// Number of checks of new processes after which all are checked, because PIDs are reused.
const FULL_SCAN_PERIOD: u32 = 30;

/// A configured process.
#[derive(Debug)]
pub(in crate::host::linux) struct Root {
    pub pid: u32,
    /// Its identity; none after its end.
    start: Option<u64>,
    /// Reason why it is gone.
    pub gone: Option<String>,
}

/// A process of the tree.
#[derive(Clone, Copy, Debug)]
pub(in crate::host::linux) struct Member {
    /// Index of the watched process below which it was found.
    pub root: usize,
    pub stat: Stat,
}

pub(in crate::host::linux) struct Tree {
    proc: PathBuf,
    pub roots: Vec<Root>,
    pub members: HashMap<u32, Member>,
    lists_children: bool,
    /// Processes that belong to no tree.
    strangers: HashSet<u32>,
    looks: u32,
    buffer: Vec<u8>,
}

impl Tree {
    pub fn new(proc: PathBuf, pids: &[u32]) -> Tree {
        let mut buffer = Vec::new();
        let mut roots: Vec<Root> = Vec::new();
        for &pid in pids {
            if roots.iter().all(|root| root.pid != pid) {
                let start = Stat::read(&proc, pid, &mut buffer).filter(|stat| !stat.ended).map(|stat| stat.start);
                let gone = start.is_none().then(|| format!("process {pid} does not run"));
                roots.push(Root { pid, start, gone });
            }
        }
        let first = roots.iter().find(|root| root.gone.is_none()).map(|root| root.pid.to_string());
        let lists_children = first.is_some_and(|pid| proc.join(&pid).join("task").join(&pid).join("children").exists());
        let (members, strangers) = (HashMap::new(), HashSet::new());
        Tree { proc, roots, members, lists_children, strangers, looks: 0, buffer }
    }

    /// Reads the tree again, and returns its previous state.
    ///
    /// A process stays in the tree as long as it lives, and so do its descendants. This holds even if their ancestors
    /// ended and the kernel gave them another parent.
    pub fn refresh(&mut self) -> HashMap<u32, Member> {
        let before = std::mem::take(&mut self.members);
        let threads: u64 = before.values().map(|member| member.stat.threads).sum();
        let by_children = self.lists_children && threads <= MAX_THREADS_BY_CHILDREN;
        for root in 0..self.roots.len() {
            if self.check(root) {
                self.add(root, self.roots[root].pid, self.roots[root].start, by_children);
            }
        }
        for (&pid, member) in &before {
            self.add(member.root, pid, Some(member.stat.start), by_children);
        }
        if !by_children {
            self.look_at_new_processes();
        }
        before
    }

    /// Whether the watched process is alive.
    fn check(&mut self, root: usize) -> bool {
        let Some(start) = self.roots[root].start else { return false };
        let pid = self.roots[root].pid;
        let gone = match Stat::read(&self.proc, pid, &mut self.buffer) {
            Some(stat) if stat.start != start => {
                Some(format!("process {pid} has ended, and another process has its number"))
            }
            Some(stat) if !stat.ended => None,
            _ => Some(format!("process {pid} has ended")),
        };
        if gone.is_some() {
            self.roots[root].start = None;
            self.roots[root].gone = gone;
        }
        self.roots[root].start.is_some()
    }

    /// Adds a process if its start matches, with all its descendants if `children` is set.
    fn add(&mut self, root: usize, pid: u32, start: Option<u64>, children: bool) {
        let mut open = vec![(pid, start)];
        while let Some((pid, start)) = open.pop() {
            if self.members.contains_key(&pid) {
                continue;
            }
            let Some(stat) = Stat::read(&self.proc, pid, &mut self.buffer) else { continue };
            if start.is_some_and(|start| start != stat.start) {
                continue;
            }
            self.members.insert(pid, Member { root, stat });
            if children && !stat.ended {
                self.children(pid, stat.threads, &mut open);
            }
        }
    }

    /// The children of every thread.
    fn children(&self, pid: u32, threads: u64, found: &mut Vec<(u32, Option<u64>)>) {
        let tasks = self.proc.join(pid.to_string()).join("task");
        let ids = if threads > 1 { sysfs::names(&tasks) } else { vec![pid.to_string()] };
        for id in ids {
            let text = std::fs::read(tasks.join(id).join("children")).unwrap_or_default();
            let pids = fields(text.trim_ascii()).filter_map(|word| u32::try_from(number(word)?).ok());
            found.extend(pids.map(|pid| (pid, None)));
        }
    }

    /// Adds processes whose parent is in the tree, among all that are not known strangers.
    fn look_at_new_processes(&mut self) {
        self.looks += 1;
        if self.looks.is_multiple_of(FULL_SCAN_PERIOD) {
            self.strangers.clear();
        }
        let Ok(entries) = std::fs::read_dir(&self.proc) else { return };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut alive = HashSet::new();
        let mut new = Vec::new();
        for pid in pids {
            if self.strangers.contains(&pid) {
                alive.insert(pid);
            } else if !self.members.contains_key(&pid) {
                new.extend(Stat::read(&self.proc, pid, &mut self.buffer).map(|stat| (pid, stat)));
            }
        }
        loop {
            let without_parent = new.len();
            new.retain(|&(pid, stat)| match self.members.get(&stat.parent).map(|parent| parent.root) {
                Some(root) => {
                    self.members.insert(pid, Member { root, stat });
                    false
                }
                None => true,
            });
            if new.len() == without_parent {
                break;
            }
        }
        alive.extend(new.into_iter().map(|(pid, _)| pid));
        self.strangers = alive;
    }
}
