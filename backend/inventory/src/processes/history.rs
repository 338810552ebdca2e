//! The largest users of CPU and memory over the last hours, so that "what filled the memory at 14:02" has an answer.

use shared::processes::{MAX_PAST_POINTS, Process, ProcessPast, ProcessTable};
use std::collections::{HashMap, VecDeque};

/// Maximum number of tables: 12 hours with one every five seconds.
const MAX_TABLES: usize = 12 * 720;
/// Rows kept of a table for CPU, and as many for memory.
const MAX_ROWS_OF_A_KIND: usize = 8;

#[derive(Debug)]
struct ProcessSample {
    pid: u32,
    name: u32,
    cpu: Option<f32>,
    rss: u64,
}

/// Rows of the last hours. Each name and user is stored once.
#[derive(Debug, Default)]
pub(super) struct History {
    tables: VecDeque<(i64, u32, Box<[ProcessSample]>)>,
    names: Vec<(String, String)>,
    ids: HashMap<(String, String), u32>,
    /// Number of names still in use after the last compaction.
    needed: usize,
}

impl History {
    /// Stores the largest rows of a table, and drops the oldest table above the limit.
    pub fn keep(&mut self, table: &ProcessTable) {
        // The rows are sorted by CPU, busiest first.
        let mut largest: Vec<usize> = (0..table.rows.len()).collect();
        largest.sort_by_key(|&i| std::cmp::Reverse(table.rows[i].rss));
        largest.truncate(MAX_ROWS_OF_A_KIND);
        let busiest =
            (0..table.rows.len().min(MAX_ROWS_OF_A_KIND)).filter(|&i| table.rows[i].cpu.is_some_and(|cpu| cpu > 0.0));
        let mut kept: Vec<usize> = busiest.collect();
        kept.extend(largest.into_iter().filter(|i| !kept.contains(i)).collect::<Vec<_>>());
        let rows = kept.into_iter().map(|i| self.row(&table.rows[i])).collect();
        self.tables.push_back((table.t, table.total, rows));
        if self.tables.len() > MAX_TABLES {
            self.tables.pop_front();
        }
        // Unused names are removed when they may be half of all. So each name costs its share of one pass.
        if self.names.len() > 2 * self.needed.max(1_000) {
            self.compact();
            self.needed = self.names.len();
        }
    }

    fn row(&mut self, process: &Process) -> ProcessSample {
        let key = (process.name.clone(), process.user.clone());
        let name = *self.ids.entry(key).or_insert_with_key(|key| {
            self.names.push(key.clone());
            self.names.len() as u32 - 1
        });
        ProcessSample { pid: process.pid, name, cpu: process.cpu, rss: process.rss }
    }

    fn compact(&mut self) {
        let names = std::mem::take(&mut self.names);
        self.ids.clear();
        for row in self.tables.iter_mut().flat_map(|(.., rows)| rows.iter_mut()) {
            let key = names[row.name as usize].clone();
            row.name = *self.ids.entry(key).or_insert_with_key(|key| {
                self.names.push(key.clone());
                self.names.len() as u32 - 1
            });
        }
    }

    /// The largest users in the table nearest to `t`.
    pub fn at(&self, t: i64) -> Option<ProcessTable> {
        let (when, total, rows) = self.tables.iter().min_by_key(|(when, ..)| (when - t).abs())?;
        let rows = rows.iter().map(|row| {
            let (name, user) = self.names[row.name as usize].clone();
            Process { pid: row.pid, name, user, cpu: row.cpu, rss: row.rss, ..Process::default() }
        });
        Some(ProcessTable { t: *when, total: *total, whole: false, rows: rows.collect() })
    }

    /// A process within a span, for the times at which it was among the largest users.
    pub fn past(&self, pid: u32, name: &str, (from, to): (i64, i64)) -> ProcessPast {
        let within = self.tables.iter().filter(|(t, ..)| (from..=to).contains(t));
        let of = |rows: &[ProcessSample]| {
            let row = rows.iter().find(|row| row.pid == pid && self.names[row.name as usize].0 == name)?;
            Some((row.cpu, row.rss))
        };
        let mut points: Vec<(i64, Option<f32>, u64)> =
            within.filter_map(|(t, _, rows)| of(rows).map(|(cpu, rss)| (*t, cpu, rss))).collect();
        let each = points.len().div_ceil(MAX_PAST_POINTS).max(1);
        if each > 1 {
            let largest = |part: &[(i64, Option<f32>, u64)]| {
                let cpu = part.iter().filter_map(|point| point.1).reduce(f32::max);
                (part[0].0, cpu, part.iter().map(|point| point.2).max().unwrap_or(0))
            };
            points = points.chunks(each).map(largest).collect();
        }
        ProcessPast { pid, points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, cpu: f32, rss: u64) -> Process {
        Process { pid, name: format!("p{}", pid % 10), cpu: Some(cpu), rss, ..Process::default() }
    }

    #[test]
    fn the_large_ones_of_an_instant_are_found_again() {
        let mut history = History::default();
        for t in 0..10 {
            let mut rows: Vec<Process> = (0..100).map(|pid| process(pid, 100.0 - pid as f32, u64::from(pid))).collect();
            if t == 4 {
                rows[50].rss = 1 << 40;
            }
            history.keep(&ProcessTable { t: t * 5_000, total: 100, whole: true, rows });
        }
        let table = history.at(21_000).unwrap();
        assert_eq!((table.t, table.total, table.whole), (20_000, 100, false));
        assert_eq!(table.rows.iter().max_by_key(|row| row.rss).map(|row| row.pid), Some(50));
        assert_eq!(table.rows[0].pid, 0, "the busiest come first");
        assert!(table.rows.len() <= 2 * MAX_ROWS_OF_A_KIND);
    }

    #[test]
    fn a_process_is_found_over_time_by_number_and_name_and_long_spans_are_thinned() {
        let mut history = History::default();
        for t in 0..2_000 {
            let rows = vec![process(3, (t % 50) as f32, t as u64), process(7, 1.0, 5)];
            history.keep(&ProcessTable { t: t * 5_000, total: 2, whole: true, rows });
        }
        let past = history.past(3, "p3", (50_000, 100_000));
        assert_eq!((past.points.len(), past.points[0]), (11, (50_000, Some(10.0), 10)));
        assert_eq!(history.past(3, "p7", (0, i64::MAX)).points, []);
        let all = history.past(3, "p3", (0, i64::MAX)).points;
        assert!(all.len() <= MAX_PAST_POINTS && all.iter().any(|point| point.1 == Some(49.0)), "{}", all.len());
        assert_eq!(all.last().map(|point| point.2), Some(1_999));
    }

    #[test]
    fn memory_is_bounded_however_many_names_there_are() {
        let mut history = History::default();
        for t in 0..3 * MAX_TABLES as i64 {
            let rows = (0..4).map(|i| Process { name: format!("{t}-{i}"), ..process(i, 1.0, 1) }).collect();
            history.keep(&ProcessTable { t, total: 4, whole: true, rows });
        }
        assert_eq!(history.tables.len(), MAX_TABLES);
        assert!(history.names.len() <= 8 * MAX_TABLES + 2_000);
        assert_eq!(history.at(0).unwrap().t, 2 * MAX_TABLES as i64);
    }
}
