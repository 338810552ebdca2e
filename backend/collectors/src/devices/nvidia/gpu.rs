//! One GPU: the calls of a tick, and the values cached between ticks to reduce calls.

use super::asker::{Asker, Call};
use super::gpm::Profile;
use super::health::Health;
use super::library::{Fields, Handle, Library};
use super::mig::Parts;
use super::rates::Rate;
use super::reading::{NvidiaReading, ValueSubject};
use super::retry::{NvmlFailure, Retry};
use super::users::{Process, Who, together};
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, MemoryLocation, TemperatureSensor, TemperatureThreshold,
};
use nvml_wrapper::error::NvmlError;
use shared::catalog::{gpu, gpu_parts, gpu_profile};
use std::time::Duration;

/// Intervals of reading values that rarely change.
const LIMITS_INTERVAL: Duration = Duration::from_secs(60);
const LINK_INTERVAL: Duration = Duration::from_secs(10);

/// Interval of checks for processes of the multi-process service (MPS), while there are none.
const SHARED_INTERVAL: Duration = Duration::from_secs(5);

/// A cached value that is read periodically.
#[derive(Clone, Copy, Debug, Default)]
struct CachedReading {
    value: Option<u32>,
    asked: Option<Duration>,
}

impl CachedReading {
    fn get(&mut self, at: Duration, every: Duration, ask: impl FnOnce() -> Result<u32, NvmlError>) -> Option<u32> {
        if self.asked.is_none_or(|then| at.saturating_sub(then) >= every) {
            *self = CachedReading { value: ask().ok(), asked: Some(at) };
        }
        self.value
    }
}

/// State of a GPU between ticks.
pub(super) struct Gpu {
    handle: Handle,
    retries: [Retry; Call::COUNT],
    /// The last failure, and its call. It stays until that call succeeds, also in ticks without the call.
    trouble: Option<(Call, NvmlFailure, String)>,
    power_limit: CachedReading,
    max_temp: CachedReading,
    max_memory_temp: CachedReading,
    link: [CachedReading; 4],
    lane_speed: CachedReading,
    energy: Rate,
    pcie: [Rate; 2],
    nvlink: [Rate; 2],
    health: Health,
    profile: Profile,
    parts: Parts,
    /// Whether it has no memory of its own, by the last answer about it.
    shares_memory: bool,
    /// Time of the last list without processes of the multi-process service.
    unshared: Option<Duration>,
    /// The driver's clock at the newest share of a process, microseconds.
    shares_since: u64,
}

impl Gpu {
    /// A GPU without state.
    pub fn new(handle: Handle) -> Self {
        Gpu {
            handle,
            retries: Default::default(),
            trouble: None,
            power_limit: CachedReading::default(),
            max_temp: CachedReading::default(),
            max_memory_temp: CachedReading::default(),
            link: Default::default(),
            lane_speed: CachedReading::default(),
            energy: Rate::default(),
            pcie: Default::default(),
            nvlink: Default::default(),
            health: Health::default(),
            profile: Profile::new(None),
            parts: Parts::default(),
            shares_memory: false,
            unshared: None,
            shares_since: 0,
        }
    }

    /// Handle in the library, valid until the GPU is lost or the library is restarted.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Resets the state, because the GPU came back or the library was restarted. Handles and samples are invalid then,
    /// and calls that failed may work.
    pub fn reset(&mut self, handle: Handle) {
        *self = Gpu::new(handle);
    }

