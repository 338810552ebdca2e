//! Series that change for days: each new one gets an id, ids are reused, and no page mistakes one series for another.

use super::*;
use crate::clock::Manual;
use crate::store::{Limits, MAX_ALIVE_SERIES, QUARTER, Store};
use shared::catalog::{Catalog, cpu};
use shared::series::{SeriesDef, SeriesId};
use shared::tick::{Applied, TickState};
use shared::wire::{Received, Resume, decode_server};
use std::collections::HashMap;
use std::time::Duration;

/// Five minutes, so that a quarter has three ticks.
const INTERVAL: i64 = 300_000;
const T0: i64 = 1_700_000_000_000 / QUARTER * QUARTER;
const RETENTION: i64 = 2 * 3_600_000;
/// Number of new series per tick, and number of ticks with values of each.
const NEW: usize = 700;
const LIFE: usize = 2;

/// The n-th series added; rows with different steps alternate.
fn def(n: usize) -> SeriesDef {
    SeriesDef { metric: (n % 4) as u16, instance: n.to_string() }
}

fn value(n: usize, tick: usize) -> f64 {
    ((n * 31 + tick * 7) % 9_973) as f64
}

/// A page with the series that it received.
#[derive(Default)]
struct Page {
    state: TickState,
    defs: Vec<SeriesDef>,
    messages: u32,
    ticks: usize,
    resyncs: usize,
}

impl Page {
    fn take(&mut self, viewer: &mut Viewer, catalog: &Catalog) {
        while let Some(next) = viewer.next_message() {
            let (bytes, rest) = next.read();
            rest.into_iter().for_each(|rest| viewer.put_back(rest));
            match decode_server(&bytes.expect("a message")).expect("a message") {
                Received::Control(ServerMessage::Series { first, defs, .. }) => {
                    for (id, def) in (first..).zip(defs) {
                        let steps = catalog.metric(&def).map_or(0.0, |metric| metric.steps);
                        match self.defs.get_mut(id as usize) {
                            Some(known) if *known == def => {}
                            Some(known) => {
                                *known = def;
                                self.state.redefine(id, steps);
                            }
                            None => {
                                self.defs.push(def);
                                self.state.extend([steps]);
                            }
                        }
                    }
                }
                Received::Control(ServerMessage::Resync) => {
                    self.resyncs += 1;
                    (self.state, self.defs) = (TickState::default(), Vec::new());
                }
                Received::Control(_) | Received::Overview(..) => {}
                Received::Ticks(_, frames) => {
                    self.messages += 1;
                    for frame in frames {
                        if let Applied::Tick { .. } = self.state.apply(frame).expect("it follows") {
                            self.check();
                        }
                    }
                    viewer.receive(PageMessage::Ack { messages: self.messages }).expect("it was sent");
                }
            }
        }
    }

    /// Each value belongs to the series whose name it is shown under.
    fn check(&mut self) {
        let tick = ((self.state.t() - T0) / INTERVAL) as usize;
        let mut present: Vec<usize> = Vec::new();
        for (def, v) in self.defs.iter().zip(self.state.values()).filter(|(_, v)| v.is_finite()) {
            let n = def.instance.parse().expect("its number");
            assert_eq!((*v, def), (value(n, tick), &super::churn::def(n)), "tick {tick}");
            present.push(n);
        }
        present.sort_unstable();
        assert_eq!(present, (tick.saturating_sub(LIFE - 1) * NEW..(tick + 1) * NEW).collect::<Vec<_>>());
        self.ticks += 1;
    }
}

fn open(resume: Option<Resume>) -> PageMessage {
    PageMessage::Open { protocol: PROTOCOL, window: RETENTION, resume, sources: vec![String::new()] }
}

