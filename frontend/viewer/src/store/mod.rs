//! The data of the page, and ways to read them: sources with their series, sealed chunks (still compressed as they
//! arrived), and the head of newest ticks. It needs no browser, so that it is compiled and tested natively.
//!
//! - [`source`]: one machine; [`days`]: its history in minutes; [`spans`]: the spans that are stored.
//! - [`trace`]: one series reduced to columns, updated as ticks arrive; [`presence`]: number of instants of a chart.
//! - [`reading`]: the newest value of a series; [`difference`]: changes and differing devices.
//! - [`fleet`]: all machines at once; [`plan`]: the list of panels, tiles and sections.

pub mod days;
pub mod difference;
pub mod fleet;
pub mod plan;
pub mod presence;
pub mod processes;
pub mod reading;
pub mod source;
pub mod spans;
pub mod trace;

use fleet::Fleet;
use shared::catalog::Catalog;
use shared::wire::{self, CheckState, Hello, IndexEntry, Resume, ServerMessage, SourceId};
use source::Source;
use std::collections::BTreeMap;

/// The parts of the store that a message changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// A tick arrived, so there is something new to draw.
    pub ticks: bool,
    /// Series, checks, sources or the catalog changed, so the plan may change.
    pub plan: bool,
    /// Older history arrived, so reduced columns are incomplete.
    pub history: bool,
    /// The index of machines or an overview of them changed.
    pub fleet: bool,
}

/// All data that the server sent.
#[derive(Default)]
pub struct Store {
    /// The first message of the connection; None before it arrived.
    pub hello: Option<Hello>,
    /// Metrics and layout.
    pub catalog: Catalog,
    /// Machines by their number.
    pub sources: BTreeMap<SourceId, Source>,
    /// Entries of the index of machines, in ascending order of their number.
    pub index: Vec<IndexEntry>,
    /// The overview of all machines.
    pub fleet: Fleet,
}

impl Store {
    /// The source with this name, else the first; None while there is no source.
    pub fn source(&self, name: Option<&str>) -> Option<&Source> {
        let called = |name| self.sources.values().find(|s| s.info.is_called(name));
        name.and_then(called).or_else(|| self.sources.values().next())
    }

    /// The same source as [`source`](Self::source), for changing it.
    pub fn source_mut(&mut self, name: Option<&str>) -> Option<&mut Source> {
        let id = self.source(name)?.info.id;
        self.sources.get_mut(&id)
    }

