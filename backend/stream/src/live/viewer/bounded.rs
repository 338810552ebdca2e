//! A page of a share link gets exactly the times of the link, to the tick.

use super::tests::{Bench, open};
use super::*;
use shared::column::{decode, decode_times};
use shared::wire::{Received, decode_server};

/// Times, ascending, and values of all columns sent to a page, and the number of messages of ticks.
fn shown(viewer: &mut Viewer) -> (Vec<i64>, Vec<f64>, u32) {
    let (mut times, mut values, mut ticks) = (Vec::new(), Vec::new(), 0);
    while let Some(next) = viewer.next_message() {
        let (bytes, rest) = next.read();
        rest.into_iter().for_each(|rest| viewer.put_back(rest));
        let Some(bytes) = bytes else { continue };
        match decode_server(&bytes).expect("a message") {
            Received::Control(ServerMessage::Columns(columns)) => {
                assert_eq!(columns.last_seq - columns.first_seq + 1, u64::from(columns.ticks));
                times.extend(decode_times(&columns.times, columns.ticks as usize).expect("times"));
                for (_, column) in &columns.columns {
                    values.extend(decode(&column.0, columns.ticks as usize).expect("a column"));
                }
            }
            Received::Ticks(..) => {
                ticks += 1;
                viewer.receive(PageMessage::Ack { messages: ticks }).expect("as many as were sent");
            }
            _ => {}
        }
    }
    times.sort_unstable();
    (times, values, ticks)
}

#[test]
fn a_fixed_span_is_shown_to_the_tick_sealed_or_not_and_nothing_follows() {
    let mut bench = Bench::new();
    bench.tick(2_000);
    let now = bench.live.clock.wall();
    for (from, to) in [(now - 1_500_000, now - 1_000_000), (now - 300_000, now - 100_000), (now - 1_000, now + 60_000)]
    {
        let mut viewer = Viewer::new(bench.live.clone(), Scope::All).within(Bounds::Span(from, to));
        viewer.receive(open(43_200_000, None)).expect("opened");
        let (times, values, ticks) = shown(&mut viewer);
        assert_eq!((times.first(), times.last()), (Some(&from), Some(&to.min(now))), "{from} to {to}");
        let count = ((to.min(now) - from) / 1_000 + 1) as usize;
        assert_eq!((times.len(), values.len(), ticks), (count, count, 0));
        // Its page requests the same again, and more.
        let source = bench.live.store().sources()[0].id;
        viewer.receive(PageMessage::History { source, from: 0, to: i64::MAX }).expect("answered");
        assert_eq!(shown(&mut viewer).0, times);
        viewer.receive(PageMessage::Minutes { source, from: 0, to: i64::MAX }).expect("answered");
        assert!(shown(&mut viewer).0.is_empty());
    }
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All).within(Bounds::Span(now - 10_000, now));
    viewer.receive(open(1_000, None)).expect("opened");
    shown(&mut viewer);
    bench.tick(5);
    assert_eq!(shown(&mut viewer).2, 0, "what comes afterwards is another time");
}

#[test]
fn a_live_link_reaches_back_as_far_as_its_window() {
    let mut bench = Bench::new();
    bench.tick(4_000);
    let now = bench.live.clock.wall();
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All).within(Bounds::Window(1_800_000));
    viewer.receive(open(43_200_000, None)).expect("opened");
    let first = shown(&mut viewer);
    assert!(first.0.iter().all(|t| *t >= now - 1_800_000) && first.2 > 0, "{:?}", first.0.first());
    let source = bench.live.store().sources()[0].id;
    viewer.receive(PageMessage::History { source, from: 0, to: i64::MAX }).expect("answered");
    let more = shown(&mut viewer).0;
    assert!(!more.is_empty() && more.iter().all(|t| *t >= now - 1_800_000), "{:?}", more.first());
}
