//! Physical model of a GPU: clock, power, temperature. Its readings follow from the shares of time in which it worked,
//! waited in a kernel, moved data or was idle.

use super::random::{Altered, Random};

/// A GPU model by its data sheet.
#[derive(Debug)]
pub struct Model {
    pub name: &'static str,
    /// Power limit, and idle power without and with a program that holds it, watts.
    pub limit: f64,
    pub rest: f64,
    pub held: f64,
    /// Highest clock and idle clock, MHz; memory clock, MHz.
    pub clock: f64,
    pub low: f64,
    pub memory_clock: f64,
    /// Bytes of memory.
    pub memory: f64,
    /// Bytes per second and direction over all NVLinks; 0 without NVLink.
    pub nvlink: f64,
    pub pcie_gen: f64,
    /// It has its own profile counters.
    pub profile: bool,
    pub ecc: bool,
    /// Temperature at which the driver throttles, and at which the board throttles, degrees Celsius.
    pub soft: f64,
    pub hard: f64,
    /// Seconds over which the driver averages power, and use.
    pub power_window: f64,
    pub use_window: f64,
    pub fan: bool,
    pub amd: bool,
}

impl Model {
    /// Number of NVLinks.
    pub fn links(&self) -> f64 {
        (self.nvlink / 25e9).min(18.0)
    }
}

const GIB: f64 = (1u64 << 30) as f64;

#[rustfmt::skip]
pub const MODELS: &[Model] = &[
    Model { name: "T4", limit: 70.0, rest: 9.0, held: 26.0, clock: 1590.0, low: 300.0, memory_clock: 5000.0, memory: 15.0 * GIB, nvlink: 0.0, pcie_gen: 3.0, profile: false, ecc: true, soft: 85.0, hard: 93.0, power_window: 0.1, use_window: 0.17, fan: false, amd: false },
    Model { name: "A10", limit: 150.0, rest: 16.0, held: 56.0, clock: 1695.0, low: 210.0, memory_clock: 6250.0, memory: 22.5 * GIB, nvlink: 0.0, pcie_gen: 4.0, profile: false, ecc: true, soft: 88.0, hard: 95.0, power_window: 1.0, use_window: 0.17, fan: false, amd: false },
    Model { name: "V100", limit: 300.0, rest: 24.0, held: 55.0, clock: 1530.0, low: 135.0, memory_clock: 877.0, memory: 32.0 * GIB, nvlink: 150e9, pcie_gen: 3.0, profile: false, ecc: true, soft: 83.0, hard: 90.0, power_window: 0.1, use_window: 0.17, fan: false, amd: false },
    Model { name: "A100", limit: 400.0, rest: 52.0, held: 75.0, clock: 1410.0, low: 210.0, memory_clock: 1593.0, memory: 80.0 * GIB, nvlink: 300e9, pcie_gen: 4.0, profile: false, ecc: true, soft: 85.0, hard: 92.0, power_window: 0.1, use_window: 0.17, fan: false, amd: false },
    Model { name: "A100 PCIe", limit: 300.0, rest: 42.0, held: 64.0, clock: 1410.0, low: 210.0, memory_clock: 1512.0, memory: 80.0 * GIB, nvlink: 0.0, pcie_gen: 4.0, profile: false, ecc: true, soft: 85.0, hard: 92.0, power_window: 0.1, use_window: 0.17, fan: false, amd: false },
    Model { name: "H100", limit: 700.0, rest: 70.0, held: 118.0, clock: 1980.0, low: 345.0, memory_clock: 2619.0, memory: 80.0 * GIB, nvlink: 450e9, pcie_gen: 5.0, profile: true, ecc: true, soft: 87.0, hard: 94.0, power_window: 0.05, use_window: 1.0, fan: false, amd: false },
    Model { name: "H200", limit: 700.0, rest: 74.0, held: 122.0, clock: 1980.0, low: 345.0, memory_clock: 3201.0, memory: 141.0 * GIB, nvlink: 450e9, pcie_gen: 5.0, profile: true, ecc: true, soft: 87.0, hard: 94.0, power_window: 0.05, use_window: 1.0, fan: false, amd: false },
    Model { name: "L40S", limit: 350.0, rest: 33.0, held: 82.0, clock: 2520.0, low: 210.0, memory_clock: 9001.0, memory: 45.0 * GIB, nvlink: 0.0, pcie_gen: 4.0, profile: false, ecc: true, soft: 88.0, hard: 95.0, power_window: 1.0, use_window: 0.17, fan: false, amd: false },
    Model { name: "B200", limit: 1000.0, rest: 140.0, held: 195.0, clock: 1965.0, low: 120.0, memory_clock: 3996.0, memory: 180.0 * GIB, nvlink: 900e9, pcie_gen: 6.0, profile: true, ecc: true, soft: 85.0, hard: 92.0, power_window: 0.05, use_window: 1.0, fan: false, amd: false },
    Model { name: "RTX 4090", limit: 450.0, rest: 18.0, held: 55.0, clock: 2745.0, low: 210.0, memory_clock: 10501.0, memory: 24.0 * GIB, nvlink: 0.0, pcie_gen: 4.0, profile: false, ecc: false, soft: 84.0, hard: 92.0, power_window: 1.0, use_window: 0.17, fan: true, amd: false },
    Model { name: "RTX 3090", limit: 350.0, rest: 22.0, held: 105.0, clock: 1905.0, low: 210.0, memory_clock: 9751.0, memory: 24.0 * GIB, nvlink: 0.0, pcie_gen: 4.0, profile: false, ecc: false, soft: 83.0, hard: 92.0, power_window: 1.0, use_window: 0.17, fan: true, amd: false },
    Model { name: "MI300X", limit: 750.0, rest: 130.0, held: 165.0, clock: 2100.0, low: 132.0, memory_clock: 1300.0, memory: 192.0 * GIB, nvlink: 0.0, pcie_gen: 5.0, profile: false, ecc: true, soft: 95.0, hard: 105.0, power_window: 1.0, use_window: 1.0, fan: false, amd: true },
];

