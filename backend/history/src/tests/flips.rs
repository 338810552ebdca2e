//! A log with changed bytes.

use super::owner::Owner;
use crate::log::{self, Entry, Table};
use crate::replay::Replay;
use crate::{Found, Report};
use shared::catalog::{Draw, Kind, Metric, Range};
use shared::record::Record;
use shared::unit::Unit;
use std::collections::BTreeSet;

fn replay(bytes: &[u8]) -> Found {
    let mut replay = Replay::default();
    replay.log("log-1", bytes);
    replay.finish()
}

/// Offsets where a record ends, and the sequences before it, by source.
fn ends(bytes: &[u8]) -> Vec<(usize, Vec<BTreeSet<u64>>)> {
    let (records, gaps) = log::scan(bytes);
    assert_eq!(gaps, []);
    let mut seen = vec![BTreeSet::new(); 2];
    let mut ends = Vec::new();
    for (i, (offset, record)) in records.iter().enumerate() {
        ends.push((*offset as usize, seen.clone()));
        if let Entry::Tick { source, frame } = record {
            seen[usize::from(*source)].insert(shared::tick::sequence(frame).unwrap());
        }
        if i + 1 == records.len() {
            ends.push((bytes.len(), seen.clone()));
        }
    }
    ends
}

#[test]
fn a_log_comes_back() {
    let mut owner = Owner::new(2);
    let mut bytes = owner.file(70);
    bytes.extend(owner.announce(1, "late comer"));
    for i in 0..200 {
        bytes.extend(owner.tick(i % 2));
    }
    let mut found = replay(&bytes);
    assert_eq!(owner.check(&found), owner.all());
    assert_eq!(found.report, Report { ticks: 340, unclean: true, ..Report::default() });
    for (source, machine) in found.sources.iter().zip(&owner.sources) {
        assert_eq!((source.spans.len(), source.last_seq()), (1, 170));
        assert_eq!(source.state.t(), machine.state.t());
        assert_eq!(source.facts, [("os".into(), "test".into())]);
    }
    assert_eq!(found.sources.remove(1).series.len(), 3);
    log::put(&mut bytes, &Entry::End);
    assert!(!replay(&bytes).report.unclean);
}

#[test]
fn a_log_that_is_cut_at_any_byte_keeps_what_is_before() {
    let mut owner = Owner::new(2);
    let bytes = owner.file(4);
    let ends = ends(&bytes);
    for cut in 0..bytes.len() {
        let found = replay(&bytes[..cut]);
        let (end, seen) =
            ends.iter().rev().find(|(end, _)| *end <= cut).cloned().unwrap_or((0, vec![BTreeSet::new(); 2]));
        assert_eq!(owner.check(&found), seen, "cut at {cut}");
        let torn = (cut != end).then(|| ("log-1".to_string(), end as u64));
        assert_eq!(found.report.torn, Vec::from_iter(torn), "cut at {cut}");
        assert_eq!(found.report.damages, [], "cut at {cut}");
    }
}

#[test]
fn any_flipped_byte_costs_a_minute_of_one_source_at_most_and_is_named() {
    flips(false);
    flips(true);
}

fn flips(gaps: bool) {
    let mut owner = Owner::new(2);
    (owner.gaps, owner.records) = (gaps, gaps);
    let mut bytes = owner.file(8);
    bytes.extend(owner.announce(0, "new"));
    for i in 0..2 * 12 {
        bytes.extend(owner.tick(i % 2));
    }
    let all = owner.all();
    let recorded: usize = owner.sources.iter().map(|machine| machine.recorded.len()).sum();
    let mut worst = 0;
    for at in 0..bytes.len() {
        let flip = 1 << (at % 8);
        bytes[at] ^= flip;
        let found = replay(&bytes);
        bytes[at] ^= flip;
        let seen = owner.check(&found);
        // A damaged record costs only itself.
        let records: usize = owner.check_records(&found).iter().map(BTreeSet::len).sum();
        assert!(recorded - records <= 1, "byte {at}");
        let lost: Vec<usize> = all.iter().zip(&seen).map(|(all, seen)| all.len() - seen.len()).collect();
        assert!(lost.iter().filter(|&&n| n > 0).count() <= 1 && lost.iter().all(|&n| n <= 6), "byte {at}: {lost:?}");
        assert!(found.report.damages.len() + found.report.torn.len() == 1, "byte {at}: {:?}", found.report);
        worst = worst.max(lost[0].max(lost[1]));
        let lost_behind = found.report.skipped_ticks as usize;
        assert!(lost_behind <= lost[0] + lost[1], "byte {at}");
    }
    assert_eq!(worst, 6, "the first of a minute costs all of it, or nothing was flipped");
}

