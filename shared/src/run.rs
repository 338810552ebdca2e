//! Runs: training jobs, each begun by `watchglass run`; the reports about them, and their end states.

use crate::failure::FailureClass;
use crate::json::{Number, Seconds};
use crate::unit::{self, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the variable with the id of the run in which a process runs.
pub const RUN_ID: &str = "WATCHGLASS_RUN_ID";

/// Name of the variable with the path of the socket that receives reports of runs.
pub const SOCKET: &str = "WATCHGLASS_SOCKET";

/// Maximum length of a message on that socket, bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// Maximum length of a marker on that socket, bytes.
pub const MAX_MARKER_BYTES: usize = 2 << 10;

/// Maximum length of a marker's text, bytes.
pub const MAX_MARK_BYTES: usize = 256;

/// Reply on that socket to the sender of a marker, if the sender's socket has a name: this, or a sentence.
pub const TAKEN: &str = "ok";

/// Kinds of markers that scripts may send.
pub const MARKS: [&str; 6] = ["note", "epoch", "step", "checkpoint", "eval", "preempting"];

/// Maximum length of a text of a run: its name, a tag, its notes; bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 10;

/// Maximum length of the label in the tag of a series, bytes.
pub const MAX_LABEL_BYTES: usize = 64;

/// Maximum number of tags of a run.
pub const MAX_TAGS: usize = 32;

/// Maximum length of a run's id, bytes.
pub const MAX_ID_BYTES: usize = 64;

/// Kind of the record of a run's start.
pub const BEGIN_KIND: &str = "run.begin";
/// Kind of the record of a run's end.
pub const END_KIND: &str = "run.end";
/// Kind of the record that a process of a run was stopped, or continues.
pub const STATE_KIND: &str = "run.state";

/// Validates the id of a run.
///
/// # Errors
/// A sentence with the allowed form.
pub fn check_id(id: &str) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !id.is_empty() && id.len() <= MAX_ID_BYTES && id.chars().all(letter) {
        true => Ok(()),
        false => Err(format!("the ID of a run is 1 to {MAX_ID_BYTES} letters, digits, \"-\" and \"_\"")),
    }
}

/// Names of a run, as in W&B, and its program.
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
    /// Its role in that group, such as `train` or `eval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_type: Option<String>,
    /// Tags, each with its value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Notes for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Label of this process of the run; see W&B's `x_label`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The user of the process, from the kernel; the launcher's claim is not trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The person or key whose request to a hub began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<String>,
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
    /// When that process started, clock ticks since boot (field 22 of `/proc/PID/stat`); None if that is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// The PID namespace of that number: the inode of `/proc/self/ns/pid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
    /// It joined a run that had begun: its environment named one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// When the first process of its job on this machine began, milliseconds since the Unix epoch. Set if the id of the
    /// run is an address, which other jobs have before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Its place among the processes of the run, if a launcher assigned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Id of the job of Slurm that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slurm: Option<String>,
    /// The part of this machine that a scheduler reserved for its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reserved>,
    /// The pod of Kubernetes that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
    /// Its launcher reports it by requests: no process of it is known here, and its number is 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// Its names.
    #[serde(flatten)]
    pub about: About,
}

/// The pod of Kubernetes in which a process runs, from the kernel's files of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its uid: 32 hexadecimal digits with hyphens between them, as `metadata.uid` has it.
    pub uid: String,
    /// Id of the container in it, 64 hexadecimal digits; None if the files do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// The part of a machine that a scheduler reserved for a job. Values that are unknown are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reserved {
    /// The scheduler: `slurm` or `kubernetes`.
    pub by: String,
    /// Numbers of the GPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// CPU time, thousandths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millicores: Option<u64>,
    /// Memory, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// When the job began, milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// When the scheduler ends the job, milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