/// Activity of a GPU at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Matrix products.
    Tensor,
    /// Memory traffic: optimizer, decoding.
    Stream,
    /// A kernel that waits for others.
    Spin,
    /// A kernel that moves data between GPUs.
    Comm,
    /// Copies from the host: no kernel.
    Copy,
    /// Idle.
    Rest,
    /// Idle, while the program's own thread works.
    Cpu,
}

/// Seconds of an interval by activity, and bytes moved in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    pub tensor: f64,
    pub stream: f64,
    pub spin: f64,
    pub comm: f64,
    pub copy: f64,
    pub rest: f64,
    /// Bytes sent to other GPUs; as many are received.
    pub peers: f64,
    /// Bytes received from the host.
    pub host: f64,
}

impl Parts {
    pub fn add(&mut self, what: What, seconds: f64) {
        *match what {
            What::Tensor => &mut self.tensor,
            What::Stream => &mut self.stream,
            What::Spin => &mut self.spin,
            What::Comm => &mut self.comm,
            What::Copy => &mut self.copy,
            What::Rest | What::Cpu => &mut self.rest,
        } += seconds;
    }

    pub fn merge(&mut self, other: &Parts) {
        self.tensor += other.tensor;
        self.stream += other.stream;
        self.spin += other.spin;
        self.comm += other.comm;
        self.copy += other.copy;
        self.rest += other.rest;
        self.peers += other.peers;
        self.host += other.host;
    }

    /// Scales the parts to the interval, since two programs on one card cannot work longer; the rest is idle time.
    pub fn fit(&mut self, seconds: f64) {
        let busy = self.tensor + self.stream + self.spin + self.comm + self.copy;
        if busy > seconds {
            let k = seconds / busy;
            for part in [&mut self.tensor, &mut self.stream, &mut self.spin, &mut self.comm, &mut self.copy] {
                *part *= k;
            }
        }
        self.rest = (seconds - busy).max(0.0);
    }

    fn shares(&self) -> [(What, f64); 6] {
        [
            (What::Tensor, self.tensor),
            (What::Stream, self.stream),
            (What::Spin, self.spin),
            (What::Comm, self.comm),
            (What::Copy, self.copy),
            (What::Rest, self.rest),
        ]
    }

    fn draw(&self, random: &mut Random) -> What {
        let all: f64 = self.shares().iter().map(|(_, s)| s).sum();
        let mut at = random.unit() * all;
        for (what, seconds) in self.shares() {
            at -= seconds;
            if at < 0.0 {
                return what;
            }
        }
        What::Rest
    }
}

/// Properties of a program's kernels.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Power of tensor work at the highest clock, as a share of the original limit.
    pub heavy: f64,
    /// The same for memory work, for a waiting kernel, and for a kernel that moves data.
    pub streaming: f64,
    pub spinning: f64,
    pub moving: f64,
    /// Shares of the tensor cores, multiprocessors and memory used by tensor work; share of the multiprocessors used by
    /// waiting and moving.
    pub tensor: f64,
    pub sm: f64,
    pub dram: f64,
    pub waiting_sm: f64,
}

