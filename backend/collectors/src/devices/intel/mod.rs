//! Intel GPUs: read from the kernel's own files, else from the stream of xpu-smi.
//!
//! The files have no memory in use, and of utilization only the time outside of the idle state. xpu-smi has both on data
//! center cards, and replaces the files if the configuration names it.

mod sysfs;
mod xpu_smi;

use crate::read::{drm, exec, pci};
use crate::{OpenError, OpenErrorKind, OptionRow, Options, Part, Roots};

/// Driver names of Intel's cards.
const DRIVERS: &[&str] = &["i915", "xe"];

/// Tool names; the second is that of older releases.
const TOOLS: &[&str] = &["xpu-smi", "xpumcli"];

const DIRS: &[&str] = &["/usr/bin", "/opt/xpum/bin"];

const REMEDY: &str = "load the driver: sudo modprobe xe, or i915 for older cards; in a container pass /sys/class/drm, or \
                      set command under [collectors.intel] to xpu-smi";

/// Vendor of Intel's GPUs on the PCI bus.
const PCI_VENDOR: &str = "0x8086";

const WITHOUT_PCI: &str = "if there is one anyway, set command under [collectors.intel] to xpu-smi";

static COMMAND: OptionRow = OptionRow::path("command", "xpu-smi executable to use instead of the kernel's files");

/// Keys below `[collectors.intel]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&COMMAND];

/// Opens the tool in the configuration, else all cards in /sys, else an installed tool.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    if let Some(configured) = options.own.path(&COMMAND) {
        return Ok(xpu_smi::open(exec::find(TOOLS, DIRS, Some(configured))?, options));
    }
    let cards = drm::cards(&roots.sys, DRIVERS);
    if !cards.is_empty() {
        return Ok(drm::kept(cards, options)?.into_iter().map(|card| sysfs::part(card, options, roots)).collect());
    }
    match exec::find(TOOLS, DIRS, None) {
        Ok(path) => Ok(xpu_smi::open(path, options)),
        Err(error) if error.kind == OpenErrorKind::Absent => {
            let mut tried = vec![drm::folder(&roots.sys).display().to_string()];
            tried.extend(TOOLS.iter().map(|name| name.to_string()));
            if pci::has_gpu(&roots.sys, PCI_VENDOR) == Some(false) {
                return Err(OpenError::absent(tried, "there is no Intel GPU among the PCI devices", WITHOUT_PCI));
            }
            let reason = "the drivers i915 and xe have no card here, and xpu-smi is not installed";
            Err(OpenError::absent(tried, reason, REMEDY))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnOptions;

    #[test]
    fn nothing_is_absent_and_says_what_to_do() {
        let sys = tempfile::tempdir().unwrap();
        let error = open(&Options::default(), &Roots::below(sys.path())).err().expect("nothing opens");
        assert_eq!(error.kind, OpenErrorKind::Absent);
        assert!(error.remedy.contains("modprobe xe"), "{}", error.remedy);
        let options = Options { own: OwnOptions::default().with(&COMMAND, "/nowhere/xpu-smi"), ..Options::default() };
        let error = open(&options, &Roots::below(sys.path())).err().expect("nothing opens");
        assert_eq!(error.kind, OpenErrorKind::Failed);
    }

    #[test]
    fn a_machine_without_such_a_card_is_not_told_to_load_a_driver() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::below(dir.path());
        std::fs::create_dir_all(roots.sys.join("bus/pci/devices")).unwrap();
        let error = open(&Options::default(), &roots).err().expect("nothing opens");
        assert_eq!(error.reason, "there is no Intel GPU among the PCI devices");
        assert!(!error.remedy.contains("modprobe"), "{}", error.remedy);
    }
}
