//! The profiling counters of Hopper and newer (NVML calls them GPM): one sample a tick, computed against the one before,
//! so that each value covers the whole time between ticks and nothing ever waits.

use super::asker::{Asker, Call};
use super::library::{GpmSample, Handle, Library};
use shared::catalog::{MetricDef, gpu_profile};
use std::time::Duration;

/// The library refuses samples that are closer.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// How often a GPU without the counters is asked whether it has them.
const SUPPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Throughput comes in MiB per second.
const MIB: f64 = (1 << 20) as f64;

/// The library's numbers of the counters, in the order of [`Profiled`].
const ASKED: [u32; 12] = [2, 3, 10, 5, 7, 11, 12, 13, 20, 21, 61, 60];

static SHARES: [&MetricDef; 8] = [
    &gpu_profile::SM_ACTIVE,
    &gpu_profile::SM_OCCUPANCY,
    &gpu_profile::DRAM_ACTIVE,
    &gpu_profile::TENSOR_ACTIVE,
    &gpu_profile::HMMA_ACTIVE,
    &gpu_profile::FP64_ACTIVE,
    &gpu_profile::FP32_ACTIVE,
    &gpu_profile::FP16_ACTIVE,
];

/// What the counters say of the time since the previous tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profiled {
    /// Row of a whole GPU, and percent.
    pub shares: [(&'static MetricDef, Option<f64>); 8],
    /// Bytes per second: PCIe sent and received, NVLink sent and received.
    pub links: [Option<f64>; 4],
}

impl Default for Profiled {
    fn default() -> Self {
        Profiled { shares: SHARES.map(|row| (row, None)), links: [None; 4] }
    }
}

/// The counters of a GPU or of one of its instances.
#[derive(Debug)]
pub(super) struct Profile {
    instance: Option<u32>,
    /// Room for two samples; the first is the previous tick's.
    samples: Option<[GpmSample; 2]>,
    /// When the previous sample was taken.
    taken: Option<Duration>,
    supported: Option<(bool, Duration)>,
}

impl Profile {
    /// Of the whole GPU, or of a GPU instance.
    pub fn new(instance: Option<u32>) -> Self {
        Profile { instance, samples: None, taken: None, supported: None }
    }

    /// Takes this tick's sample and says what happened since the previous one.
    pub fn read(&mut self, asker: &mut Asker, library: &Library, handle: Handle, at: Duration) -> Profiled {
        if !self.is_supported(library, handle, at)
            || self.taken.is_some_and(|then| at.saturating_sub(then) < MIN_SAMPLE_INTERVAL)
        {
            return Profiled::default();
        }
        let (samples, taken, instance) = (&mut self.samples, &mut self.taken, self.instance);
        let values = asker.ask(Call::Profile, || {
            let [before, after] = match *samples {
                Some(samples) => samples,
                None => *samples.insert([library.sample()?, library.sample()?]),
            };
            let had = taken.take();
            library.take(handle, instance, after)?;
            (*samples, *taken) = (Some([after, before]), Some(at));
            had.map(|_| library.between(before, after, ASKED)).transpose()
        });
        values.flatten().map_or_else(Profiled::default, profiled)
    }

    fn is_supported(&mut self, library: &Library, handle: Handle, at: Duration) -> bool {
        match self.supported {
            Some((true, _)) => true,
            Some((false, asked)) if at.saturating_sub(asked) < SUPPORT_INTERVAL => false,
            _ => {
                let supported = library.device(handle).gpm_support().unwrap_or(false);
                self.supported = Some((supported, at));
                supported
            }
        }
    }
}

fn profiled(values: [Option<f64>; 12]) -> Profiled {
    let mut found = Profiled::default();
    for ((_, share), value) in found.shares.iter_mut().zip(values) {
        *share = value.filter(|percent| (0.0..=100.0).contains(percent));
    }
    for (link, value) in found.links.iter_mut().zip(&values[8..]) {
        *link = value.filter(|rate| *rate >= 0.0).map(|rate| rate * MIB);
    }
    found
}
