//! `gpu_metrics` 1.9: a list of attributes, each with its own type, unit and number of values. Values follow each other
//! without gaps.
//!
//! The numbers are those of `enum amdgpu_metrics_attr_id` and its siblings in the kernel's `kgd_pp_interface.h`; which
//! attributes there are, `smu_v13_0_6_ppt.h` tells.

/// Bytes of the header and of the number of attributes.
const BEGIN: usize = 8;
/// Maximum number of attributes: an attribute's number has ten bits.
const MAX_ATTRIBUTES: usize = 1 << 10;

/// Units, by the kernel's number.
const NONE: u64 = 0;
const CELSIUS: u64 = 2;
const WATTS: u64 = 3;
const TENTHS_OF_GT: u64 = 7;
const GIGABYTES: u64 = 8;
const KIB: u64 = 9;
const PERCENT: u64 = 10;

/// Number, name in the older tables, and unit of the attributes that are read.
const KNOWN_ATTRIBUTES: &[(u64, &str, u64)] = &[
    (0, "temperature_hotspot", CELSIUS),
    (1, "temperature_mem", CELSIUS),
    (3, "curr_socket_power", WATTS),
    (4, "average_gfx_activity", PERCENT),
    (5, "average_umc_activity", PERCENT),
    (7, "accelerator_energy", NONE),
    (9, "accumulation_counter", NONE),
    (10, "prochot_residency_acc", NONE),
    (11, "ppt_residency_acc", NONE),
    (12, "socket_thm_residency_acc", NONE),
    (13, "vr_thm_residency_acc", NONE),
    (14, "hbm_thm_residency_acc", NONE),
    (16, "pcie_link_width", NONE),
    (17, "pcie_link_speed", TENTHS_OF_GT),
    (23, "pcie_bandwidth_inst", GIGABYTES),
    (24, "pcie_l0_to_recov_count_acc", NONE),
    (25, "pcie_replay_count_acc", NONE),
    (29, "xgmi_read_data_acc", KIB),
    (30, "xgmi_write_data_acc", KIB),
    (31, "xgmi_link_status", NONE),
    (40, "gfx_busy_inst", PERCENT),
];

/// The width of a field in bytes, or a list of such fields at consecutive places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Two,
    Four,
    Eight,
}

impl Width {
    pub const fn bytes(self) -> usize {
        match self {
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }
}

/// An attribute that is read: where its values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MetricsAttribute {
    /// Its name in the older tables.
    pub name: &'static str,
    /// Offset of its first value.
    pub at: usize,
    pub width: Width,
    /// Number of its values.
    pub count: usize,
}

/// Finds the known attributes of a table. None if the table is cut or has bytes behind its last attribute. Attributes in
/// another unit than the known one, or with a sign, are left out.
pub(super) fn find(bytes: &[u8]) -> Option<Vec<MetricsAttribute>> {
    let number = |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes);
    let count = usize::try_from(number(4)?).ok().filter(|count| *count <= MAX_ATTRIBUTES)?;
    let (mut at, mut found) = (BEGIN, Vec::new());
    for _ in 0..count {
        let encoding = u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?);
        at += 8;
        let (unit, kind, id, values) =
            (encoding >> 24 & 0xff, encoding >> 20 & 0xf, encoding >> 10 & 0x3ff, (encoding & 0x3ff) as usize);
        // Unsigned and signed numbers take turns.
        let size = 1 << (kind / 2);
        let width = match kind {
            2 => Some(Width::Two),
            4 => Some(Width::Four),
            6 => Some(Width::Eight),
            0 | 1 | 3 | 5 | 7 => None,
            _ => return None,
        };
        let known = KNOWN_ATTRIBUTES.iter().find(|(known, _, own)| (*known, *own) == (id, unit));
        if let (Some(&(_, name, _)), Some(width)) = (known, width) {
            found.push(MetricsAttribute { name, at, width, count: values });
        }
        at = at.checked_add(size * values).filter(|end| *end <= bytes.len())?;
    }
    (at == bytes.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table of these attributes: unit, type, number, values.
    fn table(all: &[(u64, u64, u64, &[u64])]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 9];
        bytes.extend((all.len() as u32).to_le_bytes());
        for (unit, kind, id, values) in all {
            bytes.extend((unit << 24 | kind << 20 | id << 10 | values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| bytes.extend(&value.to_le_bytes()[..1 << (kind / 2)]));
        }
        bytes
    }

    #[test]
    fn attributes_are_found_behind_those_that_nobody_knows() {
        let bytes = table(&[
            (0, 6, 900, &[1, 2, 3]),
            (CELSIUS, 2, 0, &[64]),
            (PERCENT, 0, 901, &[7]),
            (PERCENT, 4, 40, &[90, 91]),
            (NONE, 2, 3, &[600]),
            (PERCENT, 3, 4, &[97]),
        ]);
        let found = find(&bytes).expect("a table");
        let names: Vec<_> = found.iter().map(|one| (one.name, one.count)).collect();
        assert_eq!(names, [("temperature_hotspot", 1), ("gfx_busy_inst", 2)], "power in no unit, and a signed share");
        assert_eq!(bytes[found[0].at], 64);
        assert!((0..bytes.len()).all(|n| find(&bytes[..n]).is_none()), "cut at every byte");
        assert!(find(&[&bytes[..], &[0]].concat()).is_none());
        assert!(find(&table(&[(0, 8, 0, &[])])).is_none(), "an unknown type has no known length");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = find(&bytes);
        }
    }
}