    /// Applies a control message.
    pub fn take(&mut self, message: ServerMessage) -> Changed {
        let mut changed = Changed::default();
        match message {
            ServerMessage::Hello(hello) => {
                if self.hello.as_ref().is_some_and(|h| h.boot != hello.boot) {
                    self.sources.clear();
                }
                self.hello = Some(hello);
            }
            ServerMessage::Catalog(catalog) => {
                self.catalog = catalog;
                changed.plan = true;
            }
            ServerMessage::Sources(list) => {
                self.sources.retain(|id, _| list.iter().any(|s| s.id == *id));
                self.index.clear();
                list.into_iter().for_each(|entry| self.enter(entry));
                (changed.plan, changed.fleet) = (true, true);
            }
            ServerMessage::Changed(list) => {
                list.into_iter().for_each(|entry| self.enter(entry));
                (changed.plan, changed.fleet) = (true, true);
            }
            ServerMessage::Facts { source, facts } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    s.info.facts = facts;
                    changed.plan = true;
                }
            }
            ServerMessage::Rows { first, metrics, charts } => {
                self.catalog.extend(first as usize, metrics, charts);
                changed.plan = true;
            }
            ServerMessage::Series { source, first, defs } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    s.announce(first, defs, &self.catalog);
                    changed.plan = true;
                }
            }
            ServerMessage::Checks { source, checks } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    s.checks = checks;
                    changed.plan = true;
                }
            }
            ServerMessage::Columns(columns) => {
                if let Some(s) = self.sources.get_mut(&columns.source) {
                    s.keep(columns);
                }
            }
            ServerMessage::HistoryEnd { source, from, to, more } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    changed.history = s.history_end(from, to);
                    s.opened |= !more;
                }
            }
            ServerMessage::Minutes(minutes) => {
                if let Some(s) = self.sources.get_mut(&minutes.source) {
                    s.days.take(minutes);
                }
            }
            ServerMessage::MinutesEnd { source, from, .. } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    s.days.end(from);
                    s.epoch += 1;
                    changed.history = true;
                }
            }
            ServerMessage::Cells { grain, first, cells, left_out, interval } => {
                self.fleet.announce(grain, first, cells, left_out, interval);
            }
            ServerMessage::Resync => {
                self.sources.values_mut().for_each(|s| *s = Source::new(s.info.clone()));
                changed.plan = true;
            }
            // The other messages carry no data, or data that this page does not draw.
            _ => {}
        }
        changed
    }

    /// Adds or replaces an entry of the index of sources.
    fn enter(&mut self, entry: IndexEntry) {
        let IndexEntry { id, key, name, interval, .. } = entry.clone();
        match self.index.binary_search_by_key(&id, |known| known.id) {
            Ok(at) => self.index[at] = entry,
            Err(at) => self.index.insert(at, entry),
        }
        let source = self
            .sources
            .entry(id)
            .or_insert_with(|| Source::new(wire::Source::new(id, key.clone(), interval, Vec::new())));
        (source.info.key, source.info.name, source.info.interval) = (key, name, interval);
    }

    /// Applies frames of ticks; true when at least one was a tick. An error means that all data must be sent again.
    pub fn ticks(&mut self, source: SourceId, frames: &[&[u8]]) -> Result<bool, shared::tick::FrameError> {
        let Some(s) = self.sources.get_mut(&source) else { return Ok(false) };
        let mut any = false;
        for frame in frames {
            any |= s.apply(frame)?;
        }
        let keep = self.hello.as_ref().map_or(43_200_000, |h| h.retention);
        s.forget(keep);
        Ok(any)
    }

    /// The position in each stream from which the server can resume. None while no tick is stored, or while history of
    /// a source is still arriving: then everything must be sent again.
    pub fn places(&self) -> Option<Resume> {
        if self.sources.values().any(|s| s.last_seq().is_some() && !s.opened) {
            return None;
        }
        let places: Vec<_> =
            self.sources.iter().filter_map(|(id, s)| Some((*id, s.last_seq()?, s.defs.len() as u32))).collect();
        let boot = self.hello.as_ref()?.boot;
        (!places.is_empty()).then_some(Resume { boot, rows: self.catalog.metrics.len() as u32, places })
    }

    /// The same for a new connection. Without such a position the server sends everything again, and the stored data
    /// are dropped.
    pub fn resume(&mut self) -> Option<Resume> {
        let places = self.places();
        if places.is_none() {
            self.take(ServerMessage::Resync);
        }
        places
    }
}

/// True for a state in which a collector gives no value and will not recover by itself.
pub fn is_missing(state: CheckState) -> bool {
    matches!(state, CheckState::Absent | CheckState::Denied | CheckState::Failed | CheckState::Hung)
}

#[cfg(test)]
mod tests {
    use super::trace::Trace;
    use super::*;
    use presence::Presence;
    use shared::catalog::VOCABULARY;
    use shared::column;
    use shared::connection_state::ConnectionState;
    use shared::series::SeriesDef;
    use shared::tick::TickState;
    use shared::wire::{Check, ColumnBytes, Columns};

    const START: i64 = 1_795_219_200_000;

    /// A server with a gauge and a counter, which in second `s` have the values `s % 100` and `s * 1000`.
    struct Server {
        state: TickState,
        catalog: Catalog,
        defs: Vec<SeriesDef>,
        steps: Vec<f64>,
        second: i64,
    }

