//! Metric names of other exporters (node_exporter and DCGM) for values that Watchglass measures itself.

/// A metric of another exporter: its name and our tag, with `*` for any instance. `times` and `plus` convert our value
/// in the base unit (shares are 0 to 1, sizes bytes, times seconds) to theirs.
pub(super) struct Named {
    pub name: &'static str,
    pub tag: &'static str,
    pub times: f64,
    pub plus: f64,
    /// Label with the instance; empty where there is none.
    pub label: &'static str,
    /// The row applies to this value of this label only.
    pub only: Option<(&'static str, &'static str)>,
    pub how: How,
    /// Difference between the two metrics, if any: then the rule is refused, and the nearest rule is suggested.
    pub differs: Option<&'static str>,
}

/// Conversion of their metric to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// No conversion.
    Plain,
    /// Its rate: they count seconds, our value is the share of the time.
    Rate,
    /// Its rate, as the mean of all cores.
    MeanRate,
}

const fn row(name: &'static str, tag: &'static str, label: &'static str) -> Named {
    Named { name, tag, times: 1.0, plus: 0.0, label, only: None, how: How::Plain, differs: None }
}

const fn scaled(name: &'static str, tag: &'static str, label: &'static str, times: f64) -> Named {
    Named { times, ..row(name, tag, label) }
}

const fn share(name: &'static str, tag: &'static str, label: &'static str) -> Named {
    Named { how: How::Rate, ..row(name, tag, label) }
}

const fn cores(mode: &'static str, tag: &'static str) -> Named {
    let name = "node_cpu_seconds_total";
    Named { only: Some(("mode", mode)), how: How::MeanRate, ..row(name, tag, "") }
}

const fn unlike(named: Named, differs: &'static str) -> Named {
    Named { differs: Some(differs), ..named }
}

/// Difference of DCGM's counts of memory errors.
const ALL_MEMORIES: &str = "it also counts errors of the GPU's caches; the Watchglass metric counts those of its \
    memory only";

/// Difference of the share of a GPU's memory.
const RESERVED: &str = "it leaves out the memory reserved by the driver, which the Watchglass metric includes";

/// Difference of the share of a file system.
const BLOCKS_OF_ROOT: &str =
    "its size includes the blocks reserved for root; the Watchglass metric leaves them out as `df` does";

const MIB: f64 = (1u64 << 20) as f64;

