//! Measures the whole page in use: CPU of its main thread during zoom, hover and live updates, and its memory over 12
//! hours. The peer is uPlot with the same charts under the same mouse.
//!
//! The machine is simulated and served by the real server, with a clock that the bench moves.

use crate::page::serve;
use crate::table::Table;
use backend::config::Fleet;
use backend::demo::Demo;
use shared::unit::number;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::clock::{Clock, Manual, System};
use stream::live::Live;
use stream::store::{Limits, Store};
use watchglass_tests::browser::{Browser, CTRL};
use watchglass_tests::stage;

const HOUR_MS: i64 = 3_600_000;
/// Wheel steps, first into the charts and then back.
const STEPS: usize = 24;
/// Number of mouse moves.
const MOVES: usize = 60;
/// Duration for which the live page is measured, in s. The goal is for ten minutes.
const LIVE_S: u64 = 180;
/// Seconds of the machine that pass at once while the memory is measured.
const STRIDE_S: u64 = 60;
/// Server clock and page clock advance together, also across jumps. The page's memory is that of its module.
const PREPARED: &str = r#"
const now = Date.now;
window.__passed = 0;
Date.now = () => now() + window.__passed;
const streaming = WebAssembly.instantiateStreaming;
WebAssembly.instantiateStreaming = async (...args) => {
  const made = await streaming.apply(WebAssembly, args);
  window.__memory = made.instance.exports.memory;
  return made;
};
window.__messages = 0;
const Socket = WebSocket;
window.WebSocket = class extends Socket {
  constructor(...args) {
    super(...args);
    this.addEventListener("message", () => window.__messages++);
  }
};
"#;
/// The panels that the page draws, as width, height and lines: those on the screen and up to 200 pixels from it.
const DRAWN: &str = r#"[...document.querySelectorAll("article.chart")].filter(a => {
  const r = a.getBoundingClientRect();
  return r.bottom > -200 && r.top < innerHeight + 200;
}).map(a => a.querySelector(".plot").getBoundingClientRect()).map(r => [Math.round(r.width), Math.round(r.height), 8])"#;

