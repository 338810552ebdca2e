//! Written data is read back; damage or truncation costs little and never gives a wrong value.

use super::entry::Blob;
use super::*;
use crate::catalog::VOCABULARY;
use crate::column;
use crate::record::Record;
use crate::rollup::roll;
use proptest::prelude::*;

const T0: i64 = 1_700_000_040_000;

/// One block: source, sequences, times and, per series, values.
#[derive(Clone, Debug)]
struct Plain {
    source: u16,
    first_seq: u64,
    times: Vec<i64>,
    columns: Vec<(SeriesId, Vec<f64>)>,
}

fn contents(blocks: &[Plain], sources: u16) -> Contents {
    let rows: Vec<Metric> = VOCABULARY[0].iter().take(3).map(|def| Metric::from(*def)).collect();
    let source = |n: u16| {
        let ids = blocks.iter().filter(|b| b.source == n).flat_map(|b| b.columns.iter().map(|(id, _)| *id));
        let ids: std::collections::BTreeSet<SeriesId> = ids.collect();
        let series = ids.into_iter().map(|id| SeriesEntry { id, row: (id % 3) as u16, instance: format!("é{id}") });
        SourceEntry {
            name: format!("host-{n}"),
            interval: 1_000,
            facts: vec![("os".into(), "Linux".into())],
            series: series.collect(),
        }
    };
    Contents {
        version: VERSION,
        rows: rows.into(),
        charts: vec![Chart { id: "c".into(), title: "C".into(), section: "s".into() }],
        sources: (0..sources).map(source).collect(),
        log_through: 7,
        replaces: vec!["q-1-2.seg".into()],
        about: vec![("title".into(), "Night span".into())],
        ..Contents::default()
    }
}

fn write(blocks: &[Plain], sources: u16, tiers: bool) -> Vec<u8> {
    let contents = contents(blocks, sources);
    let mut writer = Writer::begin(Vec::new()).expect("memory");
    writer.opening(&contents).expect("memory");
    for Plain { source, first_seq, times, columns } in blocks {
        let last_seq = first_seq + times.len() as u64 - 1;
        let span = TickSpan {
            source: *source,
            first_seq: *first_seq,
            last_seq,
            times,
            clock_step: *source == 1,
            after_gap: *first_seq % 2 == 1,
        };
        let columns = columns.iter().map(|(id, values)| {
            let steps = f64::from(*id % 2) * 100.0;
            if tiers { NewColumn::with_tier(*id, times, values, steps) } else { NewColumn::new(*id, values, steps) }
        });
        writer.block(span, columns).expect("sound blocks");
    }
    writer.finish(&contents).expect("memory")
}

const TICKS: i64 = 40;

/// Two blocks; the second has more than one group of series in its index.
fn small(tiers: bool) -> (Vec<Plain>, Vec<u8>) {
    let block = |b: u16| {
        let times = (0..TICKS).map(|i| T0 + i64::from(b) * 200_000 + i * 3_000 + i % 7).collect();
        let value = |id: u32, i: i64| match id {
            1 if i < 10 => f64::NAN,
            ..9 => (i * i * (i64::from(id) + 3) % 97) as f64 / 100.0,
            _ => 5.0,
        };
        let ids = (0..3).chain([9, 70]).chain(100..if b == 1 { 161 } else { 100 });
        let columns = ids.map(|id| (id, (0..TICKS).map(|i| value(id, i)).collect())).collect();
        Plain { source: b % 2, first_seq: 1 + 90 * u64::from(b), times, columns }
    };
    let blocks: Vec<Plain> = (0..2).map(block).collect();
    let bytes = write(&blocks, 2, tiers);
    (blocks, bytes)
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || (!a.is_finite() && b.is_nan()))
}

/// Checks that a block has the written values, decoded.
fn holds(reader: &Reader<&[u8]>, block: usize, plain: &Plain) {
    assert_eq!(reader.times(block), Ok(plain.times.clone()));
    for (id, values) in &plain.columns {
        let Some(entry) = reader.entry(block, *id).expect("sound") else {
            assert!(values.iter().all(|v| !v.is_finite()));
            continue;
        };
        assert!(same(values, &reader.values(block, &entry).expect("sound")));
        tier_holds(reader, block, plain, *id);
    }
}

