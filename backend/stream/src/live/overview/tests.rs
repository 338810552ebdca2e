//! Overviews without sockets: the values decoded by a reader equal those of the sources.

use super::*;
use crate::clock::{Clock, Manual};
use crate::store::{Limits, Store};
use shared::catalog::fleet::{CPU, EACH_BUSY, GPU_BUSY, GPU_BUSY_MIN, NETWORK_IN, STATE, place};
use shared::catalog::{Catalog, MetricDef, cpu, gpu, network, tpu};
use shared::connection_state::ConnectionState;
use shared::series::SeriesDef;
use shared::tick::Applied;
use shared::wire::{Received, SourceId, decode_server};

const ROWS: [&MetricDef; 4] = [&gpu::UTILIZATION, &cpu::CPU_PERCENT, &network::RECEIVED, &tpu::TENSORCORE];

/// The values of a source's tick: row and instance of each.
type Ticks<'a> = (SourceId, Vec<(&'a MetricDef, &'a str, f64)>);

/// Sources whose ticks are appended by hand.
struct Bench {
    live: Arc<Live>,
    clock: Arc<Manual>,
}

impl Bench {
    fn new(sources: usize) -> Self {
        let clock = Arc::new(Manual::at(1_000_000, Duration::from_secs(1_000)));
        let mut store = Store::new(Arc::new(Catalog::new(ROWS)), Limits { retention: 3_600_000, bytes: usize::MAX });
        for n in 0..sources {
            store.add_source(format!("node-{n}"), 1_000, Vec::new());
        }
        Bench { live: Live::new(store, clock.clone(), 1, 3_600_000), clock }
    }

    /// A second passes, and these sources tick.
    fn tick(&self, ticks: &[Ticks]) {
        self.clock.pass(Duration::from_secs(1));
        for (source, values) in ticks {
            let mut store = self.live.store();
            let mut all = Vec::new();
            for (metric, instance, value) in values {
                let metric = store.catalog().position(metric.tag).expect("a row");
                let def = SeriesDef { metric, instance: (*instance).to_string() };
                let id = store.intern(*source, def).expect("room") as usize;
                all.resize(all.len().max(id + 1), f64::NAN);
                all[id] = *value;
            }
            store.append(*source, self.clock.wall(), false, &all).expect("a source");
            drop(store);
            self.live.announce(&[*source]);
        }
    }
}

/// A page that reads an overview.
struct Reader {
    overview: Arc<Overview>,
    place: OverviewPlace,
    cells: Vec<Cell>,
    state: TickState,
    keyframes: usize,
    bytes: usize,
}

impl Reader {
    fn new(overview: &Arc<Overview>) -> Self {
        let place = OverviewPlace::default();
        let (cells, state) = (Vec::new(), TickState::default());
        Reader { overview: overview.clone(), place, cells, state, keyframes: 0, bytes: 0 }
    }

    fn take(&mut self) -> &mut Self {
        let Some((messages, frames)) = self.overview.next(&mut self.place) else { return self };
        let rows = rows(self.overview.grain());
        for message in messages {
            let ServerMessage::Cells { first, cells, .. } = message else { panic!("{message:?}") };
            if first == 0 {
                (self.cells, self.state) = (Vec::new(), TickState::default());
            }
            for (at, cell) in (first as usize..).zip(cells) {
                if at == self.cells.len() {
                    self.cells.push(cell);
                    self.state.extend(rows.iter().map(|row| row.steps));
                } else {
                    self.cells[at] = cell;
                    let ids = at * rows.len()..(at + 1) * rows.len();
                    ids.zip(rows).for_each(|(id, row)| self.state.redefine(id as u32, row.steps));
                }
            }
        }
        let Ok(Received::Overview(_, frames)) = decode_server(&frames) else { panic!("frames of an overview") };
        for frame in frames {
            self.bytes = frame.len();
            self.keyframes += usize::from(self.state.apply(frame) == Ok(Applied::Keyframe));
        }
        self
    }

