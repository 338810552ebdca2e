//! A hub and its agent that scrapes a ledger, with a relay between them. Tests cut their connection and kill either.

use crate::agent::{self, Agent};
use crate::audit::Audit;
use crate::cutter::{Cutter, Direction, Way};
use crate::hub::send;
use crate::ledger::{Chance, Ledger};
use crate::server::{Server, free_port, watchglass};
use crate::waiting::{until_or, within};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum time in which the two must reconnect: an agent waits up to 45 s before a retry.
const MAX_WAIT: Duration = Duration::from_secs(150);

/// Rate of a slow connection, bytes per second: 64 kbit/s.
pub const SLOW_RATE: u32 = 8_000;

/// A disturbance of the hub or the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The connection is cut, and can be made again at once.
    Cut,
    /// The connection is cut once this many bytes have gone to the hub.
    CutAfter(u64),
    /// The connection is cut, and no new one is accepted for a while.
    Away,
    /// The bytes of one direction are dropped until another connection is made.
    Swallow(Direction),
    /// The hub is killed by SIGKILL, and started again.
    KillHub,
    /// The agent is killed by SIGKILL, and started again.
    KillAgent,
    /// Both are killed by SIGKILL, and started again.
    KillBoth,
}

impl Harm {
    /// A random disturbance. Most of them are kills.
    pub fn any(chance: &mut Chance) -> Harm {
        match chance.below(40) {
            0..4 => Harm::Cut,
            4..9 => Harm::CutAfter(chance.below(20_000)),
            9..13 => Harm::Away,
            13 => Harm::Swallow(Direction::Up),
            14 => Harm::Swallow(Direction::Down),
            15..25 => Harm::KillHub,
            25..35 => Harm::KillAgent,
            _ => Harm::KillBoth,
        }
    }

    /// Number of processes that it kills.
    fn kills(self) -> u32 {
        match self {
            Harm::KillHub | Harm::KillAgent => 1,
            Harm::KillBoth => 2,
            _ => 0,
        }
    }
}

/// Disturbances of a hub and an agent, and the resulting samples.
pub struct Harmed {
    /// Number of disturbances.
    pub times: u32,
    /// Number of killed processes.
    pub kills: u32,
    /// The comparison of the samples.
    pub audit: Audit,
}

/// Disturbs a hub and an agent `number` times at random, and compares them at the end. It ends early at `until`.
///
/// # Panics
/// Panics when one of the two does not come back.
pub fn harms(number: u32, seed: u64, until: Instant) -> Harmed {
    let (mut fleet, mut chance) = (Fleet::start(), Chance::new(seed));
    let (mut times, mut kills) = (0, 0);
    while times < number && Instant::now() < until {
        let harm = Harm::any(&mut chance);
        // Some disturbances come while samples lost by the one before are still on their way.
        if chance.below(3) == 0 {
            fleet.strike(harm)
        } else {
            fleet.harm(harm)
        }
        (times, kills) = (times + 1, kills + harm.kills());
        // An error in between also shows at the end. A check now and then finds it sooner.
        if times % 10 == 0 {
            fleet.settle();
        }
    }
    fleet.grows("samples come at the end");
    Harmed { times, kills, audit: fleet.settle() }
}

/// A hub and an agent. Both are killed when this is dropped.
pub struct Fleet {
    /// Folder of both, unless they have folders elsewhere.
    own: TempDir,
    hub_folder: PathBuf,
    agent_folder: PathBuf,
    ledger: Ledger,
    /// The relay before the hub.
    pub cutter: Cutter,
    /// The join key of the join line.
    pub key: String,
    /// Keys of people by purpose; empty where there are no people.
    pub keys: BTreeMap<&'static str, String>,
    /// The address of the hub that the agent gets.
    pub url: String,
    /// Additional arguments of the agent.
    pub agent_args: Vec<String>,
    /// Environment of the agent.
    pub agent_env: Vec<(String, String)>,
    hub_args: Vec<String>,
    /// Environment of the hub, and of commands that read its folder.
    hub_env: Vec<(String, String)>,
    port: u16,
    hub: Option<Server>,
    agent: Option<Agent>,
    /// Samples of the hub at the time when the agent lost its own.
    kept: Samples,
}

