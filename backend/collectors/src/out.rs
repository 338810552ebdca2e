//! Output of a collector.

use shared::catalog::MetricDef;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Time after which an unused slot is freed. The store drops a series after a quarter of an hour. This time is shorter,
/// so a reused slot never belongs to a series that the store has dropped.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Interval between two searches for unused slots.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// Value for a tag's placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instance<'a> {
    /// The tag has no placeholder.
    None,
    /// A number.
    Index(u32),
    /// Any text. It comes from the system, so it is always treated as data.
    Name(&'a str),
}

impl From<()> for Instance<'_> {
    fn from((): ()) -> Self {
        Instance::None
    }
}
impl From<u32> for Instance<'_> {
    fn from(i: u32) -> Self {
        Instance::Index(i)
    }
}
impl From<usize> for Instance<'_> {
    fn from(i: usize) -> Self {
        Instance::Index(i as u32)
    }
}
impl<'a> From<&'a str> for Instance<'a> {
    fn from(name: &'a str) -> Self {
        Instance::Name(name)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum OwnInstance {
    None,
    Index(u32),
    Name(Box<str>),
}

impl OwnInstance {
    fn is(&self, other: Instance<'_>) -> bool {
        match (self, other) {
            (OwnInstance::None, Instance::None) => true,
            (OwnInstance::Index(a), Instance::Index(b)) => *a == b,
            (OwnInstance::Name(a), Instance::Name(b)) => **a == *b,
            _ => false,
        }
    }
}

#[derive(Debug)]
struct Slot {
    def: &'static MetricDef,
    instance: OwnInstance,
    /// Hash of metric and instance; see [`Out::find`].
    hash: u64,
    /// Time of the last value.
    put: Duration,
}

impl Slot {
    fn is(&self, def: &'static MetricDef, instance: Instance<'_>) -> bool {
        std::ptr::eq(self.def, def) && self.instance.is(instance)
    }

    fn named(&self) -> (&'static MetricDef, String) {
        let instance = match &self.instance {
            OwnInstance::None => String::new(),
            OwnInstance::Index(i) => i.to_string(),
            OwnInstance::Name(name) => name.to_string(),
        };
        (self.def, instance)
    }
}

/// The values of one collector. A series gets its slot with its first value and keeps it. A slot without a value in a
/// tick is absent in that tick. A slot without a value for ten minutes is reused by the next new series.
#[derive(Debug, Default)]
pub struct Out {
    slots: Vec<Option<Slot>>,
    values: Vec<f64>,
    // Collectors put the same series in the same order each tick, so the next slot is usually the right one.
    next: usize,
    by_hash: HashMap<u64, usize>,
    hasher: RandomState,
    free: Vec<usize>,
    /// Slots that were assigned to a series since the last [`Out::news`].
    news: Vec<usize>,
    at: Duration,
    looked: Duration,
    wall: i64,
}

impl Out {
    /// Begins a tick with all slots absent. `at` is the monotonic time of the tick; counters are divided by its
    /// differences.
    pub fn begin(&mut self, at: Duration) {
        self.values.fill(f64::NAN);
        self.next = 0;
        self.at = at;
        if at.saturating_sub(self.looked) >= FORGET_INTERVAL {
            self.looked = at;
            self.forget();
        }
    }

    fn forget(&mut self) {
        for (at, place) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = place.take_if(|slot| self.at.saturating_sub(slot.put) >= FORGET_AFTER) {
                self.by_hash.remove(&slot.hash);
                self.free.push(at);
            }
        }
        // A series that was never announced and is gone need not be announced.
        self.news.retain(|at| self.slots[*at].is_some());
    }

    /// Sets the wall time of this tick, milliseconds since the Unix epoch.
    pub fn stamp(&mut self, wall: i64) {
        self.wall = wall;
    }

    /// Wall time of this tick, milliseconds since the Unix epoch. It may step, so rates never use it.
    pub fn wall(&self) -> i64 {
        self.wall
    }

    /// Monotonic time of this tick.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// Puts a computed value, if there is one, rounded to the metric's steps ([`MetricDef::rounded`]).
    pub fn put_rounded<'a>(
        &mut self,
        def: &'static MetricDef,
        instance: impl Into<Instance<'a>>,
        computed: impl Into<Option<f64>>,
    ) {
        self.put_some(def, instance, computed.into().map(|value| def.rounded(value)));
    }

    /// Puts a value in the unit of the metric, as it was reported. NaN and infinities are absent.
    pub fn put<'a>(&mut self, def: &'static MetricDef, instance: impl Into<Instance<'a>>, value: f64) {
        let slot = self.place(def, instance.into());
        self.next = slot + 1;
        // Adding zero converts -0 to 0, because no stored integer represents -0.
        self.values[slot] = if value.is_finite() { value + 0.0 } else { f64::NAN };
    }

    fn place(&mut self, def: &'static MetricDef, instance: Instance<'_>) -> usize {
        let at = self.at;
        if let Some(slot) = self.slots.get_mut(self.next).and_then(Option::as_mut).filter(|slot| slot.is(def, instance))
        {
            slot.put = at;
            return self.next;
        }
        let hash = self.hasher.hash_one((std::ptr::from_ref(def).addr(), instance));
        if let Some(slot) = self.by_hash.get(&hash)
            && let Some(known) = self.slots[*slot].as_mut().filter(|known| known.is(def, instance))
        {
            known.put = at;
            return *slot;
        }
        let instance = match instance {
            Instance::None => OwnInstance::None,
            Instance::Index(i) => OwnInstance::Index(i),
            Instance::Name(name) => OwnInstance::Name(name.into()),
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.values.push(f64::NAN);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(Slot { def, instance, hash, put: at });
        self.by_hash.insert(hash, slot);
        self.news.push(slot);
        slot
    }

    /// Puts a value if there is one.
    pub fn put_some<'a>(&mut self, def: &'static MetricDef, instance: impl Into<Instance<'a>>, value: Option<f64>) {
        if let Some(value) = value {
            self.put(def, instance, value);
        }
    }

    /// The value of this tick, if one was put.
    pub fn value<'a>(&self, def: &'static MetricDef, instance: impl Into<Instance<'a>>) -> Option<f64> {
        let instance = instance.into();
        let hash = self.hasher.hash_one((std::ptr::from_ref(def).addr(), instance));
        let at = *self.by_hash.get(&hash)?;
        let slot = self.slots.get(at)?.as_ref().filter(|slot| slot.is(def, instance));
        slot.and(self.values.get(at).copied()).filter(|value| value.is_finite())
    }

    /// Values by slot; NaN is absent.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Metric and instance of the slot at this position; none if it belongs to no series now.
    pub fn slot(&self, at: usize) -> Option<(&'static MetricDef, String)> {
        self.slots.get(at)?.as_ref().map(Slot::named)
    }

    /// Metric and instance of every slot that belongs to a series.
    pub fn slots(&self) -> impl Iterator<Item = (&'static MetricDef, String)> {
        self.slots.iter().flatten().map(Slot::named)
    }

    /// Position, metric and instance of the slots assigned to a series since the last call. A position may be repeated
    /// for another series.
    pub fn news(&mut self) -> Vec<(usize, &'static MetricDef, String)> {
        let news = std::mem::take(&mut self.news);
        news.into_iter().filter_map(|at| self.slot(at).map(|(def, instance)| (at, def, instance))).collect()
    }

    /// Tag and value of everything present, sorted by tag; for golden tests.
    pub fn present(&self) -> Vec<(String, f64)> {
        let mut all: Vec<_> = self
            .slots
            .iter()
            .zip(&self.values)
            .filter(|(_, v)| v.is_finite())
            .filter_map(|(slot, &v)| slot.as_ref().map(|slot| (slot, v)))
            .map(|(slot, v)| {
                #[cfg(test)]
                crate::golden::saw(slot.def);
                let (def, instance) = slot.named();
                (def.tag_of(&instance), v)
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{cpu, gpu};

    #[test]
    fn a_slot_that_is_not_put_is_absent_and_comes_back_to_its_own_series() {
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        for core in 0..4u32 {
            out.put(&cpu::CORE_PERCENT, core, f64::from(core));
        }
        out.begin(Duration::from_secs(1));
        out.put_rounded(&cpu::CORE_PERCENT, 3u32, 30.004);
        out.put(&cpu::CPU_PERCENT, (), f64::NAN);
        assert_eq!(out.present(), [("cpu.3.cpu_percent".to_string(), 30.0)]);
        assert_eq!((out.value(&cpu::CORE_PERCENT, 3u32), out.value(&cpu::CORE_PERCENT, 2u32)), (Some(30.0), None));
        assert_eq!((out.value(&cpu::CPU_PERCENT, ()), out.value(&gpu::TEMP, 0u32)), (None, None));
        assert_eq!(out.slots().count(), 5);
        assert_eq!(out.values().len(), 5);
    }

    #[test]
    fn a_slot_that_nothing_is_put_in_goes_to_another_series_and_that_is_told() {
        let mut out = Out::default();
        let tick = |out: &mut Out, second: u64, names: &[&str]| {
            out.begin(Duration::from_secs(second));
            names.iter().for_each(|name| out.put(&shared::catalog::disk::USAGE_PERCENT, *name, second as f64 / 100.0));
            out.news().into_iter().map(|(at, _, name)| (at, name)).collect::<Vec<_>>()
        };
        let told = |news: &[(usize, &str)]| news.iter().map(|(at, name)| (*at, name.to_string())).collect::<Vec<_>>();
        assert_eq!(tick(&mut out, 0, &["/", "/a"]), told(&[(0, "/"), (1, "/a")]));
        assert_eq!(tick(&mut out, 599, &["/"]), []);
        assert_eq!(tick(&mut out, 600, &["/", "/b"]), told(&[(2, "/b")]), "looked at less than a minute ago");
        assert_eq!(tick(&mut out, 660, &["/", "/c", "/b"]), told(&[(1, "/c")]));
        assert_eq!(out.present().len(), 3);
        assert_eq!(tick(&mut out, 720, &["/a", "/"]), told(&[(3, "/a")]), "it has come back");
        for second in 1_000..100_000u64 {
            tick(&mut out, second, &["/", &format!("/mnt/{second}")]);
        }
        assert!(out.values().len() < 700, "{} slots", out.values().len());
        assert_eq!(out.slots().count(), out.by_hash.len());
    }

    #[test]
    fn what_was_reported_is_kept_to_the_last_digit() {
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        let reported = [
            (&gpu::POWER_WATTS, 123.456_789),
            (&gpu::TEMP, 45.678),
            (&gpu::UTILIZATION, 33.333_333_333_333_336),
            (&gpu::SM_CLOCK, 1410.25),
            (&gpu::MEMORY_ALLOCATED_BYTES, 1_234_567_891.0),
            (&cpu::UPTIME, f64::from(0.1f32)),
        ];
        for (def, value) in reported {
            out.put(def, 0u32, value);
            out.put_some(def, 1u32, Some(-0.0));
        }
        let values: Vec<u64> = out.values().iter().map(|value| value.to_bits()).collect();
        assert_eq!(values, reported.iter().flat_map(|(_, value)| [value.to_bits(), 0]).collect::<Vec<_>>());
        out.begin(Duration::from_secs(1));
        out.put_rounded(&gpu::POWER_WATTS, 0u32, 123.456_789);
        assert_eq!(out.present()[0].1, 123.457);
    }
}
