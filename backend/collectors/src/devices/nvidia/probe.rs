//! Checks whether a GPU that is lost to this process answers another process.
//!
//! The library keeps reporting the state of its start. A restart invalidates the handles and samples of the other GPUs,
//! so it is done only when it will help. The test is NVIDIA's tool, a process with a library of its own: it must get an
//! answer from a GPU that is lost here.

use super::fleet::Fleet;
use crate::read::exec::{self, RunLimits};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time of the first check after the loss, and the interval of later ones.
const FIRST_ASK_AND_INTERVAL: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));

/// Timeout of the tool, which may wait long for a GPU in trouble. No other work waits for the tool.
const RUN_TIMEOUT: Duration = Duration::from_secs(20);

/// State of checks for lost GPUs.
pub(super) struct Probe {
    tool: Option<PathBuf>,
    asked: Option<Duration>,
    /// Whether a run of the tool is in progress.
    busy: bool,
    /// Whether a GPU that is lost here has answered the tool.
    pub back: bool,
}

impl Probe {
    /// Without a tool no check is made.
    pub fn new(tool: Option<PathBuf>) -> Self {
        Probe { tool, asked: None, busy: false, back: false }
    }

    /// Whether there is no tool.
    pub fn is_blind(&self) -> bool {
        self.tool.is_none()
    }

    /// The check to run, if one is due. Its result goes to [`answered`](Self::answered).
    pub fn due(&mut self, fleet: &Fleet, at: Duration) -> Option<impl FnOnce() -> bool + Send + 'static> {
        let lost = || fleet.seats.iter().filter_map(|seat| Some((seat.lost?, &seat.uuid)));
        let Some(then) = lost().map(|(then, _)| then).min() else {
            (self.asked, self.back) = (None, false);
            return None;
        };
        let soon = self.asked.is_none_or(|asked| at.saturating_sub(asked) >= FIRST_ASK_AND_INTERVAL.1);
        if self.busy || self.back || at.saturating_sub(then) < FIRST_ASK_AND_INTERVAL.0 || !soon {
            return None;
        }
        let tool = self.tool.clone()?;
        (self.busy, self.asked) = (true, Some(at));
        let uuids: Vec<String> = lost().map(|(_, uuid)| uuid.clone()).collect();
        Some(move || uuids.iter().any(|uuid| answers(&tool, uuid)))
    }

    /// Stores the result of a check; none if the check failed.
    pub fn answered(&mut self, back: Option<bool>) {
        (self.busy, self.back) = (false, back == Some(true));
    }
}

/// Whether the tool prints a temperature of the GPU. For a lost one it prints words.
fn answers(tool: &Path, uuid: &str) -> bool {
    let args = ["--query-gpu=uuid,temperature.gpu", "--format=csv,noheader,nounits", "-i", uuid];
    let Ok(output) = exec::run(tool, &args, &RunLimits::within(RUN_TIMEOUT)) else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let reading = |line: &str| {
        let (name, degrees) = line.split_once(',')?;
        (name.trim() == uuid).then(|| degrees.trim().parse::<u32>().ok())?
    };
    text.lines().any(|line| reading(line).is_some())
}
