//! Huawei's Ascend NPUs, by the table of `npu-smi info`. They use the rows of every GPU.
//!
//! The table has two lines for each chip: name, health, power and temperature of its card, then its bus address, the
//! use of its AI cores and its memory. The columns differ by model, so the header names them.

use super::gpu_reading::GpuReading;
use crate::read::exec::{self, RunLimits};
use crate::{CollectError, Collector, OpenError, OptionRow, Options, Out, Part, Roots};
use std::path::PathBuf;
use std::time::Duration;

const TOOL: &str = "npu-smi";
/// Folders of the tool in Huawei's driver packages.
const DIRS: &[&str] = &["/usr/local/sbin", "/usr/local/bin", "/usr/local/Ascend/driver/tools"];
const REMEDY: &str = "install Huawei's driver, whose package has npu-smi, or set command under [collectors.ascend]";

/// Shorter than the minimum timeout of a part, so a tool that hangs is killed before its thread counts as hung.
const RUN_TIMEOUT: Duration = Duration::from_millis(4500);
/// Minimum time between two runs: the tool asks every card and takes about a second.
const RUN_INTERVAL: Duration = Duration::from_secs(5);
/// The tool writes MB and means MiB.
const MIB: f64 = 1_048_576.0;

static COMMAND: OptionRow = OptionRow::path("command", "npu-smi executable to use instead of the one in PATH");

/// Keys below `[collectors.ascend]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&COMMAND];

/// Opens the tool where it is installed.
pub(crate) fn open(options: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    let path = exec::find(&[TOOL], DIRS, options.own.path(&COMMAND)).map_err(|mut error| {
        if error.remedy.is_empty() {
            error.remedy = REMEDY.into();
        }
        error
    })?;
    let tried = format!("{} info", path.display());
    Ok(Part::only([tried], Ascend { path, options: options.clone(), next: Duration::ZERO }))
}

struct Ascend {
    path: PathBuf,
    options: Options,
    /// Earliest time of the next run.
    next: Duration,
}

impl Collector for Ascend {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if out.at() < self.next {
            return Ok(());
        }
        self.next = out.at() + RUN_INTERVAL;
        let output = exec::run(&self.path, &["info"], &RunLimits::within(RUN_TIMEOUT))
            .map_err(|error| CollectError::failed(error.to_string()))?;
        let chips = chips(&String::from_utf8_lossy(&output.stdout));
        if chips.is_empty() {
            return Err(CollectError::failed(output.failure_message(&self.path)));
        }
        let numbers = &self.options.gpu_numbers;
        let mut unhealthy = None;
        for chip in chips.iter().filter(|chip| self.options.keeps_gpu(chip.number)) {
            let number = numbers.claim(&chip.bus, chip.number);
            numbers.describe(&chip.bus, Some(format!("Ascend {}", chip.name)), None);
            chip.reading.put(number, out);
            if !chip.health.is_empty() && chip.health != "OK" {
                unhealthy.get_or_insert((number, chip));
            }
        }
        match unhealthy {
            None => Ok(()),
            Some((number, chip)) => Err(CollectError::partial(format!(
                "GPU {number} (NPU {}) reports the health {}; npu-smi info -t health -i {} says more",
                chip.card, chip.health, chip.card
            ))),
        }
    }
}

/// One chip in the table.
#[derive(Debug, Default, PartialEq)]
struct Chip {
    /// The card's number.
    card: u32,
    /// The chip's number on the machine: as the table has it, else the card's.
    number: u32,
    name: String,
    health: String,
    bus: String,
    reading: GpuReading,
}

/// The chips of a table, in its order. A chip whose second line is missing is left out.
fn chips(text: &str) -> Vec<Chip> {
    let mut chips = Vec::new();
    let (mut columns, mut begun): (Vec<&str>, Option<Chip>) = (Vec::new(), None);
    // Cells of a line that was cut have no end.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let Some(cells) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else { continue };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        match cells[..] {
            // The table of processes follows.
            [_, "Process id", ..] => break,
            [_, "Bus-Id", values] => columns = values.split_whitespace().collect(),
            [_, "Health", _] => {}
            [chip, bus, values] if bus.contains(':') => {
                let Some(mut whole) = begun.take() else { continue };
                // Two numbers are the chip's on its card and on the machine.
                let on_machine = chip.split_whitespace().nth(1).and_then(|number| number.parse().ok());
                whole.number = on_machine.unwrap_or(whole.card);
                whole.bus = bus.to_lowercase();
                fill(&mut whole.reading, &columns, values);
                chips.push(whole);
            }
            [card, health, values] => begun = card_of(card, health, values),
            _ => {}
        }
    }
    chips
}

