//! MIG: a GPU divided into devices. The list of devices is read every few seconds, and at once when one of them fails.

use super::asker::Asker;
use super::gpm::Profile;
use super::library::{Handle, Library};
use super::reading::ValueSubject;
use super::retry::{NvmlFailure, failure};
use shared::catalog::gpu;
use std::time::Duration;

/// Interval of reading the mode and the list of devices.
const LIST_INTERVAL: Duration = Duration::from_secs(5);

struct MigPart {
    index: u32,
    instance: u32,
    handle: Handle,
    profile: Profile,
}

/// The MIG devices of one GPU.
#[derive(Default)]
pub(super) struct Parts {
    /// None if the card does not support MIG, or did not answer.
    on: Option<bool>,
    looked: Option<Duration>,
    all: Vec<MigPart>,
}

impl Parts {
    /// Whether the GPU is divided.
    pub fn are_on(&self) -> bool {
        self.on == Some(true)
    }

    /// Reads mode and devices if it is time. Returns whether the mode has changed.
    pub fn refresh(&mut self, library: &Library, gpu: Handle, at: Duration) -> bool {
        if self.looked.is_some_and(|then| at.saturating_sub(then) < LIST_INTERVAL) {
            return false;
        }
        let first = self.looked.replace(at).is_none();
        let on = library.device(gpu).mig_mode().ok().map(|mode| mode.current == 1);
        let changed = std::mem::replace(&mut self.on, on) != on;
        let mut old = std::mem::take(&mut self.all);
        if self.are_on() {
            let most = library.device(gpu).mig_device_count().unwrap_or(0);
            for index in 0..most {
                let Ok((handle, instance)) = library.mig(gpu, index) else { continue };
                let same =
                    old.iter().position(|part| (part.index, part.handle, part.instance) == (index, handle, instance));
                let profile = Profile::new(Some(instance));
                self.all.push(same.map_or(MigPart { index, instance, handle, profile }, |i| old.swap_remove(i)));
            }
        }
        changed && !first
    }

    /// Reads each device.
    pub fn read(&mut self, asker: &mut Asker, library: &Library, gpu: Handle, at: Duration) {
        // Two devices of one instance share its counters; they are put for the first one.
        let mut told = Vec::new();
        for part in &mut self.all {
            match library.memory(part.handle) {
                Ok((used, total)) if total > 0 && used <= total => {
                    let place = ValueSubject::Part(part.index);
                    asker.reading.put(&gpu::MEMORY_ALLOCATED_BYTES, place, Some(used as f64));
                    asker.reading.put(
                        &gpu::MEMORY_ALLOCATED,
                        place,
                        Some(gpu::MEMORY_ALLOCATED.rounded(100.0 * used as f64 / total as f64)),
                    );
                }
                Ok(_) => {}
                Err(error) => {
                    self.looked = None;
                    let failure = failure(&error);
                    if matches!(failure, NvmlFailure::Lost | NvmlFailure::Silent) {
                        asker.reading.fail(failure, format!("MIG device {}: {error}", part.index));
                        return;
                    }
                    continue;
                }
            }
            if told.contains(&part.instance) {
                continue;
            }
            told.push(part.instance);
            let profiled = part.profile.read(asker, library, gpu, at);
            for (row, value) in profiled.shares {
                asker.reading.put(row, ValueSubject::Part(part.index), value);
            }
        }
    }
}
