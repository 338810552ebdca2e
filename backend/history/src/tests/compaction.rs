//! Quarters become hours, whenever the process dies.

use crate::compaction::{self, Merged};
use crate::faults::{Fault, Faulty};
use crate::files::{Append, Content, Disk, Files, Lock, LockError};
use crate::retain::expired;
use crate::segments::{self, Kind, Name, Segment};
use shared::catalog::{Metric, cpu, memory};
use shared::record::Record;
use shared::rollup::roll;
use shared::segment::{Contents, NewColumn, Part, SegmentError, SeriesEntry, SourceEntry, TIER_MS, TickSpan, VERSION};
use shared::series::SeriesId;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const HOUR: i64 = 472_222 * 3_600;

/// Ticks of a source: sequence of the first, times (s after the hour), clock step, and its series.
#[derive(Clone)]
struct Ticks {
    source: &'static str,
    first_seq: u64,
    times: Vec<i64>,
    clock_step: bool,
    ids: Vec<SeriesId>,
}

fn ticks(source: &'static str, first_seq: u64, seconds: impl Iterator<Item = i64>, ids: &[SeriesId]) -> Ticks {
    let times = seconds.map(|s| (HOUR + s) * 1_000).collect();
    Ticks { source, first_seq, times, clock_step: false, ids: ids.to_vec() }
}

/// The value of any series; it has gaps, and identifies the block that it was written in.
fn value(id: SeriesId, t: i64, first_seq: u64) -> f64 {
    match (id, t / 1_000 % 11) {
        (_, 3) => f64::NAN,
        (0, _) => 4.0,
        _ => ((t / 1_000 * i64::from(id + 3)) % 997) as f64 / 100.0 + (first_seq % 7) as f64,
    }
}

fn row(id: SeriesId) -> &'static shared::catalog::MetricDef {
    if id.is_multiple_of(2) { cpu::ROWS[0] } else { memory::ROWS[0] }
}

/// The name of a series in [`samples`].
fn name(id: SeriesId) -> String {
    format!("{} of {id}", row(id).tag)
}

/// Writes blocks as a quarter, with only the rows that its series use.
fn quarter(files: &dyn Files, number: i64, serial: u64, blocks: &[Ticks]) -> io::Result<Arc<Segment>> {
    let name = Name { kind: Kind::Quarter, start: HOUR + number * 900, serial };
    segments::write(files, &Arc::default(), name, |writer| {
        let ids: BTreeSet<SeriesId> = blocks.iter().flat_map(|b| b.ids.iter().copied()).collect();
        let mut rows: Vec<Metric> = Vec::new();
        ids.iter().for_each(|id| {
            if !rows.iter().any(|r| r.tag == row(*id).tag) {
                rows.push(Metric::from(row(*id)));
            }
        });
        let mut sources: Vec<SourceEntry> = Vec::new();
        for Ticks { source, ids, .. } in blocks {
            let at = sources.iter().position(|s| s.name == *source).unwrap_or_else(|| {
                sources.push(SourceEntry {
                    name: (*source).into(),
                    interval: 1_000,
                    facts: vec![],
                    series: Arc::default(),
                });
                sources.len() - 1
            });
            let mut all: BTreeSet<SeriesId> = sources[at].series.iter().map(|s| s.id).collect();
            all.extend(ids);
            let entry = |id: SeriesId| SeriesEntry {
                id,
                row: rows.iter().position(|r| r.tag == row(id).tag).unwrap() as u16,
                instance: id.to_string(),
            };
            sources[at].series = all.into_iter().map(entry).collect();
        }
        for b in blocks {
            let last_seq = if b.first_seq == 0 { 0 } else { b.first_seq + b.times.len() as u64 - 1 };
            let source = sources.iter().position(|s| s.name == b.source).unwrap() as u16;
            let span = TickSpan {
                source,
                first_seq: b.first_seq,
                last_seq,
                times: &b.times,
                clock_step: b.clock_step,
                after_gap: false,
            };
            let columns = b.ids.iter().map(|&id| {
                let values: Vec<f64> = b.times.iter().map(|&t| value(id, t, b.first_seq)).collect();
                NewColumn::new(id, &values, row(id).steps)
            });
            writer.block(span, columns)?;
        }
        Ok(Contents { version: VERSION, rows: rows.into(), sources, log_through: serial, ..Contents::default() })
    })
}