/// Samples by time (ms) and tag. Values are text, so that they are compared bit by bit.
pub type Samples = BTreeMap<(i64, String), String>;

impl Fleet {
    /// Starts both, and waits until the hub has samples of the agent.
    ///
    /// # Panics
    /// Panics when that takes too long.
    pub fn start() -> Fleet {
        let mut fleet = Fleet::hub(&[]);
        fleet.start_agent();
        fleet.grows("the hub has samples of the agent");
        fleet
    }

    /// Starts only a hub, with these arguments.
    ///
    /// # Panics
    /// Panics when it does not start.
    pub fn hub(args: &[&str]) -> Fleet {
        let own = tempfile::tempdir().expect("a folder");
        let (hub, agent) = (own.path().join("hub"), own.path().join("agent"));
        Fleet::hub_in(own, hub, agent, args)
    }

    /// Starts only a hub, with these folders of hub and agent.
    ///
    /// # Panics
    /// Panics as [`Fleet::hub`] does.
    pub fn hub_at(hub: PathBuf, agent: PathBuf) -> Fleet {
        Fleet::hub_in(tempfile::tempdir().expect("a folder"), hub, agent, &[])
    }

    /// Starts a hub with the people of [`crate::hub::people`] and their keys.
    ///
    /// # Panics
    /// Panics as [`Fleet::hub`] does.
    pub fn with_people() -> Fleet {
        let own = tempfile::tempdir().expect("a folder");
        let (hub, agent) = (own.path().join("hub"), own.path().join("agent"));
        Fleet::with_people_at(own, hub, agent)
    }

    /// Starts a hub with people, with these folders of hub and agent.
    ///
    /// # Panics
    /// Panics as [`Fleet::hub`] does.
    pub fn with_people_at(own: TempDir, hub: PathBuf, agent: PathBuf) -> Fleet {
        std::fs::create_dir(&hub).expect("made");
        let keys = crate::hub::people(&hub);
        let key = keys["join"].clone();
        Fleet { keys, ..Fleet::start_in(own, (hub, agent), &[], Vec::new(), |_| key) }
    }

    /// Starts a hub with a fake clock, which its agent will use too.
    ///
    /// # Panics
    /// Panics as [`Fleet::hub`] does.
    #[cfg(target_os = "linux")]
    pub fn by_clock() -> (Fleet, fake_clock::FakeClock) {
        let own = tempfile::tempdir().expect("a folder");
        let (hub, agent) = (own.path().join("hub"), own.path().join("agent"));
        let clock = fake_clock::FakeClock::new(own.path());
        let fleet = Fleet::start_in(own, (hub, agent), &[], clock.environment(), join_line);
        (Fleet { agent_env: clock.environment(), ..fleet }, clock)
    }

    /// Starts a hub with a fake clock, people, and these arguments.
    ///
    /// # Panics
    /// Panics as [`Fleet::hub`] does.
    #[cfg(target_os = "linux")]
    pub fn with_people_by_clock(args: &[&str]) -> (Fleet, fake_clock::FakeClock) {
        let own = tempfile::tempdir().expect("a folder");
        let (hub, agent) = (own.path().join("hub"), own.path().join("agent"));
        let clock = fake_clock::FakeClock::new(own.path());
        std::fs::create_dir(&hub).expect("made");
        let keys = crate::hub::people(&hub);
        let key = keys["join"].clone();
        let fleet = Fleet::start_in(own, (hub, agent), args, clock.environment(), |_| key);
        (Fleet { keys, agent_env: clock.environment(), ..fleet }, clock)
    }

