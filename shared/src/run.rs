//! Runs: training jobs, each begun by `watchglass run`; what is told of them, and how they ended.

use crate::unit::{self, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the variable that has the id of the run in which a process runs.
pub const RUN_ID: &str = "WATCHGLASS_RUN_ID";

/// Name of the variable that has the path of the socket on which runs are told of.
pub const SOCKET: &str = "WATCHGLASS_SOCKET";

/// The longest message on that socket, bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// The longest marker on that socket, bytes.
pub const MAX_MARKER_BYTES: usize = 2 << 10;

/// The longest text of a marker, bytes.
pub const MAX_MARK_BYTES: usize = 256;

/// What is answered on that socket to who sent a marker from a socket with a name: this, or a sentence.
pub const TAKEN: &str = "ok";

/// Kinds of markers that scripts put.
pub const MARKS: [&str; 6] = ["note", "epoch", "step", "checkpoint", "eval", "preempting"];

/// The longest text of a run: its name, a tag, its notes; bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 10;

/// The longest label in the tag of a series, bytes.
const MAX_LABEL_BYTES: usize = 64;

/// The most tags of a run.
pub const MAX_TAGS: usize = 32;

/// The longest id of a run, bytes.
pub const MAX_ID_BYTES: usize = 64;

/// The kinds of the records of a run: its begin.
pub const BEGIN_KIND: &str = "run.begin";
/// Its end.
pub const END_KIND: &str = "run.end";
/// A process of it was stopped, or goes on.
pub const STATE_KIND: &str = "run.state";

/// Whether that may be the id of a run.
///
/// # Errors
/// A sentence that says what may be.
pub fn check_id(id: &str) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !id.is_empty() && id.len() <= MAX_ID_BYTES && id.chars().all(letter) {
        true => Ok(()),
        false => Err(format!("the ID of a run is 1 to {MAX_ID_BYTES} letters, digits, \"-\" and \"_\"")),
    }
}

/// What a run is called, as W&B calls it, and what it runs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The project that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The group of runs that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What it does in that group, as `train` or `eval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_type: Option<String>,
    /// Tags, each with its value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Notes for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// What this process of the run is called; see W&B's `x_label`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The user whose process it is, as the kernel says; what a launcher says of it is not believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// File name of the program.
    pub program: String,
}

/// A run has begun, or a further process of it on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Id of the run.
    pub run: String,
    /// When, milliseconds since the Unix epoch.
    pub t: i64,
    /// Number of its process.
    pub pid: u32,
    /// When that process started, clock ticks since boot (field 22 of `/proc/PID/stat`); None where that is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// The namespace in which that number is its own: the inode of `/proc/self/ns/pid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
    /// It joined a run that had begun: its environment named one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// When the first process of its job on this machine began, milliseconds since the Unix epoch, where the id of the run is
    /// an address: other jobs have it before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Its place among the processes of the run, where a launcher gave it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Id of the job of Slurm that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slurm: Option<String>,
    /// The pod of Kubernetes that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
    /// Its launcher tells of it by requests: no process of it is known here, and its number is 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// Its names.
    #[serde(flatten)]
    pub about: About,
}

/// The pod of Kubernetes in which a process runs, as the kernel's files of the process name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its uid: 32 hexadecimal digits with hyphens between them, as `metadata.uid` has it.
    pub uid: String,
    /// Id of the container in it, 64 hexadecimal digits; None where the files do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// The place of a process among those of its run, as its launcher says it in the environment.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Its number, from 0.
    pub rank: u32,
    /// Which launcher's words these are: `torch` (torchrun, Accelerate, DeepSpeed), `slurm`, `mpi`, `jax`, `kubernetes`.
    pub launcher: String,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<u32>,
    /// Its number on its machine, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<u32>,
    /// The number of its machine, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// How often the launcher has begun anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The GPUs that it holds, as the driver says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// Its GPUs are those that it was told to use: the driver has not said that it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The one that speaks for all, as W&B's `x_primary` says. Where none is, it is rank 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub primary: bool,
}

