//! Health of a GPU and its links: values that change rarely and are read rarely.
//!
//! A driver reads some of them from the board, so such a call costs more than one for a clock. A GPU may have eighteen
//! NVLinks, each with a call of its own. Values that a card does not support are requested again every minute.

use super::asker::Asker;
use super::library::{Handle, Library};
use super::rates::Rate;
use crate::host::total::Total;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings::field_id::{
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS,
};
use nvml_wrapper_sys::bindings::*;
use shared::catalog::{MetricDef, gpu_health};
use shared::xid::Action;
use std::ffi::c_uint;
use std::time::Duration;

/// Intervals of reading states and counts, of NVLink states, and of values that hardly change or need a call per link.
/// They are slightly short, so that a tick that is marginally early is not skipped.
const STATE_INTERVAL: Duration = Duration::from_millis(9_900);
const LINKS_INTERVAL: Duration = Duration::from_millis(29_900);
const RARE_INTERVAL: Duration = Duration::from_millis(59_900);

/// Error kinds of an NVLink, as the library numbers them, and their metrics.
static LINK_ERRORS: [(nvmlNvLinkErrorCounter_t, &MetricDef); 3] = [
    (nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY, &gpu_health::NVLINK_REPLAYS),
    (nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY, &gpu_health::NVLINK_RECOVERIES),
    (nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT, &gpu_health::NVLINK_CRC_ERRORS),
];
/// Index of recoveries in the list above.
const RECOVERIES: usize = 1;

/// Time of throttling by each policy, and its metric.
static VIOLATIONS: [(nvmlPerfPolicyType_t, &MetricDef); 2] = [
    (nvmlPerfPolicyType_enum_NVML_PERF_POLICY_POWER, &gpu_health::POWER_VIOLATION),
    (nvmlPerfPolicyType_enum_NVML_PERF_POLICY_THERMAL, &gpu_health::THERMAL_VIOLATION),
];

/// Time of the next call.
#[derive(Clone, Copy, Debug, Default)]
struct Turn(Option<Duration>);

impl Turn {
    /// Makes the call if it is due. Returns its value if it succeeds.
    fn ask<T>(&mut self, at: Duration, every: Duration, ask: impl FnOnce() -> Result<T, NvmlError>) -> Option<T> {
        if self.0.is_some_and(|next| at < next) {
            return None;
        }
        let answer = ask().ok();
        self.0 = Some(at + if answer.is_some() { every } else { RARE_INTERVAL });
        answer
    }
}

/// State between readings.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: Turn,
    persistence: Turn,
    replays: Turn,
    remapped: Turn,
    recovery: Turn,
    fabric: Turn,
    violations: [(Turn, Rate); VIOLATIONS.len()],
    links: Turn,
    errors: Turn,
    /// The existing NVLinks by number, and their counts since the start.
    counted: Vec<(u32, [Total; LINK_ERRORS.len()])>,
}

impl Health {
    /// Makes all due calls. A GPU divided by MIG does not read links.
    pub fn read(&mut self, asker: &mut Asker, library: &Library, handle: Handle, divided: bool, at: Duration) {
        let state = self.state.ask(at, STATE_INTERVAL, || library.performance_state(handle));
        asker.put(&gpu_health::PERFORMANCE_STATE, state.filter(|state| *state < 16).map(f64::from));
        let persistence = self.persistence.ask(at, RARE_INTERVAL, || library.persistence_mode(handle));
        asker.put(&gpu_health::PERSISTENCE_MODE, persistence.map(|on| f64::from(u8::from(on))));
        let replays = self.replays.ask(at, STATE_INTERVAL, || library.device(handle).pcie_replay_counter());
        asker.put(&gpu_health::PCIE_REPLAYS, replays.map(f64::from));
        if let Some(rows) = self.remapped.ask(at, STATE_INTERVAL, || library.remapped_rows(handle)) {
            asker.put(&gpu_health::REMAPPED_CORRECTED, Some(rows.corrected.into()));
            asker.put(&gpu_health::REMAPPED_UNCORRECTED, Some(rows.uncorrected.into()));
            asker.put(&gpu_health::REMAP_PENDING, Some(u8::from(rows.pending).into()));
            asker.put(&gpu_health::REMAP_FAILED, Some(u8::from(rows.failed).into()));
        }
        let recovery = self.recovery.ask(at, STATE_INTERVAL, || library.recovery_action(handle));
        asker.put(&gpu_health::RECOVERY_ACTION, recovery.map(f64::from));
        if let Some(fabric) = self.fabric.ask(at, STATE_INTERVAL, || library.fabric(handle)) {
            asker.put(&gpu_health::FABRIC_STATE, Some(fabric.state.into()));
            asker.put(&gpu_health::FABRIC_STATUS, fabric.status.map(f64::from));
            asker.put(&gpu_health::FABRIC_HEALTH, fabric.health.map(f64::from));
            asker.put(&gpu_health::FABRIC_FAULTS, fabric.faults.map(f64::from));
            asker.put(&gpu_health::FABRIC_CLIQUE, fabric.clique.map(f64::from));
        }
        for ((turn, rate), (policy, row)) in self.violations.iter_mut().zip(VIOLATIONS) {
            if let Some(nanoseconds) = turn.ask(at, STATE_INTERVAL, || library.violation(handle, policy)) {
                let share = rate.per_second(Some(nanoseconds as f64), at).map(|per_second| per_second / 1e7);
                // The two readings are some microseconds off their nominal times.
                asker.put_rounded(row, share.filter(|percent| *percent <= 102.0).map(|percent| percent.min(100.0)));
            }
        }
        if !divided {
            self.links(asker, library, handle, at);
        }
    }

