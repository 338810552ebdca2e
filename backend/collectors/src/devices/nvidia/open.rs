//! Opens the driver's library, or explains why it does not open.

use super::fleet::{Fleet, Survey, survey};
use super::kernel_log::KernelLog;
use super::library::Library;
use super::probe::Probe;
use super::smi::{self, Smi};
use super::tegra;
use super::{Nvidia, RESTART_INTERVAL};
use crate::host::facts;
use crate::host::process::Watched;
use crate::read::pids::Pids;
use crate::read::pool::ThreadPool;
use crate::read::{dylib, exec, pci};
use crate::{OpenError, OpenErrorKind, OptionRow, Options, Part, Roots};
use inventory::GpuNumbers;
use nvml_wrapper::error::NvmlError;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The library's name where the driver installs it.
const LIBRARY: &str = if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" };

/// Vendor of NVIDIA's GPUs on the PCI bus.
const PCI_VENDOR: &str = "0x10de";

const WITHOUT_PCI: &str = "if there is one anyway, install NVIDIA's driver, or set library under [collectors.nvidia]";

/// Time to wait before closing a library, because other threads may still be in it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) static LIBRARY_PATH: OptionRow = OptionRow::path("library", "NVML library to use instead of the system's");

pub(super) static COMMAND: OptionRow =
    OptionRow::path("command", "nvidia-smi executable to use where the library cannot be loaded");

/// Earlier place of `gpu`, when it selected among NVIDIA's GPUs only.
static GPUS: OptionRow = OptionRow::moved_gpus("gpus", "gpu");

/// Keys below `[collectors.nvidia]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&LIBRARY_PATH, &COMMAND, &GPUS];

/// Opens the library and lists GPUs; if it cannot be loaded, opens NVIDIA's tool. On a Jetson the kernel's files join.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    tegra::add(open_with(options, roots, KernelLog::open(&roots.dev)), options, roots)
}

/// Same with a given kernel log.
pub(super) fn open_with(options: &Options, roots: &Roots, kernel_log: KernelLog) -> Result<Vec<Part>, OpenError> {
    let path = dylib::name(options.own.path(&LIBRARY_PATH), LIBRARY);
    let library = match Library::start(&path) {
        Ok(library) => library,
        Err(error @ NvmlError::LibloadingError(_)) => {
            return tool(options, roots, kernel_log, open_error(&path, &error));
        }
        Err(error) => return Err(open_error(&path, &error)),
    };
    let tried = vec![Path::new(&path).display().to_string()];
    let survey = survey(&library, None, true, &options.gpu_numbers).map_err(|error| open_error(&path, &error))?;
    if survey.count == 0 {
        let remedy = "check with nvidia-smi that the GPU is passed to this machine or container";
        return Err(OpenError::absent(tried, "the driver runs but reports no GPU", remedy));
    }
    let mut nvidia = Nvidia {
        path,
        library: None,
        fleet: Fleet::new(options.gpu_numbers.clone(), options.gpus.clone()),
        pool: ThreadPool::new("nvidia"),
        watched: Watched::new(roots, &options.pids),
        listener: None,
        xids: Default::default(),
        kernel_log,
        deaf: None,
        processes: HashSet::new(),
        proc: roots.proc.clone(),
        pids: Pids::new(&roots.proc, super::DEVICE_FILE),
        are_unknown: false,
        foreign: None,
        machine_memory: facts::memory_bytes(roots),
        sharer: None,
        tables: options.processes.clone(),
        busy: false,
        probe: Probe::new(exec::find(&["nvidia-smi"], smi::DIRS, options.own.path(&COMMAND)).ok()),
        failed: None,
        last_tick: None,
        looked: Duration::ZERO,
        restarted: Duration::ZERO,
    };
    let tried: Vec<String> = tried.into_iter().chain(names(&library, &survey, &options.gpu_numbers)).collect();
    nvidia.started(Arc::new(library), survey, Duration::ZERO);
    Ok(Part::only(tried, nvidia))
}

/// Names of the driver and its GPUs, for doctor and for the labels of GPUs.
fn names(library: &Library, survey: &Survey, numbers: &GpuNumbers) -> Vec<String> {
    let driver = library.nvml().sys_driver_version().ok();
    driver.iter().for_each(|version| numbers.driven_by(version.clone()));
    let mut names: Vec<String> = driver.map(|version| format!("driver {version}")).into_iter().collect();
    for found in survey.found.iter().flatten() {
        let Ok((handle, uuid)) = &found.gpu else { continue };
        let device = library.device(*handle);
        let (name, pci) =
            (device.name().ok(), device.pci_info().ok().map(|pci| pci.bus_id).filter(|id| !id.is_empty()));
        numbers.describe(uuid, name.clone(), pci.clone());
        let name = name.unwrap_or_else(|| "a GPU without a name".into());
        let place = pci.map(|pci| format!(" at {pci}")).unwrap_or_default();
        let is_shared = matches!(library.memory(*handle), Err(NvmlError::NotSupported));
        let memory = if is_shared { ", memory shared with the machine" } else { "" };
        let fabric = library.fabric(*handle).ok().and_then(|fabric| Some((fabric.cluster?, fabric.clique?)));
        let fabric = fabric.map_or(String::new(), |(cluster, clique)| {
            let cluster: String = cluster.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(", NVLink cluster {cluster}, clique {clique}")
        });
        names.push(format!("index {}: {name}{place}{memory}{fabric}", found.index));
    }
    names
}

