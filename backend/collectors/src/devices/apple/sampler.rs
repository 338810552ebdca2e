//! macmon's sampler on a thread of its own, because it holds system handles that must stay on one thread.

use super::report::{AppleReport, Cluster};
use super::{accelerator, powermetrics};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use macmon::{CpuTierMetrics, Metrics, Sampler};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Minimum interval of a sample, ms. The sampler measures since the previous sample, so only the first one waits for
/// this.
const MIN_SAMPLE_MS: u32 = 100;

/// Opens the sensors.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let mut parts = sensors(options)?;
    parts.push(accelerator::part(options.gpu_numbers.claim("apple", 0), crate::host::facts::memory_bytes(roots)));
    Ok(parts)
}

fn sensors(options: &Options) -> Result<Vec<Part>, OpenError> {
    let tried = vec!["IOReport, SMC and IOHID".to_string()];
    let worker = match Worker::start() {
        Ok(worker) => worker,
        Err(error) => {
            // SAFETY: a plain system call without arguments that cannot fail.
            let is_root = unsafe { libc::geteuid() } == 0;
            let sensors = format!("the sensors of Apple silicon do not respond: {error}");
            return powermetrics::open(&sensors, is_root, gpu(options));
        }
    };
    if worker.virtual_machine {
        let reason = "macOS provides no sensors in a virtual machine";
        return Err(OpenError::absent(tried, reason, "run Watchglass on the Mac itself"));
    }
    Ok(Part::only(tried, Apple { worker: Some(worker), gpu: gpu(options) }))
}

/// The number of the GPU; none if the configuration excludes it.
fn gpu(options: &Options) -> Option<u32> {
    options.keeps_gpu(0).then(|| options.gpu_numbers.claim("apple", 0))
}

struct Apple {
    /// None after its thread has ended, until the next start.
    worker: Option<Worker>,
    gpu: Option<u32>,
}

impl Collector for Apple {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start().map_err(CollectError::failed)?,
        };
        // A worker that panicked is not kept; only this sample is lost.
        let answer = worker.sample().ok_or_else(|| CollectError::failed("Apple's sampler panicked"))?;
        self.worker = Some(worker);
        answer.map_err(CollectError::failed)?.put(self.gpu, out);
        Ok(())
    }
}

struct Worker {
    ask: SyncSender<()>,
    answers: Receiver<Result<AppleReport, String>>,
    virtual_machine: bool,
}

impl Worker {
    fn start() -> Result<Self, String> {
        let (ask, asked) = sync_channel::<()>(1);
        let (answer, answers) = sync_channel(1);
        let (opened, opening) = sync_channel(1);
        let run = move || {
            let mut sampler = match Sampler::new() {
                Ok(sampler) => sampler,
                Err(error) => {
                    let _ = opened.send(Err(error.to_string()));
                    return;
                }
            };
            let _ = opened.send(Ok(sampler.get_soc_info().vm));
            // The first GPU frequency is that of a GPU that is off.
            let has_gpu = sampler.get_soc_info().gpu_freqs.len() > 1;
            while asked.recv().is_ok() {
                let sample = sampler.get_metrics(MIN_SAMPLE_MS).map_err(|error| error.to_string());
                if answer.send(sample.map(|metrics| report(&metrics, has_gpu))).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("apple".into()).spawn(run).map_err(|error| error.to_string())?;
        let virtual_machine = opening.recv().map_err(|_| "the sampler's thread has ended".to_string())??;
        Ok(Worker { ask, answers, virtual_machine })
    }

    /// The next sample; none if the thread has ended.
    fn sample(&self) -> Option<Result<AppleReport, String>> {
        self.ask.send(()).ok()?;
        self.answers.recv().ok()
    }
}

fn report(metrics: &Metrics, has_gpu: bool) -> AppleReport {
    let cluster = |mhz: u32, ratio: f32| Cluster { megahertz: mhz.into(), ratio: ratio.into() };
    let tier = |tier: &CpuTierMetrics| cluster(tier.freq_mhz, tier.scaled_ratio);
    // Tiers are ordered from the slowest kind of core to the fastest; their names vary between chips.
    let tiers = &metrics.cpu_tiers;
    AppleReport {
        efficiency: tiers.first().filter(|_| tiers.len() > 1).map(tier),
        performance: tiers.last().map(tier),
        gpu: has_gpu.then(|| cluster(metrics.gpu_freq_mhz, metrics.gpu_scaled_ratio)),
        cpu_power: Some(metrics.cpu_power.into()),
        gpu_power: Some(metrics.gpu_power.into()),
        ane_power: Some(metrics.ane_power.into()),
        system_power: Some(metrics.sys_power.into()),
        cpu_temp: metrics.temp.cpu_temp_avg.map(f64::from),
        gpu_temp: metrics.temp.gpu_temp_avg.map(f64::from),
        memory_used: Some(metrics.memory.ram_usage as f64),
        memory_total: Some(metrics.memory.ram_total as f64),
    }
}
