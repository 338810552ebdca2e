//! Sentences and evidence: numbers with units as people read them.

use crate::host::Host;
use crate::signal::Family;
use crate::{Hosts, Source};
use shared::catalog::MetricDef;
use shared::finding::Evidence;
use shared::unit::Unit;

/// One device, by machine, family and number.
pub(crate) type At = (Source, Family, u32);

/// What a device of a family is called.
pub(crate) fn family(of: Family) -> &'static str {
    match of {
        Family::Gpu => "GPU",
        Family::Tpu => "TPU",
        Family::Neuron => "NeuronCore",
    }
}

/// A whole number with commas.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" { format!("-{text}") } else { text }
}

/// A number of things: `1 error`, `1,200 errors`.
pub(crate) fn number_of(value: f64, name: &str) -> String {
    let number = whole(value);
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {name}{plural}")
}

/// Others that wait: `1 other GPU has waited`, `7 other GPUs have waited`.
pub(crate) fn have_waited(others: usize) -> String {
    let has = if others == 1 { "has" } else { "have" };
    format!("{} {has} waited", number_of(others as f64, "other GPU"))
}

/// A value in its unit.
pub(crate) fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => format!("{} %", whole(value)),
        Unit::Bytes => bytes(value),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
        Unit::Count | Unit::State => whole(value),
        unit => format!("{} {}", whole(value), unit.symbol()),
    }
}

/// Bytes in the multiple that people read.
pub(crate) fn bytes(value: f64) -> String {
    let steps = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match steps.iter().find(|(step, _)| value >= *step) {
        Some((step, unit)) if value < 10.0 * step => format!("{:.1} {unit}", value / step),
        Some((step, unit)) => format!("{:.0} {unit}", value / step),
        None => format!("{value:.0} B"),
    }
}

/// Bytes of memory, which comes in powers of two.
pub(crate) fn gib(value: f64) -> String {
    let gib = value / f64::from(1 << 30);
    if gib < 100.0 { format!("{gib:.1}") } else { whole(gib) }
}

/// A time as people say it.
pub(crate) fn lasting(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{} s", whole(s)),
        s if s < 5400.0 => format!("{} min", whole(s / 60.0)),
        s => format!("{:.1} h", s / 3600.0),
    }
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

/// The first letter large.
pub(crate) fn begin(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// A condition that was measured.
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

/// Whether a value is off what it usually is by more than this share of it: what is not says nothing.
pub(crate) fn differs(value: f64, level: Option<f64>, strays: f64) -> bool {
    level.is_none_or(|level| (value - level).abs() > strays * level.abs())
}

/// A condition that is not measured here.
pub(crate) fn absent(host: &Host, row: &MetricDef, instance: impl ToString, what: &str) -> Evidence {
    evidence(host, row, instance, format!("{what} is not measured here"), (f64::NAN, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!((whole(1395.4).as_str(), whole(999.6).as_str(), whole(-0.2).as_str()), ("1,395", "1,000", "0"));
        assert_eq!((bytes(1.24e9).as_str(), bytes(76.1e9).as_str(), bytes(12.0).as_str()), ("1.2 GB", "76 GB", "12 B"));
        assert_eq!(
            (lasting(80.0).as_str(), lasting(240.0).as_str(), lasting(9000.0).as_str()),
            ("80 s", "4 min", "2.5 h")
        );
        assert_eq!(runs(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7, 8");
        assert_eq!(in_unit(21.4, Unit::Percent), "21 %");
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
