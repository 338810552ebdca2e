//! Where the library cannot be loaded (a static build, a broken installation) but NVIDIA's tool is there: `nvidia-smi -q
//! -x`, one run a reading. Where that gives nothing, the next run asks for text ([`text`]), the one after for a table
//! ([`csv`]); what worked is kept.
//!
//! The document's form changed with every other driver, so values are found by the names of their elements, each
//! carries its unit, and a GPU counts when its element is whole.

mod csv;
mod text;

use super::reading::{NvidiaReading, Place};
use crate::devices::numbers::GpuNumbers;
use crate::host::process::Watched;
use crate::read::exec::{self, RunLimits};
use crate::{CollectError, Collector, Out};
use shared::catalog::{MetricDef, gpu, gpu_health, gpu_parts, gpu_profile};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest time between two runs: each takes up to a second.
const RUN_INTERVAL: Duration = Duration::from_secs(5);

/// One way to ask, and how the answer is read.
pub(super) struct SmiForm {
    pub args: &'static [&'static str],
    gpus: fn(&str) -> Vec<SmiGpu>,
}

/// What it is asked, best first.
pub(super) static FORMS: [SmiForm; 3] = [
    SmiForm { args: &["-q", "-x"], gpus },
    SmiForm { args: &["-q"], gpus: text::gpus },
    SmiForm { args: csv::ARGS, gpus: csv::gpus },
];

/// Where the tool is looked for beside PATH.
pub(super) const DIRS: &[&str] = &["/usr/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib"];

/// The collector that runs nvidia-smi at most every few seconds.
pub(super) struct Smi {
    pub path: PathBuf,
    pub numbers: Arc<GpuNumbers>,
    /// Positions to keep; empty: all.
    pub only: Vec<u32>,
    pub watched: Watched,
    /// When it may run again.
    pub next: Duration,
    /// Which of the forms it is asked for.
    pub form: usize,
}

impl Collector for Smi {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if out.at() < self.next {
            return Ok(());
        }
        self.next = out.at() + RUN_INTERVAL;
        let form = &FORMS[self.form];
        let output = exec::run(&self.path, form.args, &RunLimits::within(RUN_TIMEOUT))
            .map_err(|error| CollectError::failed(error.to_string()))?;
        let gpus = (form.gpus)(&String::from_utf8_lossy(&output.stdout));
        if gpus.iter().all(|gpu| !gpu.reading.answered) {
            self.form = (self.form + 1) % FORMS.len();
            return Err(CollectError::failed(output.said(&self.path)));
        }
        let watched = self.watched.pids();
        for (position, gpu) in (0..).zip(gpus) {
            if self.only.is_empty() || self.only.contains(&position) {
                let number =
                    self.numbers.claim(&gpu.uuid.unwrap_or_else(|| format!("nvidia-smi {position}")), position);
                let is_watched = gpu.reading.pids.iter().any(|pid| watched.contains(pid));
                gpu.reading.publish(number, is_watched, &mut |_, _| true, out);
            }
        }
        Ok(())
    }
}

/// What the tool said of one GPU.
#[derive(Default)]
pub(super) struct SmiGpu {
    uuid: Option<String>,
    reading: NvidiaReading,
    power: Option<f64>,
    instant_power: Option<f64>,
    power_limit: Option<f64>,
    memory: Memory,
    /// The MIG device and the process that are being read.
    part: (Option<u32>, Memory),
    process: (Option<u32>, Option<f64>),
}

#[derive(Clone, Copy, Default)]
struct Memory {
    used: Option<f64>,
    total: Option<f64>,
}

impl Memory {
    fn put(self, place: Place, reading: &mut NvidiaReading) {
        let Some((used, total)) = self.used.zip(self.total).filter(|(used, total)| *total > 0.0 && used <= total)
        else {
            return;
        };
        reading.put(&gpu::MEMORY_ALLOCATED_BYTES, place, Some(used));
        reading.put(&gpu::MEMORY_ALLOCATED, place, Some(gpu::MEMORY_ALLOCATED.rounded(100.0 * used / total)));
        if place == Place::Gpu {
            reading.put(&gpu::MEMORY_TOTAL_BYTES, place, Some(total));
        }
    }
}

