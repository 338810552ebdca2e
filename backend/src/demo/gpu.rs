//! A simulated GPU: like NVIDIA's H100 on its board, with the readings of NVML.

use super::drive::Drive;
use super::fault::{Touch, is_felt};
use super::job::{Phase, cooled};
use super::noise::Key;
use super::processes::Held;
use collectors::Out;
use shared::catalog::{gpu, gpu_parts as parts, gpu_profile as profile};

/// Its name.
pub(super) const NAME: &str = "NVIDIA H100 80GB HBM3";
/// Power when idle, and maximum, watts.
pub(super) const IDLE_WATTS: f64 = 72.0;
pub(super) const POWER_LIMIT_WATTS: f64 = 700.0;

const MIB: f64 = (1 << 20) as f64;
/// Device memory, MiB.
const MEMORY_MIB: f64 = 81_559.0;
/// Share of it that is in use without a job.
const EMPTY_SHARE: f64 = 0.0064;
/// °C, the highest in normal operation.
const MAX_CELSIUS: f64 = 87.0;
const MAX_MEMORY_CELSIUS: f64 = 95.0;
/// MHz.
const MAX_CLOCK_MHZ: f64 = 1_980.0;
const IDLE_CLOCK_MHZ: f64 = 345.0;
const MEMORY_CLOCK_MHZ: f64 = 2_619.0;
/// Time that the driver still reports a GPU that fell off the bus, milliseconds: enough for one tick.
const LAST_WORD_MS: f64 = 1_000.0;
/// Bits of the throttle reasons.
const NOTHING_TO_DO: f64 = 1.0;
const CLOCKS_SET: f64 = 2.0;
const POWER_CAP: f64 = 4.0;
const TOO_HOT: f64 = 96.0;

pub(super) struct Gpu {
    i: u32,
    key: Key,
    /// Individual deviations of the GPU and its place in the machine.
    appetite: f64,
    inlet: f64,
    rise: f64,
    share: f64,
    linked: bool,
}

impl Gpu {
    /// The GPU of this number in a machine of `of` GPUs.
    pub fn new(machine: Key, i: u32, of: u32) -> Self {
        let key = machine.derive(100 + u64::from(i));
        Gpu {
            i,
            key,
            appetite: key.derive(1).between(0.965, 1.03),
            inlet: machine.derive(5).between(24.0, 29.0),
            rise: key.derive(2).between(35.0, 44.0),
            share: key.derive(3).between(-0.004, 0.004),
            linked: of > 1,
        }
    }

    pub fn read(&self, at: &Drive, touch: Touch, out: &mut Out) {
        if let Touch::Lost(ms) = touch {
            // The last reports of the driver.
            if ms < LAST_WORD_MS {
                self.errors(79, out);
            }
            return;
        }
        let work = self.work(at, touch);
        self.load(at, touch, work, out);
        self.board(at, touch, out);
        self.profile(at, touch, work, out);
    }

    /// Memory that the job's process holds (bytes), and its share of the multiprocessors (percent). None when the GPU
    /// is lost.
    pub fn held(&self, at: &Drive, touch: Touch) -> Option<Held> {
        let bytes = (self.memory(at, touch) * MEMORY_MIB).round() - (EMPTY_SHARE * MEMORY_MIB).round();
        (!matches!(touch, Touch::Lost(_))).then(|| ((bytes * MIB) as u64, (92.0 * self.work(at, touch)) as f32))
    }

    /// 0 to about 1: completed arithmetic.
    fn work(&self, at: &Drive, touch: Touch) -> f64 {
        let level = match at.phase {
            _ if at.hung => return 0.0,
            Phase::Train => at.ramp * (1.0 - at.dip),
            Phase::Evaluate => 0.62,
            Phase::StartUp => 0.05 * at.warmth.0,
            Phase::Checkpoint => 0.03,
            Phase::Idle | Phase::Dead => return 0.0,
        };
        let slowed = match touch {
            Touch::Slow(_) | Touch::Waits(_) | Touch::Hot(_) if is_felt(at.phase) => at.share,
            _ => 1.0,
        };
        level * slowed * (1.0 + 0.03 * self.key.derive(10).jitter(at.t, 1_000))
    }