fn tier_holds(reader: &Reader<&[u8]>, block: usize, plain: &Plain, id: SeriesId) {
    let (_, values) = plain.columns.iter().find(|(i, _)| *i == id).expect("a series of the block");
    let rolled = roll(plain.times.iter().copied().zip(values.iter().copied()), TIER_MS);
    let tier = reader.tier(block, id).expect("made of the column where it is damaged").expect("samples");
    let parts = |b: &crate::rollup::Bucket| (b.t, b.min, b.max, b.count);
    assert!(rolled.iter().map(parts).eq(tier.iter().map(parts)));
}

/// Bytes of a part of a block.
type Bytes = (usize, Part, Vec<u8>);

/// All readable parts of a segment, as they are in the file.
fn parts(reader: &Reader<&[u8]>) -> (Vec<Bytes>, Vec<Damage>) {
    let (mut parts, mut damages) = (Vec::new(), Vec::new());
    let mut take = |block, part, read: Result<Vec<u8>, Damage>| match read {
        Ok(bytes) => parts.push((block, part, bytes)),
        Err(damage) => damages.push(damage),
    };
    for block in 0..reader.contents().blocks.len() {
        take(block, Part::Times, reader.times_bytes(block));
        let (entries, index) = reader.entries(block);
        index.into_iter().for_each(|damage| take(block, damage.part, Err(damage.clone())));
        for entry in entries {
            take(block, Part::Column(entry.id), reader.read(block, &entry));
        }
    }
    (parts, damages)
}

fn blocks() -> impl Strategy<Value = Vec<Plain>> {
    let column = |ticks: usize| {
        let value = prop_oneof![
            2 => Just(f64::NAN),
            4 => (0..10_000i32).prop_map(|k| f64::from(k) / 100.0),
            1 => any::<f64>(),
        ];
        prop_oneof![prop::collection::vec(value, ticks), (0..5i32).prop_map(move |k| vec![f64::from(k); ticks])]
    };
    let block = (0u16..3, 0u64..1 << 40, prop::collection::vec(1i64..100_000, 1..40)).prop_flat_map(
        move |(source, seq, waits)| {
            let ids = prop::collection::btree_set(0u32..400, 0..90);
            let ticks = waits.len();
            ids.prop_flat_map(move |ids| {
                let columns = ids.into_iter().map(move |id| column(ticks).prop_map(move |values| (id, values)));
                columns.collect::<Vec<_>>()
            })
            .prop_map(move |columns| {
                let mut t = T0;
                let mut next = |wait: &i64| {
                    t += wait;
                    t
                };
                Plain { source, first_seq: 1 + seq, times: waits.iter().map(&mut next).collect(), columns }
            })
        },
    );
    prop::collection::vec(block, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read(blocks in blocks(), tiers: bool) {
        let bytes = write(&blocks, 3, tiers);
        let reader = Reader::open(bytes.as_slice()).expect("a segment");
        let (read, written) = (reader.contents(), contents(&blocks, 3));
        prop_assert_eq!(Contents { blocks: vec![], ..read.clone() }, written);
        prop_assert_eq!(read.blocks.len(), blocks.len());
        prop_assert_eq!(reader.verify(), vec![]);
        for (i, plain) in blocks.iter().enumerate() {
            let entry = &read.blocks[i];
            prop_assert_eq!((entry.source, entry.first_seq, entry.ticks as usize), (plain.source, plain.first_seq, plain.times.len()));
            prop_assert_eq!((entry.from, entry.to), (plain.times[0], plain.times[plain.times.len() - 1]));
            prop_assert_eq!((entry.clock_step, entry.after_gap), (plain.source == 1, plain.first_seq % 2 == 1));
            holds(&reader, i, plain);
            let with_samples = plain.columns.iter().filter(|(_, values)| values.iter().any(|v| v.is_finite()));
            let (entries, _) = reader.entries(i);
            prop_assert_eq!(entries.iter().map(|e| e.id).collect::<Vec<_>>(), with_samples.clone().map(|(id, _)| *id).collect::<Vec<_>>());
            let samples = plain.columns.iter().flat_map(|(_, values)| values).filter(|v| v.is_finite()).count();
            prop_assert_eq!(entry.samples, samples as u64);
            for (id, values) in with_samples {
                let at = |found: Option<usize>| plain.times[found.expect("a sample")];
                let span = (at(values.iter().position(|v| v.is_finite())), at(values.iter().rposition(|v| v.is_finite())));
                prop_assert_eq!(reader.span(i, *id), Ok(Some(span)));
                let steps = f64::from(*id % 2) * 100.0;
                prop_assert_eq!(reader.column(i, *id), Ok(Some(column::encode(values, steps))));
            }
            prop_assert_eq!(reader.entry(i, 1_000), Ok(None));
        }
    }

    #[test]
    fn any_bytes_are_refused_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), sign: bool) {
        let mut bytes = bytes;
        let known = &mut Dictionaries::default();
        let _ = directory::decode(&bytes, known);
        if let Some(entry) = RecordsEntry::take(&mut bytes.as_slice(), 0) {
            let _ = entry.records(&bytes);
        }
        if let Some(block) = BlockEntry::take(&mut bytes.as_slice(), 0) {
            let _ = ColumnEntry::take_each(&bytes, (block.from, block.to), 0, 0..u64::MAX).count();
        }
        if sign {
            bytes = [chunk::header(), bytes, chunk::trailer([12, 40]), chunk::trailer([12, 40])].concat();
        }
        prop_assert!(Reader::open(bytes.as_slice()).is_err());
        prop_assert!(Reader::rescue(bytes.as_slice()).is_err());
    }
}