/// All GPUs whose elements are whole.
fn gpus(text: &str) -> Vec<SmiGpu> {
    let (mut found, mut path, mut current) = (Vec::new(), Vec::<&str>::new(), SmiGpu::default());
    for piece in text.split('<').skip(1) {
        let Some((tag, content)) = piece.split_once('>') else { break };
        if let Some(name) = tag.strip_prefix('/') {
            if path.last() != Some(&name.trim()) {
                break; // no document of the tool
            }
            path.pop();
            match (name.trim(), path.as_slice()) {
                ("gpu", _) => found.push(std::mem::take(&mut current).whole()),
                (name, [_, "gpu", inside @ ..]) => current.close(inside, name),
                _ => {}
            }
        } else if !tag.starts_with(['?', '!']) && !tag.ends_with('/') {
            path.push(tag.split_whitespace().next().unwrap_or(""));
            if let [_, "gpu", inside @ ..] = path.as_slice()
                && let Some((name, inside)) = inside.split_last()
            {
                // What is cut off before its end is no value; what stands before an inner element is blank.
                let end = content.as_ptr() as usize - text.as_ptr() as usize + content.len();
                let closed = text[end..].strip_prefix("</").and_then(|rest| rest.split_once('>'));
                if closed.is_some_and(|(closed, _)| closed.trim() == *name) {
                    current.value(inside, name, content.trim());
                }
            }
        }
    }
    found
}

impl SmiGpu {
    /// A value of the document, by the elements that it stands in.
    fn value(&mut self, inside: &[&str], name: &str, value: &str) {
        match (inside, name) {
            ([], "uuid") => self.uuid = Some(value.to_string()),
            ([], "fan_speed") => self.put(&gpu::FAN_SPEED, number(value, "%", 0.0, 200.0)),
            (["utilization"], "gpu_util") => self.put(&gpu::UTILISATION, percent(value)),
            (["utilization"], "memory_util") => self.put(&gpu::MEMORY_ACTIVITY, percent(value)),
            (["utilization"], "encoder_util") => self.put(&gpu::ENCODER, percent(value)),
            (["utilization"], "decoder_util") => self.put(&gpu::DECODER, percent(value)),
            (["temperature"], "gpu_temp") => self.put(&gpu::TEMP, number(value, "C", 1.0, 150.0)),
            (["temperature"], "memory_temp") => self.put(&gpu::MEMORY_TEMP, number(value, "C", 1.0, 150.0)),
            (["clocks"], "graphics_clock") => self.put(&gpu::GRAPHICS_CLOCK, clock(value)),
            (["clocks"], "sm_clock") => self.put(&gpu::SM_CLOCK, clock(value)),
            (["clocks"], "mem_clock") => self.put(&gpu::MEMORY_CLOCK, clock(value)),
            (["ecc_errors", "volatile"], "dram_correctable") => self.put(&gpu::CORRECTED_ERRORS, count(value)),
            (["ecc_errors", "volatile"], "dram_uncorrectable") => self.put(&gpu::UNCORRECTED_ERRORS, count(value)),
            ([], "performance_state") => self.put(&gpu_health::PERFORMANCE_STATE, state(value)),
            ([], "persistence_mode") => {
                self.put(&gpu_health::PERSISTENCE_MODE, either(value, "Enabled", "Disabled"));
            }
            (["pci"], "replay_counter") => self.put(&gpu_health::PCIE_REPLAYS, count(value)),
            (["remapped_rows"], "remapped_row_corr") => self.put(&gpu_health::REMAPPED_CORRECTED, count(value)),
            (["remapped_rows"], "remapped_row_unc") => self.put(&gpu_health::REMAPPED_UNCORRECTED, count(value)),
            (["remapped_rows"], "remapped_row_pending") => {
                self.put(&gpu_health::REMAP_PENDING, either(value, "Yes", "No"));
            }
            (["remapped_rows"], "remapped_row_failure") => {
                self.put(&gpu_health::REMAP_FAILED, either(value, "Yes", "No"));
            }
            (["pci", "pci_gpu_link_info", "pcie_gen"], "current_link_gen") => {
                self.put(&gpu_profile::PCIE_GEN, count(value).filter(|n| (1.0..=64.0).contains(n)));
            }
            (["pci", "pci_gpu_link_info", "link_widths"], "current_link_width") => {
                let lanes = value.strip_suffix('x').and_then(count);
                self.put(&gpu_profile::PCIE_WIDTH, lanes.filter(|n| (1.0..=64.0).contains(n)));
            }
            (["gpu_power_readings" | "power_readings"], "instant_power_draw") => self.instant_power = watts(value),
            (["gpu_power_readings" | "power_readings"], "power_draw") => self.power = watts(value),
            (["gpu_power_readings" | "power_readings"], "current_power_limit" | "enforced_power_limit") => {
                self.power_limit = watts(value).filter(|watts| *watts > 0.0);
            }
            (["fb_memory_usage"], "total") => self.memory.total = bytes(value),
            (["fb_memory_usage"], "used") => self.memory.used = bytes(value),
            (["mig_devices", "mig_device"], "index") => self.part.0 = value.parse().ok(),
            (["mig_devices", "mig_device", "fb_memory_usage"], "total") => self.part.1.total = bytes(value),
            (["mig_devices", "mig_device", "fb_memory_usage"], "used") => self.part.1.used = bytes(value),
            (["processes", "process_info"], "pid") => self.process.0 = value.parse().ok(),
            (["processes", "process_info"], "used_memory") => self.process.1 = bytes(value),
            _ => {}
        }
    }

