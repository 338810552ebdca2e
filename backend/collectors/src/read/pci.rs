//! PCI devices in /sys, by their IDs.

use super::sysfs::names;
use std::path::Path;

/// Classes of graphics cards and of accelerators without a screen: the first digits of `class`.
const GPU_CLASSES: [&str; 2] = ["0x03", "0x12"];

/// Whether a device is a GPU of this vendor, such as `0x10de`. None if the devices cannot be listed, as on other systems
/// and in some sandboxes. Nothing here wakes a sleeping card.
pub(crate) fn has_gpu(sys: &Path, vendor: &str) -> Option<bool> {
    let folder = sys.join("bus/pci/devices");
    if !folder.is_dir() {
        return None;
    }
    let read = |slot: &str, file: &str| std::fs::read_to_string(folder.join(slot).join(file)).unwrap_or_default();
    Some(names(&folder).iter().any(|slot| {
        read(slot, "vendor").trim() == vendor && GPU_CLASSES.iter().any(|class| read(slot, "class").starts_with(class))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_told_by_its_vendor_and_its_class() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(has_gpu(sys.path(), "0x10de"), None, "there is no list");
        let device = |slot: &str, vendor: &str, class: &str| {
            let folder = sys.path().join("bus/pci/devices").join(slot);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(folder.join("class"), format!("{class}\n")).unwrap();
        };
        device("0000:00:01.0", "0x8086", "0x030000");
        device("0000:00:02.1", "0x10de", "0x040300");
        assert_eq!((has_gpu(sys.path(), "0x10de"), has_gpu(sys.path(), "0x8086")), (Some(false), Some(true)));
        device("0000:00:03.0", "0x10de", "0x030200");
        device("0000:00:04.0", "0x1002", "0x120000");
        assert_eq!((has_gpu(sys.path(), "0x10de"), has_gpu(sys.path(), "0x1002")), (Some(true), Some(true)));
    }
}