/// Every sample of these segments: source, tag, sequence (none for late ones), time, value.
type Samples = Vec<(String, String, Option<u64>, i64, u64)>;

fn samples<'a>(segments: impl IntoIterator<Item = &'a Arc<Segment>>) -> Samples {
    let mut all = Vec::new();
    for segment in segments {
        let (reader, contents) = (segment.reader(), segment.contents());
        assert_eq!(reader.verify(), []);
        for (i, block) in contents.blocks.iter().enumerate() {
            let source = &contents.sources[usize::from(block.source)];
            let times = reader.times(i).unwrap();
            for entry in reader.entries(i).0 {
                let series = source.series(entry.id).expect("in the dictionary");
                let tag = format!("{} of {}", contents.rows[usize::from(series.row)].tag, series.instance);
                for (n, v) in reader.values(i, &entry).unwrap().into_iter().enumerate().filter(|(_, v)| v.is_finite()) {
                    let seq = (!block.late()).then(|| block.first_seq + n as u64);
                    all.push((source.name.clone(), tag.clone(), seq, times[n], v.to_bits()));
                }
            }
        }
    }
    all.sort();
    all
}

/// Asserts that the tier of every block matches its samples.
fn tiers_hold(segment: &Segment) {
    let reader = segment.reader();
    let mut kept = 0;
    for (i, _) in segment.contents().blocks.iter().enumerate() {
        let times = reader.times(i).unwrap();
        for entry in reader.entries(i).0 {
            let values = reader.values(i, &entry).unwrap();
            let rolled = roll(times.iter().copied().zip(values), TIER_MS);
            let tier = reader.tier(i, entry.id).unwrap().unwrap();
            assert_eq!(rolled.len(), tier.len());
            kept += usize::from(tier.iter().any(|b| b.last.is_nan()));
            for (a, b) in rolled.iter().zip(&tier) {
                assert_eq!((a.t, a.min, a.max, a.count), (b.t, b.min, b.max, b.count));
                assert!((a.mean - b.mean).abs() <= a.mean.abs() * f64::from(f32::EPSILON));
            }
        }
    }
    assert!(kept > 0, "some tiers are kept");
}

fn folder() -> (TempDir, Disk) {
    let temp = TempDir::new().unwrap();
    let disk = Disk::new(temp.path());
    (temp, disk)
}

fn plain_quarters() -> Vec<Vec<Ticks>> {
    (0..4)
        .map(|q| {
            let seconds = || (q * 900..(q + 1) * 900).step_by(15);
            // One series ends at the half hour, another starts; the dictionaries' rows differ with them.
            let ids: &[SeriesId] = if q < 2 { &[0, 2] } else { &[0, 5, 130] };
            vec![ticks("a", 1 + 60 * q as u64, seconds(), ids), ticks("b", 7 + 60 * q as u64, seconds(), &[1, 3])]
        })
        .collect()
}

fn write_all(files: &dyn Files, quarters: &[Vec<Ticks>]) -> Vec<Arc<Segment>> {
    let write = |(q, blocks): (usize, &Vec<Ticks>)| quarter(files, q as i64, q as u64 + 1, blocks).unwrap();
    quarters.iter().enumerate().map(write).collect()
}

fn shape(segment: &Segment) -> Vec<(&str, u64, u64, u32, bool)> {
    let contents = segment.contents();
    let shape = |b: &shared::segment::BlockEntry| (b.source, b.first_seq, b.last_seq, b.ticks, b.clock_step);
    let mut shapes: Vec<_> = contents.blocks.iter().map(shape).collect();
    shapes.sort();
    let named =
        |(s, first, last, ticks, step)| (contents.sources[usize::from(s)].name.as_str(), first, last, ticks, step);
    let mut named: Vec<_> = shapes.into_iter().map(named).collect();
    named.sort();
    named
}

