//! Resource use of the ranks of training jobs, each with all descendants. It is summed from the process table, so
//! nothing more is read.

use super::{MIB, Scan};
use crate::host::linux::process::limits::TreeLimits;
use crate::{Out, Roots};
use inventory::RankProcess;
use shared::catalog::process;
use shared::processes::Process;
use std::collections::HashMap;

/// Maximum depth of descendants of a rank.
const MAX_DEPTH: usize = 16;

/// State of ranks between two tables.
#[derive(Default)]
pub(super) struct Ranks {
    /// Cores that each may use, by PID and start. They are read once.
    capacities: HashMap<(u32, u64), Option<f64>>,
    /// Use of each by the newest table, with its share of the cores that it may use, percent.
    newest: Vec<(RankProcess, Option<f64>, Use)>,
}

/// Use of a rank.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Percent of a core; None until there are two tables.
    cpu: Option<f32>,
    bytes: u64,
    threads: u32,
}

impl Ranks {
    /// Puts the values of these ranks from the newest table. They are repeated until the next one, so that a line has
    /// no gaps.
    pub fn put(&self, ranks: &[RankProcess], out: &mut Out) {
        for (rank, share, used) in self.newest.iter().filter(|(rank, ..)| ranks.contains(rank)) {
            let instance = rank.instance.as_str();
            out.put_rounded(&process::CPU, instance, *share);
            out.put_some(&process::CORES, instance, used.cpu.map(|percent| f64::from(percent) / 100.0));
            out.put(&process::THREADS, instance, f64::from(used.threads));
            out.put(&process::RSS, instance, used.bytes as f64 / MIB);
        }
    }

    /// Computes the use of these ranks from a table.
    pub fn take(&mut self, ranks: &[RankProcess], scan: &Scan, rows: &[Process], roots: &Roots) {
        let is_here = |rank: &&RankProcess| scan.known.get(&rank.pid).is_some_and(|one| one.start == Some(rank.start));
        let ranks: Vec<&RankProcess> = ranks.iter().filter(is_here).collect();
        self.capacities.retain(|key, _| ranks.iter().any(|rank| (rank.pid, rank.start) == *key));
        self.newest.clear();
        for (rank, used) in ranks.iter().zip(used(&ranks, rows)) {
            let capacity = *self.capacities.entry((rank.pid, rank.start)).or_insert_with(|| {
                let mut limits = TreeLimits::default();
                limits.refresh(roots, &[rank.pid]);
                limits.capacity
            });
            let share = used.cpu.zip(capacity).map(|(cpu, cores)| f64::from(cpu) / cores);
            self.newest.push(((*rank).clone(), share, used));
        }
    }
}

/// Use of each of these ranks with its descendants, except those of another rank.
fn used(ranks: &[&RankProcess], rows: &[Process]) -> Vec<Use> {
    let mut all = vec![Use::default(); ranks.len()];
    if ranks.is_empty() {
        return all;
    }
    let places: HashMap<u32, usize> = ranks.iter().enumerate().map(|(at, rank)| (rank.pid, at)).collect();
    let parents: HashMap<u32, u32> = rows.iter().map(|row| (row.pid, row.parent)).collect();
    for row in rows {
        let mut line = std::iter::successors(Some(row.pid), |pid| parents.get(pid).copied()).take(MAX_DEPTH);
        let Some(at) = line.find_map(|pid| places.get(&pid)) else { continue };
        let own = &mut all[*at];
        own.cpu = row.cpu.map(|cpu| cpu + own.cpu.unwrap_or(0.0)).or(own.cpu);
        own.bytes += row.rss;
        own.threads += row.threads;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rank_started_is_its_own_and_what_another_rank_did_is_not() {
        let row = |pid, parent, cpu| Process { pid, parent, cpu, rss: 10, threads: 2, ..Process::default() };
        let rank = |pid| RankProcess { pid, start: 1, instance: format!("/l:rank_{pid}") };
        let rows = [
            row(1, 0, Some(1.0)),
            row(5, 1, Some(50.0)),
            row(6, 5, Some(25.0)),
            row(7, 6, None),
            row(8, 5, Some(3.0)),
            row(9, 8, Some(4.0)),
        ];
        let ranks = [rank(5), rank(8), rank(44)];
        let used = used(&ranks.iter().collect::<Vec<_>>(), &rows);
        let figures: Vec<_> = used.iter().map(|one| (one.cpu, one.bytes, one.threads)).collect();
        assert_eq!(figures, [(Some(75.0), 30, 6), (Some(7.0), 20, 4), (None, 0, 0)]);
    }
}
