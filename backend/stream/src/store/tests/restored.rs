//! A store restored from logs: each source in its place with its own ticks, whose columns are made when they are read.

use super::*;
use history::{Found, FoundSource, LoggedTick, TickSpan};
use shared::tick::TickState;

const SOURCES: i64 = 40;

/// Number of ticks of a source. The first has by far the most.
fn ticks(source: i64) -> i64 {
    if source == 0 { 3_000 } else { 5 + source }
}

fn at(source: i64, tick: i64) -> (i64, f64) {
    (T0 + tick * 1_000, f64::from((source * 50 + tick % 50) as i32) / 100.0)
}

/// Two spans with a gap of one tick between them.
fn found(source: i64, steps: f64) -> FoundSource {
    let mut state = TickState::after(0, 0);
    state.extend([steps]);
    let mut span = |ticks: std::ops::Range<i64>| {
        let base = state.clone();
        let logged = |tick| {
            let ((t, value), before) = (at(source, tick), state.seq());
            let frame = state.encode_at(tick as u64 + 1, t, false, &[value]);
            LoggedTick { seq: state.seq(), before, t, clock_step: false, frame }
        };
        TickSpan { base, ticks: ticks.map(logged).collect(), present: vec![true] }
    };
    let spans = vec![span(0..3), span(4..ticks(source))];
    let series = vec![Some(SeriesDef { metric: 0, instance: String::new() })];
    FoundSource { name: format!("node-{source}"), interval: 1_000, series, spans, state, ..FoundSource::default() }
}

#[test]
fn each_source_that_logs_had_stands_in_its_place_with_its_own_ticks() {
    let (before, _) = store(DAY);
    let catalog = before.catalog();
    let row = catalog.metrics[usize::from(catalog.position(shared::catalog::cpu::CPU_PERCENT.tag).unwrap())].clone();
    let sources = (0..SOURCES).map(|source| found(source, row.steps)).collect();
    let found = Found { sources, rows: vec![row], ..Found::default() };
    let (store, unwritten) = Store::of_found(Arc::new(Catalog::clone(catalog)), &found, DAY, Some("node-20"));

    // The hub's own machine comes first, the others in the order of the logs.
    let order: Vec<i64> = std::iter::once(20).chain((0..SOURCES).filter(|source| *source != 20)).collect();
    assert_eq!(unwritten.len(), order.len());
    for ((id, source), unwritten) in (0 as SourceId..).zip(order).zip(&unwritten) {
        assert_eq!(store.named(&format!("node-{source}")), Some(id));
        assert_eq!(unwritten.source, id);
        let spans: Vec<_> = unwritten.chunks.iter().map(|chunk| (chunk.first_seq, chunk.from)).collect();
        assert_eq!(spans.first(), Some(&(1, T0)));
        assert!(spans.contains(&(5, T0 + 4_000)), "{spans:?}");
        assert!(spans.is_sorted(), "{spans:?}");
        // No column was decoded, and yet the coverage is known.
        assert!(unwritten.chunks.iter().all(|chunk| !chunk.is_made() && chunk.bytes() > 0));
        assert_eq!(store.coverage(id), [(1, 3), (5, ticks(source) as u64)]);
        assert_eq!(store.spans(id, 0).collect::<Vec<_>>(), [Some((T0, T0 + (ticks(source) - 1) * 1_000))]);
        let all = (0..ticks(source)).filter(|tick| *tick != 3).map(|tick| at(source, tick));
        let read = store.snapshot(id, T0, T0 + 10_000_000).unwrap().samples(&[0]);
        assert_eq!(read[0], all.collect::<Vec<_>>(), "node-{source}");
        assert!(unwritten.chunks.iter().all(|chunk| chunk.is_made()));
    }
}
