//! Signals of the detectors, and the catalog rows that fill them. Tags are named only here.

use crate::levels::Slot;
use shared::catalog::{
    Metric, MetricDef, cpu, disk, gpu, gpu_amd, gpu_health, gpu_parts, gpu_pods, gpu_profile, infiniband, job, memory,
    monitor, mount, network, process, tpu, trainium,
};

/// Families of accelerators; each counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Gpu,
    Tpu,
    Neuron,
}

/// A signal of an accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sig {
    /// Busy with a kernel, percent.
    Use,
    /// Watts.
    Power,
    /// Percent of the limit.
    PowerShare,
    /// Watts.
    Limit,
    /// °C.
    Temp,
    /// MHz.
    Clock,
    /// Bytes in use.
    MemBytes,
    /// Bytes that exist.
    MemTotal,
    /// Percent in use.
    MemShare,
    /// Memory controller busy, percent.
    Activity,
    /// Bits.
    Throttle,
    /// Errors a second.
    Corrected,
    Uncorrected,
    /// Critical errors.
    Xids,
    LastXid,
    /// The action for the last one, by its number in the table of XIDs.
    XidAction,
    /// Percent.
    Tensor,
    Sm,
    Dram,
    /// Bytes a second.
    PcieTx,
    PcieRx,
    NvTx,
    NvRx,
    Gen,
    MaxGen,
    Width,
    MaxWidth,
    /// Active NVLinks or XGMI links, and errors per second on them.
    LinksUp,
    LinkCrc,
    LinkReplays,
    /// The action that the driver requires, by NVML's number.
    Recovery,
    /// It has no memory of its own.
    Shared,
    /// Registration at the NVLink fabric, and the fabric's health.
    FabricState,
    FabricHealth,
    /// Mean power since the last tick, from the energy counter, watts.
    Energy,
}

/// Number of signals.
pub(crate) const SIGNALS: usize = Sig::Energy as usize + 1;

/// A signal of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostSig {
    /// Percent of all cores.
    Cpu,
    Cores,
    /// Percent of the time.
    PressureCpu,
    PressureIo,
    PressureMemory,
    /// Percent of the limit.
    Working,
    /// Bytes.
    MemoryUsed,
    MemoryTotal,
    /// MiB a second.
    DiskIn,
    DiskOut,
    /// Bytes a second.
    NetIn,
    NetOut,
    /// Segments a second.
    Retransmits,
    /// Percent of periods.
    Throttled,
    /// Kills.
    Kills,
    /// Watched processes, percent of the capacity.
    ProcessCpu,
    /// Kills on the whole machine.
    AllKills,
}

/// Number of signals.
pub(crate) const HOST_SIGNALS: usize = HostSig::AllKills as usize + 1;

/// A named signal: a machine has several of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NamedSig {
    /// Disk busy, percent.
    Busy,
    /// Read from the disk, MiB a second.
    Read,
    /// Written to the disk, MiB a second.
    Written,
    /// File system in use, percent.
    Full,
    /// Bytes a second over a link.
    LinkIn,
    LinkOut,
    /// Capacity of an InfiniBand port, bytes a second.
    Rate,
    /// Requests under way to the file server of a mount.
    Waiting,
    /// Whether a collector read everything it should: 1, else 0.
    Answers,
    /// Seconds of a step of a rank, and those of them in which it waits for data, as the rank logs them.
    StepTime,
    DataTime,
}

impl NamedSig {
    /// A rank of a job logs it: names come and go with jobs.
    pub fn is_logged(self) -> bool {
        matches!(self, NamedSig::StepTime | NamedSig::DataTime)
    }
}

/// Destination of the samples of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalTarget {
    Device(Family, u32, Sig, u8),
    Host(HostSig),
    Named(NamedSig),
    /// Memory of a process on a GPU: the GPU and the process.
    Process(u32, u32),
    /// A MIG instance or a partition of a device: the device.
    Part(u32),
    /// A pod that holds a GPU: the GPU. The instance has the pod's name.
    Pod(u32),
}

