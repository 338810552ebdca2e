//! `tpu-info`, Google's tool, used if no port of the runtime answers: newer programs report their values only to it.
//!
//! It prints tables for people, with bars or drawn lines. Columns are found by name, and a row counts only if it is
//! complete. Memory has two decimals, so only its share is put, and no bytes. Percentiles are those of the library, not
//! ours of the time since the previous reading.

use super::readings::words;
use crate::read::exec::{self, RunLimits};
use crate::{Instance, OpenError, Out};
use shared::catalog::{MetricDef, tpu};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// Time to the next run after a run with values, and after one without. It is a Python program, and usually no program
/// uses the TPU.
const RUN_INTERVALS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// Maximum rows read from one output.
const MAX_ROWS: usize = 512;

/// Cell separators: plain, and as drawn lines.
const BARS: [char; 3] = ['|', '│', '┃'];

/// The tool tpu-info, run at most every few seconds.
pub(super) struct TpuInfo {
    path: PathBuf,
    /// Earliest time of the next run.
    next: Duration,
    /// Result of the last run.
    last: Result<bool, String>,
}

impl TpuInfo {
    /// The tool, if it is installed.
    ///
    /// # Errors
    /// As [`exec::find`].
    pub fn find() -> Result<TpuInfo, OpenError> {
        exec::find(&["tpu-info"], &["/usr/local/bin", "/usr/bin"], None).map(TpuInfo::at)
    }

    fn at(path: PathBuf) -> TpuInfo {
        TpuInfo { path, next: Duration::ZERO, last: Ok(false) }
    }

    /// Path of the tool.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Runs it if it is due. Returns whether its last run gave values, or the reason why it could not be run.
    pub fn read(&mut self, out: &mut Out) -> Result<bool, String> {
        if out.at() >= self.next {
            let run = exec::run(&self.path, &[] as &[&str], &RunLimits::within(RUN_TIMEOUT));
            self.last = match run {
                Ok(output) => Ok(tables(&String::from_utf8_lossy(&output.stdout)).put(out)),
                Err(error) => Err(error.to_string()),
            };
            self.next = out.at() + if self.last == Ok(true) { RUN_INTERVALS.0 } else { RUN_INTERVALS.1 };
        }
        self.last.clone()
    }
}

/// Content of the tables.
#[derive(Default)]
struct Tables {
    duty: BTreeMap<u32, f64>,
    memory: BTreeMap<u32, f64>,
    cores: BTreeMap<u32, f64>,
    /// Metrics, label and value.
    percentiles: Vec<(&'static MetricDef, Option<String>, f64)>,
}

impl Tables {
    /// Puts all values; returns false if there are none.
    fn put(&self, out: &mut Out) -> bool {
        // Cores are numbered from zero, but chips of a slice are not. Then cores cannot be mapped to chips, and are
        // left out.
        let chips: Vec<&u32> = self.memory.keys().chain(self.duty.keys()).collect();
        let same = chips.is_empty() || self.cores.keys().all(|core| chips.contains(&core));
        let cores = self.cores.iter().filter(|_| same);
        for (row, values) in [(&tpu::DUTY_CYCLE, &self.duty), (&tpu::HBM_PERCENT, &self.memory)] {
            values.iter().for_each(|(chip, value)| out.put(row, *chip, *value));
        }
        cores.for_each(|(core, value)| out.put(&tpu::TENSORCORE, *core, *value));
        for (row, label, value) in &self.percentiles {
            out.put(row, label.as_deref().map_or(Instance::from(()), Instance::from), *value);
        }
        !(chips.is_empty() && self.cores.is_empty() && self.percentiles.is_empty())
    }
}

fn tables(text: &str) -> Tables {
    let (mut all, mut title, mut header, mut rows) = (Tables::default(), "", Vec::new(), 0);
    for line in text.lines().map(str::trim) {
        let Some(inner) = line.strip_prefix(BARS) else {
            // The lines of a drawn table are no titles.
            if line.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                title = line;
            }
            if !line.starts_with(['├', '┡', '┢', '╞']) {
                header.clear();
            }
            continue;
        };
        let Some(inner) = inner.strip_suffix(BARS) else { continue };
        let cells: Vec<&str> = inner.split(BARS).map(str::trim).collect();
        if header.is_empty() {
            header = cells;
        } else if cells.len() == header.len() && rows < MAX_ROWS {
            rows += 1;
            row(title, &header, &cells, &mut all);
        }
    }
    all
}

