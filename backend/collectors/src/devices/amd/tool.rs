//! AMD's command line tools: one process per reading, output parsed by content. If one output form gives nothing, the
//! next run requests the next form; a working form is kept.

use super::answer::{AmdForm, AmdGpu};
use super::{amd_smi, rocm_smi};
use crate::read::exec::{self, RunLimits};
use crate::{CollectError, Collector, OpenError, Options, Out, Part};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A tool: a Python program that takes one second on a busy machine.
pub(super) struct SmiTool {
    pub names: &'static [&'static str],
    forms: &'static [AmdForm],
    gpus: fn(&Value) -> Vec<AmdGpu>,
}

pub(super) const ROCM_SMI: SmiTool = SmiTool { names: &["rocm-smi"], forms: &rocm_smi::FORMS, gpus: rocm_smi::gpus };
pub(super) const AMD_SMI: SmiTool = SmiTool { names: &["amd-smi"], forms: &amd_smi::FORMS, gpus: amd_smi::gpus };

const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between two runs: one second of Python every second would cost more than it is worth.
const RUN_INTERVAL: Duration = Duration::from_secs(5);

/// Opens a tool that was found. Its output is checked at the first reading.
pub(super) fn open(tool: &'static SmiTool, path: PathBuf, options: &Options) -> Result<Vec<Part>, OpenError> {
    let tried = vec![format!("{} {}", path.display(), tool.forms[0].args.join(" "))];
    let next = Duration::ZERO;
    Ok(Part::only(tried, AmdTool { tool, path, options: options.clone(), next, form: 0 }))
}

struct AmdTool {
    tool: &'static SmiTool,
    path: PathBuf,
    options: Options,
    /// Earliest time of the next run.
    next: Duration,
    /// Index of the tool's form in use.
    form: usize,
}

