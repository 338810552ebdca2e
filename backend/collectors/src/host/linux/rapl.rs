//! Power of processors and memory by RAPL, the energy counters of x86 processors.
//!
//! The kernel lists their domains flat: `intel-rapl:0` is a package, `intel-rapl:0:1` a part of it. AMD's processors have
//! the same names. The memory-mapped twin `intel-rapl-mmio` counts a package a second time and is left out.

use super::power_meter;
use crate::read::procfs::{HotFile, number, trim};
use crate::read::sysfs;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::power;
use std::path::Path;
use std::time::Duration;

const MICROJOULES: f64 = 1e6;
/// More than any package uses, W. A counter that could have wrapped twice at this power is not compared.
const MAX_WATTS: f64 = 2000.0;
/// The kernel lets only root read the counters: a fine clock of power tells much about other users' work.
const REMEDY: &str = "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj (until the next start; every local user \
    may read them then)";

/// Part of the machine that a domain counts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CountedPart {
    /// A package, by its name without prefix: `0`, or `0-die-1`.
    Package(String),
    Memory,
    /// The whole machine.
    Platform,
}

struct Domain {
    place: CountedPart,
    counter: HotFile,
    /// Value after which the counter starts at zero again, µJ.
    range: u64,
    before: Option<(Duration, u64)>,
}

/// Opens the collector where a counter may be read.
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let class = roots.sys.join("class/powercap");
    let mut found = domains(&class);
    let tried: Vec<String> = found.iter().map(|domain| domain.counter.path().display().to_string()).collect();
    if found.is_empty() {
        return Err(OpenError::absent([class.display().to_string()], "the processor has no energy counters", ""));
    }
    let denied =
        |domain: &mut Domain| domain.counter.read().is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied);
    if found.iter_mut().all(denied) {
        // That is the kernel's default and no fault of this machine.
        return Err(OpenError::absent(tried, "only root may read the processor's energy counters", REMEDY));
    }
    // A meter measures the whole machine, psys only what the board's maker connected.
    if power_meter::measures_machine(roots) {
        found.retain(|domain| domain.place != CountedPart::Platform);
    }
    Ok(Part::only(tried, Rapl(found)))
}

/// Domains of packages, of their memory and of the whole machine, in the order of their numbers.
fn domains(class: &Path) -> Vec<Domain> {
    let names = sysfs::names(class).into_iter().filter(|name| name.starts_with("intel-rapl:"));
    let domain = |name: String| {
        let dir = class.join(name);
        let kind = sysfs::text(&dir.join("name"))?;
        let place = match kind.strip_prefix("package-") {
            Some(package) => CountedPart::Package(package.to_string()),
            None if kind == "dram" => CountedPart::Memory,
            None if kind == "psys" => CountedPart::Platform,
            None => return None,
        };
        let range = sysfs::text(&dir.join("max_energy_range_uj"))?.parse().ok()?;
        Some(Domain { place, counter: HotFile::new(dir.join("energy_uj")), range, before: None })
    };
    names.filter_map(domain).collect()
}

struct Rapl(Vec<Domain>);

impl Collector for Rapl {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let at = out.at();
        let (mut packages, mut memory, mut platform, mut failed) = (Some(0.0), Some(0.0), None, None);
        let add = |sum: &mut Option<f64>, watts: Option<f64>| *sum = sum.zip(watts).map(|(sum, watts)| sum + watts);
        for domain in &mut self.0 {
            let watts = domain.watts(at).unwrap_or_else(|error| {
                failed = Some(format!("{}: {error}", domain.counter.path().display()));
                None
            });
            match &domain.place {
                CountedPart::Package(package) => {
                    add(&mut packages, watts);
                    out.put_rounded(&power::PACKAGE, package.as_str(), watts);
                }
                CountedPart::Memory => add(&mut memory, watts),
                CountedPart::Platform => platform = watts,
            }
        }
        // A machine uses what its processors use and more. Where the board measures nothing, the counter says less.
        let platform = platform.filter(|watts| packages.is_none_or(|packages| *watts >= packages));
        out.put_rounded(&power::SYSTEM, (), platform);
        let has = |place: fn(&CountedPart) -> bool| self.0.iter().any(|domain| place(&domain.place));
        // The sum is that of all packages or none.
        out.put_rounded(&power::CPU, (), packages.filter(|_| has(|place| matches!(place, CountedPart::Package(_)))));
        out.put_rounded(&power::MEMORY, (), memory.filter(|_| has(|place| *place == CountedPart::Memory)));
        match failed {
            Some(reason) => Err(CollectError::partial(reason)),
            None => Ok(()),
        }
    }
}

impl Domain {
    /// Mean power since the previous reading, W; none at the first one, where the counter may have wrapped twice, and
    /// where it stays at 0: many boards have domains that count nothing.
    ///
    /// # Errors
    /// The counter cannot be read.
    fn watts(&mut self, at: Duration) -> std::io::Result<Option<f64>> {
        let no_number = || std::io::Error::new(std::io::ErrorKind::InvalidData, "not a number");
        let now = number(trim(self.counter.read()?)).ok_or_else(no_number)?;
        let before = self.before.replace((at, now));
        Ok(before.and_then(|(then, before)| {
            let seconds = at.checked_sub(then)?.as_secs_f64();
            let used = now.checked_sub(before).or_else(|| (now + self.range).checked_sub(before))? as f64 / MICROJOULES;
            let counts = now > 0 || before > 0;
            let is_sure = counts && seconds > 0.0 && seconds * MAX_WATTS < self.range as f64 / MICROJOULES;
            Some(used / seconds).filter(|watts| is_sure && *watts <= MAX_WATTS)
        }))
    }
}
