//! Several files of one folder.

use super::owner::Owner;
use crate::Found;
use crate::replay::Replay;

fn replay(files: &[&[u8]]) -> Found {
    let mut replay = Replay::default();
    for (i, bytes) in files.iter().enumerate() {
        replay.log(&format!("log-{}", i + 1), bytes);
    }
    replay.finish()
}

#[test]
fn a_file_that_goes_on_makes_one_run() {
    let mut owner = Owner::new(2);
    let first = owner.file(10);
    owner.cut();
    let second = owner.file(10);
    let found = replay(&[&first, &second]);
    assert_eq!(owner.check(&found), owner.all());
    assert!(found.sources.iter().all(|s| s.spans.len() == 1 && s.state.seq() == 20));
    assert_eq!(found.report.ticks, 40);
}

#[test]
fn files_that_overlap_give_every_tick_once() {
    let mut owner = Owner::new(2);
    let first = owner.file(10);
    let second = owner.file(5);
    for files in [vec![&first[..], &second], vec![&second, &first], vec![&first, &first, &second, &second, &first]] {
        let found = replay(&files);
        assert_eq!(owner.check(&found), owner.all());
        assert!(found.sources.iter().all(|s| s.spans.len() == 1), "{:?}", found.sources[0].spans.len());
        assert_eq!(found.report.ticks, 30);
    }
}

#[test]
fn what_a_torn_file_lacks_is_in_the_next() {
    let mut owner = Owner::new(1);
    let mut first = owner.file(30);
    first.truncate(first.len() - 100);
    let second = owner.file(5);
    let found = replay(&[&first, &second]);
    assert_eq!(owner.check(&found), owner.all());
    assert_eq!(found.sources[0].spans.len(), 1);
}

#[test]
fn a_hole_is_filled_by_a_later_file_that_has_the_ticks() {
    let mut owner = Owner::new(1);
    let mut first = owner.file(100);
    let records = crate::log::scan(&first).0;
    let mut ticks = records.iter().filter(|(_, record)| matches!(record, crate::log::Entry::Tick { .. }));
    let damaged = ticks.nth(20).unwrap().0 as usize + 12;
    first[damaged] ^= 1;
    let found = replay(&[&first]);
    let before = owner.check(&found);
    assert!(before[0].len() < 100);
    assert_eq!(found.sources[0].spans.len(), 2);
    let second = owner.file(1);
    let found = replay(&[&first, &second]);
    assert_eq!(owner.check(&found), owner.all());
    assert!(found.sources[0].spans.is_sorted_by_key(|span| span.base.seq()));
}

#[test]
fn ticks_in_segments_are_skipped_and_the_state_goes_on() {
    let mut owner = Owner::new(1);
    let first = owner.file(20);
    owner.cut();
    let second = owner.file(10);
    let mut replay = Replay::default();
    replay.seal(&owner.sources[0].name, 1, 20, false, super::owner::T0);
    replay.log("log-1", &first);
    replay.log("log-2", &second);
    let found = replay.finish();
    assert_eq!(owner.check(&found)[0], (21..=30).collect());
    assert_eq!(found.sources[0].last_seq(), 30);
    assert_eq!(found.report.ticks, 10);

    let mut replay = Replay::default();
    replay.seal(&owner.sources[0].name, 1, 30, false, super::owner::T0);
    replay.log("log-1", &first);
    let found = replay.finish();
    assert_eq!((found.sources[0].spans.len(), found.sources[0].last_seq()), (0, 30), "no sequence is given twice");
}

#[test]
fn a_hole_before_the_last_segment_is_read_from_the_log() {
    let mut owner = Owner::new(1);
    let file = owner.file(30);
    let mut replay = Replay::default();
    replay.seal(&owner.sources[0].name, 1, 9, false, super::owner::T0);
    replay.seal(&owner.sources[0].name, 20, 25, false, super::owner::T0);
    replay.log("log-1", &file);
    let found = replay.finish();
    assert_eq!(owner.check(&found)[0], (10..=19).chain(26..=30).collect());
    assert_eq!(found.sources[0].spans.len(), 2);
}