/// Catalog rows of accelerators, by family, signal and choice: 0 is the first.
static DEVICE_ROWS: &[(&MetricDef, Family, Sig, u8)] = &[
    (&gpu::UTILIZATION, Family::Gpu, Sig::Use, 0),
    (&gpu_profile::ENGINE_ACTIVE, Family::Gpu, Sig::Use, 1),
    (&gpu::POWER_WATTS, Family::Gpu, Sig::Power, 0),
    (&gpu::POWER_MEAN_WATTS, Family::Gpu, Sig::Power, 1),
    (&gpu::POWER_PERCENT, Family::Gpu, Sig::PowerShare, 0),
    (&gpu::ENERGY_JOULES, Family::Gpu, Sig::Energy, 0),
    (&gpu::POWER_LIMIT_WATTS, Family::Gpu, Sig::Limit, 0),
    (&gpu::TEMP, Family::Gpu, Sig::Temp, 0),
    (&gpu::SM_CLOCK, Family::Gpu, Sig::Clock, 0),
    (&gpu::GRAPHICS_CLOCK, Family::Gpu, Sig::Clock, 1),
    (&gpu::FREQUENCY, Family::Gpu, Sig::Clock, 2),
    (&gpu::MEMORY_ALLOCATED_BYTES, Family::Gpu, Sig::MemBytes, 0),
    (&gpu::MEMORY_USED, Family::Gpu, Sig::MemBytes, 1),
    (&gpu::MEMORY_TOTAL_BYTES, Family::Gpu, Sig::MemTotal, 0),
    (&gpu::MEMORY_ALLOCATED, Family::Gpu, Sig::MemShare, 0),
    (&gpu::MEMORY_ACTIVITY, Family::Gpu, Sig::Activity, 0),
    (&gpu::MEMORY_READ_WRITE_ACTIVITY, Family::Gpu, Sig::Activity, 1),
    (&gpu::THROTTLE_REASONS, Family::Gpu, Sig::Throttle, 0),
    (&gpu::CORRECTED_ERRORS, Family::Gpu, Sig::Corrected, 0),
    (&gpu::UNCORRECTED_ERRORS, Family::Gpu, Sig::Uncorrected, 0),
    (&gpu_parts::XID_ERRORS, Family::Gpu, Sig::Xids, 0),
    (&gpu_parts::LAST_XID, Family::Gpu, Sig::LastXid, 0),
    (&gpu_parts::LAST_XID_ACTION, Family::Gpu, Sig::XidAction, 0),
    (&gpu_profile::TENSOR_ACTIVE, Family::Gpu, Sig::Tensor, 0),
    (&gpu_profile::SM_ACTIVE, Family::Gpu, Sig::Sm, 0),
    (&gpu_profile::DRAM_ACTIVE, Family::Gpu, Sig::Dram, 0),
    (&gpu_profile::PCIE_TX, Family::Gpu, Sig::PcieTx, 0),
    (&gpu_profile::PCIE_RX, Family::Gpu, Sig::PcieRx, 0),
    (&gpu_profile::NVLINK_TX, Family::Gpu, Sig::NvTx, 0),
    (&gpu_profile::NVLINK_TOTAL, Family::Gpu, Sig::NvTx, 1),
    (&gpu_profile::NVLINK_RX, Family::Gpu, Sig::NvRx, 0),
    (&gpu_amd::XGMI_TX, Family::Gpu, Sig::NvTx, 1),
    (&gpu_amd::XGMI_RX, Family::Gpu, Sig::NvRx, 1),
    (&gpu_profile::PCIE_GEN, Family::Gpu, Sig::Gen, 0),
    (&gpu_profile::MAX_PCIE_GEN, Family::Gpu, Sig::MaxGen, 0),
    (&gpu_profile::PCIE_WIDTH, Family::Gpu, Sig::Width, 0),
    (&gpu_profile::MAX_PCIE_WIDTH, Family::Gpu, Sig::MaxWidth, 0),
    (&gpu_health::NVLINKS_ACTIVE, Family::Gpu, Sig::LinksUp, 0),
    (&gpu_amd::XGMI_ACTIVE, Family::Gpu, Sig::LinksUp, 1),
    (&gpu_health::NVLINK_CRC_ERRORS, Family::Gpu, Sig::LinkCrc, 0),
    (&gpu_health::NVLINK_REPLAYS, Family::Gpu, Sig::LinkReplays, 0),
    (&gpu_health::RECOVERY_ACTION, Family::Gpu, Sig::Recovery, 0),
    (&gpu::MEMORY_SHARED, Family::Gpu, Sig::Shared, 0),
    (&gpu_health::FABRIC_STATE, Family::Gpu, Sig::FabricState, 0),
    (&gpu_health::FABRIC_HEALTH, Family::Gpu, Sig::FabricHealth, 0),
    (&tpu::DUTY_CYCLE, Family::Tpu, Sig::Use, 0),
    (&tpu::TENSORCORE, Family::Tpu, Sig::Tensor, 0),
    (&tpu::HBM_USAGE, Family::Tpu, Sig::MemBytes, 0),
    (&tpu::HBM_TOTAL, Family::Tpu, Sig::MemTotal, 0),
    (&tpu::HBM_PERCENT, Family::Tpu, Sig::MemShare, 0),
    (&tpu::RUNTIME_HBM, Family::Tpu, Sig::Activity, 0),
    (&trainium::UTILIZATION, Family::Neuron, Sig::Use, 0),
    (&trainium::CORE_TENSORS, Family::Neuron, Sig::MemBytes, 0),
];

