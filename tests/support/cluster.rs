//! Several hubs with one PostgreSQL, one NATS and one receiver of remote write, all on loopback, and an agent that
//! scrapes a ledger.

use crate::agent::{self, Agent};
use crate::fleet::{self, Samples};
use crate::hub::{Hub, send};
use crate::ledger::Ledger;
use crate::postgresql::Postgresql;
use crate::programs::Program;
use crate::receiver::{self, Receiver};
use crate::server::{Server, ServerAnswer, free_port, watchglass};
use crate::stream::{Connection, Page};
use crate::waiting::{until_or, within};
use fake_clock::FakeClock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use team::accounts::Database;
use tempfile::TempDir;

/// Maximum time in which machines and hubs must reconnect.
const MAX_WAIT: Duration = Duration::from_secs(90);

/// Maximum response time of a hub's health check. A slower hub counts as hung.
const MAX_HANG: Duration = Duration::from_secs(5);

/// Time between two health checks.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Checks the health of all running hubs continuously.
struct Watchdog {
    /// Addresses of the running hubs. None: the watchdog has stopped.
    hubs: Arc<Mutex<Option<Vec<Option<SocketAddr>>>>>,
    /// The first failure, in words.
    found: Arc<Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    fn start(count: usize) -> Watchdog {
        let hubs = Arc::new(Mutex::new(Some(vec![None; count])));
        let found = Arc::new(Mutex::new(None));
        let (theirs, says) = (hubs.clone(), found.clone());
        let watch = move || {
            loop {
                let running = theirs.lock().clone();
                let Some(running) = running else { return };
                for (n, hub) in running.iter().enumerate() {
                    let Some(addr) = hub else { continue };
                    let began = Instant::now();
                    let Err(error) = is_well(*addr) else { continue };
                    let now = theirs.lock().clone();
                    // A hub that was killed meanwhile need not answer.
                    if began.elapsed() >= MAX_HANG && now.is_some_and(|now| now[n] == Some(*addr)) {
                        let said = format!("hub {n} hangs: /healthz has no answer within {MAX_HANG:?} ({error})");
                        says.lock().get_or_insert(said);
                    }
                }
                std::thread::park_timeout(WATCH_INTERVAL);
            }
        };
        Watchdog { hubs, found, thread: Some(std::thread::spawn(watch)) }
    }

    /// Sets the address of a running hub; None when it does not run.
    fn runs(&self, n: usize, addr: Option<SocketAddr>) {
        if let Some(hubs) = self.hubs.lock().as_mut() {
            hubs[n] = addr;
        }
    }

    fn found(&self) -> Option<String> {
        self.found.lock().clone()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.hubs.lock() = None;
        let thread = self.thread.take().expect("it is taken here alone");
        thread.thread().unpark();
        let ended = thread.join();
        if !std::thread::panicking() {
            assert!(ended.is_ok(), "the watchdog lives as long as the hubs");
            assert_eq!(self.found(), None);
        }
    }
}

/// Requests the health of a hub. Any answer counts.
fn is_well(addr: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&addr, MAX_HANG)?;
    stream.set_read_timeout(Some(MAX_HANG))?;
    stream.set_write_timeout(Some(MAX_HANG))?;
    stream.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").as_bytes())?;
    stream.read_exact(&mut [0; 8])
}

/// Several hubs that form one cluster. Everything that was started ends when this is dropped.
pub struct Cluster {
    watchdog: Watchdog,
    /// Database of the hubs' records.
    pub postgresql: Postgresql,
    /// Receiver of the hubs' samples.
    pub receiver: Receiver,
    nats: Option<Program>,
    nats_at: SocketAddr,
    hubs: Vec<Option<Server>>,
    /// Ports of the hubs, which they keep. 0: not assigned yet.
    ports: Vec<u16>,
    own: TempDir,
    /// The wall clock of all hubs and of the agent.
    pub clock: FakeClock,
    /// Keys by purpose, as in [`Hub`].
    pub keys: BTreeMap<&'static str, String>,
    /// Cookies by name, as in [`Hub`], in which `PORT` is a placeholder for the port of a hub.
    cookies: BTreeMap<&'static str, String>,
    ledger: Ledger,
    agent: Option<Agent>,
}

/// Keys by purpose, and cookies by name.
type People = (BTreeMap<&'static str, String>, BTreeMap<&'static str, String>);

fn nats(at: SocketAddr) -> Program {
    Program::start_at(at, "nats-server", |at| {
        ["-a", &at.ip().to_string(), "-p", &at.port().to_string()].map(str::to_string).to_vec()
    })
}

