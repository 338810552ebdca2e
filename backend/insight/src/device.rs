//! State of one accelerator: signal slots, amount of work, and progress of each rule.

use crate::awaited_sum::Awaited;
use crate::ending::Brim;
use crate::filling::Filling;
use crate::hold::{Hold, Share};
use crate::holder::Holder;
use crate::levels::{NEVER, Ring, Slot};
use crate::signal::{Family, SIGNALS, Sig, bridge_name, slots};
use shared::xid::Action;
use std::collections::VecDeque;

/// A device works above this share of its power range from idle to level.
pub(crate) const WORKING: f64 = 0.6;

/// Amount of work of a device.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Lowest mean of a minute without use, watts; infinite before the first.
    idle: f64,
    /// Highest mean of a minute in this job, watts.
    peak: f64,
    /// Current power between idle and level, 0 to about 1; by use where power is no measure. NaN: unknown.
    pub w: f64,
    /// `w` is derived from power, so waiting in a kernel can be distinguished from work.
    pub by_power: bool,
    /// The device works now.
    pub on: bool,
    /// Start of work in this job; [`NEVER`] before.
    pub began: i64,
    /// Seconds of work in this job.
    pub worked: i64,
    /// Newest second of work.
    pub last: i64,
    /// The device is not used.
    unused: Hold,
    /// Its memory is free.
    free: Hold,
    /// It is used at a level other than the learned one.
    dull: Hold,
    /// Nothing is learned until this second: a finding is open for it, or a rule is about to raise one.
    pub frozen: i64,
}

/// Usual ratio to the peers in one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    pub ratio: f64,
    pub spread: f64,
    pub learned: f32,
    /// Mean over about the last minute of work, and the number of seconds in it.
    of: f32,
    mean: f64,
    /// The newest bucket, and whether it was closed in this second.
    pub last: f64,
    fresh: bool,
    /// Usual deviation of buckets from the habit, as a share of it; and the seconds that it was learned from.
    pub strays: f64,
    strayed: f32,
    /// The current bucket, and the previous one. The previous one counts once work has continued after it.
    n: u16,
    sum: f64,
    /// NaN: none.
    before: f64,
}

/// Time constant of the mean over work, in seconds and in ticks; and its maximum.
const OF_WORK: f64 = 50.0;
const TICKS: f64 = 20.0;
const MAX_TIME_CONSTANT_S: f64 = 300.0;

impl Default for Habit {
    fn default() -> Self {
        Habit {
            ratio: 0.0,
            spread: 0.0,
            learned: 0.0,
            of: 0.0,
            mean: 0.0,
            last: 0.0,
            fresh: false,
            strays: 0.0,
            strayed: 0.0,
            n: 0,
            sum: 0.0,
            before: f64::NAN,
        }
    }
}

impl Habit {
    /// Adds a value of a tick of work to the current bucket.
    pub fn gather(&mut self, value: f64) {
        self.sum += value;
        self.n = self.n.saturating_add(1);
    }

    /// Closes a bucket of `length` seconds of work. With `quick` the mean follows faster, so that an end is detected
    /// sooner.
    pub fn close(&mut self, length: f64, step: f64, quick: bool) {
        let before = self.before;
        self.fresh = !before.is_nan();
        if self.fresh {
            let most = OF_WORK.max(TICKS * step).min(MAX_TIME_CONSTANT_S) * if quick { 0.4 } else { 1.0 };
            let weight = length / (length + f64::from(self.of).min(most));
            self.mean += weight * (before - self.mean);
            self.last = before;
            self.of += length as f32;
        }
        self.before = if self.n > 0 { self.sum / f64::from(self.n) } else { f64::NAN };
        (self.sum, self.n) = (0.0, 0);
    }

    /// Drops the newest buckets when work stops: they may include the stop.
    pub fn discard(&mut self) {
        (self.sum, self.n, self.before, self.fresh) = (0.0, 0, f64::NAN, false);
    }

