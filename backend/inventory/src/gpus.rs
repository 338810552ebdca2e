//! GPU numbers over all vendors: `gpu.{i}` is one space, and a number once assigned stays with its GPU.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of GPUs known only from other programs that have a number at a time.
const MAX_SCRAPED: usize = 1_024;
/// Time without a report after which such a GPU may lose its number. It does so only when all numbers are taken.
const FORGET_AFTER: Duration = Duration::from_secs(900);

/// Number of each GPU. Shared by the collectors of all vendors, and kept when they are reopened.
#[derive(Debug, Default)]
pub struct GpuNumbers {
    // Identities are UUIDs and PCI addresses of GPUs that this machine has shown, so entries of a driver need no
    // eviction. Entries from scraping are bounded.
    given: Mutex<HashMap<String, Given>>,
    /// Name and PCI address by identity, as far as a collector read them.
    about: Mutex<HashMap<String, About>>,
    /// Driver version, as the driver reports it.
    driver: Mutex<Option<String>>,
    /// Incremented at each change of the fields above.
    version: AtomicU64,
}

#[derive(Debug, Default)]
struct About {
    name: Option<String>,
    pci: Option<String>,
}

#[derive(Debug)]
struct Given {
    number: u32,
    /// A driver on this machine reports the GPU.
    driven: bool,
    /// Host name of the machine that holds it, as another program reports it.
    host: Option<String>,
    /// Monotonic time of the last report by another program.
    told: Duration,
}

impl GpuNumbers {
    /// Returns the number of a GPU: its present one, else the wanted one. If another GPU has that, the lowest free
    /// number above it.
    /// `identity` is permanent: UUID or PCI address.
    pub fn claim(&self, identity: &str, wanted: u32) -> u32 {
        let mut given = self.given.lock();
        if let Some(known) = given.get_mut(identity) {
            known.driven = true;
            known.host = None;
            return known.number;
        }
        let number = free(&given, wanted);
        given.insert(identity.to_string(), Given { number, driven: true, host: None, told: Duration::ZERO });
        self.version.fetch_add(1, Ordering::Relaxed);
        number
    }

    /// Same for a GPU that another program reports, at the monotonic time `now`. `host` is the machine that holds it.
    /// None if a driver here reports the same GPU (so it is not counted twice), and above [`MAX_SCRAPED`].
    pub fn claim_scraped(&self, identity: &str, wanted: u32, host: Option<&str>, now: Duration) -> Option<u32> {
        let mut given = self.given.lock();
        if let Some(known) = given.get_mut(identity) {
            known.told = now;
            if known.host.as_deref() != host && !known.driven {
                known.host = host.map(str::to_string);
            }
            return (!known.driven).then_some(known.number);
        }
        let scraped = |given: &HashMap<String, Given>| given.values().filter(|known| !known.driven).count();
        if scraped(&given) >= MAX_SCRAPED {
            given.retain(|_, known| known.driven || now.saturating_sub(known.told) < FORGET_AFTER);
            if scraped(&given) >= MAX_SCRAPED {
                return None;
            }
        }
        let number = free(&given, wanted);
        let host = host.map(str::to_string);
        given.insert(identity.to_string(), Given { number, driven: false, host, told: now });
        self.version.fetch_add(1, Ordering::Relaxed);
        Some(number)
    }

    /// The number of a GPU that has one, by its permanent identity.
    pub fn number_of(&self, identity: &str) -> Option<u32> {
        self.given.lock().get(identity).map(|known| known.number)
    }

