//! A hub and an agent of it that scrapes a ledger, with a relay between them: their link is cut, and either is killed.

use crate::audit::Audit;
use crate::cutter::{Cutter, Direction, Way};
use crate::ledger::{Chance, Ledger};
use crate::server::{Server, run, watchglass};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest that the two may take to find each other again: an agent waits up to 45 s before it tries.
const MAX_WAIT: Duration = Duration::from_secs(150);

/// What can happen to the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The link is cut, and can be made again at once.
    Cut,
    /// The link is cut once so many bytes have gone to the hub.
    CutAfter(u64),
    /// The link is cut, and none can be made for a while.
    Away,
    /// The hub is killed by SIGKILL, and started again.
    KillHub,
    /// Likewise the agent.
    KillAgent,
}

impl Harm {
    /// One by chance.
    pub fn any(chance: &mut Chance) -> Harm {
        match chance.below(5) {
            0 => Harm::Cut,
            1 => Harm::CutAfter(chance.below(20_000)),
            2 => Harm::Away,
            3 => Harm::KillHub,
            _ => Harm::KillAgent,
        }
    }
}

/// Harms a hub and an agent `number` times by chance, and compares them at the end. It ends early at `until`. Returns how
/// often it was.
///
/// # Panics
/// Panics where one of the two does not come back.
pub fn harms(number: u32, seed: u64, until: Instant) -> (u32, Audit) {
    let (mut fleet, mut chance) = (Fleet::start(), Chance::new(seed));
    let mut done = 0;
    while done < number && Instant::now() < until {
        fleet.harm(Harm::any(&mut chance));
        done += 1;
        // What was wrong in between shows at the end as well; now and then it is looked, so that it is found sooner.
        if done % 10 == 0 {
            fleet.settle();
        }
    }
    (done, fleet.settle())
}

/// A process that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A hub and an agent. Both are killed when this is dropped.
pub struct Fleet {
    folder: TempDir,
    ledger: Ledger,
    cutter: Cutter,
    key: String,
    port: u16,
    hub: Option<Server>,
    agent: Option<Killed>,
}

