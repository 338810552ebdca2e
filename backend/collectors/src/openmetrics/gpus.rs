//! The GPUs of a page: which machine each belongs to, and the one value of a metric where a page has several.

use super::dcgm::{DcgmReading, OneReading};
use crate::Out;
use inventory::{GpuNumbers, OtherMachines};
use shared::catalog::{MetricDef, gpu};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Machines that GPUs of an endpoint may belong to.
#[derive(Default)]
pub(super) struct Machines {
    /// Other machines are told here; None puts all GPUs under this one.
    pub others: Option<Arc<OtherMachines>>,
    /// Whether the endpoint is on this machine.
    pub is_local: bool,
    /// Time between two pages.
    pub every: Duration,
}

/// Host, number and MIG device of a GPU, and the metric's tag. No host: this machine.
type MetricPlace<'a> = (Option<&'a str>, u32, Option<u32>, &'static str);

/// A sample under the name and labels that the page prints.
type Printed<'a> = (&'static MetricDef, &'a str, f64);

/// Result of adding a sample of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It counts.
    Taken,
    /// A driver here reports this GPU already.
    Reported,
    /// There is no room for its machine.
    NoMachine,
}

/// The values of a metric at a place: a sample, the one value of the device, and all as they are printed.
type Values<'a> = (&'a DcgmReading, OneReading, Vec<Printed<'a>>);

/// The readings of one page.
pub(super) struct GpuReadings<'a> {
    machines: &'a Machines,
    /// Whether the page tells of one machine only, and is on this one: an exporter in a container has its own name.
    is_alone: bool,
    all: BTreeMap<MetricPlace<'a>, Values<'a>>,
}

impl<'a> GpuReadings<'a> {
    /// No reading yet. `hosts`: the names of the machines on the page.
    pub(super) fn new(machines: &'a Machines, hosts: &BTreeSet<&str>) -> Self {
        let is_alone = machines.is_local && hosts.len() <= 1;
        GpuReadings { machines, is_alone, all: BTreeMap::new() }
    }

    /// The other machine that a GPU belongs to; None for this one.
    fn elsewhere(&self, reading: &'a DcgmReading) -> Option<&'a str> {
        let others = self.machines.others.as_ref().filter(|_| !self.is_alone)?;
        reading.host.as_deref().filter(|host| !others.is_own(host))
    }

    /// Adds a sample of a GPU at this time of the steady clock.
    pub(super) fn add(
        &mut self,
        numbers: &GpuNumbers,
        now: Duration,
        reading: &'a DcgmReading,
        printed: Printed<'a>,
    ) -> Added {
        let host = self.elsewhere(reading);
        if let (Some(host), Some(others)) = (host, &self.machines.others)
            && !others.admits(host, now)
        {
            return Added::NoMachine;
        }
        let number = match host {
            Some(_) => Some(reading.index),
            None => numbers.claim_scraped(&reading.identity, reading.index, reading.host.as_deref(), now),
        };
        let Some(number) = number else { return Added::Reported };
        let Some(value) = reading.value(printed.2) else { return Added::Taken };
        let place = (host, number, reading.mig, reading.def.tag);
        let (_, one, pods) =
            self.all.entry(place).or_insert_with(|| (reading, OneReading::new(reading, value), Vec::new()));
        if !pods.is_empty() {
            one.add(reading, value);
        }
        pods.push(printed);
        Added::Taken
    }

    /// Share of the memory in use of each GPU and MIG device whose used and free memory is known, percent: used by used and
    /// free, which is DCGM's own definition of `DCGM_FI_DEV_FB_USED_PERCENT`. None where the page has the share itself.
    fn memory_shares(&self) -> Vec<(&'a DcgmReading, Option<&'a str>, u32, f64)> {
        let used = self.all.iter().filter(|((.., tag), _)| *tag == gpu::MEMORY_USED.tag);
        let share = |(&(host, number, mig, _), (reading, used, _)): (&MetricPlace<'a>, &Values<'a>)| {
            let of = |def: &MetricDef| self.all.get(&(host, number, mig, def.tag));
            let (used, free) = (used.value()?, of(&gpu::MEMORY_FREE)?.1.value()?);
            let is_known = of(&gpu::MEMORY_ALLOCATED).is_some() || used + free <= 0.0;
            (!is_known).then(|| (*reading, host, number, 100.0 * used / (used + free)))
        };
        used.filter_map(share).collect()
    }

    /// Puts the value of each metric. Different values of pods are none of the device's; each stands under the labels
    /// that the page prints.
    pub(super) fn put(self, out: &mut Out) {
        for (reading, host, number, share) in self.memory_shares() {
            let (def, instance) = (&gpu::MEMORY_ALLOCATED, reading.instance(number));
            match (host, &self.machines.others) {
                (Some(host), Some(others)) => {
                    others.tell(host, self.machines.every, (def, instance, def.rounded(share)))
                }
                _ if reading.mig.is_none() => out.put_rounded(def, number, share),
                _ => out.put_rounded(def, instance.as_str(), share),
            }
        }
        for ((host, number, _, _), (reading, one, printed)) in self.all {
            let there = host.zip(self.machines.others.as_ref());
            let tell = |def, instance, value| {
                let (host, others) = there?;
                others.tell(host, self.machines.every, (def, instance, value));
                Some(())
            };
            let Some(value) = one.value() else {
                for (def, instance, value) in printed {
                    tell(def, instance.to_string(), value).unwrap_or_else(|| out.put(def, instance, value));
                }
                continue;
            };
            let instance = reading.instance(number);
            match reading.mig {
                _ if there.is_some() => drop(tell(reading.def, instance, value)),
                None => out.put(reading.def, number, value),
                Some(_) => out.put(reading.def, instance.as_str(), value),
            }
        }
    }
}