/// Positions of the tiers: block, series, bytes.
fn tiers_of(reader: &Reader<&[u8]>) -> Vec<(usize, SeriesId, std::ops::Range<u64>)> {
    let mut tiers = Vec::new();
    for block in 0..reader.contents().blocks.len() {
        for entry in reader.entries(block).0 {
            let from = entry.offset + entry.raw.len;
            tiers.extend(entry.tier.map(|tier| (block, entry.id, from..from + tier.len)));
        }
    }
    tiers
}

/// Flips a bit of every byte: the readable part equals the written one, and little is unreadable.
fn flip_every_byte(tiers: bool) {
    let (blocks, bytes) = small(tiers);
    let whole = Reader::open(bytes.as_slice()).expect("sound");
    let tiers_at = tiers_of(&whole);
    let (whole, _) = parts(&whole);
    let mut seen = [0; 2];
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        let reader = Reader::open(bytes.as_slice()).expect("one of two directories is sound");
        let (read, damages) = parts(&reader);
        let mut rest = whole.iter();
        assert!(read.iter().all(|part| rest.any(|p| p == part)), "byte {at}");
        let lost = whole.len() - read.len();
        match damages.as_slice() {
            [] => assert_eq!(lost, 0, "byte {at}"),
            [Damage { part: Part::Column(_), .. }] => {
                seen[0] += 1;
                assert_eq!(lost, 1, "byte {at}");
            }
            more => panic!("byte {at}: {more:?}"),
        }
        // A tier's damage costs nothing: the buckets are computed from the column. It is found when everything is read.
        if let Some((block, id, _)) = tiers_at.iter().find(|(_, _, bytes)| bytes.contains(&(at as u64))) {
            seen[1] += 1;
            tier_holds(&reader, *block, &blocks[*block], *id);
            let found = reader.verify();
            assert!(found.len() == 1 && found[0].part == Part::Tier(*id), "{found:?}");
        }
    }
    assert!(seen[0] > 0 && (seen[1] > 0) == tiers, "{seen:?}");
}

#[test]
fn a_flipped_byte_of_a_quarter_costs_one_column_at_most() {
    flip_every_byte(false);
}

#[test]
fn a_flipped_byte_of_an_hour_costs_one_column_at_most() {
    flip_every_byte(true);
}

