//! The process table as the page shows it: filtered, sorted by a column, as a list or as a tree.

use shared::processes::Process;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Maximum depth of a process in its tree; a deeper one is shown at the left edge.
const MAX_DEPTH: usize = 64;

/// The columns by which the table can be sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// CPU time in percent of one core.
    Cpu,
    /// Resident memory in bytes.
    Memory,
    /// Memory on GPUs in bytes.
    Gpu,
    /// Share of the multiprocessors of GPUs in percent.
    GpuShare,
    /// Bytes read and written per second.
    Disk,
    /// Number of threads.
    Threads,
    /// Indexes of the GPUs that it uses.
    GpuIndex,
    /// Time since its start.
    Age,
    /// State letter of the kernel.
    State,
    /// Process id.
    Pid,
    /// Name of the process.
    Name,
    /// Name of the user.
    User,
}

/// Selection and order of the lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The column by which the lines are sorted.
    pub by: Column,
    /// True for the smallest number or A first.
    pub ascending: bool,
    /// The user whose processes are shown; empty for all.
    pub user: String,
    /// PIDs of the unfolded processes of the tree; None for a list.
    pub tree: Option<Vec<u32>>,
}

impl Default for Listing {
    fn default() -> Self {
        Listing { by: Column::Cpu, ascending: false, user: String::new(), tree: None }
    }
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// A process, with the sum of its descendants if these are folded.
    pub process: Process,
    /// Number of processes in the line.
    pub processes: usize,
    /// Number of its ancestors in the tree.
    pub depth: usize,
    /// Whether its children are shown; None when it has none, or in a list.
    pub open: Option<bool>,
}

fn sum(a: Option<f32>, b: Option<f32>) -> Option<f32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// Bytes per second that a process reads from and writes to disks; None if unknown.
pub fn disk(p: &Process) -> Option<f32> {
    sum(p.read, p.written)
}

fn add(all: &mut Process, process: &Process) {
    all.cpu = sum(all.cpu, process.cpu);
    all.rss += process.rss;
    all.threads += process.threads;
    all.read = sum(all.read, process.read);
    all.written = sum(all.written, process.written);
    all.gpu_memory = match (all.gpu_memory, process.gpu_memory) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    all.gpu_share = sum(all.gpu_share, process.gpu_share);
    let new = process.gpus.iter().filter(|gpu| !all.gpus.contains(gpu)).copied().collect::<Vec<_>>();
    all.gpus.extend(new);
    all.gpus.sort_unstable();
}

/// The lines of a table: processes whose name, PID, user or arguments contain all `words`.
pub fn lines(rows: &[Process], choice: &Listing, words: &str) -> Vec<Line> {
    let words = words.to_ascii_lowercase();
    let fits = |p: &&Process| {
        let text = || format!("{} {} {} {}", p.name, p.pid, p.user, p.args).to_ascii_lowercase();
        (choice.user.is_empty() || p.user == choice.user)
            && (words.is_empty() || words.split_ascii_whitespace().all(|word| text().contains(word)))
    };
    let line = |p: &Process| Line { process: p.clone(), processes: 1, depth: 0, open: None };
    let rows: Vec<Line> = rows.iter().filter(fits).map(line).collect();
    let Some(open) = &choice.tree else {
        let mut rows = rows;
        charts::order::sort_by(&mut rows, |a, b| order(choice, &a.process, &b.process));
        return rows;
    };
    let mut places: BTreeMap<u32, usize> = BTreeMap::default();
    places.extend(rows.iter().enumerate().map(|(i, line)| (line.process.pid, i)));
    let next = |i: usize| {
        let parent = rows[i].process.parent;
        places.get(&parent).copied().filter(|_| parent > 1)
    };
    // Processes start and end while the table is read, so parents may form a cycle. Those processes are shown without a
    // parent.
    let ends = |i: usize| (0..MAX_DEPTH).try_fold(i, |at, _| next(at)).is_none();
    let parents: Vec<Option<usize>> = (0..rows.len()).map(|i| next(i).filter(|_| ends(i))).collect();
    let mut sums = rows.clone();
    for (i, line) in rows.iter().enumerate() {
        let mut at = i;
        while let Some(parent) = parents[at] {
            add(&mut sums[parent].process, &line.process);
            sums[parent].processes += 1;
            at = parent;
        }
    }
    let mut sorted: Vec<usize> = (0..rows.len()).collect();
    charts::order::sort_by(&mut sorted, |a, b| order(choice, &sums[*a].process, &sums[*b].process));
    let mut tree = Tree { rows, sums, parents, sorted, open, lines: Vec::new() };
    tree.grow(None, 0);
    tree.lines
}

struct Tree<'a> {
    rows: Vec<Line>,
    sums: Vec<Line>,
    parents: Vec<Option<usize>>,
    sorted: Vec<usize>,
    open: &'a [u32],
    lines: Vec<Line>,
}

impl Tree<'_> {
    fn grow(&mut self, parent: Option<usize>, depth: usize) {
        for i in (0..self.sorted.len()).map(|at| self.sorted[at]).collect::<Vec<_>>() {
            if self.parents[i] != parent {
                continue;
            }
            let has_more = self.sums[i].processes > 1;
            let open = has_more && self.open.contains(&self.rows[i].process.pid);
            let line = if open { &self.rows[i] } else { &self.sums[i] }.clone();
            self.lines.push(Line { depth, open: has_more.then_some(open), ..line });
            if open {
                self.grow(Some(i), depth + 1);
            }
        }
    }
}