impl Cluster {
    /// Starts this many hubs.
    ///
    /// # Panics
    /// Panics when one of the programs is missing or does not start.
    pub fn start(hubs: usize) -> Cluster {
        Self::start_as(hubs, "", None, true)
    }

    /// Starts hubs without any accounts. The last hub has printed the instructions for the first account.
    ///
    /// # Panics
    /// Panics as [`Cluster::start`] does.
    pub fn start_empty(hubs: usize) -> Cluster {
        Self::start_as(hubs, "", None, false)
    }

    /// Starts hubs whose samples go to the server at this address instead of the receiver.
    ///
    /// # Panics
    /// Panics as [`Cluster::start`] does.
    pub fn start_over(hubs: usize, store: SocketAddr) -> Cluster {
        Self::start_as(hubs, "", Some(store), true)
    }

    /// Starts hubs with more lines in their configuration.
    ///
    /// # Panics
    /// Panics as [`Cluster::start`] does.
    pub fn start_with(hubs: usize, more: &str) -> Cluster {
        Self::start_as(hubs, more, None, true)
    }

    fn start_as(hubs: usize, more: &str, store: Option<SocketAddr>, people: bool) -> Cluster {
        let postgresql = Postgresql::start();
        let receiver = Receiver::start(|_| receiver::ReceiverAnswer::Take);
        let nats = nats(Program::free());
        let own = tempfile::tempdir().expect("a folder");
        let clock = FakeClock::new(own.path());
        let url = postgresql.database("hub");
        let config = own.path().join("config.toml");
        let text = format!(
            "[database]\nurl = \"{url}\"\npassword_file = \"{}\"\nkey_file = \"{}\"\n\
             [cluster]\nnats = \"nats://{}\"\nname = \"test\"\n\
             [remote_write]\nurl = \"{}\"\nread_url = \"http://{}\"\n{more}\n",
            postgresql.password_file().display(),
            own.path().join("secret.key").display(),
            nats.addr,
            store.map_or(receiver.url(), |store| format!("http://{store}/api/v1/write")),
            store.unwrap_or(receiver.addr),
        );
        std::fs::write(&config, text).expect("written");
        let (keys, cookies) = match people {
            true => Self::people(own.path(), &url, &postgresql, &config),
            false => Default::default(),
        };
        let nats_at = nats.addr;
        let mut cluster = Cluster {
            watchdog: Watchdog::start(hubs),
            postgresql,
            receiver,
            nats: Some(nats),
            nats_at,
            hubs: (0..hubs).map(|_| None).collect(),
            ports: (0..hubs).map(|_| free_port()).collect(),
            own,
            clock,
            keys,
            cookies,
            ledger: Ledger::start(),
            agent: None,
        };
        (0..hubs).for_each(|n| cluster.start_hub(n));
        cluster
    }

    /// Keys and cookies of all people. A temporary hub makes them.
    fn people(own: &Path, url: &str, postgresql: &Postgresql, config: &Path) -> People {
        let first = tempfile::tempdir_in(own).expect("a folder");
        let database =
            Database::from_settings(first.path(), Some(url), Some(&postgresql.password_file())).expect("a database");
        let Hub { server, keys, cookies, .. } =
            Hub::start_in(first, database, ["--no-local", "--config", &plain(config)]);
        let port = format!("-{}=", server.addr().port());
        (keys, cookies.into_iter().map(|(name, cookie)| (name, cookie.replace(&port, "-PORT="))).collect())
    }

    /// The code of the link for the first admin, from the output of a hub.
    ///
    /// # Panics
    /// Panics when it has printed none.
    pub fn setup_code(&self, n: usize) -> String {
        let log = || self.hub(n).log();
        let code = || {
            let log = log();
            let (code, _) = log.split_once("#setup=")?.1.split_once(char::is_whitespace)?;
            Some(code.to_string())
        };
        until_or(MAX_WAIT, code, || format!("no code in {}", log()))
    }

    /// The database of the hubs.
    ///
    /// # Panics
    /// Panics when it has no address.
    pub fn database(&self) -> Database {
        let (url, password) = (self.postgresql.url("hub"), self.postgresql.password_file());
        Database::from_settings(self.own.path(), Some(&url), Some(&password)).expect("a database")
    }

    /// The data folder of a hub.
    pub fn folder(&self, n: usize) -> PathBuf {
        self.own.path().join(format!("hub-{n}"))
    }

    fn agent_folder(&self) -> PathBuf {
        self.own.path().join("agent")
    }