#[test]
fn a_damaged_stretch_names_its_file_and_place() {
    let mut owner = Owner::new(1);
    let mut bytes = owner.file(3);
    let at = log::scan(&bytes).0[4].0;
    bytes[at as usize + 12] ^= 0x40;
    let report = replay(&bytes).report;
    assert_eq!(report.damages.len(), 1);
    assert_eq!((report.damages[0].file.as_str(), report.damages[0].offset), ("log-1", at));
    assert!(report.damages[0].to_string().starts_with(&format!("log-1 at byte {at}: ")));
}

#[test]
fn any_bytes_are_read_without_a_panic() {
    use proptest::prelude::*;
    let sound = Owner::new(1).file(5);
    proptest!(|(
        noise in prop::collection::vec(any::<u8>(), 0..400),
        cuts in prop::collection::vec((0..sound.len(), 0..sound.len()), 0..6),
    )| {
        // Noise, and pieces of a sound file in any order.
        let mut bytes = noise;
        for (a, b) in cuts {
            bytes.extend(&sound[a.min(b)..a.max(b)]);
        }
        replay(&bytes);
    });
}

#[test]
fn records_of_version_1_are_the_same_bytes_for_ever() {
    // A change here needs a new version: an older reader would take it for damage, and a newer one the old logs.
    let mut bytes = b"WGLOG\0\0\0\x01\0\0\0".to_vec();
    bytes.extend(shared::crc32c::crc32c(&bytes).to_le_bytes());
    let row = Metric {
        tag: "t.{i}".into(),
        aliases: vec!["a.{i}".into()],
        title: "T".into(),
        label: "L".into(),
        help: "H.".into(),
        unit: Unit::Celsius,
        kind: Kind::Gauge,
        range: Range::Fixed(0.0, 2.5),
        chart: "c".into(),
        draw: Draw::Limit,
        steps: 10.0,
    };
    let rows = vec![(7, row)];
    let charts = vec![shared::catalog::Chart { id: "c".into(), title: "C".into(), section: "s".into() }];
    for record in [
        Entry::Source { source: 1, name: "m".into(), interval: 1_000, facts: vec![("a".into(), "b".into())] },
        Entry::Series { source: 1, series: vec![(300, 7, "0".into())] },
        Entry::Keyframe { source: 1, frame: &[1, 2] },
        Entry::Tick { source: 1, frame: &[3] },
        Entry::Late { source: 1, samples: vec![(2, -1, 0.5)] },
        Entry::Rows(Table { rows, charts }),
        Entry::End,
    ] {
        log::put(&mut bytes, &record);
    }
    assert_eq!((bytes.len(), shared::crc32c::crc32c(&bytes)), (205, 693_927_829), "{bytes:02x?}");
    assert_eq!((log::version(&bytes), log::scan(&bytes).0.len()), (Some(1), 7));
    let mut of_version_2 = Vec::new();
    let record = Record { n: 2_000_000_000, t: -1, kind: "marker".into(), body: vec![0, 255] };
    log::put(&mut of_version_2, &Entry::Record { source: 1, record });
    assert_eq!(of_version_2[10..], *b"\x07\x01\x80\xa8\xd6\xb9\x07\x01\x06marker\x02\0\xff");
    let mut header = Vec::new();
    log::put_header(&mut header);
    assert_eq!((log::version(&header), header.len()), (Some(2), log::HEADER_BYTES));
}