/// The order of two lines. Absent values count as less than zero; equal ones are ordered by PID.
fn order(choice: &Listing, a: &Process, b: &Process) -> Ordering {
    let float = |v: Option<f32>| f64::from(v.unwrap_or(-1.0));
    let number = |p: &Process| match choice.by {
        Column::Cpu => float(p.cpu),
        Column::Memory => p.rss as f64,
        Column::Gpu => p.gpu_memory.map_or(-1.0, |bytes| bytes as f64),
        Column::GpuShare => float(p.gpu_share),
        Column::Disk => float(disk(p)),
        Column::Threads => f64::from(p.threads),
        Column::GpuIndex => p.gpus.first().map_or(-1.0, |gpu| f64::from(*gpu)),
        // The longest time is the earliest start.
        Column::Age => p.started.map_or(f64::NEG_INFINITY, |t| -t as f64),
        Column::State => p.state.map_or(-1.0, |letter| f64::from(u32::from(letter))),
        _ => f64::from(p.pid),
    };
    let order = match choice.by {
        Column::Name => a.name.cmp(&b.name),
        Column::User => a.user.cmp(&b.user),
        _ => number(a).total_cmp(&number(b)),
    };
    let order = if choice.ascending { order } else { order.reverse() };
    order.then(a.pid.cmp(&b.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, cpu: f32, rss: u64) -> Process {
        let user = if pid < 12 { "root" } else { "mara" };
        let (name, user) = (format!("p{pid}"), user.into());
        Process { pid, parent, name, user, cpu: Some(cpu), rss, threads: 1, ..Process::default() }
    }

    fn by(by: Column, tree: Option<Vec<u32>>) -> Listing {
        Listing { by, tree, ..Listing::default() }
    }

    fn pids(lines: &[Line]) -> Vec<(u32, usize)> {
        lines.iter().map(|line| (line.process.pid, line.depth)).collect()
    }

    const ROWS: fn() -> [Process; 4] =
        || [process(1, 0, 0.0, 1), process(10, 1, 5.0, 10), process(11, 10, 6.0, 20), process(12, 11, 7.0, 30)];

    #[test]
    fn a_folded_tree_is_summed_under_its_topmost_process() {
        let lines = lines(&ROWS(), &by(Column::Memory, Some(Vec::new())), "");
        assert_eq!(lines[0].process.name, "p10");
        assert_eq!((lines[0].process.cpu, lines[0].process.rss, lines[0].processes), (Some(18.0), 60, 3));
        assert_eq!((lines[0].open, lines[1].open), (Some(false), None));
        assert_eq!(pids(&lines), [(10, 0), (1, 0)]);
    }

    #[test]
    fn an_unfolded_process_has_its_own_values_and_its_children_below() {
        let lines = lines(&ROWS(), &by(Column::Memory, Some(vec![10])), "");
        assert_eq!(pids(&lines), [(10, 0), (11, 1), (1, 0)]);
        assert_eq!((lines[0].process.rss, lines[0].processes, lines[0].open), (10, 1, Some(true)));
        assert_eq!((lines[1].process.rss, lines[1].processes, lines[1].open), (50, 2, Some(false)));
    }

    #[test]
    fn a_folded_tree_has_the_gpus_of_all_and_the_oldest_is_the_longest_running() {
        let mut rows = ROWS();
        (rows[2].gpus, rows[3].gpus) = (vec![3], vec![0, 3]);
        (rows[1].started, rows[2].started) = (Some(2_000), Some(1_000));
        assert_eq!(lines(&rows, &by(Column::GpuIndex, Some(Vec::new())), "")[0].process.gpus, [0, 3]);
        assert_eq!(pids(&lines(&rows, &by(Column::Age, None), ""))[..2], [(11, 0), (10, 0)]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let rows = [process(10, 11, 1.0, 1), process(11, 10, 1.0, 1), process(12, 11, 1.0, 1)];
        assert_eq!(pids(&lines(&rows, &by(Column::Pid, Some(vec![10, 11])), "")), [(12, 0), (11, 0), (10, 0)]);
    }

    #[test]
    fn what_is_absent_comes_last_and_the_order_turns_around() {
        let rows = [Process { cpu: None, ..process(1, 0, 0.0, 0) }, process(2, 0, 0.0, 0)];
        assert_eq!(pids(&lines(&rows, &by(Column::Cpu, None), "")), [(2, 0), (1, 0)]);
        let turned = Listing { ascending: true, ..by(Column::Cpu, None) };
        assert_eq!(pids(&lines(&rows, &turned, "")), [(1, 0), (2, 0)]);
    }

    #[test]
    fn words_are_searched_in_name_pid_and_user() {
        let found = |words: &str, user: &str| {
            let choice = Listing { user: user.into(), ..by(Column::Pid, None) };
            lines(&ROWS(), &choice, words).iter().map(|line| line.process.pid).collect::<Vec<_>>()
        };
        assert_eq!(found("MARA", ""), [12]);
        assert_eq!(found("p1 11", ""), [11]);
        assert_eq!(found("", "mara"), [12]);
        assert_eq!(found("p1", "root"), [11, 10, 1]);
        assert!(found("nobody", "").is_empty());
    }
}
