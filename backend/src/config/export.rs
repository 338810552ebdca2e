//! What `watchglass export` writes.

use super::{When, step, when};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// Below the flags in `--help`.
pub const AFTER: &str = "\
Times are Unix seconds (1700000000.5), a date and time (2026-05-01T14:00:00Z, with +02:00 for the Z as it may be), or
before now (-1h, -2d, now). All that is kept is written, unless --from or --to is given. A server that uses the data
folder may run on meanwhile; its last seconds are there too.

  csv          time,source,tag,value; with --step time,source,tag,min,max,mean,last,count. Text that a spreadsheet
               would take for a formula gets a ' in front
  json         one object a line: {\"t\":..,\"source\":..,\"tag\":..,\"value\":..}, with --step min, max, mean, last, count
  openmetrics  names and labels as at /metrics, with time stamps; promtool tsdb create-blocks-from openmetrics reads it
  wandb-jsonl  a line an instant, as in W&B's wandb-events.jsonl

Examples:
  watchglass export --tag 'gpu.*' --from -1h --format csv --output gpu.csv
  watchglass export --tag network.recv --rate --step 1m --format json
  watchglass export --tag '*' --source 'node-*' --format openmetrics --output all.txt";

/// What is written, and where.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Export {
    /// Series to write: a tag in any spelling, or * for any text in it; repeat it for more
    #[arg(long = "tag", value_name = "PATTERN", required = true)]
    pub tags: Vec<String>,
    /// Machines by name, with * for any text; repeat it for more [default: all]
    #[arg(long = "source", value_name = "NAME")]
    pub sources: Vec<String>,
    /// From this time on [default: all that is kept]
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Up to this time
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true, default_value = "now")]
    pub to: When,
    /// Roll samples up: min, max, mean, last and count of each 10s, 5m, 1d ...
    #[arg(long, value_name = "DUR", value_parser = step)]
    pub step: Option<i64>,
    /// Counters as their increase per second, resets left out
    #[arg(long)]
    pub rate: bool,
    /// csv, json, openmetrics or wandb-jsonl
    #[arg(long, value_name = "FORMAT", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["csv", "json", "openmetrics", "wandb-jsonl"]))]
    pub format: String,
    /// Write this file, which appears when it is whole, or - [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
