//! Use of the volumes at the watched paths.

use super::handle;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::disk;
use std::path::PathBuf;
use sysinfo::{DiskRefreshKind, Disks};

struct Usage {
    path: PathBuf,
    name: String,
    disks: Disks,
}

pub(crate) fn open(options: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    let mut parts = Vec::new();
    for path in &options.disk_paths {
        let name = path.to_string_lossy().into_owned();
        let collector = Box::new(Usage { path: path.clone(), name: name.clone(), disks: handle(Disks::new())? });
        parts.push(Part { tried: vec![name.clone()], name, collector });
    }
    Ok(parts)
}

impl Collector for Usage {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.disks.refresh_specifics(true, DiskRefreshKind::nothing().with_storage());
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let above = self.disks.iter().filter(|disk| path.starts_with(disk.mount_point()));
        let volume = above.max_by_key(|disk| disk.mount_point().components().count());
        let volume = volume.filter(|volume| volume.total_space() > 0);
        let volume = volume.ok_or_else(|| CollectError::failed(format!("{}: no volume", self.name)))?;
        let used = volume.total_space().saturating_sub(volume.available_space()) as f64;
        out.put_rounded(&disk::USAGE_PERCENT, &*self.name, 100.0 * used / volume.total_space() as f64);
        out.put(&disk::USAGE_GB, &*self.name, used / (1u64 << 30) as f64);
        Ok(())
    }
}
