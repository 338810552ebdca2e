//! Power of the whole machine by its ACPI power meters.
//!
//! A server has one meter without a name, which its management controller reads. A Grace module has several, and names
//! them: `Module Power Socket 0` with its GPU, `CPU Power Socket 0` and others that are parts of these.

use crate::read::procfs::{HotFile, number, trim};
use crate::read::sysfs;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::power;
use std::path::PathBuf;

const MICROWATTS: f64 = 1e6;
/// More than any machine uses, W. A meter without a reading has all bits set.
const MAX_WATTS: f64 = 100_000.0;

/// Part of the machine that a meter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Machine,
    /// One of the modules that make up the machine.
    Module,
    Processor,
}

/// Opens the collector where there is a meter.
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let meters = meters(roots);
    if meters.is_empty() {
        let class = roots.sys.join("class/hwmon").display().to_string();
        return Err(OpenError::absent([class], "the machine has no ACPI power meter", ""));
    }
    let tried: Vec<String> = meters.iter().map(|(_, file)| file.path().display().to_string()).collect();
    Ok(Part::only(tried, Meters(meters)))
}

/// Whether a meter measures the whole machine.
pub(super) fn measures_machine(roots: &Roots) -> bool {
    meters(roots).iter().any(|(scope, _)| *scope != Scope::Processor)
}

/// All meters with a known scope. Kernels before 6.15 keep the files in the device's folder.
fn meters(roots: &Roots) -> Vec<(Scope, HotFile)> {
    let class = roots.sys.join("class/hwmon");
    let folders = |name: String| [class.join(&name), class.join(&name).join("device")];
    let meter = |dir: PathBuf| {
        sysfs::text(&dir.join("name")).filter(|name| name == "power_meter")?;
        let files = ["power1_average", "power1_input"].map(|file| dir.join(file));
        let file = files.into_iter().find(|file| file.exists())?;
        let named = sysfs::text(&dir.join("power1_oem_info")).unwrap_or_default();
        let scope = match () {
            () if named.starts_with("Module Power") => Scope::Module,
            () if named.starts_with("CPU Power") => Scope::Processor,
            () if named.contains("Power Socket") => return None,
            () => Scope::Machine,
        };
        Some((scope, HotFile::new(file)))
    };
    sysfs::names(&class).into_iter().filter_map(|name| folders(name).into_iter().find_map(meter)).collect()
}

struct Meters(Vec<(Scope, HotFile)>);

impl Collector for Meters {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let mut failed = None;
        let mut read: Vec<(Scope, Option<f64>)> = Vec::with_capacity(self.0.len());
        for (scope, file) in &mut self.0 {
            let microwatts = file.read().map(|text| number(trim(text)));
            let microwatts = microwatts.unwrap_or_else(|error| {
                failed = Some(format!("{}: {error}", file.path().display()));
                None
            });
            let watts = microwatts.map(|microwatts| microwatts as f64 / MICROWATTS);
            read.push((*scope, watts.filter(|watts| *watts > 0.0 && *watts <= MAX_WATTS)));
        }
        let of = |scope: Scope| read.iter().filter(move |(own, _)| *own == scope).map(|(_, watts)| *watts);
        // A sum of only some is too low.
        let sum = |scope: Scope| of(scope).sum::<Option<f64>>().filter(|_| of(scope).next().is_some());
        // Several meters without a name may measure parts of each other, so the largest counts.
        let machine = of(Scope::Machine).flatten().max_by(f64::total_cmp);
        out.put_rounded(&power::SYSTEM, (), sum(Scope::Module).or(machine));
        out.put_rounded(&power::CPU, (), sum(Scope::Processor));
        match failed {
            Some(reason) if read.iter().all(|(_, watts)| watts.is_none()) => Err(CollectError::failed(reason)),
            Some(reason) => Err(CollectError::partial(reason)),
            None => Ok(()),
        }
    }
}
