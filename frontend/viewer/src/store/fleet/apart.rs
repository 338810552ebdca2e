//! Devices that differ from the others of their machine, and since when. Colors of a map show a difference only after
//! some time. A job that writes a checkpoint pauses its devices within some seconds, one after the other, which is
//! normal.

use super::Values;
use charts::map::MIN_DISTANCE;
use shared::wire::SourceId;
use std::collections::BTreeMap;

/// Time for which a device must differ before it is shown so, ms.
const HOLD_MS: i64 = 8_000;

/// Start of each device's difference, ms since the epoch, and its side.
#[derive(Default)]
pub(super) struct Apart {
    since: BTreeMap<(SourceId, u32), (bool, i64)>,
    /// False until the first values. The time before them is unknown, so a difference in them is shown at once.
    begun: bool,
}

impl Apart {
    /// Stores the values of an instant, by the number of the machine.
    pub fn note(&mut self, t: i64, all: &[Values]) {
        let mut next = BTreeMap::new();
        for (source, values) in (0..).zip(all) {
            for (number, (_, apart)) in
                values.numbers.iter().zip(values.spread()).filter(|(_, (_, by))| by.abs() > MIN_DISTANCE)
            {
                let (key, above) = ((source, *number), apart > 0.0);
                let since = match self.since.get(&key) {
                    Some((side, since)) if *side == above => *since,
                    _ if self.begun => t,
                    _ => t - HOLD_MS,
                };
                next.insert(key, (above, since));
            }
        }
        self.begun |= all.iter().any(|values| !values.gpus.is_empty());
        self.since = next;
    }

    /// Marks the devices that have differed for long enough.
    pub fn mark(&self, t: i64, all: &mut [Values]) {
        for ((source, number), _) in self.since.iter().filter(|(_, (_, since))| t - since >= HOLD_MS) {
            let Some(values) = all.get_mut(usize::from(*source)) else { continue };
            if let Some(at) = values.numbers.iter().position(|known| known == number) {
                values.apart[at] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose GPU 0 has this use, with the others at 98 %.
    fn machine(first: f64) -> Vec<Values> {
        vec![Values { apart: vec![false; 4], ..Values::new(&[], vec![first, 98.0, 98.0, 98.0]) }]
    }

    /// Shown distance of the first device after these values, one per second.
    fn shown(values: impl IntoIterator<Item = f64>) -> f64 {
        let (mut apart, mut last) = (Apart::default(), machine(98.0));
        let mut t = 0;
        for first in values {
            t += 1_000;
            last = machine(first);
            apart.note(t, &last);
        }
        apart.mark(t, &mut last);
        last[0].cells()[0].1
    }

    fn seconds(value: f64, n: usize) -> impl Iterator<Item = f64> {
        std::iter::repeat_n(value, n)
    }

    #[test]
    fn a_device_that_pauses_for_some_seconds_is_not_odd() {
        assert_eq!(shown(seconds(98.0, 5).chain(seconds(2.0, 4))), -MIN_DISTANCE, "it stands with the others");
        assert_eq!(shown(seconds(98.0, 5).chain(seconds(2.0, 9))), -96.0, "then it is odd");
        assert_eq!(shown(seconds(98.0, 5).chain(seconds(2.0, 7)).chain([98.0]).chain(seconds(2.0, 4))), -MIN_DISTANCE);
    }

    #[test]
    fn what_is_odd_from_the_first_values_on_is_shown_at_once() {
        assert_eq!(shown(seconds(2.0, 1)), -96.0);
    }

    #[test]
    fn another_side_begins_anew() {
        let values = |first: f64| vec![Values { apart: vec![false; 3], ..Values::new(&[], vec![first, 50.0, 50.0]) }];
        let (mut apart, mut last) = (Apart::default(), values(90.0));
        apart.note(1_000, &last);
        apart.note(2_000, &values(10.0));
        last = values(10.0);
        apart.mark(2_000, &mut last);
        assert_eq!(last[0].cells()[0].1, -MIN_DISTANCE);
    }
}
