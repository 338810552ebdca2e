//! Fallback if the library cannot be loaded (a static build, a broken installation) but NVIDIA's tool is installed:
//! `nvidia-smi -q -x`, one process per reading. If that gives nothing, the next run requests text ([`text`]), and the
//! one after that a table ([`csv`]). A working form is kept.
//!
//! The form of the document changed with every other driver. So values are found by the names of their elements, each
//! with its unit, and a GPU counts only if its element is complete.

mod csv;
mod text;

use super::UNKNOWN_PIDS;
use super::events::{Teller, Xids};
use super::kernel_log::{self, KernelLog};
use super::reading::{NvidiaReading, ValueSubject};
use super::retry::MUST_BE_RESET;
use super::users::{Process, together};
use crate::host::process::Watched;
use crate::read::exec::{self, RunLimits};
use crate::read::pids::Pids;
use crate::{CollectError, Collector, Out};
use inventory::GpuNumbers;
use shared::catalog::{MetricDef, gpu, gpu_health, gpu_parts, gpu_profile};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// Parents of a GPU's power values, in newer and older documents.
const POWER: &str = "gpu_power_readings";
const OLD_POWER: &str = "power_readings";

/// Minimum time between two runs: each takes up to a second.
const RUN_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of reasons reported at once, and the same while GPUs are lost: each of them has a finding of its own.
const MAX_REASONS: (usize, usize) = (4, 16);

/// One command line, and the parser of its output.
pub(super) struct SmiForm {
    pub args: &'static [&'static str],
    gpus: fn(&str) -> Vec<SmiGpu>,
}

/// Errors that NVIDIA's tool prints in place of values, by rising severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SmiTrouble {
    /// An error of some values.
    Error,
    /// The GPU is off the bus.
    Lost,
    /// The machine must be restarted.
    Reboot,
    /// The GPU must be reset.
    Reset,
}

impl SmiTrouble {
    /// The error printed in place of a value. None for a value, and for one that the card lacks.
    fn from_value(value: &str) -> Option<SmiTrouble> {
        let value = value.to_ascii_lowercase();
        let says = |word: &str| value.contains(word);
        match () {
            () if says("requires reset") || says("reset required") => Some(SmiTrouble::Reset),
            () if says("gpu is lost") => Some(SmiTrouble::Lost),
            () if says("err!") || says("unknown error") => Some(SmiTrouble::Error),
            () => None,
        }
    }

    /// The action recommended by the driver.
    fn of_action(value: &str) -> Option<SmiTrouble> {
        let value = value.to_ascii_lowercase();
        match () {
            () if value.contains("reset") => Some(SmiTrouble::Reset),
            () if value.contains("reboot") => Some(SmiTrouble::Reboot),
            () => SmiTrouble::from_value(&value),
        }
    }

    fn words(self) -> &'static str {
        match self {
            SmiTrouble::Error => "nvidia-smi reports errors instead of some values; the others are read",
            SmiTrouble::Lost => "nvidia-smi reports the GPU as lost; restart the machine, and check its slot and power",
            SmiTrouble::Reboot => {
                "the driver recommends a restart of the machine; values that the GPU still reports are read"
            }
            SmiTrouble::Reset => MUST_BE_RESET,
        }
    }
}

/// Command lines of the tool, best first.
pub(super) static FORMS: [SmiForm; 3] = [
    SmiForm { args: &["-q", "-x"], gpus },
    SmiForm { args: &["-q"], gpus: text::gpus },
    SmiForm { args: csv::ARGS, gpus: csv::gpus },
];

/// Folders in which the tool is searched beside PATH.
pub(super) const DIRS: &[&str] = &["/usr/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib"];

/// The collector that runs nvidia-smi at most every few seconds.
pub(super) struct Smi {
    pub path: PathBuf,
    pub numbers: Arc<GpuNumbers>,
    /// Positions to keep; empty for all.
    pub only: Vec<u32>,
    pub watched: Watched,
    /// Maps the tool's PIDs to processes here.
    pub pids: Pids,
    /// Kernel log, because the tool reports no critical errors.
    pub kernel_log: KernelLog,
    /// Numbers and errors of the GPUs seen, by PCI address.
    pub xids: HashMap<kernel_log::PciPlace, (u32, Xids)>,
    /// Earliest time of the next run.
    pub next: Duration,
    /// Index of the form in use.
    pub form: usize,
    /// Columns that the tool does not support.
    pub refused: Vec<String>,
}

