//! Recordings of real devices, for the tests of every family: their folders and content, and the comparison of a
//! collector's values with the expected ones.
//!
//! Recordings that may be published are in `tests/fixtures/recordings`. The others are in a folder of the same layout,
//! set in `WATCHGLASS_RECORDINGS`. Tests that read one of those have names that begin with `with_recordings_`, and are
//! ignored by default.

use crate::Out;
use serde_json::Value;
use shared::catalog::{MetricDef, gpu, gpu_amd, gpu_health, gpu_parts, gpu_profile};
use shared::series::quantize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Relative tolerance of the lists: their percentages are rounded to 6 decimals.
const TOLERANCE: f64 = 1e-5;
/// Half of the last digit of a list, which has six decimals.
const LAST_DIGIT: f64 = 5e-7;

/// Our metrics that the lists of expected values lack, because those follow W&B's vocabulary.
const BEYOND: &[&MetricDef] = &[
    &gpu::MEMORY_TOTAL_BYTES,
    &gpu::THROTTLE_REASONS,
    &gpu_parts::XID_ERRORS,
    &gpu_health::PERFORMANCE_STATE,
    &gpu_health::PERSISTENCE_MODE,
    &gpu_health::PCIE_REPLAYS,
    &gpu_health::REMAPPED_CORRECTED,
    &gpu_health::REMAPPED_UNCORRECTED,
    &gpu_health::REMAP_PENDING,
    &gpu_health::REMAP_FAILED,
    &gpu_profile::PCIE_GEN,
    &gpu_profile::PCIE_WIDTH,
    &gpu_profile::PCIE_SPEED,
    &gpu_amd::BLOCK_CORRECTED,
    &gpu_amd::BLOCK_UNCORRECTED,
    &gpu_amd::BLOCK_DEFERRED,
    &gpu_health::RECOVERY_ACTION,
    &gpu_parts::LAST_XID,
    &gpu::MEMORY_RESERVED,
    &gpu::VGPU_LICENSE,
    &gpu_profile::NVLINK_TOTAL,
];

/// The folder of the recordings that may be published.
fn published() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/recordings"))
}

/// The folder of all recordings.
///
/// # Panics
/// `WATCHGLASS_RECORDINGS` is not set.
fn withheld() -> PathBuf {
    let folder = std::env::var_os("WATCHGLASS_RECORDINGS").filter(|folder| !folder.is_empty());
    folder.expect("WATCHGLASS_RECORDINGS names the folder of recordings that are not published").into()
}

