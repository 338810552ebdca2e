//! `nvidia-smi --query-gpu=... --format=csv`: one line per GPU, for tools whose `-q` fails. Columns are found by name,
//! and units are in the cells. Processes and MIG devices are not included.

use super::SmiGpu;

/// Arguments of the tool: fields that every driver of the last ten years supports, because one unknown field fails the
/// whole query.
pub(in super::super) const ARGS: &[&str] = &[
    "--query-gpu=uuid,pci.bus_id,pstate,persistence_mode,pcie.link.gen.current,pcie.link.width.current,fan.speed,memory.total,memory.used,\
     utilization.gpu,utilization.memory,ecc.errors.corrected.volatile.device_memory,\
     ecc.errors.uncorrected.volatile.device_memory,temperature.gpu,temperature.memory,power.draw,\
     enforced.power.limit,clocks.current.graphics,clocks.current.sm,clocks.current.memory",
    "--format=csv",
];

/// Columns, and the document's names for them.
const NAMES: &[(&str, &[&str], &str)] = &[
    ("uuid", &[], "uuid"),
    ("pci.bus_id", &["pci"], "pci_bus_id"),
    ("pstate", &[], "performance_state"),
    ("persistence_mode", &[], "persistence_mode"),
    ("pcie.link.gen.current", &["pci", "pci_gpu_link_info", "pcie_gen"], "current_link_gen"),
    ("fan.speed", &[], "fan_speed"),
    ("memory.total [MiB]", &["fb_memory_usage"], "total"),
    ("memory.used [MiB]", &["fb_memory_usage"], "used"),
    ("utilization.gpu", &["utilization"], "gpu_util"),
    ("utilization.memory", &["utilization"], "memory_util"),
    ("utilization.encoder", &["utilization"], "encoder_util"),
    ("utilization.decoder", &["utilization"], "decoder_util"),
    ("ecc.errors.corrected.volatile.device_memory", &["ecc_errors", "volatile"], "dram_correctable"),
    ("ecc.errors.uncorrected.volatile.device_memory", &["ecc_errors", "volatile"], "dram_uncorrectable"),
    ("power.draw", &["power_readings"], "power_draw"),
    ("power.draw.average", &["power_readings"], "average_power_draw"),
    ("power.draw.instant", &["power_readings"], "instant_power_draw"),
    ("gpu_recovery_action", &[], "gpu_recovery_action"),
    ("enforced.power.limit", &["power_readings"], "enforced_power_limit"),
    ("clocks.current.graphics", &["clocks"], "graphics_clock"),
    ("clocks.current.sm", &["clocks"], "sm_clock"),
    ("clocks.current.memory", &["clocks"], "mem_clock"),
];

/// Columns whose cells lack the document's unit, and that unit.
const BARE: &[(&str, &[&str], &str, &str)] = &[
    ("temperature.gpu", &["temperature"], "gpu_temp", "C"),
    ("temperature.memory", &["temperature"], "memory_temp", "C"),
    ("pcie.link.width.current", &["pci", "pci_gpu_link_info", "link_widths"], "current_link_width", "x"),
];

/// Maximum number of GPUs of a machine; further lines are ignored.
const MAX_GPUS: usize = 64;

/// Replacements of columns that a tool does not support.
const INSTEAD: &[(&str, &str)] = &[("power.draw", "power.draw.average"), ("power.draw.average", "power.draw.instant")];

/// The arguments without the columns that the tool does not support.
pub(super) fn without(args: &[&str], refused: &[String]) -> Vec<String> {
    let is_refused = |column: &str| refused.iter().any(|one| one == column);
    let known = |column: &str| {
        let mut column = column;
        while is_refused(column) {
            column = INSTEAD.iter().find(|(old, _)| *old == column)?.1;
        }
        Some(column.to_string())
    };
    let query = |arg: &&str| match arg.strip_prefix("--query-gpu=") {
        Some(columns) => {
            let columns: Vec<String> = columns.split(',').filter_map(|column| known(column.trim())).collect();
            format!("--query-gpu={}", columns.join(","))
        }
        None => arg.to_string(),
    };
    args.iter().map(query).collect()
}

/// The column in a tool's error message: `Field "power.draw" is not a valid field to query.`
pub(super) fn refused(text: &str) -> Option<String> {
    let of =
        |line: &str| Some(line.trim().strip_prefix("Field \"")?.split_once("\" is not a valid field")?.0.to_string());
    let asked = |column: &String| {
        ARGS.iter().any(|arg| arg.split([',', '=']).any(|one| one.trim() == column))
            || INSTEAD.iter().any(|(_, new)| new == column)
    };
    text.lines().find_map(of).filter(asked)
}

/// All GPUs with complete lines: terminated, and with as many cells as the header.
pub(super) fn gpus(text: &str) -> Vec<SmiGpu> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::trim);
    let Some(header) = lines.find(|line| line.split(", ").any(|column| column == "uuid")) else { return Vec::new() };
    let columns: Vec<&str> = header.split(", ").map(bare).collect();
    let rows = lines.map(|line| line.split(", ").map(str::trim).collect::<Vec<_>>());
    // Messages about a GPU that the tool cannot read may stand between lines.
    rows.filter(|cells| cells.len() == columns.len()).take(MAX_GPUS).map(|cells| gpu(&columns, &cells)).collect()
}

