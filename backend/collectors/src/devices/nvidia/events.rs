//! Critical errors that the driver reports by number (XID): fetched by a thread of their own, which waits in the driver.

use super::library::Library;
#[cfg(target_os = "linux")]
use nvml_wrapper::{bitmasks::event::EventTypes, enums::event::XidError, error::NvmlError};
use std::collections::{BTreeMap, HashMap};
#[cfg(target_os = "linux")]
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// How long one wait in the driver may take: the library cannot be closed before it ends.
#[cfg(target_os = "linux")]
const WAIT_MS: u32 = 500;

/// How many errors a GPU had since we listen, and the last one's number.
#[derive(Clone, Debug, Default)]
pub(super) struct Xids {
    pub count: u64,
    pub last: Option<u64>,
    /// How often each number was told, by each teller.
    told: BTreeMap<u64, [u64; 2]>,
}

/// Who tells of errors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Teller {
    /// The library's events.
    Events,
    /// The kernel's log.
    KernelLog,
}

impl Xids {
    /// Takes in an error. What the other teller has told already, or tells later, is the same one.
    pub fn told(&mut self, by: Teller, number: u64) {
        let told = self.told.entry(number).or_default();
        let (own, other) = (by as usize, 1 - by as usize);
        told[own] += 1;
        if told[own] > told[other] {
            (self.count, self.last) = (self.count + 1, Some(number));
        }
    }
}

/// By UUID, for the GPUs of which errors are heard. It outlives the listener, so that counts go on when the library is
/// started anew.
pub(super) type Seen = Arc<Mutex<HashMap<String, Xids>>>;

/// The thread that listens; it ends soon after this is dropped.
pub(super) struct Listener {
    stop: Arc<AtomicBool>,
    /// Index and UUID of those it was told to listen to.
    gpus: Vec<(u32, String)>,
}

impl Listener {
    /// Listens to these GPUs. Where the driver has no events the thread ends at once.
    pub fn start(library: Arc<Library>, gpus: Vec<(u32, String)>, seen: Seen) -> Listener {
        let stop = Arc::new(AtomicBool::new(false));
        let listener = Listener { stop: stop.clone(), gpus: gpus.clone() };
        let thread = std::thread::Builder::new().name("nvidia events".into()).stack_size(256 * 1024);
        // Without a thread there are no errors to show; everything else goes on.
        let _ = thread.spawn(move || listen(&library, &gpus, &seen, &stop));
        listener
    }

    /// Whether it was told to listen to just these.
    pub fn hears(&self, gpus: &[(u32, String)]) -> bool {
        self.gpus == gpus
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The driver has events on Linux only.
#[cfg(not(target_os = "linux"))]
fn listen(_: &Library, _: &[(u32, String)], _: &Seen, _: &AtomicBool) {}

#[cfg(target_os = "linux")]
fn listen(library: &Library, gpus: &[(u32, String)], seen: &Seen, stop: &AtomicBool) {
    let Ok(mut set) = library.nvml().create_event_set() else { return };
    let mut any = false;
    for (index, uuid) in gpus {
        let Ok(device) = library.nvml().device_by_index(*index) else { continue };
        match device.register_events(EventTypes::CRITICAL_XID_ERROR, set) {
            Ok(registered) => {
                set = registered;
                any = true;
                seen.lock().unwrap_or_else(PoisonError::into_inner).entry(uuid.clone()).or_default();
            }
            // The set went with the error; those that were registered are listened to on a set of their own.
            Err(_) => return retry(library, gpus, index, seen, stop),
        }
    }
    while any && !stop.load(Ordering::Relaxed) {
        match set.wait(WAIT_MS) {
            // Another listener has taken over, and hears of it too.
            Ok(_) if stop.load(Ordering::Relaxed) => return,
            Ok(event) => {
                let number = match event.event_data {
                    Some(XidError::Value(number)) => number,
                    Some(XidError::Unknown) => 999,
                    None => continue,
                };
                if let Ok(uuid) = event.device.uuid() {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.entry(uuid).or_default().told(Teller::Events, number);
                }
            }
            Err(NvmlError::Timeout) => {}
            Err(_) => return,
        }
    }
}

/// Listens to all but the one that could not be registered.
#[cfg(target_os = "linux")]
fn retry(library: &Library, gpus: &[(u32, String)], without: &u32, seen: &Seen, stop: &AtomicBool) {
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
            xids.told(by, number);
            (xids.count, xids.last)
        };
        assert_eq!(tell(Events, 63), (1, Some(63)));
        assert_eq!(tell(KernelLog, 63), (1, Some(63)));
        // The log comes first, and of one no event comes.
        assert_eq!(tell(KernelLog, 31), (2, Some(31)));
        assert_eq!(tell(KernelLog, 79), (3, Some(79)));
        assert_eq!(tell(Events, 31), (3, Some(79)));
        assert_eq!(tell(Events, 63), (4, Some(63)));
    }
}