/// The text of a recording (`amd/rocm-smi_x.json`).
///
/// # Panics
/// There is no such recording.
pub fn text(path: &str) -> String {
    let file = Some(published().join(path)).filter(|file| file.exists()).unwrap_or_else(|| withheld().join(path));
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Names of the machines whose NVML is recorded.
pub fn scenarios() -> Vec<String> {
    let names = files(&published().join("nvidia"));
    names.iter().filter_map(|name| Some(name.strip_prefix("scenario_")?.strip_suffix(".json")?.to_string())).collect()
}

/// Names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// The expected values of a recording: the numbers of `expected/{name}.json` without notes (keys that begin with `_`).
pub fn expected(name: &str) -> BTreeMap<String, f64> {
    let list: BTreeMap<String, Value> =
        serde_json::from_str(&text(&format!("expected/{name}.json"))).expect("a list is a JSON object");
    let numbers = list.into_iter().filter(|(key, _)| !key.starts_with('_'));
    numbers.filter_map(|(key, value)| Some((key, value.as_f64()?))).collect()
}

/// A recording of /sys, restored as a folder: the files of `{vendor}/sysfs_{name}.json` below its `root`.
///
/// # Panics
/// The recording is not one of /sys.
pub fn sys(path: &str) -> tempfile::TempDir {
    let recording: Value = serde_json::from_str(&text(path)).expect("a recording of /sys is JSON");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let entries = |key: &str| recording[key].as_object().into_iter().flatten().collect::<Vec<_>>();
    let root = recording["root"].as_str().and_then(|root| root.strip_prefix("/sys/")).unwrap_or("class/drm");
    let put = |path: &str, bytes: &[u8]| {
        let path = dir.path().join(root).join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    };
    for (path, value) in entries("files") {
        put(path, value.as_str().expect("text").as_bytes());
    }
    for (path, value) in entries("hex") {
        put(path, &hex::decode(value.as_str().expect("text")).expect("hexadecimal digits"));
    }
    dir
}

/// Compares the values read from a recording with its list, tag by tag. No value may be missing or additional. Each
/// value must be within the tolerance or within the steps in which its metric is stored.
///
/// # Panics
/// They differ; the message lists every difference.
pub fn check(name: &str, present: &[(String, f64)]) {
    let faults = differences(&expected(name), present);
    assert!(faults.is_empty(), "{name}:\n  {}", faults.join("\n  "));
}

/// The values that are put.
pub fn present(put: impl FnOnce(&mut Out)) -> Vec<(String, f64)> {
    let mut out = Out::default();
    out.begin(Duration::ZERO);
    put(&mut out);
    out.present()
}

/// Reads a text truncated at any place, and with a digit changed; for a long text at some places. `read` returns the
/// values of a text. `other`: whether a changed digit may lead to this tag, because it numbers something.
///
/// # Panics
/// A truncated text gives a value that the whole does not give, or another tag appears.
pub fn survives(text: &str, read: impl Fn(&str) -> Vec<(String, f64)>, other: impl Fn(&str) -> bool) {
    let whole = read(text);
    // Every truncated text is read from its beginning, so long texts are sampled.
    let most = 1 + 4_000_000 / (1 + text.len());
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(1 + text.len() / most) {
        for reading in read(&text[..end]) {
            assert!(whole.contains(&reading), "cut at {end}: {reading:?}");
        }
    }
    let digits: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
    for &at in digits.iter().step_by(1 + digits.len() / (1 + most / 3)) {
        for put in ["x", "-", "999999999999"] {
            let altered = format!("{}{put}{}", &text[..at], &text[at + 1..]);
            for (tag, _) in read(&altered) {
                assert!(other(&tag) || whole.iter().any(|(known, _)| *known == tag), "{tag} appears");
            }
        }
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
        let near = |wanted: f64| (value - wanted).abs() <= (TOLERANCE * wanted.abs()).max(LAST_DIGIT);
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

    /// Recordings that no collector reads, with the reason.
    const UNREAD: &[(&str, &str)] = &[
        ("nvidia/nvidia-smi-table_h100-sxm-x8_node.txt", "the table for people; -q of the same node is read"),
        ("nvidia/nvml-symbols_", "names of functions, for whoever writes the fake library"),
        ("intel/xpu-smi-discovery_max1550-x6_1.2.39.txt", "names of cards, which nothing here shows"),
    ];

    /// Texts between quotes in the sources of this crate: names of recordings, and patterns with a placeholder.
    struct Named(std::collections::HashSet<String>);

    impl Named {
        fn in_sources() -> Named {
            let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
            let mut pieces = std::collections::HashSet::new();
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
                    if entry.path().is_dir() {
                        folders.push(entry.path());
                    } else if !entry.path().ends_with("recordings.rs") {
                        let text = std::fs::read_to_string(entry.path()).expect("a source");
                        pieces.extend(text.lines().flat_map(|line| line.split('"')).map(str::to_string));
                    }
                }
            }
            pieces.extend(scenarios());
            Named(pieces)
        }

        /// Whether a name is written out, or matches a pattern filled with such a name.
        fn has(&self, name: &str, deep: u8) -> bool {
            self.0.contains(name) || deep > 0 && self.0.iter().any(|pattern| self.fills(pattern, name, deep - 1))
        }

        fn fills(&self, pattern: &str, name: &str, deep: u8) -> bool {
            let parts = pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?.1)));
            let Some((before, after)) = parts.filter(|(before, after)| before.len() + after.len() >= 4) else {
                return false;
            };
            let filled = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            filled.is_some_and(|filled| !filled.is_empty() && self.has(filled, deep))
        }
    }

    /// Checks that a test names each recording and each list of a folder. Returns the number of lists.
    fn all_are_named(folder: &Path) -> usize {
        let named = Named::in_sources();
        assert!(named.has("amd_rocm-smi_mi210_rocm5.x", 2) && !named.has("amd_rocm-smi_nobody_rocm5.x", 2));
        let (mut lists, mut forgotten) = (0, Vec::new());
        for family in files(folder).into_iter().filter(|name| folder.join(name).is_dir()) {
            for file in files(&folder.join(&family)) {
                let file = format!("{family}/{file}");
                let list = file.strip_prefix("expected/").and_then(|name| name.strip_suffix(".json"));
                lists += usize::from(list.is_some());
                let exempt = UNREAD.iter().any(|(name, _)| file.starts_with(name));
                if !exempt && !named.has(&file, 2) && !list.is_some_and(|list| named.has(list, 2)) {
                    forgotten.push(file);
                }
            }
        }
        forgotten.sort();
        assert!(forgotten.is_empty(), "no test names these:\n  {}", forgotten.join("\n  "));
        lists
    }

    #[test]
    fn every_list_and_every_recording_is_named_by_a_test() {
        let lists = all_are_named(&published());
        assert!(lists > 60, "{lists} lists were found");
    }

    #[test]
    #[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
    fn with_recordings_every_one_is_named_by_a_test() {
        let lists = all_are_named(&withheld());
        assert!(lists > 80, "{lists} lists were found");
    }
}
