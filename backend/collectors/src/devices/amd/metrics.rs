//! `gpu_metrics`: the binary table of the card's controller, as the driver exposes it, in the known layouts.

use super::accelerator::{AcceleratorReading, Counters};
use super::attributes::{self, MetricsAttribute, Width};

use Width::{Eight, Four, Two};

type Field = (&'static str, usize, Width);

struct Layout {
    /// Format and content of the header.
    version: (u8, u8),
    size: usize,
    fields: &'static [Field],
    /// Offset of the first partition's values, and the distance to the next one's.
    partitions: Option<(usize, usize)>,
}

/// Links of an accelerator, partitions, and compute dies of a partition for which the tables have room.
const XGMI_LINKS: usize = 8;
const PARTITIONS: usize = 8;
const DIES: usize = 8;

/// Format and content of the table that is a list of attributes.
const OF_ATTRIBUTES: (u8, u8) = (1, 9);

/// Layouts of the kernel's `kgd_pp_interface.h`. Graphics cards have 1.3, accelerators 1.4 to 1.8, processors with
/// graphics 2.x and 3.0. Table 1.9 of accelerators has no layout: [`attributes`].
/// Each lists only the fields that are read, and those that verify the layout.
const LAYOUTS: &[Layout] = &[
    Layout {
        version: (1, 3),
        size: 120,
        fields: &[
            ("temperature_edge", 4, Two),
            ("temperature_hotspot", 6, Two),
            ("temperature_mem", 8, Two),
            ("average_gfx_activity", 16, Two),
            ("average_umc_activity", 18, Two),
            ("average_socket_power", 22, Two),
            ("system_clock_counter", 32, Eight),
            ("current_gfxclk", 54, Two),
            ("current_uclk", 58, Two),
            ("throttle_status", 68, Four),
            ("current_fan_speed", 72, Two),
            ("pcie_link_width", 74, Two),
        ],
        partitions: None,
    },
    Layout { version: (1, 4), size: 288, fields: &accelerator(24, 48, 64, 104), partitions: None },
    Layout { version: (1, 5), size: 360, fields: &accelerator(88, 112, 128, 176), partitions: None },
    Layout { version: (1, 6), size: 1664, fields: V1_6, partitions: Some((312, 168)) },
    Layout { version: (1, 7), size: 2208, fields: V1_7, partitions: Some((344, 232)) },
    Layout { version: (1, 8), size: 3872, fields: V1_7, partitions: Some((344, 440)) },
    Layout {
        version: (2, 1),
        size: 120,
        fields: &[
            ("temperature_gfx", 4, Two),
            ("temperature_soc", 6, Two),
            ("average_gfx_activity", 28, Two),
            ("system_clock_counter", 32, Eight),
            ("average_socket_power", 40, Two),
            ("average_gfx_power", 46, Two),
        ],
        partitions: None,
    },
    Layout {
        version: (3, 0),
        size: 264,
        fields: &[
            ("temperature_gfx", 4, Two),
            ("temperature_soc", 6, Two),
            ("temperature_skin", 40, Two),
            ("average_gfx_activity", 42, Two),
            ("average_vcn_activity", 44, Two),
        ],
        partitions: None,
    },
];

const V1_6: &[Field] = &residencies(accelerator(16, 60, 80, 128), 32, None, 306);
const V1_7: &[Field] = &residencies(accelerator(24, 68, 88, 136), 40, Some(264), 338);

/// Fields of all accelerators. Their layouts differ in the offsets of the energy counter, the PCIe link, its counters
/// and the XGMI counters.
const fn accelerator(energy: usize, link: usize, pcie: usize, xgmi: usize) -> [Field; 13] {
    [
        ("temperature_hotspot", 4, Two),
        ("temperature_mem", 6, Two),
        ("curr_socket_power", 10, Two),
        ("average_gfx_activity", 12, Two),
        ("average_umc_activity", 14, Two),
        ("accelerator_energy", energy, Eight),
        ("pcie_link_width", link, Two),
        ("pcie_link_speed", link + 2, Two),
        ("pcie_bandwidth_inst", pcie + 8, Eight),
        ("pcie_l0_to_recov_count_acc", pcie + 16, Eight),
        ("pcie_replay_count_acc", pcie + 24, Eight),
        ("xgmi_read_data_acc", xgmi, Eight),
        ("xgmi_write_data_acc", xgmi + 8 * XGMI_LINKS, Eight),
    ]
}

/// The same with the residencies that begin at an offset, the states of the links, and the number of partitions.
const fn residencies(of: [Field; 13], at: usize, states: Option<usize>, partitions: usize) -> [Field; 21] {
    let mut fields = [("", 0, Two); 21];
    let mut n = 0;
    while n < of.len() {
        fields[n] = of[n];
        n += 1;
    }
    fields[13] = ("accumulation_counter", at, Four);
    fields[14] = ("prochot_residency_acc", at + 4, Four);
    fields[15] = ("ppt_residency_acc", at + 8, Four);
    fields[16] = ("socket_thm_residency_acc", at + 12, Four);
    fields[17] = ("vr_thm_residency_acc", at + 16, Four);
    fields[18] = ("hbm_thm_residency_acc", at + 20, Four);
    fields[19] = ("num_partition", partitions, Two);
    if let Some(states) = states {
        fields[20] = ("xgmi_link_status", states, Two);
    }
    fields
}

/// Where the values of a table are.
enum Places {
    Fixed(&'static Layout),
    Listed(Vec<MetricsAttribute>),
}

/// A table of a known layout, or of attributes.
pub(crate) struct Metrics<'a> {
    version: (u8, u8),
    places: Places,
    bytes: &'a [u8],
}

impl<'a> Metrics<'a> {
    /// The table, if its header names a known layout and both its length and the header's size match that layout.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let &[low, high, format, content, ..] = bytes else { return None };
        let version = (format, content);
        let size = usize::from(u16::from_le_bytes([low, high]));
        if bytes.len() != size {
            return None;
        }
        let places = match version == OF_ATTRIBUTES {
            true => Places::Listed(attributes::find(bytes)?),
            false => {
                let same = |layout: &&Layout| layout.version == version && layout.size == size;
                Places::Fixed(LAYOUTS.iter().find(same)?)
            }
        };
        Some(Metrics { version, places, bytes })
    }

    /// A raw field; none if all bits are set, which marks an absent field.
    fn raw(&self, name: &str) -> Option<u64> {
        self.item(name, 0)
    }

    /// An item of a list, like [`Self::raw`].
    fn item(&self, name: &str, n: usize) -> Option<u64> {
        let (at, width) = match &self.places {
            Places::Fixed(layout) => {
                let &(_, at, width) = layout.fields.iter().find(|(field, ..)| *field == name)?;
                (at, width)
            }
            Places::Listed(all) => {
                let found = all.iter().find(|one| one.name == name && n < one.count)?;
                (found.at, found.width)
            }
        };
        self.at(at + n * width.bytes(), width)
    }

    fn at(&self, at: usize, width: Width) -> Option<u64> {
        let take = |n: usize| self.bytes.get(at..at + n);
        match width {
            Two => Some(u16::from_le_bytes(take(2)?.try_into().ok()?)).filter(|v| *v != u16::MAX).map(u64::from),
            Four => Some(u32::from_le_bytes(take(4)?.try_into().ok()?)).filter(|v| *v != u32::MAX).map(u64::from),
            Eight => Some(u64::from_le_bytes(take(8)?.try_into().ok()?)).filter(|v| *v != u64::MAX),
        }
    }

    fn first(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| self.raw(name)).map(|value| value as f64)
    }

    /// Utilization, percent. None for 2.x tables: their unit is hundredths on some processors and percent on others.
    pub fn utilization(&self) -> Option<f64> {
        self.first(&["average_gfx_activity"]).filter(|_| self.version.0 == 1)
    }

    /// Power of the whole package, watts. None for 2.x tables: their unit is milliwatts, or watts on old processors.
    pub fn power(&self) -> Option<f64> {
        self.first(&["average_socket_power", "curr_socket_power"]).filter(|_| self.version.0 == 1)
    }

    /// Temperature of the memory, else of the hottest place, else of the edge, degrees Celsius. A memory at exactly 0
    /// is skipped.
    pub fn temp(&self) -> Option<f64> {
        let memory = self.first(&["temperature_mem"]).filter(|degrees| *degrees != 0.0);
        let processor = || self.first(&["temperature_gfx"]).map(|hundredths| hundredths / 100.0);
        memory.or_else(|| self.first(&["temperature_hotspot", "temperature_edge"])).or_else(processor)
    }

    /// Energy in joules; accelerators only, because graphics cards use units of their own.
    pub fn energy(&self) -> Option<f64> {
        self.first(&["accelerator_energy"]).map(|units| units / f64::from(1 << 16))
    }

    /// Whether the table is that of an accelerator.
    pub fn is_of_accelerator(&self) -> bool {
        matches!(self.version, (1, 4..=9))
    }

    /// Counters whose growth is a value. The residencies are counted in the same steps as `cycles`.
    pub fn counters(&self) -> Counters {
        let list = |name: &str| std::array::from_fn(|n| self.item(name, n));
        Counters {
            cycles: self.raw("accumulation_counter"),
            held: [
                self.raw("ppt_residency_acc"),
                self.raw("socket_thm_residency_acc"),
                self.raw("hbm_thm_residency_acc"),
                self.raw("vr_thm_residency_acc"),
                self.raw("prochot_residency_acc"),
            ],
            read: list("xgmi_read_data_acc"),
            written: list("xgmi_write_data_acc"),
        }
    }

    /// Whether its numbers of XGMI links are those of the driver's file `xgmi_port_num`. Drivers with this table number
    /// them so; older tables come with either order.
    pub fn has_port_numbers(&self) -> bool {
        self.version == OF_ATTRIBUTES
    }

    /// Values of an accelerator's table beside its counters. `mode`: how the GPU is divided, as
    /// `current_compute_partition` names it. Tables that number the partitions themselves do not need it.
    pub fn accelerator(&self, mode: Option<&str>) -> AcceleratorReading {
        let states = || (0..XGMI_LINKS).filter_map(|n| self.item("xgmi_link_status", n));
        let is = |wanted: &[u64]| {
            let known = states().filter(|state| *state <= 1).count();
            (known > 0).then(|| states().filter(|state| wanted.contains(state)).count() as f64)
        };
        AcceleratorReading {
            // Tables that report no link have zeros here.
            pcie_width: self.first(&["pcie_link_width"]).filter(|lanes| *lanes > 0.0),
            pcie_speed: self.first(&["pcie_link_speed"]).filter(|tenths| *tenths > 0.0).map(|tenths| tenths / 10.0),
            pcie_bytes: self.first(&["pcie_bandwidth_inst"]).map(|gigabytes| gigabytes * 1e9),
            pcie_replays: self.first(&["pcie_replay_count_acc"]),
            pcie_recoveries: self.first(&["pcie_l0_to_recov_count_acc"]),
            links_active: is(&[1]),
            links: is(&[0, 1]),
            partitions: self.partitions(mode),
            ..AcceleratorReading::default()
        }
    }

    /// Utilization of each compute die, percent, by partition.
    fn partitions(&self, mode: Option<&str>) -> Vec<Vec<f64>> {
        let layout = match &self.places {
            Places::Fixed(layout) => layout,
            Places::Listed(_) => return divided(self.dies(), mode),
        };
        let Some((first, size)) = layout.partitions else { return Vec::new() };
        // An unknown number of partitions is no reason to take zeros behind them for dies at rest.
        let Some(count) = self.raw("num_partition") else { return Vec::new() };
        let count = PARTITIONS.min(count.max(1) as usize);
        let die = |partition: usize, n: usize| self.at(first + partition * size + n * Four.bytes(), Four);
        (0..count)
            // Some drivers mark an absent die with the narrow pattern.
            .map(|partition| (0..DIES).filter_map(move |n| die(partition, n)).filter(|busy| *busy <= 100))
            .map(|dies| dies.map(|busy| busy as f64).collect())
            .collect()
    }

    /// Utilization of each compute die of a list of attributes, percent. Dies that the GPU lacks have all bits set.
    fn dies(&self) -> Vec<Option<f64>> {
        let die = |n: usize| self.item("gfx_busy_inst", n).filter(|busy| *busy <= 100).map(|busy| busy as f64);
        (0..DIES).map(die).collect()
    }
}

