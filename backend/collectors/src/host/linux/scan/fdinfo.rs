//! Memory that a process holds on AMD's and Intel's GPUs, from their drivers' `fdinfo` of each open device.
//!
//! It needs no library, and no root for the user's own processes. Devices are recognized by link names, so only those
//! few files are opened. The value is the memory in the card, not the requested one.

use crate::read::procfs::{fill, lines};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// Drivers with these values. NVIDIA's come from its library.
pub(super) const DRIVERS: &[&str] = &["amdgpu", "radeon", "i915", "xe"];

/// Maximum number of open files of a process that are checked.
const MAX_FILES: usize = 4096;

/// Bytes in the memory of cards; none if the process has no such device open, or may not be read.
pub(super) fn gpu_memory(process: &Path, buffer: &mut Vec<u8>) -> Option<u64> {
    let mut clients = HashMap::new();
    for link in std::fs::read_dir(process.join("fd")).ok()?.flatten().take(MAX_FILES) {
        let is_device = std::fs::read_link(link.path()).is_ok_and(|to| to.starts_with("/dev/dri"));
        let file = is_device.then(|| File::open(process.join("fdinfo").join(link.file_name())).ok()).flatten();
        if let Some(n) = file.and_then(|file| fill(&file, buffer).ok())
            && let Some((client, bytes)) = client(&buffer[..n])
        {
            // A duplicated or inherited device is the same client under several descriptors.
            clients.insert(client, bytes);
        }
    }
    (!clients.is_empty()).then(|| clients.values().fold(0, |sum, bytes| u64::saturating_add(sum, *bytes)))
}

/// The card and ID of a client, and its bytes in the card's own memory.
fn client(text: &[u8]) -> Option<((String, String), u64)> {
    let pairs: Vec<(&str, &str)> = lines(text)
        .filter_map(|line| std::str::from_utf8(line).ok()?.split_once(':'))
        .map(|(key, value)| (key, value.trim()))
        .collect();
    let value = |key: &str| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    value("drm-driver").filter(|driver| DRIVERS.contains(driver))?;
    // Resident memory comes first. `memory` is its older name, and `total` includes evicted memory.
    let kinds = ["drm-resident-", "drm-memory-", "drm-total-"].map(|kind| held(&pairs, kind));
    let bytes = kinds.into_iter().flatten().next()?;
    Some(((value("drm-pdev").unwrap_or("").into(), value("drm-client-id")?.into()), bytes))
}

/// The sum over the card's own regions of one kind; none if there is none, or if one cannot be parsed.
fn held(pairs: &[(&str, &str)], kind: &str) -> Option<u64> {
    let own = |(key, value): &(&str, &str)| {
        let region = key.strip_prefix(kind)?.trim_end_matches(|c: char| c.is_ascii_digit());
        ["vram", "local"].contains(&region).then(|| bytes(value))
    };
    let regions: Vec<Option<u64>> = pairs.iter().filter_map(own).collect();
    let sum = regions.iter().try_fold(0u64, |sum, bytes| sum.checked_add((*bytes)?));
    sum.filter(|_| !regions.is_empty())
}

/// `12 KiB`; without a unit it is bytes.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let factor = match unit.trim() {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes < 1 << 50)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const AMD: &str = "pos:\t0\nflags:\t02\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n\
                       drm-memory-vram:\t2048 KiB\ndrm-memory-gtt:\t99 KiB\ndrm-total-vram:\t4096 KiB\n";
    const XE: &str = "drm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t0000:04:00.0\ndrm-resident-vram0:\t1 MiB\n\
                      drm-resident-vram1:\t2 MiB\ndrm-resident-gtt:\t9 MiB\n";

    fn read(files: &[(&str, &str, &str)]) -> Option<u64> {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["fd", "fdinfo"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for (number, to, text) in files {
            symlink(to, dir.path().join("fd").join(number)).unwrap();
            std::fs::write(dir.path().join("fdinfo").join(number), text).unwrap();
        }
        gpu_memory(dir.path(), &mut Vec::new())
    }

    #[test]
    fn clients_are_counted_once_and_cards_are_summed() {
        let node = "/dev/dri/renderD128";
        assert_eq!(read(&[("3", node, AMD), ("4", node, AMD), ("5", "/dev/dri/renderD129", XE)]), Some(5 << 20));
        assert_eq!(read(&[("3", node, &XE.replace("1 MiB", "0").replace("2 MiB", "0"))]), Some(0));
        assert_eq!(read(&[("0", "/dev/null", AMD), ("1", "socket:[1]", XE)]), None, "no device");
        assert_eq!(read(&[("3", node, &AMD.replace("amdgpu", "nvidia-drm"))]), None);
        assert_eq!(read(&[]), None);
        assert_eq!(gpu_memory(Path::new("/nowhere"), &mut Vec::new()), None);
    }

    #[test]
    fn text_that_is_cut_or_wrong_is_no_memory() {
        for wrong in ["x KiB", "-1 KiB", "1 GiBs", "99999999999999999999", "18446744073709551615 MiB", ""] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(client(XE.replace("2 MiB", "N/A").as_bytes()), None, "a region that cannot be read is not zero");
        for text in [AMD, XE] {
            for end in 0..text.len() {
                let _ = client(&text.as_bytes()[..end]);
            }
        }
    }
}