/// Resources that a scheduler reserved for a run on all its machines. Those that are unknown on one of them are left
/// out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunReserved {
    /// The scheduler: `slurm` or `kubernetes`.
    pub by: String,
    /// GPUs, used or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// Cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Number>,
    /// Memory, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Number>,
    /// Length of the job at its time limit, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<Number>,
    /// Time from the start of the job to the end of the run, or until now, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_seconds: Option<Number>,
}

/// The place of a process among those of its run, from the environment set by its launcher.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Its number, from 0.
    pub rank: u32,
    /// Launcher whose variables these are: `torch` (torchrun, Accelerate, DeepSpeed), `slurm`, `mpi`, `jax`,
    /// `kubernetes`.
    pub launcher: String,
    /// Number of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<u32>,
    /// Its number on its machine, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<u32>,
    /// The number of its machine, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Number of restarts by the launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The GPUs that it holds, as the driver reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// Its GPUs are those assigned to it, without confirmation by the driver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The process that reports for all, from W&B's `x_primary`. If none is set, it is rank 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub primary: bool,
}

/// A process of a run has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// The started process. It is sent again for receivers that missed the start.
    pub begun: Begun,
    /// When it ended, milliseconds since the Unix epoch.
    pub t: i64,
    /// Its end.
    pub how: How,
}

/// A process of a run was stopped, or continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Id of the run.
    pub run: String,
    /// Number of the process.
    pub pid: u32,
    /// Whether it is stopped: by a signal, or its cgroup is frozen.
    pub stopped: bool,
    /// Time since which its launcher, which reports it by requests, has sent nothing, milliseconds since the Unix
    /// epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard: Option<i64>,
}

/// A reason for the end of a process from a source other than the kernel, which knows it better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its source: `slurm`, `kubernetes`, `report` for a request of its launcher, or `marker` for the job itself.
    pub who: String,
    /// The scheduler's word, such as `PREEMPTED`. Kubernetes' word for a pod that had to go is followed by its reason:
    /// `DisruptionTarget: PreemptionByScheduler`.
    pub word: String,
}

/// Source of a [`Claim`] about the end of a pod.
pub const KUBERNETES: &str = "kubernetes";

/// Source of a [`Claim`] about the end of a run from a request: its word is the name of a state.
pub const REPORT: &str = "report";

/// The condition of a pod that had to go, in the word of a [`Claim`].
pub const DISRUPTION: &str = "DisruptionTarget";

/// Words of Slurm and of jobs, and their states.
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
    /// The state of the word; None if it adds nothing to the kernel's report.
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

/// The label of the series of a process, as in W&B: the label of the process, else the number of its rank, else that of
/// the process.
pub fn series_label(label: Option<&str>, rank: Option<u32>, pid: u32) -> String {
    match (label.filter(|label| (1..=MAX_LABEL_BYTES).contains(&label.len())), rank) {
        (Some(label), _) => label.into(),
        (None, Some(rank)) => format!("rank_{rank}"),
        (None, None) => format!("pid_{pid}"),
    }
}

/// A report on the socket, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Told {
    /// A run has begun.
    Begin(Begun),
    /// It has ended.
    End(Over),
}

impl Told {
    /// The process that it is about.
    pub fn begun(&self) -> &Begun {
        let (Told::Begin(begun) | Told::End(Over { begun, .. })) = self;
        begun
    }

    /// The same, to be changed.
    pub fn begun_mut(&mut self) -> &mut Begun {
        let (Told::Begin(begun) | Told::End(Over { begun, .. })) = self;
        begun
    }

    /// Sets the user of the process.
    pub fn set_user(&mut self, user: &str) {
        self.begun_mut().about.user = Some(user.into());
    }
}

/// Reply to a launcher that reported a run, as JSON, once the report is stored; otherwise the reply is a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TellAnswer {
    /// It is stored.
    pub taken: bool,
    /// The id under which the run is listed, if another user has the reported id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<String>,
    /// The absolute path of the folder in which its launcher writes reports while nobody answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// A report that a launcher stored because nobody answered, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The machine: its host name, and its boot id. Other machines may share the folder.
    #[serde(default)]
    pub machine: [Option<String>; 2],
    /// The report.
    pub told: Told,
}