    /// The bucket that was closed last, if work went on before and after it.
    pub fn fresh(&self) -> Option<f64> {
        self.fresh.then_some(self.last)
    }

    /// Records the deviation of a bucket of `length` seconds from the habit.
    pub fn stray(&mut self, off: f64, length: f64) {
        self.strays += length / (length + f64::from(self.strayed).min(866.0)) * (off - self.strays);
        self.strayed += length as f32;
    }

    /// Mean over the last minute of work; none before half a minute.
    pub fn mean(&self) -> Option<f64> {
        (self.of >= 30.0).then_some(self.mean)
    }

    /// Learns a ratio that held for `dt` seconds of work.
    pub fn learn(&mut self, ratio: f64, dt: f64) {
        let weight = dt / (dt + f64::from(self.learned).min(866.0));
        if self.learned == 0.0 {
            self.ratio = ratio;
        }
        let off = ratio - self.ratio;
        self.ratio += weight * off;
        self.spread += weight * (off.abs() - self.spread);
        self.learned += dt as f32;
    }

    /// Ratio and spread, once learned from at least `seconds` seconds.
    pub fn known(&self, seconds: f64) -> Option<(f64, f64)> {
        (f64::from(self.learned) >= seconds && self.ratio > 0.0).then_some((self.ratio, self.spread))
    }
}

/// Maximum number of recent buckets of work of a device: ten minutes of samples of a second.
const MAX_RECENT_BUCKETS: usize = 64;

/// Recent buckets of work, each with the second at which it began. A finding reports their means since an onset. A
/// decaying mean would include the time before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lately(VecDeque<(i64, [f32; CHANNELS])>);

impl Lately {
    pub fn push(&mut self, began: i64, values: [f32; CHANNELS]) {
        if self.0.len() == MAX_RECENT_BUCKETS {
            self.0.pop_front();
        }
        self.0.push_back((began, values));
    }

    /// The mean of a channel over the buckets that began at `from` or later; none where there is none.
    pub fn mean(&self, of: usize, from: i64) -> Option<f64> {
        let since = self.0.iter().filter(|(began, _)| *began >= from);
        let (sum, n) = since
            .map(|(_, values)| f64::from(values[of]))
            .filter(|value| value.is_finite())
            .fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
        (n > 0.0).then(|| sum / n)
    }
}

/// Errors of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors {
    /// Second of an XID 79.
    pub off_bus: Option<i64>,
    pub xid: Option<Reported>,
    /// Second of the newest loss of data, the gravest XID and the count of the open finding about it.
    pub ecc: Option<i64>,
    pub ecc_xid: Option<u32>,
    pub ecc_total: f64,
}

/// The XID of the open finding of the rule `xid`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    /// Second of the newest XID.
    pub last: i64,
    pub code: u32,
    pub action: Action,
}

/// Progress of each rule with a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    /// First second of the present fault of its fabric.
    pub fabric: Option<i64>,
    pub heat: Share,
    pub brake: Share,
    /// Bits of the newest reasons with a slowdown of the hardware.
    pub brake_bits: u32,
    /// Newest second in which its clocks were set to a lower limit.
    pub set_clocks_at: u32,
    pub cap: Share,
    /// Its power limit is too low.
    pub cut: Hold,
    pub width: Hold,
    pub wide: Hold,
    pub gen_low: Hold,
    pub gen_high: Hold,
    pub nvlink: Hold,
    /// Maximum number of NVLinks or XGMI links that were up; fewer seen twice; start and repetitions of fast growth of errors.
    pub links_most: f64,
    pub links_few: Hold,
    pub link_errors: u32,
    pub link_errors_since: i64,
    pub link_errors_last: i64,
    pub nvlink_back: Hold,
    pub back: Hold,
    /// Errors; few devices have any.
    pub errors: Box<Errors>,
    pub corrected_last: i64,
    pub corrected: Option<Box<[f32; 60]>>,
    pub corrected_at: i64,
    pub filling: Box<Filling>,
    pub filled: Hold,
    pub flat: Hold,
    pub slope: f64,
    /// Last report that its memory fills, second.
    pub rise_told: i64,
    pub brim: Option<Box<Brim>>,
    pub idle: Hold,
    pub used: Hold,
    pub idle_told: bool,
    /// Reserved for a job, without a process.
    pub unused: Hold,
    pub slow: Share,
    pub waits: Share,
    pub doubted: Hold,
    pub awaited: Awaited,
    /// Start of the time with a clock below its peers', second; 0 while it is not.
    pub uneven: u32,
}