    impl Server {
        fn new() -> Self {
            let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
            let counter =
                catalog.metrics.iter().position(|m| m.kind == shared::catalog::Kind::Counter && !m.tag.contains('{'));
            let gauge =
                catalog.metrics.iter().position(|m| m.unit == shared::unit::Unit::Percent && !m.tag.contains('{'));
            let defs: Vec<SeriesDef> = [gauge.unwrap(), counter.unwrap()]
                .map(|m| SeriesDef { metric: m as u16, instance: String::new() })
                .to_vec();
            let steps: Vec<f64> = defs.iter().map(|d| catalog.metrics[usize::from(d.metric)].steps).collect();
            let mut state = TickState::default();
            state.extend(steps.iter().copied());
            Server { state, catalog, defs, steps, second: 0 }
        }

        fn values(second: i64) -> [f64; 2] {
            [(second % 100) as f64, (second * 1000) as f64]
        }

        fn tick(&mut self) -> Vec<u8> {
            let frame = self.state.encode(START + self.second * 1000, false, &Self::values(self.second));
            self.second += 1;
            frame
        }

        fn sealed(&self, from: i64, to: i64) -> Columns {
            let times: Vec<i64> = (from..to).map(|s| START + s * 1000).collect();
            let column = |i: usize| {
                let values: Vec<f64> = (from..to).map(|s| Self::values(s)[i]).collect();
                (i as u32, ColumnBytes(column::encode(&values, self.steps[i])))
            };
            Columns {
                source: 0,
                first_seq: from as u64 + 1,
                last_seq: to as u64,
                ticks: times.len() as u32,
                times: column::encode_times(&times),
                columns: vec![column(0), column(1)],
            }
        }

        fn greet(&self, store: &mut Store, boot: u64) {
            let hello = Hello {
                protocol: 1,
                version: String::new(),
                boot,
                now: START,
                retention: 43_200_000,
                simulated: false,
                recorded: None,
                accounts: false,
            };
            let info =
                wire::Source::new(0, "here".into(), 1000, Vec::new()).entry(ConnectionState::Live, START, Vec::new());
            store.take(ServerMessage::Hello(hello));
            store.take(ServerMessage::Catalog(self.catalog.clone()));
            store.take(ServerMessage::Sources(vec![info]));
            store.take(ServerMessage::Series { source: 0, first: 0, defs: self.defs.clone() });
        }
    }

    fn read(store: &Store, series: u32) -> Vec<(i64, f64)> {
        let mut all = Vec::new();
        store.sources[&0].samples(series, 0, (i64::MIN, i64::MAX), |t, v| all.push(((t - START) / 1000, v)));
        all
    }

    #[test]
    fn history_head_and_what_was_handed_back_read_as_one() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        (0..900).for_each(|_| drop(server.tick()));
        store.take(ServerMessage::Columns(server.sealed(0, 900)));
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        let key = server.state.keyframe();
        assert_eq!(store.ticks(0, &[&key]), Ok(false), "a keyframe is no tick");
        let frames: Vec<Vec<u8>> = (0..2000).map(|_| server.tick()).collect();
        for frame in &frames {
            assert_eq!(store.ticks(0, &[frame]), Ok(true));
        }
        let expected: Vec<(i64, f64)> = (0..2900).map(|s| (s, Server::values(s)[0])).collect();
        assert_eq!(read(&store, 0), expected);