/// A simulated machine on a server in this process.
struct Machine {
    url: String,
    live: Arc<Live>,
    clock: Arc<Manual>,
    demo: Demo,
    /// Ticks since the last sealing.
    open: u64,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Machine {
    /// A machine with `gpus` GPUs and `history` ms of history.
    fn new(gpus: u32, history: i64) -> Self {
        let limits = Limits { retention: 12 * HOUR_MS, bytes: 2 << 30 };
        let mut store = Store::new(Arc::new(collectors::catalog()), limits);
        let fleet = Fleet { gpus, hosts: 1, fail: None, seed: 1 };
        let clock = Arc::new(Manual::at(System.wall() / 1_000 * 1_000, Duration::from_secs(9)));
        let mut demo = Demo::new(&mut store, &fleet, 1_000, clock.wall());
        demo.fill(&mut store, &fleet, (history, usize::MAX), &*clock);
        store.seal(0);
        let live = Live::of_simulated(store, clock.clone(), 1, 12 * HOUR_MS);
        let (url, runtime) = stage::serve(&live);
        Machine { url, live, clock, demo, open: 0, runtime: Some(runtime) }
    }

    /// Advances time by `seconds` seconds, with a tick in each. Complete columns are sealed, as by the server's
    /// archive.
    fn pass(&mut self, seconds: u64) {
        self.clock.pass(Duration::from_secs(seconds));
        self.demo.catch_up(&self.live);
        self.open += seconds;
        if self.open >= 900 {
            self.open = 0;
            self.live.store().seal(0);
        }
        self.live.announce(&[0]);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A normal shutdown would wait for the connection of the page.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Measures everything. `redraw` is the folder with uPlot; None when there is none.
pub fn measure(table: &mut Table, redraw: Option<&Path>) {
    let peers = redraw.and_then(|folder| serve(folder.to_path_buf()).ok());
    match peers {
        Some(peers) => {
            let machine = Machine::new(8, 12 * HOUR_MS);
            for (size, on) in [
                ((1440, 2400, 1), "8 GPUs, 12 h; CPU of the main thread, a chart"),
                ((1920, 1080, 2), "likewise on 3840 x 2160 pixels, 2 device pixels in a CSS pixel"),
            ] {
                moved(table, &machine, &format!("http://{peers}/index.html"), size, on);
            }
        }
        None => table.missing("zoom of the whole page", "0.5", "run it by cargo xtask bench; it needs npm for uPlot"),
    }
    for (size, on) in [((1440, 900, 1), "1440 x 900"), ((1920, 1080, 2), "3840 x 2160, 2 device pixels in a CSS pixel")]
    {
        followed(table, size, on);
    }
    grown(table);
}

/// Zoom and hover, of the page and of uPlot in turn.
fn moved(table: &mut Table, machine: &Machine, peer: &str, (width, height, scale): (u32, u32, u32), on: &str) {
    let browser = Browser::alone();
    browser.before_each_page(PREPARED);
    browser.size_at(width, height, scale);
    // A fixed span, because the work of a live page is measured separately.
    let to = machine.clock.wall() / 1_000;
    browser.open(&format!("{}?from={}&to={to}&hide=cpu,memory", machine.url, to - 12 * HOUR_MS / 1_000));
    browser.until("document.querySelector('article.chart').dataset.samples > 43000");
    settle();
    let drawn = browser.eval(DRAWN);
    let charts = drawn.as_array().map_or(0, Vec::len) as f64;
    let ours = cost(&browser, browser.rect("article.chart .plot"));
    let uplot = |charts: &serde_json::Value| {
        browser.open("about:blank");
        browser.open(&format!("{peer}?whole#{charts}"));
        browser.until("document.title.startsWith('{')");
        settle();
        cost(&browser, browser.rect(".u-over"))
    };
    let theirs = uplot(&drawn);
    let single = uplot(&serde_json::json!(vec![[600, 200, 1]; 24])).0 / 24.0;
    for (what, (ours, theirs), most, goal) in [
        ("a step of zoom, the whole page", (ours.0, theirs.0), 0.5, "0.5"),
        ("hover, the whole page", (ours.1, theirs.1), 1.0, "1"),
    ] {
        let peer = format!("uPlot 1.6 {} ms", number(theirs / charts));
        let on = format!("{on}; {charts} charts of 8 lines");
        table.at_most(what, ours / charts, "ms", f64::INFINITY, "", &peer, &on);
        table.at_most("... against uPlot", ours / theirs, "of its time", most, goal, "", &on);
    }
    let on = "a step of zoom; uPlot draws one line of 600 x 200 in each of 24 charts, we eight in each";
    let share = ours.0 / charts / single;
    let peer = format!("uPlot 1.6 {} ms", number(single));
    table.at_most("... against uPlot with an eighth of the lines", share, "of its time", f64::INFINITY, "", &peer, on);
}

/// CPU in ms of a wheel step, and of a mouse move, over a plot. The page's idle work is subtracted.
fn cost(browser: &Browser, [left, top, width, height]: [f64; 4]) -> (f64, f64) {
    let pause = Duration::from_millis(120);
    let timed = |work: &mut dyn FnMut(usize), times: usize, pause: Duration| {
        let (before, begun) = (browser.main_thread(), Instant::now());
        for i in 0..times {
            work(i);
            std::thread::sleep(pause);
        }
        (browser.main_thread() - before, begun.elapsed().as_secs_f64())
    };
    let idle = timed(&mut |_| (), 1, Duration::from_secs(4));
    let rest = idle.0 / idle.1;
    let middle = (left + width * 0.45, top + height / 2.0);
    browser.move_to(middle);
    let mut turn = |i: usize| browser.wheel(middle, if i < STEPS / 2 { -120.0 } else { 120.0 }, CTRL);
    let (zoom, took) = timed(&mut turn, STEPS, pause);
    let zoom = (zoom - rest * took) / STEPS as f64;
    let mut point = |i: usize| {
        // The moves do not go from left to right in small steps: each is to another sample.
        let share = (i * 37 % MOVES) as f64 / MOVES as f64;
        browser.move_to((left + 90.0 + (width - 260.0) * share, top + height * 0.4));
    };
    point(0);
    settle();
    let (hover, took) = timed(&mut point, MOVES, pause / 2);
    (zoom, (hover - rest * took) / MOVES as f64)
}

/// Tasks of a page that shows 64 GPUs live.
fn followed(table: &mut Table, (width, height, scale): (u32, u32, u32), on: &str) {
    let mut machine = Machine::new(64, HOUR_MS / 2);
    let browser = Browser::traced();
    browser.before_each_page(PREPARED);
    browser.size_at(width, height, scale);
    browser.open(&format!("{}?w=5m", machine.url));
    browser.until("document.querySelector('article.chart').dataset.samples > 290");
    settle();
    let mut watched = || -> Result<(Vec<f64>, f64), String> {
        browser.tasks()?;
        let (mut tasks, before, begun) = (Vec::new(), browser.main_thread(), Instant::now());
        for second in 1..=LIVE_S {
            machine.pass(1);
            std::thread::sleep((begun + Duration::from_secs(second)).saturating_duration_since(Instant::now()));
            if second.is_multiple_of(20) {
                tasks.extend(browser.tasks()?);
            }
        }
        let sum = browser.main_thread() - before;
        settle();
        tasks.extend(browser.tasks()?);
        Ok((tasks, sum))
    };
    let (tasks, sum) = match watched() {
        Ok(watched) => watched,
        Err(why) => return table.missing("tasks over 50 ms, live", "0", &why),
    };
    let (long, seen) = (tasks.iter().filter(|ms| **ms > 50.0).count(), tasks.iter().sum::<f64>());
    let longest = tasks.iter().copied().fold(0.0, f64::max);
    let on = format!(
        "64 GPUs, 5 min, {on}; {LIVE_S} s, of whose CPU {:.0} % is in the trace; the longest {} ms",
        seen / sum * 100.0,
        number(longest)
    );
    table.at_most("tasks over 50 ms, live", long as f64, "", 0.0, "0", "", &on);
    table.at_most("... CPU of the main thread", sum / LIVE_S as f64, "ms a second", f64::INFINITY, "", "", &on);
}

/// Memory of a page that shows 64 GPUs for 12 hours, which pass faster.
fn grown(table: &mut Table) {
    let mut machine = Machine::new(64, HOUR_MS / 2);
    let browser = Browser::alone();
    browser.before_each_page(PREPARED);
    browser.open(&format!("{}?w=5m", machine.url));
    browser.until("document.querySelector('article.chart').dataset.samples > 290");
    let held = || {
        let bytes = browser.eval("(gc(), window.__memory.buffer.byteLength + performance.memory.usedJSHeapSize)");
        bytes.as_f64().unwrap_or(f64::NAN) / 1e6
    };
    let mut samples = Vec::new();
    for minute in 1..=12 * 3_600 / STRIDE_S {
        let before = browser.eval("window.__messages");
        browser.eval(&format!("window.__passed += {}", STRIDE_S * 1_000));
        machine.pass(STRIDE_S);
        browser.until(&format!("window.__messages > {before}"));
        // Two frames: one that draws, and one for its remaining work.
        browser.script("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        if (minute * STRIDE_S).is_multiple_of(1_800) {
            samples.push(held());
            eprintln!("    {} h: {} MB", number(minute as f64 * STRIDE_S as f64 / 3_600.0), number(held()));
        }
    }
    let samples_seen = browser.eval("+document.querySelector('article.chart').dataset.samples");
    // From the second hour on.
    let (begin, end) = (samples[3], samples[samples.len() - 1]);
    let most = samples[3..].iter().map(|mb| (mb / begin - 1.0) * 100.0).fold(0.0, f64::max);
    let on = format!(
        "64 GPUs, 5 min; scripts without garbage and wasm, {} MB after 2 h, {} MB after 12 h; {samples_seen} samples in view",
        number(begin),
        number(end)
    );
    table.at_most("growth of the tab from hour 2 to 12", most, "%", 5.0, "5 %", "", &on);
}

/// A pause in which nothing is measured.
fn settle() {
    std::thread::sleep(Duration::from_secs(3));
}
