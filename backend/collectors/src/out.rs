//! Where a collector puts what it read.

use shared::catalog::MetricDef;
use std::time::Duration;

/// What stands in a tag's placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instance<'a> {
    /// The tag has no placeholder.
    None,
    /// A number.
    Index(u32),
    /// Any text; it comes from the system and is data everywhere.
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
}

/// The readings of one collector. A series gets its slot when it is first put and keeps it; a slot that is not put in a
/// tick is absent in it.
#[derive(Debug, Default)]
pub struct Out {
    slots: Vec<Slot>,
    values: Vec<f64>,
    // Collectors put the same series in the same order each tick, so the next slot is nearly always the right one.
    next: usize,
    at: Duration,
    wall: i64,
}

impl Out {
    /// Begins a tick: all slots absent. `at` is monotonic time of the tick; differences divide counters into rates.
    pub fn begin(&mut self, at: Duration) {
        self.values.fill(f64::NAN);
        self.next = 0;
        self.at = at;
    }

    /// Says what the wall clock shows in this tick, milliseconds since the Unix epoch.
    pub fn stamp(&mut self, wall: i64) {
        self.wall = wall;
    }

    /// Wall time of this tick, milliseconds since the Unix epoch; it may step, so nothing is divided by its differences.
    pub fn wall(&self) -> i64 {
        self.wall
    }

    /// Monotonic time of this tick.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// Puts a reading in the unit of the row, rounded to the row's stored steps. Not a number is absent.
    pub fn put<'a>(&mut self, def: &'static MetricDef, instance: impl Into<Instance<'a>>, value: f64) {
        let instance = instance.into();
        let n = self.slots.len();
        let found = (0..n).map(|i| (self.next + i) % n).find(|&i| {
            let slot = &self.slots[i];
            std::ptr::eq(slot.def, def) && slot.instance.is(instance)
        });
        let slot = found.unwrap_or_else(|| {
            let instance = match instance {
                Instance::None => OwnInstance::None,
                Instance::Index(i) => OwnInstance::Index(i),
                Instance::Name(name) => OwnInstance::Name(name.into()),
            };
            self.slots.push(Slot { def, instance });
            self.values.push(f64::NAN);
            n
        });
        self.next = slot + 1;
        self.values[slot] = if value.is_finite() { shared::series::quantize(value, def.steps) } else { f64::NAN };
    }

    /// Puts a reading if there is one.
    pub fn put_some<'a>(&mut self, def: &'static MetricDef, instance: impl Into<Instance<'a>>, value: Option<f64>) {
        if let Some(value) = value {
            self.put(def, instance, value);
        }
    }

    /// Values by slot; NaN is absent.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Row and instance of the slots from `first` on.
    pub fn slots(&self, first: usize) -> impl Iterator<Item = (&'static MetricDef, String)> {
        self.slots[first.min(self.slots.len())..].iter().map(|slot| {
            let instance = match &slot.instance {
                OwnInstance::None => String::new(),
                OwnInstance::Index(i) => i.to_string(),
                OwnInstance::Name(name) => name.to_string(),
            };
            (slot.def, instance)
        })
    }

    /// Tag and value of everything present, sorted by tag; for golden tests.
    pub fn present(&self) -> Vec<(String, f64)> {
        let mut all: Vec<_> = self
            .slots(0)
            .zip(&self.values)
            .filter(|(_, v)| v.is_finite())
            .map(|((def, instance), &v)| (def.tag_of(&instance), v))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::cpu;

    #[test]
    fn a_slot_that_is_not_put_is_absent_and_comes_back_to_its_own_series() {
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        for core in 0..4u32 {
            out.put(&cpu::CORE_PERCENT, core, f64::from(core));
        }
        out.begin(Duration::from_secs(1));
        out.put(&cpu::CORE_PERCENT, 3u32, 30.004);
        out.put(&cpu::CPU_PERCENT, (), f64::NAN);
        assert_eq!(out.present(), [("cpu.3.cpu_percent".to_string(), 30.0)]);
        assert_eq!(out.slots(0).count(), 5);
        assert_eq!(out.values().len(), 5);
    }
}
