//! Critical errors that the driver reports by number (XID). A thread of its own fetches them, because it blocks in the
//! driver.

use super::library::Library;
#[cfg(target_os = "linux")]
use nvml_wrapper::{bitmasks::event::EventTypes, enums::event::XidError, error::NvmlError};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

/// Timeout of one wait in the driver. The library cannot be closed before the wait ends.
#[cfg(target_os = "linux")]
const WAIT_MS: u32 = 500;

/// Number of a GPU's errors since the listener started, and the number of the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct Xids {
    pub count: u64,
    pub last: Option<u64>,
    /// Count of reports for each XID, by source.
    told: BTreeMap<u64, [u64; 2]>,
}

/// Source of error reports.
#[derive(Clone, Copy, Debug)]
pub(super) enum Teller {
    /// Events of the library.
    Events,
    /// The kernel's log.
    KernelLog,
}

impl Xids {
    /// Adds a report of an error. A report of the same error by the other source, before or after, counts once.
    pub fn add_report(&mut self, by: Teller, number: u64) {
        let told = self.told.entry(number).or_default();
        let (own, other) = (by as usize, 1 - by as usize);
        told[own] += 1;
        if told[own] > told[other] {
            (self.count, self.last) = (self.count + 1, Some(number));
        }
    }
}

/// Errors by UUID, for the GPUs with a listener. It outlives the listener, so that counts continue when the library is
/// restarted.
pub(super) type SeenErrors = Arc<Mutex<HashMap<String, Xids>>>;

/// The thread that listens; it ends soon after this is dropped.
pub(super) struct Listener {
    stop: Arc<AtomicBool>,
    /// Index and UUID of the GPUs that it listens to.
    gpus: Vec<(u32, String)>,
}

impl Listener {
    /// Listens to these GPUs. If the driver has no events, the thread ends at once.
    pub fn start(library: Arc<Library>, gpus: Vec<(u32, String)>, seen: SeenErrors) -> Listener {
        let stop = Arc::new(AtomicBool::new(false));
        let listener = Listener { stop: stop.clone(), gpus: gpus.clone() };
        let thread = std::thread::Builder::new().name("nvidia events".into()).stack_size(256 * 1024);
        // Without a thread no errors are shown; everything else works.
        let _ = thread.spawn(move || listen(&library, &gpus, &seen, &stop));
        listener
    }

    /// Whether it listens to exactly these GPUs.
    pub fn hears(&self, gpus: &[(u32, String)]) -> bool {
        self.gpus == gpus
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The driver has events only on Linux.
#[cfg(not(target_os = "linux"))]
fn listen(_: &Library, _: &[(u32, String)], _: &SeenErrors, _: &AtomicBool) {}

#[cfg(target_os = "linux")]
fn listen(library: &Library, gpus: &[(u32, String)], seen: &SeenErrors, stop: &AtomicBool) {
    let Ok(mut set) = library.nvml().create_event_set() else { return };
    let mut any = false;
    for (index, uuid) in gpus {
        let Ok(device) = library.nvml().device_by_index(*index) else { continue };
        match device.register_events(EventTypes::CRITICAL_XID_ERROR, set) {
            Ok(registered) => {
                set = registered;
                any = true;
                seen.lock().entry(uuid.clone()).or_default();
            }
            // The failed registration consumed the event set; the remaining GPUs get a new set.
            Err(_) => return retry(library, gpus, index, seen, stop),
        }
    }
    while any && !stop.load(Ordering::Relaxed) {
        match set.wait(WAIT_MS) {
            // Another listener has taken over, and receives this event too.
            Ok(_) if stop.load(Ordering::Relaxed) => return,
            Ok(event) => {
                let number = match event.event_data {
                    Some(XidError::Value(number)) => number,
                    Some(XidError::Unknown) => 999,
                    None => continue,
                };
                if let Ok(uuid) = event.device.uuid() {
                    let mut seen = seen.lock();
                    seen.entry(uuid).or_default().add_report(Teller::Events, number);
                }
            }
            Err(NvmlError::Timeout) => {}
            Err(_) => return,
        }
    }
}

/// Listens to all GPUs except the one whose registration failed.
#[cfg(target_os = "linux")]
fn retry(library: &Library, gpus: &[(u32, String)], without: &u32, seen: &SeenErrors, stop: &AtomicBool) {
    let others: Vec<_> = gpus.iter().filter(|(index, _)| index != without).cloned().collect();
    if !others.is_empty() && !stop.load(Ordering::Relaxed) {
        listen(library, &others, seen, stop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_which_both_tell_counts_once() {
        use Teller::{Events, KernelLog};
        let mut xids = Xids::default();
        let mut tell = |by, number| {
            xids.add_report(by, number);
            (xids.count, xids.last)
        };
        assert_eq!(tell(Events, 63), (1, Some(63)));
        assert_eq!(tell(KernelLog, 63), (1, Some(63)));
        // The log reports first, and one error has no event.
        assert_eq!(tell(KernelLog, 31), (2, Some(31)));
        assert_eq!(tell(KernelLog, 79), (3, Some(79)));
        assert_eq!(tell(Events, 31), (3, Some(79)));
        assert_eq!(tell(Events, 63), (4, Some(63)));
    }
}
