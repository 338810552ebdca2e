//! Sentences and evidence: numbers with units for people.

use crate::host::Host;
use crate::signal::Family;
use crate::{Hosts, Source};
use shared::catalog::MetricDef;
use shared::finding::Evidence;
use shared::unit::{self, Unit};

/// One device, by machine, family and number.
pub(crate) type At = (Source, Family, u32);

/// Name of a device of a family.
pub(crate) fn family(of: Family) -> &'static str {
    match of {
        Family::Gpu => "GPU",
        Family::Tpu => "TPU",
        Family::Neuron => "NeuronCore",
    }
}

/// A whole number with commas.
pub(crate) fn whole(value: f64) -> String {
    match unit::grouped(value, 0) {
        zero if zero == "-0" => "0".into(),
        text => text,
    }
}

/// A number of things: `1 error`, `1,200 errors`.
pub(crate) fn number_of(value: f64, name: &str) -> String {
    let number = whole(value);
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {name}{plural}")
}

/// Others that wait: `1 other GPU has been waiting`, `7 other GPUs have been waiting`.
pub(crate) fn have_waited(others: usize) -> String {
    let has = if others == 1 { "has" } else { "have" };
    format!("{} {has} been waiting", number_of(others as f64, "other GPU"))
}

/// A value in its unit, as charts format sizes and rates.
pub(crate) fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => format!("{} %", whole(value)),
        Unit::Bytes | Unit::Mebibytes | Unit::Gibibytes | Unit::BytesPerSecond => unit::text(value, unit),
        Unit::Count | Unit::State => whole(value),
        unit => format!("{} {}", whole(value), unit.symbol()),
    }
}

/// Bytes a second: `1.24 GB/s`.
pub(crate) fn rate(value: f64) -> String {
    unit::text(value, Unit::BytesPerSecond)
}

/// Bytes of memory: `12.3 GiB`.
pub(crate) fn size(value: f64) -> String {
    unit::text(value, Unit::Bytes)
}

/// Bytes of memory, with their total: `12.3 of 15.9 GiB`.
pub(crate) fn size_of(part: f64, whole: f64) -> String {
    unit::part_of(part, whole, Unit::Bytes)
}

/// A rounded duration, from seconds.
pub(crate) fn lasting(seconds: f64) -> String {
    unit::rough_duration((seconds * 1_000.0) as i64)
}

