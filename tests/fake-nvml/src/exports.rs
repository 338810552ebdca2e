//! The exported functions under NVML's names.

#![allow(non_snake_case, reason = "they are NVML's names")]

use crate::scenario::{Gpu, Mig, NvLink, Process, Scenario};
use crate::state::{
    FUNCTION_NOT_FOUND, GPU_IS_LOST, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, TIMEOUT,
    VERSION_MISMATCH, enter, with,
};
use nvml_wrapper_sys::bindings::*;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_uint, c_ulonglong};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Code = u32;

/// Writes an answer to the caller's variable.
fn put<T>(out: *mut T, value: T) -> Code {
    if out.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's contract the pointer is that of a variable of this type.
    unsafe { out.write(value) };
    SUCCESS
}

/// A call on a GPU. It is counted, faults may apply, and the scenario gives the answer.
fn on<T>(call: &'static str, device: nvmlDevice_t, out: *mut T, answer: impl FnOnce(&Gpu) -> Result<T, Code>) -> Code {
    match gpu(call, device).and_then(|gpu| answer(&gpu)) {
        Ok(value) => put(out, value),
        Err(code) => code,
    }
}

fn gpu(call: &'static str, device: nvmlDevice_t) -> Result<Arc<Gpu>, Code> {
    let found = with(|state| state.gpu(device as usize));
    if let Some(code) = enter(call, found.as_ref().map(|gpu| gpu.uuid.as_str())) {
        return Err(code);
    }
    // The scenario may have been replaced while the call waited.
    with(|state| state.gpu(device as usize)).ok_or(GPU_IS_LOST)
}

/// The MIG device of a handle; None for the handle of a whole GPU.
fn mig(gpu: &Gpu, device: nvmlDevice_t) -> Option<&Mig> {
    let index = (device as usize & 0xff).checked_sub(1)?;
    gpu.mig_devices.iter().find(|mig| mig.index as usize == index)
}

fn is_mig(device: nvmlDevice_t) -> bool {
    device as usize & 0xff != 0
}

fn text(out: *mut c_char, length: c_uint, value: &str) -> Code {
    if out.is_null() || value.len() + 1 > length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: by NVML's contract the caller has memory for `length` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(value.as_ptr().cast(), out, value.len());
        out.add(value.len()).write(0);
    }
    SUCCESS
}

/// Replaces the scenario by this JSON text. Returns 0, or 1 when the text is not a scenario.
#[unsafe(no_mangle)]
extern "C" fn fake_nvml_scenario(json: *const u8, length: usize) -> u32 {
    // SAFETY: the caller gives address and length of a slice.
    let json = unsafe { std::slice::from_raw_parts(json, length) };
    let Ok(scenario) = serde_json::from_slice::<Scenario>(json) else { return 1 };
    with(|state| state.replace(scenario));
    0
}

