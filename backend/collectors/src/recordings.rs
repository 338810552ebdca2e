//! Recordings of real devices, for the tests of every family: where they are, what they hold, and the comparison of what
//! a collector read from one with what it must read.
//!
//! The recordings are not part of the source tree; `WATCHGLASS_RECORDINGS` names their folder. Without it these tests
//! say that they are skipped, and our own small fixtures stand alone.

use serde_json::Value;
use shared::catalog::{MetricDef, gpu, gpu_parts};
use shared::series::quantize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Relative tolerance of the lists: their percentages are rounded to 6 decimals.
const TOLERANCE: f64 = 1e-5;

/// Rows of ours that the lists of expected values, which follow W&B's vocabulary, were written without.
const BEYOND: &[&MetricDef] = &[&gpu::MEMORY_TOTAL_BYTES, &gpu::THROTTLE_REASONS, &gpu_parts::XID_ERRORS];

/// The folder of the recordings, when there is one.
pub fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("WATCHGLASS_RECORDINGS").filter(|folder| !folder.is_empty());
    if folder.is_none() {
        eprintln!("skipped: WATCHGLASS_RECORDINGS names no folder of recordings");
    }
    folder.map(PathBuf::from)
}

/// The text of a recording (`amd/rocm-smi_x.json`); absent without recordings.
///
/// # Panics
/// When there are recordings, but not this one.
pub fn text(path: &str) -> Option<String> {
    let path = folder()?.join(path);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What must be read from a recording: the numbers of `expected/{name}.json` without notes (keys that begin with `_`).
pub fn expected(name: &str) -> Option<BTreeMap<String, f64>> {
    let list: BTreeMap<String, Value> =
        serde_json::from_str(&text(&format!("expected/{name}.json"))?).expect("a list is a JSON object");
    let numbers = list.into_iter().filter(|(key, _)| !key.starts_with('_'));
    Some(numbers.filter_map(|(key, value)| Some((key, value.as_f64()?))).collect())
}

/// A recording of /sys as the folder that it was: the files of `{vendor}/sysfs_{name}.json` below `class/drm`.
///
/// # Panics
/// When the recording is not one of /sys.
pub fn sys(path: &str) -> Option<tempfile::TempDir> {
    let recording: Value = serde_json::from_str(&text(path)?).expect("a recording of /sys is JSON");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let entries = |key: &str| recording[key].as_object().into_iter().flatten().collect::<Vec<_>>();
    let put = |path: &str, bytes: &[u8]| {
        let path = dir.path().join("class/drm").join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    };
    for (path, value) in entries("files") {
        put(path, value.as_str().expect("text").as_bytes());
    }
    for (path, value) in entries("hex") {
        put(path, &bytes(value.as_str().expect("text")));
    }
    Some(dir)
}

/// Bytes that are written as pairs of hexadecimal digits.
pub fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16));
    pairs.collect::<Result<_, _>>().expect("hexadecimal digits")
}

/// Compares what was read from a recording with its list, tag by tag: nothing missing, nothing beside it, and each value
/// within the tolerance or within the steps in which its row is stored. Does nothing without recordings.
///
/// # Panics
/// When they differ; the message names every difference.
pub fn check(name: &str, present: &[(String, f64)]) {
    if let Some(expected) = expected(name) {
        let faults = differences(&expected, present);
        assert!(faults.is_empty(), "{name}:\n  {}", faults.join("\n  "));
    }
}

fn differences(expected: &BTreeMap<String, f64>, present: &[(String, f64)]) -> Vec<String> {
    let catalog = crate::catalog();
    let metric = |tag: &str| {
        let found = catalog.find(tag).ok()?;
        catalog.metrics.get(usize::from(found.metric))
    };
    let mut faults = Vec::new();
    for (tag, value) in present {
        let Some(wanted) = expected.get(tag) else {
            if metric(tag).is_none_or(|m| BEYOND.iter().all(|row| row.tag != m.tag)) {
                faults.push(format!("{tag} = {value} is not in the list"));
            }
            continue;
        };
        let near = |wanted: f64| (value - wanted).abs() <= TOLERANCE * wanted.abs();
        if !near(*wanted) && !near(quantize(*wanted, metric(tag).map_or(0.0, |m| m.steps))) {
            faults.push(format!("{tag} = {value}, the list has {wanted}"));
        }
    }
    let missing = expected.iter().filter(|(tag, _)| !present.iter().any(|(read, _)| read == *tag));
    faults.extend(missing.map(|(tag, wanted)| format!("{tag} = {wanted} was not read")));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_each_kind_is_found() {
        let list = |text: &str| serde_json::from_str::<BTreeMap<String, f64>>(text).expect("JSON");
        let expected = list(r#"{"gpu.0.gpu": 11.123456, "gpu.0.temp": 30.0, "gpu.1.temp": 31.0}"#);
        let read = |tags: &[(&str, f64)]| tags.iter().map(|&(tag, v)| (tag.to_string(), v)).collect::<Vec<_>>();
        let same = [("gpu.0.gpu", 11.12), ("gpu.0.temp", 30.0), ("gpu.1.temp", 31.0), ("gpu.0.memoryTotalBytes", 1.0)];
        assert_eq!(differences(&expected, &read(&same)), Vec::<String>::new());
        let other = [("gpu.0.gpu", 11.2), ("gpu.0.temp", 30.0), ("gpu.0.memory", 0.0)];
        assert_eq!(
            differences(&expected, &read(&other)),
            [
                "gpu.0.gpu = 11.2, the list has 11.123456",
                "gpu.0.memory = 0 is not in the list",
                "gpu.1.temp = 31 was not read"
            ]
        );
    }
}
