//! Memory that a process holds on AMD's and Intel's GPUs, and the time of their engines that it used, from their
//! drivers' `fdinfo` of each open device.
//!
//! It needs no library, and no root for the user's own processes. Devices are recognized by link names, so only those
//! few files are opened. The memory is that in the card, not the requested one. Engines are counted in nanoseconds by
//! i915 and amdgpu (`drm-engine-render`), in cycles of all by xe (`drm-cycles-rcs`, `drm-total-cycles-rcs`).

use crate::read::procfs::{fill, lines};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// Drivers with these values. NVIDIA's come from its library.
pub(super) const DRIVERS: &[&str] = &["amdgpu", "radeon", "i915", "xe"];

/// Maximum number of open files of a process that are checked.
const MAX_FILES: usize = 4096;

/// Maximum number of engines of a process that are compared.
const MAX_ENGINES: usize = 1024;

/// Use of the cards by one process.
#[derive(Default)]
pub(super) struct GraphicsUse {
    /// Bytes in the memory of cards; none if the process has no such device open, or may not be read.
    pub memory: Option<u64>,
    pub engines: Engines,
}

/// Use of each engine, by card, client and class of the engine.
pub(super) type Engines = HashMap<(String, String, String), EngineUse>;

/// Use of one class of engines by one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EngineUse {
    /// Nanoseconds, or cycles where there is a total.
    busy: u64,
    /// Cycles that passed.
    total: Option<u64>,
    /// Number of engines of the class.
    capacity: u64,
}

/// Share of the busiest engine class between two readings that are `seconds` apart, percent. None if no client has
/// counters in both. A client that is new has no growth yet, and one whose counters fell is another one.
pub(super) fn share(before: &Engines, now: &Engines, seconds: f64) -> Option<f32> {
    let mut shares: HashMap<(&str, &str), f64> = HashMap::new();
    for ((card, client, engine), own) in now {
        let Some(earlier) = before.get(&(card.clone(), client.clone(), engine.clone())) else { continue };
        let Some(busy) = own.busy.checked_sub(earlier.busy) else { continue };
        let of = match own.total {
            Some(total) => earlier.total.and_then(|earlier| total.checked_sub(earlier)).map(|cycles| cycles as f64),
            None => Some(seconds * 1e9),
        };
        let Some(of) = of.filter(|of| *of > 0.0) else { continue };
        *shares.entry((card, engine)).or_default() += 100.0 * busy as f64 / of / own.capacity as f64;
    }
    let most = shares.into_values().max_by(f64::total_cmp)?;
    // The drivers account a job when it ends, so a long one may exceed the interval.
    Some(most.min(100.0) as f32)
}

/// Use of the cards by the process in this folder of /proc.
pub(super) fn read(process: &Path, buffer: &mut Vec<u8>) -> GraphicsUse {
    let (mut clients, mut engines) = (HashMap::new(), Engines::new());
    let Ok(links) = std::fs::read_dir(process.join("fd")) else { return GraphicsUse::default() };
    for link in links.flatten().take(MAX_FILES) {
        let is_device = std::fs::read_link(link.path()).is_ok_and(|to| to.starts_with("/dev/dri"));
        let file = is_device.then(|| File::open(process.join("fdinfo").join(link.file_name())).ok()).flatten();
        let Some(n) = file.and_then(|file| fill(&file, buffer).ok()) else { continue };
        let Some(client) = Client::from_text(&buffer[..n]) else { continue };
        // A duplicated or inherited device is the same client under several descriptors.
        if let Some(bytes) = client.memory() {
            clients.insert((client.card.to_string(), client.id.to_string()), bytes);
        }
        if engines.len() < MAX_ENGINES {
            engines.extend(client.engines());
        }
    }
    let memory = (!clients.is_empty()).then(|| clients.values().fold(0, |sum, bytes| u64::saturating_add(sum, *bytes)));
    GraphicsUse { memory, engines }
}