/// A process of a run has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// What began. It is told again, for who was not there at the begin.
    pub begun: Begun,
    /// When it ended, milliseconds since the Unix epoch.
    pub t: i64,
    /// How.
    pub how: How,
}

/// A process of a run was stopped, or goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Id of the run.
    pub run: String,
    /// Number of the process.
    pub pid: u32,
    /// Whether it is stopped: by a signal, or its cgroup is frozen.
    pub stopped: bool,
    /// Since when its launcher, which tells of it by requests, is not heard, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard: Option<i64>,
}

/// Somebody other than the kernel says why a process ended, and knows it better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who says so: `slurm`, `kubernetes`, `report` where its launcher told of it by a request, or `marker` where the job
    /// itself did.
    pub who: String,
    /// In the scheduler's word, as `PREEMPTED`. Kubernetes' word that a pod had to go has its reason behind it:
    /// `DisruptionTarget: PreemptionByScheduler`.
    pub word: String,
}

/// Who tells of the ends of pods, in a [`Claim`].
pub const KUBERNETES: &str = "kubernetes";

/// Who tells of the ends of runs by requests, in a [`Claim`]: its word is the name of a state.
pub const REPORT: &str = "report";

/// The condition of a pod that had to go, in the word of a [`Claim`].
pub const DISRUPTION: &str = "DisruptionTarget";

/// Words of Slurm and of jobs, and the states that they are.
const CLAIMS: [(&str, RunState); 9] = [
    ("PREEMPTED", RunState::Preempted),
    ("TIMEOUT", RunState::TimedOut),
    ("DEADLINE", RunState::TimedOut),
    ("NODE_FAIL", RunState::NodeFailed),
    ("BOOT_FAIL", RunState::NodeFailed),
    ("CANCELLED", RunState::Cancelled),
    ("REVOKED", RunState::Cancelled),
    ("OUT_OF_MEMORY", RunState::OutOfMemory),
    ("SUSPENDED", RunState::Suspended),
];

/// Words of Kubernetes: reasons of containers and pods, and the condition of pods that had to go.
const POD_CLAIMS: [(&str, RunState); 6] = [
    ("OOMKilled", RunState::OutOfMemory),
    ("DeadlineExceeded", RunState::TimedOut),
    (DISRUPTION, RunState::Preempted),
    ("Evicted", RunState::Preempted),
    ("Preempting", RunState::Preempted),
    ("NodeLost", RunState::NodeFailed),
];

impl Claim {
    /// The state that the word is; None for one that says no more than the kernel does.
    pub fn state(&self) -> Option<RunState> {
        if self.who == REPORT {
            return RunState::named(&self.word);
        }
        if self.who == KUBERNETES {
            let word = self.word.split(':').next()?;
            return POD_CLAIMS.iter().find(|(known, _)| *known == word).map(|(_, state)| *state);
        }
        CLAIMS.iter().find(|(word, _)| *word == self.word).map(|(_, state)| *state)
    }

    fn sentence(&self) -> Option<String> {
        let word = match self.state()? {
            RunState::Preempted => "preempted",
            RunState::TimedOut => "out of time",
            RunState::NodeFailed => "node failed",
            RunState::Cancelled => "cancelled",
            RunState::OutOfMemory => "out of memory",
            _ => return None,
        };
        Some(match self.who.as_str() {
            "slurm" => format!("{word} (Slurm: {})", self.word),
            KUBERNETES => {
                let reason = self.word.strip_prefix(DISRUPTION).and_then(|rest| rest.strip_prefix(": "));
                format!("{word} (Kubernetes: {})", reason.unwrap_or(&self.word))
            }
            _ => format!("{word} (reported by the job)"),
        })
    }
}

/// The label that the series of a process have, as W&B has it: what the process is called, else the number of its rank, else
/// that of the process.
pub fn series_label(label: Option<&str>, rank: Option<u32>, pid: u32) -> String {
    match (label.filter(|label| (1..=MAX_LABEL_BYTES).contains(&label.len())), rank) {
        (Some(label), _) => label.into(),
        (None, Some(rank)) => format!("rank_{rank}"),
        (None, None) => format!("pid_{pid}"),
    }
}