    /// An element with others inside ends.
    fn close(&mut self, inside: &[&str], name: &str) {
        match (inside, name) {
            (["mig_devices"], "mig_device") => {
                let (index, memory) = std::mem::take(&mut self.part);
                if let Some(index) = index {
                    memory.put(Place::Part(index), &mut self.reading);
                }
            }
            (["processes"], "process_info") => {
                let (pid, bytes) = std::mem::take(&mut self.process);
                if let Some(pid) = pid.filter(|pid| !self.reading.pids.contains(pid)) {
                    self.reading.pids.push(pid);
                    self.reading.put(&gpu_parts::PROCESS_MEMORY, Place::Process(pid), bytes);
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, row: &'static MetricDef, value: Option<f64>) {
        self.reading.answered |= value.is_some();
        self.reading.put(row, Place::Gpu, value);
    }

    /// All of it was read.
    fn whole(mut self) -> SmiGpu {
        let power = self.instant_power.or(self.power);
        self.put(&gpu::POWER_WATTS, power);
        let limit = self.power_limit.filter(|_| power.is_some());
        self.put(&gpu::POWER_LIMIT_WATTS, limit);
        let share = power.zip(limit).map(|(power, limit)| gpu::POWER_PERCENT.rounded(100.0 * power / limit));
        self.put(&gpu::POWER_PERCENT, share);
        self.memory.put(Place::Gpu, &mut self.reading);
        self
    }
}

/// A number before its unit, within what is possible.
fn number(text: &str, unit: &str, from: f64, to: f64) -> Option<f64> {
    let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    (from..=to).contains(&number).then_some(number)
}

fn percent(text: &str) -> Option<f64> {
    number(text, "%", 0.0, 100.0)
}

fn clock(text: &str) -> Option<f64> {
    number(text, "MHz", 0.0, 99_999.0)
}

fn watts(text: &str) -> Option<f64> {
    number(text, "W", 0.0, 2000.0)
}

fn count(text: &str) -> Option<f64> {
    text.parse::<u64>().ok().map(|n| n as f64)
}

/// `P0` to `P15`.
fn state(text: &str) -> Option<f64> {
    text.strip_prefix('P').and_then(count).filter(|state| *state < 16.0)
}

/// 1 for the first word, 0 for the second.
fn either(text: &str, one: &str, zero: &str) -> Option<f64> {
    match text {
        text if text == one => Some(1.0),
        text if text == zero => Some(0.0),
        _ => None,
    }
}

/// The tool prints MiB; a petabyte is more than any GPU has.
fn bytes(text: &str) -> Option<f64> {
    const MIB: f64 = (1 << 20) as f64;
    number(text, "MiB", 0.0, MIB * 1000.0).map(|mib| mib * MIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;

    /// What is put of GPUs.
    pub fn present_in(gpus: Vec<SmiGpu>) -> Vec<(String, f64)> {
        recordings::present(|out| {
            for (number, gpu) in (0..).zip(gpus) {
                gpu.reading.publish(number, false, &mut |_, _| true, out);
            }
        })
    }

    fn present(text: &str) -> Vec<(String, f64)> {
        present_in(gpus(text))
    }

    const OWN: &str = r#"<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
  <gpu id="00000000:01:00.0">
    <uuid>GPU-a</uuid>
    <persistence_mode>Enabled</persistence_mode>
    <pci><replay_counter>7</replay_counter></pci>
    <performance_state>P12</performance_state>
    <remapped_rows>
      <remapped_row_corr>1</remapped_row_corr><remapped_row_unc>2</remapped_row_unc>
      <remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>
    </remapped_rows>
    <mig_devices>
      <mig_device><index>2</index><fb_memory_usage><total>100 MiB</total><used>25 MiB</used></fb_memory_usage></mig_device>
    </mig_devices>
    <fan_speed>N/A</fan_speed>
    <fb_memory_usage><total>1000 MiB</total><reserved>9 MiB</reserved><used>250 MiB</used></fb_memory_usage>
    <utilization><gpu_util>12 %</gpu_util><memory_util>N/A</memory_util></utilization>
    <gpu_power_readings>
      <power_state>Requested functionality has been deprecated</power_state>
      <average_power_draw>99.00 W</average_power_draw><instant_power_draw>50.00 W</instant_power_draw>
      <current_power_limit>200.00 W</current_power_limit>
    </gpu_power_readings>
    <processes>
      <process_info><pid>7</pid><type>C</type><used_memory>1 MiB</used_memory></process_info>
      <process_info><pid>8</pid><type>C</type><used_memory>N/A</used_memory></process_info>
    </processes>
  </gpu>
  <gpu id="00000000:02:00.0"><temperature><gpu_temp>41 C</gpu_temp></temperature><accounted_processes /></gpu>
</nvidia_smi_log>"#;

    #[test]
    fn a_document_is_read_by_names_and_units() {
        let expected = [
            ("gpu.0.correctedRemappedRows", 1.0),
            ("gpu.0.enforcedPowerLimitWatts", 200.0),
            ("gpu.0.gpu", 12.0),
            ("gpu.0.memoryAllocated", 25.0),
            ("gpu.0.memoryAllocatedBytes", 262_144_000.0),
            ("gpu.0.memoryTotalBytes", 1_048_576_000.0),
            ("gpu.0.mig.2.memoryAllocated", 25.0),
            ("gpu.0.mig.2.memoryAllocatedBytes", 26_214_400.0),
            ("gpu.0.pcieReplays", 7.0),
            ("gpu.0.performanceState", 12.0),
            ("gpu.0.persistenceMode", 1.0),
            ("gpu.0.powerPercent", 25.0),
            ("gpu.0.powerWatts", 50.0),
            ("gpu.0.proc.7.memoryUsedBytes", 1_048_576.0),
            ("gpu.0.rowRemapFailed", 0.0),
            ("gpu.0.rowRemapPending", 1.0),
            ("gpu.0.uncorrectedRemappedRows", 2.0),
            ("gpu.1.temp", 41.0),
        ];
        assert_eq!(present(OWN), expected.map(|(tag, value)| (tag.to_string(), value)));
    }

    /// Cut anywhere, nothing is read that the whole does not say; with a number altered no other tag appears.
    pub fn survives(gpus: fn(&str) -> Vec<SmiGpu>, text: &str) {
        let numbered = |tag: &str| tag.contains(".proc.") || tag.contains(".mig.");
        recordings::survives(text, |text| present_in(gpus(text)), numbered);
    }

    #[test]
    fn a_document_that_is_cut_or_wrong_gives_nothing_new() {
        survives(gpus, OWN);
        assert_eq!(present("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."), []);
        assert_eq!(present("<gpu></log><gpu>"), []);
    }

    #[test]
    fn every_recording_gives_its_list() {
        for name in ["a100-sxm4_v12", "a10g_v11", "gtx1070ti_old", "rtx3080_v13", "rtx4000-sff-ada_v13", "tesla-t4_v11"]
        {
            let text = recordings::text(&format!("nvidia/nvidia-smi-x_{name}.xml"));
            recordings::check(&format!("nvidia_nvidia-smi-x_{name}"), &present(&text));
            survives(gpus, &text);
        }
    }

    /// Performance state and persistence mode, replays, rows remapped after corrected and uncorrected errors, pending and
    /// failed; `-` is absent.
    fn how_it_is(gpus: Vec<SmiGpu>) -> String {
        let present = present_in(gpus);
        let names = ["performanceState", "persistenceMode", "pcieReplays", "correctedRemappedRows"];
        let rows = ["uncorrectedRemappedRows", "rowRemapPending", "rowRemapFailed"];
        let value = |name: &str| present.iter().find(|(tag, _)| *tag == format!("gpu.0.{name}")).map(|(_, v)| *v);
        let written = names.iter().chain(&rows).map(|name| value(name).map_or("-".into(), |value| value.to_string()));
        written.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn how_a_gpu_is_is_read_of_every_form() {
        for (name, expected) in [
            ("a100-sxm4_v12", "0 0 0 - - - -"),
            ("a10g_v11", "8 0 0 0 0 0 0"),
            ("gtx1070ti_old", "8 - - - - - -"),
            ("rtx3080_v13", "2 0 0 - - - -"),
            ("rtx4000-sff-ada_v13", "8 1 0 0 0 0 0"),
            ("tesla-t4_v11", "0 0 0 - - - -"),
        ] {
            assert_eq!(
                how_it_is(gpus(&recordings::text(&format!("nvidia/nvidia-smi-x_{name}.xml")))),
                expected,
                "{name}"
            );
        }
        for (name, expected) in [
            ("a40-x10_node", "8 1 0 2 0 0 0"),
            ("h100-sxm-x8_node", "0 1 7 0 0 0 0"),
            ("h100-sxm_590.48.01_load", "0 1 9 0 0 0 0"),
            ("l40s_595.80_idle", "0 0 0 0 0 0 0"),
            ("rtx2080super-wddm_591.86_load", "2 - 0 - - - -"),
        ] {
            let text = recordings::text(&format!("nvidia/nvidia-smi-q_{name}.txt"));
            assert_eq!(how_it_is(text::gpus(&text)), expected, "{name}");
        }
        let table = recordings::text("nvidia/nvidia-smi-csv_h100-sxm_590.48.01.txt");
        let (_, table) = table.split_once(" :: query-gpu").expect("a section");
        assert_eq!(how_it_is(csv::gpus(table)), "0 1 - - - - -");
    }

    #[cfg(unix)]
    #[test]
    fn a_tool_that_fails_says_why_and_is_run_at_most_every_five_seconds() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvidia-smi");
        let said = "Failed to initialize NVML: Driver/library version mismatch";
        std::fs::write(&path, format!("#!/bin/sh\necho '{said}'\nexit 18\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let watched = Watched::new(&crate::Roots::default(), &[]);
        let mut smi = Smi { path, numbers: Arc::default(), only: Vec::new(), watched, next: Duration::ZERO, form: 0 };
        let mut out = Out::default();
        out.begin(Duration::from_secs(1));
        assert!(smi.collect(&mut out).unwrap_err().reason.contains(said));
        out.begin(Duration::from_secs(5));
        assert_eq!(smi.collect(&mut out), Ok(()));
        out.begin(Duration::from_secs(6));
        assert!(smi.collect(&mut out).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn where_one_form_gives_nothing_the_next_is_asked_for_and_what_works_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvidia-smi");
        let script = "#!/bin/sh\necho \"$*\" >> \"$0.runs\"\ncase \"$*\" in\n'-q') echo broken;;\n--query*) \
                      printf 'uuid, temperature.gpu\\nGPU-a, 41\\n';;\nesac\n";
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let watched = Watched::new(&crate::Roots::default(), &[]);
        let mut smi = Smi { path, numbers: Arc::default(), only: Vec::new(), watched, next: Duration::ZERO, form: 0 };
        let mut out = Out::default();
        let mut read = |second| {
            out.begin(Duration::from_secs(second));
            let result = smi.collect(&mut out).map_err(|error| error.reason);
            (result.is_ok(), out.present())
        };
        let temp = vec![("gpu.0.temp".to_string(), 41.0)];
        assert_eq!(
            [0, 5, 10, 15].map(&mut read),
            [(false, vec![]), (false, vec![]), (true, temp.clone()), (true, temp)]
        );
        let runs = std::fs::read_to_string(dir.path().join("nvidia-smi.runs")).unwrap();
        let begins: Vec<&str> = runs.lines().map(|line| &line[..line.len().min(5)]).collect();
        assert_eq!(begins, ["-q -x", "-q", "--que", "--que"]);
    }
}