/// Endings of the files of [`Kept`]: as written, and while being sent.
pub const KEPT_ENDINGS: [&str; 2] = [".json", ".sending"];

/// A launcher's request on the socket for the folder of a run's output, as JSON. The reply is an absolute path, or a
/// sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogsOf {
    /// Id of the run.
    pub logs: String,
}

/// A launcher's offer on the socket of the stacks of a run, as JSON. It is repeated, and is valid for 5 min. When the run
/// hangs, the reply is a [`StacksAsked`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StacksOf {
    /// Id of the run.
    pub stacks: String,
}

/// Begin of the words at the end of a finding that name the runs of its stacks.
pub const STACKS_BEGIN: &str = "the stacks of its ranks are in the output of ";

/// The server's request for stacks, as JSON: the launcher writes them to the output of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StacksAsked {
    /// Processes of the run on this machine. A launcher reads only those below its own command.
    pub ranks: Vec<StackedRank>,
}

/// A process whose stack is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackedRank {
    /// Its number on the machine of the server.
    pub pid: u32,
    /// Its rank, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

/// A launcher's request on the socket for the ID of a new run, as JSON. The reply is the ID: the requested one, or another
/// one if a run of this user has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewId {
    /// The requested ID.
    pub new: String,
}

/// A marker that a script sends to the socket, as JSON. A plain text is a marker, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Its text.
    pub text: String,
    /// The number of the training step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The run to which it belongs; if it is left out, the kernel reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// One of [`MARKS`].
    pub kind: String,
}

/// The end of a process of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Its exit status; None if a signal ended it, or if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it, as `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The signal sent to it from outside before, as a request to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Processes that the kernel killed for memory meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryKill>,
    /// The reported reason, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The class of the failure that its last output names, as its machine read it; None without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
}

/// Processes were killed because memory was short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryKill {
    /// Number of killed processes.
    pub kills: u64,
    /// The limit of the full cgroup, bytes; None if it was the whole machine, or a daemon that kills before the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Maximum memory of the cgroup, bytes.
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
    /// Its machine sent nothing for a minute. The run itself may continue.
    Unreachable,
    /// It ended with status 0.
    Finished,
    /// It ended with another status.
    Failed,
    /// A signal ended it.
    Crashed,
    /// The kernel killed it because memory was short.
    OutOfMemory,
    /// Its time limit of the scheduler was over.
    TimedOut,
    /// The scheduler reports that its machine failed.
    NodeFailed,
    /// It had to make room for another job.
    Preempted,
    /// A person or program requested its end.
    Cancelled,
    /// Its machine sent nothing for half a day. It comes back with its machine.
    Lost,
    /// It is gone, and its end is unknown.
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

    /// The ends by a fault: the states that the word `crashed` means in filters and rules. Each of the other words means
    /// its own state, `failed` too. In answers `crashed` is the state of a run that a signal ended.
    pub const CRASHED: [RunState; 5] =
        [RunState::Failed, RunState::Crashed, RunState::OutOfMemory, RunState::TimedOut, RunState::NodeFailed];

    /// The states of a word in a filter or a rule; none for an unknown word.
    pub fn of_word(word: &str) -> Option<Vec<RunState>> {
        match RunState::named(word)? {
            RunState::Crashed => Some(RunState::CRASHED.to_vec()),
            state => Some(vec![state]),
        }
    }

    /// Whether it is an end by a fault.
    pub const fn is_crash(self) -> bool {
        matches!(
            self,
            RunState::Failed | RunState::Crashed | RunState::OutOfMemory | RunState::TimedOut | RunState::NodeFailed
        )
    }

    /// Its name in requests and answers.
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

    /// Whether it is an end state.
    pub fn is_final(self) -> bool {
        !matches!(self, RunState::Running | RunState::Suspended | RunState::Unreachable | RunState::Lost)
    }

    /// The state with this name.
    pub fn named(name: &str) -> Option<RunState> {
        RunState::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The shape before its word.
    pub const fn shape(self) -> char {
        match self {
            RunState::Running => '●',
            RunState::Finished => '✓',
            RunState::Suspended => '‖',
            _ if self.is_crash() => '■',
            _ => '◌',
        }
    }
}

