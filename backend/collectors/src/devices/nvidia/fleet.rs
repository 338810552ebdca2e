//! The GPUs of the machine. A GPU is identified by its UUID and keeps its number. Its index, its handle and its
//! presence may change at any time.

use super::gpu::Gpu;
use super::library::{Handle, Library};
use super::retry::{NvmlFailure, failure};
use inventory::GpuNumbers;
use nvml_wrapper::error::NvmlError;
use std::sync::Arc;
use std::time::Duration;

/// Result of the library for one index.
pub(super) struct FoundDevice {
    pub index: u32,
    pub gpu: Result<(Handle, String), (NvmlFailure, String)>,
}

/// Result of the library for all GPUs.
pub(super) struct Survey {
    pub count: u32,
    /// None if only the count was read, and it is unchanged.
    pub found: Option<Vec<FoundDevice>>,
}

/// Reads the number of GPUs. Reads their identities if that number has changed, or if `full` is set, and describes those
/// that are new.
///
/// # Errors
/// The library reports no count.
pub(super) fn survey(
    library: &Library,
    before: Option<u32>,
    full: bool,
    numbers: &GpuNumbers,
) -> Result<Survey, NvmlError> {
    let count = library.nvml().device_count()?;
    let look = |index| {
        let gpu = library.handle(index).and_then(|handle| Ok((handle, library.device(handle).uuid()?)));
        if let Ok((handle, uuid)) = &gpu
            && !numbers.is_described(uuid)
        {
            let device = library.device(*handle);
            let pci = device.pci_info().ok().map(|pci| pci.bus_id).filter(|id| !id.is_empty());
            numbers.describe(uuid, device.name().ok(), pci);
        }
        FoundDevice { index, gpu: gpu.map_err(|error| (failure(&error), error.to_string())) }
    };
    let found = (full || before != Some(count)).then(|| (0..count).map(look).collect());
    Ok(Survey { count, found })
}

/// Owner of a GPU's state.
pub(super) enum StateOwner {
    /// No thread is reading it.
    Idle(Box<Gpu>),
    /// A thread is reading it, since this tick.
    Busy(Duration),
    /// None, because its handle is unknown.
    Missing,
}

/// A GPU that was seen at least once.
pub(super) struct Seat {
    pub uuid: String,
    pub number: u32,
    /// The library's index of it at present.
    pub index: u32,
    pub state: StateOwner,
    /// Whether the library lists it.
    pub listed: bool,
    /// Tick from which it is off the bus or missing in the library's list.
    pub lost: Option<Duration>,
    /// Reason why values are missing.
    pub trouble: Option<String>,
    /// PIDs of the processes on it, as the library reports them.
    pub pids: Vec<u32>,
    /// Wall time of the tick in which it last answered, milliseconds since the Unix epoch.
    pub heard: Option<i64>,
}

/// All GPUs ever seen. Their number is bounded by the GPUs that this machine has had, so none is evicted.
pub(super) struct Fleet {
    pub seats: Vec<Seat>,
    pub count: Option<u32>,
    /// Indices of GPUs that were never identified.
    pub strangers: Vec<String>,
    pub numbers: Arc<GpuNumbers>,
    /// Indices to keep; empty for all.
    only: Vec<u32>,
}

impl Fleet {
    pub fn new(numbers: Arc<GpuNumbers>, only: Vec<u32>) -> Self {
        Fleet { seats: Vec::new(), count: None, strangers: Vec::new(), numbers, only }
    }

    /// Applies a survey.
    pub fn update(&mut self, survey: Survey, at: Duration) {
        self.count = Some(survey.count);
        let Some(found) = survey.found else { return };
        self.strangers.clear();
        let mut here = vec![false; self.seats.len()];
        for FoundDevice { index, gpu } in found {
            if !self.only.is_empty() && !self.only.contains(&index) {
                continue;
            }
            match gpu {
                Ok((handle, uuid)) => match self.seats.iter().position(|seat| seat.uuid == uuid) {
                    Some(seat) => {
                        here[seat] = true;
                        self.seats[seat].found(index, handle);
                    }
                    None => {
                        let number = self.numbers.claim(&uuid, index);
                        let state = StateOwner::Idle(Box::new(Gpu::new(handle)));
                        let (lost, trouble, pids, heard) = (None, None, Vec::new(), None);
                        self.seats.push(Seat { uuid, number, index, state, listed: true, lost, trouble, pids, heard });
                        here.push(true);
                    }
                },
                Err((failure, reason)) => match self.seats.iter().position(|seat| seat.index == index) {
                    Some(seat) => {
                        here[seat] = true;
                        if failure == NvmlFailure::Lost {
                            self.seats[seat].lose(at, reason);
                        } else {
                            self.seats[seat].trouble = Some(reason);
                        }
                    }
                    None => self.strangers.push(format!("the GPU at index {index} does not respond: {reason}")),
                },
            }
        }
        for (seat, here) in self.seats.iter_mut().zip(here) {
            seat.listed = here;
            if here {
                continue;
            }
            if matches!(seat.state, StateOwner::Idle(_)) {
                seat.state = StateOwner::Missing;
            }
            seat.lose(at, "the driver no longer lists it".into());
        }
    }

    /// Invalidates all handles, because the library is restarted.
    pub fn forget_handles(&mut self) {
        self.count = None;
        for seat in self.seats.iter_mut().filter(|seat| matches!(seat.state, StateOwner::Idle(_))) {
            seat.state = StateOwner::Missing;
        }
    }
}

impl Seat {
    /// Its name in a sentence, and a clause with the time of its last answer.
    pub fn called(&self, numbers: &GpuNumbers) -> (String, String) {
        let place = numbers.pci(&self.uuid).map(|pci| format!(" (PCI {pci})")).unwrap_or_default();
        let since = self.heard.filter(|wall| *wall > 0).map(|wall| {
            let minutes = wall / 60_000;
            format!(" since {:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
        });
        (format!("GPU {}{place}", self.number), since.unwrap_or_default())
    }

    fn found(&mut self, index: u32, handle: Handle) {
        self.index = index;
        match &mut self.state {
            StateOwner::Idle(gpu) if gpu.handle() == handle => {}
            StateOwner::Idle(gpu) => gpu.reset(handle),
            StateOwner::Missing => {
                self.state = StateOwner::Idle(Box::new(Gpu::new(handle)));
                (self.lost, self.trouble) = (None, None);
            }
            // It is read with its old handle; once that fails, the next survey finds the new one.
            StateOwner::Busy(_) => {}
        }
    }

    /// Marks it lost, since this tick if it was not lost before.
    pub fn lose(&mut self, at: Duration, reason: String) {
        self.lost.get_or_insert(at);
        self.trouble = Some(reason);
    }
}