#[test]
fn two_flipped_bytes_of_times_or_index_cost_what_hangs_on_them_and_no_value_is_wrong() {
    let (_, bytes) = small(true);
    let whole = Reader::open(bytes.as_slice()).expect("sound");
    let (all, _) = parts(&whole);
    let mut seen = [0; 2];
    for block in &whole.contents().blocks {
        let (index, columns) = block.places().next().expect("a group");
        for at in block.offset as usize..columns as usize - 1 {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            bad[at + 1] ^= 0x03;
            let reader = Reader::open(bad.as_slice()).expect("sound directories");
            let (read, damages) = parts(&reader);
            let mut rest = all.iter();
            assert!(read.iter().all(|part| rest.any(|p| p == part)), "byte {at}");
            for damage in damages {
                seen[usize::from(damage.part != Part::Times)] += 1;
                assert!(matches!(damage.part, Part::Times | Part::Index(_)), "{damage}");
            }
            assert!(all.len() - read.len() <= if (at as u64) + 1 < index { 1 } else { 64 });
        }
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn a_cut_file_is_refused_and_a_recording_gives_every_column_that_is_whole() {
    let (_, bytes) = small(true);
    let sound = Reader::open(bytes.as_slice()).expect("sound");
    // Block, series, and the end of its column.
    let mut ends = Vec::new();
    for block in 0..sound.contents().blocks.len() {
        ends.extend(sound.entries(block).0.iter().map(|entry| (block, entry.id, entry.offset + entry.raw.len)));
    }
    let mut rescued = 0;
    for cut in 0..bytes.len() {
        // Without its last trailer a segment is whole: the one before has the same content.
        let whole = cut as u64 == bytes.len() as u64 - chunk::TRAILER;
        let bytes = &bytes[..cut];
        match Reader::open(bytes) {
            Ok(_) => assert!(whole, "cut at {cut}"),
            Err(error) => assert!(!whole && matches!(error, SegmentError::Incomplete | SegmentError::NotASegment)),
        }
        if whole {
            continue;
        }
        let Ok(reader) = Reader::rescue(bytes) else {
            assert!(rescued == 0 && (cut as u64) < ends[0].2, "cut at {cut}");
            continue;
        };
        assert!(!reader.complete());
        let (read, damages) = parts(&reader);
        let read: Vec<_> = read
            .iter()
            .filter_map(|(block, part, bytes)| {
                Some((
                    *block,
                    match part {
                        Part::Column(id) => *id,
                        _ => return None,
                    },
                    bytes,
                ))
            })
            .collect();
        let expected = ends.iter().filter(|(.., end)| *end <= cut as u64);
        assert!(
            read.iter().map(|(block, id, _)| (*block, *id)).eq(expected.map(|(b, id, _)| (*b, *id))),
            "cut at {cut}"
        );
        assert!(
            read.iter().all(|(block, id, bytes)| sound.column(*block, *id).as_ref() == Ok(&Some((*bytes).clone())))
        );
        assert!(damages.iter().all(|damage| damage.io.is_some()), "what is missing is not damaged");
        rescued = read.len();
    }
    assert_eq!(rescued, ends.len());
    assert!(Reader::rescue(bytes.as_slice()).expect("sound").complete());
}

#[test]
fn behind_a_damaged_head_the_next_block_is_found() {
    let (blocks, bytes) = small(false);
    let sound = Reader::open(bytes.as_slice()).expect("sound");
    let first = sound.contents().blocks[0].offset as usize;
    let end = sound.contents().blocks[1].offset + sound.contents().blocks[1].len().expect("a length");
    for at in first - 30..first {
        let mut bad = bytes[..end as usize].to_vec();
        bad[at] ^= 0x21;
        let reader = Reader::rescue(bad.as_slice()).expect("its opening is sound");
        assert_eq!(reader.contents().blocks, sound.contents().blocks[1..], "byte {at}");
        holds(&reader, 0, &blocks[1]);
    }
}

/// Bytes that count how many of them are read.
struct Counted<'a>(&'a [u8], std::cell::Cell<u64>);

impl ReadAt for Counted<'_> {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.1.set(self.1.get() + len as u64);
        self.0.read_at(offset, len)
    }
}

#[test]
fn four_times_the_bytes_of_a_crafted_file_are_four_times_the_work() {
    let opening = chunk::chunk(chunk::OPENING, &directory::encode(&contents(&[], 1), &[], &[]), 0);
    // The front of a block with a head of 8 KiB, again and again; sound chunks of no meaning between damaged ones.
    let front = [&b"B"[..], &[0, 0x20, 0, 0], &[0; 8]].concat();
    let sound = [chunk::chunk(b'x', &[], 0), b"BBBB".to_vec()].concat();
    for pattern in [&front, &sound, &b"B".to_vec(), &b"BD\0\x01\0\0\0".to_vec()] {
        let work = |len: usize| {
            let fill: Vec<u8> = pattern.iter().copied().cycle().take(len).collect();
            let bytes = [&chunk::header()[..], &opening, &fill].concat();
            let counted = Counted(&bytes, std::cell::Cell::new(0));
            let blocks = Reader::rescue(&counted).expect("an opening").contents().blocks.len();
            assert_eq!(blocks, 0);
            counted.1.get()
        };
        let (once, four) = (work(50_000), work(200_000));
        assert!(four <= 5 * once && once <= 40 * 50_000, "{once} and {four} bytes read for {pattern:?}");
    }
}

#[test]
fn blocks_that_an_opening_names_are_none() {
    let (_, bytes) = small(false);
    let read = Reader::open(bytes.as_slice()).expect("sound").contents().clone();
    let opening = chunk::chunk(chunk::OPENING, &directory::encode(&read, &read.blocks, &read.records), 0);
    let bytes = [&chunk::header()[..], &opening].concat();
    assert_eq!(Reader::rescue(bytes.as_slice()).expect("an opening").contents().blocks, []);
}