    fn links(&mut self, asker: &mut Asker, library: &Library, handle: Handle, at: Duration) {
        if let Some(links) = self.links.ask(at, LINKS_INTERVAL, || library.nvlinks(handle)) {
            asker.put(&gpu_health::NVLINKS_ACTIVE, Some(links.iter().filter(|(_, active)| *active).count() as f64));
            asker.put(&gpu_health::NVLINKS, Some(links.len() as f64));
            for (link, _) in links {
                if self.counted.iter().all(|(known, _)| *known != link) {
                    self.counted.push((link, Default::default()));
                }
            }
        }
        let numbers: Vec<u32> = self.counted.iter().map(|(link, _)| *link).collect();
        if numbers.is_empty() {
            return;
        }
        let Some(errors) = self.errors.ask(at, RARE_INTERVAL, || library.nvlink_errors(handle, &numbers)) else {
            return;
        };
        for ((_, totals), counts) in self.counted.iter_mut().zip(&errors) {
            for (total, count) in totals.iter_mut().zip(counts) {
                if let Some(count) = count {
                    total.add(*count);
                }
            }
        }
        // A link that is down reports nothing; its earlier counts stay in the sum.
        for (kind, (_, row)) in LINK_ERRORS.iter().enumerate() {
            let any = errors.iter().any(|counts| counts[kind].is_some());
            let sum: u64 = self.counted.iter().map(|(_, totals)| totals[kind].sum()).sum();
            asker.put(row, any.then_some(sum as f64));
        }
    }
}

/// Rows of device memory replaced by spare ones.
#[derive(Debug)]
pub(super) struct Remapped {
    /// Rows replaced after corrected errors.
    pub corrected: u32,
    /// Rows replaced after uncorrected errors.
    pub uncorrected: u32,
    /// Whether a replacement is pending until a reset.
    pub pending: bool,
    /// Whether a row could not be replaced.
    pub failed: bool,
}

type Plain = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint) -> nvmlReturn_t;
/// Errors of one NVLink, in the order of [`LINK_ERRORS`]; none for a kind that it does not count.
pub(super) type LinkErrors = [Option<u64>; LINK_ERRORS.len()];

impl Library {
    /// The value of a library call that writes one number.
    fn plain(&self, handle: Handle, call: Result<&Plain, NvmlError>) -> Result<u32, NvmlError> {
        let call = call?;
        let mut value = 0;
        // SAFETY: the library writes one number.
        nvml_try(unsafe { call(self.raw(handle), &mut value) })?;
        Ok(value)
    }

    /// The performance state, 0 to 15; 32 if it is unknown.
    ///
    /// # Errors
    /// As the library's.
    pub fn performance_state(&self, handle: Handle) -> Result<u32, NvmlError> {
        self.plain(handle, nvml_sym(self.nvml().lib().nvmlDeviceGetPerformanceState.as_ref()))
    }

    /// Whether the driver stays loaded while nobody uses the GPU.
    ///
    /// # Errors
    /// As the library's.
    pub fn persistence_mode(&self, handle: Handle) -> Result<bool, NvmlError> {
        self.plain(handle, nvml_sym(self.nvml().lib().nvmlDeviceGetPersistenceMode.as_ref())).map(|mode| mode != 0)
    }