    fn load(&self, at: &Drive, touch: Touch, work: f64, out: &mut Out) {
        let jitter = self.key.derive(11).jitter(at.t, 1_000);
        let busy = match at.phase {
            _ if at.hung => 100.0,
            Phase::Train => 98.0 + 3.0 * jitter - 100.0 * at.dip,
            Phase::Evaluate => 82.0 + 9.0 * jitter,
            // Compilation and cache filling come in bursts towards the end.
            Phase::StartUp if at.into > 45_000 => 35.0 + 60.0 * jitter,
            Phase::StartUp => 0.0,
            Phase::Checkpoint => 2.0 + 3.0 * jitter,
            Phase::Idle | Phase::Dead => 0.0,
        };
        let busy = match touch {
            // The slow GPU itself never waits.
            Touch::Slow(_) | Touch::Hot(_) if at.phase == Phase::Train => busy.max(99.5),
            // Waiting for the slow one happens in a kernel, and counts as busy.
            Touch::Waits(_) if at.phase == Phase::Train => busy.max(99.0),
            _ => busy,
        };
        let traffic = if at.hung { 0.0 } else { (64.0 * work + 3.0 * jitter).max(0.0) };
        let share = self.memory(at, touch);
        let used = (share * MEMORY_MIB).round() * MIB;
        out.put(&gpu::UTILIZATION, self.i, busy.clamp(0.0, 100.0).round());
        out.put(&gpu::MEMORY_ALLOCATED_BYTES, self.i, used);
        out.put(&gpu::MEMORY_TOTAL_BYTES, self.i, MEMORY_MIB * MIB);
        out.put(&gpu::MEMORY_ALLOCATED, self.i, 100.0 * used / (MEMORY_MIB * MIB));
        out.put(&gpu::MEMORY_ACTIVITY, self.i, if busy < 1.0 { 0.0 } else { traffic.round() });
        out.put(&gpu::ENCODER, self.i, 0.0);
        out.put(&gpu::DECODER, self.i, 0.0);
    }

    /// Share of the device memory in use: flat while the job runs.
    fn memory(&self, at: &Drive, touch: Touch) -> f64 {
        if at.phase == Phase::Dead {
            return EMPTY_SHARE;
        }
        let full = 0.90 + 0.05 * self.key.derive(4).unit(at.run) + self.share;
        let share = match at.phase {
            // The driver's part, then the weights, then the needs of a first step.
            Phase::StartUp => match at.into as f64 / 80_000.0 {
                x if x < 0.25 => EMPTY_SHARE,
                x if x < 0.75 => EMPTY_SHARE + 0.55 * full * (x - 0.25) / 0.5,
                x => (0.55 + 0.45 * (x - 0.75) / 0.25) * full,
            },
            Phase::Evaluate => full + 0.012,
            _ => full + 0.004 * (1.0 - (-(at.age as f64) / 900_000.0).exp()),
        };
        match touch {
            Touch::Fills(way) => share + (0.9985 - share) * way,
            _ => share,
        }
    }