/// One card, with its own variation and faults.
#[derive(Clone, Debug)]
pub struct Card {
    pub model: &'static Model,
    /// Power limit in force, watts.
    pub limit: f64,
    /// Relative speed of this board, its heating, K per W, and the time constant of that, seconds.
    pub board: f64,
    pub cooling: f64,
    pub inertia: f64,
    pub ambient: f64,
    pub temp: f64,
    /// The clock that the temperature allows, MHz.
    pub warm_clock: f64,
    /// The idle clock stays high while a program holds the card.
    pub keeps_clock: bool,
    pub load: Load,
    /// Seconds of program time between two changes of activity: a shorter reading covers one activity.
    pub grain: f64,
    /// Faults of the card.
    pub lost: bool,
    pub stuck: Option<f64>,
    pub brake: bool,
    pub slow: f64,
    /// Share taken by a second program that does not belong to the job.
    pub tenant: f64,
    pub lanes: f64,
    pub max_lanes: f64,
    pub max_gen: f64,
    pub worst_gen: Option<f64>,
    /// Remaining share of its NVLink bandwidth, number of active links, and corrupted packets per minute.
    pub links: f64,
    pub links_up: f64,
    pub breaking: f64,
    pub broken: f64,
    /// Remapped memory rows, and whether a remapping is pending.
    pub remapped: f64,
    pub pending: bool,
    /// Shares of the interval in which power and heat throttled it.
    pub by_power: f64,
    pub by_heat: f64,
    /// Corrected errors per minute.
    pub correcting: f64,
    pub corrected: f64,
    pub uncorrected: f64,
    pub xids: f64,
    pub last_xid: f64,
    pub energy: f64,
    pub bits: u32,
    /// Memory in use, bytes.
    pub used: f64,
    /// Bytes that stay in use without a process.
    pub zombie: f64,
    pub power: f64,
    /// A program holds it.
    pub has_context: bool,
    /// Nothing works on it; and since when, seconds of the trace.
    pub idle: bool,
    pub idle_since: Option<f64>,
    quiet_for: f64,
}

/// Exponent of power over clock: voltage rises with the clock.
const POWER_OF_CLOCK: f64 = 2.4;

impl Card {
    pub fn new(model: &'static Model, random: &mut Random, altered: Altered) -> Self {
        let ambient = random.between(21.0, 33.0);
        // A board at its limit ends up this much warmer than the air.
        let rise = altered.alter("rise", random.between(28.0, 46.0)).min(model.soft - ambient - 6.0);
        Card {
            model,
            limit: model.limit,
            board: random.about_one(0.006),
            cooling: rise / model.limit,
            inertia: altered.alter("inertia", random.between(12.0, 45.0)),
            ambient,
            temp: ambient + rise * 0.3,
            warm_clock: model.clock,
            keeps_clock: random.chance(0.6),
            load: Load {
                heavy: 0.9,
                streaming: 0.5,
                spinning: 0.1,
                moving: 0.2,
                tensor: 0.4,
                sm: 0.9,
                dram: 0.3,
                waiting_sm: 0.1,
            },
            grain: 0.1,
            lost: false,
            stuck: None,
            brake: false,
            slow: 1.0,
            tenant: 0.0,
            lanes: 16.0,
            max_lanes: 16.0,
            max_gen: model.pcie_gen,
            worst_gen: None,
            links: 1.0,
            links_up: model.links(),
            breaking: 0.0,
            broken: random.pick(&[0.0, 0.0, 0.0, 3.0]),
            remapped: random.pick(&[0.0, 0.0, 0.0, 0.0, 1.0, 2.0]),
            pending: false,
            by_power: 0.0,
            by_heat: 0.0,
            correcting: 0.0,
            corrected: if random.chance(0.2) { random.whole(1, 40) as f64 } else { 0.0 },
            uncorrected: if random.chance(0.02) { 1.0 } else { 0.0 },
            xids: 0.0,
            last_xid: 0.0,
            energy: random.between(1e6, 5e9).round(),
            bits: 0,
            used: 0.0,
            zombie: 0.0,
            power: model.rest,
            has_context: false,
            idle: true,
            idle_since: None,
            quiet_for: 100.0,
        }
    }

    fn held(&self) -> f64 {
        if self.keeps_clock { self.model.held } else { 0.4 * self.model.held + 0.6 * self.model.rest }
    }