    /// Starts a hub.
    pub fn start_hub(&mut self, n: usize) {
        let config = plain(&self.own.path().join("config.toml"));
        let args = ["--no-local", "--config", &config];
        let hub = Hub::server_at(&self.folder(n), self.ports[n], args, self.clock.environment());
        self.ports[n] = hub.addr().port();
        self.watchdog.runs(n, Some(hub.addr()));
        self.hubs[n] = Some(hub);
    }

    /// Kills a hub by SIGKILL.
    pub fn kill_hub(&mut self, n: usize) {
        self.watchdog.runs(n, None);
        self.hubs[n] = None;
    }

    /// Ends a hub by SIGTERM and returns its status.
    ///
    /// # Panics
    /// Panics when it was killed, or has not ended after `most`.
    pub fn end_hub(&mut self, n: usize, most: Duration) -> ExitStatus {
        self.watchdog.runs(n, None);
        let hub = self.hubs[n].take().expect("it runs");
        hub.signal("TERM");
        hub.wait(most)
    }

    /// A running hub.
    ///
    /// # Panics
    /// Panics when it was killed.
    pub fn hub(&self, n: usize) -> &Server {
        self.hubs[n].as_ref().expect("it runs")
    }

    /// Stops NATS.
    pub fn stop_nats(&mut self) {
        self.nats = None;
    }

    /// Starts NATS again.
    pub fn start_nats(&mut self) {
        self.nats = Some(nats(self.nats_at));
    }

    /// Starts the agent, which tries these hubs in turn. A run begins and ends on its machine, with a marker in it.
    pub fn start_agent(&mut self, hubs: &[usize]) {
        let urls: Vec<String> = hubs.iter().map(|n| format!("http://{}", self.hub(*n).addr())).collect();
        let mut command = agent::command(&urls.join(","), &self.keys["join"], &self.agent_folder());
        command.args(["--interval", "100ms", "--collectors", "openmetrics,cpu"]);
        command.args(["--openmetrics", &format!("books={}", self.ledger.url)]).envs(self.clock.environment());
        self.agent.insert(Agent::start(command)).says("connected to");
        self.run_a_job("begun");
    }

    /// Runs a job of this name on the agent's machine. It leaves a marker with the same text.
    ///
    /// # Panics
    /// Panics when it cannot be run.
    pub fn run_a_job(&self, name: &str) {
        let binary = plain(crate::server::binary());
        let mut command = watchglass(["run", "--name", name, "--data-dir", &plain(&self.agent_folder()), "--"]);
        let job = command.args([&binary, "mark", name]).envs(self.clock.environment());
        assert!(job.status().expect("it starts").success(), "the job {name} has failed");
    }

    /// Whether a hub lists a run of this name that has ended, with its marker.
    pub fn lists_job(&self, n: usize, name: &str) -> bool {
        let runs: serde_json::Value = serde_json::from_str(&self.get(n, "/api/v1/runs").body).unwrap_or_default();
        let ended = |run: &serde_json::Value| run["name"] == name && run["ended"].is_number();
        let has_run = runs["runs"].as_array().is_some_and(|runs| runs.iter().any(ended));
        let markers = self.get(n, "/api/v1/markers?from=-1h").body;
        has_run && markers.contains(&format!("\"text\":\"{name}\""))
    }

    /// Ends the agent by SIGTERM.
    pub fn end_agent(&mut self) {
        self.agent = None;
    }

    /// Sends a GET request to a hub with the data key.
    pub fn get(&self, n: usize, path: &str) -> ServerAnswer {
        let key = format!("Authorization: Bearer {}", self.keys["data"]);
        send(self.hub(n), "GET", path, &[&key], "")
    }

    /// Sends JSON to a hub with the key that may write runs.
    pub fn post(&self, n: usize, path: &str, body: &str) -> ServerAnswer {
        let key = format!("Authorization: Bearer {}", self.keys["runs"]);
        send(self.hub(n), "POST", path, &[&key, "Content-Type: application/json"], body)
    }

    /// The header line of a person's cookie at a hub.
    pub fn cookie(&self, n: usize, name: &str) -> String {
        format!("Cookie: {}", self.cookies[name].replace("-PORT=", &format!("-{}=", self.hub(n).addr().port())))
    }

    /// The `Origin` header line of a hub's own page.
    pub fn origin(&self, n: usize) -> String {
        format!("Origin: http://{}", self.hub(n).addr())
    }

