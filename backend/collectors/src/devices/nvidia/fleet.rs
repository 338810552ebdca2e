//! Which GPUs there are. A GPU is known by its UUID and keeps its number; its index, its handle and whether it is there
//! may change at any time.

use super::gpu::Gpu;
use super::library::{Handle, Library};
use super::retry::{NvmlFailure, failure};
use inventory::GpuNumbers;
use nvml_wrapper::error::NvmlError;
use std::sync::Arc;
use std::time::Duration;

/// What the library says of an index.
pub(super) struct Found {
    pub index: u32,
    pub gpu: Result<(Handle, String), (NvmlFailure, String)>,
}

/// What the library says of all.
pub(super) struct Survey {
    pub count: u32,
    /// Absent when only the number was asked for, and it is as before.
    pub found: Option<Vec<Found>>,
}

/// Asks how many GPUs there are, and who they are when that number has changed or `full` is asked for.
///
/// # Errors
/// When the library does not count.
pub(super) fn survey(library: &Library, before: Option<u32>, full: bool) -> Result<Survey, NvmlError> {
    let count = library.nvml().device_count()?;
    let look = |index| {
        let gpu = library.handle(index).and_then(|handle| Ok((handle, library.device(handle).uuid()?)));
        Found { index, gpu: gpu.map_err(|error| (failure(&error), error.to_string())) }
    };
    let found = (full || before != Some(count)).then(|| (0..count).map(look).collect());
    Ok(Survey { count, found })
}

/// Where a GPU's state is.
pub(super) enum State {
    /// No thread asks it.
    Idle(Box<Gpu>),
    /// With a thread that asks it, since this tick.
    Busy(Duration),
    /// Nowhere: its handle is not known.
    Missing,
}

/// A GPU that was seen at least once.
pub(super) struct Seat {
    pub uuid: String,
    pub number: u32,
    /// The library's number for it at present.
    pub index: u32,
    pub state: State,
    /// The library lists it.
    pub listed: bool,
    /// Since when it is off the bus or out of the library's list.
    pub lost: Option<Duration>,
    /// Why it gave nothing, or not all.
    pub trouble: Option<String>,
    /// The processes on it, as the library numbers them.
    pub pids: Vec<u32>,
    /// Wall time of the tick in which it answered last, milliseconds since the Unix epoch.
    pub heard: Option<i64>,
}

/// All GPUs that were ever seen; at most as many as this machine ever had, so none is forgotten.
pub(super) struct Fleet {
    pub seats: Vec<Seat>,
    pub count: Option<u32>,
    /// Indices at which a GPU is that was never seen.
    pub strangers: Vec<String>,
    pub numbers: Arc<GpuNumbers>,
    /// Indices to keep; empty: all.
    only: Vec<u32>,
}

impl Fleet {
    pub fn new(numbers: Arc<GpuNumbers>, only: Vec<u32>) -> Self {
        Fleet { seats: Vec::new(), count: None, strangers: Vec::new(), numbers, only }
    }

    /// Takes in what the library says.
    pub fn update(&mut self, survey: Survey, at: Duration) {
        self.count = Some(survey.count);
        let Some(found) = survey.found else { return };
        self.strangers.clear();
        let mut here = vec![false; self.seats.len()];
        for Found { index, gpu } in found {
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
                        let state = State::Idle(Box::new(Gpu::new(handle)));
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
            if matches!(seat.state, State::Idle(_)) {
                seat.state = State::Missing;
            }
            seat.lose(at, "the driver no longer lists it".into());
        }
    }

    /// The library is started anew: no handle is worth anything.
    pub fn forget_handles(&mut self) {
        self.count = None;
        for seat in self.seats.iter_mut().filter(|seat| matches!(seat.state, State::Idle(_))) {
            seat.state = State::Missing;
        }
    }
}

impl Seat {
    /// What it is called in a sentence, and since when it is silent.
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
            State::Idle(gpu) if gpu.handle() == handle => {}
            State::Idle(gpu) => gpu.reset(handle),
            State::Missing => {
                self.state = State::Idle(Box::new(Gpu::new(handle)));
                (self.lost, self.trouble) = (None, None);
            }
            // It is asked by its old handle; when that comes to an end, the next look finds the new one.
            State::Busy(_) => {}
        }
    }

    /// It is gone, since this tick if it was not before.
    pub fn lose(&mut self, at: Duration, reason: String) {
        self.lost.get_or_insert(at);
        self.trouble = Some(reason);
    }
}
