//! The profiling counters of Hopper and newer (GPM in NVML): one sample per tick, computed against the previous one. So
//! each value covers the whole time between ticks, and nothing waits.

use super::asker::{Asker, Call};
use super::library::{GpmSample, Handle, Library};
use shared::catalog::{MetricDef, gpu_profile};
use std::time::Duration;

/// The library rejects samples that are closer together.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Interval of checks whether a GPU without the counters supports them.
const SUPPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Throughput is reported in MiB per second.
const MIB: f64 = (1 << 20) as f64;

/// The library's IDs of the counters, in the order of [`Profiled`].
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

/// Values of the counters since the previous tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profiled {
    /// Metric of a whole GPU, and percent.
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
    /// Two samples; the first is the previous tick's.
    samples: Option<[GpmSample; 2]>,
    /// Time of the previous sample.
    taken: Option<Duration>,
    supported: Option<(bool, Duration)>,
}

impl Profile {
    /// Counters of the whole GPU, or of a GPU instance.
    pub fn new(instance: Option<u32>) -> Self {
        Profile { instance, samples: None, taken: None, supported: None }
    }

    /// Takes this tick's sample, and returns the values since the previous one.
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