static HOST_ROWS: &[(&MetricDef, HostSig)] = &[
    (&cpu::CPU_PERCENT, HostSig::Cpu),
    (&cpu::CORES, HostSig::Cores),
    (&cpu::PRESSURE_CPU, HostSig::PressureCpu),
    (&cpu::PRESSURE_IO_SOME, HostSig::PressureIo),
    (&cpu::PRESSURE_MEMORY_FULL, HostSig::PressureMemory),
    (&memory::WORKING_SET, HostSig::Working),
    (&memory::USED, HostSig::MemoryUsed),
    (&memory::TOTAL, HostSig::MemoryTotal),
    (&disk::READ, HostSig::DiskIn),
    (&disk::WRITTEN, HostSig::DiskOut),
    (&network::RECEIVED, HostSig::NetIn),
    (&network::SENT, HostSig::NetOut),
    (&network::RETRANSMITS, HostSig::Retransmits),
    (&process::THROTTLED, HostSig::Throttled),
    (&process::OOM_KILLS, HostSig::Kills),
    (&process::CPU, HostSig::ProcessCpu),
    (&memory::OOM_KILLS, HostSig::AllKills),
];

static NAMED_ROWS: &[(&MetricDef, NamedSig)] = &[
    (&disk::DEVICE_BUSY, NamedSig::Busy),
    (&disk::DEVICE_READ, NamedSig::Read),
    (&disk::DEVICE_WRITTEN, NamedSig::Written),
    (&job::STEP_TIME, NamedSig::StepTime),
    (&job::DATA_TIME, NamedSig::DataTime),
    (&disk::USAGE_PERCENT, NamedSig::Full),
    (&network::DEVICE_RECEIVED, NamedSig::LinkIn),
    (&network::DEVICE_SENT, NamedSig::LinkOut),
    (&infiniband::RATE, NamedSig::Rate),
    (&mount::WAITING, NamedSig::Waiting),
    (&monitor::OK, NamedSig::Answers),
];

/// Between the number of a GPU and the namespace and name of a pod.
pub(crate) const POD: &str = ".pod.";

/// Destination of the samples of a series, with its row; none for a series that no rule reads.
pub(crate) fn place_of(metric: &Metric, instance: &str) -> Option<(&'static MetricDef, SignalTarget)> {
    let is = |def: &MetricDef| def.tag == metric.tag && def.kind == metric.kind && def.unit == metric.unit;
    if let Some(&(row, family, sig, rank)) = DEVICE_ROWS.iter().find(|(def, ..)| is(def)) {
        return match instance.parse() {
            Ok(index) => Some((row, SignalTarget::Device(family, index, sig, rank))),
            Err(_) => {
                let (device, _) = instance.split_once(".mig.").or_else(|| instance.split_once(".xcp."))?;
                Some((row, SignalTarget::Part(device.parse().ok()?)))
            }
        };
    }
    if let Some(&(row, sig)) = HOST_ROWS.iter().find(|(def, _)| is(def)) {
        // A series with a label belongs to a rank, not to a machine.
        return instance.is_empty().then_some((row, SignalTarget::Host(sig)));
    }
    if let Some(&(row, sig)) = NAMED_ROWS.iter().find(|(def, _)| is(def)) {
        return Some((row, SignalTarget::Named(sig)));
    }
    if is(&gpu_pods::HELD_BY_POD) {
        let (gpu, _) = instance.split_once(POD)?;
        return Some((&gpu_pods::HELD_BY_POD, SignalTarget::Pod(gpu.parse().ok()?)));
    }
    if is(&gpu_parts::PROCESS_MEMORY) {
        let (gpu, pid) = instance.split_once(".proc.")?;
        return Some((&gpu_parts::PROCESS_MEMORY, SignalTarget::Process(gpu.parse().ok()?, pid.parse().ok()?)));
    }
    None
}

