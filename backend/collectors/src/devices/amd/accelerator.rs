//! Values that AMD's accelerators have beside those of every GPU.

use crate::Out;
use shared::catalog::{MetricDef, gpu, gpu_amd, gpu_health, gpu_profile};
use std::time::Duration;

/// Bits of the throttle reasons: power, PROCHOT, heat. They are NVML's for the same causes.
const REASONS: [u32; 5] = [4, 64, 64, 64, 8];
/// Smallest share of the time, percent, in which a cause of throttling counts as a reason.
const REASON_PERCENT: f64 = 10.0;
/// Bytes of one step of the XGMI counters.
const KIB: f64 = 1024.0;

/// Counters of an accelerator's table at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// Steps since the driver was loaded, in which the residencies are counted.
    pub cycles: Option<u64>,
    /// Steps in which the clocks were held back by: power, heat of the socket, of the memory, of the voltage
    /// regulators, PROCHOT.
    pub held: [Option<u64>; 5],
    /// KiB read and written over each XGMI link.
    pub read: [Option<u64>; 8],
    pub written: [Option<u64>; 8],
}

/// Errors of one block of a GPU since the driver was loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BlockErrors {
    /// Name in the driver: `umc`, `gfx`.
    pub block: String,
    pub corrected: Option<f64>,
    pub uncorrected: Option<f64>,
    pub deferred: Option<f64>,
}

/// Values of one accelerator in one tick. Values that it did not report are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AcceleratorReading {
    /// Shares of the time, percent, in the order of [`Counters::held`].
    pub held: [Option<f64>; 5],
    pub pcie_width: Option<f64>,
    /// GT/s of one lane.
    pub pcie_speed: Option<f64>,
    pub max_pcie_width: Option<f64>,
    /// GT/s of one lane.
    pub max_pcie_speed: Option<f64>,
    /// Bytes per second in both directions.
    pub pcie_bytes: Option<f64>,
    pub pcie_replays: Option<f64>,
    pub pcie_recoveries: Option<f64>,
    pub links_active: Option<f64>,
    pub links: Option<f64>,
    /// Bytes per second over each XGMI link.
    pub read: [Option<f64>; 8],
    pub written: [Option<f64>; 8],
    /// Utilization of each compute die, percent, by partition.
    pub partitions: Vec<Vec<f64>>,
    /// Number of the GPU at the other end of a link, by the link.
    pub neighbors: Vec<(usize, u32)>,
    pub blocks: Vec<BlockErrors>,
}

impl AcceleratorReading {
    /// Adds what the growth of the counters says. A counter that fell was reset and says nothing.
    pub fn add_growth(&mut self, before: &Counters, now: &Counters, over: Duration) {
        let growth = |before: Option<u64>, now: Option<u64>| now?.checked_sub(before?).map(|grown| grown as f64);
        let cycles = growth(before.cycles, now.cycles).filter(|cycles| *cycles > 0.0);
        for ((held, before), now) in self.held.iter_mut().zip(before.held).zip(now.held) {
            *held = growth(before, now).zip(cycles).map(|(held, cycles)| 100.0 * held / cycles);
        }
        let seconds = over.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        for (rates, before, now) in
            [(&mut self.read, before.read, now.read), (&mut self.written, before.written, now.written)]
        {
            for ((rate, before), now) in rates.iter_mut().zip(before).zip(now) {
                // Links that the board does not have never count.
                let is_used = now.is_some_and(|now| now > 0);
                *rate = growth(before, now).filter(|_| is_used).map(|kib| kib * KIB / seconds);
            }
        }
    }