    /// Sets name and PCI address of a GPU. None leaves the known value.
    pub fn describe(&self, identity: &str, name: Option<String>, pci: Option<String>) {
        let mut about = self.about.lock();
        let known = about.entry(identity.to_string()).or_default();
        known.name = name.or(known.name.take());
        known.pci = pci.or(known.pci.take());
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the name or the PCI address of a GPU is known.
    pub fn is_described(&self, identity: &str) -> bool {
        self.about.lock().get(identity).is_some_and(|about| about.name.is_some() || about.pci.is_some())
    }

    /// Sets the driver version of the GPUs.
    pub fn driven_by(&self, version: String) {
        *self.driver.lock() = Some(version);
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// A counter that rises with each change of numbers, names, addresses or driver.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Facts of this machine as key and value. `gpus` has the models with the count of each, or only the count if no
    /// model is known. `driver` has the version. Unknown facts are left out.
    pub fn facts(&self) -> Vec<(String, String)> {
        let known = self.known();
        let mut models: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        let here = |labels: &[(&str, String)]| labels.iter().all(|(label, _)| *label != "hostname");
        for (_, labels) in known.iter().filter(|(_, labels)| here(labels)) {
            let model = labels.iter().find(|(label, _)| *label == "name").map(|(_, name)| name.as_str());
            *models.entry(model).or_default() += 1;
        }
        let of_model = |(model, count): (&Option<&str>, &usize)| match (model, count) {
            (Some(model), 1) => (*model).to_string(),
            (Some(model), count) => format!("{count} × {model}"),
            (None, count) => count.to_string(),
        };
        let gpus = match models.len() {
            0 => None,
            _ => Some(models.iter().rev().map(of_model).collect::<Vec<_>>().join(" + ")),
        };
        let driver = self.driver.lock().clone();
        let facts = [("gpus", gpus), ("driver", driver)];
        facts.into_iter().filter_map(|(word, value)| Some((word.into(), value?))).collect()
    }

    /// PCI address of a GPU in the kernel's notation: `0000:65:00.0`.
    pub fn pci(&self, identity: &str) -> Option<String> {
        let about = self.about.lock();
        let pci = about.get(identity)?.pci.as_deref()?;
        // NVIDIA writes the domain with eight digits.
        let short = pci.strip_prefix("0000").filter(|rest| rest.find(':') == Some(4));
        Some(short.unwrap_or(pci).to_lowercase())
    }

    /// Number and labels of every GPU that has a number, in ascending order. The labels are `uuid`, `pci` and `name`,
    /// as far as known, and `hostname` for a GPU known only from another program.
    pub fn known(&self) -> Vec<(u32, Vec<(&'static str, String)>)> {
        let given = self.given.lock();
        let about = self.about.lock();
        let mut all: Vec<_> = given
            .iter()
            .map(|(identity, given)| {
                let about = about.get(identity);
                // An identity is a UUID, a PCI address, or a substitute of our own.
                let uuid = Some(identity).filter(|identity| identity.starts_with("GPU-"));
                let address = |text: &&String| text.split(':').count() == 3 && !text.contains(' ');
                let pci = about.and_then(|about| about.pci.as_ref()).or(Some(identity).filter(address));
                let name = about.and_then(|about| about.name.as_ref());
                let host = given.host.as_ref();
                let labels = [("uuid", uuid), ("pci", pci), ("name", name), ("hostname", host)];
                (given.number, labels.into_iter().filter_map(|(label, value)| Some((label, value?.clone()))).collect())
            })
            .collect();
        all.sort_unstable();
        all
    }
}

/// The wanted number, or the lowest above it that no GPU has.
fn free(given: &HashMap<String, Given>, wanted: u32) -> u32 {
    let taken: HashSet<u32> = given.values().map(|known| known.number).collect();
    (wanted..=u32::MAX).find(|number| !taken.contains(number)).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_keeps_its_number_when_indices_move() {
        let numbers = GpuNumbers::default();
        assert_eq!([numbers.claim("a", 0), numbers.claim("b", 1), numbers.claim("c", 2)], [0, 1, 2]);
        // The first one is gone, and a new one comes in last.
        assert_eq!([numbers.claim("b", 0), numbers.claim("c", 1), numbers.claim("d", 2)], [1, 2, 3]);
        assert_eq!(numbers.claim("a", 0), 0);
    }

    #[test]
    fn a_vendor_that_comes_later_gets_the_next_free_number() {
        let numbers = GpuNumbers::default();
        assert_eq!([numbers.claim("GPU-1", 0), numbers.claim("GPU-2", 1)], [0, 1]);
        assert_eq!(numbers.claim("0000:03:00.0", 1), 2, "AMD's card1");
        assert_eq!(numbers.claim("0000:83:00.0", 5), 5, "AMD's card5");
        assert_eq!(numbers.claim("0000:00:02.0", 0), 3, "Intel's card0");
        assert_eq!(numbers.claim("0000:83:00.0", 0), 5);
    }

    #[test]
    fn what_is_known_of_a_gpu_is_told_with_its_number() {
        let numbers = GpuNumbers::default();
        numbers.describe("GPU-1", Some("H200".into()), Some("0000:1A:00.0".into()));
        numbers.describe("GPU-1", None, None);
        numbers.describe("GPU-2", None, None);
        assert_eq!(["GPU-1", "GPU-2", "GPU-3"].map(|gpu| numbers.is_described(gpu)), [true, false, false]);
        numbers.describe("GPU-9", Some("never seen".into()), None);
        numbers.claim("0000:03:00.0", 1);
        numbers.claim("GPU-1", 0);
        numbers.claim("nvidia-smi 2", 2);
        let text =
            |labels: &[(&'static str, &str)]| labels.iter().map(|(l, v)| (*l, v.to_string())).collect::<Vec<_>>();
        let first = text(&[("uuid", "GPU-1"), ("pci", "0000:1A:00.0"), ("name", "H200")]);
        assert_eq!(numbers.known(), [(0, first), (1, text(&[("pci", "0000:03:00.0")])), (2, Vec::new())]);
    }

    #[test]
    fn what_is_scraped_gives_way_to_a_driver() {
        let numbers = GpuNumbers::default();
        let told = |identity: &str| numbers.claim_scraped(identity, 0, Some("node-1"), Duration::ZERO);
        assert_eq!([told("GPU-1"), told("GPU-2")], [Some(0), Some(1)]);
        assert_eq!(numbers.claim("GPU-1", 0), 0);
        assert_eq!([told("GPU-1"), told("GPU-2")], [None, Some(1)]);
        let hosts: Vec<bool> =
            numbers.known().iter().map(|(_, l)| l.iter().any(|(name, _)| *name == "hostname")).collect();
        assert_eq!(hosts, [false, true]);
    }

    #[test]
    fn gpus_that_are_told_of_and_come_and_go_for_ever_are_bounded() {
        let numbers = GpuNumbers::default();
        numbers.claim("own", 0);
        let told = |i: u64, second: u64| {
            numbers.claim_scraped(&format!("GPU-{i}"), 0, None, Duration::from_secs(second)).is_some()
        };
        assert!((0..1_024).all(|i| told(i, i)));
        assert!(!told(1_024, 899), "all were told of within a quarter of an hour");
        assert!((1_024..5_000).all(|i| told(i, 1_000 + i)), "those that are gone give their numbers back");
        assert!(numbers.known().len() <= 1_025);
        assert_eq!(numbers.claim("own", 7), 0);
    }

    #[test]
    fn the_models_of_the_machine_are_counted() {
        let numbers = GpuNumbers::default();
        assert_eq!((numbers.facts(), numbers.version()), (Vec::new(), 0));
        for (identity, name) in
            [("GPU-1", Some("H200")), ("GPU-2", Some("H200")), ("GPU-3", Some("L4")), ("GPU-4", None)]
        {
            numbers.claim(identity, 0);
            numbers.describe(identity, name.map(Into::into), None);
        }
        let before = numbers.version();
        numbers.driven_by("590.48.01".into());
        assert!(numbers.version() > before);
        let facts = [("gpus", "L4 + 2 × H200 + 1"), ("driver", "590.48.01")];
        assert_eq!(numbers.facts(), facts.map(|(word, value)| (word.to_string(), value.to_string())));
        let unnamed = GpuNumbers::default();
        unnamed.claim("0000:65:00.0", 0);
        assert_eq!(unnamed.facts(), [("gpus".to_string(), "1".to_string())]);
    }
}
