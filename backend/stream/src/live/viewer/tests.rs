//! Pages without sockets: their messages are complete and not repeated.

use super::*;
use crate::clock::{Clock, Manual};
use crate::store::{Limits, QUARTER, Store};
use shared::catalog::{Catalog, cpu};
use shared::scope::Scope;
use shared::series::SeriesDef;
use shared::tick::{Applied, TickState};
use shared::wire::{Received, Resume, decode_server};
use std::time::Duration;

/// The beginning of a quarter.
const T0: i64 = 1_700_000_000_000 / QUARTER * QUARTER;
/// Ticks of a quarter.
const SEAL: usize = (QUARTER / 1_000) as usize;

/// The next message; blocks are read here.
fn next(viewer: &mut Viewer) -> Option<Bytes> {
    let (message, rest) = viewer.next_message()?.read();
    rest.into_iter().for_each(|rest| viewer.put_back(rest));
    message
}

/// A server without sockets: ticks are appended by hand.
pub(super) struct Bench {
    pub live: Arc<Live>,
    clock: Arc<Manual>,
    source: SourceId,
    n: i64,
}

impl Bench {
    pub fn new() -> Self {
        let clock = Arc::new(Manual::at(T0, Duration::ZERO));
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 43_200_000, bytes: usize::MAX });
        let source = store.add_source("here".into(), 1_000, Vec::new());
        store.intern(source, SeriesDef { metric: 0, instance: String::new() }).unwrap();
        Bench { live: Live::new(store, clock.clone(), 77, 43_200_000), clock, source, n: 0 }
    }

    pub fn tick(&mut self, times: usize) {
        for _ in 0..times {
            self.n += 1;
            self.clock.pass(Duration::from_secs(1));
            let values = [(self.n % 100) as f64];
            self.append(&values);
        }
    }

    /// Appends a tick, and seals the quarter when it is full.
    fn append(&self, values: &[f64]) {
        let (mut store, t) = (self.live.store(), self.clock.wall());
        store.append(self.source, t, false, values);
        if t % QUARTER == 0 {
            store.seal(self.source);
        }
    }
}

/// A page that only counts: its sequences, and how often it got a resync.
#[derive(Default)]
struct Page {
    state: TickState,
    seqs: Vec<u64>,
    messages: u32,
    resyncs: usize,
    largest: usize,
}

impl Page {
    fn take(&mut self, viewer: &mut Viewer) {
        while let Some(bytes) = next(viewer) {
            self.largest = self.largest.max(bytes.len());
            match decode_server(&bytes).unwrap() {
                Received::Control(ServerMessage::Series { defs, .. }) => self.state.extend(defs.iter().map(|_| 100.0)),
                Received::Control(ServerMessage::Columns(c)) => {
                    self.seqs.extend(c.first_seq..=c.last_seq);
                    assert_eq!(c.last_seq - c.first_seq + 1, u64::from(c.ticks));
                }
                Received::Control(ServerMessage::Resync) => {
                    self.resyncs += 1;
                    self.seqs.clear();
                    self.state = TickState::default();
                }
                Received::Control(_) | Received::Overview(..) => {}
                Received::Ticks(_, frames) => {
                    self.messages += 1;
                    for frame in frames {
                        if let Applied::Tick { .. } = self.state.apply(frame).unwrap() {
                            self.seqs.push(self.state.seq());
                        }
                    }
                    viewer.receive(PageMessage::Ack { messages: self.messages }).unwrap();
                }
            }
        }
    }

    /// Its sequences, ascending; one that was sent twice occurs twice.
    fn held(&self) -> Vec<u64> {
        let mut held = self.seqs.clone();
        held.sort_unstable();
        held
    }

    fn resume(&self) -> Resume {
        Resume {
            boot: 77,
            rows: cpu::ROWS.len() as u32,
            places: vec![(0, self.state.seq(), self.state.steps().len() as u32)],
        }
    }
}

pub(super) fn open(window: i64, resume: Option<Resume>) -> PageMessage {
    PageMessage::Open { protocol: PROTOCOL, window, resume, sources: vec![String::new()] }
}