#[test]
fn a_directory_that_names_bytes_twice_is_none() {
    let (_, bytes) = small(false);
    let mut read = Reader::open(bytes.as_slice()).expect("sound").contents().clone();
    assert!(reader::fit(&read, bytes.size()));
    read.blocks[1].offset = read.blocks[0].offset;
    assert!(!reader::fit(&read, bytes.size()));
    // Columns do not reach out of their group either.
    let (block, column) = (&read.blocks[0], Blob { len: 900, crc: 0 });
    let mut index = Vec::new();
    ColumnEntry { id: 3, first: block.from, last: block.to, offset: 0, raw: column, tier: None }.put(
        &mut index,
        3,
        (block.from, block.to),
    );
    let taken = |end| ColumnEntry::take_each(&index, (block.from, block.to), 3, 100..end).next().flatten();
    assert!(taken(1_000).is_some() && taken(999).is_none());
}

#[test]
fn version_1_is_read_on() {
    let (_, bytes) = small(true);
    let reader = Reader::open(bytes.as_slice()).expect("sound");
    let (whole, contents) = (parts(&reader).0, reader.contents().clone());
    let [first, _] = chunk::directories(&bytes.as_slice()).expect("sound").expect("a trailer");
    // Version 1 lacks the list of records, and has its own number in the header and in both trailers.
    let mut directory = directory::encode(&contents, &contents.blocks, &[]);
    assert_eq!(directory.pop(), Some(0));
    let directory = chunk::chunk(chunk::DIRECTORY, &directory, 0);
    let older = |mut part: Vec<u8>, at: usize| {
        part[at..at + 2].copy_from_slice(&1u16.to_le_bytes());
        part.truncate(part.len() - 4);
        let crc = crate::crc32c::crc32c(&part);
        [part, crc.to_le_bytes().to_vec()].concat()
    };
    let trailer = older(chunk::trailer([first, first + directory.len() as u64]), 16);
    let sealed = &bytes[chunk::HEADER as usize..first as usize];
    let old = [&older(chunk::header(), 6)[..], sealed, &directory, &directory, &trailer, &trailer].concat();
    let reader = Reader::open(old.as_slice()).expect("an older version");
    assert_eq!((parts(&reader).0, reader.contents()), (whole, &contents));
}

/// Records of two sources in chunks of their own, between two blocks of ticks.
fn with_records() -> (Vec<Record>, Vec<u8>) {
    let record = |n: u64| Record {
        n: 2_000_000_000 + n * n,
        t: T0 - 500 * n as i64,
        kind: ["marker", "run.begin", "of a later version"][n as usize % 3].into(),
        body: vec![n as u8; n as usize * 7 % 60],
    };
    let records: Vec<Record> = (0..9).map(record).collect();
    let column = || NewColumn::new(1, &[1.0, 2.0], 1.0);
    let span = |first_seq| TickSpan { source: 0, first_seq, last_seq: first_seq + 1, times: &[1, 2], ..SPAN };
    let plain = [Plain { source: 0, first_seq: 1, times: vec![1, 2], columns: vec![(1, vec![1.0, 2.0])] }];
    let contents = contents(&plain, 2);
    let mut writer = Writer::begin(Vec::new()).expect("memory");
    writer.opening(&contents).expect("memory");
    writer.block(span(1), [column()]).expect("sound");
    for part in [&records[..3], &records[3..4], &records[4..]] {
        writer.records(1, part).expect("they rise");
    }
    writer.block(span(3), [column()]).expect("sound");
    assert!(writer.records(0, &[records[1].clone(), records[0].clone()]).is_err());
    (records, writer.finish(&contents).expect("memory"))
}

const SPAN: TickSpan<'static> =
    TickSpan { source: 0, first_seq: 1, last_seq: 2, times: &[], clock_step: false, after_gap: false };

/// The readable records, and the damage.
fn records_of(reader: &Reader<&[u8]>) -> (Vec<Record>, Vec<Damage>) {
    let (mut records, mut damages) = (Vec::new(), Vec::new());
    for at in 0..reader.contents().records.len() {
        match reader.records(at) {
            Ok(more) => records.extend(more),
            Err(damage) => damages.push(damage),
        }
    }
    (records, damages)
}