/// What is told on the socket, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Told {
    /// A run has begun.
    Begin(Begun),
    /// It has ended.
    End(Over),
}

impl Told {
    /// The process of which it tells.
    pub fn begun(&self) -> &Begun {
        let (Told::Begin(begun) | Told::End(Over { begun, .. })) = self;
        begun
    }

    /// The same, to be changed.
    pub fn begun_mut(&mut self) -> &mut Begun {
        let (Told::Begin(begun) | Told::End(Over { begun, .. })) = self;
        begun
    }

    /// Sets whose process it is.
    pub fn set_user(&mut self, user: &str) {
        self.begun_mut().about.user = Some(user.into());
    }
}

/// What is answered to a launcher that told of a run, as JSON, once it is kept; else the answer is a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TellAnswer {
    /// It is kept.
    pub taken: bool,
    /// The id under which the run is listed, where another user has that which it was told by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<String>,
    /// The folder, from / on, in which its launcher writes what it tells when nobody answers any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// What a launcher wrote because nobody answered, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The machine: its host name, and the id of its start. Others may have the same folder.
    #[serde(default)]
    pub machine: [Option<String>; 2],
    /// What it tells.
    pub told: Told,
}

/// Endings of the files of [`Kept`]: as they are written, and while they are told.
pub const KEPT_ENDINGS: [&str; 2] = [".json", ".sending"];

/// A launcher asks on the socket, as JSON, in which folder what a run prints is kept. The answer is a path from / on, or a
/// sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogsOf {
    /// Id of the run.
    pub logs: String,
}

/// A marker as a script tells it on the socket, as JSON. A text alone is one, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// What it says.
    pub text: String,
    /// The number of the training step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The run that it is of; the kernel says it where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// One of [`MARKS`].
    pub kind: String,
}

/// How the process of a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Its status; None where it ended by a signal, or where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it, as `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The signal that was sent to it from outside before, which asked it to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// What the kernel killed for memory meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryKill>,
    /// Who says why, where somebody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
}

/// The kernel killed processes because memory was short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryKill {
    /// How many.
    pub kills: u64,
    /// The limit of the cgroup that was full, bytes; None where it was the whole machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The most that the cgroup held, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
}

/// The state of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It runs.
    #[default]
    Running,
    /// All its processes are stopped, or frozen.
    Suspended,
    /// Its machine was not heard for a minute. That says nothing of the run.
    Unreachable,
    /// It ended with status 0.
    Finished,
    /// It ended with another status.
    Failed,
    /// A signal ended it.
    Crashed,
    /// The kernel killed it because memory was short.
    OutOfMemory,
    /// The scheduler's time for it was over.
    TimedOut,
    /// The scheduler says that its machine failed.
    NodeFailed,
    /// It had to make room for another.
    Preempted,
    /// Somebody asked it to end.
    Cancelled,
    /// Its machine was not heard for half a day. It comes back with its machine.
    Lost,
    /// It is gone, and nobody knows how.
    Ended,
}

impl RunState {
    /// All states.
    pub const ALL: [RunState; 13] = [
        RunState::Running,
        RunState::Suspended,
        RunState::Unreachable,
        RunState::Finished,
        RunState::Failed,
        RunState::Crashed,
        RunState::OutOfMemory,
        RunState::TimedOut,
        RunState::NodeFailed,
        RunState::Preempted,
        RunState::Cancelled,
        RunState::Lost,
        RunState::Ended,
    ];