fn whole(to: i64) -> Vec<u64> {
    (1..=to as u64).collect()
}

#[test]
fn a_page_gets_history_and_then_every_tick_once() {
    let mut bench = Bench::new();
    bench.tick(SEAL + 50);
    let (mut viewer, mut page) = (Viewer::new(bench.live.clone(), Scope::All), Page::default());
    viewer.receive(open(43_200_000, None)).unwrap();
    page.take(&mut viewer);
    bench.tick(3);
    page.take(&mut viewer);
    assert_eq!(page.held(), whole(bench.n));
    assert!(page.largest <= MAX_MESSAGE);
}

#[test]
fn the_newest_ticks_come_before_history_and_that_is_the_window_and_what_is_not_sealed() {
    let mut bench = Bench::new();
    let other = bench.live.store().add_source("other".into(), 1_000, Vec::new());
    bench.live.store().intern(other, SeriesDef { metric: 0, instance: String::new() }).expect("room");
    bench.tick(SEAL + 600);
    for n in -900..=0 {
        bench.live.store().append(other, bench.clock.wall() + n * 1_000, false, &[1.0]).expect("a source");
    }
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    let sources = vec!["here".into(), "other".into()];
    viewer.receive(PageMessage::Open { protocol: PROTOCOL, window: 300_000, resume: None, sources }).expect("it opens");
    let (mut heard, mut ticks) = (Vec::new(), 0);
    while let Some(bytes) = next(&mut viewer) {
        match decode_server(&bytes).expect("a message") {
            Received::Ticks(source, frames) => {
                heard.push(format!("{} ticks of {source}", frames.len()));
                ticks += 1;
            }
            Received::Control(ServerMessage::Columns(c)) => heard.push(format!("{} of {}", c.ticks, c.source)),
            Received::Control(ServerMessage::HistoryEnd { source, .. }) => heard.push(format!("end of {source}")),
            _ => {}
        }
    }
    let first = ["1 ticks of 0", "10 ticks of 0", "1 ticks of 1", "10 ticks of 1"];
    let history = ["590 of 0", "end of 0", "891 of 1", "end of 1"];
    assert_eq!(heard, [first, history].concat());
    // New ticks follow after history was sent, and requested history does not wait for them.
    viewer.receive(PageMessage::Ack { messages: ticks }).expect("they were sent");
    bench.tick(1);
    assert!(next(&mut viewer).is_some_and(|bytes| bytes[0] == wire::TICKS));
    assert!(next(&mut viewer).is_none() && viewer.behind.is_empty());
}

#[test]
fn history_comes_newest_first_and_new_ticks_do_not_wait_for_it() {
    let mut bench = Bench::new();
    bench.tick(5 * SEAL + 20);
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    viewer.receive(open(43_200_000, None)).expect("it opens");
    let (mut heard, mut ticks) = (Vec::new(), 0);
    while let Some(bytes) = next(&mut viewer) {
        match decode_server(&bytes).expect("a message") {
            Received::Ticks(_, frames) => {
                heard.push(format!("{} ticks", frames.len()));
                ticks += 1;
                viewer.receive(PageMessage::Ack { messages: ticks }).expect("they were sent");
            }
            Received::Control(ServerMessage::Columns(c)) => {
                heard.push(format!("{} to {}", c.first_seq, c.last_seq));
                // A slow page: a tick is measured while it receives a block.
                if c.last_seq < SEAL as u64 * 5 {
                    bench.tick(1);
                }
            }
            Received::Control(ServerMessage::HistoryEnd { from, to: i64::MAX, more, .. }) => {
                heard.push(format!("whole from {} s, more: {more}", (from - T0) / 1_000));
            }
            _ => {}
        }
    }
    let opening = ["1 ticks", "10 ticks", "4501 to 4510", "whole from 4501 s, more: true", "3601 to 4500"];
    let more = ["whole from 3601 s, more: true", "2701 to 3600", "1 ticks", "1801 to 2700", "1 ticks"];
    let rest = ["whole from 1801 s, more: true", "901 to 1800", "1 ticks", "1 to 900", "1 ticks"];
    let end = format!("whole from {} s, more: false", 5 * SEAL as i64 + 20 - 43_200);
    assert_eq!(heard, [&opening[..], &more, &rest, &[&end]].concat());
}

