//! Answers from a store whose ticks are all known.

use super::fill::{Want, answer, answer_within};
use super::identity::Shift;
use proptest::prelude::*;
use shared::agent::{FillState, MAX_FILL_BYTES, encode_fill};
use shared::catalog::{Catalog, cpu};
use shared::column;
use shared::series::SeriesDef;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use stream::clock::Manual;
use stream::live::Live;
use stream::store::{Limits, Store};

/// Ticks by sequence: time and values.
type Ticks = BTreeMap<u64, (i64, Vec<Option<f64>>)>;

/// A stream with ticks of these sequences, cut after some of them, and its content.
fn stream(steps: &[(u64, bool)]) -> (Arc<Live>, Ticks) {
    let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
    let mut store = Store::new(catalog, Limits { retention: 1 << 40, bytes: usize::MAX });
    let source = store.add_source("a".into(), 1_000, Vec::new());
    for metric in 0..3 {
        store.intern(source, SeriesDef { metric, instance: String::new() }).expect("room");
    }
    let (mut seq, mut all) = (0, Ticks::new());
    for (i, (skip, sealed)) in steps.iter().enumerate() {
        seq += 1 + skip;
        let t = 1_700_000_000_000 + i as i64 * 1_000;
        let values = [i as f64, if i % 3 == 0 { f64::NAN } else { 7.25 }, if i % 7 < 5 { f64::NAN } else { 0.5 }];
        let encoded = store.encode_at(source, seq, t, false, &values).expect("a tick");
        store.push(encoded);
        all.insert(seq, (t, values.iter().map(|v| v.is_finite().then_some(*v)).collect()));
        if *sealed {
            store.seal(source);
        }
    }
    (Live::new(store, Arc::new(Manual::at(0, Duration::ZERO)), 1, 1 << 40), all)
}

/// The ticks of an answer, in the hub's numbers.
fn asked(live: &Live, want: Want, shifts: &[Shift], size: usize) -> (FillState, Ticks) {
    asked_within(live, want, shifts, size, MAX_FILL_BYTES)
}

/// As above, with unchanged blocks of at most this many bytes.
fn asked_within(live: &Live, want: Want, shifts: &[Shift], size: usize, most: usize) -> (FillState, Ticks) {
    let mut parts = Vec::new();
    let answered = answer_within(live, 0, want, shifts, &Arc::new(AtomicUsize::new(size)), most, &mut |part| {
        parts.push(part);
        true
    });
    let mut blocks: BTreeMap<u64, usize> = BTreeMap::new();
    parts.iter().for_each(|part| *blocks.entry(part.first).or_default() += encode_fill(part).len());
    assert!(blocks.values().all(|bytes| *bytes <= most), "{blocks:?}");
    let (mut all, mut times) = (Ticks::new(), Vec::new());
    for part in parts {
        let ticks = part.ticks().expect("within bounds");
        if !part.times.is_empty() {
            times = column::decode_times(&part.times, ticks).expect("times");
        }
        for (tick, t) in times.iter().enumerate() {
            all.entry(part.first + tick as u64).or_insert_with(|| (*t, vec![None; 3]));
        }
        for (id, bytes) in &part.columns {
            for (tick, v) in column::decode(&bytes.0, ticks).expect("a column").into_iter().enumerate() {
                let (_, values) = all.get_mut(&(part.first + tick as u64)).expect("it has a time");
                values[*id as usize] = v.is_finite().then_some(v);
            }
        }
    }
    assert_eq!(answered.damaged, 0);
    (answered.state, all)
}

proptest! {
    #[test]
    fn an_answer_has_exactly_the_ticks_of_the_range(
        steps in prop::collection::vec((prop_oneof![9 => Just(0u64), 1 => 1u64..20], prop::bool::weighted(0.1)), 1..80),
        first in 0u64..120,
        len in 0u64..120,
        size in prop_oneof![Just(64usize), Just(1 << 20)],
        most in prop_oneof![Just(400usize), Just(600), Just(MAX_FILL_BYTES)],
    ) {
        let (live, all) = stream(&steps);
        let wanted: Ticks = all.range(first..=first + len).map(|(seq, tick)| (*seq, tick.clone())).collect();
        let (state, given) = asked_within(&live, Want { id: 1, first, last: first + len }, &[], size, most);
        prop_assert_eq!(state, if wanted.is_empty() { FillState::Gone } else { FillState::Whole });
        prop_assert_eq!(given, wanted);
    }

    #[test]
    fn numbers_that_are_others_for_the_hub_are_found_again(first in 0u64..300, len in 0u64..300) {
        // Ticks 1 to 40; the hub knows 11 to 30 as 111 to 130.
        let (live, all) = stream(&[(0, false); 40]);
        let shifts = [Shift { first: 11, last: 30, add: 100 }];
        let told: Ticks =
            all.into_iter().map(|(seq, tick)| (if (11..=30).contains(&seq) { seq + 100 } else { seq }, tick)).collect();
        let wanted: Ticks = told.range(first..=first + len).map(|(seq, tick)| (*seq, tick.clone())).collect();
        prop_assert_eq!(asked(&live, Want { id: 1, first, last: first + len }, &shifts, 1 << 20).1, wanted);
    }
}

#[test]
fn who_wants_no_more_is_not_read_for() {
    let (live, _) = stream(&[(0, true); 20]);
    let mut given = 0;
    let size = Arc::new(AtomicUsize::new(1));
    let answered = answer(&live, 0, Want { id: 1, first: 0, last: u64::MAX }, &[], &size, &mut |_| {
        given += 1;
        given < 3
    });
    assert_eq!((answered.state, given), (FillState::Gone, 3));
}
