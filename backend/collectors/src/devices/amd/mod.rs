//! AMD GPUs: read from the kernel's own files, else with rocm-smi or amd-smi.
//!
//! The files need no library, process or permission, so they come first. Each card is a part of its own: a card that
//! hangs during a reset costs only its own series. A tool in the configuration takes their place.

mod accelerator;
mod amd_smi;
mod answer;
mod attributes;
mod json;
mod metrics;
mod ras;
mod rocm_smi;
mod rocm_text;
mod sysfs;
mod tool;
mod xgmi;

use crate::read::{drm, exec, pci};
use crate::{OpenError, OpenErrorKind, OptionRow, Options, Part, Roots};

/// Driver names of AMD's cards; `radeon` is the one for old cards.
const DRIVERS: &[&str] = &["amdgpu", "radeon"];

/// Folders of the tools in AMD's packages.
const DIRS: &[&str] = &["/opt/rocm/bin", "/usr/bin"];

const REMEDY: &str = "load the driver: sudo modprobe amdgpu; in a container pass /sys/class/drm, or set rocm_smi or \
                      amd_smi under [collectors.amd]";

/// Vendor of AMD's GPUs on the PCI bus.
const PCI_VENDOR: &str = "0x1002";

const WITHOUT_PCI: &str = "if there is one anyway, set rocm_smi or amd_smi under [collectors.amd]";

static ROCM_SMI: OptionRow = OptionRow::path("rocm_smi", "rocm-smi executable to use instead of the kernel's files");

static AMD_SMI: OptionRow = OptionRow::path("amd_smi", "amd-smi executable to use instead of the kernel's files");

/// Keys below `[collectors.amd]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&ROCM_SMI, &AMD_SMI];

/// Opens the tool in the configuration, else all cards in /sys, else an installed tool.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    for (configured, tool) in [(&ROCM_SMI, &tool::ROCM_SMI), (&AMD_SMI, &tool::AMD_SMI)] {
        if let Some(configured) = options.own.path(configured) {
            let path = exec::find(tool.names, DIRS, Some(configured))?;
            return tool::open(tool, path, options);
        }
    }
    let cards = drm::cards(&roots.sys, DRIVERS);
    if !cards.is_empty() {
        return Ok(drm::kept(cards, options)?.into_iter().map(|card| sysfs::part(card, options, roots)).collect());
    }
    let mut tried = vec![drm::folder(&roots.sys).display().to_string()];
    for tool in [&tool::ROCM_SMI, &tool::AMD_SMI] {
        match exec::find(tool.names, DIRS, None) {
            Ok(path) => return tool::open(tool, path, options),
            Err(error) if error.kind == OpenErrorKind::Absent => tried.extend(tool.names.iter().map(|n| n.to_string())),
            Err(error) => return Err(error),
        }
    }
    if pci::has_gpu(&roots.sys, PCI_VENDOR) == Some(false) {
        return Err(OpenError::absent(tried, "there is no AMD GPU among the PCI devices", WITHOUT_PCI));
    }
    Err(OpenError::absent(
        tried,
        "the driver amdgpu has no card here, and neither rocm-smi nor amd-smi is installed",
        REMEDY,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnOptions;

    fn opened(options: &Options) -> OpenError {
        let sys = tempfile::tempdir().unwrap();
        open(options, &Roots::below(sys.path())).err().expect("nothing opens")
    }

    #[test]
    fn nothing_is_absent_and_says_what_to_do() {
        let error = opened(&Options::default());
        assert_eq!(error.kind, OpenErrorKind::Absent);
        assert!(error.tried[0].ends_with("class/drm") && error.tried.contains(&"rocm-smi".to_string()));
        assert!(error.remedy.contains("modprobe amdgpu"), "{}", error.remedy);
    }

    #[test]
    fn a_machine_without_such_a_card_is_not_told_to_load_a_driver() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::below(dir.path());
        std::fs::create_dir_all(roots.sys.join("bus/pci/devices")).unwrap();
        let error = open(&Options::default(), &roots).err().expect("nothing opens");
        assert_eq!(error.reason, "there is no AMD GPU among the PCI devices");
        assert!(!error.remedy.contains("modprobe"), "{}", error.remedy);
    }

    #[test]
    fn only_chosen_cards_are_read() {
        let sys = tempfile::tempdir().unwrap();
        for (card, pci) in [("card0", "0000:03:00.0"), ("card1", "0000:0c:00.0")] {
            let device = sys.path().join("sys/class/drm").join(card).join("device");
            std::fs::create_dir_all(&device).unwrap();
            std::fs::write(device.join("uevent"), format!("DRIVER=amdgpu\nPCI_SLOT_NAME={pci}\n")).unwrap();
        }
        let names = |gpus: &[u32]| {
            let options = Options { gpus: gpus.to_vec(), ..Options::default() };
            let parts = open(&options, &Roots::below(sys.path()));
            parts.map(|parts| parts.into_iter().map(|part| part.name).collect::<Vec<_>>()).map_err(|e| e.kind)
        };
        assert_eq!(names(&[]).map(|all| all.len()), Ok(2));
        assert_eq!(names(&[1, 7]), Ok(vec!["card1 0000:0c:00.0".to_string()]));
        assert_eq!(names(&[7]), Err(OpenErrorKind::Absent));
    }

    #[test]
    fn a_configured_tool_that_is_missing_failed() {
        let error =
            opened(&Options { own: OwnOptions::default().with(&ROCM_SMI, "/nowhere/rocm-smi"), ..Options::default() });
        assert_eq!(error.kind, OpenErrorKind::Failed);
        assert!(error.reason.contains("/nowhere/rocm-smi"), "{}", error.reason);
    }
}