#[test]
fn the_quarters_of_an_hour_become_one_block_a_source() {
    let (_temp, disk) = folder();
    let quarters = write_all(&disk, &plain_quarters());
    let due = compaction::due((HOUR + 3_600) * 1_000, &quarters).expect("four quarters, and the hour is over");
    assert!(compaction::due((HOUR + 3_599) * 1_000, &quarters).is_none());
    let Merged { segment, replaced, damages } = compaction::merge(&disk, &Arc::default(), 5, &due).unwrap();
    assert_eq!((damages.len(), replaced.len(), segment.contents().log_through), (0, 4, 4));
    assert_eq!(segment.name().to_string(), format!("h-{HOUR}-5.seg"));
    assert_eq!(shape(&segment), [("a", 1, 240, 240, false), ("b", 7, 246, 240, false)]);
    assert!(samples([&segment]) == samples(&quarters));
    tiers_hold(&segment);
    // The folder is valid whether or not the quarters are removed already.
    let found = segments::open(&disk, &Arc::default()).unwrap();
    assert_eq!((found.segments.len(), found.leftovers.len(), found.refused.len()), (1, 4, 0));
    segments::remove(&disk, replaced.iter().map(String::as_str)).unwrap();
    let found = segments::open(&disk, &Arc::default()).unwrap();
    assert_eq!((found.segments.len(), found.leftovers.len()), (1, 0));
    assert!(samples(&found.segments) == samples(&quarters), "who holds the quarters still reads them");
}

#[test]
fn a_clock_step_and_missing_ticks_begin_a_block_and_a_restart_does_not() {
    let (_temp, disk) = folder();
    let ids = [2, 3];
    let mut back = ticks("a", 31, (100..400).step_by(10), &ids);
    back.clock_step = true;
    let quarters = [
        // The clock is set back by 200 s in the first quarter.
        vec![ticks("a", 1, (0..300).step_by(10), &ids), back],
        // A restart: an outage, after which the sequence continues. Then ticks 100 to 109 were lost.
        vec![ticks("a", 61, (1_000..1_390).step_by(10), &ids), ticks("a", 110, (1_500..1_600).step_by(10), &ids)],
        // The last ten ticks again, as after a cut whose first try had unknown success.
        vec![ticks("a", 110, (1_500..1_800).step_by(10), &ids)],
    ];
    let quarters = write_all(&disk, &quarters);
    let Merged { segment, .. } = compaction::merge(&disk, &Arc::default(), 9, &quarters).unwrap();
    let expected = [("a", 1, 30, 30, false), ("a", 31, 99, 69, true), ("a", 110, 139, 30, false)];
    assert_eq!(shape(&segment), expected);
    let once: BTreeSet<_> = samples(&quarters).into_iter().collect();
    assert!(samples([&segment]).into_iter().eq(once));
    tiers_hold(&segment);
}

/// A quarter with the records of these numbers.
fn quarter_of_records(files: &dyn Files, serial: u64, numbers: &[u64]) -> Arc<Segment> {
    let record =
        |n: &u64| Record { n: *n, t: HOUR * 1_000 + *n as i64, kind: "logs".into(), body: vec![*n as u8; 40_000] };
    let records: Vec<Record> = numbers.iter().map(record).collect();
    let name = Name { kind: Kind::Quarter, start: HOUR + serial as i64 * 900, serial };
    let source = |name: &str| SourceEntry { name: name.into(), interval: 1_000, facts: vec![], series: Arc::default() };
    segments::write(files, &Arc::default(), name, |writer| {
        writer.records(1, &records)?;
        Ok(Contents { sources: vec![source("other"), source("a")], ..Contents::default() })
    })
    .unwrap()
}

fn numbers(segment: &Segment) -> Vec<u64> {
    let chunks = 0..segment.contents().records.len();
    chunks.flat_map(|at| segment.reader().records(at).unwrap()).map(|record| record.n).collect()
}

