//! The server of Watchglass. Read it along the pipe: [`sampler`] calls the collectors on the second, [`store`] keeps
//! the ticks, [`live`] hands them to readers, [`http`] is the door and the paths behind it. [`config`] is everything
//! that a user may choose; [`clock`] is the only place that reads a clock; [`doctor`] says what is here and what is not;
//! [`demo`] simulates machines in place of the sampler.

pub mod clock;
pub mod config;
pub mod data;
pub mod demo;
pub mod doctor;
pub mod export;
pub mod file;
pub mod http;
pub mod keeper;
pub mod live;
pub mod recording;
pub mod remote;
pub mod sampler;
pub mod seldom;
pub mod stderr;
pub mod store;
pub mod terminal;

use clock::Clock;
use config::{Config, Fleet};
use data::Data;
use keeper::Keeper;
use live::Hub;
use remote::Remote;
use sampler::{Chosen, Plan};
use shared::recording::Recording;
use shared::wire::SourceId;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{Limits, Store};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

/// The most bytes of sealed columns in memory.
const MEMORY: usize = 256 << 20;

/// How often it is looked whether the log can be written.
const LOOK: Duration = Duration::from_secs(5);

/// Where a server listens, and how it and who started it tell each other.
pub struct Serving {
    /// Bound by [`bind`].
    pub listeners: Vec<TcpListener>,
    /// Becomes true when the server is to end.
    pub stop: watch::Receiver<bool>,
    /// Is sent on once requests are answered.
    pub answering: oneshot::Sender<()>,
}

/// What the sampler is to do, by a configuration.
pub fn plan(config: &Config) -> Plan {
    let chosen = collectors::COLLECTORS.iter().filter(|entry| config.keeps(entry.name)).map(|entry| Chosen {
        entry,
        every: config.every(entry.name),
        deadline: config.deadline(entry.name),
    });
    Plan { chosen: chosen.collect(), options: config.options(), roots: config.roots(), interval: config.interval }
}