#[test]
fn a_page_that_lost_its_place_while_history_came_gets_all_of_it_once() {
    let mut bench = Bench::new();
    bench.tick(3 * SEAL + 20);
    let (mut viewer, mut page) = (Viewer::new(bench.live.clone(), Scope::All), Page::default());
    viewer.receive(open(43_200_000, None)).expect("it opens");
    while viewer.behind.is_empty() || !viewer.waiting.is_empty() {
        next(&mut viewer);
    }
    // It reads nothing for so long that its next tick is not in memory any more.
    bench.tick(2 * SEAL);
    page.state = TickState::default();
    page.messages = 2;
    page.take(&mut viewer);
    assert_eq!((page.resyncs, page.held()), (1, whole(bench.n)));
    assert!(viewer.behind.is_empty());
}

#[test]
fn a_page_of_a_short_window_that_asks_for_more_has_all_of_it() {
    let mut bench = Bench::new();
    bench.tick(SEAL + 600);
    let (mut viewer, mut page) = (Viewer::new(bench.live.clone(), Scope::All), Page::default());
    viewer.receive(open(60_000, None)).expect("it opens");
    page.take(&mut viewer);
    bench.tick(5);
    page.take(&mut viewer);
    viewer.receive(PageMessage::History { source: 0, from: T0, to: bench.clock.wall() - 60_000 }).expect("it asks");
    page.take(&mut viewer);
    // A later answer has sealed ticks only: the unsealed ones were sent with the opening, however short its window was.
    assert_eq!(page.held(), whole(bench.n));
}

#[test]
fn the_help_of_the_table_comes_behind_the_newest_ticks_and_before_a_place_to_go_on_from() {
    let mut bench = Bench::new();
    bench.tick(20);
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    viewer.receive(open(300_000, None)).expect("it opens");
    let (mut table, mut ticks) = (Catalog::default(), 0);
    while let Some(bytes) = next(&mut viewer) {
        match decode_server(&bytes).expect("a message") {
            Received::Control(ServerMessage::Catalog(catalog)) => {
                assert!(catalog.metrics.iter().all(|metric| metric.help.is_empty() && !metric.title.is_empty()));
                table = catalog;
            }
            Received::Control(ServerMessage::Rows { first, metrics, charts }) => {
                assert_eq!(ticks, 2, "a keyframe and the ticks since then");
                table.extend(first as usize, metrics, charts);
            }
            Received::Control(ServerMessage::HistoryEnd { .. }) => {
                assert_eq!(table.metrics, bench.live.store().catalog().metrics);
            }
            Received::Ticks(..) => ticks += 1,
            _ => {}
        }
    }
    assert_eq!(ticks, 2);
}

#[test]
fn a_break_leaves_no_hole_and_repeats_nothing() {
    let mut bench = Bench::new();
    bench.tick(20);
    let (mut viewer, mut page) = (Viewer::new(bench.live.clone(), Scope::All), Page::default());
    viewer.receive(open(300_000, None)).unwrap();
    page.take(&mut viewer);
    bench.tick(SEAL - 10);
    let mut again = Viewer::new(bench.live.clone(), Scope::All);
    again.receive(open(300_000, Some(page.resume()))).unwrap();
    page.messages = 0;
    page.take(&mut again);
    assert_eq!((page.resyncs, page.held()), (0, whole(bench.n)));
}

#[test]
fn a_page_away_for_too_long_begins_anew_without_a_hole() {
    let mut bench = Bench::new();
    bench.tick(20);
    let (mut viewer, mut page) = (Viewer::new(bench.live.clone(), Scope::All), Page::default());
    viewer.receive(open(43_200_000, None)).unwrap();
    page.take(&mut viewer);
    bench.tick(3 * SEAL);
    let mut again = Viewer::new(bench.live.clone(), Scope::All);
    again.receive(open(43_200_000, Some(page.resume()))).unwrap();
    page.messages = 0;
    page.take(&mut again);
    assert_eq!((page.resyncs, page.held()), (1, whole(bench.n)));
}