/// The first-choice row of a signal of a family, named where the signal is absent.
pub(crate) fn row_of(family: Family, sig: Sig) -> Option<&'static MetricDef> {
    DEVICE_ROWS.iter().find(|(_, f, s, rank)| (*f, *s, *rank) == (family, sig, 0)).map(|(row, ..)| *row)
}

/// Links between the GPUs of a machine, as their vendor calls them: `row` is that of any of their signals.
pub(crate) fn bridge_name(row: Option<&MetricDef>) -> &'static str {
    const XGMI: [&MetricDef; 3] = [&gpu_amd::XGMI_TX, &gpu_amd::XGMI_RX, &gpu_amd::XGMI_ACTIVE];
    if row.is_some_and(|row| XGMI.iter().any(|xgmi| xgmi.tag == row.tag)) { "XGMI" } else { "NVLink" }
}

/// The row of a signal of a machine.
pub(crate) fn host_row_of(sig: HostSig) -> &'static MetricDef {
    HOST_ROWS.iter().find(|(_, s)| *s == sig).map_or(&cpu::CPU_PERCENT, |(row, _)| *row)
}

/// The row of a named signal.
pub(crate) fn named_row_of(sig: NamedSig) -> &'static MetricDef {
    NAMED_ROWS.iter().find(|(_, s)| *s == sig).map_or(&disk::DEVICE_BUSY, |(row, _)| *row)
}

/// Row of the memory that a process has on a GPU.
pub(crate) fn process_row() -> &'static MetricDef {
    &gpu_parts::PROCESS_MEMORY
}

/// Empty slots.
pub(crate) fn slots<const N: usize>() -> [Slot; N] {
    std::array::from_fn(|_| Slot::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_has_a_row_and_every_row_its_place() {
        let sigs = DEVICE_ROWS.iter().map(|(_, _, sig, _)| *sig as usize).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(sigs.len(), SIGNALS);
        assert_eq!(HOST_ROWS.len(), HOST_SIGNALS);
        for (at, (row, sig)) in HOST_ROWS.iter().enumerate() {
            assert_eq!(*sig as usize, at);
            assert_eq!(place_of(&Metric::from(*row), "").map(|(_, place)| place), Some(SignalTarget::Host(*sig)));
        }
        for (row, family, sig, rank) in DEVICE_ROWS {
            let place = place_of(&Metric::from(*row), "3").map(|(_, place)| place);
            assert_eq!(place, Some(SignalTarget::Device(*family, 3, *sig, *rank)));
        }
    }

    #[test]
    fn what_a_rank_uses_is_not_what_all_watched_processes_do() {
        let row = Metric::from(&process::CPU);
        assert!(place_of(&row, "").is_some());
        assert_eq!(place_of(&row, "/l:rank_0").map(|_| ()), None);
    }

    #[test]
    fn processes_and_parts_are_told_by_their_instance() {
        let row = Metric::from(&gpu_parts::PROCESS_MEMORY);
        assert_eq!(place_of(&row, "0.proc.4711").map(|(_, place)| place), Some(SignalTarget::Process(0, 4711)));
        assert!(place_of(&row, "0").is_none());
        let row = Metric::from(&gpu::MEMORY_ALLOCATED_BYTES);
        assert_eq!(place_of(&row, "2.mig.1").map(|(_, place)| place), Some(SignalTarget::Part(2)));
        assert_eq!(place_of(&row, "2.xcp.7").map(|(_, place)| place), Some(SignalTarget::Part(2)));
        let row = Metric::from(&gpu_pods::HELD_BY_POD);
        assert_eq!(place_of(&row, "2.pod.a/b").map(|(_, place)| place), Some(SignalTarget::Pod(2)));
        assert!(place_of(&row, "2").is_none());
        assert_eq!(place_of(&Metric::from(&cpu::LOAD1), "").map(|(_, place)| place), None);
    }
}