/// A column without its unit: the name before ` [MiB]`.
fn bare(column: &str) -> &str {
    column.split(' ').next().unwrap_or("")
}

fn gpu(columns: &[&str], cells: &[&str]) -> SmiGpu {
    let mut gpu = SmiGpu::default();
    for (column, cell) in columns.iter().zip(cells) {
        if let Some((_, inside, name)) = NAMES.iter().find(|(known, ..)| bare(known) == *column) {
            gpu.value(inside, name, cell);
        } else if let Some((_, inside, name, unit)) = BARE.iter().find(|(known, ..)| known == column) {
            match cell.parse::<f64>() {
                Ok(_) => gpu.value(inside, name, &format!("{cell}{unit}")),
                Err(_) => gpu.value(inside, name, cell),
            }
        }
    }
    gpu.with_mean_power().whole()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{present_in, survives};
    use super::*;
    use crate::recordings;

    const OWN: &str = "\
uuid, pcie.link.width.current, fan.speed [%], memory.total [MiB], memory.used [MiB], temperature.gpu, power.draw [W], enforced.power.limit [W], utilization.gpu [%]
GPU-a, 8, [N/A], 1000 MiB, 250 MiB, 41, 50.00 W, 200.00 W, [N/A]
GPU-b, 16, 33 %, 1000 MiB, 0 MiB, [N/A], [N/A], 200.00 W, 7 %
";

    #[test]
    fn columns_are_found_by_name() {
        let expected = [
            ("gpu.0.enforcedPowerLimitWatts", 200.0),
            ("gpu.0.memoryAllocated", 25.0),
            ("gpu.0.memoryAllocatedBytes", 262_144_000.0),
            ("gpu.0.memoryTotalBytes", 1_048_576_000.0),
            ("gpu.0.pcieLinkWidth", 8.0),
            ("gpu.0.powerPercent", 25.0),
            ("gpu.0.powerWatts", 50.0),
            ("gpu.0.temp", 41.0),
            ("gpu.1.fanSpeed", 33.0),
            ("gpu.1.gpu", 7.0),
            ("gpu.1.memoryAllocated", 0.0),
            ("gpu.1.memoryAllocatedBytes", 0.0),
            ("gpu.1.memoryTotalBytes", 1_048_576_000.0),
            ("gpu.1.pcieLinkWidth", 16.0),
        ];
        assert_eq!(present_in(gpus(OWN)), expected.map(|(tag, value)| (tag.to_string(), value)));
        assert_eq!(gpus(OWN)[1].uuid.as_deref(), Some("GPU-b"));
    }

    #[test]
    fn lines_that_are_cut_or_wrong_give_nothing_new() {
        survives(gpus, OWN);
        assert_eq!(present_in(gpus("Field \"power.draw\" is not a valid field to query.\n\n")), []);
        assert_eq!(present_in(gpus("uuid, temperature.gpu\nGPU-a, 41, 42\n")), []);
    }

    /// The tables were printed just after the texts of the lists, so they have the same tags and nearly the same
    /// values. Processes and MIG devices need other queries.
    #[test]
    fn recordings_give_the_tags_of_their_lists() {
        for machine in [
            "h100-sxm-mig_590.48.01",
            "h100-sxm_590.48.01",
            "h200-mig_590.48.01",
            "h200_590.48.01",
            "l40s_595.80",
            "rtx2080super-wddm_591.86",
            "rtx2080super_610.57.04",
        ] {
            let text = recordings::text(&format!("nvidia/nvidia-smi-csv_{machine}.txt"));
            for mode in ["idle", "load"] {
                let (_, table) = text.split_once(&format!("### {mode} :: query-gpu")).expect("a section");
                let table = table.split("\n###").next().expect("its text");
                let read = present_in(gpus(table));
                let list = recordings::expected(&format!("nvidia_{machine}_{mode}"));
                for (tag, wanted) in list.iter().filter(|(tag, _)| !tag.contains(".proc.") && !tag.contains(".mig.")) {
                    let near = |value: f64| (value - wanted).abs() <= 0.02 * wanted.abs().max(100.0);
                    // Power and clocks of this machine had risen.
                    let moved = mode == "idle" && ["power", "Clock"].iter().any(|part| tag.contains(part));
                    let found = read.iter().find(|(read, _)| read == tag);
                    assert!(found.is_some_and(|(_, value)| moved || near(*value)), "{machine} {mode}: {tag} {found:?}");
                }
                // The text of this driver lacks the limit; the table has it.
                let told = ["memoryTotalBytes", "enforcedPowerLimitWatts", "powerPercent"];
                let ours = ["performanceState", "persistenceMode", "recoveryAction"];
                let beyond: Vec<&str> = told.into_iter().chain(ours).collect();
                for (tag, value) in &read {
                    let known = list.contains_key(tag) || beyond.iter().any(|end| tag.ends_with(end));
                    assert!(known, "{machine} {mode}: {tag} = {value} is not in the list");
                }
                survives(gpus, table);
            }
        }
    }
}