#[test]
fn a_page_that_never_acknowledges_is_sent_its_credit_and_no_more() {
    let mut bench = Bench::new();
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    viewer.receive(open(300_000, None)).unwrap();
    let mut sent = 0;
    for _ in 0..3 * SEAL {
        bench.tick(1);
        while let Some(bytes) = next(&mut viewer) {
            sent += usize::from(bytes[0] == wire::TICKS);
        }
        assert!(viewer.waiting.is_empty(), "nothing queues up for a slow page");
    }
    assert_eq!(sent, CREDIT as usize);
    viewer.receive(PageMessage::Ack { messages: CREDIT }).unwrap();
    let mut page = Page { messages: CREDIT, ..Page::default() };
    page.take(&mut viewer);
    assert_eq!(page.resyncs, 1);
    assert_eq!(page.seqs.last(), Some(&(bench.n as u64)));
}

#[test]
fn a_long_break_with_many_series_comes_in_messages_within_the_limit_and_the_credit() {
    let mut bench = Bench::new();
    for core in 0..400 {
        let metric = bench.live.store().catalog().position(cpu::LOAD1.tag).unwrap();
        bench.live.store().intern(bench.source, SeriesDef { metric, instance: core.to_string() }).unwrap();
    }
    bench.tick(1);
    let (mut viewer, mut page) = (Viewer::new(bench.live.clone(), Scope::All), Page::default());
    viewer.receive(open(300_000, None)).unwrap();
    page.take(&mut viewer);
    for _ in 0..SEAL - 50 {
        bench.n += 1;
        let values: Vec<f64> = (0..401).map(|i| ((bench.n * (i + 7)) as f64).sin() * 1e9).collect();
        bench.clock.pass(Duration::from_secs(1));
        bench.append(&values);
    }
    let mut again = Viewer::new(bench.live.clone(), Scope::All);
    again.receive(open(300_000, Some(page.resume()))).unwrap();
    let (mut sent, mut most) = (0, 0);
    while let Some(bytes) = next(&mut again) {
        most = most.max(bytes.len());
        sent += u32::from(bytes[0] == wire::TICKS);
        let ticks = |next: &&Outgoing| matches!(next, Outgoing::Message(bytes) if bytes[0] == wire::TICKS);
        assert!(again.waiting.iter().filter(ticks).count() <= 1, "one message at a time");
    }
    assert!(sent > 1 && sent <= CREDIT, "{sent} messages");
    assert!(most <= MAX_MESSAGE, "{most} bytes");
}

/// Updates the page's table, and the tags of the series sent to it.
fn follow(viewer: &mut Viewer, table: &mut Catalog, tags: &mut Vec<String>) {
    while let Some(bytes) = next(viewer) {
        assert!(bytes.len() <= MAX_MESSAGE, "{} bytes", bytes.len());
        match decode_server(&bytes).unwrap() {
            Received::Control(ServerMessage::Catalog(catalog)) => *table = catalog,
            Received::Control(ServerMessage::Rows { first, metrics, charts }) => {
                assert!(
                    first as usize == table.metrics.len() || first == 0 && metrics.iter().all(|m| !m.help.is_empty())
                );
                table.extend(first as usize, metrics, charts);
            }
            Received::Control(ServerMessage::Series { first, defs, .. }) => {
                assert_eq!(first as usize, tags.len());
                tags.extend(defs.iter().map(|def| table.metric(def).map(|_| table.tag(def)).expect("a known row")));
            }
            _ => {}
        }
    }
}