/// The first line of a chip: number and name, health, watts and degrees.
fn card_of(card: &str, health: &str, values: &str) -> Option<Chip> {
    let mut card = card.split_whitespace();
    let (number, name) = (card.next()?.parse().ok()?, card.next()?.to_string());
    let mut values = values.split_whitespace().map(|value| value.parse().ok());
    let reading = GpuReading { power: values.next()?, temp: values.next()?, ..GpuReading::default() };
    Some(Chip { card: number, name, health: health.to_string(), reading, ..Chip::default() })
}

/// The second line: the use of the AI cores and pairs like `3318 / 65536`, in the order of the columns.
fn fill(reading: &mut GpuReading, columns: &[&str], values: &str) {
    let spaced = values.replace('/', " / ");
    let mut words = spaced.split_whitespace();
    for column in columns {
        let value: Option<f64> = words.next().and_then(|word| word.parse().ok());
        if *column == "AICore(%)" {
            reading.utilization = value;
            continue;
        }
        if words.next() != Some("/") {
            return;
        }
        let total: Option<f64> = words.next().and_then(|word| word.parse().ok());
        // Models with HBM have no other memory and print 0 / 0 for it.
        if let Some((used, total)) = value.zip(total).filter(|(_, total)| *total > 0.0)
            && matches!(*column, "Memory-Usage(MB)" | "HBM-Usage(MB)")
        {
            (reading.memory_used, reading.memory_total) = (Some(used * MIB), Some(total * MIB));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OwnOptions, recordings};

    const RECORDINGS: [&str; 3] = ["910b3-x8_24.1", "910c-x2-dies_25.0", "310p3_23.0"];

    fn present(text: &str) -> Vec<(String, f64)> {
        recordings::present(|out| chips(text).iter().for_each(|chip| chip.reading.put(chip.number, out)))
    }

    #[test]
    fn the_table_of_each_model_is_read() {
        for name in RECORDINGS {
            let text = recordings::text(&format!("ascend/npu-smi-info_{name}_CONSTRUCTED.txt"));
            recordings::check(&format!("ascend_npu-smi-info_{name}_CONSTRUCTED"), &present(&text));
        }
    }

    #[test]
    fn tables_that_are_cut_or_altered_give_no_other_values() {
        for name in RECORDINGS {
            let text = recordings::text(&format!("ascend/npu-smi-info_{name}_CONSTRUCTED.txt"));
            recordings::survives(&text, present, |_| true);
        }
    }

    #[cfg(unix)]
    fn tool(script: &str) -> (tempfile::TempDir, Options) {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TOOL);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let own = OwnOptions::default().with(&COMMAND, path.display().to_string());
        (dir, Options { own, ..Options::default() })
    }

    #[cfg(unix)]
    fn run(options: &Options, seconds: &[u64]) -> Vec<(Result<(), CollectError>, usize)> {
        let mut part = open(options, &Roots::default()).unwrap().remove(0);
        let mut out = Out::default();
        let mut at = |second: &u64| {
            out.begin(Duration::from_secs(*second));
            (part.collector.collect(&mut out), out.present().len())
        };
        seconds.iter().map(&mut at).collect()
    }

    #[cfg(unix)]
    #[test]
    fn the_tool_runs_every_five_seconds_and_a_sick_chip_is_said() {
        let text = recordings::text("ascend/npu-smi-info_910b3-x8_24.1_CONSTRUCTED.txt");
        let (dir, options) = tool(r#"echo "$@" >> "$0.runs"; cat "$0.txt""#);
        std::fs::write(dir.path().join("npu-smi.txt"), text).unwrap();
        let results = run(&options, &[0, 1, 5]);
        assert_eq!(results.iter().map(|(_, values)| *values).collect::<Vec<_>>(), [48, 0, 48]);
        let error = results[0].0.clone().expect_err("a chip is not well");
        assert!(error.partial, "the others are read");
        assert!(error.reason.starts_with("GPU 5 (NPU 5) reports the health Alarm"), "{}", error.reason);
        assert_eq!(std::fs::read_to_string(dir.path().join("npu-smi.runs")).unwrap(), "info\ninfo\n");
        let names = options.gpu_numbers.known();
        assert!(names[0].1.contains(&("name", "Ascend 910B3".to_string())), "{names:?}");
        let one = Options { gpus: vec![2], ..options };
        assert_eq!(run(&one, &[0])[0].1, 6, "only the chosen chip");
    }

    #[cfg(unix)]
    #[test]
    fn a_tool_without_a_table_is_the_reason() {
        let (_dir, options) = tool("echo 'dcmi module initialize failed. ret is -8005'; exit 1");
        let error = run(&options, &[0]).remove(0).0.expect_err("no table");
        assert!(error.reason.contains("dcmi module initialize failed") && !error.partial, "{}", error.reason);
        let own = OwnOptions::default().with(&COMMAND, "/nowhere/npu-smi");
        let error = open(&Options { own, ..Options::default() }, &Roots::default()).err().expect("no tool");
        assert!(error.reason.contains("/nowhere/npu-smi"), "{}", error.reason);
    }
}