        let (from, to) = store.sources.get_mut(&0).unwrap().hand_back().expect("a head of 2,000 ticks is long");
        assert_eq!((from, to), (START + 900_000, START + 2_899_000));
        // One stretch arrives in two messages, and no tick may be missing in between.
        let mut columns = server.sealed(900, 1800);
        let rest = Columns { columns: columns.columns.split_off(1), ..columns.clone() };
        store.take(ServerMessage::Columns(columns));
        assert_eq!(read(&store, 1).len(), 2900);
        assert_eq!(read(&store, 1)[1000].1, 1_000_000.0);
        store.take(ServerMessage::Columns(rest));
        let changed = store.take(ServerMessage::HistoryEnd { source: 0, from, to: i64::MAX, more: false });
        assert!(!changed.history, "what was known already needs no new reduction");
        assert_eq!(store.sources[&0].head.len(), 1100);
        assert_eq!(read(&store, 0), expected);
    }

    #[test]
    fn a_series_that_is_another_now_has_none_of_its_values_and_is_drawn_in_its_own_chart() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        (0..900).for_each(|_| drop(server.tick()));
        store.take(ServerMessage::Columns(server.sealed(0, 900)));
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        let key = server.state.keyframe();
        store.ticks(0, &[&key]).unwrap();
        let frame = server.tick();
        store.ticks(0, &[&frame]).unwrap();
        assert_eq!(read(&store, 0).len(), 901);
        let charts = |store: &Store, id: u32| {
            let drawn = store.sources[&0].charts.iter().filter(|(_, members)| members.lines.contains(&id));
            drawn.map(|(chart, _)| chart.clone()).collect::<Vec<_>>()
        };
        let before = charts(&store, 0);
        // A resuming page receives known series again, which changes nothing.
        store.take(ServerMessage::Series { source: 0, first: 0, defs: server.defs.clone() });
        assert_eq!((read(&store, 0).len(), charts(&store, 0)), (901, before.clone()));
        // The series first disappears, long before another takes its id. The new one has other steps.
        server.state.encode(START + 901_000, false, &[f64::NAN, 901_000.0]);
        let away = server.state.keyframe();
        store.ticks(0, &[&away]).unwrap();
        let other =
            |m: &shared::catalog::Metric| m.steps != server.steps[0] && !m.chart.is_empty() && m.chart != before[0];
        let metric = store.catalog.metrics.iter().position(other).unwrap() as u16;
        let steps = store.catalog.metrics[usize::from(metric)].steps;
        server.state.redefine(0, steps);
        store.take(ServerMessage::Series {
            source: 0,
            first: 0,
            defs: vec![SeriesDef { metric, instance: "x".into() }],
        });
        let frame = server.state.encode(START + 902_000, false, &[7.0, 902_000.0]);
        assert_eq!(store.ticks(0, &[&frame]), Ok(true));
        let present: Vec<(i64, f64)> = read(&store, 0).into_iter().filter(|(_, v)| v.is_finite()).collect();
        assert_eq!(present, [(902, 7.0)]);
        assert_eq!(read(&store, 1).iter().filter(|(_, v)| v.is_finite()).count(), 902, "the other is as it was");
        assert!(charts(&store, 0) != before && charts(&store, 0).len() <= 1);
        assert!(!store.sources[&0].charts.iter().any(|(chart, _)| *chart == before[0]), "it was alone in its chart");
    }

    #[test]
    fn an_hour_takes_the_place_of_its_quarters_and_a_quarter_none_of_an_hour() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        (0..3_600).for_each(|_| drop(server.tick()));
        let key = server.state.keyframe();
        store.ticks(0, &[&key]).unwrap();
        let bring = |store: &mut Store, stretches: &[(i64, i64)]| {
            for &(from, to) in stretches {
                store.take(ServerMessage::Columns(server.sealed(from, to)));
            }
            store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false }).history
        };
        let expected = |from: i64| (from..3_600).map(|s| (s, Server::values(s)[0])).collect::<Vec<_>>();
        assert!(bring(&mut store, &[(1_800, 2_700), (2_700, 3_600)]));
        assert_eq!(read(&store, 0), expected(1_800));
        let mut presence = Presence::default();
        let mut count = |store: &Store| presence.count(&store.sources[&0], &[0, 1], START, i64::MAX);
        assert_eq!(count(&store), 1_800);
        assert!(bring(&mut store, &[(0, 3_600)]), "half of it is new");
        assert_eq!((read(&store, 0), count(&store)), (expected(0), 3_600));
        assert!(!bring(&mut store, &[(900, 1_800), (0, 900)]), "nothing of it is new");
        assert_eq!((read(&store, 0), count(&store)), (expected(0), 3_600));
        assert_eq!(store.sources[&0].chunks.len(), 1);
        assert_eq!(store.sources[&0].last_seq(), Some(3_600));
        // A stretch that is stored in part adds only the missing ticks.
        let (server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        let mut bring = |stretches: &[(i64, i64)]| {
            for &(from, to) in stretches {
                store.take(ServerMessage::Columns(server.sealed(from, to)));
            }
            store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        };
        bring(&[(0, 2_000)]);
        bring(&[(1_000, 3_600)]);
        assert_eq!(read(&store, 0), expected(0));
    }

    #[test]
    fn a_trace_that_is_fed_as_ticks_come_equals_one_that_is_built_anew() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        let make = |store: &Store| Trace::new(1, 7_000, START, &store.sources[&0], &store.catalog);
        let mut fed = make(&store);
        for _ in 0..300 {
            let frame = server.tick();
            store.ticks(0, &[&frame]).unwrap();
            fed.feed(&store.sources[&0], START, START + server.second * 1000);
        }
        let mut anew = make(&store);
        anew.feed(&store.sources[&0], START, START + 300_000);
        assert_eq!(fed.columns(), anew.columns());
        let factor = store.catalog.metric(&server.defs[1]).unwrap().unit.to_base();
        assert!(fed.columns().iter().all(|c| c.min == 1000.0 * factor && c.max == 1000.0 * factor), "a rate is even");
    }

    #[test]
    fn a_trace_holds_the_span_shown_and_little_more_wherever_it_is_moved() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        (0..43_200).for_each(|_| drop(server.tick()));
        for h in 0..12 {
            store.take(ServerMessage::Columns(server.sealed(h * 3_600, (h + 1) * 3_600)));
        }
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        let source = &store.sources[&0];
        let make = |from: i64| Trace::new(1, 1, from, source, &store.catalog);
        let mut trace = make(START);
        let spans = [20_000, 20_010, 20_600, 19_900, 21_000, 30_000, 29_990, 0, 43_190].map(|s| START + s * 1000);
        for from in spans {
            let to = from + 10_000;
            if !trace.fits(from, source) {
                trace = make(from);
            }
            trace.feed(source, from, to);
            let mut anew = make(from);
            anew.feed(source, from, to);
            assert_eq!(trace.within(from, to), anew.within(from, to));
            assert_eq!(
                trace.within(from, to).len(),
                ((to.min(START + 43_199_000) - from.max(START + 1000)) / 1000 + 1) as usize
            );
            assert!(trace.columns().len() < 2_000, "{} columns for 11 samples", trace.columns().len());
        }
        // A stretch whose ticks were taken after the clock was set back is found too.
        let mut back = server.sealed(0, 900);
        (back.first_seq, back.last_seq) = (43_201, 44_100);
        store.take(ServerMessage::Columns(back));
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        let mut seen = 0;
        store.sources[&0].samples(0, 0, (START + 100_000, START + 109_000), |t, _| {
            seen += usize::from((100_000..=109_000).contains(&(t - START)));
        });
        assert_eq!(seen, 20);
    }

    #[test]
    fn days_are_drawn_from_minutes_and_the_samples_behind_them_with_every_extreme() {
        use shared::rollup::roll;
        use shared::segment::{TIER_MS, tier};
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        let hours = 30;
        let more = |s: i64| if s < 22 * 3_600 { 0.0 } else { 300.0 };
        let at = |s: i64| if s == 12_345 { 5_000.0 } else { Server::values(s)[0] + more(s) };
        server.second = hours * 3_600;
        store.take(ServerMessage::Columns(server.sealed((hours - 2) * 3_600, hours * 3_600)));
        store.take(ServerMessage::HistoryEnd {
            source: 0,
            from: START + (hours - 2) * 3_600_000,
            to: i64::MAX,
            more: false,
        });
        let source = store.sources.get_mut(&0).unwrap();
        let (day, newest) = ((START, START + hours * 3_600_000 - 1_000), source.last_t().unwrap());
        assert!(!source.in_days(day), "before they are there");
        assert_eq!(source.ask_days(day.0, newest), Some((START, newest)));
        // All but the last hour are sealed by the hour.
        for h in 0..hours - 1 {
            let samples = (h * 3_600..(h + 1) * 3_600).map(|s| (START + s * 1000, at(s)));
            let bytes = tier::encode(&roll(samples, TIER_MS), server.steps[0]);
            store.take(ServerMessage::Minutes(shared::wire::Minutes {
                source: 0,
                first_seq: h as u64 * 3_600 + 1,
                last_seq: (h as u64 + 1) * 3_600,
                from: START + h * 3_600_000,
                to: START + (h + 1) * 3_600_000 - 1_000,
                columns: vec![(0, ColumnBytes(bytes))],
            }));
        }
        assert!(store.take(ServerMessage::MinutesEnd { source: 0, from: START, to: newest }).history);
        let source = store.sources.get_mut(&0).unwrap();
        assert_eq!(source.ask_days(day.0, newest), None, "it is there");
        assert!(source.in_days(day) && !source.in_days((START, START + 43_200_000)));
        let source = &store.sources[&0];
        let mut trace = Trace::of_days(0, 120_000, day.0, source, &store.catalog);
        trace.feed(source, day.0, day.1);
        let columns = trace.within(day.0, day.1);
        assert_eq!(columns.len() as i64, hours * 30);
        assert!(columns.iter().skip(1).all(|c| c.joined && c.count == 120));
        assert_eq!(columns.iter().map(|c| c.max).fold(0.0, f64::max), 5_000.0, "one odd sample of 108,000");
        let mut presence = Presence::default();
        assert_eq!(presence.count(source, &[0], day.0, day.1), 108_000);
        let ranked = |from: i64, to: i64| {
            let span = (START + from * 3_600_000, START + to * 3_600_000);
            difference::rank(source, &store.catalog, span).map(|found| found.len())
        };
        assert_eq!(ranked(5, 20), Some(0), "minutes of the same kind");
        assert_eq!(ranked(15, 30), Some(1), "300 more from the 22nd hour on");
        assert_eq!(ranked(-1, 16), None, "nothing before it");
        let value = reading::at(source, &store.catalog, 0, START + 40_000_000).unwrap();
        let minute: f64 = (40_000 / 60 * 60..40_000 / 60 * 60 + 60).map(at).sum::<f64>() / 60.0;
        assert!((value - minute).abs() < 1e-3, "{value} is not {minute}");
    }

    #[test]
    fn nothing_after_the_clock_of_a_recording_is_read_and_what_is_read_goes_on_with_it() {
        let (server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        store.take(ServerMessage::Columns(server.sealed(0, 900)));
        store.take(ServerMessage::Columns(server.sealed(900, 1800)));
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        let (mut after, mut all) = (0, Vec::new());
        for second in [10, 10, 899, 900, 1500, 9000] {
            let source = store.sources.get_mut(&0).unwrap();
            source.until = START + second * 1000 + 500;
            after = source.samples(0, after, (i64::MIN, i64::MAX), |t, v| all.push(((t - START) / 1000, v)));
            let expected: Vec<(i64, f64)> = (0..=second.min(1799)).map(|s| (s, Server::values(s)[0])).collect();
            assert_eq!(all, expected, "up to second {second}, each once");
        }
    }

    #[test]
    fn ticks_behind_a_gap_in_the_sequences_are_read() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        let key = server.state.keyframe();
        store.ticks(0, &[&key]).unwrap();
        for _ in 0..5 {
            let frame = server.tick();
            store.ticks(0, &[&frame]).unwrap();
        }
        for (seq, second) in [(500, 10), (501, 11), (9_000_000_000, 12)] {
            let frame = server.state.encode_at(seq, START + second * 1_000, false, &[second as f64, 0.0]);
            store.ticks(0, &[&frame]).unwrap();
        }
        let read = |after: u64| {
            let mut values = Vec::new();
            let last = store.sources[&0].samples(0, after, (START + 9_000, i64::MAX), |_, v| values.push(v));
            (values, last)
        };
        assert_eq!(read(0), (vec![10.0, 11.0, 12.0], 9_000_000_000));
        assert_eq!(read(500), (vec![11.0, 12.0], 9_000_000_000));
        assert_eq!(read(9_000_000_000), (vec![], 9_000_000_000));
    }

    #[test]
    fn instants_are_counted_across_chunks_and_head() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        (0..900).for_each(|_| drop(server.tick()));
        store.take(ServerMessage::Columns(server.sealed(0, 900)));
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        let key = server.state.keyframe();
        store.ticks(0, &[&key]).unwrap();
        for _ in 0..100 {
            let frame = server.tick();
            store.ticks(0, &[&frame]).unwrap();
        }
        let mut presence = Presence::default();
        let mut count =
            |from: i64, to: i64| presence.count(&store.sources[&0], &[0, 1], START + from * 1000, START + to * 1000);
        assert_eq!((count(0, 999), count(500, 949), count(880, 880)), (1000, 450, 1));
    }

    #[test]
    fn the_place_survives_a_break_and_another_run_of_the_server_clears_the_table() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        assert_eq!(store.places(), None, "before the first tick there is nothing to go on from");
        let frame = server.tick();
        store.ticks(0, &[&frame]).unwrap();
        assert_eq!(store.places(), None, "its history is on its way");
        store.take(ServerMessage::HistoryEnd { source: 0, from: 0, to: i64::MAX, more: false });
        assert_eq!(
            store.resume(),
            Some(Resume { boot: 1, rows: server.catalog.metrics.len() as u32, places: vec![(0, 1, 2)] })
        );
        server.tick();
        let frame = server.tick();
        assert!(store.ticks(0, &[&frame]).is_err(), "a hole is noticed");
        server.greet(&mut store, 2);
        assert_eq!(store.places(), None);
        assert!(store.sources[&0].head.is_empty());
    }

    #[test]
    fn history_is_read_as_it_arrives_and_a_break_meanwhile_has_all_sent_anew() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        (0..1800).for_each(|_| drop(server.tick()));
        let key = server.state.keyframe();
        assert_eq!(store.ticks(0, &[&key]), Ok(false));
        let tick = server.tick();
        assert_eq!(store.ticks(0, &[&tick]), Ok(true));
        let half = START + 900_000;
        store.take(ServerMessage::Columns(server.sealed(900, 1800)));
        let changed = store.take(ServerMessage::HistoryEnd { source: 0, from: half, to: i64::MAX, more: true });
        assert!(changed.history);
        assert_eq!(read(&store, 0).len(), 901, "the newest quarter is drawn before the rest is there");
        let source = store.sources.get_mut(&0).expect("the machine");
        assert!(source.has_all(half, i64::MAX, (half, half)) && !source.has_all(START, half, (START, half)));
        assert_eq!(source.ask(&[(START, half)]), None, "it is on its way");
        assert_eq!(store.places(), None);
        store.take(ServerMessage::Columns(server.sealed(0, 900)));
        store.take(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false });
        assert_eq!(read(&store, 0).len(), 1801);
        assert!(store.places().is_some());
        // Lists wait for an answer, also for one without ticks.
        let mut before = || {
            store.take(ServerMessage::HistoryEnd { source: 0, from: START - 300_000, to: START, more: false }).history
        };
        assert_eq!((before(), before()), (true, false));
    }

    #[test]
    fn a_break_before_the_history_came_has_all_sent_anew_and_nothing_held_twice() {
        let (mut server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        let frame = server.tick();
        store.ticks(0, &[&frame]).unwrap();
        assert_eq!(store.resume(), None);
        assert!(store.sources[&0].head.is_empty() && store.sources[&0].defs.is_empty());
        assert_eq!(store.index.len(), 1, "which machines there are is known");
    }

    #[test]
    fn a_family_without_data_is_a_line_with_its_reason() {
        let (server, mut store) = (Server::new(), Store::default());
        server.greet(&mut store, 1);
        let section = store.catalog.layout.sections[0].clone();
        let check = Check {
            id: section.checks[0].clone(),
            state: CheckState::Absent,
            tried: Vec::new(),
            found: String::new(),
            reason: "no library".into(),
            remedy: "install it".into(),
        };
        store.take(ServerMessage::Checks { source: 0, checks: vec![check] });
        let plan = plan::plan(&store, store.source(None), plan::Choice::default());
        assert_eq!(plan.absent[0].id, section.id);
        assert_eq!(plan.absent[0].reason, "no library");
        let drawn: Vec<_> = plan.top.iter().chain(plan.sections.iter().flat_map(|s| &s.panels)).collect();
        assert_eq!(drawn.len(), store.sources[&0].charts.len(), "each chart with data stands there once");
    }
}