    fn hub_in(own: TempDir, hub: PathBuf, agent: PathBuf, args: &[&str]) -> Fleet {
        Fleet::start_in(own, (hub, agent), args, Vec::new(), join_line)
    }

    fn start_in(
        own: TempDir,
        (hub_folder, agent_folder): (PathBuf, PathBuf),
        args: &[&str],
        hub_env: Vec<(String, String)>,
        key: impl FnOnce(&Server) -> String,
    ) -> Fleet {
        let hub_args: Vec<String> = args.iter().map(|arg| (*arg).to_string()).collect();
        let hub = start_hub(&hub_folder, free_port(), &hub_args, &hub_env);
        let (key, cutter) = (key(&hub), Cutter::start(hub.addr()));
        Fleet {
            own,
            hub_folder,
            agent_folder,
            ledger: Ledger::start(),
            url: format!("http://{}", cutter.addr),
            cutter,
            key,
            keys: BTreeMap::new(),
            agent_args: Vec::new(),
            agent_env: Vec::new(),
            hub_args,
            hub_env,
            port: hub.addr().port(),
            hub: Some(hub),
            agent: None,
            kept: Samples::new(),
        }
    }

    /// The address of the relay before the hub.
    pub fn addr(&self) -> SocketAddr {
        self.cutter.addr
    }

    /// A folder for other files of a test.
    pub fn folder(&self) -> &Path {
        self.own.path()
    }

    /// The folder of the hub.
    pub fn hub_folder(&self) -> &Path {
        &self.hub_folder
    }

    /// The folder of the agent.
    pub fn agent_folder(&self) -> &Path {
        &self.agent_folder
    }