    /// The metrics of a hub.
    pub fn metrics(&self, n: usize) -> String {
        let key = format!("Authorization: Bearer {}", self.keys["metrics"]);
        send(self.hub(n), "GET", "/metrics", &[&key], "").body
    }

    /// The ledger's samples on a hub, by time in ms and tag.
    pub fn shown(&self, n: usize) -> Samples {
        let answer = self.get(n, "/api/v1/export?format=csv&from=-1h&tag=openmetrics.books.*");
        if answer.status == 200 { fleet::samples(&answer.body) } else { Samples::new() }
    }

    /// The agent's own samples.
    pub fn measured(&self) -> Samples {
        fleet::samples(&fleet::export(&self.agent_folder(), &[]))
    }

    /// Waits until the agent has taken this many more measurements.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn measures_on(&self, times: u64) {
        let served = self.ledger.served();
        self.until("the agent measures on", || self.ledger.served() > served + times);
    }

    /// The key of the agent's machine, as a hub knows it.
    ///
    /// # Panics
    /// Panics when the hub has no such machine.
    pub fn machine(&self, n: usize) -> String {
        let answer = self.get(n, "/api/v1/sources");
        let sources: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
        let own = sources["sources"].as_array().expect("a list").iter().find(|one| one["last"].is_number());
        own.and_then(|one| one["key"].as_str()).unwrap_or_else(|| panic!("{answer:?}")).to_string()
    }

    /// A page of a hub that follows the agent's machine.
    pub async fn page(&self, n: usize) -> (Page, Connection) {
        let mut page = Page::default();
        (page.source, page.key) = (Some(self.machine(n)), Some(self.keys["data"].clone()));
        let connection = page.connect(self.hub(n).addr(), 10_000).await;
        (page, connection)
    }

    /// The id of the hub that holds the agent's machine, from the database; empty when no hub does.
    pub fn holder(&self) -> String {
        self.postgresql.sql("hub", "SELECT hub FROM links")
    }

    /// Waits until a hub shows the agent's newest sample, and returns the time that this took.
    ///
    /// # Panics
    /// Panics when it takes too long.
    #[track_caller]
    pub fn is_live(&self, n: usize) -> Duration {
        let newest = |all: &Samples| all.keys().map(|(t, _)| *t).max().unwrap_or_default();
        let (begin, now) = (Instant::now(), newest(&self.measured()));
        self.until(&format!("hub {n} is live"), || newest(&self.shown(n)) > now);
        begin.elapsed()
    }

    /// Waits until a hub has exactly the samples that the agent has up to now.
    ///
    /// # Panics
    /// Panics when that takes too long, with the missing samples.
    #[track_caller]
    pub fn is_whole(&self, n: usize) -> usize {
        let measured = self.measured();
        let newest = measured.keys().map(|(t, _)| *t).max().unwrap_or_default();
        assert!(!measured.is_empty(), "the agent has something");
        let mut shown = Samples::new();
        let is_whole = within(MAX_WAIT, || {
            shown = self.shown(n);
            shown.retain(|(t, _), _| *t <= newest);
            (shown == measured).then_some(())
        });
        let lacks: Vec<_> = measured.iter().filter(|(at, value)| shown.get(*at) != Some(value)).collect();
        let beyond: Vec<_> = shown.iter().filter(|(at, _)| !measured.contains_key(*at)).collect();
        assert!(
            is_whole.is_some(),
            "of {} samples hub {n} lacks {} and has {} others\nlacks {:?}\nothers {:?}\n{}",
            measured.len(),
            lacks.len(),
            beyond.len(),
            &lacks[..lacks.len().min(6)],
            &beyond[..beyond.len().min(6)],
            self.output()
        );
        shown.len()
    }

    /// Waits until `so` returns true.
    ///
    /// # Panics
    /// Panics when that takes too long, with the output of all programs.
    #[track_caller]
    pub fn until(&self, what: &str, so: impl Fn() -> bool) {
        let so = || self.watchdog.found().is_some() || so();
        until_or(MAX_WAIT, || so().then_some(()), || format!("{what}\n{}", self.output()));
        assert_eq!(self.watchdog.found(), None, "{what}\n{}", self.output());
    }

    /// Output of all programs.
    pub fn output(&self) -> String {
        let hubs = self.hubs.iter().flatten().map(|hub| format!("{} said:\n{}\n", hub.url, hub.log()));
        let agent = self.agent.as_ref().map(Agent::output).unwrap_or_default();
        format!("{}the agent said:\n{agent}", hubs.collect::<String>())
    }
}

fn plain(path: &Path) -> String {
    path.to_str().expect("a plain path").to_string()
}
