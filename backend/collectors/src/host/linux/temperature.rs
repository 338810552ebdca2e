//! The processor's temperature from its sensors: a part of the `cpu` collector on Linux.

use crate::read::procfs::{HotFile, trim};
use crate::read::sysfs;
use crate::{CollectError, Collector, Out, Part, Roots};
use shared::catalog::cpu;
use std::path::Path;

/// Kinds of sensors by how well they represent the processor, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Package,
    Control,
    Core,
    Zone,
}

pub(crate) struct Temperature {
    /// Best first.
    sensors: Vec<(Rank, HotFile)>,
}

impl Temperature {
    /// The part, if the machine has a sensor of its processor.
    pub fn part(roots: &Roots) -> Option<Part> {
        let mut sensors = hwmon(&roots.sys.join("class/hwmon"));
        sensors.extend(zones(&roots.sys.join("class/thermal")));
        sensors.sort_by_key(|(rank, _)| *rank);
        let tried = sensors.iter().map(|(_, file)| file.path().display().to_string()).collect();
        let collector = Box::new(Temperature { sensors });
        (!collector.sensors.is_empty()).then(|| Part { name: "temperature".into(), tried, collector })
    }
}

impl Collector for Temperature {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        for of_rank in self.sensors.chunk_by_mut(|a, b| a.0 == b.0) {
            let (mut sum, mut count) = (0.0, 0.0);
            for celsius in of_rank.iter_mut().filter_map(|(_, file)| parse(file.read().ok()?)) {
                sum += celsius;
                count += 1.0;
            }
            if count > 0.0 {
                out.put_rounded(&cpu::TEMPERATURE, (), sum / count);
                return Ok(());
            }
        }
        Err(CollectError::failed("no sensor of the processor gives a temperature between 0 and 150 °C"))
    }
}

/// Parses thousandths of a degree; drops values that no running processor has.
fn parse(text: &[u8]) -> Option<f64> {
    let thousandths: i64 = std::str::from_utf8(trim(text)).ok()?.parse().ok()?;
    let celsius = thousandths as f64 / 1000.0;
    (celsius > 0.0 && celsius <= 150.0).then_some(celsius)
}

fn hwmon(dir: &Path) -> Vec<(Rank, HotFile)> {
    let mut found = Vec::new();
    for chip in sysfs::names(dir) {
        let chip = dir.join(chip);
        let Some(name) = sysfs::text(&chip.join("name")) else { continue };
        for file in sysfs::names(&chip) {
            let Some(sensor) = file.strip_prefix("temp").and_then(|rest| rest.strip_suffix("_input")) else { continue };
            let label = sysfs::text(&chip.join(format!("temp{sensor}_label"))).unwrap_or_default();
            found.extend(rank(&name, &label).map(|rank| (rank, HotFile::new(chip.join(file)))));
        }
    }
    found
}

fn rank(chip: &str, label: &str) -> Option<Rank> {
    match chip {
        "coretemp" if label.starts_with("Package id") => Some(Rank::Package),
        "coretemp" if label.starts_with("Core") => Some(Rank::Core),
        "k10temp" | "zenpower" if label == "Tdie" => Some(Rank::Package),
        "k10temp" | "zenpower" if label == "Tctl" => Some(Rank::Control),
        "k10temp" | "zenpower" if label.starts_with("Tccd") => Some(Rank::Core),
        // Chips before family 17h have one sensor, without a label.
        "k10temp" if label.is_empty() => Some(Rank::Control),
        _ => None,
    }
}

fn zones(dir: &Path) -> Vec<(Rank, HotFile)> {
    let is_processor =
        |kind: &str| ["cpu_thermal", "cpu-thermal", "x86_pkg_temp", "soc_thermal"].iter().any(|k| kind.starts_with(k));
    sysfs::names(dir)
        .into_iter()
        .filter(|zone| zone.starts_with("thermal_zone"))
        .map(|zone| dir.join(zone))
        .filter(|zone| sysfs::text(&zone.join("type")).is_some_and(|kind| is_processor(&kind)))
        .map(|zone| (Rank::Zone, HotFile::new(zone.join("temp"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_no_processor_has_are_dropped() {
        for (text, celsius) in
            [("45000\n", Some(45.0)), ("0", None), ("-5000", None), ("150001", None), ("x", None), ("", None)]
        {
            assert_eq!(parse(text.as_bytes()), celsius, "{text}");
        }
    }

    #[test]
    fn package_sensors_come_before_control_and_cores() {
        assert_eq!(rank("coretemp", "Package id 0"), Some(Rank::Package));
        assert_eq!(rank("k10temp", "Tctl"), Some(Rank::Control));
        assert_eq!(rank("k10temp", "Tccd1"), Some(Rank::Core));
        assert_eq!(rank("nvme", "Composite"), None);
    }
}