    /// Its name in answers and questions.
    pub const fn name(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Unreachable => "unreachable",
            RunState::Finished => "finished",
            RunState::Failed => "failed",
            RunState::Crashed => "crashed",
            RunState::OutOfMemory => "out_of_memory",
            RunState::TimedOut => "timed_out",
            RunState::NodeFailed => "node_failed",
            RunState::Preempted => "preempted",
            RunState::Suspended => "suspended",
            RunState::Cancelled => "cancelled",
            RunState::Lost => "lost",
            RunState::Ended => "ended",
        }
    }

    /// Its name for people.
    fn words(self) -> String {
        match self {
            RunState::TimedOut => "out of time".into(),
            state => state.name().replace('_', " "),
        }
    }

    /// Whether a run that is so is over.
    pub fn is_final(self) -> bool {
        !matches!(self, RunState::Running | RunState::Suspended | RunState::Unreachable | RunState::Lost)
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<RunState> {
        RunState::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The shape that stands before its word.
    pub const fn shape(self) -> char {
        match self {
            RunState::Running => '●',
            RunState::Finished => '✓',
            RunState::Suspended => '‖',
            RunState::Failed
            | RunState::Crashed
            | RunState::OutOfMemory
            | RunState::TimedOut
            | RunState::NodeFailed => '■',
            RunState::Unreachable | RunState::Preempted | RunState::Cancelled | RunState::Lost | RunState::Ended => '◌',
        }
    }
}

impl How {
    /// The state that says so.
    pub fn state(&self) -> RunState {
        if let Some(state) = self.claim.as_ref().and_then(Claim::state) {
            return state;
        }
        match self {
            How { asked: Some(_), .. } => RunState::Cancelled,
            How { signal: Some(signal), memory: Some(_), .. } if signal == "SIGKILL" => RunState::OutOfMemory,
            How { signal: Some(_), .. } => RunState::Crashed,
            How { exit: Some(0), .. } => RunState::Finished,
            How { exit: Some(_), .. } => RunState::Failed,
            // What the kernel did not tell the scheduler may.
            How { claim: Some(claim), .. } if claim.word == "COMPLETED" => RunState::Finished,
            How { claim: Some(claim), .. } if claim.word == "FAILED" => RunState::Failed,
            _ => RunState::Ended,
        }
    }

    /// The state in words, with its cause: `crashed (SIGSEGV)`.
    pub fn sentence(&self) -> String {
        if self.claim.as_ref().is_some_and(|claim| claim.who == REPORT) {
            let exit = self.exit.filter(|status| *status != 0).map(|status| format!("exit {status}"));
            let ended = self.signal.clone().or(exit).map(|ended| format!("{ended}, ")).unwrap_or_default();
            return format!("{} ({ended}by report)", self.state().words());
        }
        // The kernel's own numbers of memory say more than the scheduler's word.
        let claim = self.claim.as_ref().filter(|_| self.memory.is_none());
        if let Some(sentence) = claim.and_then(Claim::sentence) {
            return sentence;
        }
        let killed = self.memory.as_ref().map(MemoryKill::words).unwrap_or_default();
        // What the kernel did not tell is the status of the whole container.
        let by = self.claim.as_ref().filter(|claim| claim.who == KUBERNETES).map_or("", |_| "Kubernetes: ");
        let ended = match (&self.signal, self.exit) {
            (Some(signal), _) => format!("{by}{signal}"),
            (None, Some(status)) => format!("{by}exit {status}"),
            (None, None) => self.claim.as_ref().map(|claim| format!("Slurm: {}", claim.word)).unwrap_or_default(),
        };
        match self.state() {
            RunState::Cancelled => {
                let asked = self.asked.as_deref().unwrap_or("Slurm");
                if ended == asked {
                    format!("cancelled ({asked})")
                } else {
                    format!("cancelled ({asked}), then {ended}")
                }
            }
            RunState::OutOfMemory => match self.memory.as_ref().is_some_and(|kill| kill.limit.is_some()) {
                true => format!("out of memory: {killed}"),
                false => format!("probably out of memory: {killed}"),
            },
            RunState::Crashed => format!("crashed ({ended})"),
            RunState::Failed if !killed.is_empty() => format!("failed ({ended}); {killed}"),
            RunState::Failed => format!("failed ({ended})"),
            RunState::Finished if self.exit.is_none() => format!("finished ({ended})"),
            RunState::Finished => "finished".into(),
            _ => "ended for an unknown reason".into(),
        }
    }
}

impl MemoryKill {
    fn words(&self) -> String {
        let size = |bytes: u64| unit::text(bytes as f64, Unit::Bytes);
        let of = match (self.limit, self.peak) {
            (Some(limit), Some(peak)) => format!(" at {} of {}", size(peak.min(limit)), size(limit)),
            (Some(limit), None) => format!(" at its limit of {}", size(limit)),
            (None, _) => ", because this machine was out of memory".into(),
        };
        match self.kills {
            1 => format!("the kernel killed a process{of}"),
            kills => format!("the kernel killed {kills} processes{of}"),
        }
    }
}

/// A process of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProcess {
    /// Its machine.
    pub source: String,
    /// Its number there.
    pub pid: u32,
    /// What it is called in its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it began, milliseconds since the Unix epoch.
    pub began: i64,
    /// When it ended, likewise; None while it runs.
    pub ended: Option<i64>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<How>,
    /// It joined a run that had begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// It is stopped, or frozen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Its place among the processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// It is told of by requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// Since when its launcher is not heard, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard: Option<i64>,
}