/// The dies by partition. The driver gives each partition as many dies, in their order. Without a known mode the dies are
/// one partition, which is the whole GPU.
fn divided(dies: Vec<Option<f64>>, mode: Option<&str>) -> Vec<Vec<f64>> {
    let known = |dies: &[Option<f64>]| dies.iter().flatten().copied().collect::<Vec<f64>>();
    let here = known(&dies).len();
    let count = match mode {
        Some("DPX") => 2,
        Some("TPX") => 3,
        Some("QPX") => 4,
        Some("CPX") => here,
        _ => 1,
    };
    let is_even = here > 0 && here.is_multiple_of(count.max(1)) && dies[..here].iter().all(Option::is_some);
    match is_even {
        true => dies[..here].chunks(here / count).map(known).collect(),
        false => vec![known(&dies)].into_iter().filter(|dies| !dies.is_empty()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;
    use proptest::prelude::*;

    /// A table of a layout with these field values; all other fields are marked absent.
    fn table(version: (u8, u8), values: &[(&str, u64)]) -> Vec<u8> {
        let layout = LAYOUTS.iter().find(|layout| layout.version == version).unwrap();
        let mut bytes = vec![0xff; layout.size];
        bytes[..2].copy_from_slice(&(layout.size as u16).to_le_bytes());
        (bytes[2], bytes[3]) = version;
        for (name, value) in values {
            let &(_, at, width) = layout.fields.iter().find(|(field, ..)| field == name).unwrap();
            bytes[at..at + width.bytes()].copy_from_slice(&value.to_le_bytes()[..width.bytes()]);
        }
        bytes
    }

    #[test]
    fn an_accelerators_table_has_energy_in_joules() {
        for version in [(1, 4), (1, 5), (1, 6), (1, 7), (1, 8)] {
            let values = [("curr_socket_power", 131), ("temperature_mem", 34), ("accelerator_energy", 3 << 16)];
            let bytes = table(version, &values);
            let table = Metrics::from_bytes(&bytes).unwrap();
            assert_eq!((table.energy(), table.power(), table.temp()), (Some(3.0), Some(131.0), Some(34.0)));
            assert_eq!(table.utilization(), None, "all bits set are no value");
        }
        let bytes = table((1, 3), &[("temperature_mem", 0), ("temperature_hotspot", 61)]);
        let card = Metrics::from_bytes(&bytes).unwrap();
        assert_eq!((card.energy(), card.temp()), (None, Some(61.0)));
    }

    #[test]
    fn a_table_of_another_length_or_layout_is_no_table() {
        let bytes = table((1, 3), &[("average_gfx_activity", 50)]);
        assert!(Metrics::from_bytes(&bytes).is_some());
        assert!((0..bytes.len()).all(|n| Metrics::from_bytes(&bytes[..n]).is_none()), "cut at every byte");
        let longer = [&bytes[..], &[0]].concat();
        assert!(Metrics::from_bytes(&longer).is_none());
        for (at, value) in [(0, 121), (2, 9), (3, 99)] {
            let mut other = bytes.clone();
            other[at] = value;
            assert!(Metrics::from_bytes(&other).is_none(), "{at}");
        }
    }

    #[test]
    fn recorded_tables_decode_to_their_facts() {
        for card in ["rx6900xt", "rx7800xt", "rx9070", "phoenix", "strixpoint"] {
            let text = recordings::text(&format!("expected/amd_sysfs_{card}.json"));
            let list: serde_json::Value = serde_json::from_str(&text).unwrap();
            let recording = recordings::text(&format!("amd/sysfs_{card}.json"));
            let recording: serde_json::Value = serde_json::from_str(&recording).unwrap();
            let hex = recording["hex"].as_object().unwrap().values().next().unwrap().as_str().unwrap();
            let bytes = hex::decode(hex).expect("hexadecimal digits");
            let table = Metrics::from_bytes(&bytes).unwrap_or_else(|| panic!("{card}: unknown layout"));
            let mut compared = 0;
            let Places::Fixed(layout) = &table.places else { panic!("{card}: a list of attributes") };
            for (name, ..) in layout.fields {
                let fact = list["gpu_metrics"][name].as_u64().filter(|value| *value != 0xffff);
                assert_eq!(table.raw(name), fact, "{card}: {name}");
                compared += usize::from(fact.is_some());
            }
            assert!(compared >= 4, "{card}: only {compared} fields were compared");
        }
    }

    #[test]
    fn dies_are_divided_as_the_driver_divides_them() {
        let busy: Vec<Option<f64>> = (0..8).map(|n| Some(f64::from(n))).collect();
        let sizes = |dies: &[Option<f64>], mode| divided(dies.to_vec(), mode).iter().map(Vec::len).collect::<Vec<_>>();
        for (mode, expected) in [
            (Some("SPX"), vec![8]),
            (Some("DPX"), vec![4; 2]),
            (Some("QPX"), vec![2; 4]),
            (Some("CPX"), vec![1; 8]),
            (Some("TPX"), vec![8]),
            (Some("other"), vec![8]),
            (None, vec![8]),
        ] {
            assert_eq!(sizes(&busy, mode), expected, "{mode:?}");
        }
        assert_eq!(divided(busy, Some("DPX"))[1], [4.0, 5.0, 6.0, 7.0]);
        let six: Vec<Option<f64>> = (0..8).map(|n| (n < 6).then_some(1.0)).collect();
        assert_eq!(sizes(&six, Some("TPX")), [2; 3], "an MI300A has six dies");
        let gap: Vec<Option<f64>> = (0..8).map(|n| (n != 2).then_some(1.0)).collect();
        assert_eq!(sizes(&gap, Some("CPX")), [7], "which die is absent is unknown, so the partitions are, too");
        assert_eq!(sizes(&[None; 8], Some("CPX")), [0_usize; 0]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, version in 0..LAYOUTS.len()) {
            let mut bytes = bytes;
            let layout = &LAYOUTS[version];
            bytes.resize(layout.size, 7);
            bytes[..2].copy_from_slice(&(layout.size as u16).to_le_bytes());
            (bytes[2], bytes[3]) = layout.version;
            let table = Metrics::from_bytes(&bytes).unwrap();
            let _ = (table.utilization(), table.power(), table.temp(), table.energy());
            let _ = (table.accelerator(Some("CPX")), table.counters());
        }
    }
}