/// Channels in which the members of a group are compared.
pub(crate) const CHANNELS: usize = 6;
pub(crate) const CLOCK: usize = 0;
pub(crate) const POWER: usize = 1;
pub(crate) const USE: usize = 2;
/// Work of the cores.
pub(crate) const WORK: usize = 3;
/// Memory traffic.
pub(crate) const TRAFFIC: usize = 4;
pub(crate) const NVLINK: usize = 5;

const NVLINK_SIGS: [Sig; 2] = [Sig::NvTx, Sig::NvRx];
const PCIE_SIGS: [Sig; 2] = [Sig::PcieTx, Sig::PcieRx];

/// Traffic over the links of a device, both directions together. It is no series and is not shown as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// NVLink or XGMI; otherwise PCIe.
    pub bridge: Option<&'static str>,
    /// Bytes per second over the last seconds, and the level in work.
    pub short: f64,
    pub level: Option<f64>,
}

impl Traffic {
    pub fn name(&self) -> &'static str {
        self.bridge.unwrap_or("PCIe")
    }

    /// The series in the sum, each with the name of its counter.
    pub fn series<'a>(&self, device: &'a Device) -> impl Iterator<Item = (Sig, &'a Slot, &'static str)> {
        let [sent, received] = if self.bridge.is_some() { NVLINK_SIGS } else { PCIE_SIGS };
        let of = |(sig, does): (Sig, &'static str)| Some((sig, device.recent(sig)?, does));
        [(sent, "sends"), (received, "receives")].into_iter().filter_map(of)
    }
}

/// One accelerator.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub family: Family,
    /// Its number on its machine.
    pub index: u32,
    pub slots: [Slot; SIGNALS],
    /// First and newest second with any sample of the device.
    pub first: i64,
    pub seen: i64,
    /// Newest second in which the device answered. Single series of a lost device may still come from another source.
    pub answered: i64,
    /// Ticks of its machine since then in which another device of the family answered.
    pub missed: u32,
    /// The device is split into MIG instances or partitions.
    pub parted: bool,
    /// Id of its group.
    pub group: Option<u64>,
    /// Power at the last ticks, watts.
    pub ring: Ring,
    pub work: Work,
    pub habits: [Habit; CHANNELS],
    pub lately: Lately,
    pub marks: Marks,
    /// Processes on it, sorted by memory, largest first.
    pub pids: Vec<u32>,
    /// The job for which it is reserved.
    pub holder: Option<Box<Holder>>,
    /// Instance of the series that its rank logs; empty if it has none.
    pub logs: Box<str>,
    /// The last processes on it that were known.
    pub of: Vec<u32>,
    /// The largest process on it when it last worked; 0: none is known.
    pub worker: u32,
    /// Arrival, second, and PID of a process that does not belong to the current job; 0 where there is none.
    pub guest: (u32, u32),
    /// Root process of their tree, and its parent, if the process table has them.
    pub root: Option<(u32, u32)>,
    /// Newest second of its machine, and maximum age of a value, seconds.
    newest: i64,
    patience: i64,
}

