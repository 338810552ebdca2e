//! Tests that a picture after any moves of the view equals a new one.

use super::{Look, Picture};
use crate::store::Store;
use charts::axis::Axis;
use charts::reduce::Column;
use charts::{Band, Gap, Measures, theme};
use shared::catalog::{Catalog, Chart, Metric, MetricDef};
use shared::column;
use shared::connection_state::ConnectionState;
use shared::series::SeriesDef;
use shared::tick::TickState;
use shared::unit::Unit;
use shared::wire::{ColumnBytes, Columns, Hello, PROTOCOL, ServerMessage, Source};

const START: i64 = 1_700_000_000_000;
/// Charts with their number of series: one with enough for a band, one with rates, one with rare samples.
const CHARTS: [(&str, usize); 4] = [("many", 12), ("many.heat", 12), ("rates", 2), ("seldom", 1)];
/// Number of ticks that are sealed together.
const STRETCH: usize = 700;

/// Pseudo-random numbers, the same in each run.
struct Chance(u32);

impl Chance {
    fn below(&mut self, n: i64) -> i64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i64::from(self.0 >> 8) % n
    }
}

struct Server {
    store: Store,
    state: TickState,
    steps: Vec<f64>,
    ticks: Vec<(i64, Vec<f64>)>,
    sealed: usize,
    chance: Chance,
}

impl Server {
    fn new(seed: u32) -> Server {
        let defs = [
            MetricDef::gauge("many.{i}", Unit::Percent),
            MetricDef::counter("rates.{i}", Unit::Bytes),
            MetricDef::gauge("seldom", Unit::Count),
        ];
        let ids = ["many", "rates", "seldom"];
        let metric = |(id, def): (&&str, &MetricDef)| Metric { chart: id.to_string(), ..Metric::from(def) };
        let chart = |id: &&str| Chart { id: id.to_string(), title: id.to_string(), section: String::new() };
        let mut catalog = Catalog::new([]);
        catalog.extend(0, ids.iter().zip(&defs).map(metric).collect(), ids.iter().map(chart).collect());
        let series: Vec<SeriesDef> = [(0, 12), (1, 2), (2, 1)]
            .iter()
            .flat_map(|&(metric, n)| (0..n).map(move |i| SeriesDef { metric, instance: i.to_string() }))
            .collect();
        let steps: Vec<f64> = series.iter().map(|d| defs[usize::from(d.metric)].steps).collect();
        let mut state = TickState::default();
        state.extend(steps.iter().copied());
        let mut store = Store::default();
        store.take(ServerMessage::Hello(Hello {
            protocol: PROTOCOL,
            version: String::new(),
            boot: 1,
            now: START,
            retention: 43_200_000,
            simulated: true,
            recorded: None,
            accounts: false,
        }));
        store.take(ServerMessage::Catalog(catalog));
        let info = Source::new(0, "here".into(), 1_000, Vec::new()).entry(ConnectionState::Live, START, Vec::new());
        store.take(ServerMessage::Sources(vec![info]));
        store.take(ServerMessage::Series { source: 0, first: 0, defs: series });
        let mut server = Server { store, state, steps, ticks: Vec::new(), sealed: 0, chance: Chance(seed) };
        // The first ticks are sealed before the page connects; the others come as ticks.
        server.ticks.extend((0..5 * STRETCH).scan(START, |t, i| Some(Server::make(&mut server.chance, t, i))));
        (0..5).for_each(|k| server.seal(k * STRETCH, (k + 1) * STRETCH));
        server.state = TickState::after(server.ticks.len() as u64, server.newest());
        server.state.extend(server.steps.iter().copied());
        let key = server.state.keyframe();
        server.store.ticks(0, &[&key]).unwrap();
        server.tick(300);
        server
    }

    /// Makes the tick after `t`. Some ticks are late, and some values are absent for a while.
    fn make(chance: &mut Chance, t: &mut i64, i: usize) -> (i64, Vec<f64>) {
        *t += if chance.below(400) == 0 { 1_000 * (2 + chance.below(90)) } else { 1_000 };
        let wave = |k: usize| ((i * (k + 3)) % 97) as f64;
        let mut values: Vec<f64> =
            (0..12).map(|k| if (i / 60 + k).is_multiple_of(9) { f64::NAN } else { wave(k) }).collect();
        values.extend((0..2).map(|k| if i % 500 < 20 { f64::NAN } else { (i * i * (k + 1) / 50) as f64 }));
        values.push(if i.is_multiple_of(15) { wave(1) } else { f64::NAN });
        (*t, values)
    }

    fn seal(&mut self, from: usize, to: usize) {
        let ticks = &self.ticks[from..to];
        let times: Vec<i64> = ticks.iter().map(|t| t.0).collect();
        let column = |i: usize| {
            let values: Vec<f64> = ticks.iter().map(|t| t.1[i]).collect();
            (i as u32, ColumnBytes(column::encode(&values, self.steps[i])))
        };
        let columns = Columns {
            source: 0,
            first_seq: from as u64 + 1,
            last_seq: to as u64,
            ticks: times.len() as u32,
            times: column::encode_times(&times),
            columns: (0..self.steps.len()).map(column).collect(),
        };
        self.store.take(ServerMessage::Columns(columns));
        self.store.take(ServerMessage::HistoryEnd { source: 0, from: times[0], to: i64::MAX, more: false });
        self.sealed = to;
    }