#[test]
fn records_come_back_and_a_flipped_byte_costs_one_chunk_of_them_at_most() {
    let (records, bytes) = with_records();
    let reader = Reader::open(bytes.as_slice()).expect("sound");
    assert_eq!(records_of(&reader), (records.clone(), vec![]));
    let times = |entry: &RecordsEntry| (entry.source, entry.count, entry.from, entry.to);
    assert_eq!(reader.contents().records.iter().map(times).next(), Some((1, 3, T0 - 1_000, T0)));
    let mut lost = 0;
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        let reader = Reader::open(bad.as_slice()).expect("one of two directories is sound");
        let (read, damages) = records_of(&reader);
        assert!(read.iter().all(|record| records.contains(record)), "byte {at}");
        assert!(damages.len() <= 1 && records.len() - read.len() <= 5, "byte {at}");
        assert_eq!(damages.is_empty(), read.len() == records.len(), "byte {at}");
        lost += damages.len();
    }
    assert!(lost > 100, "{lost}");
    // A truncated file keeps the chunks before the cut.
    for cut in 0..bytes.len() {
        let Ok(reader) = Reader::rescue(&bytes[..cut]) else { continue };
        let (read, _) = records_of(&reader);
        assert!([0, 3, 4, 9].contains(&read.len()) && read[..] == records[..read.len()], "cut at {cut}");
    }
}

#[test]
fn many_records_are_many_chunks() {
    let record = |n| Record { n, t: T0, kind: "logs".into(), body: vec![1; 30_000] };
    let records: Vec<Record> = (1..8).map(record).collect();
    let mut writer = Writer::begin(Vec::new()).expect("memory");
    writer.records(0, &records).expect("they rise");
    let bytes = writer.finish(&contents(&[], 1)).expect("memory");
    let reader = Reader::open(bytes.as_slice()).expect("sound");
    assert_eq!(reader.contents().records.iter().map(|r| r.count).collect::<Vec<_>>(), [3, 3, 1]);
    assert_eq!(records_of(&reader), (records, vec![]));
}

#[test]
fn a_newer_version_is_refused_by_its_number() {
    let (_, mut bytes) = small(false);
    let newer = SegmentError::Newer { version: VERSION + 1 };
    let crc = {
        bytes[6] += 1;
        crate::crc32c::crc32c(&bytes[..8])
    };
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(Reader::open(bytes.as_slice()).map(drop), Err(newer));
    assert_eq!(Reader::open(&b"PK\x03\x04 and so on, for a while"[..]).map(drop), Err(SegmentError::NotASegment));
    assert_eq!(Reader::open(&b""[..]).map(drop), Err(SegmentError::NotASegment));
}

#[test]
fn what_cannot_be_read_again_is_not_written() {
    let column = |id| NewColumn::new(id, &[1.0, 2.0], 1.0);
    let span = |times| TickSpan { source: 0, first_seq: 1, last_seq: 2, times, clock_step: false, after_gap: false };
    let write = |times, columns: Vec<NewColumn>| {
        let mut writer = Writer::begin(Vec::new())?;
        writer.block(span(times), columns)?;
        writer.finish(&contents(&[], 1))
    };
    let kind = |result: io::Result<Vec<u8>>| result.map(drop).map_err(|e| e.kind());
    let refused = Err(io::ErrorKind::InvalidInput);
    assert_eq!(kind(write(&[1, 2], vec![column(1), column(2)])), Ok(()));
    assert_eq!(kind(write(&[], vec![])), refused);
    assert_eq!(kind(write(&[2, 2], vec![column(1)])), refused);
    assert_eq!(kind(write(&[1, 2], vec![column(2), column(2)])), refused);
    assert_eq!(kind(write(&[1, 2, 3], vec![NewColumn { id: 1, raw: vec![9], tier: None }])), refused);
    let mut writer = Writer::begin(Vec::new()).expect("memory");
    writer.block(span(&[1, 2]), [column(1)]).expect("sound");
    assert_eq!(kind(writer.finish(&contents(&[], 0))), refused);
}

#[test]
fn equal_rows_and_dictionaries_are_kept_once() {
    let (_, bytes) = small(false);
    let known = &mut Dictionaries::default();
    let mut open = || Reader::open_with(bytes.as_slice(), known).expect("sound");
    let (a, b) = (open(), open());
    assert!(Arc::ptr_eq(&a.contents().rows, &b.contents().rows));
    assert!(Arc::ptr_eq(&a.contents().sources[1].series, &b.contents().sources[1].series));
}
