//! The process table as the page shows it: sorted by a column, each process for itself or rolled up by tree.

use shared::processes::Process;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Columns by which the table is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// CPU, percent of one core.
    Cpu,
    /// Resident set.
    Memory,
    /// Memory on GPUs.
    Gpu,
    /// Read and written.
    Disk,
    /// Threads.
    Threads,
    /// Number.
    Pid,
    /// Name.
    Name,
    /// User.
    User,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The process, or the sum of a tree under the name of its topmost process.
    pub process: Process,
    /// Processes in it.
    pub processes: usize,
}

fn sum(a: Option<f32>, b: Option<f32>) -> Option<f32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// Each process for itself.
pub fn each(rows: &[Process]) -> Vec<Line> {
    rows.iter().map(|process| Line { process: process.clone(), processes: 1 }).collect()
}

/// Sums by tree: everything below the same child of the first process (or of a parent that has no row) is one line.
pub fn by_tree(rows: &[Process]) -> Vec<Line> {
    let mut parents: BTreeMap<u32, u32> = BTreeMap::default();
    parents.extend(rows.iter().map(|p| (p.pid, p.parent)));
    let top = |pid: u32| {
        let mut at = pid;
        // A table is read while processes come and go: the walk ends even if it shows a circle.
        for _ in 0..rows.len() {
            match parents.get(&at) {
                Some(&parent) if parent > 1 && parents.contains_key(&parent) => at = parent,
                _ => break,
            }
        }
        at
    };
    let mut lines: Vec<Line> = Vec::new();
    let mut places: BTreeMap<u32, usize> = BTreeMap::default();
    for process in rows {
        let root = top(process.pid);
        let place = *places.entry(root).or_insert_with(|| {
            let named = rows.iter().find(|p| p.pid == root).unwrap_or(process);
            let (name, user) = (named.name.clone(), named.user.clone());
            lines.push(Line { process: Process { pid: root, name, user, ..Process::default() }, processes: 0 });
            lines.len() - 1
        });
        let line = &mut lines[place];
        let all = &mut line.process;
        line.processes += 1;
        all.cpu = sum(all.cpu, process.cpu);
        all.rss += process.rss;
        all.threads += process.threads;
        all.watched |= process.watched;
        all.read = sum(all.read, process.read);
        all.written = sum(all.written, process.written);
        all.gpu_memory = match (all.gpu_memory, process.gpu_memory) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        all.gpu_share = sum(all.gpu_share, process.gpu_share);
    }
    lines
}

/// Sorts: numbers from the largest, words from the first letter; equal ones by number.
pub fn sort(lines: &mut [Line], by: Column) {
    let disk = |p: &Process| sum(p.read, p.written).unwrap_or(-1.0);
    let order = |a: &Process, b: &Process| -> Ordering {
        match by {
            Column::Cpu => b.cpu.unwrap_or(-1.0).total_cmp(&a.cpu.unwrap_or(-1.0)),
            Column::Memory => b.rss.cmp(&a.rss),
            Column::Gpu => b.gpu_memory.cmp(&a.gpu_memory),
            Column::Disk => disk(b).total_cmp(&disk(a)),
            Column::Threads => b.threads.cmp(&a.threads),
            Column::Pid => a.pid.cmp(&b.pid),
            Column::Name => a.name.cmp(&b.name),
            Column::User => a.user.cmp(&b.user),
        }
    };
    lines.sort_by(|a, b| order(&a.process, &b.process).then(a.process.pid.cmp(&b.process.pid)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, cpu: f32, rss: u64) -> Process {
        Process { pid, parent, name: format!("p{pid}"), cpu: Some(cpu), rss, threads: 1, ..Process::default() }
    }

    #[test]
    fn a_tree_is_summed_under_its_topmost_process() {
        let rows = [process(1, 0, 0.0, 1), process(10, 1, 5.0, 10), process(11, 10, 6.0, 20), process(12, 11, 7.0, 30)];
        let mut lines = by_tree(&rows);
        sort(&mut lines, Column::Memory);
        assert_eq!(lines[0].process.name, "p10");
        assert_eq!((lines[0].process.cpu, lines[0].process.rss, lines[0].processes), (Some(18.0), 60, 3));
        assert_eq!(lines[1].process.pid, 1);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let rows = [process(10, 11, 1.0, 1), process(11, 10, 1.0, 1)];
        assert_eq!(by_tree(&rows).iter().map(|line| line.processes).sum::<usize>(), 2);
    }

    #[test]
    fn what_is_absent_comes_last() {
        let mut lines = each(&[Process { cpu: None, ..process(1, 0, 0.0, 0) }, process(2, 0, 0.0, 0)]);
        sort(&mut lines, Column::Cpu);
        assert_eq!(lines[0].process.pid, 2);
    }
}