impl Fleet {
    /// Starts both, and waits until the hub has samples of the agent.
    ///
    /// # Panics
    /// Panics when that takes too long.
    pub fn start() -> Fleet {
        let folder = tempfile::tempdir().expect("a folder");
        let hub = start_hub(folder.path(), 0);
        let port = hub.addr().port();
        let key = crate::waiting::until("a join line", || {
            let log = hub.log();
            let at = log.find("wg_j_")?;
            let key = log[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
            log[at..].contains('\n').then(|| key.to_owned())
        });
        let cutter = Cutter::start(hub.addr());
        let mut fleet = Fleet { folder, ledger: Ledger::start(), cutter, key, port, hub: Some(hub), agent: None };
        fleet.start_agent();
        fleet.grows("the hub has samples of the agent");
        fleet
    }

    fn start_agent(&mut self) {
        let url = format!("http://{}", self.cutter.addr);
        let mut command = watchglass(["agent", "--hub", &url, "--key", &self.key, "--interval", "100ms"]);
        command.args(["--collectors", "openmetrics,cpu", "--openmetrics", &format!("books={}", self.ledger.url)]);
        command.arg("--data-dir").arg(self.agent_folder());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
        self.agent = Some(Killed(child));
    }

    fn agent_folder(&self) -> std::path::PathBuf {
        self.folder.path().join("agent")
    }

    /// What the folder of the hub has of the ledger.
    fn of_hub(&self) -> String {
        export(&self.folder.path().join("hub"))
    }

    /// Waits until the hub has a good number of samples more than now.
    #[track_caller]
    fn grows(&self, what: &str) {
        let before = samples(&self.of_hub()).len();
        self.until(what, || (samples(&self.of_hub()).len() > before + 15).then_some(()));
    }

    #[track_caller]
    fn until<T>(&self, what: &str, ask: impl Fn() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = ask() {
                return found;
            }
            let log = self.hub.as_ref().map(Server::log).unwrap_or_default();
            assert!(begin.elapsed() < MAX_WAIT, "not in {MAX_WAIT:?}: {what}\nthe hub said:\n{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Does this to the two, and waits until samples come again.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn harm(&mut self, harm: Harm) {
        match harm {
            Harm::Cut => self.cutter.cut(),
            Harm::CutAfter(bytes) => {
                let links = self.cutter.accepted();
                self.cutter.set(Direction::Up, Way { cut_after: Some(bytes), ..Way::default() });
                self.until("the link is cut and made again", || (self.cutter.accepted() > links).then_some(()));
            }
            Harm::Away => {
                self.cutter.close();
                let served = self.ledger.served();
                self.until("the agent scrapes on", || (self.ledger.served() > served + 20).then_some(()));
                self.cutter.pass();
            }
            Harm::KillHub => {
                self.hub = None; // Dropping a server kills it by SIGKILL.
                self.hub = Some(start_hub(self.folder.path(), self.port));
            }
            Harm::KillAgent => {
                self.agent = None;
                self.start_agent();
            }
        }
        self.grows(&format!("samples come again after {harm:?}"));
    }

    /// Waits until the hub has all that the agent has up to the newest that the hub has, and compares: each sample of the one
    /// with that of the other, and all with what the ledger served.
    ///
    /// # Panics
    /// Panics when that takes too long, and says what is lacking.
    #[track_caller]
    pub fn settle(&self) -> Audit {
        let begin = Instant::now();
        loop {
            // The hub first: what it has, the agent has had before.
            let (of_hub, of_agent) = (self.of_hub(), export(&self.agent_folder()));
            let (hub, agent) = (samples(&of_hub), samples(&of_agent));
            let newest = hub.keys().map(|(t, _)| *t).max().unwrap_or(i64::MIN);
            let lacking: Vec<_> = agent
                .iter()
                .filter(|((t, _), _)| *t <= newest)
                .filter(|(at, value)| hub.get(*at) != Some(*value))
                .collect();
            let beyond: Vec<_> = hub.iter().filter(|(at, value)| agent.get(*at) != Some(*value)).collect();
            if lacking.is_empty() && beyond.is_empty() && !hub.is_empty() {
                let mut audit = Audit::default();
                audit.note(&of_hub);
                audit.compare(&of_hub, &self.ledger, i64::MAX);
                return audit;
            }
            let log = self.hub.as_ref().map(Server::log).unwrap_or_default();
            assert!(
                begin.elapsed() < MAX_WAIT,
                "of {} samples of the agent the hub lacks {} and has {} others\nlacking {:?}\nothers {:?}\nthe hub said:\n{log}",
                agent.len(),
                lacking.len(),
                beyond.len(),
                &lacking[..lacking.len().min(8)],
                &beyond[..beyond.len().min(8)],
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn start_hub(folder: &Path, port: u16) -> Server {
    let mut command = watchglass(["hub", "--no-local", "--port", &port.to_string()]);
    command.arg("--data-dir").arg(folder.join("hub"));
    Server::start_as_it_is(command)
}

/// What a folder has of the ledger, as CSV; empty before the first sample.
fn export(folder: &Path) -> String {
    let folder = folder.to_str().expect("a plain path");
    let output = run(["export", "--data-dir", folder, "--tag", "openmetrics.books.*", "--format", "csv"]);
    if output.status.success() { String::from_utf8(output.stdout).expect("text") } else { String::new() }
}

/// Samples by time, ms, and tag: as text, so that not a bit of a value is another.
fn samples(csv: &str) -> BTreeMap<(i64, String), String> {
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [time, _, tag, value] = cells[..] else { panic!("{line}") };
        let time: f64 = time.parse().unwrap_or_else(|_| panic!("{line}"));
        (((time * 1e3).round() as i64, tag.to_owned()), value.to_owned())
    };
    csv.lines().skip(1).map(cells).collect()
}
