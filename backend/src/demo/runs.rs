//! The runs of a simulated fleet: each rack trains one job after another, and its machines record that as launchers
//! do.

use super::fault::Fault;
use super::machine::Machine;
use super::processes::{USER, launcher_pid, trainer_pid};
use crate::config::Fail;
use shared::failure::FailureClass;
use shared::run::{About, BEGIN_KIND, Begun, END_KIND, How, MemoryKill, Over, Rank};

/// Time between the end of a run and the begin of the next, milliseconds.
const BETWEEN_RUNS_MS: i64 = 1_000;
/// Time after a rank's failure until its launcher has ended the other ranks, and itself, milliseconds.
const RANKS_END_MS: i64 = 1_500;
const LAUNCHERS_END_MS: i64 = 2_000;

/// A record of a machine.
pub(super) struct RunRecord {
    /// Time of the event, milliseconds since the Unix epoch.
    pub t: i64,
    pub kind: &'static str,
    pub body: Vec<u8>,
}

/// How a rank of the first machine ended before the others, and its GPU.
type Fall = (u32, How);
/// Begin and end of a run, and its fall, if any.
type Life = (i64, i64, Option<Fall>);

impl Machine {
    /// Records of its launchers after `from` and up to `to`, milliseconds since the Unix epoch, in order of time.
    pub fn list_records(&self, from: i64, to: i64) -> Vec<RunRecord> {
        let numbers = self.job().number(from - LAUNCHERS_END_MS)..=self.job().number(to);
        let mut all: Vec<RunRecord> = numbers.flat_map(|run| self.run(run, from, to)).collect();
        all.sort_by_key(|record| record.t);
        all
    }

    /// Begin of the run that is active at an instant.
    pub fn run_begin(&self, t: i64) -> i64 {
        self.job().begin(self.job().number(t))
    }

    /// ID of the run of a number.
    pub fn run_id(&self, run: i64) -> String {
        format!("demo-r{:02}-{run}", self.place().0 + 1)
    }

    fn run(&self, run: i64, from: i64, to: i64) -> Vec<RunRecord> {
        let (begin, next) = (self.job().begin(run), self.job().begin(run + 1));
        let fatal = self.fault().and_then(|fault| Some((fault.end()?, *fault)));
        let life = match fatal {
            Some((end, _)) if end <= begin => return Vec::new(),
            Some((end, fault)) if end < next => (begin, end, Some(fall(&fault))),
            _ => match self.falls(run) {
                None => (begin, next - BETWEEN_RUNS_MS, None),
                fall => (begin, next - BETWEEN_RUNS_MS - LAUNCHERS_END_MS, fall),
            },
        };
        let within = |t: i64| t > from && t <= to;
        // The usual case, checked at each tick.
        if !within(begin) && (life.1 > to || life.1 + LAUNCHERS_END_MS <= from) {
            return Vec::new();
        }
        let ranks = (0..self.gpus()).map(Some);
        let of = |gpu| self.process(run, &life, gpu);
        let all = std::iter::once(None).chain(ranks).flat_map(of);
        all.filter(|record| within(record.t)).collect()
    }

    /// The fall of a run that ends without a fault of its machines: every third one ends by an error of its own code, in
    /// one rank.
    fn falls(&self, run: i64) -> Option<Fall> {
        let gpu = run.rem_euclid(i64::from(self.gpus().max(1))) as u32;
        self.job()
            .falls(run)
            .then(|| (gpu, How { exit: Some(1), failure: Some(FailureClass::Exception), ..How::default() }))
    }

    /// Begin and end of the launcher, or of the rank of a GPU.
    fn process(&self, run: i64, (begin, end, fallen): &Life, gpu: Option<u32>) -> [RunRecord; 2] {
        let (begin, end) = (*begin, *end);
        let (rack, node, nodes) = self.place();
        let launcher = launcher_pid(self.processes_key(), run);
        let local = self.gpus();
        let rank = gpu.map(|gpu| Rank {
            rank: node * local + gpu,
            launcher: "torch".into(),
            world: Some(nodes * local),
            local: Some(gpu),
            node: Some(node),
            gpus: vec![gpu],
            ..Rank::default()
        });
        let begun = Begun {
            run: self.run_id(run),
            t: begin,
            pid: gpu.map_or(launcher, |gpu| trainer_pid(launcher, gpu)),
            joined: node > 0 || gpu.is_some(),
            rank,
            about: About {
                name: Some(format!("pretrain r{:02} {run}", rack + 1)),
                project: Some("demo".into()),
                job_type: Some("train".into()),
                user: Some(USER.into()),
                program: if gpu.is_some() { "python3" } else { "torchrun" }.into(),
                ..About::default()
            },
            ..Begun::default()
        };
        let exit = |status| How { exit: Some(status), ..How::default() };
        let (t, how) = match (fallen, gpu) {
            (None, _) => (end, exit(0)),
            (Some((first, how)), Some(gpu)) if node == 0 && gpu == *first => (end, how.clone()),
            (Some(_), Some(_)) => (end + RANKS_END_MS, How { signal: Some("SIGTERM".into()), ..How::default() }),
            (Some(_), None) => (end + LAUNCHERS_END_MS, exit(1)),
        };
        let over = Over { begun: begun.clone(), t, how };
        let bytes = |body: serde_json::Result<Vec<u8>>| body.unwrap_or_default();
        [
            RunRecord { t: begin, kind: BEGIN_KIND, body: bytes(serde_json::to_vec(&begun)) },
            RunRecord { t, kind: END_KIND, body: bytes(serde_json::to_vec(&over)) },
        ]
    }
}

/// The rank with the fault, and its end.
fn fall(fault: &Fault) -> Fall {
    let how = match fault.fail() {
        Fail::Memory => {
            let memory = Some(MemoryKill { kills: 1, limit: None, peak: None });
            How { signal: Some("SIGKILL".into()), memory, ..How::default() }
        }
        // The watchdog of the collective library gives up.
        Fail::Lost => {
            How { signal: Some("SIGABRT".into()), failure: Some(FailureClass::NcclTimeout), ..How::default() }
        }
        _ => How { exit: Some(1), ..How::default() },
    };
    (fault.gpu(), how)
}