    fn tick(&mut self, n: usize) {
        for _ in 0..n {
            let mut t = self.newest();
            let (t, values) = Self::make(&mut self.chance, &mut t, self.ticks.len());
            let frame = self.state.encode(t, false, &values);
            self.ticks.push((t, values));
            self.store.ticks(0, &[&frame]).unwrap();
        }
        if self.ticks.len() > self.sealed + STRETCH + 300 {
            self.seal(self.sealed, self.sealed + STRETCH);
        }
    }

    fn newest(&self) -> i64 {
        self.ticks.last().map_or(START, |t| t.0)
    }
}

/// All visible parts of a picture.
#[derive(Debug, PartialEq)]
struct VisibleParts {
    axis: Option<Axis>,
    words: (String, [String; 3]),
    gaps: Vec<Gap>,
    order: Vec<usize>,
    lines: Vec<Vec<Column>>,
    band: Vec<Band>,
    labels: Vec<String>,
}

/// The items within a span, and one more at each end when a line reaches to it. The first item may begin a line, or
/// continue one whose earlier items were dropped.
fn seen<T: Clone>(
    all: &[T],
    (from, to): (i64, i64),
    ends: impl Fn(&T) -> (i64, i64),
    joined: impl Fn(&T) -> bool,
) -> Vec<T> {
    let mut start = all.partition_point(|c| ends(c).1 < from);
    let mut end = all.partition_point(|c| ends(c).0 <= to).max(start);
    start -= usize::from(start > 0 && start < all.len() && joined(&all[start]));
    end += usize::from(end > start && end < all.len() && joined(&all[end]));
    all[start..end].to_vec()
}

fn look_at(picture: &Picture, look: &Look) -> VisibleParts {
    let span = look.span;
    let labels = picture.labels(None, span.1, None);
    let labels = labels.into_iter().map(|l| l.name + " " + &l.text).collect();
    picture
        .with_frame(look, (1200, 800), None, |frame| VisibleParts {
            axis: Some(frame.axis.clone()),
            words: (picture.note.clone(), picture.sums.clone()),
            gaps: frame.gaps.to_vec(),
            order: picture.order.clone(),
            lines: frame.lines.iter().map(|l| seen(l.columns, span, |c| (c.first_t, c.last_t), |c| c.joined)).collect(),
            band: seen(frame.band, span, |b| (b.t, b.t), |b| b.joined),
            labels,
        })
        .unwrap()
}

#[test]
fn a_view_that_was_moved_shows_what_one_that_is_built_from_nothing_shows() {
    for seed in 0..4 {
        let mut server = Server::new(seed * 7_919);
        let mut kept: Vec<Picture> = CHARTS.iter().map(|_| Picture::default()).collect();
        let mut chance = Chance(seed);
        let mut span = (server.newest() - 600_000, server.newest());
        for step in 0..60 {
            let (from, to) = span;
            let length = to - from;
            span = match chance.below(10) {
                // The view moves a little to either side, as in most cases.
                0..4 => (from - length / 40, to - length / 40),
                4 | 5 => (from + length / 30, to + length / 30),
                // The view moves to the left by more than the trace holds there.
                6 => (from - length * 2 / 3, to - length * 2 / 3),
                7 => {
                    let length = 5_000 + chance.below(3_000) * 1_000;
                    let from = START + chance.below(4_000) * 1_000;
                    (from, from + length)
                }
                // The view is live, and ticks arrive.
                _ => {
                    server.tick(1 + chance.below(40) as usize);
                    (server.newest() - length, server.newest())
                }
            };
            let look = Look {
                theme: &theme::DARK,
                measures: Measures::default(),
                css: 4.0,
                device: 4.0,
                span,
                zone: charts::axis::Zone::UTC,
                now: server.newest(),
                live: span.1 >= server.newest(),
                frozen: span.1 < server.newest(),
                marks: Default::default(),
                subjects: Default::default(),
                alerts: Default::default(),
            };
            let source = server.store.source(None);
            for ((id, _), kept) in CHARTS.iter().zip(&mut kept) {
                let mut anew = Picture::default();
                for picture in [&mut anew, &mut *kept] {
                    picture.measure(source, id, &look);
                    picture.update(&server.store, source, id, true, &look, 1_200);
                }
                let (kept, anew) = (look_at(kept, &look), look_at(&anew, &look));
                let of = format!("{id}, {step} moves after seed {seed}, {span:?}");
                assert_eq!(kept.lines, anew.lines, "lines of {of}");
                assert_eq!(kept.band, anew.band, "band of {of}");
                assert_eq!(kept, anew, "{of}");
            }
        }
    }
}