/// A run, as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// The id by which its machines know it, where another run is listed under that, or may be: jobs that come one after the
    /// other at one address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// Its state.
    pub state: RunState,
    /// The state in words, with its cause.
    pub sentence: String,
    /// The first of its processes that ended badly; None while it runs, and for one that finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// When it began, milliseconds since the Unix epoch.
    pub began: i64,
    /// When it ended, likewise; None while it runs.
    pub ended: Option<i64>,
    /// Its names.
    #[serde(flatten)]
    pub about: About,
    /// Its processes, first begun first; at most [`MAX_PROCESSES`].
    pub processes: Vec<RunProcess>,
    /// Processes that are not in the list.
    #[serde(default)]
    pub further: u64,
}

impl Run {
    /// The id by which its machines know it.
    pub fn machine_id(&self) -> &str {
        self.known_as.as_deref().unwrap_or(&self.id)
    }
}

/// A run of a machine in few words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    /// Its id.
    pub id: String,
    /// A name for people, where it has one.
    pub name: Option<String>,
    /// Its state.
    pub state: RunState,
    /// The state in words, with its cause.
    pub sentence: String,
    /// When it began, milliseconds since the Unix epoch.
    pub began: i64,
    /// When it ended, likewise; None while it runs.
    pub ended: Option<i64>,
    /// How many ranks it has here; 0 where no process has a number.
    pub ranks: u64,
    /// GPU-hours that it held here; None where it held none.
    pub gpu_hours: Option<f64>,
    /// Mean utilization of these GPUs, percent.
    pub gpu_utilization: Option<f64>,
}

/// The process of a run that ended badly before all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its machine.
    pub source: String,
    /// Its number there.
    pub pid: u32,
    /// Its rank, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// When it ended, milliseconds since the Unix epoch.
    pub t: i64,
    /// How it ended.
    pub state: RunState,
    /// The same in words.
    pub sentence: String,
}

