//! Memory and swap.

use super::{MIB, handle, part};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::memory;
use sysinfo::System;

struct Memory {
    system: System,
}

pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    part(Memory { system: handle(System::new())? })
}

impl Collector for Memory {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.system.refresh_memory();
        let (total, available) = (self.system.total_memory() as f64, self.system.available_memory() as f64);
        if total <= 0.0 {
            return Err(CollectError::failed("the system does not report the size of memory"));
        }
        let used = (total - available).max(0.0);
        let (swap_total, swap_used) = (self.system.total_swap() as f64, self.system.used_swap() as f64);
        Bytes { total, used, swap_total, swap_used }.put(out);
        Ok(())
    }
}

/// Memory as the system reports it, bytes.
pub(crate) struct Bytes {
    pub total: f64,
    pub used: f64,
    pub swap_total: f64,
    pub swap_used: f64,
}

impl Bytes {
    /// Puts them with their shares. There is no share without swap.
    pub fn put(&self, out: &mut Out) {
        let percent = 100.0 * self.used / self.total;
        out.put(&memory::TOTAL, (), self.total);
        out.put(&memory::USED, (), self.used);
        out.put(&memory::AVAILABLE, (), (self.total - self.used) / MIB);
        out.put_rounded(&memory::PERCENT, (), percent);
        out.put_rounded(&memory::WORKING_SET, (), percent);
        out.put(&memory::SWAP_TOTAL, (), self.swap_total);
        out.put(&memory::SWAP_USED, (), self.swap_used);
        out.put_rounded(&memory::SWAP_PERCENT, (), 100.0 * self.swap_used / self.swap_total);
    }
}