#[test]
fn records_are_merged_in_order_and_each_once() {
    let (temp, disk) = folder();
    // The second was repeated after a failure, and has one more then.
    let all: Vec<Vec<u64>> = vec![(1..=4).collect(), (5..=7).collect(), (5..=8).collect(), vec![90, 91, 92]];
    let parts: Vec<_> = (1..).zip(&all).map(|(serial, numbers)| quarter_of_records(&disk, serial, numbers)).collect();
    let Merged { segment, damages, .. } = compaction::merge(&disk, &Arc::default(), 9, &parts).unwrap();
    assert_eq!((numbers(&segment), damages.len()), ((1..=8).chain(90..=92).collect(), 0));
    assert_eq!((segment.contents().blocks.len(), segment.to()), (0, HOUR * 1_000 + 92));
    assert!(expired(HOUR * 1_000 + 92, None, std::slice::from_ref(&segment), |_| 0).is_empty());
    assert_eq!(expired(HOUR * 1_000 + 93, None, std::slice::from_ref(&segment), |_| 0).len(), 1);
    // A damaged chunk is reported, and its records are taken from another part that has them.
    let file = temp.path().join(parts[1].name().to_string());
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(9).position(|w| w == [6; 9]).unwrap();
    bytes[at] = 0;
    std::fs::write(&file, bytes).unwrap();
    std::fs::remove_file(temp.path().join(segment.name().to_string())).unwrap();
    let parts = segments::open(&disk, &Arc::default()).unwrap().segments;
    let Merged { segment, damages, .. } = compaction::merge(&disk, &Arc::default(), 20, &parts).unwrap();
    assert_eq!((numbers(&segment), damages.len()), ((1..=8).chain(90..=92).collect(), 1));
    assert_eq!(damages[0].1.part, Part::Records(5));
}

#[test]
fn late_samples_are_taken_where_there_were_none_and_the_first_wins() {
    let (_temp, disk) = folder();
    let seconds = || 0..60;
    // Series 5 is late as a whole, series 2 fills its gaps and repeats known samples; half of the times have no tick.
    let late = |from: i64| Ticks { first_seq: 0, ..ticks("a", 0, from..from + 60, &[2, 5]) };
    let parts = write_all(&disk, &[vec![ticks("a", 1, seconds(), &[2])], vec![late(30)], vec![late(60)]]);
    let Merged { segment, .. } = compaction::merge(&disk, &Arc::default(), 9, &parts).unwrap();
    assert_eq!(shape(&segment), [("a", 0, 0, 60, false), ("a", 1, 60, 60, false)]);
    let mut expected: BTreeMap<(String, i64), u64> = BTreeMap::new();
    for part in &parts {
        for (_, tag, _, t, v) in samples([part]) {
            expected.entry((tag, t)).or_insert(v);
        }
    }
    let read = samples([&segment]);
    assert_eq!(read.len(), expected.len());
    assert!(read.into_iter().all(|(_, tag, _, t, v)| expected[&(tag, t)] == v));
    // A quarter written after the hour was merged is merged into it.
    let again = quarter(&disk, 3, 10, &[ticks("a", 61, 200..260, &[2])]).unwrap();
    let both = [segment.clone(), again];
    assert!(compaction::due((HOUR + 3_600) * 1_000, &both).is_none());
    let due = compaction::due((HOUR + 3_720) * 1_000, &both).expect("its grace is over");
    let merged = compaction::merge(&disk, &Arc::default(), 11, &due).unwrap();
    assert!(samples([&merged.segment]) == samples(&both));
    assert!(parts.iter().all(|part| merged.replaced.contains(&part.name().to_string())), "what they replaced, too");
}