    /// The value shown in a row of the cell of a source or GPU.
    fn shows(&self, source: SourceId, instance: &str, row: &shared::catalog::fleet::FleetRow) -> Option<f64> {
        let grain = self.overview.grain();
        let cell = Cell { source: Some(source), instance: instance.to_string() };
        let at = self.cells.iter().position(|known| *known == cell)?;
        let id = at * rows(grain).len() + place(grain, row).expect("a row of it");
        Some(self.state.values()[id]).filter(|v| v.is_finite())
    }
}

#[test]
fn a_cell_shows_the_newest_of_its_source_folded_and_rounded() {
    let bench = Bench::new(2);
    let (overview, new) = bench.live.overview(Grain::Sources, &Scope::All);
    assert!(new && !bench.live.overview(Grain::Sources, &Scope::All).1);
    let mut reader = Reader::new(&overview);
    reader.take();
    bench.tick(&[(
        0,
        vec![(&gpu::UTILIZATION, "0", 90.2), (&gpu::UTILIZATION, "1", 45.0), (&cpu::CPU_PERCENT, "", 12.4)],
    )]);
    overview.beat(&bench.live);
    reader.take();
    let shown =
        |reader: &Reader, source| [&GPU_BUSY, &GPU_BUSY_MIN, &CPU, &STATE].map(|row| reader.shows(source, "", row));
    assert_eq!(shown(&reader, 0), [Some(68.0), Some(45.0), Some(12.0), Some(0.0)]);
    assert_eq!(shown(&reader, 1), [None, None, None, Some(0.0)], "it has not ticked");
    // A machine with another kind of device shows it in the same row.
    bench.tick(&[(1, vec![(&tpu::TENSORCORE, "0", 33.0)]), (0, vec![(&gpu::UTILIZATION, "0", 50.0)])]);
    overview.beat(&bench.live);
    reader.take();
    assert_eq!(shown(&reader, 1)[..2], [Some(33.0), Some(33.0)]);
    // A series that lacks a tick keeps its value for as long as its usual distance between values.
    assert_eq!(shown(&reader, 0)[..2], [Some(48.0), Some(45.0)]);
    for _ in 0..3 {
        bench.tick(&[(0, vec![(&gpu::UTILIZATION, "0", 50.0)])]);
    }
    overview.beat(&bench.live);
    reader.take();
    assert_eq!(shown(&reader, 0)[..2], [Some(50.0), Some(50.0)], "what is gone is not shown");
    assert_eq!(reader.keyframes, 1, "who follows gets frames");
}

#[test]
fn counters_are_rates_and_a_reset_is_none() {
    let bench = Bench::new(1);
    let (overview, _) = bench.live.overview(Grain::Sources, &Scope::All);
    let mut reader = Reader::new(&overview);
    let mut after = |total: f64| {
        bench.tick(&[(0, vec![(&network::RECEIVED, "", total)])]);
        overview.beat(&bench.live);
        reader.take().shows(0, "", &NETWORK_IN)
    };
    assert_eq!(after(1e9), None);
    assert_eq!(after(1e9 + 655_360.0), Some(655_360.0));
    assert_eq!(after(100.0), None);
    assert_eq!(after(100.0 + 65_536.0), Some(65_536.0));
    overview.beat(&bench.live);
    assert_eq!(reader.take().shows(0, "", &NETWORK_IN), Some(65_536.0), "no tick came in between");
}

#[test]
fn what_a_machine_had_before_it_fell_silent_is_not_shown_as_of_now() {
    let bench = Bench::new(2);
    let (overview, _) = bench.live.overview(Grain::Sources, &Scope::All);
    let mut reader = Reader::new(&overview);
    bench.tick(&[0, 1].map(|source| (source, vec![(&cpu::CPU_PERCENT, "", 50.0)])));
    overview.beat(&bench.live);
    assert_eq!(reader.take().shows(1, "", &CPU), Some(50.0));
    bench.live.set_connection_state(1, ConnectionState::Unreachable);
    for _ in 0..5 {
        bench.tick(&[]);
    }
    overview.beat(&bench.live);
    reader.take();
    assert_eq!([0, 1].map(|source| reader.shows(source, "", &CPU)), [None, None]);
    assert_eq!([0, 1].map(|source| reader.shows(source, "", &STATE)), [Some(1.0), Some(3.0)]);
}