#[test]
fn a_series_of_which_only_the_second_file_speaks_joins_the_run() {
    let mut owner = Owner::new(1);
    owner.announce(0, "2");
    owner.sources[0].idle = Some(1);
    let first = owner.file(8);
    owner.cut();
    owner.sources[0].idle = None;
    let second = owner.file(8);
    let found = replay(&[&first, &second]);
    assert_eq!(owner.check(&found), owner.all());
    assert_eq!(found.sources[0].spans.len(), 1);
    assert_eq!(found.sources[0].spans[0].base.steps(), owner.sources[0].state.steps());
}

#[test]
fn series_whose_steps_changed_between_versions_keep_their_values() {
    let mut owner = Owner::new(1);
    let first = owner.file(10);
    // The same machine, measured with finer steps by a later version.
    let mut later = Owner::new(1);
    later.catalog.metrics.iter_mut().for_each(|row| row.steps = 1_000.0);
    later.sources[0].state = shared::tick::TickState::after(10, super::owner::T0);
    later.sources[0].state.extend([1_000.0; 2]);
    later.cut();
    let second = later.file(10);
    let found = replay(&[&first, &second]);
    owner.catalog = later.catalog.clone();
    owner.sources[0].truth.extend(later.sources[0].truth.clone());
    assert_eq!(owner.check(&found), owner.all());
    assert_eq!(found.sources[0].spans.len(), 2);
}

#[test]
fn late_samples_are_told_once() {
    let mut owner = Owner::new(1);
    let mut bytes = owner.file(2);
    for samples in [[(0, 5, 1.5), (1, 5, 2.5)], [(0, 5, 9.0), (0, 6, 3.5)]] {
        crate::log::put(&mut bytes, &crate::log::Entry::Late { source: 0, samples: samples.to_vec() });
    }
    let found = replay(&[&bytes, &bytes]);
    assert_eq!(found.sources[0].late, [(0, 5, 1.5), (1, 5, 2.5), (0, 6, 3.5)]);
}

#[test]
fn a_life_that_begins_at_a_number_of_its_own_misses_nothing() {
    let mut owner = Owner::new(1);
    let first = owner.file(10);
    owner.cut();
    let base = owner.sources[0].state.clone();
    let mut records = Vec::new();
    crate::log::put_header(&mut records);
    records.extend(owner.opening());
    let frame = owner.sources[0].state.encode_at(2_000_000_000, super::owner::T0 + 1_000_000, false, &[]);
    crate::Journal::default().tick(&mut records, 0, &frame, Vec::new);
    owner.sources[0].truth.insert(2_000_000_000, (super::owner::T0 + 1_000_000, vec![f64::NAN; 2]));
    let found = replay(&[&first, &records]);
    assert_eq!(owner.check(&found), owner.all());
    assert_eq!((found.report.missing_ticks, found.sources[0].last_seq()), (0, 2_000_000_000));
    // After the log was removed, a segment's block has the mark.
    for after_gap in [false, true] {
        let mut replay = Replay::default();
        replay.seal(&owner.sources[0].name, 1, 7, false, base.t());
        replay.seal(&owner.sources[0].name, 501, 520, after_gap, base.t());
        assert_eq!(replay.finish().report.missing_ticks, if after_gap { 0 } else { 493 });
    }
}

#[test]
fn ticks_that_a_cut_between_two_records_took_away_are_counted() {
    let mut owner = Owner::new(1);
    let first = owner.file(10);
    owner.cut();
    let second = owner.file(10);
    let mut seen = std::collections::BTreeSet::new();
    for (cut, record) in crate::log::scan(&first).0 {
        if !matches!(record, crate::log::Entry::Tick { .. }) {
            continue;
        }
        let found = replay(&[&first[..cut as usize], &second]);
        assert_eq!((&found.report.torn, &found.report.damages), (&vec![], &vec![]), "nothing shows it");
        let there = owner.check(&found)[0].len() as u64;
        // Ticks before the first one are not counted.
        assert_eq!(found.report.missing_ticks, if there > 10 { 20 - there } else { 0 }, "cut at {cut}");
        seen.insert(found.report.missing_ticks);
    }
    assert_eq!(seen.len(), 10);
    assert_eq!(replay(&[&first, &second]).report.missing_ticks, 0);
}
