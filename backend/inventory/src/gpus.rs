//! The numbers of GPUs over all vendors: `gpu.{i}` is one space, and a number once given stays with its GPU.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most GPUs of which only other programs tell that have a number at a time.
const MAX_SCRAPED: usize = 1_024;
/// How long one of those keeps its number while nothing is told of it and all numbers are taken.
const FORGET_AFTER: Duration = Duration::from_secs(900);

/// Which number stands for which GPU. Shared by the collectors of all vendors, also while they are opened anew.
#[derive(Debug, Default)]
pub struct GpuNumbers {
    // Identities are UUIDs and PCI addresses: as many as this machine ever showed, so nothing of a driver has to be
    // forgotten. What is scraped is bounded.
    given: Mutex<HashMap<String, Given>>,
    /// Name and PCI address by identity, as far as they were asked for.
    about: Mutex<HashMap<String, About>>,
    /// Version of the driver, as it says itself.
    driver: Mutex<Option<String>>,
    /// Rises with each change of what is known.
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
    /// The machine that it sits in, by what another program tells.
    host: Option<String>,
    /// When another program told of it last.
    told: Duration,
}

impl GpuNumbers {
    /// The number of a GPU: the one that it has; else the wanted one; else, when another GPU has that, the lowest above
    /// it that none ever had. `identity` is what stays with the GPU: UUID or PCI address.
    pub fn claim(&self, identity: &str, wanted: u32) -> u32 {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Likewise for a GPU that another program tells of, at this monotonic time, and that sits in this machine; none when
    /// a driver here reports the same GPU, so that it is not counted twice, and beyond [`MAX_SCRAPED`] of them.
    pub fn claim_scraped(&self, identity: &str, wanted: u32, host: Option<&str>, now: Duration) -> Option<u32> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Says what else is known of a GPU.
    pub fn describe(&self, identity: &str, name: Option<String>, pci: Option<String>) {
        let mut about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        let known = about.entry(identity.to_string()).or_default();
        known.name = name.or(known.name.take());
        known.pci = pci.or(known.pci.take());
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Says which driver the GPUs have.
    pub fn driven_by(&self, version: String) {
        *self.driver.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that rises with each change of what is known.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Facts of this machine, word and value: `gpus`, their models with how many there are of each, or how many where no
    /// model is known, and `driver`. What is not known is left out.
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
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let facts = [("gpus", gpus), ("driver", driver)];
        facts.into_iter().filter_map(|(word, value)| Some((word.into(), value?))).collect()
    }

    /// Where a GPU sits on the PCI bus, in the kernel's way of writing it: `0000:65:00.0`.
    pub fn pci(&self, identity: &str) -> Option<String> {
        let about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        let pci = about.get(identity)?.pci.as_deref()?;
        // NVIDIA writes the domain with eight digits.
        let short = pci.strip_prefix("0000").filter(|rest| rest.find(':') == Some(4));
        Some(short.unwrap_or(pci).to_lowercase())
    }

    /// Number and labels of every GPU that has a number, in their order: `uuid`, `pci`, `name`, and `hostname` of one of
    /// which only another program tells, those that are known.
    pub fn known(&self) -> Vec<(u32, Vec<(&'static str, String)>)> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = given
            .iter()
            .map(|(identity, given)| {
                let about = about.get(identity);
                // An identity is a UUID, a PCI address, or a makeshift of ours.
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
