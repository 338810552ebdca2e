//! A server of many machines whose states and values a test sets. The overview, the page and the paths are the real
//! ones; the samples are made up.

use crate::stage::serve;
use parking_lot::Mutex;
use shared::catalog::fleet::{self, FleetRow};
use shared::connection_state::ConnectionState;
use shared::series::SeriesDef;
use shared::wire::SourceId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use stream::clock::{Clock, Manual, System};
use stream::live::Live;
use stream::store::{Limits, Store};

/// Time between two ticks in ms.
const INTERVAL: i64 = 1_000;
/// GPUs of a machine.
pub const GPUS: usize = 8;
const HOUR: i64 = 3_600_000;
/// Machines of a rack, and racks of a pod.
const RACK: usize = 8;
const POD: usize = 42;

/// Rows of the overview that machines have, and the number of series of each.
static ROWS: [(&FleetRow, usize); 5] = [
    (&fleet::GPU_BUSY, GPUS),
    (&fleet::GPU_TEMP, GPUS),
    (&fleet::GPU_POWER, GPUS),
    (&fleet::CPU, 1),
    (&fleet::MEMORY, 1),
];

/// Many machines. Their server ends when this is dropped.
pub struct Crowd {
    /// The address of the page.
    pub url: String,
    live: Arc<Live>,
    clock: Arc<Manual>,
    sources: Mutex<Vec<SourceId>>,
    series: Vec<SeriesDef>,
    /// Indexes of machines that send nothing.
    mute: Mutex<BTreeSet<usize>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Crowd {
    /// This many machines of eight GPUs, eight per rack: `node-01` and so on. They have measured for a minute.
    pub fn new(hosts: usize) -> Self {
        let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 12 * HOUR, bytes: 256 << 20 });
        let series: Vec<SeriesDef> = ROWS
            .iter()
            .flat_map(|(row, count)| {
                let metric = store.catalog().position(row.of[0].tag).expect("the vocabulary has it");
                let instance = move |i: usize| if *count == 1 { String::new() } else { i.to_string() };
                (0..*count).map(move |i| SeriesDef { metric, instance: instance(i) })
            })
            .collect();
        let digits = hosts.to_string().len().max(2);
        let mut sources = Vec::new();
        for n in 1..=hosts {
            let source = store.add_source(format!("node-{n:0digits$}"), INTERVAL, Vec::new());
            for def in &series {
                store.intern(source, def.clone()).expect("a number");
            }
            sources.push(source);
        }
        let clock = Arc::new(Manual::at(System.wall() / INTERVAL * INTERVAL, Duration::from_secs(9)));
        let live = Live::new(store, clock.clone(), 1, 12 * HOUR);
        for (n, source) in sources.iter().enumerate() {
            let mut labels = vec![("rack".to_string(), format!("r{:02}", n / RACK + 1))];
            if hosts > POD * RACK {
                labels.push(("pod".into(), ["A", "B", "C", "D"][(n / RACK / POD).min(3)].to_string()));
            }
            live.set_labels(*source, labels);
        }
        let (url, runtime) = serve(&live);
        let sources = Mutex::new(sources);
        let crowd = Crowd { url, live, clock, sources, series, mute: Mutex::default(), runtime: Some(runtime) };
        crowd.clock.step(-20 * INTERVAL);
        crowd.pass(20);
        crowd
    }

    /// Advances time by `seconds` seconds. In each, every machine that is not mute has a tick.
    pub fn pass(&self, seconds: u32) {
        for _ in 0..seconds {
            self.clock.pass(Duration::from_millis(INTERVAL as u64));
            let t = self.clock.wall();
            let mute = self.mute.lock().clone();
            let mut heard = self.sources();
            let mut place = 0..;
            heard.retain(|_| place.next().is_some_and(|n| !mute.contains(&n)));
            for (n, source) in self.sources().iter().enumerate().filter(|(n, _)| !mute.contains(n)) {
                self.live.store().append(*source, t, false, &values(n, t));
            }
            self.live.announce(&heard);
        }
    }

    fn sources(&self) -> Vec<SourceId> {
        self.sources.lock().clone()
    }

    /// Adds a machine of this name.
    pub fn join(&self, name: &str) {
        let source = {
            let mut store = self.live.store();
            let source = store.add_source(name.into(), INTERVAL, Vec::new());
            for def in &self.series {
                store.intern(source, def.clone()).expect("a number");
            }
            source
        };
        self.sources.lock().push(source);
    }

    /// Sets the connection state of the machine at this index, from 0. A machine that is not linked sends nothing.
    pub fn stand(&self, host: usize, connection_state: ConnectionState) {
        if !matches!(connection_state, ConnectionState::Live | ConnectionState::Filling { .. }) {
            self.mute.lock().insert(host);
        }
        if connection_state != ConnectionState::Late {
            // The server detects lateness by itself.
            self.live.set_connection_state(self.sources()[host], connection_state);
        }
    }
}

/// The values of a machine: one of five is idle, one in ten has a GPU far behind the others.
fn values(host: usize, t: i64) -> Vec<f64> {
    let wave = ((t / INTERVAL + host as i64 * 3) % 7) as f64;
    let busy = |gpu: usize| match host {
        _ if host % 5 == 4 => 0.0,
        _ if host % 10 == 3 && gpu == 5 => 58.0,
        _ => 93.0 + wave * 0.8,
    };
    let busy: Vec<f64> = (0..GPUS).map(busy).collect();
    let temps = busy.iter().map(|b| 38.0 + b * 0.35);
    let watts = busy.iter().map(|b| 90.0 + b * 5.6);
    busy.iter().copied().chain(temps).chain(watts).chain([12.0 + wave, 40.0]).collect()
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // A normal shutdown would wait for the connections of the page.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
