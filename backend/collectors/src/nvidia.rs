//! NVIDIA GPUs through the driver's own library, opened at run time.
//!
//! Each call that fails leaves its own tag out and is tried again at the next tick. A GPU is known by its UUID and keeps
//! the number that it was given first, which is NVML's index.

use crate::read::dylib;
use crate::{CollectError, Collector, OpenError, OpenErrorKind, Options, Out, Part, Roots};
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, MemoryLocation, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use shared::catalog::gpu;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The library's name where the driver installs it.
const LIBRARY: &str = if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" };

/// How long to wait after the library failed as a whole before it is started anew.
const RESTART_EVERY: Duration = Duration::from_secs(30);

/// Opens the library and asks for GPUs.
pub(crate) fn open(options: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    let library = dylib::name(options.nvml_library.as_deref(), LIBRARY);
    let nvml = start(&library).map_err(|error| open_error(&library, &error))?;
    let tried = vec![Path::new(&library).display().to_string()];
    if nvml.device_count().is_ok_and(|count| count == 0) {
        let remedy = "check that the GPU is passed to this machine or container, with nvidia-smi";
        return Err(OpenError::absent(tried, "the driver runs but shows no GPU", remedy));
    }
    let restarted = Duration::ZERO;
    let numbers = Numbers::default();
    let nvidia = Nvidia { library, nvml: Some(nvml), restarted, only: options.gpus.clone(), numbers };
    Ok(Part::only(tried, nvidia))
}

fn start(library: &OsString) -> Result<Nvml, NvmlError> {
    Nvml::builder().lib_path(library).init()
}

fn open_error(library: &OsString, error: &NvmlError) -> OpenError {
    let shown = Path::new(library).display().to_string();
    let says = |text: &str| format!("{shown}: {text}");
    let (kind, reason, remedy) = match error {
        NvmlError::LibloadingError(loader) if dylib::is_file(library) => (
            OpenErrorKind::Failed,
            format!("{shown} could not be loaded: {loader}"),
            "set library under [collectors.nvidia] to the driver's libnvidia-ml.so.1",
        ),
        NvmlError::LibloadingError(_) => (
            OpenErrorKind::Absent,
            format!("{shown} was not found"),
            "install NVIDIA's driver, or set library under [collectors.nvidia]",
        ),
        NvmlError::DriverNotLoaded => {
            (OpenErrorKind::Absent, says("the driver is not loaded"), "load it: sudo modprobe nvidia")
        }
        NvmlError::LibRmVersionMismatch => (
            OpenErrorKind::Failed,
            says("the library and the loaded driver are of different versions"),
            "restart the machine to load the driver that was installed",
        ),
        NvmlError::NoPermission => (
            OpenErrorKind::Denied,
            says("this user may not talk to the driver"),
            "let this user read and write /dev/nvidia*, or add it to the group that may",
        ),
        other => (OpenErrorKind::Failed, says(&other.to_string()), "see what nvidia-smi says"),
    };
    OpenError { kind, tried: vec![shown], reason, remedy: remedy.into() }
}

struct Nvidia {
    library: OsString,
    /// Absent after the library failed as a whole, until it is started anew.
    nvml: Option<Nvml>,
    restarted: Duration,
    /// NVML indices to keep; empty: all.
    only: Vec<u32>,
    numbers: Numbers,
}

impl Collector for Nvidia {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if self.nvml.is_none() && out.at().saturating_sub(self.restarted) >= RESTART_EVERY {
            self.restarted = out.at();
            self.nvml = start(&self.library).ok();
        }
        let Some(nvml) = &self.nvml else {
            return Err(CollectError::failed("NVIDIA's library failed; it is started anew every 30 s"));
        };
        let count = match nvml.device_count() {
            Ok(count) => count,
            Err(error) => {
                self.nvml = None;
                self.restarted = out.at();
                return Err(CollectError::failed(format!("NVIDIA's library does not count its GPUs: {error}")));
            }
        };
        let mut lost = None;
        for index in (0..count).filter(|index| self.only.is_empty() || self.only.contains(index)) {
            let found = nvml.device_by_index(index).and_then(|device| Ok((device.uuid()?, device)));
            match found {
                Ok((uuid, device)) => read(&device, self.numbers.of(&uuid, index), out),
                Err(error) => {
                    lost.get_or_insert_with(|| format!("GPU {index} does not answer: {error}"));
                }
            }
        }
        lost.map_or(Ok(()), |reason| Err(CollectError::partial(reason)))
    }
}

/// Which number stands for which GPU.
#[derive(Default)]
struct Numbers {
    by_uuid: HashMap<String, u32>,
}