pub(super) const NAMES: &[Named] = &[
    unlike(
        Named { times: -1.0, plus: 1.0, ..cores("idle", "system.cpu_percent") },
        "it counts I/O wait as busy; `system.cpu_percent` does not",
    ),
    unlike(
        cores("user", "system.cpu_user_percent"),
        "it has a separate mode for niced programs; the Watchglass metric includes them",
    ),
    unlike(
        cores("system", "system.cpu_system_percent"),
        "it has separate modes for interrupts; the Watchglass metric includes them",
    ),
    cores("iowait", "system.cpu_iowait_percent"),
    cores("steal", "system.cpu_steal_percent"),
    row("node_load1", "system.load1", ""),
    row("node_load5", "system.load5", ""),
    row("node_load15", "system.load15", ""),
    row("node_procs_running", "system.tasks_runnable", ""),
    row("node_procs_blocked", "system.tasks_blocked", ""),
    row("node_intr_total", "system.interrupts", ""),
    row("node_context_switches_total", "system.context_switches", ""),
    row("node_forks_total", "system.forks", ""),
    row("node_memory_MemTotal_bytes", "memory.total", ""),
    row("node_memory_MemAvailable_bytes", "proc.memory.availableMB", ""),
    row("node_memory_MemFree_bytes", "memory.free", ""),
    row("node_memory_Buffers_bytes", "memory.buffers", ""),
    row("node_memory_Cached_bytes", "memory.cached", ""),
    row("node_memory_Dirty_bytes", "memory.dirty", ""),
    row("node_memory_Shmem_bytes", "memory.shared", ""),
    row("node_memory_Slab_bytes", "memory.slab", ""),
    row("node_memory_SwapTotal_bytes", "swap.total", ""),
    row("node_vmstat_pgmajfault", "memory.major_faults", ""),
    row("node_vmstat_oom_kill", "memory.oom_kills", ""),
    share("node_pressure_cpu_waiting_seconds_total", "pressure.cpu.some_percent", ""),
    share("node_pressure_memory_waiting_seconds_total", "pressure.memory.some_percent", ""),
    share("node_pressure_memory_stalled_seconds_total", "pressure.memory.full_percent", ""),
    share("node_pressure_io_waiting_seconds_total", "pressure.io.some_percent", ""),
    share("node_pressure_io_stalled_seconds_total", "pressure.io.full_percent", ""),
    share("node_disk_io_time_seconds_total", "disk.*.busy_percent", "device"),
    row("node_disk_read_bytes_total", "disk.*.in", "device"),
    row("node_disk_written_bytes_total", "disk.*.out", "device"),
    row("node_network_receive_bytes_total", "network.*.recv", "device"),
    row("node_network_transmit_bytes_total", "network.*.sent", "device"),
    row("node_netstat_Tcp_RetransSegs", "network.tcpRetransmits", ""),
    unlike(
        row("node_hwmon_temp_celsius", "cpu.avg_temp", ""),
        "it covers each sensor of each chip, including disks and networks; the Watchglass metric is the mean of the \
        processor's",
    ),
    scaled("DCGM_FI_DEV_GPU_UTIL", "gpu.*.gpu", "gpu", 100.0),
    scaled("DCGM_FI_DEV_MEM_COPY_UTIL", "gpu.*.memory", "gpu", 100.0),
    scaled("DCGM_FI_DEV_ENC_UTIL", "gpu.*.encoderUtilization", "gpu", 100.0),
    scaled("DCGM_FI_DEV_DEC_UTIL", "gpu.*.decoderUtilization", "gpu", 100.0),
    row("DCGM_FI_DEV_GPU_TEMP", "gpu.*.temp", "gpu"),
    row("DCGM_FI_DEV_MEMORY_TEMP", "gpu.*.memoryTemp", "gpu"),
    row("DCGM_FI_DEV_POWER_USAGE", "gpu.*.powerWatts", "gpu"),
    scaled("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "gpu.*.energyJoules", "gpu", 1_000.0),
    scaled("DCGM_FI_DEV_SM_CLOCK", "gpu.*.smClock", "gpu", 1e-6),
    scaled("DCGM_FI_DEV_MEM_CLOCK", "gpu.*.memoryClock", "gpu", 1e-6),
    scaled("DCGM_FI_DEV_FB_USED", "gpu.*.memoryAllocatedBytes", "gpu", 1.0 / MIB),
    scaled("DCGM_FI_DEV_FB_TOTAL", "gpu.*.memoryTotalBytes", "gpu", 1.0 / MIB),
    unlike(row("DCGM_FI_DEV_FB_USED_PERCENT", "gpu.*.memoryAllocated", "gpu"), RESERVED),
    row("DCGM_FI_DEV_XID_ERRORS", "gpu.*.lastXid", "gpu"),
    row("DCGM_FI_DEV_ECC_DBE_VOL_DEV", "gpu.*.uncorrectedMemoryErrors", "gpu"),
    row("DCGM_FI_DEV_ECC_SBE_VOL_DEV", "gpu.*.correctedMemoryErrors", "gpu"),
    unlike(row("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "gpu.*.uncorrectedMemoryErrors", "gpu"), ALL_MEMORIES),
    unlike(row("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "gpu.*.correctedMemoryErrors", "gpu"), ALL_MEMORIES),
    row("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "gpu.*.uncorrectedRemappedRows", "gpu"),
    row("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "gpu.*.correctedRemappedRows", "gpu"),
    row("DCGM_FI_DEV_ROW_REMAP_PENDING", "gpu.*.rowRemapPending", "gpu"),
    row("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gpu.*.rowRemapFailed", "gpu"),
    row("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "gpu.*.pcieReplays", "gpu"),
    row("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu.*.grEngineActive", "gpu"),
    row("DCGM_FI_PROF_SM_ACTIVE", "gpu.*.smActive", "gpu"),
    row("DCGM_FI_PROF_SM_OCCUPANCY", "gpu.*.smOccupancy", "gpu"),
    row("DCGM_FI_PROF_DRAM_ACTIVE", "gpu.*.dramActive", "gpu"),
    row("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gpu.*.pipeTensorActive", "gpu"),
    row("DCGM_FI_PROF_PCIE_TX_BYTES", "gpu.*.pcieTxBytes", "gpu"),
    row("DCGM_FI_PROF_PCIE_RX_BYTES", "gpu.*.pcieRxBytes", "gpu"),
    row("DCGM_FI_PROF_NVLINK_TX_BYTES", "gpu.*.nvlinkTxBytes", "gpu"),
    row("DCGM_FI_PROF_NVLINK_RX_BYTES", "gpu.*.nvlinkRxBytes", "gpu"),
    // The names of DCGM 4.6 and 4.7, in base units.
    row("DCGM_FI_DEV_GPU_UTIL_RATIO", "gpu.*.gpu", "gpu"),
    row("DCGM_FI_DEV_MEMORY_UTIL_RATIO", "gpu.*.memory", "gpu"),
    row("DCGM_FI_DEV_ENC_UTIL_RATIO", "gpu.*.encoderUtilization", "gpu"),
    row("DCGM_FI_DEV_DEC_UTIL_RATIO", "gpu.*.decoderUtilization", "gpu"),
    row("DCGM_FI_DEV_GPU_TEMP_CELSIUS", "gpu.*.temp", "gpu"),
    row("DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "gpu.*.memoryTemp", "gpu"),
    row("DCGM_FI_DEV_BOARD_POWER_WATTS", "gpu.*.powerWatts", "gpu"),
    row("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "gpu.*.energyJoules", "gpu"),
    row("DCGM_FI_DEV_SM_CLOCK_HERTZ", "gpu.*.smClock", "gpu"),
    row("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "gpu.*.memoryClock", "gpu"),
    row("DCGM_FI_DEV_FB_USED_BYTES", "gpu.*.memoryAllocatedBytes", "gpu"),
    row("DCGM_FI_DEV_FB_CAPACITY_BYTES", "gpu.*.memoryTotalBytes", "gpu"),
    row("DCGM_FI_DEV_XID_ERROR", "gpu.*.lastXid", "gpu"),
    row("DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "gpu.*.uncorrectedRemappedRows", "gpu"),
    row("DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", "gpu.*.correctedRemappedRows", "gpu"),
    row("DCGM_FI_DEV_ROW_REMAP_FAILED", "gpu.*.rowRemapFailed", "gpu"),
    row("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "gpu.*.pcieReplays", "gpu"),
    row("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "gpu.*.grEngineActive", "gpu"),
    row("DCGM_FI_PROF_SM_UTIL_RATIO", "gpu.*.smActive", "gpu"),
    row("DCGM_FI_PROF_SM_OCCUPANCY_RATIO", "gpu.*.smOccupancy", "gpu"),
    row("DCGM_FI_PROF_DRAM_UTIL_RATIO", "gpu.*.dramActive", "gpu"),
    row("DCGM_FI_PROF_TENSOR_UTIL_RATIO", "gpu.*.pipeTensorActive", "gpu"),
];

/// Two metrics whose ratio the catalog has: the part, the whole, our share, and the conversion as in [`Named`].
pub(super) struct Shared {
    pub part: &'static str,
    pub whole: &'static str,
    pub tag: &'static str,
    pub times: f64,
    pub plus: f64,
    pub label: &'static str,
    /// As in [`Named`].
    pub differs: Option<&'static str>,
}

const fn shared_label(part: &'static str, whole: &'static str, tag: &'static str, label: &'static str) -> Shared {
    Shared { part, whole, tag, times: 1.0, plus: 0.0, label, differs: None }
}

/// Our value is the used share, theirs the free one.
const fn left(part: &'static str, whole: &'static str, tag: &'static str, label: &'static str) -> Shared {
    Shared { times: -1.0, plus: 1.0, ..shared_label(part, whole, tag, label) }
}

const fn unlike_share(shared: Shared, differs: &'static str) -> Shared {
    Shared { differs: Some(differs), ..shared }
}

pub(super) const SHARES: &[Shared] = &[
    left("node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes", "memory.working_set_percent", ""),
    left("node_memory_SwapFree_bytes", "node_memory_SwapTotal_bytes", "swap.used_percent", ""),
    unlike_share(
        left("node_filesystem_avail_bytes", "node_filesystem_size_bytes", "disk.*.usagePercent", "mountpoint"),
        BLOCKS_OF_ROOT,
    ),
    unlike_share(
        left("node_filesystem_free_bytes", "node_filesystem_size_bytes", "disk.*.usagePercent", "mountpoint"),
        BLOCKS_OF_ROOT,
    ),
    left("node_filesystem_avail_bytes", USABLE, "disk.*.usagePercent", "mountpoint"),
    shared_label(USED, USABLE, "disk.*.usagePercent", "mountpoint"),
    shared_label("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_TOTAL", "gpu.*.memoryAllocated", "gpu"),
    unlike_share(left("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_TOTAL", "gpu.*.memoryAllocated", "gpu"), RESERVED),
    unlike_share(shared_label("DCGM_FI_DEV_FB_USED", UNRESERVED, "gpu.*.memoryAllocated", "gpu"), RESERVED),
    unlike_share(left("DCGM_FI_DEV_FB_FREE", UNRESERVED, "gpu.*.memoryAllocated", "gpu"), RESERVED),
    shared_label("DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_DEV_FB_CAPACITY_BYTES", "gpu.*.memoryAllocated", "gpu"),
    unlike_share(
        left("DCGM_FI_DEV_FB_FREE_BYTES", "DCGM_FI_DEV_FB_CAPACITY_BYTES", "gpu.*.memoryAllocated", "gpu"),
        RESERVED,
    ),
    shared_label("watchglass_memory_used_bytes", "watchglass_memory_total_bytes", "memory.working_set_percent", ""),
    left("watchglass_memory_available_bytes", "watchglass_memory_total_bytes", "memory.working_set_percent", ""),
    shared_label("watchglass_swap_used_bytes", "watchglass_swap_total_bytes", "swap.used_percent", ""),
    shared_label(
        "watchglass_gpu_memory_used_bytes",
        "watchglass_gpu_memory_total_bytes",
        "gpu.*.memoryAllocated",
        "gpu",
    ),
    shared_label("watchglass_gpu_power_watts", "watchglass_gpu_power_limit_watts", "gpu.*.powerPercent", "gpu"),
];

/// Sums of several metrics: `size - free` and that with `avail` of a file system, and `used + free` of a GPU.
pub(super) const USED: &str = "node_filesystem_size_bytes - node_filesystem_free_bytes";
pub(super) const USABLE: &str = "node_filesystem_size_bytes - node_filesystem_free_bytes + node_filesystem_avail_bytes";
pub(super) const UNRESERVED: &str = "DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE";

/// Free bytes of file systems, for rules on filling up. Our value is the used share.
pub(super) const FILLING: [&str; 2] = ["node_filesystem_avail_bytes", "node_filesystem_free_bytes"];

/// Metrics that only carry labels of a machine, joined to a value.
pub(super) const FACTS: [&str; 3] = ["node_uname_info", "node_os_info", "node_exporter_build_info"];

/// Labels about the path by which Prometheus got a series, not about the machine.
pub(super) const IDLE_LABELS: [&str; 5] = ["job", "fstype", "prometheus", "endpoint", "exporter"];

/// Labels that select among the series of a machine, where our row has no such label.
pub(super) const SERIES_LABELS: [&str; 20] = [
    "modelName",
    "UUID",
    "uuid",
    "pci_bus_id",
    "GPU_I_ID",
    "GPU_I_PROFILE",
    "err_code",
    "pod",
    "container",
    "namespace",
    "exported_pod",
    "exported_container",
    "exported_namespace",
    "chip",
    "sensor",
    "cpu",
    "mode",
    "device",
    "mountpoint",
    "type",
];

/// Labels that name the machine.
pub(super) const MACHINE_LABELS: [&str; 6] = ["instance", "source", "nodename", "Hostname", "hostname", "node"];

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::Catalog;

    #[test]
    fn every_tag_of_the_tables_is_in_the_catalog() {
        let catalog = crate::prometheus::catalog();
        let is_there = |tag: &str, label: &str| {
            let found = find(&catalog, tag);
            assert!(found, "{tag}");
            assert_eq!(tag.contains('*'), !label.is_empty(), "{tag}: {label:?}");
        };
        NAMES.iter().for_each(|named| is_there(named.tag, named.label));
        SHARES.iter().for_each(|shared| is_there(shared.tag, shared.label));
    }

    fn find(catalog: &Catalog, tag: &str) -> bool {
        shared::rule::parse(&format!("{tag} > 1"), catalog).is_ok()
    }
}
