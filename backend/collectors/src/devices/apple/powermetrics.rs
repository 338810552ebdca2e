//! `powermetrics`, Apple's own tool, used if the sensors cannot be read: GPU and power, one process per reading. It
//! needs root.
//!
//! Its output is text for people. A value counts only if its unit follows, so truncated output gives fewer values.

use super::report::{AppleReport, Cluster};
use crate::read::exec::{self, RunLimits};
use crate::{CollectError, Collector, OpenError, OpenErrorKind, Out, Part};
use std::path::PathBuf;
use std::time::Duration;

/// Path of the tool on macOS.
const TOOL: &str = "/usr/sbin/powermetrics";

/// One sample over half a second.
const ARGS: &[&str] = &["--samplers", "cpu_power,gpu_power", "-n", "1", "-i", "500"];

const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between two runs: each measures for half a second.
const RUN_INTERVAL: Duration = Duration::from_secs(5);

/// Opens the tool. `sensors`: the reason why the sensors cannot be read. `is_root`: whether this process may run the
/// tool.
pub(super) fn open(sensors: &str, is_root: bool, gpu: Option<u32>) -> Result<Vec<Part>, OpenError> {
    let tried = vec!["IOReport, SMC and IOHID".to_string(), format!("{TOOL} {}", ARGS.join(" "))];
    if !is_root {
        return Err(OpenError {
            kind: OpenErrorKind::Denied,
            tried,
            reason: format!("{sensors}; powermetrics could replace them, but needs root"),
            remedy: "restart the machine after a macOS update, or start Watchglass as root: sudo watchglass".into(),
        });
    }
    let tool = Powermetrics { path: TOOL.into(), gpu, next: Duration::ZERO };
    Ok(Part::only(tried, tool))
}

struct Powermetrics {
    path: PathBuf,
    gpu: Option<u32>,
    /// Earliest time of the next run.
    next: Duration,
}

impl Collector for Powermetrics {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if out.at() < self.next {
            return Ok(());
        }
        self.next = out.at() + RUN_INTERVAL;
        let output = exec::run(&self.path, ARGS, &RunLimits::within(RUN_TIMEOUT))
            .map_err(|error| CollectError::failed(error.to_string()))?;
        let report = report(&String::from_utf8_lossy(&output.stdout));
        if report == AppleReport::default() {
            return Err(CollectError::failed(output.failure_message(&self.path)));
        }
        report.put(self.gpu, out);
        Ok(())
    }
}

/// The values of an output; the last sample if it has several.
fn report(text: &str) -> AppleReport {
    let mut report = AppleReport::default();
    let (mut megahertz, mut ratio) = (None, None);
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key.trim() {
            "GPU HW active frequency" | "GPU active frequency" => megahertz = number(value, "MHz"),
            "GPU HW active residency" | "GPU active residency" => ratio = number(value, "%").map(|share| share / 100.0),
            "GPU Power" => report.gpu_power = milliwatts(value),
            "CPU Power" => report.cpu_power = milliwatts(value),
            "ANE Power" => report.ane_power = milliwatts(value),
            _ => {}
        }
    }
    // A GPU that was asleep has no frequency.
    report.gpu = ratio.map(|ratio| Cluster { megahertz: megahertz.unwrap_or(0.0), ratio });
    report
}

/// A number followed by its unit; more text may follow.
fn number(text: &str, unit: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(end);
    let after = rest.trim_start().strip_prefix(unit)?;
    let ends = !after.starts_with(|c: char| c.is_alphanumeric());
    number.parse().ok().filter(|number: &f64| ends && number.is_finite())
}

fn milliwatts(text: &str) -> Option<f64> {
    number(text, "mW").map(|milliwatts| milliwatts / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;
    use shared::catalog::{MetricDef, apple, gpu, power};

    fn present(text: &str) -> Vec<(String, f64)> {
        recordings::present(|out| report(text).put(Some(0), out))
    }

    const OWN: &str = "\
Machine model: MacX

*** Sampled system activity (some day) (500.1ms elapsed) ***

E-Cluster HW active frequency: 1000 MHz
CPU Power: 1250 mW
GPU Power: 30 mW
ANE Power: 0 mW
Combined Power (CPU + GPU + ANE): 1280 mW

**** GPU usage ****

GPU HW active frequency: 600 MHz
GPU HW active residency:  12.50% (400 MHz:   5% 600 MHz: 7.5%)
GPU idle residency:  87.50%
GPU Power: 30 mW
";

    #[test]
    fn a_text_of_ours_is_read() {
        let wanted: [(&MetricDef, f64); 5] = [
            (&apple::ANE_POWER, 0.0),
            (&power::CPU, 1.25),
            (&gpu::FREQUENCY, 600.0),
            (&gpu::UTILIZATION, 12.5),
            (&gpu::POWER_WATTS, 0.03),
        ];
        let mut wanted: Vec<_> = wanted.iter().map(|(row, value)| (row.tag_of("0"), *value)).collect();
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(present(OWN), wanted);
        recordings::survives(OWN, present, |_| false);
        assert_eq!(present("powermetrics must be invoked as the superuser\n"), []);
    }

    #[test]
    fn recordings_yield_their_lists() {
        for (name, file) in [("m2pro", "m2pro_macos26"), ("partial", "partial")] {
            let text = recordings::text(&format!("apple/powermetrics-gpu_{file}.txt"));
            recordings::check(&format!("apple_powermetrics-gpu_{name}"), &present(&text));
            recordings::survives(&text, present, |_| false);
        }
    }

    #[test]
    fn without_root_the_reason_says_so() {
        let error = open("the sensors do not answer", false, Some(0)).err().expect("nothing opens");
        assert_eq!(error.kind, OpenErrorKind::Denied);
        assert!(error.reason.contains("root") && error.remedy.contains("sudo watchglass"), "{}", error.reason);
        assert_eq!(error.tried.len(), 2);
        assert!(open("the sensors do not answer", true, Some(0)).is_ok());
    }

    #[test]
    fn a_gpu_that_is_not_kept_is_left_out() {
        let rest = recordings::present(|out| report(OWN).put(None, out));
        let all = present(OWN);
        assert_eq!((all.len(), rest.len()), (5, 2));
        assert!(rest.iter().all(|reading| all.contains(reading)));
    }

    #[cfg(unix)]
    #[test]
    fn what_the_tool_says_instead_of_values_is_the_reason() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("powermetrics");
        std::fs::write(&path, "#!/bin/sh\necho 'powermetrics must be invoked as the superuser' >&2\nexit 1\n")
            .expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a tool");
        let mut tool = Powermetrics { path, gpu: Some(0), next: Duration::ZERO };
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        let error = tool.collect(&mut out).expect_err("no values");
        assert!(error.reason.contains("must be invoked as the superuser"), "{}", error.reason);
    }
}