    /// Power, heat, clocks and errors.
    fn board(&self, at: &Drive, touch: Touch, out: &mut Out) {
        let felt = is_felt(at.phase);
        // Factor on the power above idle, and its duration.
        let (factor, since) = match touch {
            Touch::Slow(ms) => (0.72, ms),
            Touch::Waits(ms) => (at.share.min(1.0), ms),
            Touch::Hot(ms) => (0.66, ms),
            _ => (1.0, 0.0),
        };
        let (quick, slow) = cooled(since);
        let warm = (at.warmth.0 * (factor + (1.0 - factor) * quick), at.warmth.1 * (factor + (1.0 - factor) * slow));
        let wander = self.key.derive(12).sway(at.t, 20_000);

        let mean = if at.hung {
            0.2 * POWER_LIMIT_WATTS
        } else {
            let ramp = if at.phase == Phase::Train { at.ramp * (1.0 - 0.6 * at.dip) } else { 1.0 };
            let slowed = if felt { factor } else { 1.0 };
            IDLE_WATTS + (POWER_LIMIT_WATTS - IDLE_WATTS) * at.phase.power() * ramp * slowed * self.appetite
        };
        let noise = if at.phase == Phase::Dead { 1.0 } else { 0.016 * mean };
        let watts =
            (mean + noise * (self.key.derive(13).jitter(at.t, 1_000) + 0.6 * wander)).min(1.005 * POWER_LIMIT_WATTS);
        out.put(&gpu::POWER_WATTS, self.i, watts);
        out.put(&gpu::POWER_LIMIT_WATTS, self.i, POWER_LIMIT_WATTS);
        out.put(&gpu::POWER_PERCENT, self.i, 100.0 * watts / POWER_LIMIT_WATTS);
        out.put(&gpu::POWER_MEAN_WATTS, self.i, (mean + 0.3 * noise * wander).min(POWER_LIMIT_WATTS));
        out.put(&gpu::ENERGY_JOULES, self.i, self.energy(at, factor, wander));

        let core = self.inlet + self.rise * (0.1 + warm.0) + 0.6 * wander;
        let core = match touch {
            Touch::Hot(_) => core + (MAX_CELSIUS + 1.0 - core) * (1.0 - quick) + 0.5 * wander,
            _ => core,
        };
        let memory = self.inlet + 4.0 + (self.rise + 7.0) * (0.1 + warm.1) + 0.5 * wander;
        out.put(&gpu::TEMP, self.i, core.round());
        out.put(&gpu::MAX_OP_TEMP, self.i, MAX_CELSIUS);
        out.put(&gpu::MEMORY_TEMP, self.i, memory.round());
        out.put(&gpu::MEMORY_MAX_OP_TEMP, self.i, MAX_MEMORY_CELSIUS);

        let (clock, reasons) = match (touch, at.phase) {
            (_, Phase::Idle | Phase::Dead) => (IDLE_CLOCK_MHZ, NOTHING_TO_DO),
            (Touch::Hot(_), _) => (1_110.0 + 60.0 * wander, TOO_HOT),
            (Touch::Slow(_), _) if felt => (1_395.0 + 30.0 * wander, CLOCKS_SET),
            (Touch::Waits(_), _) => (MAX_CLOCK_MHZ, 0.0),
            (_, Phase::Train) if !at.hung => (1_770.0 + 45.0 * wander / self.appetite, POWER_CAP),
            _ => (MAX_CLOCK_MHZ, 0.0),
        };
        // Clocks go in steps.
        let clock = (clock / 15.0).round() * 15.0;
        out.put(&gpu::SM_CLOCK, self.i, clock);
        out.put(&gpu::GRAPHICS_CLOCK, self.i, clock);
        out.put(&gpu::MEMORY_CLOCK, self.i, MEMORY_CLOCK_MHZ);
        out.put(&gpu::THROTTLE_REASONS, self.i, reasons);

        // One error in some days is usual.
        let usual = (at.up / self.key.derive(5).between(2e8, 9e8)).floor();
        let (corrected, lost) = match touch {
            // The wandering part is slower than the rising one: a counter never falls.
            Touch::Failing(ms) => {
                // The counter stops from then on, and so must the wandering part.
                let wander = if ms < 45_000.0 { wander } else { 1.0 };
                ((2.5e-3 * ms + 15.0 * (wander + 1.0)).floor(), (ms / 45_000.0).floor())
            }
            _ => (0.0, 0.0),
        };
        out.put(&gpu::CORRECTED_ERRORS, self.i, usual + corrected);
        out.put(&gpu::UNCORRECTED_ERRORS, self.i, lost);
        self.errors(if lost > 0.0 { 48 } else { 0 }, out);
    }