impl Device {
    pub fn new(family: Family, index: u32) -> Self {
        Device {
            family,
            index,
            slots: slots(),
            first: NEVER,
            seen: NEVER,
            answered: NEVER,
            missed: 0,
            parted: false,
            group: None,
            ring: Ring::default(),
            work: Work {
                idle: f64::INFINITY,
                peak: 0.0,
                w: f64::NAN,
                by_power: false,
                on: false,
                began: NEVER,
                worked: 0,
                last: NEVER,
                unused: Hold::default(),
                free: Hold::default(),
                dull: Hold::default(),
                frozen: NEVER,
            },
            habits: [Habit::default(); CHANNELS],
            lately: Lately::default(),
            marks: Marks::default(),
            holder: None,
            logs: Box::default(),
            pids: Vec::new(),
            of: Vec::new(),
            worker: 0,
            guest: (0, 0),
            root: None,
            newest: NEVER,
            patience: 5,
        }
    }

    pub fn slot(&self, sig: Sig) -> &Slot {
        &self.slots[sig as usize]
    }

    /// Checks whether it answers at `t`. It does when two of the values that a driver always reads are there, or one
    /// where it has at most two. Counts that the collector itself goes on with, as of XIDs, are no answer.
    pub fn answer(&mut self, t: i64) {
        const ALWAYS: [Sig; 7] =
            [Sig::Use, Sig::Power, Sig::PowerShare, Sig::Temp, Sig::Clock, Sig::MemBytes, Sig::MemShare];
        let known = ALWAYS.iter().filter(|sig| self.has(**sig)).count();
        let here = ALWAYS.iter().filter(|sig| self.slot(**sig).at == t).count();
        if here >= known.div_ceil(2).min(2) {
            self.answered = t;
        }
    }

    /// The slot of a signal, if its value is recent.
    pub fn recent(&self, sig: Sig) -> Option<&Slot> {
        let slot = self.slot(sig);
        (slot.at >= self.newest - self.patience && slot.now.is_finite()).then_some(slot)
    }

    /// The value of this tick.
    pub fn now(&self, sig: Sig) -> Option<f64> {
        let slot = self.slot(sig);
        (slot.at == self.newest && slot.now.is_finite()).then_some(slot.now)
    }

    /// Whether it ever had this signal.
    pub fn has(&self, sig: Sig) -> bool {
        self.slot(sig).at != NEVER
    }

    /// The slot of its power in watts, else in percent of the limit.
    pub fn power_sig(&self) -> Sig {
        if self.has(Sig::Power) { Sig::Power } else { Sig::PowerShare }
    }

    /// Power and limit in the same unit; the limit is NaN where it is unknown.
    pub fn power(&self) -> Option<(&Slot, f64)> {
        let slot = self.recent(self.power_sig())?;
        Some((slot, self.limit()))
    }

    /// The power limit in the unit of [`Self::power`].
    pub fn limit(&self) -> f64 {
        if !self.has(Sig::Power) {
            return 100.0;
        }
        let limit = self.slot(Sig::Limit).now;
        let (power, share) = (self.slot(Sig::Power), self.slot(Sig::PowerShare));
        if limit.is_finite() { limit } else { 100.0 * power.short / share.short }
    }

    /// Lowest power without use; 12 % of the limit before any such minute.
    pub fn idle_power(&self) -> f64 {
        let limit = self.limit();
        let guess = if limit.is_finite() { 0.12 * limit } else { 0.12 * self.work.peak };
        if self.work.idle.is_finite() { self.work.idle } else { guess }
    }

    /// Power in work: its level, else the highest mean of a minute in this job.
    pub fn work_power(&self) -> f64 {
        self.slot(self.power_sig()).level().unwrap_or(self.work.peak)
    }

    /// Device memory in use, percent.
    pub fn memory_share(&self) -> Option<f64> {
        if let Some(slot) = self.recent(Sig::MemShare) {
            return Some(slot.now);
        }
        let (used, total) = (self.recent(Sig::MemBytes)?, self.slot(Sig::MemTotal).now);
        (total > 0.0).then(|| 100.0 * used.now / total)
    }

    /// The slot of the memory in use, in any unit.
    pub fn memory_slot(&self) -> Option<&Slot> {
        self.recent(Sig::MemBytes).or_else(|| self.recent(Sig::MemShare))
    }

    /// Devices with the same number here may be of one model.
    pub fn model(&self) -> u64 {
        let total = self.slot(Sig::MemTotal).now;
        if total.is_finite() { (total / f64::from(1 << 20)) as u64 } else { 0 }
    }