/// Numbers with runs joined: `0-3, 5`.
pub(crate) fn runs(numbers: &[u32]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < numbers.len() {
        let mut end = at;
        while end + 1 < numbers.len() && numbers[end + 1] == numbers[end] + 1 {
            end += 1;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        match end - at {
            0 => text.push_str(&numbers[at].to_string()),
            1 => text.push_str(&format!("{}, {}", numbers[at], numbers[end])),
            _ => text.push_str(&format!("{}-{}", numbers[at], numbers[end])),
        }
        at = end + 1;
    }
    text
}

/// The name of a machine where several are known: ` of node-7`.
pub(crate) fn of_host(hosts: &Hosts, source: Source) -> String {
    match hosts.get(&source) {
        Some(host) if hosts.len() > 1 => format!(" of {}", host.name),
        _ => String::new(),
    }
}

/// The machine as a subject: its name, or `This machine` where there is one only.
pub(crate) fn host(hosts: &Hosts, source: Source) -> String {
    match hosts.get(&source) {
        Some(host) if hosts.len() > 1 => host.name.clone(),
        _ => "This machine".into(),
    }
}

/// Devices as a subject: `GPU 3`, `GPUs 0-3 of node-7`, `63 GPUs on 8 hosts`.
pub(crate) fn devices(hosts: &Hosts, of: &[At]) -> String {
    let Some(&(source, kind, index)) = of.first() else { return "Nothing".into() };
    let name = family(kind);
    if of.len() == 1 {
        return format!("{name} {index}{}", of_host(hosts, source));
    }
    if of.iter().all(|(s, ..)| *s == source) {
        let mut numbers: Vec<u32> = of.iter().map(|(.., index)| *index).collect();
        numbers.sort_unstable();
        return format!("{name}s {}{}", runs(&numbers), of_host(hosts, source));
    }
    let mut machines: Vec<Source> = of.iter().map(|(s, ..)| *s).collect();
    machines.sort_unstable();
    machines.dedup();
    format!("{} {name}s on {} hosts", of.len(), machines.len())
}

/// All devices of a group as a subject: `All 8 GPUs`.
pub(crate) fn all(hosts: &Hosts, of: &[At]) -> String {
    let Some(&(source, kind, _)) = of.first() else { return "Nothing".into() };
    let name = family(kind);
    let mut machines: Vec<Source> = of.iter().map(|(s, ..)| *s).collect();
    machines.sort_unstable();
    machines.dedup();
    match (of.len(), machines.len()) {
        (1, _) => devices(hosts, of),
        (2, 1) => format!("Both {name}s{}", of_host(hosts, source)),
        (n, 1) => format!("All {n} {name}s{}", of_host(hosts, source)),
        (n, m) => format!("All {n} {name}s on {m} hosts"),
    }
}

/// Capitalizes the first letter.
pub(crate) fn begin(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// A measured condition.
pub(crate) fn evidence(
    host: &Host,
    row: &MetricDef,
    instance: impl ToString,
    words: String,
    (value, level): (f64, Option<f64>),
) -> Evidence {
    Evidence {
        tag: row.tag.into(),
        source: host.name.clone(),
        instance: instance.to_string(),
        words,
        value: value.is_finite().then(|| (value * 1000.0).round() / 1000.0),
        level: level.filter(|level| level.is_finite()).map(|level| (level * 1000.0).round() / 1000.0),
        from: 0,
        to: 0,
    }
}

/// Whether a value deviates from its usual one by more than this share. True without a usual value.
pub(crate) fn differs(value: f64, level: Option<f64>, strays: f64) -> bool {
    level.is_none_or(|level| (value - level).abs() > strays * level.abs())
}

/// A condition that is not measured here.
pub(crate) fn absent(host: &Host, row: &MetricDef, instance: impl ToString, what: &str) -> Evidence {
    evidence(host, row, instance, format!("{what} is not measured"), (f64::NAN, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!((whole(1395.4).as_str(), whole(999.6).as_str(), whole(-0.2).as_str()), ("1,395", "1,000", "0"));
        assert_eq!([rate(1.24e9), rate(76.1e9), rate(12.0)], ["1.24 GB/s", "76.1 GB/s", "12 B/s"]);
        assert_eq!(size_of(79.7 * f64::from(1 << 30), 80.0 * f64::from(1 << 30)), "79.7 of 80 GiB");
        assert_eq!([80.0, 240.0, 9_000.0].map(lasting), ["1 min 20 s", "4 min", "2 h 30 min"]);
        assert_eq!(runs(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7, 8");
        assert_eq!(in_unit(21.4, Unit::Percent), "21 %");
        assert_eq!(in_unit(1.5 * f64::from(1 << 30), Unit::Bytes), "1.5 GiB", "as its chart has it");
        assert_eq!(begin("all 8"), "All 8");
    }

    #[test]
    fn a_machine_is_named_only_among_several() {
        let mut hosts = Hosts::new();
        hosts.insert(1, Host::new("node-1", 1000));
        let gpus = [(1, Family::Gpu, 0), (1, Family::Gpu, 1), (1, Family::Gpu, 2)];
        assert_eq!(devices(&hosts, &gpus), "GPUs 0-2");
        assert_eq!(all(&hosts, &gpus), "All 3 GPUs");
        hosts.insert(2, Host::new("node-2", 1000));
        assert_eq!(devices(&hosts, &gpus[..1]), "GPU 0 of node-1");
        assert_eq!(all(&hosts, &[(1, Family::Gpu, 0), (2, Family::Gpu, 0)]), "All 2 GPUs on 2 hosts");
    }
}
