//! `nvidia-smi -q` without `-x`: the content of the document as indented lines of `key : value`.
//!
//! Unterminated lines are skipped. The indentation gives the parent of a line. Names are mapped to the document's, so
//! that one table covers both forms.

use super::{SmiGpu, watts};

/// Keys with their parents, and the document's names for them.
const NAMES: &[(&[&str], &[&str], &str)] = &[
    (&["GPU UUID"], &[], "uuid"),
    (&["Fan Speed"], &[], "fan_speed"),
    (&["Utilization", "GPU"], &["utilization"], "gpu_util"),
    (&["Utilization", "Memory"], &["utilization"], "memory_util"),
    (&["Utilization", "Encoder"], &["utilization"], "encoder_util"),
    (&["Utilization", "Decoder"], &["utilization"], "decoder_util"),
    (&["Temperature", "GPU Current Temp"], &["temperature"], "gpu_temp"),
    (&["Temperature", "Memory Current Temp"], &["temperature"], "memory_temp"),
    (&["Clocks", "Graphics"], &["clocks"], "graphics_clock"),
    (&["Clocks", "SM"], &["clocks"], "sm_clock"),
    (&["Clocks", "Memory"], &["clocks"], "mem_clock"),
    (&["ECC Errors", "Volatile", "DRAM Correctable"], &["ecc_errors", "volatile"], "dram_correctable"),
    (&["ECC Errors", "Volatile", "DRAM Uncorrectable"], &["ecc_errors", "volatile"], "dram_uncorrectable"),
    (&["Performance State"], &[], "performance_state"),
    (&["Persistence Mode"], &[], "persistence_mode"),
    (&["GPU Recovery Action"], &[], "gpu_recovery_action"),
    (&["PCI", "Bus Id"], &["pci"], "pci_bus_id"),
    (&["PCI", "Replays Since Reset"], &["pci"], "replay_counter"),
    (&["Remapped Rows", "Correctable Error"], &["remapped_rows"], "remapped_row_corr"),
    (&["Remapped Rows", "Uncorrectable Error"], &["remapped_rows"], "remapped_row_unc"),
    (&["Remapped Rows", "Pending"], &["remapped_rows"], "remapped_row_pending"),
    (&["Remapped Rows", "Remapping Failure Occurred"], &["remapped_rows"], "remapped_row_failure"),
    (&["PCI", "GPU Link Info", "PCIe Generation", "Current"], PCIE_GEN, "current_link_gen"),
    (&["PCI", "GPU Link Info", "Link Width", "Current"], PCIE_WIDTH, "current_link_width"),
    (&["FB Memory Usage", "Total"], &["fb_memory_usage"], "total"),
    (&["FB Memory Usage", "Used"], &["fb_memory_usage"], "used"),
    (&["MIG Device", "Index"], &["mig_devices", "mig_device"], "index"),
    (&["MIG Device", "Shared FB Memory Usage", "Total"], MIG_MEMORY, "total"),
    (&["MIG Device", "Shared FB Memory Usage", "Used"], MIG_MEMORY, "used"),
    (&["MIG Device", "FB Memory Usage", "Total"], MIG_MEMORY, "total"),
    (&["MIG Device", "FB Memory Usage", "Used"], MIG_MEMORY, "used"),
    (&["Processes", "Process ID"], &["processes", "process_info"], "pid"),
    (&["Processes", "Process ID", "Used GPU Memory"], &["processes", "process_info"], "used_memory"),
];

/// Power keys, at any depth below either of these: drivers since 610 have the limits one level deeper.
const POWER: [&str; 2] = ["GPU Power Readings", "Power Readings"];
const POWER_NAMES: &[(&str, &str)] = &[
    ("Instantaneous Power Draw", "instant_power_draw"),
    ("Current Power Limit", "current_power_limit"),
    ("Enforced Power Limit", "enforced_power_limit"),
];