#[test]
fn a_damaged_column_is_left_out_and_named() {
    let (temp, disk) = folder();
    let quarters = plain_quarters();
    let sound = write_all(&disk, &quarters);
    let file = temp.path().join(sound[1].name().to_string());
    let entry = sound[1].reader().entry(0, 2).unwrap().unwrap();
    let column = sound[1].reader().read(0, &entry).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(column.len()).position(|w| w == column).unwrap();
    bytes[at + column.len() / 2] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    let found = segments::open(&disk, &Arc::default()).unwrap();
    let Merged { segment, damages, .. } = compaction::merge(&disk, &Arc::default(), 9, &found.segments).unwrap();
    assert_eq!(damages.len(), 1);
    assert_eq!((damages[0].0.as_str(), damages[0].1.part), (sound[1].name().to_string().as_str(), Part::Column(2)));
    let tag = name(2);
    let lost =
        |(_, t, seq, ..): &(String, String, Option<u64>, i64, u64)| *t == tag && (61..=120).contains(&seq.unwrap());
    let mut expected = samples(&sound[..1]);
    expected.extend(samples(&sound[2..]));
    let mut second = Vec::new();
    // The file is shared with `sound`, so its expected content comes from the ticks.
    for b in &quarters[1] {
        for &id in &b.ids {
            for (n, &t) in b.times.iter().enumerate() {
                let v = value(id, t, b.first_seq);
                if v.is_finite() {
                    second.push((b.source.to_string(), name(id), Some(b.first_seq + n as u64), t, v.to_bits()));
                }
            }
        }
    }
    expected.extend(second.into_iter().filter(|s| s.0 != "a" || !lost(s)));
    expected.sort();
    assert!(samples([&segment]) == expected);
}

/// A folder whose files are temporarily unreadable, except for the parts read when they were opened.
struct Unread(Disk, Arc<AtomicBool>);

struct UnreadContent(Arc<dyn Content>, Arc<AtomicBool>);

impl Content for UnreadContent {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        if self.1.load(Ordering::Relaxed) {
            Err(io::Error::other("input/output error"))
        } else {
            self.0.read_at(offset, len)
        }
    }
}