    /// Rows of device memory that were replaced.
    ///
    /// # Errors
    /// As the library's.
    pub fn remapped_rows(&self, handle: Handle) -> Result<Remapped, NvmlError> {
        let call = nvml_sym(self.nvml().lib().nvmlDeviceGetRemappedRows.as_ref())?;
        let (mut corrected, mut uncorrected, mut pending, mut failed) = (0, 0, 0, 0);
        // SAFETY: the library writes four numbers.
        nvml_try(unsafe { call(self.raw(handle), &mut corrected, &mut uncorrected, &mut pending, &mut failed) })?;
        Ok(Remapped { corrected, uncorrected, pending: pending != 0, failed: failed != 0 })
    }

    /// Number of the action that the driver requires to clear a fault; 0 for none.
    ///
    /// # Errors
    /// As the library's; not supported by drivers before 570, and for a number that NVML does not define.
    pub fn recovery_action(&self, handle: Handle) -> Result<u8, NvmlError> {
        let found = self.values(handle, &[(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0)])?;
        let number = found.first().copied().flatten().map(|number| number as u8);
        number.filter(|number| Action::of_recovery(*number).is_some()).ok_or(NvmlError::NotSupported)
    }

    /// Nanoseconds in which a policy kept the clocks below the application clocks, since the driver was loaded.
    ///
    /// # Errors
    /// As the library's.
    pub fn violation(&self, handle: Handle, policy: nvmlPerfPolicyType_t) -> Result<u64, NvmlError> {
        let call = nvml_sym(self.nvml().lib().nvmlDeviceGetViolationStatus.as_ref())?;
        let mut time = nvmlViolationTime_t { referenceTime: 0, violationTime: 0 };
        // SAFETY: the library fills the struct.
        nvml_try(unsafe { call(self.raw(handle), policy, &mut time) })?;
        Ok(time.violationTime)
    }

    /// Numbers of the GPU's NVLinks, and whether each is active.
    ///
    /// # Errors
    /// As the library's; not supported if it has none.
    pub fn nvlinks(&self, handle: Handle) -> Result<Vec<(u32, bool)>, NvmlError> {
        let call = nvml_sym(self.nvml().lib().nvmlDeviceGetNvLinkState.as_ref())?;
        let mut links = Vec::new();
        for link in 0..NVML_NVLINK_MAX_LINKS {
            let mut state = 0;
            // SAFETY: the library writes one number.
            match nvml_try(unsafe { call(self.raw(handle), link, &mut state) }) {
                // 2 is a link that sleeps.
                Ok(()) => links.push((link, state != 0)),
                // After the last link, and at a link that is disabled in the factory.
                Err(NvmlError::InvalidArg) if !links.is_empty() => break,
                Err(NvmlError::NotSupported) if !links.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(links)
    }

    /// Error counts of these NVLinks since the driver was loaded.
    ///
    /// # Errors
    /// As the library's, if no link counts anything.
    pub fn nvlink_errors(&self, handle: Handle, links: &[u32]) -> Result<Vec<LinkErrors>, NvmlError> {
        let call = nvml_sym(self.nvml().lib().nvmlDeviceGetNvLinkErrorCounter.as_ref())?;
        let count = |link: u32, kind: nvmlNvLinkErrorCounter_t| {
            let mut count = 0;
            // SAFETY: the library writes one number.
            nvml_try(unsafe { call(self.raw(handle), link, kind, &mut count) }).ok().map(|()| count)
        };
        let all: Vec<LinkErrors> = links.iter().map(|link| LINK_ERRORS.map(|(kind, _)| count(*link, kind))).collect();
        match all.iter().flatten().any(Option::is_some) {
            true => Ok(all),
            false => self.nvlink_recoveries(handle, links),
        }
    }

    /// Same for GPUs from Blackwell on. They have only the recoveries, as field values.
    fn nvlink_recoveries(&self, handle: Handle, links: &[u32]) -> Result<Vec<LinkErrors>, NvmlError> {
        let asked: Vec<_> = links.iter().map(|link| (NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, *link)).collect();
        let found = self.values(handle, &asked)?;
        if found.iter().all(Option::is_none) {
            return Err(NvmlError::NotSupported);
        }
        let counts = |count: Option<f64>| {
            let mut counts = LinkErrors::default();
            counts[RECOVERIES] = count.map(|count| count as u64);
            counts
        };
        Ok(found.into_iter().map(counts).collect())
    }
}