impl How {
    /// The state after this end.
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
            // The scheduler may know an end that the kernel did not report.
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
        // The kernel's own numbers of memory are more precise than the scheduler's word.
        let claim = self.claim.as_ref().filter(|_| self.memory.is_none());
        if let Some(sentence) = claim.and_then(Claim::sentence) {
            return sentence;
        }
        let killed = self.memory.as_ref().map(MemoryKill::words).unwrap_or_default();
        // Without the kernel's report, the status is that of the whole container.
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
            // The kernel did it, or a daemon such as systemd-oomd.
            (None, _) if self.kills == 1 => {
                return "a process was killed, because this machine was out of memory".into();
            }
            (None, _) => {
                return format!("{} processes were killed, because this machine was out of memory", self.kills);
            }
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
    /// Its PID there.
    pub pid: u32,
    /// Its label in its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it began, milliseconds since the Unix epoch.
    pub began: i64,
    /// When it ended, likewise; None while it runs.
    pub ended: Option<i64>,
    /// Its end.
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
    /// The part of its machine that a scheduler reserved for its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reserved>,
    /// It is reported by requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// Time since which its launcher has sent nothing, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard: Option<i64>,
}

/// A run, as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// The id that its machines use, if another run is or may be listed under that: jobs that use one address after
    /// each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// Its state.
    pub state: RunState,
    /// The state in words, with its cause.
    pub sentence: String,
    /// The first of its processes that failed; None while it runs, and if it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The class of its failure; None while it runs, and if it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
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
    /// The last change of its names by a person; None in stored summaries, which keep the names that the job had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<RunEdited>,
}

/// The last change of a run by a person.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEdited {
    /// Rises with each change.
    pub version: u64,
    /// Name of the account or key that made it.
    pub by: String,
    /// When it was made.
    pub at: Seconds,
}

impl Run {
    /// The resources that a scheduler reserved for it on all its machines; None if no reservation is known. `now` is the
    /// end of a run that goes on, milliseconds since the Unix epoch.
    pub fn reserved(&self, now: i64) -> Option<RunReserved> {
        // A job that was requeued, or another job that continues the run, has a part of its own. Processes that had ended
        // by its start have given theirs back.
        let since = |one: &RunProcess| one.reserved.as_ref().and_then(|part| part.since);
        let newest = self.processes.iter().filter_map(since).max();
        let holds = |one: &&RunProcess| since(one) == newest || one.ended.is_none_or(|ended| Some(ended) >= newest);
        let parts = self.processes.iter().filter(holds);
        // Processes of one machine report the same job, or steps of it: the largest value counts.
        let mut machines: BTreeMap<&str, Reserved> = BTreeMap::new();
        for (source, of) in parts.filter_map(|one| Some((one.source.as_str(), one.reserved.as_ref()?))) {
            let known = machines.entry(source).or_default();
            known.by.clone_from(&of.by);
            known.gpus.extend(of.gpus.iter().filter(|gpu| !known.gpus.contains(gpu)).copied().collect::<Vec<u32>>());
            known.millicores = known.millicores.max(of.millicores);
            known.memory_bytes = known.memory_bytes.max(of.memory_bytes);
            known.since = known.since.or(of.since).min(of.since.or(known.since));
            known.until = known.until.max(of.until);
        }
        let by = machines.values().next()?.by.clone();
        let sum = |of: fn(&Reserved) -> Option<u64>| machines.values().map(of).sum::<Option<u64>>();
        let gpus = machines.values().map(|one| one.gpus.len() as u64).sum::<u64>();
        let since = machines.values().filter_map(|one| one.since).min();
        let until = machines.values().filter_map(|one| one.until).max();
        let seconds = |to: Option<i64>| Some(Number((to? - since?).max(0) as f64 / 1_000.0));
        Some(RunReserved {
            by,
            gpus: (gpus > 0).then_some(gpus),
            cores: sum(|one| one.millicores).map(|all| Number(all as f64 / 1_000.0)),
            memory_bytes: sum(|one| one.memory_bytes).map(|all| Number(all as f64)),
            limit_seconds: seconds(until),
            used_seconds: seconds(Some(self.ended.unwrap_or(now))),
        })
    }

