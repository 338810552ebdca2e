//! The numbers of GPUs over all vendors: `gpu.{i}` is one space, and a number once given stays with its GPU.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Which number stands for which GPU. Shared by the collectors of all vendors, also while they are opened anew.
#[derive(Debug, Default)]
pub struct GpuNumbers {
    // Identities are UUIDs and PCI addresses: as many as this machine ever showed, so nothing has to be forgotten.
    given: Mutex<HashMap<String, u32>>,
}

impl GpuNumbers {
    /// The number of a GPU: the one that it has; else the wanted one; else, when another GPU has that, the lowest above
    /// it that none ever had. `identity` is what stays with the GPU: UUID or PCI address.
    pub fn claim(&self, identity: &str, wanted: u32) -> u32 {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = given.get(identity) {
            return *number;
        }
        let taken = |number: &u32| given.values().any(|other| other == number);
        let number = (wanted..=u32::MAX).find(|number| !taken(number)).unwrap_or(wanted);
        given.insert(identity.to_string(), number);
        number
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
}
