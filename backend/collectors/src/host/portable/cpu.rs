//! Processor, load and uptime.

use super::{handle, part};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::cpu;
use sysinfo::System;

struct Cpu {
    system: System,
    /// Whether there was a reading: use is measured between two.
    read_before: bool,
}

pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    part(Cpu { system: handle(System::new())?, read_before: false })
}

impl Collector for Cpu {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.system.refresh_cpu_usage();
        let cores = self.system.cpus();
        if std::mem::replace(&mut self.read_before, true) {
            out.put_rounded(&cpu::CPU_PERCENT, (), f64::from(self.system.global_cpu_usage()));
            for (i, core) in cores.iter().enumerate() {
                out.put_rounded(&cpu::CORE_PERCENT, i, f64::from(core.usage()));
            }
        }
        if !cores.is_empty() {
            out.put(&cpu::CORES, (), cores.len() as f64);
        }
        // Windows has no load averages; sysinfo returns zeros or an error there.
        if let Some(load) = System::load_average().ok().filter(|_| cfg!(unix)) {
            out.put(&cpu::LOAD1, (), load.one);
            out.put(&cpu::LOAD5, (), load.five);
            out.put(&cpu::LOAD15, (), load.fifteen);
        }
        out.put_some(&cpu::UPTIME, (), System::uptime().ok().map(|seconds| seconds as f64));
        Ok(())
    }
}
