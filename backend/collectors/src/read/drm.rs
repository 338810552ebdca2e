//! Graphics cards in /sys: list, drivers, sensors. Nothing here wakes a sleeping card.

use super::sysfs::names;
use crate::{OpenError, Options};
use std::path::{Path, PathBuf};

/// A card with a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// N of `cardN`.
    pub number: u32,
    /// Its driver: `amdgpu`, `xe`.
    pub driver: String,
    /// Its permanent PCI address.
    pub pci: String,
    /// Its folder, `.../class/drm/cardN`.
    pub dir: PathBuf,
}

/// The folder of all cards.
pub(crate) fn folder(sys: &Path) -> PathBuf {
    sys.join("class/drm")
}

/// The cards of these drivers, ordered by PCI address. A card without an address is a partition of another one.
pub(crate) fn cards(sys: &Path, drivers: &[&str]) -> Vec<Card> {
    let folder = folder(sys);
    let mut cards: Vec<Card> = names(&folder)
        .iter()
        .filter_map(|name| {
            let number = name.strip_prefix("card")?.parse().ok()?;
            let dir = folder.join(name);
            let uevent = std::fs::read_to_string(dir.join("device/uevent")).ok()?;
            let value = |key: &str| uevent.lines().find_map(|line| line.strip_prefix(key)).map(str::to_string);
            let driver = value("DRIVER=").filter(|driver| drivers.contains(&driver.as_str()))?;
            Some(Card { number, driver, pci: value("PCI_SLOT_NAME=")?.to_lowercase(), dir })
        })
        .collect();
    cards.sort_by(|a, b| a.pci.cmp(&b.pci));
    cards
}

/// The cards selected by the user.
///
/// # Errors
/// Absent if no card is selected.
pub(crate) fn kept(cards: Vec<Card>, options: &Options) -> Result<Vec<Card>, OpenError> {
    let tried: Vec<String> = cards.iter().map(|card| card.dir.display().to_string()).collect();
    let kept: Vec<Card> = cards.into_iter().filter(|card| options.keeps_gpu(card.number)).collect();
    match kept.is_empty() {
        false => Ok(kept),
        true => Err(OpenError::absent(tried, "--gpu excludes every card of this vendor", "name N of cardN")),
    }
}

impl Card {
    /// Whether it sleeps. Any other reading would wake it.
    pub fn sleeps(&self) -> bool {
        let state = std::fs::read_to_string(self.dir.join("device/power/runtime_status"));
        state.is_ok_and(|state| matches!(state.trim(), "suspended" | "suspending"))
    }

    /// Folder of its sensors.
    pub fn sensors(&self) -> Option<PathBuf> {
        let folder = self.dir.join("device/hwmon");
        names(&folder).into_iter().find(|name| name.starts_with("hwmon")).map(|name| folder.join(name))
    }

    /// Labels and names of sensors of a kind that have a file with this ending: `[("edge", "temp1"), ...]` for `temp`
    /// and `_input`. The label is empty if there is none.
    pub fn labels(sensors: &Path, kind: &str, ending: &str) -> Vec<(String, String)> {
        let names = names(sensors);
        let inputs = names.iter().filter_map(|name| name.strip_suffix(ending).filter(|name| name.starts_with(kind)));
        inputs
            .map(|name| {
                let label = std::fs::read_to_string(sensors.join(format!("{name}_label"))).unwrap_or_default();
                (label.trim().to_string(), name.to_string())
            })
            .collect()
    }
}

/// The number in a file of /sys: one terminated line, because a truncated number is another number.
pub(crate) fn number(path: &Path) -> Option<f64> {
    number_in(&std::fs::read(path).ok()?)
}

fn number_in(text: &[u8]) -> Option<f64> {
    let line = std::str::from_utf8(text.strip_suffix(b"\n")?).ok()?.trim();
    line.parse::<i64>().ok().map(|number| number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_whole_line() {
        assert_eq!(number_in(b"36000000\n"), Some(36_000_000.0));
        assert_eq!(number_in(b"-4000\n"), Some(-4000.0));
        for text in [&b"36000000"[..], b"", b"\n", b"N/A\n", b"3 6\n", b"99999999999999999999\n", b"\xff\n"] {
            assert_eq!(number_in(text), None, "{text:?}");
        }
    }

    #[test]
    fn partitions_connectors_and_other_drivers_are_no_cards() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join("class/drm").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:83:00.0\n");
        put("card1/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:0C:00.0\n");
        put("card2/device/uevent", "DRIVER=amdgpu\n");
        put("card3/device/uevent", "DRIVER=nvidia\nPCI_SLOT_NAME=0000:01:00.0\n");
        put("card0-DP-1/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:83:00.0\n");
        put("renderD128/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:83:00.0\n");
        put("card1/device/power/runtime_status", "suspended\n");
        let cards = cards(dir.path(), &["amdgpu"]);
        let found: Vec<_> = cards.iter().map(|c| (c.number, c.pci.as_str(), c.sleeps())).collect();
        assert_eq!(found, [(1, "0000:0c:00.0", true), (0, "0000:83:00.0", false)]);
    }
}
