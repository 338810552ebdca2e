//! Arguments of `watchglass findings`.

use super::{When, when};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Below the flags in `--help`.
pub const AFTER_HELP: &str = "\
FILE is a recording, or any file that watchglass import reads. Without FILE the command reads the data folder of the server,
which may keep running. Each line has the start (UTC), the duration, the severity and a sentence.

Examples:
  watchglass findings
  watchglass findings night.watchglass --json
  watchglass findings --from -1h --check warning   exit status 1 if a finding is a warning or worse";

/// Minimum severity of a finding that sets the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFrom {
    /// Warnings, and what is critical.
    Warning,
    /// Critical findings.
    Critical,
}

/// Source and filters of the list of findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct FindingsTask {
    /// File to read [default: the data folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// First instant, such as -1h, 2:15pm, 2026-05-01T14:00 or Unix seconds
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Last instant, in the same forms
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// Machine name; may be repeated [default: all]
    #[arg(long = "source", value_name = "NAME")]
    pub sources: Vec<String>,
    /// Kind such as hang, or rule such as hang.spin; may be repeated
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Print JSON instead of lines
    #[arg(long)]
    pub json: bool,
    /// Exit with status 1 if a finding has this severity or a higher one
    #[arg(long, value_name = "SEVERITY")]
    pub check: Option<CheckFrom>,
}