    /// The command of an agent with this folder.
    pub fn agent_command(&self, folder: &Path) -> Command {
        let mut command = agent::command(&self.url, &self.key, folder);
        command.args(["--interval", "100ms", "--collectors", "openmetrics,cpu"]);
        command.args(["--openmetrics", &format!("books={}", self.ledger.url)]).args(&self.agent_args);
        command.envs(self.agent_env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Number of scrapes of the ledger's endpoint.
    pub fn scrapes(&self) -> u64 {
        self.ledger.served()
    }

    /// Starts the agent.
    pub fn start_agent(&mut self) {
        self.agent = Some(Agent::start(self.agent_command(&self.agent_folder)));
    }

    /// The running agent.
    ///
    /// # Panics
    /// Panics when none was started, or it was killed.
    pub fn agent(&self) -> &Agent {
        self.agent.as_ref().expect("it was started")
    }

    /// Kills the agent.
    pub fn kill_agent(&mut self) {
        self.agent = None; // Dropping it kills it by SIGKILL.
    }

    /// Ends the agent by SIGTERM, and waits until the hub has its goodbye.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[cfg(unix)]
    #[track_caller]
    pub fn stop_agent(&mut self) {
        let mut agent = self.agent.take().expect("it was started");
        // SAFETY: it is a process of this test that was not waited for yet.
        assert_eq!(unsafe { libc::kill(agent.id() as libc::pid_t, libc::SIGTERM) }, 0);
        assert!(agent.wait().success(), "{}", agent.output());
        self.until("the hub knows that it was stopped", || (self.machines()[0].state == "stopped").then_some(()));
    }

    /// Kills the agent, and waits until the hub has noticed.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn lose_agent(&mut self) {
        self.kill_agent();
        self.until("the hub knows that it is gone", || (self.machines()[0].state == "unreachable").then_some(()));
    }

    /// Kills the hub.
    pub fn kill_hub(&mut self) {
        self.hub = None; // Dropping it kills it by SIGKILL.
    }

    /// Starts the hub again.
    pub fn start_hub(&mut self) {
        self.hub = Some(start_hub(&self.hub_folder, self.port, &self.hub_args, &self.hub_env));
    }

    /// The running hub.
    ///
    /// # Panics
    /// Panics when it was killed.
    pub fn server(&self) -> &Server {
        self.hub.as_ref().expect("it runs")
    }

    /// Replaces the hub by another one with this folder. Returns the one before, which may be about to end.
    ///
    /// # Panics
    /// Panics when it was killed.
    pub fn succeed(&mut self, folder: PathBuf, hub: Server) -> Server {
        self.hub_folder = folder;
        self.hub.replace(hub).expect("it runs")
    }

    /// Runs a command that administers the hub, on its machine, and returns its output.
    ///
    /// # Panics
    /// Panics when it fails.
    #[track_caller]
    pub fn administer(&self, args: &[&str]) -> String {
        let mut command = watchglass(args.iter().copied());
        command.envs(self.hub_env.iter().cloned());
        let output = command.arg("--data-dir").arg(&self.hub_folder).output().expect("the binary starts");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The key of a join line that is made with these arguments.
    ///
    /// # Panics
    /// Panics when none is made.
    #[track_caller]
    pub fn join_line(&self, args: &[&str]) -> String {
        let line = self.administer(&[&["agents", "join"], args].concat());
        key_in(&line).unwrap_or_else(|| panic!("no key in {line}"))
    }

    /// The machines that the hub lists.
    ///
    /// # Panics
    /// Panics when the request fails.
    #[track_caller]
    pub fn machines(&self) -> Vec<shared::session::Agent> {
        let told = self.administer(&["agents", "list", "--json"]);
        serde_json::from_str::<shared::session::Agents>(&told).expect("a list of agents").agents
    }

    /// Records that the agent has lost its samples: from now on it may lack samples that the hub has.
    pub fn agent_forgets(&mut self) {
        self.kept.extend(samples(&self.of_hub()));
    }

    /// The ledger's samples in the folder of the hub.
    fn of_hub(&self) -> String {
        export(&self.hub_folder, &self.hub_env)
    }

    /// The hub's samples over HTTP with the data key, those in its memory included.
    ///
    /// # Panics
    /// Panics when there are no people.
    pub fn shown(&self) -> Samples {
        let key = format!("Authorization: Bearer {}", self.keys["data"]);
        let path = "/api/v1/export?format=csv&from=-1h&tag=openmetrics.books.*";
        let answer = send(self.server(), "GET", path, &[&key], "");
        if answer.status == 200 { samples(&answer.body) } else { Samples::new() }
    }

    /// Waits until the hub has clearly more samples than now.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn grows(&self, what: &str) {
        let before = samples(&self.of_hub()).len();
        self.until(what, || (samples(&self.of_hub()).len() > before + 15).then_some(()));
    }

    /// Waits until the agent has taken clearly more samples than now.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn samples_on(&self, times: u64) {
        let served = self.ledger.served();
        self.until("the agent scrapes on", || (self.ledger.served() > served + times).then_some(()));
    }

    /// Waits until this returns a value.
    ///
    /// # Panics
    /// Panics when that takes too long, with the output of both.
    #[track_caller]
    pub fn until<T>(&self, what: &str, ask: impl Fn() -> Option<T>) -> T {
        until_or(MAX_WAIT, ask, || format!("{what}\n{}", self.output()))
    }

    /// Output of both.
    fn output(&self) -> String {
        let hub = self.hub.as_ref().map(Server::log).unwrap_or_default();
        let agent = self.agent.as_ref().map(Agent::output).unwrap_or_default();
        format!("the hub said:\n{hub}\nthe agent said:\n{agent}")
    }