impl Numbers {
    /// The number of a GPU: the one that it has, else its index, else the lowest that no GPU ever had.
    fn of(&mut self, uuid: &str, index: u32) -> u32 {
        if let Some(number) = self.by_uuid.get(uuid) {
            return *number;
        }
        let taken = |number: &u32| self.by_uuid.values().any(|other| other == number);
        let number = if taken(&index) { (0..).find(|n| !taken(n)).unwrap_or(index) } else { index };
        self.by_uuid.insert(uuid.to_string(), number);
        number
    }
}

fn read(device: &Device<'_>, i: u32, out: &mut Out) {
    if let Ok(rates) = device.utilization_rates() {
        out.put_some(&gpu::UTILISATION, i, percent(rates.gpu));
        out.put_some(&gpu::MEMORY_ACTIVITY, i, percent(rates.memory));
    }
    if let Some(memory) = device.memory_info().ok().filter(|memory| memory.total > 0) {
        out.put(&gpu::MEMORY_ALLOCATED_BYTES, i, memory.used as f64);
        out.put(&gpu::MEMORY_TOTAL_BYTES, i, memory.total as f64);
        out.put(&gpu::MEMORY_ALLOCATED, i, 100.0 * memory.used as f64 / memory.total as f64);
    }
    out.put_some(&gpu::TEMP, i, device.temperature(TemperatureSensor::Gpu).ok().filter(|t| *t <= 150).map(f64::from));
    let watts = |milliwatts: Result<u32, NvmlError>| milliwatts.ok().map(|mw| f64::from(mw) / 1000.0);
    let limit = watts(device.enforced_power_limit());
    let power = watts(device.power_usage());
    out.put_some(&gpu::POWER_WATTS, i, power);
    out.put_some(&gpu::POWER_LIMIT_WATTS, i, limit);
    out.put_some(&gpu::POWER_PERCENT, i, power.zip(limit).filter(|(_, l)| *l > 0.0).map(|(p, l)| 100.0 * p / l));
    out.put_some(&gpu::ENERGY_JOULES, i, device.total_energy_consumption().ok().map(|mj| mj as f64 / 1000.0));
    let clock = |clock| device.clock_info(clock).ok().map(f64::from);
    out.put_some(&gpu::SM_CLOCK, i, clock(Clock::SM));
    out.put_some(&gpu::MEMORY_CLOCK, i, clock(Clock::Memory));
    out.put_some(&gpu::FAN_SPEED, i, device.fan_speed(0).ok().map(f64::from));
    let errors = |kind| device.memory_error_counter(kind, EccCounter::Volatile, MemoryLocation::Device).ok();
    out.put_some(&gpu::CORRECTED_ERRORS, i, errors(MemoryError::Corrected).map(|n| n as f64));
    out.put_some(&gpu::UNCORRECTED_ERRORS, i, errors(MemoryError::Uncorrected).map(|n| n as f64));
}

/// A driver that is being reset answers numbers that no utilisation has.
fn percent(value: u32) -> Option<f64> {
    (value <= 100).then(|| f64::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_keeps_its_number_when_indices_move() {
        let mut numbers = Numbers::default();
        assert_eq!([numbers.of("a", 0), numbers.of("b", 1), numbers.of("c", 2)], [0, 1, 2]);
        // The first one is gone, and a new one comes in last.
        assert_eq!([numbers.of("b", 0), numbers.of("c", 1), numbers.of("d", 2)], [1, 2, 3]);
        assert_eq!(numbers.of("a", 0), 0);
    }

    #[test]
    fn a_missing_library_is_absent_and_says_how_to_get_it() {
        let library = Some("/nowhere/libnvidia-ml.so.1".into());
        let error = open(&Options { nvml_library: library, ..Options::default() }, &Roots::default()).err().unwrap();
        assert_eq!(error.kind, OpenErrorKind::Absent);
        assert_eq!(error.tried, ["/nowhere/libnvidia-ml.so.1"]);
        assert_eq!(error.reason, "/nowhere/libnvidia-ml.so.1 was not found");
        assert!(error.remedy.contains("library under [collectors.nvidia]"));
    }

    #[test]
    fn a_file_that_is_no_library_failed() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libnvidia-ml.so.1");
        std::fs::write(&library, "not a library").unwrap();
        let options = Options { nvml_library: Some(library), ..Options::default() };
        let error = open(&options, &Roots::default()).err().unwrap();
        assert_eq!(error.kind, OpenErrorKind::Failed);
        assert!(error.reason.contains("could not be loaded"), "{}", error.reason);
    }
}