impl Files for Unread {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn Content>> {
        Ok(Arc::new(UnreadContent(self.0.open(name)?, self.1.clone())))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn Append>> {
        self.0.create(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn sync_folder(&self) -> io::Result<()> {
        self.0.sync_folder()
    }
    fn free(&self) -> io::Result<u64> {
        self.0.free()
    }
    fn lock(&self) -> Result<Arc<dyn Lock>, LockError> {
        self.0.lock()
    }
}

#[test]
fn what_cannot_be_read_now_is_not_taken_for_lost() {
    let (temp, disk) = folder();
    let fails = Arc::new(AtomicBool::new(false));
    let files = Unread(disk, fails.clone());
    let quarters = write_all(&files, &plain_quarters());
    fails.store(true, Ordering::Relaxed);
    let error = compaction::merge(&files, &Arc::default(), 5, &quarters).err().expect("nothing can be read");
    assert_eq!(compaction::unread(&error), Some(quarters[0].name()), "{error}");
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 4, "nothing half-done stays");
    fails.store(false, Ordering::Relaxed);
    let merged = compaction::merge(&files, &Arc::default(), 6, &quarters).unwrap();
    assert!(merged.damages.is_empty() && samples([&merged.segment]) == samples(&quarters));
}

#[test]
fn an_hour_that_was_merged_twice_counts_once() {
    let (_temp, disk) = folder();
    let quarters = write_all(&disk, &plain_quarters());
    compaction::merge(&disk, &Arc::default(), 5, &quarters).unwrap();
    let again = compaction::merge(&disk, &Arc::default(), 6, &quarters).unwrap();
    let found = segments::open(&disk, &Arc::default()).unwrap();
    assert_eq!(found.segments.iter().map(|s| s.name().serial).collect::<Vec<_>>(), [6]);
    assert_eq!(found.leftovers.len(), 5);
    assert!(samples(&found.segments) == samples([&again.segment]));
}

#[test]
fn other_files_are_left_alone() {
    let (temp, disk) = folder();
    let segment = &write_all(&disk, &plain_quarters()[..1])[0];
    for name in ["q-1-2.seg.tmp", "h-5-01.seg", "q-x-1.seg", "notes.tmp", "log-1"] {
        std::fs::write(temp.path().join(name), b"mine").unwrap();
    }
    std::fs::write(temp.path().join("q-900-9.seg"), b"WGseg").unwrap();
    let found = segments::open(&disk, &Arc::default()).unwrap();
    assert_eq!(found.leftovers, ["q-1-2.seg.tmp"]);
    assert_eq!(found.refused, [("q-900-9.seg".to_string(), SegmentError::NotASegment)]);
    assert_eq!(found.segments.iter().map(|s| s.name()).collect::<Vec<_>>(), [segment.name()]);
}

/// Writes two quarters, merges, removes. Returns the data that was durable before the first error, and whether all was
/// done.
fn seal_and_merge(files: &dyn Files, serial: &mut u64) -> (Vec<Arc<Segment>>, bool) {
    let mut next = || {
        *serial += 1;
        *serial
    };
    let mut live = Vec::new();
    for (q, blocks) in plain_quarters()[..2].iter().enumerate() {
        match quarter(files, q as i64, next(), blocks) {
            Ok(segment) => live.push(segment),
            Err(_) => return (live, false),
        }
    }
    let Ok(Merged { segment, replaced, .. }) = compaction::merge(files, &Arc::default(), next(), &live) else {
        return (live, false);
    };
    let removed = segments::remove(files, replaced.iter().map(String::as_str)).is_ok();
    (vec![segment], removed)
}

#[test]
fn a_crash_between_any_two_steps_leaves_every_sample_once() {
    let operations = {
        let (_temp, disk) = folder();
        let faulty = Faulty::new(Arc::new(disk));
        assert!(seal_and_merge(&faulty, &mut 0).1);
        faulty.operations().len()
    };
    assert!(operations > 15, "{operations}");
    for fault in [Fault::Kill, Fault::PowerCut, Fault::Io, Fault::Full] {
        for n in 0..operations {
            let (_temp, disk) = folder();
            let faulty = Faulty::new(Arc::new(disk.clone()));
            faulty.fail(n, fault);
            let mut serial = 0;
            let (durable, done) = seal_and_merge(&faulty, &mut serial);
            let durable = samples(&durable);
            assert!(!done || fault == Fault::Full, "{fault:?} at {n}");
            let found = segments::open(&disk, &Arc::default()).unwrap();
            assert!(found.refused.is_empty(), "{fault:?} at {n}: {:?}", found.refused);
            segments::remove(&disk, found.leftovers.iter().map(String::as_str)).unwrap();
            // A quarter whose folder was not synced in time may exist all the same: the log has it, too.
            let read = samples(&found.segments);
            assert!(durable.iter().all(|s| read.binary_search(s).is_ok()), "{fault:?} at {n}");
            let once: BTreeSet<_> = read.iter().cloned().collect();
            assert_eq!(once.len(), read.len(), "{fault:?} at {n}");
            assert!(segments::open(&disk, &Arc::default()).unwrap().leftovers.is_empty());
            // Merging the segments found gives the same result.
            if !found.segments.is_empty() {
                let merged = compaction::merge(&disk, &Arc::default(), serial + 1, &found.segments).unwrap();
                assert!(samples([&merged.segment]) == read);
            }
        }
    }
}

#[test]
fn what_is_too_old_or_too_much_goes_as_whole_files() {
    let (temp, disk) = folder();
    let hours: Vec<Arc<Segment>> = (0..6)
        .map(|h| {
            let name = Name { kind: Kind::Quarter, start: HOUR + h * 3_600, serial: h as u64 + 1 };
            let block = ticks("a", 1 + 60 * h as u64, (h * 3_600..(h + 1) * 3_600).step_by(60), &[2]);
            quarter(&disk, h * 4, name.serial, &[block]).unwrap()
        })
        .collect();
    let now = (HOUR + 6 * 3_600) * 1_000;
    let expired = |bytes| expired(now, bytes, &hours, |_| 4 * 3_600_000);
    let go = |bytes| expired(bytes).iter().map(|s| s.name().serial).collect::<Vec<_>>();
    assert_eq!(go(None), [1, 2]);
    assert_eq!(go(Some(hours[5].bytes() * 5 / 2)), [1, 2, 3, 4]);
    let gone = expired(None);
    let names: Vec<String> = gone.iter().map(|s| s.name().to_string()).collect();
    segments::remove(&disk, names.iter().map(String::as_str)).unwrap();
    segments::remove(&disk, names.iter().map(String::as_str)).unwrap();
    assert_eq!(segments::open(&disk, &Arc::default()).unwrap().segments.len(), 4);
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 4);
}