/// Number of calls of a function; for a null name, of all functions.
#[unsafe(no_mangle)]
extern "C" fn fake_nvml_calls(name: *const c_char) -> u64 {
    if name.is_null() {
        return with(|state| state.calls.values().sum());
    }
    // SAFETY: the caller gives a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    with(|state| state.calls.get(name.as_ref()).copied().unwrap_or(0))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Code {
    if let Some(code) = enter("nvmlInit_v2", None) {
        return code;
    }
    with(|state| {
        state.starts += 1;
        let answers = &state.scenario.init;
        let code = answers.get(state.starts as usize - 1).or(answers.last()).copied().unwrap_or(SUCCESS);
        state.started += u32::from(code == SUCCESS);
        code
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Code {
    enter("nvmlShutdown", None).unwrap_or_else(|| {
        with(|state| state.started = state.started.saturating_sub(1));
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(_: nvmlReturn_t) -> *const c_char {
    c"an error of the fake library".as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> Code {
    enter("nvmlSystemGetDriverVersion", None)
        .unwrap_or_else(|| text(out, length, &with(|state| state.scenario.driver_version.clone())))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> Code {
    enter("nvmlDeviceGetCount_v2", None).unwrap_or_else(|| put(out, with(|state| state.scenario.gpus.len() as c_uint)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut nvmlDevice_t) -> Code {
    let handle = with(|state| state.handle(index));
    let found = handle.and_then(|handle| with(|state| state.gpu(handle)));
    if let Some(code) = enter("nvmlDeviceGetHandleByIndex_v2", found.as_ref().map(|gpu| gpu.uuid.as_str())) {
        return code;
    }
    handle.map_or(INVALID_ARGUMENT, |handle| put(out, handle as nvmlDevice_t))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(device: nvmlDevice_t, out: *mut c_char, length: c_uint) -> Code {
    match gpu("nvmlDeviceGetUUID", device) {
        Ok(gpu) => text(out, length, &gpu.uuid),
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(device: nvmlDevice_t, out: *mut c_char, length: c_uint) -> Code {
    match gpu("nvmlDeviceGetName", device) {
        Ok(gpu) => text(out, length, &gpu.name),
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, out: *mut nvmlPciInfo_t) -> Code {
    on("nvmlDeviceGetPciInfo_v3", device, out, |gpu| {
        // SAFETY: all zero is a valid value of a struct of numbers and of empty texts.
        let mut pci: nvmlPciInfo_t = unsafe { std::mem::zeroed() };
        for (to, from) in pci.busId.iter_mut().take(31).zip(gpu.pci_bus_id.bytes()) {
            *to = from as c_char;
        }
        Ok(pci)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, out: *mut nvmlUtilization_t) -> Code {
    on("nvmlDeviceGetUtilizationRates", device, out, |gpu| {
        let rates = gpu.utilization.as_ref().ok_or(NOT_SUPPORTED)?;
        Ok(nvmlUtilization_t { gpu: rates.gpu, memory: rates.memory })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, out: *mut nvmlMemory_v2_t) -> Code {
    // SAFETY: by NVML's contract the caller has set the version.
    let asked = unsafe { (*out).version };
    on("nvmlDeviceGetMemoryInfo_v2", device, out, |gpu| {
        let version = (size_of::<nvmlMemory_v2_t>() | 2 << 24) as c_uint;
        if asked != version {
            return Err(VERSION_MISMATCH);
        }
        if !gpu.memory_v2 {
            return Err(FUNCTION_NOT_FOUND);
        }
        if is_mig(device) {
            let mig = mig(gpu, device).ok_or(INVALID_ARGUMENT)?;
            let free = mig.memory_total.saturating_sub(mig.memory_used);
            return Ok(nvmlMemory_v2_t { version, total: mig.memory_total, reserved: 0, free, used: mig.memory_used });
        }
        let memory = gpu.memory.as_ref().ok_or(NOT_SUPPORTED)?;
        let free = memory.total.saturating_sub(memory.used + memory.reserved);
        let (total, reserved, used) = (memory.total, memory.reserved, memory.used);
        Ok(nvmlMemory_v2_t { version, total, reserved, free, used })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, out: *mut nvmlMemory_t) -> Code {
    on("nvmlDeviceGetMemoryInfo", device, out, |gpu| {
        let memory = gpu.memory.as_ref().ok_or(NOT_SUPPORTED)?;
        let used = memory.used + memory.reserved;
        Ok(nvmlMemory_t { total: memory.total, free: memory.total.saturating_sub(used), used })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperature(device: nvmlDevice_t, _: c_uint, out: *mut c_uint) -> Code {
    on("nvmlDeviceGetTemperature", device, out, |gpu| gpu.temperature.ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperatureThreshold(device: nvmlDevice_t, kind: c_uint, out: *mut c_uint) -> Code {
    use nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_GPU_MAX as GPU_MAX;
    use nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_MEM_MAX as MEM_MAX;
    on("nvmlDeviceGetTemperatureThreshold", device, out, |gpu| {
        let limit = match kind {
            GPU_MAX => gpu.max_temperature,
            MEM_MAX => gpu.max_memory_temperature,
            _ => None,
        };
        limit.ok_or(NOT_SUPPORTED)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    on("nvmlDeviceGetPowerUsage", device, out, |gpu| gpu.power_mw.ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    on("nvmlDeviceGetEnforcedPowerLimit", device, out, |gpu| gpu.power_limit_mw.ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, out: *mut c_ulonglong) -> Code {
    on("nvmlDeviceGetTotalEnergyConsumption", device, out, |gpu| gpu.energy_mj.ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, kind: nvmlClockType_t, out: *mut c_uint) -> Code {
    on("nvmlDeviceGetClockInfo", device, out, |gpu| {
        let clocks = gpu.clocks.as_ref().ok_or(NOT_SUPPORTED)?;
        match kind {
            0 => Ok(clocks.graphics),
            1 => Ok(clocks.sm),
            2 => Ok(clocks.mem),
            _ => Err(NOT_SUPPORTED),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    device: nvmlDevice_t,
    kind: nvmlMemoryErrorType_t,
    counter: nvmlEccCounterType_t,
    place: nvmlMemoryLocation_t,
    out: *mut c_ulonglong,
) -> Code {
    on("nvmlDeviceGetMemoryErrorCounter", device, out, |gpu| {
        let errors = gpu.ecc_volatile_dram.as_ref().ok_or(NOT_SUPPORTED)?;
        // Only volatile errors in device memory exist.
        if counter != 0 || place != 2 {
            return Err(NOT_SUPPORTED);
        }
        Ok(if kind == 0 { errors.corrected } else { errors.uncorrected })
    })
}

// For a board without a fan, older drivers return "not supported". Driver 580 returns "invalid argument" for fan 0.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetFanSpeed_v2(device: nvmlDevice_t, fan: c_uint, out: *mut c_uint) -> Code {
    on("nvmlDeviceGetFanSpeed_v2", device, out, |gpu| gpu.fan.filter(|_| fan == 0).ok_or(INVALID_ARGUMENT))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuFabricInfoV(device: nvmlDevice_t, out: *mut nvmlGpuFabricInfo_v3_t) -> Code {
    // SAFETY: by NVML's contract the caller has set the version, and has memory for its form.
    let asked = unsafe { (*out).version };
    let version = |size: usize, number: u32| size as c_uint | number << 24;
    let (second, third) =
        (version(size_of::<nvmlGpuFabricInfo_v2_t>(), 2), version(size_of::<nvmlGpuFabricInfo_v3_t>(), 3));
    let info = match gpu("nvmlDeviceGetGpuFabricInfoV", device) {
        Ok(gpu) => gpu.fabric.clone(),
        Err(code) => return code,
    };
    let Some(fabric) = info else { return NOT_SUPPORTED };
    if asked != second && (asked != third || !fabric.v3) {
        return VERSION_MISMATCH;
    }
    // SAFETY: both forms begin with these fields; the last one belongs to the third.
    unsafe {
        ((*out).state, (*out).status, (*out).cliqueId) = (fabric.state, fabric.status, fabric.clique);
        ((*out).healthMask, (*out).clusterUuid) = (fabric.mask, [0xab; 16]);
        if asked == third {
            (*out).healthSummary = fabric.summary;
        }
    }
    SUCCESS
}

/// Writes a utilization, and the period in µs over which it was measured.
fn codec(
    call: &'static str,
    device: nvmlDevice_t,
    out: *mut c_uint,
    period: *mut c_uint,
    which: fn(&Gpu) -> Option<u32>,
) -> Code {
    match on(call, device, out, |gpu| which(gpu).ok_or(NOT_SUPPORTED)) {
        SUCCESS => put(period, 167_000),
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetEncoderUtilization(device: nvmlDevice_t, out: *mut c_uint, period: *mut c_uint) -> Code {
    codec("nvmlDeviceGetEncoderUtilization", device, out, period, |gpu| gpu.encoder)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetDecoderUtilization(device: nvmlDevice_t, out: *mut c_uint, period: *mut c_uint) -> Code {
    codec("nvmlDeviceGetDecoderUtilization", device, out, period, |gpu| gpu.decoder)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCurrPcieLinkGeneration(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let link = |gpu: &Gpu| gpu.pcie.as_ref()?.generation;
    on("nvmlDeviceGetCurrPcieLinkGeneration", device, out, |gpu| link(gpu).ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCurrPcieLinkWidth(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let link = |gpu: &Gpu| gpu.pcie.as_ref()?.width;
    on("nvmlDeviceGetCurrPcieLinkWidth", device, out, |gpu| link(gpu).ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxPcieLinkGeneration(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let link = |gpu: &Gpu| gpu.pcie.as_ref()?.max_generation;
    on("nvmlDeviceGetMaxPcieLinkGeneration", device, out, |gpu| link(gpu).ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxPcieLinkWidth(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let link = |gpu: &Gpu| gpu.pcie.as_ref()?.max_width;
    on("nvmlDeviceGetMaxPcieLinkWidth", device, out, |gpu| link(gpu).ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPcieSpeed(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let link = |gpu: &Gpu| gpu.pcie.as_ref()?.speed;
    on("nvmlDeviceGetPcieSpeed", device, out, |gpu| link(gpu).ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPcieReplayCounter(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let replays = |gpu: &Gpu| gpu.pcie.as_ref()?.replays;
    on("nvmlDeviceGetPcieReplayCounter", device, out, |gpu| replays(gpu).ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPerformanceState(device: nvmlDevice_t, out: *mut nvmlPstates_t) -> Code {
    on("nvmlDeviceGetPerformanceState", device, out, |gpu| gpu.performance_state.ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, out: *mut nvmlEnableState_t) -> Code {
    let mode = |gpu: &Gpu| gpu.persistence_mode.map(nvmlEnableState_t::from).ok_or(NOT_SUPPORTED);
    on("nvmlDeviceGetPersistenceMode", device, out, mode)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetRemappedRows(
    device: nvmlDevice_t,
    corrected: *mut c_uint,
    uncorrected: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> Code {
    let gpu = match gpu("nvmlDeviceGetRemappedRows", device) {
        Ok(gpu) => gpu,
        Err(code) => return code,
    };
    let Some(rows) = &gpu.remapped_rows else { return NOT_SUPPORTED };
    let answers = [rows.corrected, rows.uncorrected, rows.pending.into(), rows.failed.into()];
    let all = [corrected, uncorrected, pending, failed].into_iter().zip(answers);
    all.map(|(out, value)| put(out, value)).find(|code| *code != SUCCESS).unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetViolationStatus(
    device: nvmlDevice_t,
    policy: nvmlPerfPolicyType_t,
    out: *mut nvmlViolationTime_t,
) -> Code {
    on("nvmlDeviceGetViolationStatus", device, out, |gpu| {
        let times = gpu.violations.as_ref().ok_or(NOT_SUPPORTED)?;
        let violationTime = match policy {
            0 => times.power_ns,
            1 => times.thermal_ns,
            _ => return Err(NOT_SUPPORTED),
        };
        Ok(nvmlViolationTime_t { referenceTime: 0, violationTime })
    })
}

/// The link with that number. A card without links supports none of its calls. A number behind the last link is an
/// invalid argument.
fn link(gpu: &Gpu, link: c_uint) -> Result<&NvLink, Code> {
    gpu.nvlinks.get(link as usize).ok_or(if gpu.nvlinks.is_empty() { NOT_SUPPORTED } else { INVALID_ARGUMENT })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkState(device: nvmlDevice_t, number: c_uint, out: *mut nvmlEnableState_t) -> Code {
    on("nvmlDeviceGetNvLinkState", device, out, |gpu| {
        link(gpu, number)?.active.map(nvmlEnableState_t::from).ok_or(NOT_SUPPORTED)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkErrorCounter(
    device: nvmlDevice_t,
    number: c_uint,
    counter: nvmlNvLinkErrorCounter_t,
    out: *mut c_ulonglong,
) -> Code {
    on("nvmlDeviceGetNvLinkErrorCounter", device, out, |gpu| {
        let link = link(gpu, number)?;
        let count = match counter {
            0 => link.replays,
            1 => link.recoveries,
            2 => link.crc,
            _ => None,
        };
        count.ok_or(NOT_SUPPORTED)
    })
}

/// Only counted. The real call blocks for 20 ms, so the agent must not use it.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPcieThroughput(device: nvmlDevice_t, _: c_uint, out: *mut c_uint) -> Code {
    on("nvmlDeviceGetPcieThroughput", device, out, |_| Err(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(device: nvmlDevice_t, out: *mut c_ulonglong) -> Code {
    on("nvmlDeviceGetCurrentClocksThrottleReasons", device, out, |gpu| gpu.throttle_reasons.ok_or(NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetFieldValues(device: nvmlDevice_t, count: i32, values: *mut nvmlFieldValue_t) -> Code {
    let gpu = match gpu("nvmlDeviceGetFieldValues", device) {
        Ok(gpu) => gpu,
        Err(code) => return code,
    };
    // SAFETY: by NVML's contract the caller has `count` values.
    let values = unsafe { std::slice::from_raw_parts_mut(values, count.max(0) as usize) };
    for value in values {
        use nvml_wrapper_sys::bindings::field_id::*;
        let link = gpu.pcie.as_ref();
        let all_links = value.scopeId == c_uint::MAX;
        let (answer, wide) = match value.fieldId {
            NVML_FI_DEV_MEMORY_TEMP => (gpu.memory_temperature.map(u64::from), false),
            NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => (gpu.energy_mj, true),
            NVML_FI_DEV_POWER_INSTANT => (gpu.power_mw.filter(|_| gpu.instant_power).map(u64::from), false),
            NVML_FI_DEV_PCIE_COUNT_TX_BYTES => (link.and_then(|link| link.tx_bytes), true),
            NVML_FI_DEV_PCIE_COUNT_RX_BYTES => (link.and_then(|link| link.rx_bytes), true),
            NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX => (gpu.nvlink_tx_kib.filter(|_| all_links), true),
            NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX => (gpu.nvlink_rx_kib.filter(|_| all_links), true),
            NVML_FI_DEV_GET_GPU_RECOVERY_ACTION => (gpu.recovery_action.map(u64::from), false),
            NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS => {
                (gpu.nvlinks.get(value.scopeId as usize).and_then(|link| link.recovery_events), true)
            }
            _ => (None, false),
        };
        value.nvmlReturn = if answer.is_some() { SUCCESS } else { NOT_SUPPORTED };
        let answer = answer.unwrap_or_default();
        (value.valueType, value.value) = if wide {
            (nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, nvmlValue_t { ullVal: answer })
        } else {
            (nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT, nvmlValue_t { uiVal: answer as c_uint })
        };
    }
    SUCCESS
}

/// Writes a list for a caller that passes the capacity of its buffer.
fn list<T>(items: Vec<T>, count: *mut c_uint, out: *mut T) -> Code {
    // SAFETY: by NVML's contract `count` holds the capacity, and receives the number of items.
    let room = unsafe { std::mem::replace(&mut *count, items.len() as c_uint) };
    if items.len() > room as usize || (out.is_null() && !items.is_empty()) {
        return INSUFFICIENT_SIZE;
    }
    for (i, item) in items.into_iter().enumerate() {
        // SAFETY: the caller has memory for `room` items, and no more are written.
        unsafe { out.add(i).write(item) };
    }
    SUCCESS
}

fn processes<T>(
    call: &'static str,
    kind: char,
    device: nvmlDevice_t,
    count: *mut c_uint,
    out: *mut T,
    entry: fn(&Process) -> T,
) -> Code {
    match gpu(call, device) {
        Ok(gpu) => {
            let of_kind = gpu.processes.iter().filter(|process| process.kind.contains(kind));
            list(of_kind.map(entry).collect(), count, out)
        }
        Err(code) => code,
    }
}

fn first(process: &Process) -> nvmlProcessInfo_v1_t {
    nvmlProcessInfo_v1_t { pid: process.pid, usedGpuMemory: process.used_gpu_memory.unwrap_or(u64::MAX) }
}

fn second(process: &Process) -> nvmlProcessInfo_v2_t {
    nvmlProcessInfo_v2_t {
        pid: process.pid,
        usedGpuMemory: process.used_gpu_memory.unwrap_or(u64::MAX),
        gpuInstanceId: process.gpu_instance_id.unwrap_or(c_uint::MAX),
        computeInstanceId: process.compute_instance_id.unwrap_or(c_uint::MAX),
    }
}

/// Defines one function of the process lists: its name, the letter of the processes in it, the type of its entries, and
/// the function that makes them.
macro_rules! process_list {
    ($($name:ident, $kind:literal, $entry:ty, $make:ident;)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(device: nvmlDevice_t, count: *mut c_uint, out: *mut $entry) -> Code {
            processes(stringify!($name), $kind, device, count, out, $make)
        }
    )* };
}

process_list! {
    nvmlDeviceGetComputeRunningProcesses_v3, 'C', nvmlProcessInfo_v2_t, second;
    nvmlDeviceGetComputeRunningProcesses_v2, 'C', nvmlProcessInfo_v2_t, second;
    nvmlDeviceGetComputeRunningProcesses, 'C', nvmlProcessInfo_v1_t, first;
    nvmlDeviceGetGraphicsRunningProcesses_v3, 'G', nvmlProcessInfo_v2_t, second;
    nvmlDeviceGetGraphicsRunningProcesses_v2, 'G', nvmlProcessInfo_v2_t, second;
    nvmlDeviceGetGraphicsRunningProcesses, 'G', nvmlProcessInfo_v1_t, first;
    nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M', nvmlProcessInfo_v2_t, second;
    nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M', nvmlProcessInfo_v2_t, second;
    nvmlDeviceGetMPSComputeRunningProcesses, 'M', nvmlProcessInfo_v1_t, first;
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    out: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last: c_ulonglong,
) -> Code {
    let gpu = match gpu("nvmlDeviceGetProcessUtilization", device) {
        Ok(gpu) => gpu,
        Err(code) => return code,
    };
    let new = gpu.process_utilization.iter().filter(|sample| sample.timestamp > last);
    let items: Vec<_> = new
        .map(|sample| nvmlProcessUtilizationSample_t {
            pid: sample.pid,
            timeStamp: sample.timestamp,
            smUtil: sample.sm,
            memUtil: 0,
            encUtil: 0,
            decUtil: 0,
        })
        .collect();
    if items.is_empty() { NOT_FOUND } else { list(items, count, out) }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigMode(device: nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint) -> Code {
    let mode = |gpu: &Gpu| gpu.mig_mode.map(c_uint::from).ok_or(NOT_SUPPORTED);
    match on("nvmlDeviceGetMigMode", device, current, mode) {
        SUCCESS => put(pending, 0),
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    on("nvmlDeviceGetMaxMigDeviceCount", device, out, |gpu| Ok(if gpu.mig_mode.is_some() { 7 } else { 0 }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(device: nvmlDevice_t, index: c_uint, out: *mut nvmlDevice_t) -> Code {
    on("nvmlDeviceGetMigDeviceHandleByIndex", device, out, |gpu| {
        let there = gpu.mig_mode == Some(true) && gpu.mig_devices.iter().any(|mig| mig.index == index);
        there.then(|| (device as usize + index as usize + 1) as nvmlDevice_t).ok_or(NOT_FOUND)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let id = |gpu: &Gpu| mig(gpu, device).map(|mig| mig.gpu_instance_id).ok_or(INVALID_ARGUMENT);
    on("nvmlDeviceGetGpuInstanceId", device, out, id)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmQueryDeviceSupport(device: nvmlDevice_t, out: *mut nvmlGpmSupport_t) -> Code {
    on("nvmlGpmQueryDeviceSupport", device, out, |gpu| {
        let supported = gpu.gpm.is_some() || gpu.mig_devices.iter().any(|mig| mig.gpm.is_some());
        Ok(nvmlGpmSupport_t { version: NVML_GPM_SUPPORT_VERSION, isSupportedDevice: supported.into() })
    })
}

/// The object behind the handle of a sample.
struct Sample {
    taken: Option<(Instant, BTreeMap<u32, f64>)>,
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleAlloc(out: *mut nvmlGpmSample_t) -> Code {
    let sample = || Box::into_raw(Box::new(Sample { taken: None })) as nvmlGpmSample_t;
    enter("nvmlGpmSampleAlloc", None).unwrap_or_else(|| put(out, sample()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> Code {
    enter("nvmlGpmSampleFree", None).unwrap_or_else(|| {
        // SAFETY: it came from nvmlGpmSampleAlloc, and the caller gives it up.
        drop(unsafe { Box::from_raw(sample as *mut Sample) });
        SUCCESS
    })
}

fn take(sample: nvmlGpmSample_t, values: Option<BTreeMap<u32, f64>>) -> Code {
    let Some(values) = values else { return NOT_SUPPORTED };
    // SAFETY: it came from nvmlGpmSampleAlloc and is used by one thread at a time, as NVML demands.
    unsafe { (*(sample as *mut Sample)).taken = Some((Instant::now(), values)) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> Code {
    match gpu("nvmlGpmSampleGet", device) {
        Ok(gpu) => take(sample, gpu.gpm.clone().filter(|_| gpu.mig_mode != Some(true))),
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmMigSampleGet(device: nvmlDevice_t, instance: c_uint, sample: nvmlGpmSample_t) -> Code {
    match gpu("nvmlGpmMigSampleGet", device) {
        Ok(gpu) => {
            take(sample, gpu.mig_devices.iter().find(|mig| mig.gpu_instance_id == instance).and_then(|m| m.gpm.clone()))
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> Code {
    if let Some(code) = enter("nvmlGpmMetricsGet", None) {
        return code;
    }
    // SAFETY: by NVML's contract the samples of the request came from nvmlGpmSampleAlloc.
    let (request, before, after) = unsafe {
        let request = &mut *request;
        let (before, after) = (request.sample1 as *const Sample, request.sample2 as *const Sample);
        (request, (*before).taken.as_ref(), (*after).taken.as_ref())
    };
    let (Some((before, _)), Some((after, values))) = (before, after) else { return INVALID_ARGUMENT };
    let least = Duration::from_millis(with(|state| state.scenario.gpm_min_ms));
    if request.version != NVML_GPM_METRICS_GET_VERSION || after.saturating_duration_since(*before) < least {
        return INVALID_ARGUMENT;
    }
    for metric in &mut request.metrics[..request.numMetrics as usize] {
        let value = values.get(&metric.metricId);
        metric.nvmlReturn = if value.is_some() { SUCCESS } else { NOT_SUPPORTED };
        metric.value = value.copied().unwrap_or(0.0);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetCreate(out: *mut nvmlEventSet_t) -> Code {
    enter("nvmlEventSetCreate", None).unwrap_or_else(|| {
        let set = with(|state| {
            state.sets += 1;
            state.sets
        });
        put(out, set as nvmlEventSet_t)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(_: nvmlEventSet_t) -> Code {
    enter("nvmlEventSetFree", None).unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(device: nvmlDevice_t, _: c_ulonglong, _: nvmlEventSet_t) -> Code {
    gpu("nvmlDeviceRegisterEvents", device).map_or_else(|code| code, |_| SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait_v2(set: nvmlEventSet_t, out: *mut nvmlEventData_t, timeout_ms: c_uint) -> Code {
    if let Some(code) = enter("nvmlEventSetWait_v2", None) {
        return code;
    }
    let end = Instant::now() + Duration::from_millis(timeout_ms.into());
    loop {
        let event = with(|state| {
            let mine = state.sets == set as usize && !state.scenario.xids.is_empty();
            let event = mine.then(|| state.scenario.xids.remove(0))?;
            Some((state.slot(&event.gpu)?, event.xid))
        });
        if let Some((handle, xid)) = event {
            let device = handle as nvmlDevice_t;
            let (gpuInstanceId, computeInstanceId) = (c_uint::MAX, c_uint::MAX);
            let eventType = nvmlEventTypeXidCriticalError.into();
            return put(out, nvmlEventData_t { device, eventType, eventData: xid, gpuInstanceId, computeInstanceId });
        }
        if Instant::now() >= end {
            return TIMEOUT;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
