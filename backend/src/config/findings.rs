//! What `watchglass findings` lists.

use super::{When, when};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Below the flags in `--help`.
pub const AFTER: &str = "\
FILE is a recording, or any file that watchglass import reads; without one the data folder of the server is read, which may
run on meanwhile. A line each: since when (UTC), for how long, how much it matters, and what is wrong.

Examples:
  watchglass findings
  watchglass findings night.wgr --json
  watchglass findings --from -1h --check warning   exit status 1 where something is wrong";

/// From what on something found is an exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFrom {
    /// Warnings, and what is critical.
    Warning,
    /// What is critical.
    Critical,
}

/// What is read, and what of it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct FindingsTask {
    /// The file to look at [default: the data folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What was wrong from this time on: Unix seconds, a date and time, or before now, such as -1h
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Up to this time, likewise
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// Machines by name; repeat it for more [default: all]
    #[arg(long = "source", value_name = "NAME")]
    pub sources: Vec<String>,
    /// Kinds such as hang, or rules such as hang.spin; repeat it for more [default: all]
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// JSON instead of lines
    #[arg(long)]
    pub json: bool,
    /// Exit status 1 where something of this severity, or worse, was found
    #[arg(long, value_name = "SEVERITY")]
    pub check: Option<CheckFrom>,
}