/// One client of a driver: an open device.
struct Client<'a> {
    card: &'a str,
    id: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Client<'a> {
    fn from_text(text: &'a [u8]) -> Option<Self> {
        let pairs: Vec<(&str, &str)> = lines(text)
            .filter_map(|line| std::str::from_utf8(line).ok()?.split_once(':'))
            .map(|(key, value)| (key, value.trim()))
            .collect();
        let value = |key: &str| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        value("drm-driver").filter(|driver| DRIVERS.contains(driver))?;
        let (card, id) = (value("drm-pdev").unwrap_or(""), value("drm-client-id")?);
        Some(Client { card, id, pairs })
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// Its bytes in the card's own memory.
    fn memory(&self) -> Option<u64> {
        // Resident memory comes first. `memory` is its older name, and `total` includes evicted memory.
        let kinds = ["drm-resident-", "drm-memory-", "drm-total-"].map(|kind| held(&self.pairs, kind));
        kinds.into_iter().flatten().next()
    }

    /// Use of each class of engines.
    fn engines(&self) -> Vec<((String, String, String), EngineUse)> {
        let of = |(key, value): &(&str, &str)| {
            let (class, busy, total) = match (key.strip_prefix("drm-cycles-"), key.strip_prefix("drm-engine-")) {
                (Some(class), _) => {
                    let total = self.value(&format!("drm-total-cycles-{class}"))?.parse().ok()?;
                    (class, value.parse().ok()?, Some(total))
                }
                (None, Some(class)) if !class.starts_with("capacity-") => {
                    (class, value.strip_suffix(" ns")?.parse().ok()?, None)
                }
                _ => return None,
            };
            let capacity = self.value(&format!("drm-engine-capacity-{class}")).map_or(Some(1), |n| n.parse().ok())?;
            let key = (self.card.to_string(), self.id.to_string(), class.to_string());
            (capacity > 0).then_some((key, EngineUse { busy, total, capacity }))
        };
        self.pairs.iter().filter_map(of).collect()
    }
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
        super::read(dir.path(), &mut Vec::new()).memory
    }

    fn engines(text: &str) -> Engines {
        Client::from_text(text.as_bytes()).map(|client| client.engines().into_iter().collect()).unwrap_or_default()
    }

    const I915: &str = "drm-driver: i915\ndrm-client-id: 3\ndrm-pdev: 0000:00:02.0\ndrm-engine-render: 1000000000 ns\n\
                        drm-engine-video: 100000000 ns\ndrm-engine-capacity-video: 2\n";
    const XE_ENGINES: &str = "drm-driver:\txe\ndrm-client-id:\t9\ndrm-pdev:\t0000:03:00.0\ndrm-cycles-rcs:\t100\n\
                              drm-total-cycles-rcs:\t1000\ndrm-cycles-ccs:\t0\ndrm-total-cycles-ccs:\t1000\n\
                              drm-engine-capacity-ccs:\t4\n";

    #[test]
    fn the_share_of_a_process_is_that_of_its_busiest_engine() {
        let later = I915.replace("1000000000", "2500000000").replace("100000000 ns", "4100000000 ns");
        assert_eq!(share(&engines(I915), &engines(&later), 5.0), Some(40.0), "4 s on two engines in 5 s");
        let later = XE_ENGINES.replace(":\t100\n", ":\t350\n").replace(":\t1000", ":\t2000");
        assert_eq!(share(&engines(XE_ENGINES), &engines(&later), 5.0), Some(25.0));
        assert_eq!(share(&engines(I915), &engines(I915), 5.0), Some(0.0), "it rests");
        let job = I915.replace("1000000000", "9000000000");
        assert_eq!(share(&engines(I915), &engines(&job), 5.0), Some(100.0), "a long job is accounted at its end");
    }

    #[test]
    fn without_two_readings_of_a_client_there_is_no_share() {
        let none = Engines::new();
        assert_eq!(share(&none, &engines(I915), 5.0), None);
        assert_eq!(share(&engines(XE_ENGINES), &engines(XE_ENGINES), 5.0), None, "no cycles passed");
        assert_eq!(
            share(
                &engines(&I915.replace("1000000000", "2000000000").replace(": 100000000 ns", ": 9 s")),
                &engines(I915),
                5.0
            ),
            None,
            "counters that fell"
        );
        for wrong in [I915.replace(" ns", ""), I915.replace("i915", "nvidia"), I915.replace("drm-client-id: 3\n", "")] {
            assert_eq!(engines(&wrong), none, "{wrong}");
        }
        assert_eq!(engines(&XE_ENGINES.replace("drm-total-cycles-", "x")), none, "cycles of an unknown total");
    }

    #[test]
    fn clients_are_counted_once_and_cards_are_summed() {
        let node = "/dev/dri/renderD128";
        assert_eq!(read(&[("3", node, AMD), ("4", node, AMD), ("5", "/dev/dri/renderD129", XE)]), Some(5 << 20));
        assert_eq!(read(&[("3", node, &XE.replace("1 MiB", "0").replace("2 MiB", "0"))]), Some(0));
        assert_eq!(read(&[("0", "/dev/null", AMD), ("1", "socket:[1]", XE)]), None, "no device");
        assert_eq!(read(&[("3", node, &AMD.replace("amdgpu", "nvidia-drm"))]), None);
        assert_eq!(read(&[]), None);
        assert_eq!(super::read(Path::new("/nowhere"), &mut Vec::new()).memory, None);
    }

    #[test]
    fn text_that_is_cut_or_wrong_is_no_memory() {
        for wrong in ["x KiB", "-1 KiB", "1 GiBs", "99999999999999999999", "18446744073709551615 MiB", ""] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        let unknown = XE.replace("2 MiB", "N/A");
        assert_eq!(
            Client::from_text(unknown.as_bytes()).and_then(|client| client.memory()),
            None,
            "a region that cannot be read is not zero"
        );
        for text in [AMD, XE, I915, XE_ENGINES] {
            for end in 0..text.len() {
                let _ = Client::from_text(&text.as_bytes()[..end]).map(|client| (client.memory(), client.engines()));
            }
        }
    }
}