    fn limit_now(&self) -> f64 {
        if self.brake { self.limit * 0.5 } else { self.limit }
    }

    /// The clock in tensor work, MHz, and whether power limits it.
    pub fn work_clock(&self) -> (f64, bool) {
        let top = self.model.clock;
        let mut clock = self.warm_clock.min(self.stuck.unwrap_or(top)).min(top);
        if self.temp >= self.model.hard {
            clock = clock.min(0.5 * top);
        }
        let own = self.model.held;
        let wanted = (self.load.heavy * self.model.limit - own).max(1.0);
        let allowed = ((self.limit_now() - own).max(1.0) / wanted).powf(1.0 / POWER_OF_CLOCK) * top;
        (clock.min(allowed).max(0.2 * top), allowed < clock)
    }

    /// Relative speed of tensor work and of memory work, 1 for a sound board at its highest clock.
    pub fn speed(&self) -> (f64, f64) {
        let clock = self.work_clock().0 / self.model.clock;
        let share = self.board * self.slow * (1.0 - self.tenant);
        (clock.powf(0.92) * share, clock.powf(0.35) * share)
    }

    fn watts(&self, what: What) -> f64 {
        let held = if self.has_context { self.held() } else { self.model.rest };
        let (clock, _) = self.work_clock();
        let share = |clock: f64| (clock / self.model.clock).powf(POWER_OF_CLOCK);
        let of = |load: f64, clock: f64| {
            let own = self.model.held;
            let dynamic = (load * self.model.limit - own).max(0.02 * self.model.limit);
            (own + dynamic * share(clock)).min(self.limit_now() * 1.01)
        };
        // Light work lets the clock rise to the limit of temperature and lock.
        let free = self.warm_clock.min(self.stuck.unwrap_or(self.model.clock));
        let own = self.model.held;
        match what {
            What::Tensor => of(self.load.heavy, clock),
            What::Stream => of(self.load.streaming, free.min(clock * 1.15)),
            What::Spin => (own + self.load.spinning * self.model.limit * share(free)).min(self.limit_now()),
            What::Comm => (own + self.load.moving * self.model.limit * share(free)).min(self.limit_now()),
            What::Copy => held + 0.04 * self.model.limit,
            What::Rest | What::Cpu => held,
        }
    }

    /// Mean over samples of the interval; over all of it where the driver's window is as long.
    fn seen(&self, parts: &Parts, window: f64, dt: f64, random: &mut Random, value: impl Fn(What) -> f64) -> f64 {
        if window >= dt {
            let all = parts.shares().iter().map(|(_, s)| s).sum::<f64>().max(1e-9);
            return parts.shares().iter().map(|&(what, s)| s * value(what)).sum::<f64>() / all;
        }
        let moments = ((window / self.grain).round() as usize).clamp(1, 6);
        (0..moments).map(|_| value(parts.draw(random))).sum::<f64>() / moments as f64
    }

    /// Warms or cools second by second at a mean power of `watts`, for any interval.
    fn warm(&mut self, watts: f64, dt: f64) {
        let mut left = dt;
        while left > 0.0 {
            let step = left.min(1.0);
            left -= step;
            self.temp += (self.ambient + watts * self.cooling - self.temp) * (1.0 - (-step / self.inertia).exp());
            let over = self.temp - self.model.soft;
            let change = if over > 0.0 { -over * 18.0 } else { (-over).min(4.0) * 6.0 };
            self.warm_clock = (self.warm_clock + change * step).clamp(0.25 * self.model.clock, self.model.clock);
        }
    }

    /// The throttle reasons, as the driver's bits.
    fn throttle_bits(&self, parts: &Parts, asleep: bool, capped: bool, random: &mut Random) -> u32 {
        let busy = parts.tensor + parts.stream + parts.spin + parts.comm;
        let working = parts.tensor > 0.0;
        let mut bits = 0;
        if busy <= 0.0 && asleep {
            bits |= 1;
        }
        if working && capped && parts.draw(random) == What::Tensor {
            bits |= 4;
        }
        if self.brake {
            bits |= 8 | 128;
        }
        if busy > 0.0 && self.warm_clock < 0.995 * self.model.clock && !capped {
            bits |= 32;
        }
        if self.temp >= self.model.hard {
            bits |= 8 | 64;
        }
        if self.stuck.is_some_and(|stuck| stuck < 0.97 * self.model.clock) && self.keeps_clock {
            bits |= 2;
        }
        bits
    }