const PCIE_GEN: &[&str] = &["pci", "pci_gpu_link_info", "pcie_gen"];
const PCIE_WIDTH: &[&str] = &["pci", "pci_gpu_link_info", "link_widths"];
const MIG_MEMORY: &[&str] = &["mig_devices", "mig_device", "fb_memory_usage"];

/// All GPUs, with the values of complete lines.
pub(super) fn gpus(text: &str) -> Vec<SmiGpu> {
    let (mut found, mut current, mut path) = (Vec::new(), None::<SmiGpu>, Vec::<(usize, &str)>::new());
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let indent = line.len() - line.trim_start().len();
        let (key, value) = line.split_once(" : ").unwrap_or((line, ""));
        let key = key.trim();
        if key.is_empty() {
            continue;
        }
        if let Some(gpu) = &mut current {
            leave(gpu, &mut path, indent);
        }
        if indent == 0 {
            found.extend(current.take().map(|gpu| gpu.with_mean_power().whole()));
            // `GPU 00000000:01:00.0`, alone on its line.
            current = key.strip_prefix("GPU ").filter(|_| value.is_empty()).map(|_| SmiGpu::default());
        } else if let Some(gpu) = &mut current {
            path.push((indent, key));
            take(gpu, &path, value.trim());
        }
    }
    if let Some(mut gpu) = current {
        leave(&mut gpu, &mut path, 0);
        found.push(gpu.with_mean_power().whole());
    }
    found
}

/// Ends all groups that are not parents of a line with this indentation.
fn leave(gpu: &mut SmiGpu, path: &mut Vec<(usize, &str)>, indent: usize) {
    while path.last().is_some_and(|(deep, _)| *deep >= indent) {
        match path.iter().map(|(_, key)| *key).collect::<Vec<_>>().as_slice() {
            ["MIG Device"] => gpu.close(&["mig_devices"], "mig_device"),
            ["Processes", "Process ID"] => gpu.close(&["processes"], "process_info"),
            _ => {}
        }
        path.pop();
    }
}

