//! Our own rows of the links to hubs.

use super::{MONITOR, Sampler};
use collectors::monitor;
use shared::catalog::MetricDef;
use shared::series::SeriesId;
use std::sync::atomic::Ordering::Relaxed;

impl Sampler {
    /// State of each link of this machine as values. Links have their numbers of the configuration.
    pub(super) fn uplinks(&mut self) -> Vec<(SeriesId, f64)> {
        let live = self.live.clone();
        let mut values = Vec::new();
        let mut links = live.uplinks();
        links.retain(|link| link.source == self.source);
        for (number, link) in links.iter().enumerate() {
            let lag = live.lag(link);
            let (counts, is_live) = (&link.counts, link.status().word == "live");
            let seconds = |ms: Option<i64>| ms.map(|ms| ms as f64 / 1_000.0);
            let rows: [(&'static MetricDef, Option<f64>); 7] = [
                (&monitor::UPLINK_LIVE, Some(f64::from(u8::from(is_live)))),
                (&monitor::UPLINK_BEHIND, seconds(lag.unsent)),
                (&monitor::UPLINK_MISSING, seconds(lag.unconfirmed)),
                (&monitor::UPLINK_BYTES, Some(counts.bytes.load(Relaxed) as f64)),
                (&monitor::UPLINK_FILL_BYTES, Some(counts.fill_bytes.load(Relaxed) as f64)),
                (&monitor::UPLINK_RECONNECTS, Some(counts.links.load(Relaxed).saturating_sub(1) as f64)),
                (&monitor::UPLINK_SKIPPED, Some(counts.skipped.load(Relaxed) as f64)),
            ];
            let known = rows.into_iter().filter_map(|(row, value)| Some((row, value?)));
            let interned = known.map(|(row, value)| (self.intern(row, number.to_string(), MONITOR), value));
            values.extend(interned.filter_map(|(id, value)| Some((id?, value))));
        }
        values
    }
}