    /// Traffic over its links, sent and received together: NVLink or XGMI, else PCIe; none where neither is measured.
    pub fn traffic(&self) -> Option<Traffic> {
        let of = |sigs: [Sig; 2], is_bridge: bool| {
            let known: Vec<&Slot> = sigs.into_iter().filter_map(|sig| self.recent(sig)).collect();
            let levels: Option<f64> = known.iter().map(|slot| slot.level()).sum();
            let short = known.iter().map(|slot| slot.short).sum();
            let bridge = is_bridge.then(|| bridge_name(known.first().and_then(|slot| slot.row)));
            (!known.is_empty()).then_some(Traffic { bridge, short, level: levels })
        };
        of(NVLINK_SIGS, true).or_else(|| of(PCIE_SIGS, false))
    }

    /// The signal that measures work: tensor cores, else multiprocessors, else memory traffic.
    pub fn work_sig(&self) -> Option<Sig> {
        let busy = |sig: &Sig| self.recent(*sig).is_some_and(|slot| slot.level().is_some_and(|level| level >= 2.0));
        [Sig::Tensor, Sig::Sm, Sig::Dram].into_iter().find(busy)
    }

    /// Processes a tick of its machine at `t`, `dt` seconds after the previous one.
    pub fn tick(&mut self, t: i64, dt: i64, step: i64, patience: i64) {
        (self.newest, self.patience) = (t, patience);
        if self.seen != t {
            self.work.on &= t - self.seen <= patience;
            return;
        }
        if let Some(watts) = self.now(self.power_sig()) {
            self.ring.push(watts);
        }
        let usage = self.recent(Sig::Use).map(|slot| (slot.now, slot.short, slot.minute));
        let power = self.power().map(|(slot, limit)| (slot.short, slot.minute, limit));
        let free = self.memory_share().map(|share| share <= 2.0);
        self.work.free.step(t, free, patience);
        if self.work.free.held(10.max(2 * step)) && self.work.began != NEVER {
            self.forget();
        }
        let dt = dt.min(2 * step);
        let used = usage.is_none_or(|(_, short, _)| short >= 5.0);
        self.work.by_power = false;
        if let Some((short, minute, limit)) = power {
            // A zero reading between two steps does not make a device idle.
            let unused = usage.is_some_and(|(now, short, _)| now <= 0.5 && short <= 0.5);
            self.work.unused.step(t, Some(unused), patience);
            let low = !limit.is_finite() || minute <= 0.35 * limit;
            if low && self.work.unused.held(60.max(3 * step)) {
                self.work.idle = self.work.idle.min(minute);
            }
            if used {
                self.work.peak = self.work.peak.max(minute);
            }
            let idle = self.idle_power();
            // The power is now far above its former level in work: that level was no work.
            if self.work_power() > idle && (minute - idle) > (self.work_power() - idle) / WORKING {
                self.slots[self.power_sig() as usize].forget();
                self.work.peak = minute;
            }
            let top = self.work_power();
            let room = if limit.is_finite() { 0.08 * limit } else { 0.3 * idle };
            if top - idle >= room {
                self.work.w = (short - idle) / (top - idle);
                self.work.by_power = true;
            }
        }
        if !self.work.by_power {
            let level = self.slot(Sig::Use).level().unwrap_or(60.0).max(5.0);
            self.work.w = usage.map_or(f64::NAN, |(_, short, _)| short / level);
        }
        self.work.on = used && self.work.w >= WORKING && !self.is_still();
        if self.work.on {
            if self.work.began == NEVER {
                self.work.began = t;
            }
            self.work.worked += dt;
            self.work.last = t;
            // The mean still shows the work of a process that has just been replaced.
            if usage.is_some_and(|(now, ..)| now >= 5.0) && !self.pids.contains(&self.worker) {
                self.worker = self.pids.first().copied().unwrap_or_default();
            }
        }
        // After a quarter of an hour at another level, that level becomes usual.
        let dull = !self.work.on && usage.is_some_and(|(_, short, _)| short >= 20.0) && self.work.frozen < t;
        self.work.dull.step(t, Some(dull), patience);
        if self.work.dull.held(900) {
            self.forget_levels();
            self.work.peak = power.map_or(0.0, |(_, minute, _)| minute);
            self.work.dull.clear();
        }
        if self.work.on && self.work.frozen < t {
            self.learn(dt as f64);
        }
    }

