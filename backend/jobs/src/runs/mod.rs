//! Runs: reports of `watchglass run` about jobs of this machine become its records, and the records of all machines
//! make the list of runs.
//!
//! Ranks are detected automatically, by the environment that their launchers set.
//!
//! Resources of a run are read from the history of its machines; `sums` adds them up.
//!
//! A run ends when its launcher reports its end, or when the kernel reports that its process is gone. Silence is no
//! end.

#[cfg(unix)]
mod by_request;
mod cost;
mod days;
#[cfg(unix)]
mod detection;
mod edits;
#[cfg(target_os = "linux")]
mod environ;
#[cfg(unix)]
mod follow;
#[cfg(target_os = "linux")]
mod frozen;
mod gpu_time;
mod hang;
#[cfg(unix)]
mod jobs;
mod keeping;
mod kept;
#[cfg(unix)]
mod kubernetes;
mod lines;
mod logged;
mod measure;
#[cfg(unix)]
mod messages;
mod output;
#[cfg(unix)]
mod permit;
#[cfg(target_os = "linux")]
mod pidfd;
#[cfg(target_os = "linux")]
mod ranks;
mod reduce;
mod registry;
mod reported;
mod series;
mod settings;
#[cfg(unix)]
mod slurm;
#[cfg(unix)]
mod socket;
#[cfg(unix)]
mod spool;
#[cfg(unix)]
mod stacks;
mod summaries;
mod summary;
mod sums;
#[cfg(unix)]
mod track;
mod used;
#[cfg(target_os = "linux")]
mod wandb;

pub use self::settings::{Detect, RunsSettings, SocketMode};
pub use cost::CostSettings;
pub use days::{RunDay, RunDays};
pub use edits::{DeletedUse, PlacedRun, RunEdit, RunEdits};
#[cfg(unix)]
pub use follow::follow;
pub use gpu_time::{GpuTimeSpan, Month, gpu_time};
pub use keeping::{expire_logs, keep};
#[cfg(unix)]
pub use kubernetes::examine_kubernetes;
pub use logged::{add_logged, steps};
pub use measure::{Line, RunMeasures, chart_of, charts, measure};
pub use output::{PrintedRow, Ranks, RunLogs, bare, last_words};
pub use reduce::limited;
pub use registry::{RunRegistry, RunRegistryParts};
pub use reported::{RefusedReport, Report, ReportAsk, Reports, reports};
pub use series::names_of;
#[cfg(unix)]
pub use slurm::RunTool;
#[cfg(unix)]
pub use socket::RunSocket;
#[cfg(unix)]
pub use spool::FOLDER as SPOOL_FOLDER;
pub use summaries::{ListSummaries, ListSummary};
pub use summary::{MEASURES, RunCurve, RunMark, RunNumbers, RunSummary, drivers};
pub use sums::Sums;
pub use used::{RunUse, measure_use};

/// The ID of a run whose reported ID belongs to another run; `whose` distinguishes it from further ones.
fn other_id(id: &str, whose: &str) -> String {
    use sha2::{Digest, Sha256};
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    const ADDED: usize = 8;
    let hash = Sha256::digest(format!("{id}\n{whose}").as_bytes());
    let added: String = hash.iter().take(ADDED).map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    let room = shared::run::MAX_ID_BYTES - ADDED - 1;
    format!("{}-{added}", &id[..id.floor_char_boundary(id.len().min(room))])
}