impl Collector for Smi {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if out.at() < self.next {
            return Ok(());
        }
        self.next = out.at() + RUN_INTERVAL;
        let result = self.run(out);
        self.put_xids(out);
        result
    }
}

impl Smi {
    fn run(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let form = &FORMS[self.form];
        let args = csv::without(form.args, &self.refused);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = exec::run(&self.path, &args, &RunLimits::within(RUN_TIMEOUT))
            .map_err(|error| CollectError::failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut gpus = (form.gpus)(&text);
        if gpus.iter().all(|gpu| !gpu.reading.answered) {
            match csv::refused(&text).filter(|column| !self.refused.contains(column)) {
                Some(column) => self.refused.push(column),
                None => self.form = (self.form + 1) % FORMS.len(),
            }
            let trouble = gpus.iter().find_map(|gpu| gpu.trouble).map(|trouble| trouble.words().to_string());
            return Err(CollectError::failed(trouble.unwrap_or_else(|| output.failure_message(&self.path))));
        }
        let watched = self.watched.pids();
        let lists: Vec<&[u32]> = gpus.iter().map(|gpu| gpu.reading.pids.as_slice()).collect();
        let own = self.pids.own(&lists, out.at());
        let mut reasons = Vec::new();
        if !self.pids.are_first() && lists.concat().iter().any(|pid| !own.contains(pid)) {
            reasons.push(UNKNOWN_PIDS.to_string());
        }
        gpus.iter_mut().for_each(|gpu| gpu.reading.keep_processes(&own));
        let mut lost = 0;
        for (position, gpu) in (0..).zip(gpus) {
            if self.only.is_empty() || self.only.contains(&position) {
                let number =
                    self.numbers.claim(&gpu.uuid.unwrap_or_else(|| format!("nvidia-smi {position}")), position);
                let is_watched = gpu.reading.pids.iter().any(|pid| watched.contains(pid));
                gpu.reading.publish(number, is_watched, &mut |_, _| true, out);
                // Lost GPUs come first.
                let at = if gpu.trouble == Some(SmiTrouble::Lost) { lost } else { reasons.len() };
                lost += usize::from(gpu.trouble == Some(SmiTrouble::Lost));
                if let Some(trouble) = gpu.trouble {
                    reasons.insert(at, format!("GPU {number}: {}", trouble.words()));
                }
                if let Some(place) = gpu.place.filter(|_| self.kernel_log.is_open()) {
                    self.xids.entry(place).or_default().0 = number;
                }
            }
        }
        reasons.extend(self.kernel_log.say_denied());
        let most = lost.clamp(MAX_REASONS.0, MAX_REASONS.1);
        let more = reasons.len().saturating_sub(most);
        reasons.truncate(most);
        if more > 0 {
            reasons.push(format!("and {more} more"));
        }
        if reasons.is_empty() { Ok(()) } else { Err(CollectError::partial(reasons.join("; "))) }
    }

    fn put_xids(&mut self, out: &mut Out) {
        for error in self.kernel_log.read() {
            if let Some((_, xids)) = self.xids.get_mut(&error.place) {
                xids.add_report(Teller::KernelLog, error.number, &error.message);
            }
        }
        for (number, xids) in self.xids.values_mut() {
            xids.advance();
            xids.put(*number, out);
        }
    }
}

/// Values of one GPU from the tool.
#[derive(Default)]
pub(super) struct SmiGpu {
    uuid: Option<String>,
    place: Option<kernel_log::PciPlace>,
    reading: NvidiaReading,
    /// The worst error printed in place of a value.
    trouble: Option<SmiTrouble>,
    power: Option<f64>,
    instant_power: Option<f64>,
    /// The mean of the last second, as newer cards report it.
    mean_power: Option<f64>,
    power_limit: Option<f64>,
    memory: Memory,
    /// The MIG device and the process that are being read.
    part: (Option<u32>, Memory),
    process: (Option<u32>, Option<f64>),
    /// Processes that were read.
    processes: Vec<Process>,
}

#[derive(Clone, Copy, Default)]
struct Memory {
    used: Option<f64>,
    total: Option<f64>,
}

impl Memory {
    /// Puts the memory. Returns whether there was a valid value.
    fn put(self, place: ValueSubject, reading: &mut NvidiaReading) -> bool {
        let Some((used, total)) = self.used.zip(self.total).filter(|(used, total)| *total > 0.0 && used <= total)
        else {
            return false;
        };
        reading.put(&gpu::MEMORY_ALLOCATED_BYTES, place, Some(used));
        reading.put(&gpu::MEMORY_ALLOCATED, place, Some(gpu::MEMORY_ALLOCATED.rounded(100.0 * used / total)));
        if place == ValueSubject::Gpu {
            reading.put(&gpu::MEMORY_TOTAL_BYTES, place, Some(total));
        }
        true
    }
}

/// All GPUs whose elements are complete.
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
                // Text without its end tag is no value; text before an inner element is blank.
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
    /// Reads a value of the document. `inside` has the enclosing elements.
    fn value(&mut self, inside: &[&str], name: &str, value: &str) {
        self.record_error(name, value);
        match (inside, name) {
            // It may be an error text, which identifies no GPU.
            ([], "uuid") => self.uuid = Some(value.to_string()).filter(|uuid| uuid.starts_with("GPU-")),
            (["pci"], "pci_bus_id") => self.place = kernel_log::place(value),
            ([], "fan_speed") => self.put(&gpu::FAN_SPEED, number(value, "%", 0.0, 200.0)),
            (["utilization"], "gpu_util") => self.put(&gpu::UTILIZATION, percent(value)),
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
            ([], "gpu_recovery_action") => self.put(&gpu_health::RECOVERY_ACTION, recovery(value)),
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
            // Some drivers have them one level deeper.
            ([POWER | OLD_POWER, ..], "instant_power_draw") => self.instant_power = watts(value),
            ([POWER | OLD_POWER, ..], "average_power_draw") => self.mean_power = watts(value),
            ([POWER | OLD_POWER, ..], "power_draw") => self.power = watts(value),
            ([POWER | OLD_POWER, ..], "current_power_limit" | "enforced_power_limit") => {
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

    /// Records an error that is printed in place of a value.
    fn record_error(&mut self, name: &str, value: &str) {
        // A name may be any text.
        if ["process_name", "product_name", "Name", "Product Name"].contains(&name) {
            return;
        }
        let action = ["gpu_recovery_action", "GPU Recovery Action"].contains(&name);
        let trouble = if action { SmiTrouble::of_action(value) } else { SmiTrouble::from_value(value) };
        self.trouble = self.trouble.max(trouble);
    }

    /// Ends an element that contains others.
    fn close(&mut self, inside: &[&str], name: &str) {
        match (inside, name) {
            (["mig_devices"], "mig_device") => {
                let (index, memory) = std::mem::take(&mut self.part);
                if let Some(index) = index {
                    memory.put(ValueSubject::Part(index), &mut self.reading);
                }
            }
            (["processes"], "process_info") => {
                let (pid, bytes) = std::mem::take(&mut self.process);
                self.processes.extend(pid.map(|pid| Process { pid, memory: bytes.map(|bytes| bytes as u64) }));
            }
            _ => {}
        }
    }

    fn put(&mut self, row: &'static MetricDef, value: Option<f64>) {
        self.reading.answered |= value.is_some();
        self.reading.put(row, ValueSubject::Gpu, value);
    }

    /// The library reports the mean as the power, so the instantaneous value is used only without a mean.
    fn with_mean_power(mut self) -> SmiGpu {
        self.power = self.power.or(self.mean_power);
        self.instant_power = self.instant_power.filter(|_| self.power.is_none());
        self
    }

    /// Completes the GPU after its element was read.
    fn whole(mut self) -> SmiGpu {
        let power = self.instant_power.or(self.power).or(self.mean_power);
        self.put(&gpu::POWER_WATTS, power);
        let limit = self.power_limit.filter(|_| power.is_some());
        self.put(&gpu::POWER_LIMIT_WATTS, limit);
        let share = power.zip(limit).map(|(power, limit)| gpu::POWER_PERCENT.rounded(100.0 * power / limit));
        self.put(&gpu::POWER_PERCENT, share);
        self.reading.answered |= self.memory.put(ValueSubject::Gpu, &mut self.reading);
        self.reading.pids = self.processes.iter().map(|process| process.pid).collect();
        for Process { pid, memory } in together(std::mem::take(&mut self.processes)) {
            self.reading.put(&gpu_parts::PROCESS_MEMORY, ValueSubject::Process(pid), memory.map(|bytes| bytes as f64));
        }
        self
    }
}

/// A number followed by its unit, within the plausible range.
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

/// NVML's number of a recovery action, by the tool's word for it.
fn recovery(text: &str) -> Option<f64> {
    let words = ["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"];
    words.iter().position(|word| *word == text).map(|number| number as f64)
}

/// 1 for the first word, 0 for the second.
fn either(text: &str, one: &str, zero: &str) -> Option<f64> {
    match text {
        text if text == one => Some(1.0),
        text if text == zero => Some(0.0),
        _ => None,
    }
}

/// The tool prints MiB; the limit of a petabyte is more than any GPU has.
fn bytes(text: &str) -> Option<f64> {
    const MIB: f64 = (1 << 20) as f64;
    number(text, "MiB", 0.0, MIB * 1000.0).map(|mib| mib * MIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;

    /// The values put for GPUs.
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

    /// The collector with this tool.
    fn tool(path: PathBuf, kernel_log: KernelLog) -> Smi {
        let watched = Watched::new(&crate::Roots::default(), &[]);
        let (numbers, only, xids) = (Arc::default(), Vec::new(), HashMap::new());
        let pids = Pids::new(&crate::Roots::default().proc, super::super::DEVICE_FILE);
        let (next, form, refused) = (Duration::ZERO, 0, Vec::new());
        Smi { path, numbers, only, watched, pids, kernel_log, xids, next, form, refused }
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

    /// Checks that truncated output gives only values of the whole, and that a changed number adds no other tag.
    pub fn survives(gpus: fn(&str) -> Vec<SmiGpu>, text: &str) {
        let numbered = |tag: &str| tag.contains(".proc.") || tag.contains(".mig.");
        recordings::survives(text, |text| present_in(gpus(text)), numbered);
    }

    #[test]
    fn power_that_is_told_as_a_mean_alone_is_the_power_and_limits_may_stand_deeper() {
        let power = |inner: &str| {
            let text = format!("<log><gpu><gpu_power_readings>{inner}</gpu_power_readings></gpu></log>");
            let of = |name: &str| present(&text).into_iter().find(|(tag, _)| tag == name).map(|(_, value)| value);
            ["gpu.0.powerWatts", "gpu.0.enforcedPowerLimitWatts", "gpu.0.powerPercent"].map(of)
        };
        let mean = "<average_power_draw>50.00 W</average_power_draw>";
        let limit = "<current_power_limit>200.00 W</current_power_limit>";
        let all = [Some(50.0), Some(200.0), Some(25.0)];
        assert_eq!(power(&format!("{mean}{limit}")), all);
        assert_eq!(power(&format!("{mean}<instant_power_draw>N/A</instant_power_draw>{limit}")), all);
        let deeper = format!("<gpu_ceiling_power_limit>{limit}</gpu_ceiling_power_limit>");
        let base = "<gpu_base_power><current_base_power>7.00 W</current_base_power></gpu_base_power>";
        assert_eq!(power(&format!("{mean}{deeper}{base}")), all);
        assert_eq!(power("<average_power_draw>ERR!</average_power_draw>"), [None; 3]);
        assert_eq!(power("<average_power_draw>50.00 kW</average_power_draw>"), [None; 3], "a unit that is not known");
    }

    /// Every output form for a GPU that must be reset, and for a healthy one.
    const RESET: [(&str, &str); 3] = [
        (
            "-q -x",
            "<log><gpu><uuid>GPU-a</uuid><performance_state>ERR!</performance_state>\
             <fb_memory_usage><total>1000 MiB</total><used>250 MiB</used></fb_memory_usage>\
             <utilization><gpu_util>GPU requires reset</gpu_util></utilization>\
             <temperature><gpu_temp>ERR!</gpu_temp></temperature></gpu>\
             <gpu><uuid>GPU-b</uuid><temperature><gpu_temp>41 C</gpu_temp></temperature></gpu></log>",
        ),
        (
            "-q",
            "GPU 00000000:01:00.0\n    GPU UUID : GPU-a\n    Performance State : ERR!\n    FB Memory Usage\n\
             \x20       Total : 1000 MiB\n        Used : 250 MiB\n    Utilization\n\
             \x20       GPU : GPU requires reset\n    Temperature\n        GPU Current Temp : ERR!\n\
             GPU 00000000:02:00.0\n    GPU UUID : GPU-b\n    Temperature\n        GPU Current Temp : 41 C\n",
        ),
        (
            "--query",
            "uuid, memory.total [MiB], memory.used [MiB], utilization.gpu [%], temperature.gpu\n\
             GPU-a, 1000 MiB, 250 MiB, [GPU requires reset], ERR!\n\
             Unable to determine the device handle for GPU 0000:03:00.0: GPU requires reset\n\
             GPU-b, [N/A], [N/A], [N/A], 41 C\n",
        ),
    ];

    #[cfg(unix)]
    #[test]
    fn each_of_many_lost_gpus_is_named_before_others() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvidia-smi");
        let gpu = |n: u32, trouble: &str| {
            format!(
                "<gpu id=\"00000000:0{n}:00.0\"><uuid>GPU-{n}</uuid><fan_speed>{trouble}</fan_speed>\
                 <temperature><gpu_temp>41 C</gpu_temp></temperature></gpu>"
            )
        };
        let lost = (1..7).map(|n| gpu(n, "GPU is lost")).collect::<String>();
        let text = format!("<nvidia_smi_log>{}{lost}</nvidia_smi_log>", gpu(0, "ERR!"));
        std::fs::write(&path, format!("#!/bin/sh\necho '{text}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut out = Out::default();
        out.begin(Duration::from_secs(1));
        let error = tool(path, KernelLog::default()).collect(&mut out).unwrap_err();
        for n in 1..7 {
            assert!(error.reason.contains(&format!("GPU {n}: nvidia-smi reports the GPU as lost")), "{}", error.reason);
        }
        assert!(error.reason.ends_with("and 1 more"), "{}", error.reason);
    }

    #[cfg(unix)]
    #[test]
    fn a_gpu_that_must_be_reset_keeps_its_other_values_and_that_is_said() {
        use std::os::unix::fs::PermissionsExt;
        for (form, (asked, text)) in RESET.into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("nvidia-smi");
            std::fs::write(dir.path().join("said"), text).unwrap();
            std::fs::write(&path, format!("#!/bin/sh\ncat '{}'\nexit 15\n", dir.path().join("said").display()))
                .unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            let mut smi = Smi { form, ..tool(path, KernelLog::default()) };
            let mut out = Out::default();
            out.begin(Duration::from_secs(1));
            let error = smi.collect(&mut out).unwrap_err();
            assert!(
                error.partial && error.reason.starts_with("GPU 0: the driver requires"),
                "{asked}: {}",
                error.reason
            );
            assert!(error.reason.contains("a reset of the GPU") && !error.reason.contains("GPU 1"), "{}", error.reason);
            let expected = [
                ("gpu.0.memoryAllocated", 25.0),
                ("gpu.0.memoryAllocatedBytes", 262_144_000.0),
                ("gpu.0.memoryTotalBytes", 1_048_576_000.0),
                ("gpu.1.temp", 41.0),
            ];
            assert_eq!(out.present(), expected.map(|(tag, value)| (tag.to_string(), value)), "{asked}");
            assert_eq!(smi.form, form, "{asked}: what gives values is kept");
            // The remaining text of one GPU is enough.
            let alone = (FORMS[form].gpus)(text).remove(0);
            assert!(alone.reading.answered, "{asked}");
        }
        assert_eq!(SmiTrouble::from_value("[Not Supported]"), None);
        assert_eq!(SmiTrouble::from_value("[Unknown Error]"), Some(SmiTrouble::Error));
        assert_eq!(SmiTrouble::from_value("GPU is lost"), Some(SmiTrouble::Lost));
        let actions = ["None", "N/A", "Reboot", "Drain and Reset"].map(SmiTrouble::of_action);
        assert_eq!(actions, [None, None, Some(SmiTrouble::Reboot), Some(SmiTrouble::Reset)]);
    }

    #[cfg(unix)]
    #[test]
    fn a_column_that_the_tool_does_not_know_costs_itself_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvidia-smi");
        let script = "#!/bin/sh\ncase \"$1\" in\n\
                      *,fan.speed,*) echo 'Field \"fan.speed\" is not a valid field to query.';;\n\
                      *,power.draw,*) echo 'Field \"power.draw\" is not a valid field to query.';;\n\
                      *,power.draw.average,*) printf 'uuid, power.draw.average [W]\\nGPU-a, 50.00 W\\n';;\nesac\n";
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut smi = Smi { form: 2, ..tool(path, KernelLog::default()) };
        let mut out = Out::default();
        let mut read = |second| {
            out.begin(Duration::from_secs(second));
            (smi.collect(&mut out).is_ok(), out.present())
        };
        let power = vec![("gpu.0.powerWatts".to_string(), 50.0)];
        assert_eq!([0, 5, 10].map(&mut read), [(false, vec![]), (false, vec![]), (true, power)]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_has_the_number_alone_is_none_of_the_tools() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvidia-smi");
        let process =
            |pid: u32| format!("<process_info><pid>{pid}</pid><used_memory>1 MiB</used_memory></process_info>");
        let processes: String = [7, 9].map(process).concat();
        let document = format!(
            "<log><gpu><temperature><gpu_temp>41 C</gpu_temp></temperature><processes>{processes}</processes></gpu></log>"
        );
        std::fs::write(&path, format!("#!/bin/sh\necho '{document}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let process = |pid: u32, file: &str| {
            let fd = dir.path().join(format!("{pid}/fd"));
            std::fs::create_dir_all(&fd).unwrap();
            std::fs::write(dir.path().join(format!("{pid}/stat")), format!("{pid} (a) S{}", " 1".repeat(30))).unwrap();
            let _ = std::fs::remove_file(fd.join("3"));
            std::os::unix::fs::symlink(file, fd.join("3")).unwrap();
        };
        let read = |second: u64| {
            let pids = Pids::new(dir.path(), super::super::DEVICE_FILE);
            let mut smi = Smi { pids, ..tool(path.clone(), KernelLog::default()) };
            let mut out = Out::default();
            out.begin(Duration::from_secs(second));
            let reason = smi.collect(&mut out).err().map(|error| error.reason).unwrap_or_default();
            let tags = out.present().into_iter().map(|(tag, _)| tag).filter(|tag| tag.contains("proc")).collect();
            (reason.contains("another pid namespace"), tags)
        };
        process(7, "/dev/null");
        process(9, "/dev/nvidia0");
        assert_eq!(read(1), (true, Vec::<String>::new()), "7 merely has the number, so 9 is not known either");
        process(7, "/dev/nvidia0");
        let both = ["gpu.0.proc.7.memoryUsedBytes", "gpu.0.proc.9.memoryUsedBytes"];
        assert_eq!(read(1), (false, both.map(String::from).to_vec()));
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

    /// Performance state and persistence mode, replays, rows remapped after corrected and uncorrected errors, pending
    /// and failed, and recovery action. `-` is absent.
    fn how_it_is(gpus: Vec<SmiGpu>) -> String {
        let present = present_in(gpus);
        let names = ["performanceState", "persistenceMode", "pcieReplays", "correctedRemappedRows"];
        let rows = ["uncorrectedRemappedRows", "rowRemapPending", "rowRemapFailed", "recoveryAction"];
        let value = |name: &str| present.iter().find(|(tag, _)| *tag == format!("gpu.0.{name}")).map(|(_, v)| *v);
        let written = names.iter().chain(&rows).map(|name| value(name).map_or("-".into(), |value| value.to_string()));
        written.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn how_a_gpu_is_is_read_of_every_form() {
        for (name, expected) in [
            ("a100-sxm4_v12", "0 0 0 - - - - -"),
            ("a10g_v11", "8 0 0 0 0 0 0 -"),
            ("gtx1070ti_old", "8 - - - - - - -"),
            ("rtx3080_v13", "2 0 0 - - - - 0"),
            ("rtx4000-sff-ada_v13", "8 1 0 0 0 0 0 0"),
            ("tesla-t4_v11", "0 0 0 - - - - -"),
        ] {
            assert_eq!(
                how_it_is(gpus(&recordings::text(&format!("nvidia/nvidia-smi-x_{name}.xml")))),
                expected,
                "{name}"
            );
        }
        for (name, expected) in [
            ("a40-x10_node", "8 1 0 2 0 0 0 -"),
            ("h100-sxm-x8_node", "0 1 7 0 0 0 0 0"),
            ("h100-sxm_590.48.01_load", "0 1 9 0 0 0 0 0"),
            ("l40s_595.80_idle", "0 0 0 0 0 0 0 0"),
            ("rtx2080super-wddm_591.86_load", "2 - 0 - - - - 0"),
        ] {
            let text = recordings::text(&format!("nvidia/nvidia-smi-q_{name}.txt"));
            assert_eq!(how_it_is(text::gpus(&text)), expected, "{name}");
        }
        let table = recordings::text("nvidia/nvidia-smi-csv_h100-sxm_590.48.01.txt");
        let (_, table) = table.split_once(" :: query-gpu").expect("a section");
        assert_eq!(how_it_is(csv::gpus(table)), "0 1 - - - - - 0");
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
        let mut smi = tool(path, KernelLog::default());
        let mut out = Out::default();
        out.begin(Duration::from_secs(1));
        assert!(smi.collect(&mut out).unwrap_err().reason.contains(said));
        out.begin(Duration::from_secs(5));
        assert_eq!(smi.collect(&mut out), Ok(()));
        out.begin(Duration::from_secs(6));
        assert!(smi.collect(&mut out).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn critical_errors_are_those_of_the_kernels_log() {
        use std::io::Write;
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvidia-smi");
        let gpu = |i: u32, bus: &str| {
            let (uuid, pci) =
                (format!("<uuid>GPU-{i}</uuid>"), format!("<pci_bus_id>00000000:{bus}:00.0</pci_bus_id>"));
            format!("<gpu>{uuid}<pci>{pci}</pci><temperature><gpu_temp>41 C</gpu_temp></temperature></gpu>")
        };
        let document = format!("<log>{}{}</log>", gpu(0, "3B"), gpu(1, "C1"));
        std::fs::write(&path, format!("#!/bin/sh\necho '{document}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let kmsg = dir.path().join("kmsg");
        std::fs::write(&kmsg, "").unwrap();
        let mut smi = tool(path.clone(), KernelLog::open(dir.path()));
        let mut out = Out::default();
        let mut read = |second| {
            out.begin(Duration::from_secs(second));
            let result = smi.collect(&mut out).map_err(|error| error.reason);
            (result.is_ok(), out.present().into_iter().filter(|(tag, _)| tag.contains("id")).collect::<Vec<_>>())
        };
        let tags = |all: &[(&str, f64)]| all.iter().map(|(tag, v)| (tag.to_string(), *v)).collect::<Vec<_>>();
        let none = tags(&[("gpu.0.xidErrors", 0.0), ("gpu.1.xidErrors", 0.0)]);
        assert_eq!(read(1), (true, none));
        let mut log = std::fs::OpenOptions::new().append(true).open(&kmsg).unwrap();
        log.write_all(b"3,7,99,-;NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus.\n").unwrap();
        // The tool may fail together with the GPU.
        std::fs::write(&path, "#!/bin/sh\necho 'Unable to determine the device handle'\n").unwrap();
        let one = tags(&[
            ("gpu.0.xidErrors", 0.0),
            ("gpu.1.lastXid", 79.0),
            ("gpu.1.lastXidAction", 13.0),
            ("gpu.1.xidErrors", 1.0),
        ]);
        assert_eq!(read(6), (false, one));
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
        let mut smi = tool(path, KernelLog::default());
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
