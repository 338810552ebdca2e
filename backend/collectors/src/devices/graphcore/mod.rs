//! Graphcore IPUs through the vendor's tools: `gc-inventory -j` for all devices at once, or `gc-info` device by device.
//!
//! W&B's tags are the tools' keys. W&B sends constant numbers (sizes, slots, link speeds) once. Here all are put at
//! each reading, so that none becomes stale.

mod attributes;

use self::attributes::{Device, IpuAttribute};
use crate::host::process::Watched;
use crate::read::exec::{self, RunLimits};
use crate::read::pids::Pids;
use crate::{CollectError, Collector, OpenError, OptionRow, Options, Out, Part, Roots};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

const INVENTORY: &str = "gc-inventory";
const INFO: &str = "gc-info";
/// Usual link targets of a Poplar installation.
const DIRS: &[&str] = &["/opt/poplar/bin", "/opt/graphcore/bin"];
const REMEDY: &str = "install Graphcore's command line tools, or set command under [collectors.graphcore]";

/// Shorter than the minimum timeout of a part, so a tool that hangs is killed before its thread counts as hung.
const RUN_TIMEOUT: Duration = Duration::from_millis(4500);

/// Interval of device lists from gc-info.
const LIST_INTERVAL: Duration = Duration::from_secs(60);

static COMMAND: OptionRow =
    OptionRow::path("command", "gc-inventory or gc-info executable to use instead of the one in PATH");

/// Keys below `[collectors.graphcore]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&COMMAND];

/// Opens the collector, if a tool is installed.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let configured = options.own.path(&COMMAND);
    let found = exec::find(&[INVENTORY, INFO], DIRS, configured).map_err(|mut error| {
        if error.remedy.is_empty() {
            error.remedy = REMEDY.into();
        }
        error
    })?;
    let mut tools = vec![found];
    // The JSON of gc-inventory may differ by version; the text of gc-info is documented.
    if configured.is_none() && !is_info(&tools[0]) {
        tools.extend(exec::find(&[INFO], DIRS, None));
    }
    let tried: Vec<String> = tools.iter().map(|tool| tool.display().to_string()).collect();
    let watched = (!options.pids.is_empty()).then(|| Watched::new(roots, &options.pids));
    let pids = Pids::new(&roots.proc, "ipu");
    let graphcore = Graphcore { tools, watched, pids, listed: None };
    Ok(Part::only(tried, graphcore))
}

fn is_info(tool: &Path) -> bool {
    tool.file_name().is_some_and(|name| name.to_string_lossy().starts_with(INFO))
}

struct Graphcore {
    /// Candidate tools. The first one is in use; tools that failed before it are dropped.
    tools: Vec<PathBuf>,
    /// None if no process is watched; then all devices count.
    watched: Option<Watched>,
    /// Maps the tools' PIDs to processes here.
    pids: Pids,
    /// Devices listed by gc-info, and the time of that list.
    listed: Option<(Duration, Vec<u32>)>,
}

impl Collector for Graphcore {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        loop {
            let (devices, trouble) = self.read(out.at());
            if devices.is_empty() && self.tools.len() > 1 {
                self.tools.remove(0);
                continue;
            }
            self.put(&devices, out);
            let any = !devices.is_empty();
            return match trouble {
                None => Ok(()),
                Some(reason) if any => Err(CollectError::partial(reason)),
                Some(reason) => Err(CollectError::failed(reason)),
            };
        }
    }
}

impl Graphcore {
    /// The devices in the current tool's output, and the failure if any.
    fn read(&mut self, now: Duration) -> (Vec<Device>, Option<String>) {
        let tool = self.tools[0].clone();
        if !is_info(&tool) {
            return match devices_of(&tool, &["-j"], RUN_TIMEOUT) {
                Ok(devices) => (devices, None),
                Err(reason) => (Vec::new(), Some(reason)),
            };
        }
        let ids = match self.list(&tool, now) {
            Ok(ids) => ids,
            Err(reason) => return (Vec::new(), Some(reason)),
        };
        let (mut devices, mut trouble) = (Vec::new(), None);
        for id in &ids {
            let share = RUN_TIMEOUT / ids.len() as u32;
            match devices_of(&tool, &["-d", &id.to_string(), "-i"], share) {
                Ok(found) => devices.extend(found),
                Err(reason) => {
                    trouble.get_or_insert(format!("IPU {id}: {reason}"));
                    self.listed = None;
                }
            }
        }
        (devices, trouble)
    }

    /// The single devices in the list of gc-info; groups of several are left out.
    fn list(&mut self, tool: &Path, now: Duration) -> Result<Vec<u32>, String> {
        if let Some((then, ids)) = &self.listed
            && now.saturating_sub(*then) < LIST_INTERVAL
        {
            return Ok(ids.clone());
        }
        let output =
            exec::run(tool, &["-l"], &RunLimits::within(RUN_TIMEOUT / 2)).map_err(|error| error.to_string())?;
        let ids = attributes::listed(&String::from_utf8_lossy(&output.stdout));
        if ids.is_empty() {
            return Err(output.failure_message(tool));
        }
        self.listed = Some((now, ids.clone()));
        Ok(ids)
    }

    fn put(&mut self, devices: &[Device], out: &mut Out) {
        let watched = self.watched.as_mut().map(Watched::pids);
        let own = &mut self.pids;
        let is_ours = |device: &&Device| {
            let is_watched =
                |pids: &HashSet<u32>| device.user.is_some_and(|user| pids.contains(&user) && own.is_own(user));
            watched.as_ref().is_none_or(is_watched)
        };
        for device in devices.iter().filter(is_ours) {
            for IpuAttribute { row, instance, value } in &device.attributes {
                match instance {
                    Some(key) => out.put(row, key.as_str(), *value),
                    None => out.put(row, device.id, *value),
                }
            }
        }
    }
}

/// The devices in the output of one run of a tool.
fn devices_of(tool: &Path, args: &[&str], deadline: Duration) -> Result<Vec<Device>, String> {
    let output = exec::run(tool, args, &RunLimits::within(deadline)).map_err(|error| error.to_string())?;
    let devices = attributes::devices(&output.stdout);
    if devices.is_empty() { Err(output.failure_message(tool)) } else { Ok(devices) }
}

#[cfg(test)]
mod tests;