    /// Applies a disturbance, and waits until samples arrive again.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn harm(&mut self, harm: Harm) {
        self.strike(harm);
        self.grows(&format!("samples come again after {harm:?}"));
    }

    /// Applies a disturbance.
    ///
    /// # Panics
    /// Panics when a killed process does not start again.
    #[track_caller]
    pub fn strike(&mut self, harm: Harm) {
        match harm {
            Harm::Cut => self.cutter.cut(),
            Harm::CutAfter(bytes) => {
                let links = self.cutter.accepted();
                self.cutter.set(Direction::Up, Way { cut_after: Some(bytes), ..Way::default() });
                self.until("the link is cut and made again", || (self.cutter.accepted() > links).then_some(()));
            }
            Harm::Away => {
                self.cutter.close();
                self.samples_on(20);
                self.cutter.pass();
            }
            Harm::Swallow(direction) => {
                let links = self.cutter.accepted();
                self.cutter.set(direction, Way { drop: true, ..Way::default() });
                self.until("the silence is noticed", || (self.cutter.accepted() > links).then_some(()));
                // The dropped bytes are part of a message, so existing connections cannot go on.
                self.cutter.cut();
                self.cutter.pass();
            }
            Harm::KillHub => {
                self.kill_hub();
                self.start_hub();
            }
            Harm::KillAgent => {
                self.kill_agent();
                self.start_agent();
            }
            Harm::KillBoth => {
                self.kill_hub();
                self.kill_agent();
                self.start_agent();
                self.start_hub();
            }
        }
    }

    /// Waits until the hub has all samples of the agent up to the hub's newest. Then compares each sample of the two,
    /// and all with those that the ledger served.
    ///
    /// # Panics
    /// Panics when that takes too long, with the missing samples.
    #[track_caller]
    pub fn settle(&self) -> Audit {
        self.settle_by(samples)
    }

    /// Compares by scrape number instead of time, for an agent whose clock was wrong and whose timestamps differ.
    ///
    /// # Panics
    /// Panics as [`Fleet::settle`] does.
    #[track_caller]
    pub fn settle_corrected(&self) -> Audit {
        self.settle_by(scrapes)
    }

    /// The agent's samples, up to the hub's newest, that are missing at the hub: times (ms since the epoch) and tags.
    pub fn lacks(&self) -> Vec<(i64, String)> {
        let hub = samples(&self.of_hub());
        let newest = hub.keys().map(|(t, _)| *t).max().unwrap_or(i64::MIN);
        let agent = samples(&export(&self.agent_folder, &self.agent_env));
        agent.into_keys().filter(|at| at.0 <= newest && !hub.contains_key(at)).collect()
    }

    /// The ledger's samples on the hub as text, by time (ms since the epoch) and tag.
    pub fn stored(&self) -> BTreeMap<(i64, String), String> {
        samples(&self.of_hub())
    }

    /// Address of the endpoint that the agent scrapes.
    pub fn ledger(&self) -> &str {
        &self.ledger.url
    }

    /// Replaces the agent of this fleet.
    pub fn take_agent(&mut self, agent: Agent) {
        self.agent = Some(agent);
    }

    /// The times of the hub's first and last sample, ms since the epoch.
    ///
    /// # Panics
    /// Panics when it has none.
    pub fn span(&self) -> (i64, i64) {
        let all = samples(&self.of_hub());
        let times = || all.keys().map(|(t, _)| *t);
        (times().min().expect("samples"), times().max().expect("samples"))
    }

    #[track_caller]
    fn settle_by(&self, read: fn(&str) -> Samples) -> Audit {
        let (mut of_hub, mut hub, mut agent) = (String::new(), Samples::new(), Samples::new());
        let forgot = !self.kept.is_empty();
        let settled = within(MAX_WAIT, || {
            // The hub is read first: the agent had each of its samples before.
            of_hub = self.of_hub();
            (hub, agent) = (read(&of_hub), read(&export(&self.agent_folder, &self.agent_env)));
            if !self.agent_env.is_empty() {
                // For a clock that was set back, earlier samples are in the future; for the clock of this test they are
                // not.
                agent.extend(read(&export(&self.agent_folder, &[])));
            }
            agent.extend(self.kept.iter().map(|(at, value)| (at.clone(), value.clone())));
            let [lacking, beyond] = differ(&agent, &hub, forgot);
            (lacking.is_empty() && beyond.is_empty() && !hub.is_empty()).then_some(())
        });
        let [lacking, beyond] = differ(&agent, &hub, forgot);
        assert!(
            settled.is_some(),
            "of {} samples of the agent the hub lacks {} and has {} others\nlacking {:?}\nothers {:?}\n{}",
            agent.len(),
            lacking.len(),
            beyond.len(),
            &lacking[..lacking.len().min(8)],
            &beyond[..beyond.len().min(8)],
            self.output(),
        );
        let mut audit = Audit::default();
        audit.note(&of_hub);
        audit.compare(&of_hub, &self.ledger, i64::MAX);
        audit
    }
}

