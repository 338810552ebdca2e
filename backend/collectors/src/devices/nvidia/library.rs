//! The driver's library, and calls that the wrapper lacks or provides in another form.

use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::field_id as id;
use nvml_wrapper_sys::bindings::*;
use std::ffi::{OsStr, c_uint};
use std::mem::zeroed;

/// The library. Closing it is a call into the driver. So it is in an `Arc`, which a hanging call keeps alive.
pub(super) struct Library(Nvml);

/// A GPU or a part of one; valid until the library is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(nvmlDevice_t);

// SAFETY: the library's calls may be made from any thread, and we never dereference a handle.
unsafe impl Send for Handle {}

/// A sample of the profiling counters. The library frees it when it is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct GpmSample(nvmlGpmSample_t);

// SAFETY: only one thread at a time owns the GPU's state with the sample.
unsafe impl Send for GpmSample {}

/// Values of one call for many fields; none for fields that the card lacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields {
    /// Memory temperature, °C.
    pub memory_temp: Option<f64>,
    /// Milliwatts at this instant.
    pub power: Option<f64>,
    /// Millijoules since the driver was loaded.
    pub energy: Option<f64>,
    /// Bytes sent over PCIe since the driver was loaded.
    pub pcie_tx: Option<f64>,
    /// Bytes received over PCIe since the driver was loaded.
    pub pcie_rx: Option<f64>,
    /// KiB sent over all NVLinks since the driver was loaded.
    pub nvlink_tx: Option<f64>,
    /// KiB received over all NVLinks since the driver was loaded.
    pub nvlink_rx: Option<f64>,
}

/// Scope of all links together.
const ALL_LINKS: c_uint = c_uint::MAX;

/// More than the usual number of processes on a GPU. If there are more, a second call is made with enough room.
const FIRST_LIST_LENGTH: u32 = 64;

impl Library {
    /// Loads and initializes the library.
    ///
    /// # Errors
    /// It is missing or does not start.
    pub fn start(path: &OsStr) -> Result<Library, NvmlError> {
        Nvml::builder().lib_path(path).init().map(Library)
    }

    /// The wrapper, for the calls that it has.
    pub fn nvml(&self) -> &Nvml {
        &self.0
    }

    /// Handle of the GPU at an index.
    ///
    /// # Errors
    /// As the library's.
    pub fn handle(&self, index: u32) -> Result<Handle, NvmlError> {
        // SAFETY: the handle is used through this library only.
        Ok(Handle(unsafe { self.0.device_by_index(index)?.handle() }))
    }

    /// A GPU's handle in the type of the library's own functions.
    pub(super) fn raw(&self, handle: Handle) -> nvmlDevice_t {
        handle.0
    }

