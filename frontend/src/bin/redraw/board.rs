//! Panels of the page, with a store that gets messages and ticks in the form in which a server sends them.

use charts::canvas::SUBPIXELS;
use charts::{Measures, theme};
use frontend::address::View;
use frontend::panels::board::view::{Data, PanelView};
use frontend::state::Hover;
use frontend::store::Store;
use shared::catalog::{Catalog, Chart, Metric, MetricDef};
use shared::column;
use shared::connection_state::ConnectionState;
use shared::series::SeriesDef;
use shared::tick::TickState;
use shared::unit::Unit;
use shared::wire::{ColumnBytes, Columns, Hello, PROTOCOL, ServerMessage, Source};
use viewer::picture::Look;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::Element;

/// Time of the first sample, ms since the epoch.
const START: i64 = 1_700_000_000_000;
/// Number of ticks that are sealed together.
const HOUR: u64 = 3_600;
/// Length of the history that the server keeps, in ms.
const RETENTION: i64 = 43_200_000;

/// Charts with one sample a second, all of the same kind.
#[wasm_bindgen]
pub struct BenchBoard {
    store: Store,
    panels: Vec<PanelView>,
    server: TickState,
    walk: Vec<Walk>,
    /// Values of each tick since the last sealing, oldest first.
    head: Vec<Vec<f64>>,
    view: View,
}

/// A random walk with noise and rare spikes, similar to a utilization.
struct Walk {
    state: u32,
    level: f64,
}

impl Walk {
    fn random(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.state) / 4_294_967_296.0
    }

    fn next(&mut self) -> f64 {
        self.level = (self.level + (self.random() - 0.5) * 2.0).clamp(5.0, 90.0);
        let spike = self.random() < 0.0005;
        let noise = self.random() * 8.0;
        if spike { 100.0 } else { ((self.level + noise) * 100.0).round() / 100.0 }
    }
}

#[wasm_bindgen]
impl BenchBoard {
    /// Makes one chart in each element of `articles`, which must have the structure of a panel. Each chart gets
    /// `series` series and `seconds` seconds of history.
    #[wasm_bindgen(constructor)]
    pub fn new(articles: Vec<Element>, series: usize, seconds: u32) -> BenchBoard {
        let def = MetricDef::gauge("bench.{i}", Unit::Percent);
        let ids: Vec<String> = (0..articles.len()).map(|i| format!("bench{i}")).collect();
        let metrics =
            ids.iter().map(|id| Metric { chart: id.clone(), title: id.clone(), ..Metric::from(&def) }).collect();
        let chart = |id: &String| Chart { id: id.clone(), title: id.clone(), section: String::new() };
        let mut catalog = Catalog::new([]);
        catalog.extend(0, metrics, ids.iter().map(chart).collect());
        let defs: Vec<SeriesDef> = (0..articles.len() * series)
            .map(|i| SeriesDef { metric: (i / series) as u16, instance: (i % series).to_string() })
            .collect();
        let walk = (0..defs.len()).map(|i| Walk { state: (i as u32 + 1).wrapping_mul(2_654_435_761), level: 50.0 });
        let mut board = BenchBoard {
            store: Store::default(),
            panels: Vec::new(),
            server: TickState::after(0, START - 1_000),
            walk: walk.collect(),
            head: Vec::new(),
            view: View { window: RETENTION, ..View::default() },
        };
        board.server.extend(vec![def.steps; defs.len()]);
        board.take(ServerMessage::Hello(Hello {
            protocol: PROTOCOL,
            version: String::new(),
            boot: 1,
            now: START,
            retention: RETENTION,
            simulated: true,
            recorded: None,
            accounts: false,
        }));
        board.take(ServerMessage::Catalog(catalog));
        let info = Source::new(0, "bench".into(), 1_000, Vec::new()).entry(ConnectionState::Live, START, Vec::new());
        board.take(ServerMessage::Sources(vec![info]));
        board.take(ServerMessage::Series { source: 0, first: 0, defs });
        for _ in 0..seconds {
            board.next();
            if board.head.len() as u64 == HOUR {
                board.seal(0);
            }
        }
        board.seal(0);
        let key = board.server.keyframe();
        board.frames(&key);
        let dpr = web_sys::window().map_or(1.0, |w| w.device_pixel_ratio());
        for (id, article) in ids.into_iter().zip(articles) {
            let mut panel = PanelView::new(id, false, article).expect("the elements are those of a panel");
            panel.fit(dpr, "sans-serif");
            board.panels.push(panel);
        }
        board
    }