fn row(title: &str, header: &[&str], cells: &[&str], all: &mut Tables) {
    let rows = distribution(title);
    let label = (header[0] == "Buffer Size").then(|| words(cells[0]));
    for (column, cell) in header.iter().zip(cells) {
        if let Some((row, unit)) = rows.and_then(|(rows, unit)| Some((&rows[percentile(column)?], unit))) {
            let value = number(cell, unit).filter(|_| label != Some(None));
            all.percentiles.extend(value.map(|value| (row, label.clone().flatten(), value)));
        }
        // Older tools name devices, two of which are a chip on v2 and v3. Their values cannot be mapped, so they are
        // skipped.
        let Some(id) = cells[0].parse().ok().filter(|_| ["Chip", "Core ID"].contains(&header[0])) else { continue };
        let percent = number(cell, "%").filter(|percent| *percent <= 100.0).map(|percent| (id, percent));
        match column.to_lowercase().as_str() {
            "duty cycle" | "duty cycle (%)" => all.duty.extend(percent),
            "tensorcore utilization" => all.cores.extend(percent),
            "hbm usage (gib)" => all.memory.extend(share(cell).map(|share| (id, share))),
            _ => {}
        }
    }
}

/// The metrics for a table's title, and the unit in its cells.
fn distribution(title: &str) -> Option<(&'static [MetricDef; 6], &'static str)> {
    Some(match title {
        "TPU Buffer Transfer Latency" => (&tpu::BUFFER_TRANSFER, "us"),
        "TPU Inbound Buffer Transfer Latency" => (&tpu::INBOUND_TRANSFER, "us"),
        "TPU Host Compute Latency" => (&tpu::HOST_COMPUTE, "us"),
        "TPU gRPC TCP Minimum RTT" => (&tpu::MIN_RTT, "us"),
        "TPU gRPC TCP Delivery Rate" => (&tpu::DELIVERY_RATE, "Mbps"),
        _ => return None,
    })
}

fn percentile(column: &str) -> Option<usize> {
    let known = [("P50", tpu::P50), ("P90", tpu::P90), ("P95", tpu::P95), ("P99", tpu::P99), ("P999", tpu::P999)];
    known.iter().find(|(name, _)| *name == column).map(|(_, position)| *position)
}

/// `18.45 GiB / 31.25 GiB` as percent.
fn share(cell: &str) -> Option<f64> {
    let (used, total) = cell.split_once(" / ")?;
    let (used, total) = (number(used, "GiB")?, number(total, "GiB")?);
    (total > 0.0 && used <= total).then(|| 100.0 * used / total)
}

