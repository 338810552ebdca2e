//! The memory of the library: the current scenario, the number of calls of each function, and the faults that are due.

#![cfg_attr(not(unix), allow(dead_code, reason = "the functions are exported on Unix only"))]

use crate::scenario::{Gpu, Scenario};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Codes of `nvmlReturn_t`.
pub(crate) const SUCCESS: u32 = 0;
pub(crate) const UNINITIALIZED: u32 = 1;
pub(crate) const INVALID_ARGUMENT: u32 = 2;
pub(crate) const NOT_SUPPORTED: u32 = 3;
pub(crate) const NOT_FOUND: u32 = 6;
pub(crate) const INSUFFICIENT_SIZE: u32 = 7;
pub(crate) const TIMEOUT: u32 = 10;
pub(crate) const FUNCTION_NOT_FOUND: u32 = 13;
pub(crate) const GPU_IS_LOST: u32 = 15;
pub(crate) const VERSION_MISMATCH: u32 = 25;

#[derive(Default)]
pub(crate) struct NvmlState {
    pub scenario: Scenario,
    gpus: Vec<Arc<Gpu>>,
    /// UUIDs of all GPUs that were ever in a scenario. A handle is an index into this list, so that it stays with its
    /// GPU.
    slots: Vec<String>,
    /// Number of successful starts that have not ended.
    pub started: u32,
    pub starts: u64,
    /// Number of event sets that were made. Events go to the newest set.
    pub sets: usize,
    pub calls: BTreeMap<&'static str, u64>,
    /// Number of matching calls that each fault has met.
    met: Vec<u64>,
    generation: u64,
    /// Inode of the file from which the scenario was read.
    inode: u64,
}

/// The call before which the library looks for a new file: each tick makes it once for each GPU.
const FOLLOWING_CALL: &str = "nvmlDeviceGetUtilizationRates";

#[cfg(unix)]
fn inode_of(file: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

#[cfg(not(unix))]
fn inode_of(_: &std::fs::Metadata) -> u64 {
    1
}

static STATE: Mutex<Option<NvmlState>> = Mutex::new(None);
static REPLACED: Condvar = Condvar::new();

/// Calls `work` with the state. The first call reads the file with the scenario.
pub(crate) fn with<T>(work: impl FnOnce(&mut NvmlState) -> T) -> T {
    work(lock().get_or_insert_with(NvmlState::from_file))
}

fn lock() -> MutexGuard<'static, Option<NvmlState>> {
    STATE.lock()
}

impl NvmlState {
    fn from_file() -> NvmlState {
        let mut state = NvmlState::default();
        state.follow();
        state
    }

    /// Reads the file with the scenario if it is another one than before.
    fn follow(&mut self) {
        let Some(path) = file() else { return };
        let inode = std::fs::metadata(&path).map_or(0, |file| inode_of(&file));
        if inode == self.inode {
            return;
        }
        let text = std::fs::read_to_string(path).ok();
        if let Some(scenario) = text.and_then(|text| serde_json::from_str(&text).ok()) {
            self.inode = inode;
            self.replace(scenario);
        }
    }

    /// Replaces the scenario. Calls that hang return.
    pub fn replace(&mut self, scenario: Scenario) {
        for gpu in &scenario.gpus {
            if !self.slots.contains(&gpu.uuid) {
                self.slots.push(gpu.uuid.clone());
            }
        }
        self.gpus = scenario.gpus.iter().cloned().map(Arc::new).collect();
        self.met = vec![0; scenario.faults.len()];
        self.scenario = scenario;
        self.generation += 1;
        REPLACED.notify_all();
    }

    /// Handle of the GPU at an index; None when there is no such GPU.
    pub fn handle(&self, index: u32) -> Option<usize> {
        let uuid = &self.gpus.get(index as usize)?.uuid;
        self.slot(uuid)
    }

    pub fn slot(&self, uuid: &str) -> Option<usize> {
        self.slots.iter().position(|other| other == uuid).map(|slot| (slot + 1) << 8)
    }

    /// The GPU of a handle, which may be a MIG device's handle.
    pub fn gpu(&self, handle: usize) -> Option<Arc<Gpu>> {
        let uuid = self.slots.get((handle >> 8).checked_sub(1)?)?;
        self.gpus.iter().find(|gpu| gpu.uuid == *uuid).cloned()
    }

    /// The code that a fault returns in place of the answer, the delay before it, and whether the call hangs.
    fn fault(&mut self, call: &str, uuid: Option<&str>) -> (Option<u32>, Duration, bool) {
        let starts = self.starts;
        for (fault, met) in self.scenario.faults.iter().zip(&mut self.met) {
            let fits = match &fault.call {
                Some(name) => name == call,
                None => {
                    call.starts_with("nvmlDevice") && call != "nvmlDeviceGetCount_v2" || call.starts_with("nvmlGpm")
                }
            };
            let strikes = fault.gpu.as_deref().is_none_or(|gpu| Some(gpu) == uuid);
            if !fits || !strikes || fault.until_init.is_some_and(|n| starts >= n) {
                continue;
            }
            *met += 1;
            if *met > fault.after && fault.times.is_none_or(|times| *met <= fault.after + times) {
                return (fault.code, Duration::from_millis(fault.delay_ms), fault.hang);
            }
        }
        (None, Duration::ZERO, false)
    }
}

/// Counts a call and applies the faults. Returns the code that replaces the call's own answer, if any.
pub(crate) fn enter(call: &'static str, uuid: Option<&str>) -> Option<u32> {
    if call == FOLLOWING_CALL {
        with(NvmlState::follow);
    }
    let (code, delay, hang, generation) = with(|state| {
        *state.calls.entry(call).or_default() += 1;
        let (code, delay, hang) = state.fault(call, uuid);
        (code, delay, hang, state.generation)
    });
    if hang {
        let mut guard = lock();
        while guard.as_ref().is_some_and(|state| state.generation == generation) {
            REPLACED.wait(&mut guard);
        }
    } else if !delay.is_zero() {
        std::thread::sleep(delay);
    }
    let down = call.starts_with("nvmlDevice") && with(|state| state.started == 0);
    if down { Some(UNINITIALIZED) } else { code }
}

fn file() -> Option<std::path::PathBuf> {
    match std::env::var_os("FAKE_NVML_SCENARIO") {
        Some(path) => Some(path.into()),
        None => beside(),
    }
}

#[cfg(unix)]
fn beside() -> Option<std::path::PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: a zeroed Dl_info is valid. dladdr fills it for an address inside this library, and its text is static.
    let path = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(beside as *const () as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr(info.dli_fname).to_bytes().to_vec()
    };
    let library = std::path::Path::new(std::ffi::OsStr::from_bytes(&path));
    Some(library.parent()?.join("scenario.json"))
}

#[cfg(not(unix))]
fn beside() -> Option<std::path::PathBuf> {
    None
}