fn take(gpu: &mut SmiGpu, path: &[(usize, &str)], value: &str) {
    let is = |keys: &[&str]| {
        keys.len() == path.len() && keys.iter().zip(path).all(|(key, (_, own))| key.eq_ignore_ascii_case(own))
    };
    let ([(_, first), ..], [.., (_, last)]) = (path, path) else { return };
    gpu.record_error(last, value);
    let named = |names: &[&str], key: &str| names.iter().any(|name| name.eq_ignore_ascii_case(key));
    if path.len() > 1 && named(&POWER, first) {
        if named(&["Average Power Draw", "Power Draw"], last) {
            gpu.power = gpu.power.or(watts(value));
        } else if let Some((_, name)) = POWER_NAMES.iter().find(|(key, _)| key.eq_ignore_ascii_case(last)) {
            gpu.value(&["power_readings"], name, value);
        }
    } else if let Some((_, inside, name)) = NAMES.iter().find(|(keys, ..)| is(keys)) {
        gpu.value(inside, name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{present_in, survives};
    use super::*;
    use crate::recordings;

    const OWN: &str = "\
==============NVSMI LOG==============

Attached GPUs                   : 2
GPU 00000000:01:00.0
    Product Name                : Some card
    MIG Device
        Index                   : 2
        FB Memory Usage
            Total               : 100 MiB
            Used                : 25 MiB
    MIG Device
        Index                   : 3
        Shared FB Memory Usage
            Total               : 100 MiB
            Used                : 50 MiB
    GPU UUID                    : GPU-a
    PCI
        GPU Link Info
            PCIe Generation
                Max             : 5
                Current         : 4
            Link Width
                Current         : 8x
    Fan Speed                   : N/A
    FB Memory Usage
        Total                   : 1000 MiB
        Used                    : 250 MiB
    BAR1 Memory Usage
        Total                   : 7 MiB
        Used                    : 7 MiB
    Utilization
        Gpu                     : 12 %
        Memory                  : N/A
    ECC Errors
        Volatile
            DRAM Correctable    : 3
        Aggregate
            DRAM Correctable    : 9
    GPU Power Readings
        Average Power Draw      : 50.00 W
        Instantaneous Power Draw : 99.00 W
        Current Power Limit     : 200.00 W
    Module Power Readings
        Average Power Draw      : 400.00 W
    Clocks
        Memory                  : 2619 MHz
    Max Clocks
        Memory                  : 3000 MHz
    Processes
        GPU instance ID         : N/A
        Process ID              : 7
            Name                : a : b
            Used GPU Memory     : 1 MiB
        Process ID              : 8
            Used GPU Memory     : Not available in WDDM driver model
    Capabilities
        EGM                     : disabled
GPU 00000000:02:00.0
    Temperature
        GPU Current Temp        : 41 C
        GPU Shutdown Temp       : 99 C
    Power Readings
        Power Draw              : 40.00 W
        Enforced Power Limit    : 80.00 W
";

    #[test]
    fn lines_are_read_by_what_they_stand_below() {
        let expected = [
            ("gpu.0.correctedMemoryErrors", 3.0),
            ("gpu.0.enforcedPowerLimitWatts", 200.0),
            ("gpu.0.gpu", 12.0),
            ("gpu.0.memoryAllocated", 25.0),
            ("gpu.0.memoryAllocatedBytes", 262_144_000.0),
            ("gpu.0.memoryClock", 2619.0),
            ("gpu.0.memoryTotalBytes", 1_048_576_000.0),
            ("gpu.0.mig.2.memoryAllocated", 25.0),
            ("gpu.0.mig.2.memoryAllocatedBytes", 26_214_400.0),
            ("gpu.0.mig.3.memoryAllocated", 50.0),
            ("gpu.0.mig.3.memoryAllocatedBytes", 52_428_800.0),
            ("gpu.0.pcieLinkGen", 4.0),
            ("gpu.0.pcieLinkWidth", 8.0),
            ("gpu.0.powerPercent", 25.0),
            ("gpu.0.powerWatts", 50.0),
            ("gpu.0.proc.7.memoryUsedBytes", 1_048_576.0),
            ("gpu.1.enforcedPowerLimitWatts", 80.0),
            ("gpu.1.powerPercent", 50.0),
            ("gpu.1.powerWatts", 40.0),
            ("gpu.1.temp", 41.0),
        ];
        assert_eq!(present_in(gpus(OWN)), expected.map(|(tag, value)| (tag.to_string(), value)));
    }

    #[test]
    fn text_that_is_cut_or_wrong_gives_nothing_new() {
        survives(gpus, OWN);
        assert_eq!(present_in(gpus("Failed to initialize NVML: Driver/library version mismatch\n")), []);
        assert_eq!(present_in(gpus("Unable to determine the device handle for GPU 0000:09:00.0: Unknown Error\n")), []);
    }

    #[test]
    fn recordings_give_the_lists_of_their_scenarios() {
        for name in recordings::scenarios() {
            let text = recordings::text(&format!("nvidia/nvidia-smi-q_{name}.txt"));
            let mut present = present_in(gpus(&text));
            // The list was made without the limit, which this driver prints one level deeper.
            if name.starts_with("rtx2080super_610") {
                let of = |end: &str| present.iter().find(|(tag, _)| tag.ends_with(end)).map(|(_, value)| *value);
                assert_eq!(of("enforcedPowerLimitWatts"), Some(250.0), "{name}");
                assert!(of("powerPercent").is_some(), "{name}");
                present.retain(|(tag, _)| {
                    !["enforcedPowerLimitWatts", "powerPercent"].iter().any(|end| tag.ends_with(end))
                });
            }
            recordings::check(&format!("nvidia_{name}"), &present);
            survives(gpus, &text);
        }
    }
}