#[test]
fn series_that_come_and_go_for_days_find_room_and_no_page_takes_one_for_another() {
    let clock = Arc::new(Manual::at(T0, Duration::ZERO));
    let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
    let mut store = Store::new(catalog.clone(), Limits { retention: RETENTION, bytes: usize::MAX });
    let source = store.add_source("here".into(), INTERVAL, Vec::new());
    let live = Live::new(store, clock.clone(), 77, RETENTION);
    let (mut followed, mut viewer) = (Page::default(), Viewer::new(live.clone(), Scope::All));
    let mut away = Page::default();
    let ticks = 30 * 12;
    assert!(ticks * NEW > 2 * MAX_ALIVE_SERIES, "far more in all than there is room for at once");
    for tick in 0..ticks {
        {
            let mut store = live.store();
            let mut values = Vec::new();
            for n in tick.saturating_sub(LIFE - 1) * NEW..(tick + 1) * NEW {
                let id = store.intern(source, def(n)).expect("room") as usize;
                values.resize(values.len().max(id + 1), f64::NAN);
                values[id] = value(n, tick);
            }
            store.append(source, T0 + tick as i64 * INTERVAL, false, &values).expect("a source");
            if tick % 3 == 2 {
                store.seal(source);
            }
            let counts = store.counts();
            assert!(counts.series_alive <= (NEW * (LIFE + 3)) as u64, "{counts:?}");
            // The series of the retention, and some quarters more until an id is cut, dropped and free.
            assert!(store.series(source, 0).len() <= NEW * (24 + 12), "{} ids", store.series(source, 0).len());
            assert_eq!(counts.series_refused, 0);
        }
        clock.pass(Duration::from_millis(INTERVAL as u64));
        if tick == 0 {
            viewer.receive(open(None)).expect("it opens");
        }
        followed.take(&mut viewer, &catalog);
        // A page that resumes after a tick or two, again and again.
        if tick % 2 == 0 || tick > ticks - 5 {
            let resume = (tick > 0).then(|| Resume {
                boot: 77,
                rows: catalog.metrics.len() as u32,
                places: vec![(source, away.state.seq(), away.defs.len() as u32)],
            });
            let mut again = Viewer::new(live.clone(), Scope::All);
            again.receive(open(resume)).expect("it opens");
            away.messages = 0;
            away.take(&mut again, &catalog);
        }
        if tick % 60 == 59 {
            let (mut fresh, mut viewer) = (Page::default(), Viewer::new(live.clone(), Scope::All));
            viewer.receive(open(None)).expect("it opens");
            fresh.take(&mut viewer, &catalog);
            assert_eq!(fresh.state.seq(), tick as u64 + 1);
        }
    }
    assert_eq!((followed.ticks, followed.resyncs), (ticks, 0));
    assert_eq!((away.ticks, away.resyncs), (ticks, 0), "it resumes where it was");
    // All samples of the retention are there, each under its own name.
    let (snapshot, ids) = {
        let store = live.store();
        let known: HashMap<&SeriesDef, SeriesId> = store.series(source, 0).iter().zip(0..).collect();
        let wanted = (ticks - 20) * NEW..(ticks - LIFE) * NEW;
        let ids: Vec<(usize, SeriesId)> = wanted.step_by(97).map(|n| (n, known[&def(n)])).collect();
        (store.snapshot(source, i64::MIN, i64::MAX).expect("a source"), ids)
    };
    let all = snapshot.samples(&ids.iter().map(|(_, id)| *id).collect::<Vec<_>>());
    for ((n, _), samples) in ids.iter().zip(all) {
        let born = n / NEW;
        let expected = (born..born + LIFE).map(|tick| (T0 + tick as i64 * INTERVAL, value(*n, tick)));
        assert_eq!(samples, expected.collect::<Vec<_>>(), "series {n}");
    }
}

#[test]
fn only_those_that_are_alive_count_against_the_limit() {
    let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
    let mut store = Store::new(catalog, Limits { retention: RETENTION, bytes: usize::MAX });
    let source = store.add_source("here".into(), INTERVAL, Vec::new());
    let full: Vec<f64> = vec![1.0; MAX_ALIVE_SERIES];
    (0..MAX_ALIVE_SERIES).for_each(|n| assert_eq!(store.intern(source, def(n)), Some(n as SeriesId)));
    let late = def(MAX_ALIVE_SERIES);
    assert_eq!(store.intern(source, late.clone()), None);
    store.append(source, T0, false, &full).expect("a source");
    assert_eq!(store.intern(source, late.clone()), None);
    assert_eq!((store.counts().series_refused, store.counts().series_alive), (2, MAX_ALIVE_SERIES as u64));
    // All but ten are gone. After as many ticks as the head holds, here three, there is room.
    for tick in 1..4 {
        assert_eq!(store.intern(source, late.clone()), None, "tick {tick}");
        store.append(source, T0 + tick * INTERVAL, false, &full[..10]).expect("a source");
    }
    let id = store.intern(source, late).expect("room");
    assert_eq!(id, MAX_ALIVE_SERIES as SeriesId, "the others have their history still");
    assert_eq!(store.span(source, 99_999), Some((T0, T0)));
}

