//! The GPU at the other end of each XGMI link.
//!
//! `xgmi_port_num` of a card has a line for each link, with hexadecimal numbers: `01:03 ->  05:02` is link 3 of this card,
//! which is node 1 of its hive, to link 2 of node 5. `xgmi_hive_info/node5` leads to the folder of that GPU.
//! (`amdgpu_xgmi.c` of the kernel.)

use std::path::Path;

/// Maximum number of lines to read: more than a hive has links at one GPU.
const MAX_LINES: usize = 256;

/// A link and the PCI address of the GPU at its other end.
pub(super) type Neighbor = (usize, String);

/// Reads the neighbors of a card, by its folder `device`. Empty where the driver does not name them.
pub(super) fn neighbors(device: &Path) -> Vec<Neighbor> {
    let Ok(text) = std::fs::read_to_string(device.join("xgmi_port_num")) else { return Vec::new() };
    let hive = device.join("xgmi_hive_info");
    let neighbor = |line: &str| {
        let (link, node) = parse(line)?;
        let folder = std::fs::canonicalize(hive.join(format!("node{node}"))).ok()?;
        Some((link, folder.file_name()?.to_str()?.to_lowercase()))
    };
    text.lines().take(MAX_LINES).filter_map(neighbor).collect()
}

/// The link of a line, and the node at its other end.
fn parse(line: &str) -> Option<(usize, usize)> {
    let (own, other) = line.split_once("->")?;
    let number = |text: &str| usize::from_str_radix(text.trim(), 16).ok();
    Some((number(own.split_once(':')?.1)?, number(other.split_once(':')?.0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_driver_prints_them() {
        assert_eq!(parse("01:03 ->  05:02"), Some((3, 5)));
        assert_eq!(parse("01:0a ->  10:02"), Some((10, 16)));
        for line in ["", "->", "01 -> 02", "01:xx ->  05:02", "01:03 ->  zz:02", "01:03 05:02"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn nodes_lead_to_the_addresses_of_gpus() {
        let dir = tempfile::tempdir().expect("a folder");
        let pci = dir.path().join("devices");
        for address in ["0000:C1:00.0", "0000:c2:00.0"] {
            std::fs::create_dir_all(pci.join(address)).expect("a folder");
        }
        let own = pci.join("0000:C1:00.0");
        std::fs::create_dir(own.join("xgmi_hive_info")).expect("a folder");
        std::os::unix::fs::symlink(pci.join("0000:c2:00.0"), own.join("xgmi_hive_info/node2")).expect("a link");
        std::fs::write(own.join("xgmi_port_num"), "01:00 ->  02:01\n01:01 ->  02:00\n01:02 ->  03:00\n")
            .expect("a file");
        let second = "0000:c2:00.0".to_string();
        assert_eq!(neighbors(&own), [(0, second.clone()), (1, second)], "node 3 is not there");
        assert_eq!(neighbors(&pci.join("0000:c2:00.0")), []);
    }
}
