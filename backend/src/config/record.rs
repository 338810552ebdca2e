//! Arguments of `watchglass record`, `replay` and `import`.

use super::When;
use std::path::PathBuf;

/// A recording to make or to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingTask {
    /// Write a recording.
    Record {
        /// The file to write.
        file: PathBuf,
        /// Its first instant; none: all stored data.
        from: Option<When>,
        /// Its last instant.
        to: When,
    },
    /// Show a recording, or a file of another program.
    Show(PathBuf),
    /// Print the settings of a `wandb/settings` file for this machine.
    Settings(PathBuf),
    /// Convert a file of another program to a recording.
    Convert {
        /// The file to read.
        file: PathBuf,
        /// The file to write.
        output: PathBuf,
    },
}
