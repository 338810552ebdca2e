//! Output of a run of this machine, for a hub: parts that fit one message, each after the one before.

use super::output::{PrintedRow, Ranks, fits, read_failure};
use super::registry::RunRegistry;
use shared::output::{LAST_LINES, LineMark, LinesAsked, LinesPart, MAX_PART_BYTES};
use shared::run::{How, Over};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use stream::live::Live;

/// Maximum time to collect a part; then the rows found so far are sent.
const PART_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of rows between two reads of the clock.
const ROWS: usize = 1_000;

/// Maximum number of lines of a part.
const MAX_LINES: usize = 10_000;

impl RunRegistry {
    /// A part of a run's output, at most `most` bytes. It reads the disk.
    pub fn lines(&self, live: &Live, asked: &LinesAsked, most: usize) -> LinesPart {
        let own = self.logs.source().and_then(|own| live.store().source(own).map(|(source, _)| source.clone()));
        let ranks = own.filter(|_| asked.rank.is_some()).and_then(|source| {
            let run = self.find(live, std::slice::from_ref(&source), &asked.run, (i64::MIN, i64::MAX))?;
            Some(Ranks::from_run(&run, &source.name))
        });
        let ranks = ranks.unwrap_or_default();
        let text = Some(asked.text.as_str()).filter(|text| !text.is_empty());
        let is_whose = |row: &PrintedRow| {
            let of_rank = asked.rank.map(|rank| ranks.of_row(row) == Some(rank));
            let of_process = asked.process.map(|process| row.process == process);
            of_rank.is_none_or(|is| is) && of_process.is_none() || of_rank == Some(true) || of_process == Some(true)
        };
        let keeps = |row: &PrintedRow| fits(row, asked.stream, text) && is_whose(row);
        let marks: BTreeMap<(i64, u32), u64> = asked.marks.iter().map(|(t, pid, n)| ((*t, *pid), *n)).collect();
        let limit = (asked.limit as usize).clamp(1, MAX_LINES);
        match asked.newest {
            true => self.newest_lines(asked, marks, (limit, most), &keeps),
            false => self.next_lines(asked, marks, (limit, most), &keeps),
        }
    }

    /// The end of a process with the class that its last output names; None if it has no output, or that names none. It
    /// reads the disk.
    pub(super) fn read_class(&self, live: &Live, over: Over) -> Option<Over> {
        let asked = LinesAsked {
            run: over.begun.run.clone(),
            span: (i64::MIN, i64::MAX),
            rank: over.begun.rank.as_ref().map(|rank| rank.rank),
            process: Some((over.begun.t, over.begun.pid)),
            limit: LAST_LINES as u32,
            newest: true,
            ..LinesAsked::default()
        };
        let part = self.lines(live, &asked, MAX_PART_BYTES);
        let lines = part.rows.iter().map(|(.., line)| line).filter(|line| line.lost == 0);
        let failure = read_failure(&over.how, lines).filter(|failure| failure.line.is_some())?;
        Some(Over { how: How { failure: Some(failure.class), ..over.how }, ..over })
    }

    fn newest_lines(
        &self,
        asked: &LinesAsked,
        mut marks: BTreeMap<(i64, u32), u64>,
        (limit, most): (usize, usize),
        keeps: &(dyn Fn(&PrintedRow) -> bool + Sync),
    ) -> LinesPart {
        let is_before = |row: &PrintedRow| marks.get(&row.process).is_none_or(|mark| row.line.n < *mark);
        let rows = self.logs.newest(&asked.run, asked.span, limit, &|row| is_before(row) && keeps(row));
        // Rows about missing lines are always included.
        let rows: Vec<PrintedRow> = rows.into_iter().filter(is_before).collect();
        let (mut bytes, all) = (0, rows.len());
        let fitting = rows.iter().rev().take_while(|row| {
            bytes += size(row);
            bytes <= most
        });
        let first = all - fitting.count();
        let rows = &rows[first..];
        for row in rows {
            let mark = marks.entry(row.process).or_insert(u64::MAX);
            *mark = row.line.n.min(*mark);
        }
        part(rows.to_vec(), &marks, first > 0 || all == limit)
    }

    fn next_lines(
        &self,
        asked: &LinesAsked,
        mut marks: BTreeMap<(i64, u32), u64>,
        (limit, most): (usize, usize),
        keeps: &(dyn Fn(&PrintedRow) -> bool + Sync),
    ) -> LinesPart {
        let (began, mut bytes, mut rows) = (Instant::now(), 0, Vec::new());
        for (row, count) in self.logs.behind(&asked.run, asked.span, &marks.clone()).zip(1..) {
            let kept = row.line.lost > 0 || keeps(&row);
            bytes += if kept { size(&row) } else { 0 };
            if bytes > most || rows.len() == limit || (count % ROWS == 0 && began.elapsed() > PART_TIMEOUT) {
                return part(rows, &marks, true);
            }
            marks.insert(row.process, row.line.n);
            rows.extend(kept.then_some(row));
        }
        part(rows, &marks, false)
    }
}

