//! `xpu-smi dump`: an endless stream of comma-separated lines, one per GPU and second. The first line names the
//! columns.

use crate::devices::gpu_reading::GpuReading;
use crate::read::exec::Stream;
use crate::{CollectError, Collector, Options, Out, Part};
use std::path::PathBuf;
use std::time::Duration;

/// All GPUs, every second: utilization, power, frequency, both temperatures, memory in percent and in MiB.
const ARGS: &[&str] = &["dump", "-d", "-1", "-m", "0,1,2,3,4,5,18", "-i", "1"];

/// It prints every second; without a line for this time it counts as hung.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the tool that was found, and keeps it running.
pub(super) fn open(path: PathBuf, options: &Options) -> Vec<Part> {
    let tried = vec![format!("{} {}", path.display(), ARGS.join(" "))];
    let stream = Stream::start(&path, ARGS, SILENCE_TIMEOUT);
    Part::only(tried, XpuSmi { stream, columns: None, options: options.clone() })
}

struct XpuSmi {
    stream: Stream,
    columns: Option<Columns>,
    options: Options,
}

impl Collector for XpuSmi {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let lines = self.stream.take();
        for line in &lines {
            let Ok(text) = std::str::from_utf8(&line.text) else { continue };
            // A restarted tool names its columns again.
            if let Some(columns) = Columns::from_header(text) {
                self.columns = Some(columns);
            } else if let Some((device, reading)) = self.columns.as_ref().and_then(|columns| columns.row(text))
                && self.options.keeps_gpu(device)
            {
                reading.put(self.options.gpu_numbers.claim(&format!("xpu-smi {device}"), device), out);
            }
        }
        match self.stream.trouble() {
            Some(trouble) => Err(CollectError::failed(trouble)),
            None if self.columns.is_none() && !lines.is_empty() => {
                let first = String::from_utf8_lossy(&lines[0].text).chars().take(200).collect::<String>();
                Err(CollectError::failed(format!("xpu-smi printed no known columns; it printed: {first}")))
            }
            None => Ok(()),
        }
    }
}

/// A column: its index, its field, and the factor to our unit.
type Column = (usize, fn(&mut GpuReading) -> &mut Option<f64>, f64);

/// Meaning of the columns.
struct Columns {
    count: usize,
    device: usize,
    known: Vec<Column>,
}

/// Memory is printed in MiB and stored in bytes.
const MIB: f64 = 1_048_576.0;