impl Collector for AmdTool {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if out.at() < self.next {
            return Ok(());
        }
        self.next = out.at() + RUN_INTERVAL;
        let form = &self.tool.forms[self.form];
        let output = exec::run(&self.path, form.args, &RunLimits::within(RUN_TIMEOUT))
            .map_err(|error| CollectError::failed(error.to_string()))?;
        let gpus = (form.document)(&output.stdout).map(|document| (self.tool.gpus)(&document)).unwrap_or_default();
        if gpus.iter().all(|gpu| gpu.reading.is_empty()) {
            self.form = (self.form + 1) % self.tool.forms.len();
            return Err(CollectError::failed(output.failure_message(&self.path)));
        }
        for gpu in gpus.into_iter().filter(|gpu| self.options.keeps_gpu(gpu.number)) {
            gpu.put(self.options.gpu_numbers.claim(&gpu.identity, gpu.number), out);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::json;
    use super::*;

    /// The values from a tool's output; empty if it is no document.
    pub fn present(gpus: fn(&Value) -> Vec<AmdGpu>, text: &[u8]) -> Vec<(String, f64)> {
        json::document(text).map(|document| present_in(gpus, &document)).unwrap_or_default()
    }

    pub fn present_in(gpus: fn(&Value) -> Vec<AmdGpu>, document: &Value) -> Vec<(String, f64)> {
        crate::recordings::present(|out| gpus(document).into_iter().for_each(|gpu| gpu.put(gpu.number, out)))
    }

    /// Checks that a document truncated at any byte gives nothing. With a number changed no other tag may appear, and
    /// every tag must depend on some number.
    pub fn altered(gpus: fn(&Value) -> Vec<AmdGpu>, text: &[u8], whole: &[(String, f64)]) {
        let end = text.trim_ascii_end().len();
        // A truncated document is parsed to its end, so for a long one only some lengths are tried.
        for n in (0..end).step_by(1 + end / 3000) {
            assert_eq!(present(gpus, &text[..n]), [], "cut at {n}");
        }
        let mut document = json::document(text).unwrap();
        let mut followed: Vec<&String> = Vec::new();
        for leaf in numbers(&document, String::new()) {
            let own = document.pointer(&leaf).unwrap().clone();
            for other in [Value::from("N/A"), Value::from(1e15), Value::from("1")] {
                *document.pointer_mut(&leaf).unwrap() = other;
                let others = present_in(gpus, &document);
                let strange = others.iter().find(|(tag, _)| !whole.iter().any(|(known, _)| known == tag));
                // For some values zero means absent.
                assert!(strange.is_none() || json::number(&own) == Some(0.0), "{leaf}: {strange:?} appears");
                followed.extend(whole.iter().filter(|reading| !others.contains(reading)).map(|(tag, _)| tag));
            }
            *document.pointer_mut(&leaf).unwrap() = own;
        }
        let fixed: Vec<_> = whole.iter().filter(|(tag, _)| !followed.contains(&tag)).collect();
        assert!(fixed.is_empty(), "no number stands for {fixed:?}");
    }

    /// JSON pointers to the leaves of a document that hold a number. Identities are left out, because they name the
    /// GPU.
    fn numbers(value: &Value, at: String) -> Vec<String> {
        match value {
            Value::Object(map) => map
                .iter()
                .filter(|(key, _)| *key != "gpu")
                .flat_map(|(key, value)| numbers(value, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))))
                .collect(),
            Value::Array(list) => {
                list.iter().enumerate().flat_map(|(i, value)| numbers(value, format!("{at}/{i}"))).collect()
            }
            leaf => {
                let clock = leaf.as_str().is_some_and(|text| text.ends_with("Mhz)"));
                if clock || json::number(leaf).is_some() { vec![at] } else { Vec::new() }
            }
        }
    }

    #[cfg(unix)]
    fn fake(script: &str) -> (tempfile::TempDir, AmdTool) {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rocm-smi");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let tool = AmdTool { tool: &ROCM_SMI, path, options: Options::default(), next: Duration::ZERO, form: 0 };
        (dir, tool)
    }

    #[cfg(unix)]
    #[test]
    fn a_tool_is_run_at_most_every_five_seconds() {
        let (dir, mut tool) = fake(r#"echo x >> "${0}.runs"; echo '{"card0": {"GPU use (%)": "9"}}'"#);
        let mut out = Out::default();
        let mut read = |second| {
            out.begin(Duration::from_secs(second));
            tool.collect(&mut out).unwrap();
            out.present().len()
        };
        assert_eq!([0, 1, 2, 5, 6].map(&mut read), [1, 0, 0, 1, 0]);
        assert_eq!(std::fs::read_to_string(dir.path().join("rocm-smi.runs")).unwrap(), "x\nx\n");
    }

    #[cfg(unix)]
    #[test]
    fn only_chosen_gpus_are_read() {
        let (_dir, mut tool) = fake(r#"echo '{"card0": {"GPU use (%)": "9"}, "card1": {"GPU use (%)": "8"}}'"#);
        tool.options.gpus = vec![1];
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        tool.collect(&mut out).unwrap();
        assert_eq!(out.present(), [(shared::catalog::gpu::UTILIZATION.tag_of("1"), 8.0)]);
    }

    #[cfg(unix)]
    #[test]
    fn where_one_form_gives_nothing_the_next_is_asked_for_and_what_works_is_kept() {
        let script = r#"for last; do :; done; echo "$last" >> "${0}.runs"
            case "$last" in --json|--csv) echo broken;; *) echo 'GPU[1] : GPU use (%): 9';; esac"#;
        let (dir, mut tool) = fake(script);
        let mut out = Out::default();
        let mut read = |second| {
            out.begin(Duration::from_secs(second));
            let result = tool.collect(&mut out);
            (result.is_ok(), out.present().len())
        };
        assert_eq!([0, 5, 10, 15].map(&mut read), [(false, 0), (false, 0), (true, 1), (true, 1)]);
        let runs = std::fs::read_to_string(dir.path().join("rocm-smi.runs")).unwrap();
        assert_eq!(runs.lines().take(2).collect::<Vec<_>>(), ["--json", "--csv"]);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_tool_says_instead_of_values_is_the_reason() {
        for (script, reason) in [
            ("echo 'ERROR:root:Driver not initialized (amdgpu not found in modules)' >&2", "Driver not initialized"),
            ("echo 'WARNING:root:No JSON data to report' >&2", "No JSON data"),
            ("printf '{\"card0\": {\"GPU use (%%)\": \"9'", "card0"),
            ("exit 3", "printed nothing"),
        ] {
            let (_dir, mut tool) = fake(script);
            let mut out = Out::default();
            out.begin(Duration::ZERO);
            let error = tool.collect(&mut out).unwrap_err();
            assert!(error.reason.contains(reason) && !error.partial, "{}", error.reason);
            assert_eq!(out.present(), []);
        }
    }
}
