//! Reads and writes by volume.

use super::{MIB, handle, part};
use crate::host::total::Total;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::disk;
use std::collections::BTreeMap;
use sysinfo::{DiskRefreshKind, Disks};

struct DiskIo {
    disks: Disks,
    /// Totals by name, because a disk that is mounted in several places is listed several times.
    totals: BTreeMap<String, (Total, Total)>,
}

pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    part(DiskIo { disks: handle(Disks::new())?, totals: BTreeMap::new() })
}

impl Collector for DiskIo {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.disks.refresh_specifics(true, DiskRefreshKind::nothing().with_io_usage());
        let mut now = BTreeMap::new();
        for disk in self.disks.iter() {
            let usage = disk.usage();
            now.insert(disk.name().to_string_lossy().into_owned(), (usage.total_read_bytes, usage.total_written_bytes));
        }
        for (name, (read, written)) in &now {
            let total = self.totals.entry(name.clone()).or_default();
            total.0.add(*read);
            total.1.add(*written);
            out.put(&disk::DEVICE_READ, &**name, total.0.sum() as f64 / MIB);
            out.put(&disk::DEVICE_WRITTEN, &**name, total.1.sum() as f64 / MIB);
        }
        if !now.is_empty() {
            let sum = |of: fn(&(Total, Total)) -> u64| self.totals.values().map(of).sum::<u64>() as f64 / MIB;
            out.put(&disk::READ, (), sum(|total| total.0.sum()));
            out.put(&disk::WRITTEN, (), sum(|total| total.1.sum()));
        }
        Ok(())
    }
}
