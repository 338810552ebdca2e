//! A server with a simulated machine: its clock stands until a test moves it, and its samples and checks are made up.
//! The page and the paths are the real ones.

use crate::server::{ServerAnswer, ask};
use crate::waiting::{MAX_WAIT, within};
use backend::config::Config;
use backend::http::{App, Services, guard::Guard, listen, page::Site, router};
use parking_lot::Mutex;
use shared::catalog::{Draw, Kind};
use shared::series::SeriesDef;
use shared::wire::{Check, CheckState, SourceId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stream::clock::{Clock, Manual, System};
use stream::live::Live;
use stream::store::{Limits, Store};
use watch::alerts::{AlertRegistry, AlertRegistryParts};

/// Time between two ticks in ms.
const INTERVAL: i64 = 1_000;
/// Number of cores of the machine.
const CORES: usize = 96;
const HOUR: i64 = 3_600_000;

/// Serves a store on a free port until the runtime ends. Returns the address of its page, and the runtime.
pub fn serve(live: &Arc<Live>) -> (String, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let guard = Arc::new(Guard::new(&Config::default()));
    // The task keeps the sender, so that the server ends with its runtime.
    let (sender, stop) = tokio::sync::watch::channel(false);
    let alerts = AlertRegistry::in_memory(live.clock.clone(), AlertRegistryParts::default());
    let services = Services { alerts: Some(alerts), ..Services::new(live.clone()) };
    let site = Site::new("/".into(), page::PAGE);
    let app = App::new(services, guard.clone(), site, stop.clone());
    runtime.spawn(async move {
        let strangers = app.strangers();
        listen::serve(vec![listener], router(app), guard, None, strangers, stop).await;
        drop(sender);
    });
    (url, runtime)
}

/// A simulated machine. Its server ends when this is dropped.
pub struct Stage {
    /// The address of the page.
    pub url: String,
    live: Arc<Live>,
    clock: Arc<Manual>,
    source: SourceId,
    series: Vec<SeriesDef>,
    /// Instance whose series have no value; None for no such instance.
    lost: Mutex<Option<String>>,
    stepped: AtomicBool,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Stage {
    /// A machine with `gpus` GPUs that has not measured yet.
    pub fn empty(gpus: usize) -> Self {
        let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 12 * HOUR, bytes: 64 << 20 });
        let source = store.add_source("stage".into(), INTERVAL, Vec::new());
        let (mut series, mut charts) = (Vec::new(), std::collections::BTreeSet::new());
        for (i, metric) in store.catalog().metrics.iter().enumerate() {
            let instances: Vec<String> = match metric.tag.as_str() {
                _ if metric.chart.is_empty() || metric.kind != Kind::Gauge => Vec::new(),
                tag if !tag.contains('{') => vec![String::new()],
                // There is one metric in each chart, so that it has as many lines as there are GPUs.
                tag if tag.starts_with("gpu.{i}.")
                    && tag.matches('{').count() == 1
                    && (metric.draw != Draw::Line || charts.insert(metric.chart.clone())) =>
                {
                    (0..gpus).map(|gpu| gpu.to_string()).collect()
                }
                "cpu.{i}.cpu_percent" => (0..CORES).map(|core| core.to_string()).collect(),
                _ => Vec::new(),
            };
            series.extend(instances.into_iter().map(|instance| SeriesDef { metric: i as u16, instance }));
        }
        let clock = Arc::new(Manual::at(System.wall() / INTERVAL * INTERVAL, Duration::from_secs(9)));
        let live = Live::new(store, clock.clone(), 1, 12 * HOUR);
        let (url, runtime) = serve(&live);
        Stage {
            url,
            live,
            clock,
            source,
            series,
            lost: Mutex::default(),
            stepped: AtomicBool::new(false),
            runtime: Some(runtime),
        }
    }

    /// A machine with `gpus` GPUs that has measured for 400 seconds.
    pub fn with_past(gpus: usize) -> Self {
        let stage = Self::empty(gpus);
        stage.clock.step(-400 * INTERVAL);
        stage.pass(400);
        stage
    }

    /// The store of the server with its stream. The machine is its first source.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The server's answer to a GET request.
    pub fn get(&self, path: &str) -> ServerAnswer {
        let addr = self.url.trim_start_matches("http://").trim_end_matches('/').parse().expect("its address");
        ask(addr, &format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n"))
    }

    /// Advances time by `seconds` seconds, with a tick in each.
    pub fn pass(&self, seconds: u32) {
        for _ in 0..seconds {
            self.clock.pass(Duration::from_millis(INTERVAL as u64));
            self.measure();
        }
        self.live.announce(&[self.source]);
    }

    /// Advances time by `seconds` seconds without a tick.
    pub fn stand_still(&self, seconds: u32) {
        self.clock.pass(Duration::from_secs(u64::from(seconds)));
    }

    fn measure(&self) {
        let mut store = self.live.store();
        if store.series(self.source, 0).is_empty() {
            for def in &self.series {
                store.intern(self.source, def.clone()).expect("a number");
            }
        }
        let t = self.clock.wall();
        let lost = self.lost.lock().clone();
        let value = |(i, def): (usize, &SeriesDef)| match &lost {
            Some(lost) if *lost == def.instance => f64::NAN,
            _ => 50.0 + ((t / INTERVAL + i as i64 * 7) % 20) as f64,
        };
        let values: Vec<f64> = self.series.iter().enumerate().map(value).collect();
        store.append(self.source, t, self.stepped.swap(false, Ordering::Relaxed), &values);
    }

    /// Makes a tick each second until `so` returns true. It is called often between two ticks.
    ///
    /// # Panics
    /// Panics after as many seconds as [`MAX_WAIT`] has.
    #[track_caller]
    pub fn run_until(&self, what: &str, so: impl Fn() -> bool) {
        for _ in 0..MAX_WAIT.as_secs() {
            if within(Duration::from_millis(INTERVAL as u64), || so().then_some(())).is_some() {
                return;
            }
            self.pass(1);
        }
        panic!("not in {MAX_WAIT:?} of the machine: {what}");
    }

    /// Sets the machine's clock by `by` ms.
    pub fn set_clock(&self, by: i64) {
        self.clock.step(by);
        self.stepped.store(true, Ordering::Relaxed);
    }

    /// From now on, series of this instance have no value. None gives all series values again.
    pub fn lose(&self, instance: Option<&str>) {
        *self.lost.lock() = instance.map(str::to_string);
    }

    /// Sets the check of a collector.
    pub fn check(&self, id: &str, state: CheckState, reason: &str, remedy: &str) {
        let check = Check {
            id: id.into(),
            state,
            tried: Vec::new(),
            found: String::new(),
            reason: reason.into(),
            remedy: remedy.into(),
        };
        self.live.store().set_checks(self.source, vec![check]);
        self.live.announce(&[self.source]);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A normal shutdown would wait for the connections of the page.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