    /// The id that its machines use.
    pub fn machine_id(&self) -> &str {
        self.known_as.as_deref().unwrap_or(&self.id)
    }
}

/// Summary of a run of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    /// Its id.
    pub id: String,
    /// A name for people, if it has one.
    pub name: Option<String>,
    /// Its state.
    pub state: RunState,
    /// The state in words, with its cause.
    pub sentence: String,
    /// When it began, milliseconds since the Unix epoch.
    pub began: i64,
    /// When it ended, likewise; None while it runs.
    pub ended: Option<i64>,
    /// Number of its ranks here; 0 if no process has a number.
    pub ranks: u64,
    /// GPU-hours that it held here; None if it held none.
    pub gpu_hours: Option<f64>,
    /// Mean utilization of these GPUs, percent.
    pub gpu_utilization: Option<f64>,
}

/// The process of a run that failed before all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its machine.
    pub source: String,
    /// Its PID there.
    pub pid: u32,
    /// Its rank, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// When it ended, milliseconds since the Unix epoch.
    pub t: i64,
    /// Its end state.
    pub state: RunState,
    /// The same in words.
    pub sentence: String,
}

/// Maximum number of listed processes of a run.
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
    fn the_part_of_a_job_that_ended_before_the_next_one_began_is_not_added_to_its_part() {
        let process = |source: &str, (began, ended): (i64, Option<i64>), gpus: &[u32]| {
            let (by, times) = ("slurm".into(), [began - 1_000, began + 99_000]);
            let reserved = Reserved {
                by,
                gpus: gpus.to_vec(),
                millicores: Some(8_000),
                memory_bytes: None,
                since: Some(times[0]),
                until: Some(times[1]),
            };
            let source = source.to_string();
            RunProcess { source, began, ended, reserved: Some(reserved), ..RunProcess::default() }
        };
        let sums = |processes: &[RunProcess]| {
            let run = Run { processes: processes.to_vec(), ..Run::default() };
            let all = run.reserved(300_000).expect("a part");
            let seconds = [all.limit_seconds, all.used_seconds].map(|seconds| seconds.map(|number| number.0));
            (all.gpus, all.cores.map(|cores| cores.0), seconds)
        };
        // A job that was preempted, and continues on other GPUs and another machine.
        let first = process("a", (10_000, Some(50_000)), &[0, 1]);
        let next = [process("a", (200_000, None), &[2, 3]), process("b", (200_000, None), &[0, 1])];
        let all = sums(&[first.clone(), next[0].clone(), next[1].clone()]);
        assert_eq!(all, (Some(4), Some(16.0), [Some(100.0), Some(101.0)]));
        assert_eq!(all, sums(&next));
        // A job beside it goes on, and one that failed at once has its part.
        let beside = RunProcess { ended: None, ..first.clone() };
        assert_eq!(sums(&[beside, next[1].clone()]).0, Some(4));
        let failed = RunProcess { ended: Some(8_000), ..first };
        assert_eq!(sums(&[failed]).0, Some(2));
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
        // A launcher whose child was killed ends with an ordinary status.
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
            // A word of Slurm's is unknown for Kubernetes.
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
            assert_eq!(RunState::CRASHED.contains(&state), state.is_crash(), "{state:?}");
            let own = if state == RunState::Crashed { RunState::CRASHED.to_vec() } else { vec![state] };
            assert_eq!(RunState::of_word(state.name()), Some(own));
        }
        assert_eq!(RunState::of_word("over"), None);
    }
}