    /// Puts the plausible values.
    pub fn put(&self, i: u32, out: &mut Out) {
        self.put_held(i, out);
        let mut put = |row: &'static MetricDef, value: Option<f64>, most: f64| {
            out.put_some(row, i, value.filter(|value| (0.0..=most).contains(value)));
        };
        put(&gpu_profile::PCIE_WIDTH, self.pcie_width, 64.0);
        put(&gpu_profile::MAX_PCIE_WIDTH, self.max_pcie_width, 64.0);
        put(&gpu_profile::PCIE_SPEED, self.pcie_speed, 1000.0);
        put(&gpu_profile::PCIE_GEN, self.pcie_speed.and_then(generation), f64::MAX);
        put(&gpu_profile::MAX_PCIE_GEN, self.max_pcie_speed.and_then(generation), f64::MAX);
        put(&gpu_amd::PCIE_BYTES, self.pcie_bytes, 1e12);
        put(&gpu_health::PCIE_REPLAYS, self.pcie_replays, f64::MAX);
        put(&gpu_amd::PCIE_RECOVERIES, self.pcie_recoveries, f64::MAX);
        put(&gpu_amd::XGMI_ACTIVE, self.links_active, f64::MAX);
        put(&gpu_amd::XGMI_LINKS, self.links, f64::MAX);
        for (all, link, rates) in
            [(&gpu_amd::XGMI_TX, &gpu_amd::LINK_TX, &self.written), (&gpu_amd::XGMI_RX, &gpu_amd::LINK_RX, &self.read)]
        {
            for (n, rate) in rates.iter().enumerate().filter_map(|(n, rate)| Some((n, (*rate)?))) {
                out.put_rounded(link, format!("{i}.xgmi.{n}").as_str(), rate);
            }
            let known: Vec<f64> = rates.iter().flatten().copied().collect();
            out.put_rounded(all, i, (!known.is_empty()).then(|| known.iter().sum::<f64>()));
        }
        for (link, neighbor) in &self.neighbors {
            out.put(&gpu_amd::LINK_NEIGHBOR, format!("{i}.xgmi.{link}").as_str(), f64::from(*neighbor));
        }
        self.put_partitions(i, out);
        for errors in &self.blocks {
            let instance = format!("{i}.ecc.{}", errors.block);
            out.put_some(&gpu_amd::BLOCK_CORRECTED, instance.as_str(), errors.corrected);
            out.put_some(&gpu_amd::BLOCK_UNCORRECTED, instance.as_str(), errors.uncorrected);
            out.put_some(&gpu_amd::BLOCK_DEFERRED, instance.as_str(), errors.deferred);
        }
    }

    /// Puts the shares of the time in which something held the clocks back, and the reasons that follow from them.
    fn put_held(&self, i: u32, out: &mut Out) {
        let rows = [
            &gpu_health::POWER_VIOLATION,
            &gpu_health::THERMAL_VIOLATION,
            &gpu_amd::MEMORY_VIOLATION,
            &gpu_amd::REGULATOR_VIOLATION,
            &gpu_amd::PROCHOT_VIOLATION,
        ];
        let mut reasons = None;
        for ((row, held), bit) in rows.into_iter().zip(self.held).zip(REASONS) {
            // The controller takes the counters one after the other, so a share may exceed the whole by a little.
            let Some(held) = held.filter(|held| (0.0..=110.0).contains(held)) else { continue };
            let held = held.min(100.0);
            out.put_rounded(row, i, held);
            let bit = if held >= REASON_PERCENT { bit } else { 0 };
            reasons = Some(reasons.unwrap_or(0) | bit);
        }
        out.put_some(&gpu::THROTTLE_REASONS, i, reasons.map(f64::from));
    }

    /// Puts the dies, numbered through all partitions, and each partition of a divided GPU as a device of its own.
    fn put_partitions(&self, i: u32, out: &mut Out) {
        for (n, busy) in self.partitions.iter().flatten().enumerate() {
            out.put(&gpu_amd::XCC_BUSY, format!("{i}.xcc.{n}").as_str(), *busy);
        }
        if self.partitions.len() < 2 {
            return;
        }
        for (n, dies) in self.partitions.iter().enumerate().filter(|(_, dies)| !dies.is_empty()) {
            let mean = dies.iter().sum::<f64>() / dies.len() as f64;
            out.put_rounded(&gpu::UTILIZATION, format!("{i}.xcp.{n}").as_str(), mean);
        }
    }
}

/// The PCIe generation of a speed in GT/s.
fn generation(speed: f64) -> Option<f64> {
    const SPEEDS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
    SPEEDS.iter().position(|known| *known == speed).map(|n| (n + 1) as f64)
}
