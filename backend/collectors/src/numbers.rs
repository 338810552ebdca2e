//! The numbers of GPUs over all vendors: `gpu.{i}` is one space, and a number once given stays with its GPU.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Which number stands for which GPU. Shared by the collectors of all vendors, also while they are opened anew.
#[derive(Debug, Default)]
pub struct GpuNumbers {
    // Identities are UUIDs and PCI addresses: as many as this machine ever showed, so nothing has to be forgotten.
    given: Mutex<HashMap<String, Given>>,
}

#[derive(Debug)]
struct Given {
    number: u32,
    /// A driver on this machine reports the GPU.
    driven: bool,
}

impl GpuNumbers {
    /// The number of a GPU: the one that it has; else the wanted one; else, when another GPU has that, the lowest above
    /// it that none ever had. `identity` is what stays with the GPU: UUID or PCI address.
    pub fn claim(&self, identity: &str, wanted: u32) -> u32 {
        self.given(identity, wanted, true).unwrap_or(wanted)
    }

    /// Likewise for a GPU that another program tells of; none when a driver here reports the same GPU, so that it is not
    /// counted twice.
    pub fn claim_scraped(&self, identity: &str, wanted: u32) -> Option<u32> {
        self.given(identity, wanted, false)
    }

    fn given(&self, identity: &str, wanted: u32, driven: bool) -> Option<u32> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = given.get_mut(identity) {
            known.driven |= driven;
            return (driven || !known.driven).then_some(known.number);
        }
        let taken = |number: &u32| given.values().any(|other| other.number == *number);
        let number = (wanted..=u32::MAX).find(|number| !taken(number)).unwrap_or(wanted);
        given.insert(identity.to_string(), Given { number, driven });
        Some(number)
    }
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
    fn what_is_scraped_gives_way_to_a_driver() {
        let numbers = GpuNumbers::default();
        assert_eq!(numbers.claim_scraped("GPU-1", 0), Some(0));
        assert_eq!(numbers.claim_scraped("GPU-2", 0), Some(1));
        assert_eq!(numbers.claim("GPU-1", 0), 0);
        assert_eq!(numbers.claim_scraped("GPU-1", 0), None);
        assert_eq!(numbers.claim_scraped("GPU-2", 0), Some(1));
    }
}