#[test]
fn rows_that_come_and_go_take_each_others_places_and_a_page_follows() {
    let clock = Arc::new(Manual::at(T0, Duration::ZERO));
    let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
    let mut store = Store::new(catalog, Limits { retention: RETENTION, bytes: usize::MAX });
    let source = store.add_source("here".into(), INTERVAL, Vec::new());
    let live = Live::new(store, clock.clone(), 77, RETENTION);
    let drawn = live.store().catalog().layout.charts.len();
    let (mut viewer, mut table, mut defs) = (Viewer::new(live.clone(), Scope::All), Catalog::default(), Vec::new());
    let (mut state, mut messages, mut replaced) = (TickState::default(), 0, 0);
    let tag = |n: usize| format!("scraped.{n}{{labels}}");
    for tick in 0..240 {
        {
            let mut store = live.store();
            let mut values = Vec::new();
            for n in tick * 5..(tick + 1) * 5 {
                let mut metric = shared::catalog::Metric::from(&cpu::LOAD1);
                (metric.tag, metric.chart) = (tag(n), format!("scraped.{n}"));
                let chart = shared::catalog::Chart { id: metric.chart.clone(), title: "t".into(), section: "s".into() };
                let metric = store.add_row(metric, chart).expect("room");
                let id = store.intern(source, SeriesDef { metric, instance: n.to_string() }).expect("room") as usize;
                values.resize(values.len().max(id + 1), f64::NAN);
                values[id] = n as f64;
            }
            store.append(source, T0 + tick as i64 * INTERVAL, false, &values).expect("a source");
            if tick % 3 == 2 {
                store.seal(source);
                store.rest_rows();
            }
            let rows = store.catalog().metrics.len() - cpu::ROWS.len();
            assert!(rows <= 5 * (24 + 12), "{rows} rows");
            assert!(store.catalog().layout.charts.len() <= rows + drawn);
        }
        if tick == 0 {
            viewer.receive(open(None)).expect("it opens");
        }
        while let Some(next) = viewer.next_message() {
            let (bytes, rest) = next.read();
            rest.into_iter().for_each(|rest| viewer.put_back(rest));
            match decode_server(&bytes.expect("a message")).expect("a message") {
                Received::Control(ServerMessage::Catalog(catalog)) => table = catalog,
                Received::Control(ServerMessage::Rows { first, metrics, charts }) => {
                    replaced += usize::from((first as usize) < table.metrics.len());
                    table.extend(first as usize, metrics, charts);
                }
                Received::Control(ServerMessage::Series { first, defs: told, .. }) => {
                    for (id, def) in (first as usize..).zip(told) {
                        let steps = table.metric(&def).map_or(0.0, |metric| metric.steps);
                        if id < defs.len() {
                            defs[id] = def;
                            state.redefine(id as SeriesId, steps);
                        } else {
                            defs.push(def);
                            state.extend([steps]);
                        }
                    }
                }
                Received::Control(_) | Received::Overview(..) => {}
                Received::Ticks(_, frames) => {
                    messages += 1;
                    for frame in frames {
                        state.apply(frame).expect("it follows");
                    }
                    for (def, v) in defs.iter().zip(state.values()).filter(|(_, v)| v.is_finite()) {
                        assert_eq!(
                            (def.instance.clone(), &table.metric(def).expect("a row").tag),
                            (v.to_string(), &tag(*v as usize))
                        );
                    }
                    viewer.receive(PageMessage::Ack { messages }).expect("it was sent");
                }
            }
        }
    }
    assert!(replaced > 300, "{replaced}");
}