    /// Makes all due calls of a tick.
    pub fn read(&mut self, library: &Library, at: Duration) -> NvidiaReading {
        let mut asker = Asker::new(self.retries);
        let device = library.device(self.handle);
        if self.parts.refresh(library, self.handle, at) {
            // Calls that one mode does not support may work in the other.
            asker.retries = Default::default();
            self.profile = Profile::new(None);
        }

        if let Some(rates) = asker.ask(Call::Utilization, || device.utilization_rates()) {
            asker.put(&gpu::UTILIZATION, percent(rates.gpu));
            asker.put(&gpu::MEMORY_ACTIVITY, percent(rates.memory));
        }
        let memory = asker.ask(Call::Memory, || {
            let memory = library.memory(self.handle);
            self.shares_memory = matches!(memory, Err(NvmlError::NotSupported));
            memory
        });
        let memory = memory.filter(|(used, total)| *total > 0 && used <= total);
        if let Some((used, total)) = memory {
            asker.put(&gpu::MEMORY_ALLOCATED_BYTES, Some(used as f64));
            asker.put(&gpu::MEMORY_TOTAL_BYTES, Some(total as f64));
            asker.put_rounded(&gpu::MEMORY_ALLOCATED, Some(100.0 * used as f64 / total as f64));
        }
        let temp = asker.ask(Call::Temperature, || device.temperature(TemperatureSensor::Gpu));
        asker.put(&gpu::TEMP, temp.map(f64::from).and_then(celsius));
        let fields = asker.ask(Call::Fields, || library.fields(self.handle)).unwrap_or_default();
        asker.put(&gpu::MEMORY_TEMP, fields.memory_temp.and_then(celsius));
        let went_on = self.power(&mut asker, library, fields, at);

        let mut clock = |call, kind, row| {
            let megahertz = asker.ask(call, || device.clock_info(kind)).filter(|mhz| *mhz < 100_000);
            asker.put(row, megahertz.map(f64::from));
        };
        clock(Call::SmClock, Clock::SM, &gpu::SM_CLOCK);
        clock(Call::MemoryClock, Clock::Memory, &gpu::MEMORY_CLOCK);
        clock(Call::GraphicsClock, Clock::Graphics, &gpu::GRAPHICS_CLOCK);
        let mut errors = |call, kind, row| {
            let place = MemoryLocation::Device;
            let count = asker.ask(call, || device.memory_error_counter(kind, EccCounter::Volatile, place));
            asker.put(row, count.map(|n| n as f64));
        };
        errors(Call::Corrected, MemoryError::Corrected, &gpu::CORRECTED_ERRORS);
        errors(Call::Uncorrected, MemoryError::Uncorrected, &gpu::UNCORRECTED_ERRORS);
        // Fans may turn faster than their maker's 100 percent.
        let fan = asker.ask(Call::Fan, || device.fan_speed(0)).filter(|percent| *percent <= 200);
        asker.put(&gpu::FAN_SPEED, fan.map(f64::from));
        let encoder = asker.ask(Call::Encoder, || device.encoder_utilization());
        asker.put(&gpu::ENCODER, encoder.and_then(|info| percent(info.utilization)));
        let decoder = asker.ask(Call::Decoder, || device.decoder_utilization());
        asker.put(&gpu::DECODER, decoder.and_then(|info| percent(info.utilization)));
        let reasons = asker.ask(Call::Throttle, || device.current_throttle_reasons());
        asker.put(&gpu::THROTTLE_REASONS, reasons.map(|set| set.bits() as f64));

        if !asker.reading.stopped() {
            self.limits(&mut asker, library, at);
            self.links(&mut asker, library, (fields, went_on), at);
            self.health.read(&mut asker, library, self.handle, self.parts.are_on(), at);
            self.parts.read(&mut asker, library, self.handle, at);
            self.processes(&mut asker, library, memory.map(|(_, total)| total), at);
        }
        self.retries = asker.retries;
        let mut reading = asker.reading;
        self.trouble = match (reading.failure.clone(), asker.failed, self.trouble.take()) {
            (Some((failure, reason)), Some(call), _) => Some((call, failure, reason)),
            (_, _, Some((_, NvmlFailure::Lost | NvmlFailure::Silent, _))) if reading.answered => None,
            (None, _, Some(before)) if self.retries[before.0 as usize].fails() => Some(before),
            _ => None,
        };
        if reading.failure.is_none() {
            reading.failure = self.trouble.clone().map(|(_, failure, reason)| (failure, reason));
        }
        reading
    }

