//! Arguments of `watchglass export`.

use super::{When, step, when};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// Below the flags in `--help`.
pub const AFTER_HELP: &str = "\
Times are Unix seconds (1700000000.5), a date and time (2026-05-01T14:00:00Z or with an offset such as +02:00), a day or
a time of day (yesterday, 2:15pm, friday 9:00), or relative (-1h, -2d, now). A time without a zone is local time. Without
--from and --to, all stored samples are written. The server may keep running; the export includes its last seconds.

  csv          time,source,tag,value; with --step time,source,tag,min,max,mean,last,count. Text that a spreadsheet
               would read as a formula gets a leading '
  json         one object per line: {\"t\":..,\"source\":..,\"tag\":..,\"value\":..}, with --step min, max, mean, last, count
  openmetrics  names and labels as at /metrics, with time stamps; for promtool tsdb create-blocks-from openmetrics
  wandb-jsonl  one line per instant, as in W&B's wandb-events.jsonl

Examples:
  watchglass export --tag 'gpu.*' --from -1h --format csv --output gpu.csv
  watchglass export --tag network.recv --rate --step 1m --format json
  watchglass export --tag '*' --source 'node-*' --format openmetrics --output all.txt
  watchglass export --dashboards grafana/";

/// Content and path of an export.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Export {
    /// Tag of the series, or * for any text in it; may be repeated
    #[arg(long = "tag", value_name = "PATTERN", required_unless_present = "dashboards")]
    pub tags: Vec<String>,
    /// Machine name, or * for any text; may be repeated [default: all]
    #[arg(long = "source", value_name = "NAME")]
    pub sources: Vec<String>,
    /// First instant [default: all stored data]
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Last instant
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true, default_value = "now")]
    pub to: When,
    /// Aggregate samples to min, max, mean, last and count per 10s, 5m, 1d
    #[arg(long, value_name = "DUR", value_parser = step)]
    pub step: Option<i64>,
    /// Convert counters to their increase per second, without resets
    #[arg(long)]
    pub rate: bool,
    /// Format: csv, json, openmetrics or wandb-jsonl
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, required_unless_present = "dashboards",
        value_parser = PossibleValuesParser::new(["csv", "json", "openmetrics", "wandb-jsonl"]))]
    pub format: Option<String>,
    /// File to write, complete when it appears, or - [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write three Grafana dashboards into this folder, without samples
    #[arg(long, value_name = "DIR", exclusive = true)]
    pub dashboards: Option<PathBuf>,
}