    /// Takes one more tick. When the page requests sealed columns in place of old ticks, it gets them at once.
    pub fn tick(&mut self) {
        let frame = self.next();
        self.frames(&frame);
        let back = self.store.sources.get_mut(&0).and_then(|s| s.hand_back());
        if back.is_some() {
            self.seal(300);
        }
    }

    /// Time of the newest tick, ms since the epoch.
    pub fn newest(&self) -> f64 {
        self.server.t() as f64
    }

    /// Draws all charts for a span, with the layer over the data, as the page does in one frame. `from`, `to` and `at`
    /// are ms since the epoch; `at` is the instant under the pointer, or NaN for none.
    pub fn draw(&mut self, from: f64, to: f64, at: f64) {
        let look = self.make_look(from, to);
        let source = self.store.source(None);
        for panel in &mut self.panels {
            panel.describe_data(source, &look, "");
            panel.draw(&Data { store: &self.store, source, beside: None }, &self.view, &look, None);
            panel.draw_over(&look, hover(at).as_ref(), None);
        }
    }

    /// Draws only the layer over the data, as the page does when the pointer moves.
    pub fn point(&mut self, from: f64, to: f64, at: f64) {
        let look = self.make_look(from, to);
        for panel in &mut self.panels {
            panel.draw_over(&look, hover(at).as_ref(), None);
        }
    }
}

/// A pointer at this instant which is over none of the charts; None when `at` is not finite.
fn hover(at: f64) -> Option<Hover> {
    let hover = |at| Hover { panel: String::new(), t: at as i64, share: None, y: 0.0, top: 0.0, pinned: false };
    Some(at).filter(|at| at.is_finite()).map(hover)
}

impl BenchBoard {
    fn make_look(&self, from: f64, to: f64) -> Look {
        let live = to as i64 >= self.server.t();
        let dpr = web_sys::window().map_or(1.0, |w| w.device_pixel_ratio());
        Look {
            theme: &theme::DARK,
            measures: Measures::default(),
            css: dpr * f64::from(SUBPIXELS),
            device: f64::from(SUBPIXELS),
            span: (from as i64, to as i64),
            zone: charts::axis::Zone::UTC,
            now: self.server.t(),
            live,
            frozen: !live,
            marks: Default::default(),
            alerts: Default::default(),
            subjects: Default::default(),
        }
    }

    fn take(&mut self, message: ServerMessage) {
        self.store.take(message);
    }

    fn frames(&mut self, frame: &[u8]) {
        self.store.ticks(0, &[frame]).expect("its own frames");
    }

    fn next(&mut self) -> Vec<u8> {
        let values: Vec<f64> = self.walk.iter_mut().map(Walk::next).collect();
        let frame = self.server.encode(self.server.t() + 1_000, false, &values);
        self.head.push(values);
        frame
    }

    /// Seals all ticks but the last `keep` and gives them to the store as columns.
    fn seal(&mut self, keep: usize) {
        let ticks = self.head.len().saturating_sub(keep);
        let done: Vec<Vec<f64>> = self.head.drain(..ticks).collect();
        let last = self.server.seq() - self.head.len() as u64;
        let first_seq = last + 1 - ticks as u64;
        let times: Vec<i64> = (0..ticks as i64).map(|i| START + (first_seq as i64 - 1 + i) * 1_000).collect();
        let Some(&from) = times.first() else { return };
        let steps = self.server.steps();
        let column = |i: usize| {
            let values: Vec<f64> = done.iter().map(|tick| tick[i]).collect();
            (i as u32, ColumnBytes(column::encode(&values, steps[i])))
        };
        let columns = (0..steps.len()).map(column).collect();
        let (last_seq, times) = (last, column::encode_times(&times));
        self.take(ServerMessage::Columns(Columns {
            source: 0,
            first_seq,
            last_seq,
            ticks: ticks as u32,
            times,
            columns,
        }));
        self.take(ServerMessage::HistoryEnd { source: 0, from, to: i64::MAX, more: false });
    }
}