impl Columns {
    /// The columns named by a header line; none for other lines.
    fn from_header(line: &str) -> Option<Self> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        let device = names.iter().position(|name| *name == "DeviceId")?;
        let mut known: Vec<Column> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            match *name {
                "GPU Utilization (%)" => known.push((at, |gpu| &mut gpu.utilization, 1.0)),
                "GPU Power (W)" => known.push((at, |gpu| &mut gpu.power, 1.0)),
                "GPU Frequency (MHz)" => known.push((at, |gpu| &mut gpu.frequency, 1.0)),
                "GPU Core Temperature (Celsius Degree)" => known.push((at, |gpu| &mut gpu.temp, 1.0)),
                "GPU Memory Temperature (Celsius Degree)" => known.push((at, |gpu| &mut gpu.memory_temp, 1.0)),
                "GPU Memory Utilization (%)" => known.push((at, |gpu| &mut gpu.memory_percent, 1.0)),
                "GPU Memory Used (MiB)" => known.push((at, |gpu| &mut gpu.memory_used, MIB)),
                _ => {}
            }
        }
        (!known.is_empty()).then_some(Columns { count: names.len(), device, known })
    }

    /// Device and values of a line. `N/A` and blanks are no values; none for a line with another number of cells.
    fn row(&self, line: &str) -> Option<(u32, GpuReading)> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != self.count {
            return None;
        }
        let device = cells[self.device].parse().ok()?;
        let mut reading = GpuReading::default();
        for (at, field, factor) in &self.known {
            let value = cells[*at].parse().ok().filter(|value: &f64| value.is_finite());
            *field(&mut reading) = value.map(|value| value * factor);
        }
        Some((device, reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;

    /// Device and reading of each complete line.
    fn rows(text: &str) -> Vec<(u32, GpuReading)> {
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let Some(columns) = lines.next().and_then(Columns::from_header) else { return Vec::new() };
        lines.filter_map(|line| columns.row(line)).collect()
    }

    /// The values put from the lines at index `place` among the lines of their device.
    fn present(text: &str, place: usize) -> Vec<(String, f64)> {
        let rows = rows(text);
        recordings::present(|out| {
            for device in 0..16 {
                if let Some((_, reading)) = rows.iter().filter(|(of, _)| *of == device).nth(place) {
                    reading.put(device, out);
                }
            }
        })
    }

    #[test]
    #[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
    fn with_recordings_their_lists_are_read_also_cut_and_altered() {
        for (file, place, list) in [
            ("xpu-smi-dump_arc-a310", 0, "xpu-smi-dump_arc-a310_first-tick"),
            ("xpu-smi-dump_max1550-x6_1.2.39", 0, "xpu-smi-dump_max1550-x6_first-tick"),
            ("xpu-smi-dump_max1550-x6_1.2.39", 1, "xpu-smi-dump_max1550-x6_second-tick"),
            ("xpu-smi-dump_max1550-x6_temps_1.2.39", 1, "xpu-smi-dump_max1550-x6_temps_second-tick"),
            ("xpumcli-dump_blanks_2022", 0, "xpumcli-dump_blanks_first-tick"),
        ] {
            let text = recordings::text(&format!("intel/{file}.csv"));
            recordings::check(&format!("intel_{list}"), &present(&text, place));
            cut_and_altered(&text);
        }
    }

    /// Checks that truncated output gives only the lines before the cut, and that a changed cell changes its value.
    fn cut_and_altered(text: &str) {
        let whole = rows(text);
        for n in (0..text.len()).filter(|n| text.is_char_boundary(*n)) {
            assert!(whole.starts_with(&rows(&text[..n])), "cut at {n}");
        }
        let (header, lines) = text.split_once('\n').unwrap();
        let line = lines.lines().next().unwrap();
        for at in 2..line.split(',').count() {
            for (cell, value) in [("N/A", None), ("", None), ("7.5", Some(7.5)), ("7.5x", None), ("nan", None)] {
                let mut cells: Vec<&str> = line.split(',').collect();
                cells[at] = cell;
                let (_, reading) = rows(&format!("{header}\n{}\n", cells.join(","))).remove(0);
                let columns = Columns::from_header(header).unwrap();
                let (_, field, factor) = columns.known.iter().find(|(column, ..)| *column == at).unwrap();
                let mut reading = reading;
                assert_eq!(*field(&mut reading), value.map(|value: f64| value * factor), "column {at}: {cell}");
            }
        }
    }

    const OURS: &str = "Timestamp, DeviceId, GPU Power (W), GPU Utilization (%), Something New, GPU Memory Used (MiB)\n\
                        10:00:00.000, 0, 100.5, N/A, 5, 16.00\n\
                        10:00:00.000, 1, , 50.00, , 8.00\n\
                        10:00:00.000, 2, 1.0\n\
                        error: device lost\n";

    #[test]
    fn lines_of_ours_are_read() {
        let tags = present(OURS, 0);
        let tags: Vec<(&str, f64)> = tags.iter().map(|(tag, value)| (tag.as_str(), *value)).collect();
        assert_eq!(
            tags,
            [
                ("gpu.0.memoryAllocatedBytes", 16.0 * MIB),
                ("gpu.0.powerWatts", 100.5),
                ("gpu.1.gpu", 50.0),
                ("gpu.1.memoryAllocatedBytes", 8.0 * MIB),
            ]
        );
        assert!(Columns::from_header("Timestamp, Device, Power").is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_tool_that_runs_is_read_and_one_that_ends_says_why() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("xpu-smi");
        let script = |text: &str| {
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            super::open(path.clone(), &Options::default()).remove(0)
        };
        // Reads until values and result match. A reading may fall between two lines of the tool.
        type SeenValues = std::collections::BTreeMap<String, f64>;
        let until = |part: &mut Part, done: &dyn Fn(&SeenValues, &Result<(), CollectError>) -> bool| {
            let begin = std::time::Instant::now();
            let mut seen = SeenValues::new();
            loop {
                let mut out = Out::default();
                out.begin(begin.elapsed());
                let outcome = part.collector.collect(&mut out);
                seen.extend(out.present());
                if done(&seen, &outcome) {
                    return seen;
                }
                assert!(begin.elapsed() < Duration::from_secs(60), "{outcome:?}, {seen:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        std::fs::write(dir.path().join("lines"), OURS).unwrap();
        let mut part = script(&format!("cat {}; exec sleep 60", dir.path().join("lines").display()));
        until(&mut part, &|seen, outcome| outcome.is_ok() && seen.len() == 4);
        let options = Options { gpus: vec![1], ..Options::default() };
        let mut part = super::open(path.clone(), &options).remove(0);
        let seen = until(&mut part, &|seen, _| seen.len() == 2);
        assert!(seen.keys().all(|tag| tag.contains(".1.")), "{seen:?}");
        drop(part);
        let mut part = script("echo 'Error: XPUM service is not running' >&2; exit 1");
        let said = |error: &CollectError| error.reason.contains("XPUM service is not running");
        until(&mut part, &|_, outcome| outcome.as_ref().is_err_and(said));
    }
}