/// The most processes of a run that are listed.
pub const MAX_PROCESSES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn how(exit: Option<i32>, signal: Option<&str>) -> How {
        How { exit, signal: signal.map(Into::into), ..How::default() }
    }

    #[test]
    fn ids_are_plain_words() {
        for id in ["a", "run-1_b", &"x".repeat(MAX_ID_BYTES)] {
            assert_eq!(check_id(id), Ok(()));
        }
        for id in ["", "a b", "../x", "é", &"x".repeat(MAX_ID_BYTES + 1)] {
            assert!(check_id(id).is_err(), "{id}");
        }
    }

    #[test]
    fn each_end_has_its_state_and_its_sentence() {
        let memory = |limit| Some(MemoryKill { kills: 1, limit, peak: None });
        let said = |how: &How| (how.state().name(), how.sentence());
        assert_eq!(said(&how(Some(0), None)), ("finished", "finished".into()));
        assert_eq!(said(&how(Some(3), None)), ("failed", "failed (exit 3)".into()));
        assert_eq!(said(&how(None, Some("SIGSEGV"))), ("crashed", "crashed (SIGSEGV)".into()));
        assert_eq!(said(&how(None, None)), ("ended", "ended for an unknown reason".into()));
        let asked = |how| How { asked: Some("SIGTERM".into()), ..how };
        assert_eq!(said(&asked(how(None, Some("SIGTERM")))), ("cancelled", "cancelled (SIGTERM)".into()));
        assert_eq!(said(&asked(how(Some(0), None))).1, "cancelled (SIGTERM), then exit 0");
        let killed = How { memory: memory(Some(32 << 30)), ..how(None, Some("SIGKILL")) };
        let sentence = "out of memory: the kernel killed a process at its limit of 32 GiB";
        assert_eq!(said(&killed), ("out_of_memory", sentence.into()));
        let machine = How { memory: memory(None), ..how(None, Some("SIGKILL")) };
        assert!(machine.sentence().starts_with("probably out of memory"), "{}", machine.sentence());
        // A launcher whose child was killed ends with a plain status.
        let launcher = How { memory: memory(Some(1 << 30)), ..how(Some(1), None) };
        assert_eq!(launcher.sentence(), "failed (exit 1); the kernel killed a process at its limit of 1 GiB");
        let claim = |who: &str, word: &str| Some(Claim { who: who.into(), word: word.into() });
        for (word, state, sentence) in [
            ("PREEMPTED", "preempted", "preempted (Slurm: PREEMPTED)"),
            ("TIMEOUT", "timed_out", "out of time (Slurm: TIMEOUT)"),
            ("NODE_FAIL", "node_failed", "node failed (Slurm: NODE_FAIL)"),
            ("CANCELLED", "cancelled", "cancelled (Slurm: CANCELLED)"),
            ("OUT_OF_MEMORY", "out_of_memory", "out of memory (Slurm: OUT_OF_MEMORY)"),
            ("FAILED", "crashed", "crashed (SIGTERM)"),
        ] {
            let end = How { claim: claim("slurm", word), ..how(None, Some("SIGTERM")) };
            assert_eq!(said(&end), (state, sentence.into()));
        }
        let unknown = |word| How { claim: claim("slurm", word), ..How::default() };
        assert_eq!(said(&unknown("COMPLETED")), ("finished", "finished (Slurm: COMPLETED)".into()));
        assert_eq!(said(&unknown("FAILED")), ("failed", "failed (Slurm: FAILED)".into()));
        for (word, state, sentence) in [
            ("OOMKilled", "out_of_memory", "out of memory (Kubernetes: OOMKilled)"),
            ("DeadlineExceeded", "timed_out", "out of time (Kubernetes: DeadlineExceeded)"),
            ("DisruptionTarget: EvictionByEvictionAPI", "preempted", "preempted (Kubernetes: EvictionByEvictionAPI)"),
            ("Evicted", "preempted", "preempted (Kubernetes: Evicted)"),
            ("NodeLost", "node_failed", "node failed (Kubernetes: NodeLost)"),
            // A word of Slurm's is none of Kubernetes'.
            ("TIMEOUT", "crashed", "crashed (Kubernetes: SIGKILL)"),
            ("Error", "crashed", "crashed (Kubernetes: SIGKILL)"),
        ] {
            let end = How { claim: claim(KUBERNETES, word), ..how(None, Some("SIGKILL")) };
            assert_eq!(said(&end), (state, sentence.into()));
        }
        let reported = |word: &str, how: How| said(&How { claim: claim(REPORT, word), ..how });
        assert_eq!(reported("failed", how(Some(3), None)), ("failed", "failed (exit 3, by report)".into()));
        assert_eq!(reported("crashed", how(None, Some("SIGKILL"))).1, "crashed (SIGKILL, by report)");
        assert_eq!(reported("timed_out", How::default()), ("timed_out", "out of time (by report)".into()));
        assert_eq!(reported("finished", how(Some(0), None)), ("finished", "finished (by report)".into()));
        let container = |exit| How { claim: claim(KUBERNETES, "Error"), ..how(Some(exit), None) };
        assert_eq!(said(&container(3)), ("failed", "failed (Kubernetes: exit 3)".into()));
        assert_eq!(said(&container(0)).0, "finished");
        let own = How { claim: claim("marker", "PREEMPTED"), ..how(Some(0), None) };
        assert_eq!(said(&own), ("preempted", "preempted (reported by the job)".into()));
        for state in RunState::ALL {
            assert_eq!(RunState::named(state.name()), Some(state));
        }
    }
}