    /// Whether the counters show no computation at any power: a light job takes little more power than a wait.
    fn is_still(&self) -> bool {
        let part = |sig: Sig, least: f64| {
            let slot = self.recent(sig)?;
            Some(slot.short / slot.level().filter(|level| *level >= least)?)
        };
        let parts = [part(Sig::Tensor, 3.0), part(Sig::Dram, 3.0), part(Sig::Activity, 8.0)];
        parts.iter().any(Option::is_some) && parts.iter().flatten().all(|part| *part < 0.12)
    }

    /// Whether it computes now and then, by its counters, else by changes of its power.
    pub fn is_alive(&self, step: i64) -> bool {
        let part = |sig: Sig, least: f64| {
            let slot = self.recent(sig)?;
            Some(slot.short / slot.level().filter(|level| *level >= least)?)
        };
        let parts = [part(Sig::Tensor, 3.0), part(Sig::Dram, 3.0), part(Sig::Activity, 8.0)];
        if parts.iter().any(Option::is_some) {
            return parts.iter().flatten().any(|part| *part >= 0.12);
        }
        let room = self.work_power() - self.idle_power();
        let span = (30 / step.max(1)).clamp(4, 30) as usize;
        self.ring.spread(span).is_some_and(|(_, spread)| spread >= 0.1 * room)
    }

    /// The signal of a channel.
    pub fn sig_of(&self, of: usize, work: Option<Sig>) -> Option<Sig> {
        match of {
            WORK => work,
            TRAFFIC => Some(Sig::Activity),
            _ => Some(self.power_sig()),
        }
    }

    /// Usual value in a channel of work, traffic or power.
    pub fn level_of(&self, of: usize, work: Option<Sig>) -> Option<f64> {
        let sig = self.sig_of(of, work)?;
        self.slot(sig).level().filter(|level| *level > 0.0)
    }

    fn learn(&mut self, dt: f64) {
        for slot in self.slots.iter_mut().filter(|slot| slot.at == self.newest) {
            slot.learn(dt);
        }
    }

    fn forget_levels(&mut self) {
        self.slots.iter_mut().for_each(Slot::forget);
        self.habits = Default::default();
    }

    /// Forgets the levels at the end of a job: those of the next job are unknown.
    pub fn forget(&mut self) {
        self.forget_levels();
        (self.work.peak, self.work.began, self.work.worked) = (0.0, NEVER, 0);
    }

    /// Whether the load limits its clock: it takes all the power that its limit allows.
    pub fn is_capped(&self) -> bool {
        self.marks.cap.held(0.3, 60) || self.power().is_some_and(|(power, limit)| power.minute >= 0.95 * limit)
    }

    /// Whether its present process holds memory, and has not worked yet.
    pub fn is_starting(&self) -> bool {
        let is_new = self.worker != 0 && !self.pids.is_empty() && !self.pids.contains(&self.worker);
        let holds = !self.is_free() && self.memory_share().is_some_and(|share| share > 2.0);
        is_new || (self.work.worked == 0 && holds)
    }

    /// Whether its memory is free, so that no job is on it.
    pub fn is_free(&self) -> bool {
        self.work.free.held(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size excludes heap data: the course of its memory, half a KiB of recent buckets, processes, errors, and ten
    /// minutes of corrected ones.
    #[test]
    fn a_device_takes_four_and_a_half_kibibytes_at_most() {
        let bytes = size_of::<Device>();
        assert!(bytes <= 9 << 9, "{bytes} bytes");
    }
}