/// Samples up to the hub's newest that are missing at the hub, and samples that only the hub has. With `forgot`,
/// samples that the agent lost are compared only with the ledger.
fn differ<'a>(agent: &'a Samples, hub: &'a Samples, forgot: bool) -> [Vec<(&'a (i64, String), &'a String)>; 2] {
    let newest = hub.keys().map(|(t, _)| *t).max().unwrap_or(i64::MIN);
    let lacking = agent.iter().filter(|((t, _), _)| *t <= newest).filter(|(at, value)| hub.get(*at) != Some(*value));
    let known = |(at, value): &(&(i64, String), &String)| agent.get(*at) == Some(*value) || forgot;
    [lacking.collect(), hub.iter().filter(|sample| !known(sample)).collect()]
}

fn start_hub(folder: &Path, port: u16, args: &[String], env: &[(String, String)]) -> Server {
    let mut command = watchglass(["hub", "--no-local", "--port", &port.to_string()]);
    command.args(args).arg("--data-dir").arg(folder).envs(env.iter().cloned());
    Server::start_as_it_is(command)
}

/// The key in the join line that a hub prints at its start.
fn join_line(hub: &Server) -> String {
    crate::waiting::until("a join line", || key_in(&hub.log()))
}

/// The join key in a text that has a whole line with one.
fn key_in(text: &str) -> Option<String> {
    let at = text.find("wg_j_")?;
    let key = text[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    text[at..].contains('\n').then(|| key.to_owned())
}

/// The ledger's samples in a folder, as CSV; empty before the first sample.
pub(crate) fn export(folder: &Path, env: &[(String, String)]) -> String {
    let folder = folder.to_str().expect("a plain path");
    let mut command = watchglass(["export", "--data-dir", folder, "--tag", "openmetrics.books.*", "--format", "csv"]);
    command.envs(env.iter().map(|(name, value)| (name, value)));
    let output = command.output().expect("the binary starts");
    if output.status.success() { String::from_utf8(output.stdout).expect("text") } else { String::new() }
}

pub(crate) fn samples(csv: &str) -> Samples {
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [time, _, tag, value] = cells[..] else { panic!("{line}") };
        let time: f64 = time.parse().unwrap_or_else(|_| panic!("{line}"));
        (((time * 1e3).round() as i64, tag.to_owned()), value.to_owned())
    };
    csv.lines().skip(1).map(cells).collect()
}

/// The samples by the number of the scrape in place of the time.
fn scrapes(csv: &str) -> Samples {
    let all = samples(csv);
    let is_number = |tag: &str| tag.contains("ledger_total");
    let numbers = all.iter().filter(|((_, tag), _)| is_number(tag));
    let numbers: BTreeMap<i64, i64> =
        numbers.map(|((t, _), n)| (*t, n.parse::<f64>().unwrap_or_else(|_| panic!("{n}")) as i64)).collect();
    // A scrape without a number was cut off by the end of the export.
    all.into_iter().filter_map(|((t, tag), value)| Some(((*numbers.get(&t)?, tag), value))).collect()
}
