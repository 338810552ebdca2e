//! Traffic by link.

use super::{handle, part};
use crate::host::total::Total;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::network;
use std::collections::BTreeMap;
use sysinfo::Networks;

struct Network {
    networks: Networks,
    totals: BTreeMap<String, (Total, Total)>,
}

pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    part(Network { networks: handle(Networks::new())?, totals: BTreeMap::new() })
}

impl Collector for Network {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.networks.refresh(true);
        let links = self.networks.iter().map(|(name, link)| (name.to_string_lossy().into_owned(), link));
        for (name, link) in links.filter(|(name, _)| !is_loopback(name)) {
            let total = self.totals.entry(name.clone()).or_default();
            total.0.add(link.total_received());
            total.1.add(link.total_transmitted());
            out.put(&network::DEVICE_RECEIVED, &*name, total.0.sum() as f64);
            out.put(&network::DEVICE_SENT, &*name, total.1.sum() as f64);
        }
        out.put(&network::RECEIVED, (), self.totals.values().map(|total| total.0.sum()).sum::<u64>() as f64);
        out.put(&network::SENT, (), self.totals.values().map(|total| total.1.sum()).sum::<u64>() as f64);
        Ok(())
    }
}

/// `lo` and `lo0`, and Windows' pseudo link.
fn is_loopback(name: &str) -> bool {
    name.strip_prefix("lo").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit())) || name.starts_with("Loopback")
}