#[test]
fn who_joins_or_was_away_gets_a_keyframe_and_shows_the_same() {
    let bench = Bench::new(40);
    let (overview, _) = bench.live.overview(Grain::Sources, &Scope::All);
    let mut followed = Reader::new(&overview);
    let mut sometimes = Reader::new(&overview);
    for n in 0..60u32 {
        let value = |source: u16| f64::from((n * 7 + u32::from(source) * 13) % 100);
        let all: Vec<_> = (0..40).map(|source| (source, vec![(&cpu::CPU_PERCENT, "", value(source))])).collect();
        bench.tick(&all);
        overview.beat(&bench.live);
        followed.take();
        if n % 20 < 3 {
            sometimes.take();
        }
        let mut fresh = Reader::new(&overview);
        fresh.take();
        for other in [&fresh, &sometimes].into_iter().filter(|other| other.state.seq() == followed.state.seq()) {
            let values = |reader: &Reader| reader.state.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!((values(other), &other.cells), (values(&followed), &followed.cells), "beat {n}");
        }
    }
    assert_eq!((followed.keyframes, sometimes.keyframes), (1, 3));
}

#[test]
fn a_scope_shows_its_own_and_overviews_end_with_their_readers() {
    let bench = Bench::new(3);
    let scope = Scope::only([], ["node-2".to_string()]);
    let (overview, _) = bench.live.overview(Grain::Sources, &scope);
    overview.beat(&bench.live);
    let mut reader = Reader::new(&overview);
    reader.take();
    assert_eq!(reader.cells.iter().map(|cell| cell.source).collect::<Vec<_>>(), [Some(2)]);
    let weak = Arc::downgrade(&overview);
    drop((overview, reader));
    assert!(weak.upgrade().is_none() && bench.live.overview(Grain::Sources, &scope).1);
    // More than the limit at once: the last ones are updated rarely.
    let many = (0..=MAX_OVERVIEWS).map(|n| Scope::only([n.to_string()], []));
    let many: Vec<Arc<Overview>> = many.map(|scope| bench.live.overview(Grain::Sources, &scope).0).collect();
    many.iter().for_each(|one| one.beat(&bench.live));
    assert_eq!(many[0].interval(), Duration::from_secs(1));
    assert_eq!(many[MAX_OVERVIEWS].interval(), Duration::from_secs(10));
}

#[test]
fn each_gpu_has_a_cell_that_another_takes_when_it_is_gone_for_good() {
    let bench = Bench::new(1);
    let (overview, _) = bench.live.overview(Grain::Gpus, &Scope::All);
    let mut reader = Reader::new(&overview);
    bench.tick(&[(
        0,
        vec![(&gpu::UTILIZATION, "0", 10.0), (&gpu::UTILIZATION, "1", 20.0), (&cpu::CPU_PERCENT, "", 1.0)],
    )]);
    overview.beat(&bench.live);
    reader.take();
    assert_eq!(reader.cells.len(), 2, "the CPU has none");
    assert_eq!(["0", "1"].map(|gpu| reader.shows(0, gpu, &EACH_BUSY)), [Some(10.0), Some(20.0)]);
    // The first GPU is gone, nothing of it is stored, and another GPU takes its number and then its cell.
    for n in 0..4 {
        bench.tick(&[(0, vec![(&gpu::UTILIZATION, "1", f64::from(n))])]);
    }
    overview.beat(&bench.live);
    assert_eq!((reader.take().shows(0, "0", &EACH_BUSY), reader.shows(0, "1", &EACH_BUSY)), (None, Some(3.0)));
}

#[test]
fn a_beat_of_many_that_rest_is_small() {
    let bench = Bench::new(300);
    let (overview, _) = bench.live.overview(Grain::Sources, &Scope::All);
    let mut reader = Reader::new(&overview);
    let all: Vec<_> = (0..300).map(|source| (source, vec![(&cpu::CPU_PERCENT, "", 50.2)])).collect();
    bench.tick(&all);
    overview.beat(&bench.live);
    reader.take();
    assert_eq!(overview.interval(), Duration::from_secs(2));
    bench.tick(&all);
    overview.beat(&bench.live);
    reader.take();
    assert!(reader.bytes < 40, "{} bytes", reader.bytes);
}