/// Opens the tool in place of the library, or returns the reasons why neither works.
fn tool(options: &Options, roots: &Roots, kernel_log: KernelLog, library: OpenError) -> Result<Vec<Part>, OpenError> {
    match exec::find(&["nvidia-smi"], smi::DIRS, options.own.path(&COMMAND)) {
        Ok(path) => {
            let tried = vec![library.reason, format!("{} {}", path.display(), smi::FORMS[0].args.join(" "))];
            let (numbers, only) = (options.gpu_numbers.clone(), options.gpus.clone());
            let watched = Watched::new(roots, &options.pids);
            Ok(Part::only(
                tried,
                Smi {
                    path,
                    numbers,
                    only,
                    watched,
                    pids: Pids::new(&roots.proc, super::DEVICE_FILE),
                    kernel_log,
                    xids: HashMap::new(),
                    next: Duration::ZERO,
                    form: 0,
                    refused: Vec::new(),
                },
            ))
        }
        Err(tool) if options.own.path(&COMMAND).is_some() || tool.kind == OpenErrorKind::Denied => Err(tool),
        Err(_) => Err(neither(options, roots, library)),
    }
}

/// Why neither the library nor the tool is here: on a machine without such a card no driver is missing.
fn neither(options: &Options, roots: &Roots, library: OpenError) -> OpenError {
    let tried: Vec<String> = library.tried.into_iter().chain(["nvidia-smi".into()]).collect();
    match options.own.path(&LIBRARY_PATH).is_none() && pci::has_gpu(&roots.sys, PCI_VENDOR) == Some(false) {
        true => OpenError::absent(tried, "there is no NVIDIA GPU among the PCI devices", WITHOUT_PCI),
        false => OpenError { tried, ..library },
    }
}

/// Closes the library if no call is running in it, and starts it again.
pub(super) fn start_anew(
    old: Option<Arc<Library>>,
    path: &OsStr,
    numbers: &GpuNumbers,
) -> Result<(Arc<Library>, Survey), String> {
    if let Some(old) = old {
        let end = Instant::now() + CLOSE_TIMEOUT;
        while Arc::strong_count(&old) > 1 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        // If a call hangs in it, the library stays open, and the start below is a second one.
        drop(old);
    }
    let says = |error: NvmlError| {
        let error = open_error(path, &error);
        format!("{}; {}; tried again every {} s", error.reason, error.remedy, RESTART_INTERVAL.as_secs())
    };
    let library = Library::start(path).map_err(says)?;
    let survey = survey(&library, None, true, numbers).map_err(says)?;
    Ok((Arc::new(library), survey))
}

fn open_error(library: &OsStr, error: &NvmlError) -> OpenError {
    let shown = Path::new(library).display().to_string();
    let says = |text: &str| format!("{shown}: {text}");
    let name: OsString = library.to_owned();
    let (kind, reason, remedy) = match error {
        NvmlError::LibloadingError(loader) if dylib::is_file(&name) => (
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
            says("the library and the loaded driver have different versions"),
            "restart the machine to load the installed driver",
        ),
        NvmlError::NoPermission => (
            OpenErrorKind::Denied,
            says("this user has no permission to use the driver"),
            "give this user read and write access to /dev/nvidia*, or add it to the group that has it",
        ),
        NvmlError::Unknown | NvmlError::OperatingSystem => (
            OpenErrorKind::Failed,
            says(&format!("{error}; a container can lose its devices like this when systemd reloads its units")),
            "restart the container, or pass the devices with --device /dev/nvidia0 and so on",
        ),
        other => (OpenErrorKind::Failed, says(&other.to_string()), "check the output of nvidia-smi"),
    };
    OpenError { kind, tried: vec![shown], reason, remedy: remedy.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnOptions;

    #[test]
    fn a_missing_library_is_absent_and_says_how_to_get_it() {
        let own = OwnOptions::default().with(&LIBRARY_PATH, "/nowhere/libnvidia-ml.so.1");
        let error = open(&Options { own, ..Options::default() }, &Roots::default()).err().unwrap();
        assert_eq!(error.kind, OpenErrorKind::Absent);
        assert_eq!(error.tried, ["/nowhere/libnvidia-ml.so.1", "nvidia-smi"]);
        assert_eq!(error.reason, "/nowhere/libnvidia-ml.so.1 was not found");
        assert!(error.remedy.contains("library under [collectors.nvidia]"));
    }

    #[test]
    fn a_machine_without_such_a_card_is_not_told_that_a_driver_lacks() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::below(dir.path());
        let card = roots.sys.join("bus/pci/devices/0000:01:00.0");
        std::fs::create_dir_all(card.parent().unwrap()).unwrap();
        let missing = || {
            let error = OpenError::absent(["x".to_string()], "x was not found", "install NVIDIA's driver");
            neither(&Options::default(), &roots, error)
        };
        let error = missing();
        assert_eq!(error.reason, "there is no NVIDIA GPU among the PCI devices");
        assert!(error.remedy.starts_with("if there is one anyway"), "{}", error.remedy);
        std::fs::create_dir_all(&card).unwrap();
        std::fs::write(card.join("vendor"), "0x10de\n").unwrap();
        std::fs::write(card.join("class"), "0x030200\n").unwrap();
        assert_eq!(missing().reason, "x was not found");
    }

    #[test]
    fn a_file_that_is_no_library_failed() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libnvidia-ml.so.1");
        std::fs::write(&library, "not a library").unwrap();
        let options = Options { own: OwnOptions::default().with(&LIBRARY_PATH, library), ..Options::default() };
        let error = open(&options, &Roots::default()).err().unwrap();
        assert_eq!(error.kind, OpenErrorKind::Failed);
        assert!(error.reason.contains("could not be loaded"), "{}", error.reason);
    }
}
