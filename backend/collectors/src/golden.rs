//! Every metric that a collector declares must be put at least once by a test with expected values.
//!
//! Such tests run in a process of their own, which records each metric that they check. A test that is left out cannot
//! pass unnoticed: metrics that no test checked are missing in the record.

use crate::{COLLECTORS, HOST_COLLECTORS, monitor};
use parking_lot::Mutex;
use shared::catalog::MetricDef;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

/// Tests with expected values, by parts of their names.
const TESTS: &[&str] = &[
    "_is_read",
    "_are_read",
    "devices::amd::sysfs::",
    "devices::apple::report::",
    "devices::graphcore::tests::recordings",
    "devices::graphcore::tests::text_gives_numbers",
    "devices::graphcore::tests::what_names_and_does_not_measure",
    "devices::intel::sysfs::",
    "devices::nvidia::tests::a_watched_process",
    "devices::nvidia::tests::all_of_a_gpu",
    "devices::nvidia::tests::critical_errors",
    "devices::nvidia::tests::how_a_gpu_is",
    "devices::tpu::",
    "devices::trainium::tests::recordings",
    "host::monitor::",
    "job::",
    "openmetrics::page::tests::a_page_of_gpus",
    "openmetrics::page::tests::every_kind_of_sample",
    "openmetrics::page::tests::recordings_of_dcgm",
    "openmetrics::page::tests::the_default_counters",
    "openmetrics::tests::",
];

/// Tests among these that take long and check no additional metric.
const SLOW_TESTS: &[&str] = &["cut_and_altered"];

/// Metrics that no golden test can put, with the reason.
const EXEMPT: &[(&MetricDef, &str)] = &[
    (&monitor::MICROS, "the sampler measures it"),
    (&monitor::OK, "the sampler sees it"),
    (&monitor::LATE, "the sampler counts it"),
    (&monitor::CLOCK_STEPS, "the sampler counts it"),
    (&monitor::UPLINK_LIVE, "the sampler sees it"),
    (&monitor::UPLINK_BEHIND, "the sampler computes it"),
    (&monitor::UPLINK_MISSING, "the sampler computes it"),
    (&monitor::UPLINK_BYTES, "the link counts it"),
    (&monitor::UPLINK_FILL_BYTES, "the link counts it"),
    (&monitor::UPLINK_RECONNECTS, "the link counts it"),
    (&monitor::UPLINK_SKIPPED, "the link counts it"),
    (&shared::catalog::link::CLOCK_SKEW, "a hub measures it"),
    (&shared::catalog::openmetrics::SAMPLE, "stands for the rows that endpoints bring along"),
];

/// Environment variable of the recording process: the file for the metrics.
const NOTES: &str = "WATCHGLASS_TEST_ROWS";

/// Records that a test has checked a value of this metric.
pub fn saw(row: &MetricDef) {
    type Notes = Mutex<(BTreeSet<&'static str>, File)>;
    static SEEN: OnceLock<Option<Notes>> = OnceLock::new();
    let notes = SEEN.get_or_init(|| {
        let path = std::env::var_os(NOTES)?;
        Some(Mutex::new((BTreeSet::new(), File::create(path).expect("the file of notes"))))
    });
    if let Some(notes) = notes {
        let (seen, file) = &mut *notes.lock();
        if seen.insert(row.tag) {
            writeln!(file, "{}", row.tag).expect("a note");
        }
    }
}

#[test]
fn every_declared_row_is_put_by_a_golden_test() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("rows");
    #[allow(clippy::disallowed_methods, reason = "these tests themselves, as another process")]
    let output = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(TESTS)
        .args(["--skip", "golden::"])
        .args(SLOW_TESTS.iter().flat_map(|name| ["--skip", name]))
        .env(NOTES, &notes)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let seen = std::fs::read_to_string(notes).expect("notes");
    let seen: BTreeSet<&str> = seen.lines().collect();
    let declared = COLLECTORS.iter().filter(|entry| !HOST_COLLECTORS.contains(&entry.name));
    let declared: BTreeSet<&str> =
        declared.flat_map(|entry| entry.metrics.iter().copied().flatten()).map(|row| row.tag).collect();
    let exempt: BTreeSet<&str> = EXEMPT.iter().map(|(row, _)| row.tag).collect();
    let missing: Vec<_> = declared.iter().filter(|tag| !seen.contains(*tag) && !exempt.contains(*tag)).collect();
    assert!(missing.is_empty(), "no golden test (one of {TESTS:?}) looks at {missing:#?}");
    let needless: Vec<_> = exempt.iter().filter(|tag| seen.contains(*tag) || !declared.contains(*tag)).collect();
    assert!(needless.is_empty(), "take these off the list of exceptions: {needless:?}");
}