/// Size of a row in a part, bytes.
fn size(row: &PrintedRow) -> usize {
    serde_json::to_vec(&(row.process.0, row.process.1, &row.line)).map_or(0, |text| text.len() + 1)
}

fn part(rows: Vec<PrintedRow>, marks: &BTreeMap<(i64, u32), u64>, more: bool) -> LinesPart {
    let marks: Vec<LineMark> = marks.iter().map(|((t, pid), n)| (*t, *pid, *n)).collect();
    LinesPart { rows: rows.into_iter().map(|row| (row.process.0, row.process.1, row.line)).collect(), marks, more }
}

#[cfg(test)]
mod tests {
    use super::super::output::RunLogs;
    use super::super::registry::RunRegistryParts;
    use super::*;
    use shared::catalog::{Catalog, cpu};
    use shared::output::{FOLDER, MAX_PART_BYTES, OutputLine, OutputStream};
    use std::path::Path;
    use std::sync::Arc;
    use stream::clock::Manual;
    use stream::store::{Limits, Store};

    /// Two processes whose lines alternate, in files of a hundred lines.
    fn write(folder: &Path, lines: u64) {
        let run = folder.join(FOLDER).join("a");
        std::fs::create_dir_all(&run).expect("made");
        for pid in [7u32, 9] {
            for (number, some) in (1..=lines).collect::<Vec<_>>().chunks(100).enumerate() {
                let line = |n: &u64| {
                    let (t, text) =
                        ((n * 2 + u64::from(pid == 9)) as i64, format!("{pid} line {n} {}", "x".repeat(100)));
                    let line = OutputLine { t, n: *n, stream: OutputStream::Out, text, ..OutputLine::default() };
                    serde_json::to_string(&line).expect("JSON") + "\n"
                };
                let text: String = some.iter().filter(|n| **n != 150).map(line).collect();
                std::fs::write(run.join(format!("1-{pid}.{number}.jsonl")), text).expect("written");
            }
        }
    }

    fn keys(part: &LinesPart) -> Vec<(u32, u64, u64)> {
        part.rows.iter().map(|(_, pid, line)| (*pid, line.n, line.lost)).collect()
    }

    #[test]
    fn parts_one_behind_the_other_are_all_lines_once_in_either_direction() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), 1_000);
        let logs = RunLogs::open(folder.path(), 1);
        let registry = RunRegistry::new(RunRegistryParts { logs, ..RunRegistryParts::default() });
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
        let live = Live::new(store, Arc::new(Manual::at(0, Duration::ZERO)), 1, 60_000);
        for (newest, limit) in [(false, 10_000), (false, 333), (true, 10_000), (true, 333)] {
            let span = (i64::MIN, i64::MAX);
            let mut asked = LinesAsked { run: "a".into(), span, limit, newest, ..LinesAsked::default() };
            let (mut all, mut parts) = (Vec::new(), 0);
            loop {
                let part = registry.lines(&live, &asked, MAX_PART_BYTES);
                assert!(serde_json::to_vec(&part.rows).expect("JSON").len() <= MAX_PART_BYTES + 2);
                parts += 1;
                let own = keys(&part);
                all = if newest { [own, all].concat() } else { [all, own].concat() };
                asked.marks = part.marks;
                if !part.more {
                    break;
                }
            }
            assert!(parts > 2 && parts < 20, "{parts}");
            assert_eq!(all.iter().filter(|(_, _, lost)| *lost == 0).count(), 1_998, "{newest} {limit}");
            assert!(
                all.contains(&(7, 150, 1)) && all.contains(&(9, 150, 1)),
                "what is missing is said: {newest} {limit}"
            );
            let times = all.iter().map(|(pid, n, lost)| n * 2 + 2 * lost + u64::from(*pid == 9));
            assert!(times.is_sorted(), "{newest} {limit}");
        }
        let one = LinesAsked {
            run: "a".into(),
            span: (0, 9),
            process: Some((1, 9)),
            text: "line 3".into(),
            limit: 9,
            ..LinesAsked::default()
        };
        assert_eq!(keys(&registry.lines(&live, &one, MAX_PART_BYTES)), [(9, 3, 0)]);
    }
}
