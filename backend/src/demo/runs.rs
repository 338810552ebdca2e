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

/// Begin and end of a run, and its fault, if any.
type Life = (i64, i64, Option<Fault>);

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
            Some((end, fault)) if end < next => (begin, end, Some(fault)),
            _ => (begin, next - BETWEEN_RUNS_MS, None),
        };
        let within = |t: i64| t > from && t <= to;
        // The usual case, checked at each tick.
        if !within(begin) && (life.1 > to || life.1 + LAUNCHERS_END_MS <= from) {
            return Vec::new();
        }
        let ranks = (0..self.gpus()).map(Some);
        let of = |gpu| self.process(run, life, gpu);
        let all = std::iter::once(None).chain(ranks).flat_map(of);
        all.filter(|record| within(record.t)).collect()
    }

    /// Begin and end of the launcher, or of the rank of a GPU.
    fn process(&self, run: i64, (begin, end, fault): Life, gpu: Option<u32>) -> [RunRecord; 2] {
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
        let (t, how) = match (fault, gpu) {
            (None, _) => (end, exit(0)),
            (Some(fault), Some(gpu)) if node == 0 && gpu == fault.gpu() => (end, fall(&fault)),
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

/// Exit status of the rank with the fault.
fn fall(fault: &Fault) -> How {
    match fault.fail() {
        Fail::Memory => {
            let memory = Some(MemoryKill { kills: 1, limit: None, peak: None });
            How { signal: Some("SIGKILL".into()), memory, ..How::default() }
        }
        // The watchdog of the collective library gives up.
        Fail::Lost => {
            How { signal: Some("SIGABRT".into()), failure: Some(FailureClass::NcclTimeout), ..How::default() }
        }
        _ => How { exit: Some(1), ..How::default() },
    }
}