    /// Whether the counter of energy went on, so the driver's counters were not reset.
    fn power(&mut self, asker: &mut Asker, library: &Library, fields: Fields, at: Duration) -> bool {
        let device = library.device(self.handle);
        let power = fields.power.or_else(|| asker.ask(Call::Power, || device.power_usage()).map(f64::from));
        let watts = |milliwatts: f64| (milliwatts <= 2_000_000.0).then(|| milliwatts / 1000.0);
        let power = power.and_then(watts);
        asker.put(&gpu::POWER_WATTS, power);
        let limit = power.and_then(|_| self.power_limit.get(at, LIMITS_INTERVAL, || device.enforced_power_limit()));
        let limit = limit.and_then(|milliwatts| watts(milliwatts.into())).filter(|watts| *watts > 0.0);
        asker.put(&gpu::POWER_LIMIT_WATTS, limit);
        asker.put_rounded(&gpu::POWER_PERCENT, power.zip(limit).map(|(power, limit)| 100.0 * power / limit));
        let total = || device.total_energy_consumption().map(|millijoules| millijoules as f64);
        let energy = fields.energy.or_else(|| asker.ask(Call::Energy, total));
        asker.put(&gpu::ENERGY_JOULES, energy.map(|millijoules| millijoules / 1000.0));
        let mean = self.energy.per_second(energy, at).map(|milliwatts| milliwatts / 1000.0);
        asker.put_rounded(&gpu::POWER_MEAN_WATTS, mean.filter(|watts| *watts <= 2000.0));
        mean.is_some()
    }

    fn limits(&mut self, asker: &mut Asker, library: &Library, at: Duration) {
        let device = library.device(self.handle);
        let core =
            self.max_temp.get(at, LIMITS_INTERVAL, || device.temperature_threshold(TemperatureThreshold::GpuMax));
        asker.put(&gpu::MAX_OP_TEMP, core.map(f64::from).and_then(celsius));
        let limit = || device.temperature_threshold(TemperatureThreshold::MemoryMax);
        let memory = self.max_memory_temp.get(at, LIMITS_INTERVAL, limit);
        asker.put(&gpu::MEMORY_MAX_OP_TEMP, memory.map(f64::from).and_then(celsius));
        let [generation, width, max_generation, max_width] = &mut self.link;
        let count = |kept: Option<u32>| kept.filter(|n| (1..=64).contains(n)).map(f64::from);
        asker.put(&gpu_profile::PCIE_GEN, count(generation.get(at, LINK_INTERVAL, || device.current_pcie_link_gen())));
        asker.put(&gpu_profile::PCIE_WIDTH, count(width.get(at, LINK_INTERVAL, || device.current_pcie_link_width())));
        asker.put(
            &gpu_profile::MAX_PCIE_GEN,
            count(max_generation.get(at, LIMITS_INTERVAL, || device.max_pcie_link_gen())),
        );
        asker.put(
            &gpu_profile::MAX_PCIE_WIDTH,
            count(max_width.get(at, LIMITS_INTERVAL, || device.max_pcie_link_width())),
        );
        // The unit is millions of transfers per second.
        let speed = self.lane_speed.get(at, LINK_INTERVAL, || device.pcie_link_speed());
        asker.put(
            &gpu_profile::PCIE_SPEED,
            speed.filter(|mega| (1..1_000_000).contains(mega)).map(|mega| f64::from(mega) / 1000.0),
        );
    }