/// A number followed by its unit, not below zero.
fn number(cell: &str, unit: &str) -> Option<f64> {
    let number: f64 = cell.strip_suffix(unit)?.trim().parse().ok()?;
    (0.0..1e12).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;

    fn present(text: &str) -> Vec<(String, f64)> {
        recordings::present(|out| {
            tables(text).put(out);
        })
    }

    /// Checks that a changed digit only changes an ID or a size in a tag.
    fn survives(text: &str) {
        let kind = |tag: &str| tag.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let known: Vec<String> = present(text).iter().map(|(tag, _)| kind(tag)).collect();
        recordings::survives(text, present, |tag| tag.contains("mb") || known.contains(&kind(tag)));
    }

    const OWN: &str = "\
Accelerator type: v9

TPU Runtime Utilization

| Chip | HBM Usage (GiB)       | Duty cycle |
|------|-----------------------|------------|
| 4    | 1.00 GiB / 4.00 GiB   |     50.00% |
| 6    | 5.00 GiB / 4.00 GiB   |        N/A |

TensorCore Utilization

| Core ID | TensorCore Utilization |
|---------|------------------------|
| 4       | 12.50%                 |

TPU Buffer Transfer Latency

| Buffer Size  | P50       | P999      |
|--------------|-----------|-----------|
| 8MB+         | 10.50 us  | 20.00 ms  |

TPU gRPC TCP Delivery Rate

┏━━━━━━━━━━━┳━━━━━━━━━━━┓
┃ P50       ┃ P90       ┃
┡━━━━━━━━━━━╇━━━━━━━━━━━┩
│ 2.00 Mbps │ 3.00 Mbps │
└───────────┴───────────┘
";

    #[test]
    fn tables_are_read_by_their_columns() {
        let wanted = [
            ("tpu.4.dutyCycle", 50.0),
            ("tpu.4.hbmMemoryUsage", 25.0),
            ("tpu.4.tensorcoreUtilization", 12.5),
            ("tpu.bufferTransferLatency.8mb_plus.p50Us", 10.5),
            ("tpu.grpcTcpDeliveryRate.p50Mbps", 2.0),
            ("tpu.grpcTcpDeliveryRate.p90Mbps", 3.0),
        ];
        assert_eq!(present(OWN), wanted.map(|(tag, value)| (tag.to_string(), value)));
        survives(OWN);
        let other = present(&OWN.replace("| 4       | 12.50%", "| 0       | 12.50%"));
        assert!(other.iter().all(|(tag, _)| !tag.contains("tensorcore")), "which chip core 0 belongs to is not said");
        assert_eq!(present("No supported TPU chips found.\n"), []);
    }

    #[test]
    fn recordings_yield_their_list_and_ids() {
        let text = recordings::text("tpu/tpu-info-static_v6e-4.txt");
        // The list has three of the percentiles; all printed ones are read.
        let list = recordings::expected("tpu_tpu-info-static_v6e-4");
        let (listed, more): (Vec<_>, Vec<_>) = present(&text).into_iter().partition(|(tag, _)| list.contains_key(tag));
        recordings::check("tpu_tpu-info-static_v6e-4", &listed);
        assert_eq!(more.len(), 3 * 2 * 4 + 2 * 4 - 3);
        assert!(more.iter().all(|(tag, _)| tag.contains("Latency") || tag.contains("grpc")), "{more:?}");
        survives(&text);

        let text = recordings::text("tpu/tpu-info-streaming_v6e-slice-ids.txt");
        let read = present(&text);
        let ids = |end: &str| read.iter().filter_map(|(tag, _)| tag.strip_suffix(end)).collect::<Vec<_>>().join(" ");
        assert_eq!(ids(".dutyCycle"), "tpu.12 tpu.13 tpu.8 tpu.9");
        assert_eq!(ids(".hbmMemoryUsage"), "tpu.12 tpu.13 tpu.8 tpu.9");
        assert_eq!(ids(".tensorcoreUtilization"), "", "cores 0 to 3 are not said to be chips 8 to 13");
        survives(&text);

        let text = recordings::text("tpu/tpu-info-metric_v6e-8.txt");
        let read = present(&text);
        assert_eq!(read.len(), 16);
        assert!(read.contains(&("tpu.0.hbmMemoryUsage".into(), 94.4)), "{read:?}");
        survives(&text);

        let text = recordings::text("tpu/tpu-info_v4-4_idle_2024.txt");
        assert_eq!(present(&text), []);
    }

    #[cfg(unix)]
    #[test]
    fn it_runs_seldom_while_it_gives_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("tpu-info");
        let script =
            "#!/bin/sh\necho x >> \"$0.runs\"\nif test -e \"$0.busy\"; then cat \"$0.busy\"; else echo idle; fi\n";
        std::fs::write(&path, script).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a tool");
        let mut tool = TpuInfo::at(path.clone());
        let mut out = Out::default();
        let mut read = |second| {
            out.begin(Duration::from_secs(second));
            (tool.read(&mut out), out.present().len())
        };
        assert_eq!([0, 5, 59].map(&mut read), [(Ok(false), 0), (Ok(false), 0), (Ok(false), 0)]);
        std::fs::write(path.with_extension("busy"), OWN).expect("a file");
        assert_eq!([60, 64, 65].map(&mut read), [(Ok(true), 6), (Ok(true), 0), (Ok(true), 6)]);
        assert_eq!(std::fs::read_to_string(path.with_extension("runs")).expect("it ran").lines().count(), 3);
    }
}