/// Binds every address of the configuration to one port.
///
/// # Errors
/// The first address could not be bound. A further one that does not exist here (no IPv6) is left out.
pub async fn bind(config: &Config) -> io::Result<Vec<TcpListener>> {
    // With port 0 the system picks a port on the first address that another program may hold on the second.
    let attempts = if config.port == 0 { 20 } else { 1 };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for _ in 0..attempts {
        match bind_all(&config.bind, config.port).await {
            Ok(listeners) => return Ok(listeners),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn bind_all(addresses: &[IpAddr], port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut port = port;
    for &address in addresses {
        match TcpListener::bind(SocketAddr::new(address, port)).await {
            Ok(listener) => {
                port = listener.local_addr()?.port();
                listeners.push(listener);
            }
            Err(error) if !listeners.is_empty() && error.kind() != io::ErrorKind::AddrInUse => {
                tracing::info!(%address, %error, "not listening there");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(listeners)
}

/// Collects and serves until `stop` becomes true; then within three seconds, hung collectors and disks or not. `data` is
/// what [`data::open`] gave.
pub async fn run(config: Config, data: Option<Data>, serving: Serving) {
    let (retention, interval) = (config.retention.as_millis() as i64, config.interval.as_millis() as i64);
    let limits = Limits { retention, bytes: MEMORY };
    let name = collectors::host_name().unwrap_or_else(|| "this machine".into());
    let (catalog, facts) = (Arc::new(collectors::catalog()), collectors::facts(&config.roots()));
    let (mut store, unwritten) = match &data {
        Some(data) => Store::of_found(catalog, data.found(), limits, Some(&name)),
        None => (Store::new(catalog, limits), Vec::new()),
    };
    let source = match store.named(&name) {
        Some(source) => {
            store.renew(source, interval, facts);
            source
        }
        None => store.add_source(name, interval, facts),
    };
    let hub = Hub::new(store, Arc::new(clock::System), random(), retention);
    let keeper = match data {
        None => Keeper::in_memory(hub.clone()),
        Some(data) => match Keeper::on_disk(hub.clone(), data.keep(&config), unwritten) {
            Ok(keeper) => keeper,
            Err(error) => return tracing::error!(%error, "cannot start the threads of the log"),
        },
    };
    serve(&config, hub, keeper, source, serving).await;
}

/// Samples this machine into a hub's source, keeps its history, and serves the hub until `stop` becomes true, or the
/// sampler ends.
pub async fn serve(config: &Config, hub: Arc<Hub>, keeper: Keeper, source: SourceId, serving: Serving) {
    let (theirs, mut plan) = (hub.clone(), plan(config));
    plan.options.processes = hub.processes.clone();
    // Set once for each hub: here.
    let _ = hub.gpus.set((source, plan.options.gpu_numbers.clone()));
    serve_while(config, hub, Some(keeper), serving, move |told| sampler::run(theirs, source, plan, told)).await;
}

/// Simulates a fleet and serves it until `stop` becomes true.
pub async fn run_demo(config: Config, fleet: Fleet, serving: Serving) {
    let (retention, interval) = (config.retention.as_millis() as i64, config.interval.as_millis() as i64);
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let told = clock.clone();
    // History takes up to some seconds of a core; callers wait at the open door.
    let filled = tokio::task::spawn_blocking(move || {
        let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention, bytes: MEMORY });
        let mut demo = demo::Demo::new(&mut store, &fleet, interval, told.wall());
        demo.fill(&mut store, &fleet, retention, &*told);
        (store, demo)
    });
    let Ok((store, demo)) = filled.await else { return };
    let hub = Hub::of_simulated(store, clock, random(), retention);
    let theirs = hub.clone();
    let keeper = Keeper::in_memory(hub.clone());
    serve_while(&config, hub, Some(keeper), serving, move |told| demo.run(theirs, told)).await;
}

/// Serves a recording until `stop` becomes true. Nothing is measured, stored or asked for.
pub async fn run_recording(config: Config, recording: Recording, serving: Serving) {
    let (Some(recorded), simulated) = (recording.told(), recording.simulated()) else { return };
    let store = recording::store(recording, &collectors::catalog());
    let hub = Hub::of_recording(store, random(), recorded, simulated);
    let idle = |told: Arc<AtomicBool>| {
        while !told.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_secs(60));
        }
    };
    serve_while(&config, hub, None, serving, idle).await;
}

/// Serves a hub until `stop` becomes true, or the work that fills it ends.
async fn serve_while(
    config: &Config,
    hub: Arc<Hub>,
    keeper: Option<Keeper>,
    Serving { listeners, stop, answering }: Serving,
    work: impl FnOnce(Arc<AtomicBool>) + Send + 'static,
) {
    let ended = Arc::new(AtomicBool::new(false));
    let told = ended.clone();
    let (alive, sampler_gone) = tokio::sync::oneshot::channel::<()>();
    let work = move || {
        work(told);
        drop(alive); // or by a panic; either ends the server, which must not go on showing old values
    };
    if let Err(error) = std::thread::Builder::new().name("sampler".into()).spawn(work) {
        return tracing::error!(%error, "cannot start the thread that samples");
    }
    if let Some(keeper) = keeper {
        let told = ended.clone();
        let keep = move || keeper::run(keeper, &told);
        if let Err(error) = std::thread::Builder::new().name("keeper".into()).spawn(keep) {
            ended.store(true, Ordering::Relaxed);
            return tracing::error!(%error, "cannot start the thread that keeps history");
        }
    }
    let door = Arc::new(http::door::Door::new(config));
    // What was not measured here and now is nobody else's history.
    let settings = config.remote_write.clone().filter(|_| !hub.simulated && hub.recorded.is_none());
    let folder = config.data_dir.as_deref().filter(|_| !config.memory);
    let remote = settings.map(|settings| Remote::start(&hub, settings, folder));
    let app = http::App::new(hub.clone(), door.clone(), config.base_path.clone(), stop.clone(), remote.clone());
    let serving = http::listen::serve(listeners, http::router(app), door, stop);
    let _ = answering.send(()); // Whoever waits for it may have gone.
    tokio::select! {
        () = serving => {}
        _ = sampler_gone => tracing::error!("the sampler has ended"),
        () = watch_log(&hub) => {}
    }
    ended.store(true, Ordering::Relaxed);
    // Viewers wait for news, and see that this is the last.
    hub.announce();
    if let Some(remote) = remote {
        remote.stop();
    }
    // Waits for the disk, for a while.
    let _ = tokio::task::spawn_blocking(move || hub.close()).await;
}

/// Tells every source how the log of the server stands while it cannot be written, and once it can again. Never ends.
async fn watch_log(hub: &Hub) {
    let mut well = true;
    loop {
        tokio::time::sleep(LOOK).await;
        let trouble = stderr::check();
        if !well || trouble.is_some() {
            well = trouble.is_none();
            hub.store().set_check(&trouble.unwrap_or_else(stderr::well));
        }
    }
}

/// A number that no other run has: sequences of different runs must not be mistaken for one another.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