    /// The driver's report of critical errors: none, or this one.
    fn errors(&self, xid: u32, out: &mut Out) {
        out.put(&parts::XID_ERRORS, self.i, if xid == 0 { 0.0 } else { 1.0 });
        if xid != 0 {
            out.put(&parts::LAST_XID, self.i, f64::from(xid));
        }
    }

    /// Joules since the machine was started.
    fn energy(&self, at: &Drive, factor: f64, wander: f64) -> f64 {
        let above = [
            (Phase::StartUp, at.spent.start_up),
            // The first minutes of a run need less.
            (Phase::Train, 0.985 * (at.spent.train - (1.0 - factor) * at.felt)),
            (Phase::Evaluate, at.spent.evaluate),
            (Phase::Checkpoint, at.spent.checkpoint),
        ];
        let above: f64 = above.iter().map(|(phase, ms)| phase.power() * ms).sum();
        let hung = if at.hung { (0.2 * POWER_LIMIT_WATTS - IDLE_WATTS) * at.stopped } else { 0.0 };
        // 60 J in 20 s: at most 9 W, so that the sum never falls.
        (IDLE_WATTS * at.up + (POWER_LIMIT_WATTS - IDLE_WATTS) * self.appetite * above + hung) / 1e3 + 60.0 * wander
    }

    fn profile(&self, at: &Drive, touch: Touch, work: f64, out: &mut Out) {
        let shares = [
            (&profile::SM_ACTIVE, 92.0),
            (&profile::SM_OCCUPANCY, 33.0),
            (&profile::DRAM_ACTIVE, 61.0),
            (&profile::TENSOR_ACTIVE, 53.0),
            (&profile::HMMA_ACTIVE, 52.0),
            (&profile::FP64_ACTIVE, 0.0),
            (&profile::FP32_ACTIVE, 9.0),
            (&profile::FP16_ACTIVE, 4.0),
        ];
        for (row, share) in shares {
            out.put(row, self.i, share * work);
        }
        if at.hung {
            // A few multiprocessors spin.
            out.put(&profile::SM_ACTIVE, self.i, 12.0);
        }
        let tremor = 1.0 + 0.06 * self.key.derive(14).jitter(at.t, 1_000);
        // NVML reports whole MiB.
        let rate = |bytes: f64| (bytes * tremor / MIB).round() * MIB;
        if self.linked {
            out.put(&profile::NVLINK_TX, self.i, rate(190e9 * at.traffic));
            out.put(&profile::NVLINK_RX, self.i, rate(190e9 * at.traffic));
        }
        let saved = if at.phase == Phase::Checkpoint { 8e9 } else { 0.0 };
        let loaded = if at.phase == Phase::StartUp && at.into > 20_000 && at.into < 60_000 { 9e9 } else { 0.0 };
        out.put(&profile::PCIE_TX, self.i, rate(0.7e9 * work + saved));
        out.put(&profile::PCIE_RX, self.i, rate(2.1e9 * work + loaded));
        let sleeps = matches!(at.phase, Phase::Idle | Phase::Dead);
        out.put(&profile::PCIE_GEN, self.i, if sleeps { 1.0 } else { 5.0 });
        out.put(&profile::MAX_PCIE_GEN, self.i, 5.0);
        out.put(&profile::PCIE_WIDTH, self.i, if touch == Touch::HalfLanes { 8.0 } else { 16.0 });
        out.put(&profile::MAX_PCIE_WIDTH, self.i, 16.0);
        out.put(&profile::PCIE_SPEED, self.i, if sleeps { 2.5 } else { 32.0 });
    }
}
