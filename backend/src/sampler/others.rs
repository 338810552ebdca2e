//! Machines that a collector here tells of: each is a source of its own.

use super::Sampler;
use std::time::Duration;

/// Section of rows that only other machines have.
const SECTION: &str = "openmetrics";

impl Sampler {
    /// Appends a tick to the source of each other machine that was told of since the last one. A new machine gets a
    /// source under its host name; none above the maximum number of sources, and none that was removed.
    pub(super) fn append_others(&mut self, t: i64, clock_step: bool) {
        let Some(others) = self.plan.options.others.clone() else { return };
        for (host, machine) in others.take() {
            let interval = machine.interval.max(self.plan.interval).max(Duration::from_millis(1));
            let Some((source, _)) = self.live.meet(&host, interval.as_millis() as i64, None) else { continue };
            if source == self.source {
                continue;
            }
            let known: Vec<_> = machine
                .values
                .into_iter()
                .filter_map(|(def, instance, value)| Some((self.intern_on(source, def, instance, SECTION)?, value)))
                .collect();
            self.values.clear();
            self.values.resize(self.live.store().series(source, 0).len(), f64::NAN);
            for (id, value) in known {
                if let Some(slot) = self.values.get_mut(id as usize) {
                    *slot = value;
                }
            }
            self.live.append(source, t, clock_step, &self.values);
            self.live.announce(&[source]);
        }
    }
}