    /// The GPU behind a handle.
    pub fn device(&self, handle: Handle) -> Device<'_> {
        // SAFETY: the handle came from this library; if its GPU is gone, calls return an error.
        unsafe { Device::new(handle.0, &self.0) }
    }

    /// Handle of the MIG device at an index, and its GPU instance.
    ///
    /// # Errors
    /// As the library's; not found if no device has this index.
    pub fn mig(&self, parent: Handle, index: u32) -> Result<(Handle, u32), NvmlError> {
        // SAFETY: as in `handle`.
        let handle = unsafe { self.device(parent).mig_device_by_index(index)?.handle() };
        let call = nvml_sym(self.0.lib().nvmlDeviceGetGpuInstanceId.as_ref())?;
        let mut instance = 0;
        // SAFETY: the library writes one number.
        nvml_try(unsafe { call(handle, &mut instance) })?;
        Ok((Handle(handle), instance))
    }

    /// Memory in bytes, used and total. Drivers before 510 include their own part in used memory.
    ///
    /// # Errors
    /// As the library's.
    pub fn memory(&self, handle: Handle) -> Result<(u64, u64), NvmlError> {
        match self.device(handle).memory_info() {
            Err(error) if is_older(&error) => {
                let call = nvml_sym(self.0.lib().nvmlDeviceGetMemoryInfo.as_ref())?;
                // SAFETY: all zero is a valid value of a struct of numbers, and the library fills it.
                let memory = unsafe {
                    let mut memory: nvmlMemory_t = zeroed();
                    nvml_try(call(handle.0, &mut memory))?;
                    memory
                };
                Ok((memory.used, memory.total))
            }
            memory => memory.map(|memory| (memory.used, memory.total)),
        }
    }

    /// Many values in one call.
    ///
    /// # Errors
    /// As the library's.
    pub fn fields(&self, handle: Handle) -> Result<Fields, NvmlError> {
        // All field IDs are below those whose numbers vary with the driver version.
        const ASKED: [(u32, c_uint); 7] = [
            (id::NVML_FI_DEV_MEMORY_TEMP, 0),
            (id::NVML_FI_DEV_POWER_INSTANT, 0),
            (id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0),
            (id::NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0),
            (id::NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0),
            (id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
            (id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS),
        ];
        let values = self.values(handle, &ASKED)?;
        let [memory_temp, power, energy, pcie_tx, pcie_rx, nvlink_tx, nvlink_rx] = values[..] else {
            return Ok(Fields::default());
        };
        Ok(Fields { memory_temp, power, energy, pcie_tx, pcie_rx, nvlink_tx, nvlink_rx })
    }

    /// The values of fields, by ID and scope, in the same order; none for fields that the card lacks.
    ///
    /// # Errors
    /// As the library's.
    pub(super) fn values(&self, handle: Handle, asked: &[(u32, c_uint)]) -> Result<Vec<Option<f64>>, NvmlError> {
        let call = nvml_sym(self.0.lib().nvmlDeviceGetFieldValues.as_ref())?;
        // SAFETY: all zero is a valid value of a struct of numbers.
        let field = |&(field, scope): &(u32, c_uint)| unsafe {
            let mut value: nvmlFieldValue_t = zeroed();
            (value.fieldId, value.scopeId) = (field, scope);
            value
        };
        let mut values: Vec<nvmlFieldValue_t> = asked.iter().map(field).collect();
        // SAFETY: the library fills as many fields as the length says.
        nvml_try(unsafe { call(handle.0, values.len() as i32, values.as_mut_ptr()) })?;
        Ok(values.iter().map(number).collect())
    }

    /// PID, percent of the multiprocessors, and time of each measurement after `since` (µs of the driver's clock).
    ///
    /// # Errors
    /// As the library's; no measurement is no error.
    pub fn shares(&self, handle: Handle, since: u64) -> Result<Vec<(u32, u32, u64)>, NvmlError> {
        let call = nvml_sym(self.0.lib().nvmlDeviceGetProcessUtilization.as_ref())?;
        // SAFETY: `list` provides room for the length that it passes.
        let found = list(|count, out| unsafe { call(handle.0, out, count, since) });
        match found {
            Ok(samples) => Ok(samples
                .iter()
                .map(|sample: &nvmlProcessUtilizationSample_t| (sample.pid, sample.smUtil, sample.timeStamp))
                .collect()),
            Err(NvmlError::NotFound) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Allocates a sample of the profiling counters.
    ///
    /// # Errors
    /// As the library's.
    pub fn sample(&self) -> Result<GpmSample, NvmlError> {
        let call = nvml_sym(self.0.lib().nvmlGpmSampleAlloc.as_ref())?;
        let mut sample = std::ptr::null_mut();
        // SAFETY: the library writes one pointer.
        nvml_try(unsafe { call(&mut sample) })?;
        Ok(GpmSample(sample))
    }

    /// Takes a sample of the GPU, or of one of its instances.
    ///
    /// # Errors
    /// As the library's.
    pub fn take(&self, handle: Handle, instance: Option<u32>, sample: GpmSample) -> Result<(), NvmlError> {
        let lib = self.0.lib();
        match instance {
            // SAFETY: both came from this library, and only one thread at a time owns the sample.
            None => nvml_try(unsafe { nvml_sym(lib.nvmlGpmSampleGet.as_ref())?(handle.0, sample.0) }),
            Some(instance) => {
                let call = nvml_sym(lib.nvmlGpmMigSampleGet.as_ref())?;
                // SAFETY: as above.
                nvml_try(unsafe { call(handle.0, instance, sample.0) })
            }
        }
    }

    /// The requested counters between two samples; none for counters that the GPU lacks.
    ///
    /// # Errors
    /// As the library's.
    pub fn between<const N: usize>(
        &self,
        before: GpmSample,
        after: GpmSample,
        asked: [u32; N],
    ) -> Result<[Option<f64>; N], NvmlError> {
        let call = nvml_sym(self.0.lib().nvmlGpmMetricsGet.as_ref())?;
        // SAFETY: all zero is a valid request; N is below the capacity of the request; both samples belong to this
        // library.
        let request = unsafe {
            let mut request: nvmlGpmMetricsGet_t = zeroed();
            request.version = NVML_GPM_METRICS_GET_VERSION;
            (request.sample1, request.sample2) = (before.0, after.0);
            request.numMetrics = N as c_uint;
            for (metric, asked) in request.metrics.iter_mut().zip(asked) {
                metric.metricId = asked;
            }
            nvml_try(call(&mut request))?;
            request
        };
        let value = |m: &nvmlGpmMetric_t| (m.nvmlReturn == 0 && m.value.is_finite()).then_some(m.value);
        Ok(std::array::from_fn(|i| request.metrics.get(i).and_then(value)))
    }
}

/// Whether this error means that the driver has only an older form of the call.
pub(super) fn is_older(error: &NvmlError) -> bool {
    matches!(error, NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound | NvmlError::UnexpectedVariant(25))
}

/// A field's value, if it has one; our fields are never negative.
#[allow(non_upper_case_globals, reason = "the bindings name their constants like C")]
#[allow(clippy::unnecessary_cast, reason = "this one is 32 bits wide under Windows")]
fn number(field: &nvmlFieldValue_t) -> Option<f64> {
    if field.nvmlReturn != 0 {
        return None;
    }
    let value = field.value;
    let whole = |number: u64| (number != u64::MAX).then_some(number as f64);
    // SAFETY: the type says which member the library wrote; all are plain numbers.
    let number = unsafe {
        match field.valueType {
            nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE => Some(value.dVal),
            nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT => Some(value.uiVal.into()),
            nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG => whole(value.ulVal as u64),
            nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG => whole(value.ullVal),
            nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG => Some(value.sllVal as f64),
            nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT => Some(value.siVal.into()),
            nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT => Some(value.usVal.into()),
            _ => None,
        }
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

/// A list whose length may change between calls.
pub(super) fn list<T: Copy>(mut call: impl FnMut(*mut c_uint, *mut T) -> nvmlReturn_t) -> Result<Vec<T>, NvmlError> {
    let mut room = FIRST_LIST_LENGTH;
    for _ in 0..3 {
        let mut items: Vec<T> = Vec::with_capacity(room as usize);
        let mut count = room;
        match nvml_try(call(&mut count, items.as_mut_ptr())) {
            Ok(()) => {
                // SAFETY: the library wrote `count` items, and there was room for `room`.
                unsafe { items.set_len(count.min(room) as usize) };
                return Ok(items);
            }
            // Slightly more than the reported length, because more processes may start meanwhile.
            Err(NvmlError::InsufficientSize(_)) => {
                room = count.max(room).saturating_add(FIRST_LIST_LENGTH).min(1 << 16)
            }
            Err(error) => return Err(error),
        }
    }
    Err(NvmlError::InsufficientSize(Some(room as usize)))
}
