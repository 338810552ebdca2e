//! Whether a GPU that is lost to this process answers another one.
//!
//! The library goes on showing what was there when it was started. To start it anew takes the other GPUs' handles and
//! samples, so that is done only when it will help: when NVIDIA's tool, a process with a library of its own, has an answer
//! from a GPU that is lost here.

use super::fleet::Fleet;
use crate::read::exec::{self, RunLimits};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// When the tool is asked, counted from the loss, and how often after that.
const FIRST_ASK_AND_INTERVAL: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));

/// The tool may wait long for a GPU in trouble; nothing waits for the tool.
const RUN_TIMEOUT: Duration = Duration::from_secs(20);

/// What is known of lost GPUs from elsewhere.
pub(super) struct Probe {
    tool: Option<PathBuf>,
    asked: Option<Duration>,
    /// A run of the tool is under way.
    busy: bool,
    /// One that is lost here has answered there.
    pub back: bool,
}

impl Probe {
    /// Without a tool nothing is ever asked.
    pub fn new(tool: Option<PathBuf>) -> Self {
        Probe { tool, asked: None, busy: false, back: false }
    }

    /// Whether there is no tool to ask.
    pub fn is_blind(&self) -> bool {
        self.tool.is_none()
    }

    /// The question, when it is time for one; its answer goes to [`answered`](Self::answered).
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

    /// Takes in an answer; none where the question came to grief.
    pub fn answered(&mut self, back: Option<bool>) {
        (self.busy, self.back) = (false, back == Some(true));
    }
}

/// Whether the tool tells a temperature of the GPU; of one that is lost it says so in words.
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