    /// Throughput of the links: from the profiling counters if there are any, else from the driver's byte counters.
    /// `went_on`: they were not reset since the previous tick.
    fn links(&mut self, asker: &mut Asker, library: &Library, (fields, went_on): (Fields, bool), at: Duration) {
        // The driver counts PCIe in 32 bits, which a busy link fills within seconds.
        let of_pcie = |rate: &mut Rate, count| match went_on {
            true => rate.per_second_of_32_bits(count, at),
            false => rate.per_second(count, at),
        };
        let counted = [
            (&gpu_profile::PCIE_TX, of_pcie(&mut self.pcie[0], fields.pcie_tx)),
            (&gpu_profile::PCIE_RX, of_pcie(&mut self.pcie[1], fields.pcie_rx)),
            (&gpu_profile::NVLINK_TX, self.nvlink[0].per_second(fields.nvlink_tx, at).map(from_kib)),
            (&gpu_profile::NVLINK_RX, self.nvlink[1].per_second(fields.nvlink_rx, at).map(from_kib)),
        ];
        let whole = !self.parts.are_on();
        let profiled = if whole { self.profile.read(asker, library, self.handle, at) } else { Default::default() };
        for (row, value) in profiled.shares {
            asker.put(row, value);
        }
        for ((row, counted), profiled) in counted.into_iter().zip(profiled.links) {
            asker.put(row, profiled.or(counted));
        }
    }

    fn processes(&mut self, asker: &mut Asker, library: &Library, total: Option<u64>, at: Duration) {
        let compute = asker.ask(Call::Compute, || library.processes(self.handle, Who::Compute));
        let is_known = compute.is_some();
        let compute: Vec<Process> = compute.unwrap_or_default();
        let mut list = |call, who| asker.ask(call, || library.processes(self.handle, who)).unwrap_or_default();
        let mut pids: Vec<u32> = compute.iter().map(|process| process.pid).collect();
        let mut all = together(compute);
        // The server of the service is a compute process too, so without compute processes nobody uses the service.
        let rest = self.unshared.is_some_and(|then| at.saturating_sub(then) < SHARED_INTERVAL);
        let shared = if all.is_empty() || rest { Vec::new() } else { list(Call::Shared, Who::Shared) };
        self.unshared = if shared.is_empty() { self.unshared.filter(|_| rest).or(Some(at)) } else { None };
        // A process that computes and draws is in both lists, with the same value.
        for process in shared.into_iter().chain(list(Call::Graphics, Who::Graphics)) {
            if all.iter().all(|other| other.pid != process.pid) {
                pids.push(process.pid);
                all.push(process);
            }
        }
        let bytes = |process: &Process| process.memory.filter(|bytes| total.is_none_or(|total| *bytes <= total));
        for process in &all {
            asker.reading.put(
                &gpu_parts::PROCESS_MEMORY,
                ValueSubject::Process(process.pid),
                bytes(process).map(|b| b as f64),
            );
        }
        asker.reading.pids = pids;
        if self.shares_memory && !self.parts.are_on() {
            // The sum of only some is too low, and a list that was not read is no list without processes.
            let sum: Option<u64> = all.iter().map(|process| process.memory).sum();
            asker.reading.shared_memory = sum.filter(|_| is_known);
        }
        if all.is_empty() || self.parts.are_on() {
            return;
        }
        let since = self.shares_since;
        let mut shares = asker.ask(Call::Shares, || library.shares(self.handle, since)).unwrap_or_default();
        self.shares_since = shares.iter().map(|(.., when)| *when).fold(since, u64::max);
        // Keeps the newest share of each process.
        shares.sort_unstable_by_key(|(pid, _, when)| (*pid, std::cmp::Reverse(*when)));
        shares.dedup_by_key(|(pid, ..)| *pid);
        shares.retain(|(pid, ..)| asker.reading.pids.contains(pid));
        for (pid, share, _) in shares {
            asker.reading.put(&gpu_parts::PROCESS_SM, ValueSubject::Process(pid), percent(share));
        }
    }
}

/// A driver that is being reset reports impossible values; those are dropped.
fn percent(value: u32) -> Option<f64> {
    (value <= 100).then(|| f64::from(value))
}

fn celsius(value: f64) -> Option<f64> {
    (value > 0.0 && value <= 150.0).then_some(value)
}

fn from_kib(kib: f64) -> f64 {
    kib * (1 << 10) as f64
}