    /// Advances the card by an interval.
    pub fn pass(&mut self, parts: &Parts, dt: f64, random: &mut Random) -> Reading {
        let busy = parts.tensor + parts.stream + parts.spin + parts.comm;
        self.quiet_for = if busy > 0.0 { 0.0 } else { self.quiet_for + dt };
        self.idle = busy <= 0.0;
        let (clock, capped) = self.work_clock();
        let whole = parts.shares();
        let mean = whole.iter().map(|&(what, s)| s * self.watts(what)).sum::<f64>() / dt
            + if self.tenant > 0.0 {
                self.tenant * 0.5 * (self.model.limit - self.model.held) * parts.rest / dt
            } else {
                0.0
            };
        let mean = mean.min(self.limit_now() * 1.02);
        self.energy += mean * dt;
        self.warm(mean, dt);
        self.corrected += (0..((dt * 4.0).ceil() as usize))
            .filter(|_| random.chance((self.correcting / 60.0 * dt / (dt * 4.0).ceil()).min(1.0)))
            .count() as f64;
        let asleep = self.quiet_for > 3.0 && !(self.has_context && self.keeps_clock);
        let bits = self.throttle_bits(parts, asleep, capped, random);
        self.bits = bits;
        self.by_power = if capped { parts.tensor / dt } else { 0.0 };
        self.by_heat = if bits & 96 != 0 { busy / dt } else { 0.0 };
        self.broken += (self.breaking / 60.0 * dt * random.about_one(0.3)).floor()
            + f64::from(u8::from(random.chance(self.breaking / 60.0 * dt % 1.0)));
        let free = self.warm_clock.min(self.stuck.unwrap_or(self.model.clock));
        let clock_of = |what: What| match what {
            What::Tensor => clock,
            What::Rest | What::Cpu | What::Copy if asleep => self.model.low,
            _ => free.min(self.model.clock),
        };
        let shown = clock_of(parts.draw(random));
        // Clocks move in steps of 15 MHz.
        let shown = ((shown * (1.0 + 0.002 * random.normal())) / 15.0).round() * 15.0;
        let watts = self.seen(parts, self.model.power_window, dt, random, |what| self.watts(what));
        let watts = watts.max(if self.tenant > 0.0 { mean } else { 0.0 });
        let keep = if self.model.power_window > dt { (-dt / self.model.power_window).exp() } else { 0.0 };
        self.power = self.power * keep + watts * (1.0 - keep);
        let seen = self.seen(parts, self.model.use_window, dt, random, |what| match what {
            What::Tensor | What::Stream | What::Spin | What::Comm => 1.0,
            _ => 0.0,
        });
        let rest_used = if self.tenant > 0.0 { 0.8 } else { 0.0 };
        let active = self.seen(parts, self.model.use_window, dt, random, |what| match what {
            What::Tensor => self.load.dram.sqrt(),
            What::Stream => 0.95,
            What::Comm => 0.2,
            What::Copy => 0.03,
            _ => 0.0,
        });
        let l = &self.load;
        let mean_of = |tensor: f64, stream: f64, spin: f64, comm: f64| {
            (parts.tensor * tensor + parts.stream * stream + parts.spin * spin + parts.comm * comm) / dt
        };
        let tenant = self.tenant * 0.7;
        Reading {
            used: 100.0 * (seen + (1.0 - seen) * rest_used),
            power: (self.power * (1.0 + 0.004 * random.normal())).max(1.0),
            clock: shown.clamp(self.model.low.min(shown), self.model.clock),
            temp: (self.temp + 0.2 * random.normal()).round(),
            active: 100.0 * active,
            engine: 100.0 * (busy / dt).min(1.0),
            sm: 100.0 * (mean_of(l.sm, 0.9, l.waiting_sm, l.waiting_sm * 1.5) + tenant).min(1.0),
            occupancy: 100.0 * mean_of(l.sm * 0.35, 0.6, l.waiting_sm * 0.25, l.waiting_sm * 0.3),
            dram: 100.0 * mean_of(l.dram, 0.8, 0.002, 0.1).min(1.0),
            tensor: 100.0 * mean_of(l.tensor, 0.02, 0.0, 0.0),
        }
    }
}

/// Readings of a card in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    pub used: f64,
    pub power: f64,
    pub clock: f64,
    pub temp: f64,
    pub active: f64,
    pub engine: f64,
    pub sm: f64,
    pub occupancy: f64,
    pub dram: f64,
    pub tensor: f64,
}
