//! What `watchglass record`, `replay` and `import` are asked.

use super::When;
use std::path::PathBuf;

/// A recording that is to be made, or shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingTask {
    /// Write one.
    Record {
        /// The file that is to stand there.
        file: PathBuf,
        /// Its first instant; none is all that is stored.
        from: Option<When>,
        /// Its last.
        to: When,
    },
    /// Show one, or what others recorded.
    Show(PathBuf),
    /// Print what a `wandb/settings` says of this machine.
    Settings(PathBuf),
    /// Write what others recorded as one.
    Convert {
        /// What they recorded.
        file: PathBuf,
        /// The file that is to stand there.
        output: PathBuf,
    },
}
