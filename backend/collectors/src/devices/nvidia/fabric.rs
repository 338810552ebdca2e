//! The NVLink fabric of a GPU behind NVLink switches, as in HGX boards and racks such as GB200 NVL72.

use super::library::{Handle, Library};
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings::*;
use std::mem::zeroed;

/// Faults in the health mask: place of their two bits, and our bit. The value 1 is a fault.
const FAULTS: [(u32, u8); 4] = [
    (NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW, 1),
    (NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY, 2),
    (NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY, 4),
    (NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY, 8),
];
const INCORRECT_CONFIGURATION: u8 = 16;
/// Our state of a registration that ended with an error.
const FAILED: u8 = 4;

/// State of the fabric at a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fabric {
    /// 1 not started, 2 in progress, 3 complete, 4 failed.
    pub state: u8,
    /// NVML's error of the registration, once it is complete.
    pub status: Option<u32>,
    /// 1 healthy, 2 unhealthy, 3 limited capacity.
    pub health: Option<u8>,
    /// Set of bits.
    pub faults: Option<u8>,
    /// The clique, once the registration is complete.
    pub clique: Option<u32>,
    /// The cluster; None if it has no id.
    pub cluster: Option<[u8; 16]>,
}

impl Library {
    /// State of the fabric of a GPU.
    ///
    /// # Errors
    /// As the library's; not supported for a GPU without one.
    pub fn fabric(&self, handle: Handle) -> Result<Fabric, NvmlError> {
        match self.fabric_as(handle, 3) {
            // The driver has only the form without a summary.
            Err(NvmlError::UnexpectedVariant(25)) => self.fabric_as(handle, 2),
            fabric => fabric,
        }
    }

    fn fabric_as(&self, handle: Handle, version: u32) -> Result<Fabric, NvmlError> {
        let call = nvml_sym(self.nvml().lib().nvmlDeviceGetGpuFabricInfoV.as_ref())?;
        let size = if version == 3 { size_of::<nvmlGpuFabricInfo_v3_t>() } else { size_of::<nvmlGpuFabricInfo_v2_t>() };
        // SAFETY: all zero is a valid value of a struct of numbers. The library fills the form of the version, of which
        // the second is the beginning of the third.
        let info = unsafe {
            let mut info: nvmlGpuFabricInfoV_t = zeroed();
            info.version = size as u32 | version << 24;
            nvml_try(call(self.raw(handle), &mut info))?;
            info
        };
        Fabric::new(&info).ok_or(NvmlError::NotSupported)
    }
}

impl Fabric {
    /// None for a GPU without a fabric.
    fn new(info: &nvmlGpuFabricInfoV_t) -> Option<Fabric> {
        let state = info.state;
        let is_complete = u32::from(state) == NVML_GPU_FABRIC_STATE_COMPLETED;
        if u32::from(state) == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED || u32::from(state) > NVML_GPU_FABRIC_STATE_COMPLETED
        {
            return None;
        }
        let faults = faults(info.healthMask);
        let health = match info.healthSummary {
            summary @ 1..=3 => Some(summary),
            _ => faults.map(|faults| if faults == 0 { 1 } else { 2 }),
        };
        Some(Fabric {
            state: if is_complete && info.status != 0 { FAILED } else { state },
            status: is_complete.then_some(info.status),
            health,
            faults,
            clique: is_complete.then_some(info.cliqueId),
            cluster: Some(info.clusterUuid).filter(|uuid| is_complete && *uuid != [0; 16]),
        })
    }
}

/// The faults in a health mask; None if it tells nothing.
fn faults(mask: u32) -> Option<u8> {
    let field = |shift: u32, width: u32| mask >> shift & width;
    let known = FAULTS.map(|(shift, bit)| (field(shift, 3), bit));
    let configuration = field(
        NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION,
        NVML_GPU_FABRIC_HEALTH_MASK_WIDTH_INCORRECT_CONFIGURATION,
    );
    if configuration == 0 && known.iter().all(|(value, _)| *value == 0) {
        return None;
    }
    let wrong = if configuration > NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE {
        INCORRECT_CONFIGURATION
    } else {
        0
    };
    Some(known.iter().filter(|(value, _)| *value == 1).fold(wrong, |set, (_, bit)| set | bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_tells_its_faults_by_nvidias_macros() {
        // Every field: 2 is "no fault" for the first four, 1 for the configuration.
        assert_eq!(faults(0b0001_1010_1010), Some(0));
        assert_eq!(faults(0), None);
        assert_eq!(faults(0b0001_1010_1001), Some(1));
        assert_eq!(faults(0b0001_1001_0110), Some(2 | 4));
        assert_eq!(faults(0b0101_0110_1010), Some(8 | INCORRECT_CONFIGURATION));
    }
}
