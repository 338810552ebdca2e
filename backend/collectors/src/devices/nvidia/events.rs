//! Critical errors that the driver reports by number (XID). A thread of its own fetches them, because it blocks in the
//! driver.

use super::library::Library;
use crate::Out;
#[cfg(target_os = "linux")]
use nvml_wrapper::{bitmasks::event::EventTypes, enums::event::XidError, error::NvmlError};
use parking_lot::Mutex;
use shared::catalog::gpu_parts;
use shared::xid::{self, Action};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

/// Timeout of one wait in the driver. The library cannot be closed before the wait ends.
#[cfg(target_os = "linux")]
const WAIT_MS: u32 = 500;

/// Maximum number of different errors that wait for their tick.
const MAX_WAITING: usize = 32;

/// A GPU's errors: as of the current tick, and those that wait for theirs. Each tick has one number as its last error, so
/// each of several that come together gets a tick of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Xids {
    /// Number of errors since the listener started.
    pub count: u64,
    /// Number of the last one, and the action for it.
    pub last: Option<u64>,
    pub action: Option<Action>,
    waiting: VecDeque<Waiting>,
    /// Count of reports for each XID, by source.
    told: BTreeMap<u64, [u64; 2]>,
}

/// Equal errors in a row.
#[derive(Clone, Debug)]
struct Waiting {
    number: u64,
    count: u64,
    action: Option<Action>,
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
    /// Adds a report of an error, with the message of the kernel's log. A report of the same error by the other source,
    /// before or after, counts once; its message tells the action.
    pub fn add_report(&mut self, by: Teller, number: u64, message: &str) {
        let told = self.told.entry(number).or_default();
        let (own, other) = (by as usize, 1 - by as usize);
        told[own] += 1;
        let is_new = told[own] > told[other];
        let code = u32::try_from(number).unwrap_or_default();
        let row = self.waiting.iter_mut().rev().find(|row| row.number == number);
        if !is_new {
            let Some(action) = xid::decode(code, message) else { return };
            match row {
                Some(row) => row.action = Some(action),
                None if self.last == Some(number) => self.action = Some(action),
                None => {}
            }
            return;
        }
        let action = xid::action(code, message);
        match self.waiting.back_mut().filter(|row| row.number == number) {
            Some(row) => (row.count, row.action) = (row.count + 1, row.action.max(action)),
            None => self.waiting.push_back(Waiting { number, count: 1, action }),
        }
        if self.waiting.len() > MAX_WAITING {
            self.advance();
        }
    }

    /// Begins a tick: the next error that waits is its last one.
    pub fn advance(&mut self) {
        if let Some(next) = self.waiting.pop_front() {
            (self.count, self.last, self.action) = (self.count + next.count, Some(next.number), next.action);
        }
    }

    /// Puts the errors of a GPU into a tick.
    pub fn put(&self, gpu: u32, out: &mut Out) {
        out.put(&gpu_parts::XID_ERRORS, gpu, self.count as f64);
        out.put_some(&gpu_parts::LAST_XID, gpu, self.last.map(|number| number as f64));
        out.put_some(&gpu_parts::LAST_XID_ACTION, gpu, self.action.map(|action| f64::from(action as u8)));
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
                    seen.entry(uuid).or_default().add_report(Teller::Events, number, "");
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
            xids.add_report(by, number, "");
            xids.advance();
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

    #[test]
    fn errors_that_come_together_get_a_tick_each_and_equal_ones_share_one() {
        let mut xids = Xids::default();
        for number in [48, 63, 45, 45, 45, 154] {
            xids.add_report(Teller::Events, number, "");
        }
        let mut ticks = Vec::new();
        for _ in 0..5 {
            xids.advance();
            ticks.push((xids.count, xids.last));
        }
        assert_eq!(ticks, [(1, Some(48)), (2, Some(63)), (5, Some(45)), (6, Some(154)), (6, Some(154))]);
        // More than wait are counted at once.
        for number in 0..100 {
            xids.add_report(Teller::Events, 1000 + number, "");
        }
        assert_eq!((xids.waiting.len(), xids.count), (MAX_WAITING, 6 + 100 - MAX_WAITING as u64));
    }

    #[test]
    fn a_message_tells_the_action_before_and_after_its_event() {
        use Teller::{Events, KernelLog};
        let reboot = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)";
        let mut xids = Xids::default();
        xids.add_report(Events, 154, "");
        xids.add_report(KernelLog, 154, reboot);
        xids.advance();
        assert_eq!((xids.count, xids.action), (1, Some(Action::RestartMachine)), "in one tick");
        xids.add_report(Events, 154, "");
        xids.advance();
        assert_eq!((xids.count, xids.action), (2, Some(Action::Recover)), "no message yet");
        xids.add_report(KernelLog, 154, reboot);
        xids.advance();
        assert_eq!((xids.count, xids.action), (2, Some(Action::RestartMachine)), "a tick later");
        xids.add_report(KernelLog, 119, "pid=1, name=x, Timeout after 6s of waiting for RPC response");
        xids.add_report(Events, 119, "");
        xids.advance();
        assert_eq!((xids.count, xids.last, xids.action), (3, Some(119), Some(Action::ResetGpu)));
    }
}