#[test]
fn rows_that_appear_later_come_before_the_series_that_name_them() {
    let mut bench = Bench::new();
    let add = |bench: &Bench, from: usize, to: usize| {
        for i in from..to {
            let mut metric = shared::catalog::Metric::from(&cpu::LOAD1);
            (metric.tag, metric.chart) = (format!("scraped.{i}{{labels}}"), format!("scraped.{i}"));
            metric.help = "x".repeat(400);
            let chart = shared::catalog::Chart { id: metric.chart.clone(), title: "t".into(), section: "s".into() };
            let metric = bench.live.store().add_row(metric, chart).unwrap();
            for labels in ["", "{a=\"1\"}"] {
                let def = SeriesDef { metric, instance: labels.into() };
                bench.live.store().intern(bench.source, def).unwrap();
            }
        }
    };
    bench.tick(1);
    let (mut table, mut tags) = (Catalog::default(), Vec::new());
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    viewer.receive(open(300_000, None)).unwrap();
    follow(&mut viewer, &mut table, &mut tags);
    assert_eq!((table.metrics.len(), tags.len()), (cpu::ROWS.len(), 1));
    add(&bench, 0, 2);
    bench.tick(1);
    follow(&mut viewer, &mut table, &mut tags);
    assert_eq!(tags[1..], ["scraped.0", "scraped.0{a=\"1\"}", "scraped.1", "scraped.1{a=\"1\"}"]);
    assert!(table.layout.charts.iter().any(|c| c.id == "scraped.1"));
    // The page was away meanwhile: data that it knows is not sent again.
    add(&bench, 2, 2_000);
    bench.tick(1);
    let mut again = Viewer::new(bench.live.clone(), Scope::All);
    let rows = table.metrics.len() as u32;
    again.receive(open(300_000, Some(Resume { boot: 77, rows, places: vec![(0, 2, 5)] }))).unwrap();
    follow(&mut again, &mut table, &mut tags);
    assert_eq!((table.metrics.len(), tags.len()), (cpu::ROWS.len() + 2_000, 4_001));
    // A page that opens now gets the same table in parts.
    let (mut fresh, mut told) = (Catalog::default(), Vec::new());
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    viewer.receive(open(300_000, None)).unwrap();
    follow(&mut viewer, &mut fresh, &mut told);
    assert_eq!((&fresh.metrics, &told), (&table.metrics, &tags));
    let charts = |catalog: &Catalog| {
        catalog.layout.charts.iter().map(|c| c.id.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    let drawn =
        |catalog: &Catalog| catalog.metrics.iter().map(|m| m.chart.clone()).collect::<std::collections::BTreeSet<_>>();
    assert!(drawn(&fresh).is_subset(&charts(&fresh)) && drawn(&table).is_subset(&charts(&table)));
}

#[test]
fn another_run_or_another_version_is_told_apart() {
    let mut bench = Bench::new();
    bench.tick(5);
    let (mut viewer, mut page) = (Viewer::new(bench.live.clone(), Scope::All), Page::default());
    viewer.receive(open(300_000, Some(Resume { boot: 76, rows: 0, places: vec![(0, 4, 1)] }))).unwrap();
    page.take(&mut viewer);
    assert_eq!(page.seqs, whole(5));
    let old = PageMessage::Open { protocol: PROTOCOL + 1, window: 0, resume: None, sources: vec![String::new()] };
    assert!(Viewer::new(bench.live.clone(), Scope::All).receive(old).unwrap_err().contains("reload"));
}

#[test]
fn days_come_as_minutes_with_every_extreme_and_counters_as_rates_across_blocks() {
    use shared::catalog::{Kind, VOCABULARY};
    use shared::segment::tier;
    let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
    let of = |kind| catalog.metrics.iter().position(|m| m.kind == kind && !m.tag.contains('{')).expect("a row") as u16;
    let metrics = [of(Kind::Gauge), of(Kind::Counter)];
    let steps = catalog.metrics[usize::from(metrics[0])].steps;
    let mut store = Store::new(Arc::new(catalog), Limits { retention: 8 * 86_400_000, bytes: usize::MAX });
    let source = store.add_source("here".into(), 1_000, Vec::new());
    for metric in metrics {
        store.intern(source, SeriesDef { metric, instance: String::new() }).expect("a series");
    }
    // One outlier of a gauge and one burst of a counter, exactly at the end of a quarter.
    let gauge = |n: i64| shared::series::quantize(if n == 1_234 { 97.0 } else { (n % 10) as f64 }, steps);
    let total = |n: i64| (n * 5 + if n > 900 { 7_000 } else { 0 }) as f64;
    for n in 1..=2_000 {
        store.append(source, T0 + n * 1_000, false, &[gauge(n), total(n)]);
        if n % 900 == 0 {
            store.seal(source);
        }
    }
    let live = Live::new(store, Arc::new(Manual::at(T0 + 2_000_000, Duration::ZERO)), 77, 8 * 86_400_000);
    let mut viewer = Viewer::new(live, Scope::All);
    viewer.receive(PageMessage::Minutes { source, from: T0 - 86_400_000, to: T0 + 2_000_000 }).expect("a question");
    let (mut found, mut seqs, mut ended) = (vec![Vec::new(); 2], Vec::new(), false);
    while let Some(bytes) = next(&mut viewer) {
        match decode_server(&bytes).expect("a message") {
            Received::Control(ServerMessage::Minutes(minutes)) => {
                assert!(!ended && bytes.len() <= MAX_MESSAGE);
                seqs.push((minutes.first_seq, minutes.last_seq));
                for (id, bytes) in minutes.columns {
                    found[id as usize].extend(tier::decode(&bytes.0).expect("minutes"));
                }
            }
            Received::Control(ServerMessage::MinutesEnd { from, .. }) => ended = from == T0 - 86_400_000,
            other => panic!("{other:?} was not asked for"),
        }
    }
    assert!(ended);
    assert_eq!(seqs, [(1, 900), (901, 1_800)], "what is not sealed comes as ticks");
    for bucket in &found[0] {
        let minute: Vec<f64> =
            (1..=1_800).filter(|n| (T0 + n * 1_000).div_euclid(60_000) * 60_000 == bucket.t).map(gauge).collect();
        let ends = minute.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        // A block that ends on a minute's first tick shares that minute with the next block.
        assert!(bucket.min >= ends.0 && bucket.max <= ends.1 && minute.len() >= bucket.count as usize);
    }
    assert_eq!(found[0].iter().map(|b| b.count).sum::<u32>(), 1_800);
    assert_eq!(found[0].iter().map(|b| b.max).fold(0.0, f64::max), gauge(1_234));
    assert_eq!(found[1].iter().map(|b| b.count).sum::<u32>(), 1_799, "the first has no rate, and no other");
    assert_eq!(found[1].iter().map(|b| b.max).fold(0.0, f64::max), 7_005.0);
    assert!(found[1].iter().all(|b| b.min == 5.0 || b.count == 1));
}

#[test]
fn a_page_is_shown_no_instant_twice_when_the_clock_is_set_back() {
    let mut bench = Bench::new();
    let (mut viewer, mut state, mut shown) =
        (Viewer::new(bench.live.clone(), Scope::All), TickState::default(), Vec::new());
    viewer.receive(open(300_000, None)).unwrap();
    for (step, ticks) in [(0, 20), (-10_000, 15), (-7_500, 12), (3_600_000, 5)] {
        bench.clock.step(step);
        for _ in 0..ticks {
            bench.tick(1);
            while let Some(bytes) = next(&mut viewer) {
                match decode_server(&bytes).unwrap() {
                    Received::Control(ServerMessage::Series { defs, .. }) => state.extend(defs.iter().map(|_| 100.0)),
                    Received::Control(_) | Received::Overview(..) => {}
                    Received::Ticks(_, frames) => {
                        for frame in frames {
                            if let Applied::Tick { .. } = state.apply(frame).unwrap() {
                                shown.push((state.t(), state.values()[0]));
                            }
                        }
                        viewer.receive(PageMessage::Ack { messages: viewer.sent }).unwrap();
                    }
                }
            }
        }
    }
    let first = (1..=20).chain(31..=35).map(|n| (T0 + if n > 20 { n - 10 } else { n } * 1_000, (n % 100) as f64));
    // Between two seconds, where there was nothing before.
    let between = (36..=47).map(|n| (T0 + (n - 10) * 1_000 - 7_500, f64::from(n as i32 % 100)));
    let ahead = (48..=52).map(|n| (T0 + (n - 10) * 1_000 - 7_500 + 3_600_000, (n % 100) as f64));
    assert_eq!(shown, first.chain(between).chain(ahead).collect::<Vec<_>>());
    assert_eq!(bench.live.store().counts().refused_again, 10);
}

#[test]
fn records_come_in_order_with_ticks_and_each_once() {
    let mut bench = Bench::new();
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    let record = |bench: &Bench, kind: &str| {
        bench.live.append_record(bench.source, bench.clock.wall(), kind, Vec::new()).expect("it is open")
    };
    bench.tick(3);
    record(&bench, "before.the.page");
    bench.tick(2);
    viewer.receive(open(43_200_000, None)).unwrap();
    // The messages of the page, in order: ticks by sequence, records by number.
    let (mut state, mut heard, mut messages) = (TickState::default(), Vec::new(), 0);
    let mut listen = |viewer: &mut Viewer| {
        while let Some(bytes) = next(viewer) {
            match decode_server(&bytes).unwrap() {
                Received::Control(ServerMessage::Series { defs, .. }) => state.extend(defs.iter().map(|_| 100.0)),
                Received::Control(ServerMessage::Records { records, source: 0 }) => {
                    heard.extend(records.into_iter().map(|record| (record.kind, record.n)));
                }
                Received::Control(_) | Received::Overview(..) => {}
                Received::Ticks(_, frames) => {
                    messages += 1;
                    for frame in frames {
                        if let Applied::Tick { .. } = state.apply(frame).unwrap() {
                            heard.push(("tick".into(), state.seq()));
                        }
                    }
                    viewer.receive(PageMessage::Ack { messages }).unwrap();
                }
            }
        }
        std::mem::take(&mut heard)
    };
    let told = |all: &[(&str, u64)]| all.iter().map(|(kind, n)| ((*kind).to_string(), *n)).collect::<Vec<_>>();
    let first = [("tick", 1), ("tick", 2), ("tick", 3), ("before.the.page", 1), ("tick", 4), ("tick", 5)];
    assert_eq!(listen(&mut viewer), told(&first));
    record(&bench, "a");
    record(&bench, "b");
    bench.tick(2);
    record(&bench, "c");
    let then = [("a", 2), ("b", 3), ("tick", 6), ("tick", 7), ("c", 4)];
    assert_eq!(listen(&mut viewer), told(&then));
    assert_eq!(listen(&mut viewer), []);
    // A page that resumes already has the records before its tick.
    let resume = Resume { boot: 77, rows: cpu::ROWS.len() as u32, places: vec![(0, 7, 1)] };
    record(&bench, "d");
    bench.tick(1);
    let mut back = Viewer::new(bench.live.clone(), Scope::All);
    back.receive(open(43_200_000, Some(resume))).unwrap();
    let mut kinds = Vec::new();
    while let Some(bytes) = next(&mut back) {
        if let Received::Control(ServerMessage::Records { records, .. }) = decode_server(&bytes).unwrap() {
            kinds.extend(records.into_iter().map(|record| record.n));
        }
    }
    assert_eq!(kinds, [4, 5], "c came behind the tick that it has: it may know it");
}

#[test]
fn a_share_link_is_told_no_record_of_what_happened() {
    let mut bench = Bench::new();
    let mut told = |bounds| {
        let mut viewer = Viewer::new(bench.live.clone(), Scope::All).within(bounds);
        let body = b"{\"name\":\"private\"}".to_vec();
        bench.tick(2);
        bench.live.append_record(bench.source, bench.clock.wall(), "run.begin", body.clone()).expect("it is open");
        viewer.receive(open(43_200_000, None)).unwrap();
        let (mut records, mut ticks) = (0, 0);
        let mut listen = |viewer: &mut Viewer| {
            while let Some(bytes) = next(viewer) {
                match decode_server(&bytes).unwrap() {
                    Received::Control(ServerMessage::Records { .. }) => records += 1,
                    Received::Ticks(..) => {
                        ticks += 1;
                        viewer.receive(PageMessage::Ack { messages: ticks }).unwrap();
                    }
                    _ => {}
                }
            }
        };
        listen(&mut viewer);
        bench.live.append_record(bench.source, bench.clock.wall(), "marker", body).expect("it is open");
        bench.tick(1);
        listen(&mut viewer);
        (records > 1, ticks > 1)
    };
    assert_eq!(told(Bounds::All), (true, true));
    assert_eq!(told(Bounds::Window(300_000)), (false, true), "ticks come on");
    assert!(!told(Bounds::Span(0, i64::MAX / 4)).0);
}

#[test]
fn several_machines_are_followed_at_once_and_one_beyond_the_scope_is_none() {
    let mut bench = Bench::new();
    let other = bench.live.store().add_source("other".into(), 1_000, vec![("name".into(), "node-7".into())]);
    bench.live.store().intern(other, SeriesDef { metric: 0, instance: String::new() }).expect("room");
    let open = |sources: &[&str]| {
        let sources = sources.iter().map(|text| (*text).to_string()).collect();
        PageMessage::Open { protocol: PROTOCOL, window: 300_000, resume: None, sources }
    };
    let mut sent = 0;
    let mut hear = |viewer: &mut Viewer| {
        let (mut ticks, mut told) = (Vec::new(), Vec::new());
        while let Some(bytes) = next(viewer) {
            match decode_server(&bytes).expect("a message") {
                Received::Ticks(source, _) => {
                    sent += 1;
                    ticks.push(source);
                }
                Received::Control(ServerMessage::Sources(all)) => told.extend(all.into_iter().map(|one| one.name)),
                Received::Control(ServerMessage::Facts { source, .. }) => told.push(format!("facts {source}")),
                Received::Control(ServerMessage::Columns(_)) => panic!("nothing is sealed"),
                _ => {}
            }
        }
        viewer.receive(PageMessage::Ack { messages: sent }).expect("they were sent");
        (ticks, told)
    };
    let mut viewer = Viewer::new(bench.live.clone(), Scope::All);
    viewer.receive(open(&["node-7", "here", "other"])).expect("it opens");
    let (ticks, told) = hear(&mut viewer);
    assert_eq!((ticks, told), (vec![other, 0], ["here", "node-7", "facts 1", "facts 0"].map(String::from).to_vec()));
    bench.tick(1);
    bench.live.store().append(other, bench.clock.wall(), false, &[1.0]).expect("a source");
    let (mut ticks, _) = hear(&mut viewer);
    ticks.sort_unstable();
    assert_eq!(ticks, [0, other]);
    bench.live.refilled(other, 5, 9);
    bench.live.store().append(other, bench.clock.wall() + 1, false, &[2.0]).expect("a source");
    let mut refilled = Vec::new();
    while let Some(bytes) = next(&mut viewer) {
        if let Received::Control(ServerMessage::Refilled { source, from, to }) = decode_server(&bytes).expect("one") {
            refilled.push((source, from, to));
        }
    }
    assert_eq!(refilled, [(other, 5, 9)]);

    let mut few = Viewer::new(bench.live.clone(), Scope::only([], ["other".to_string()]));
    few.receive(open(&["here"])).expect("it opens");
    let mut heard = Vec::new();
    few.receive(PageMessage::History { source: 0, from: 0, to: i64::MAX }).expect("a question");
    while let Some(bytes) = next(&mut few) {
        match decode_server(&bytes).expect("a message") {
            Received::Ticks(source, _) => heard.push(source),
            Received::Control(ServerMessage::Sources(all)) => assert_eq!(all.len(), 1),
            _ => {}
        }
    }
    assert!(
        !heard.is_empty() && heard.iter().all(|source| *source == other),
        "what a person may not see is like a name that nobody has"
    );
    let mut none = Viewer::new(bench.live.clone(), Scope::All);
    none.receive(open(&[])).expect("it opens");
    assert!(none.sources().is_empty());
    let many = vec!["here"; MAX_OPENED + 1];
    assert!(Viewer::new(bench.live.clone(), Scope::All).receive(open(&many)).unwrap_err().contains("at most 8"));
}
