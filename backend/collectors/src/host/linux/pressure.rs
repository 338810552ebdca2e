//! Pressure of a Linux host: the share of time in which tasks were stalled for lack of CPU, memory or I/O.

use crate::read::Sources;
use crate::read::procfs::{HotFile, fields, lines, number};
use crate::{CollectError, Collector, OpenError, OpenErrorKind, Options, Out, Part, Roots};
use shared::catalog::{MetricDef, cpu};
use std::time::Duration;

/// Opens the resources that this kernel reports.
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    type PressureMetric = Option<&'static MetricDef>;
    let resources: [(&str, PressureMetric, PressureMetric); 3] = [
        ("cpu", Some(&cpu::PRESSURE_CPU), None),
        ("memory", Some(&cpu::PRESSURE_MEMORY_SOME), Some(&cpu::PRESSURE_MEMORY_FULL)),
        ("io", Some(&cpu::PRESSURE_IO_SOME), Some(&cpu::PRESSURE_IO_FULL)),
    ];
    let dir = roots.proc.join("pressure");
    let mut found = Vec::new();
    let mut first_error = None;
    for (name, some, full) in resources {
        let path = dir.join(name);
        match HotFile::open(&path) {
            Ok(file) => found.push(Resource { file, some, full, before: None }),
            Err(error) => {
                first_error.get_or_insert_with(|| OpenError::from_io(&path, &error));
            }
        }
    }
    match first_error {
        // A kernel with the feature disabled returns "not supported"; this is handled like missing files.
        Some(error) if found.is_empty() && error.kind != OpenErrorKind::Denied => Err(OpenError::absent(
            [dir.display().to_string()],
            format!("the kernel does not measure pressure ({})", error.reason),
            "boot a kernel of version 4.20 or later with psi=1 on its command line",
        )),
        Some(error) if found.is_empty() => Err(error),
        _ => {
            let tried: Vec<_> = found.iter().map(|resource| resource.file.path().display().to_string()).collect();
            Ok(Part::only(tried, Pressure { resources: found }))
        }
    }
}

struct Pressure {
    resources: Vec<Resource>,
}

struct Resource {
    file: HotFile,
    some: Option<&'static MetricDef>,
    full: Option<&'static MetricDef>,
    before: Option<(Duration, Stalled)>,
}

impl Collector for Pressure {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let mut sources = Sources::default();
        for resource in &mut self.resources {
            let now = match resource.file.read() {
                Ok(text) => Stalled::parse(text),
                Err(error) => {
                    resource.before = None;
                    sources.failed(|| format!("{}: {error}", resource.file.path().display()));
                    continue;
                }
            };
            sources.answered();
            if let Some((then, before)) = resource.before {
                let passed = out.at().saturating_sub(then);
                for (row, before, now) in
                    [(resource.some, before.some, now.some), (resource.full, before.full, now.full)]
                {
                    let percent = before.zip(now).and_then(|(before, now)| percent(before, now, passed));
                    if let Some(row) = row {
                        out.put_rounded(row, (), percent);
                    }
                }
            }
            resource.before = Some((out.at(), now));
        }
        sources.outcome()
    }
}

/// Total stall times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Stalled {
    some: Option<u64>,
    full: Option<u64>,
}

impl Stalled {
    /// `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`
    fn parse(text: &[u8]) -> Stalled {
        let mut stalled = Stalled::default();
        for line in lines(text) {
            let mut words = fields(line);
            let total = match words.next() {
                Some(b"some") => &mut stalled.some,
                Some(b"full") => &mut stalled.full,
                _ => continue,
            };
            *total = words.find_map(|word| number(word.strip_prefix(b"total=")?));
        }
        stalled
    }
}

/// Share of the time between two totals. The readings are some microseconds off their ticks. So the share of a fully
/// stalled machine may exceed 100 slightly, and is limited to 100.
fn percent(before: u64, now: u64, passed: Duration) -> Option<f64> {
    let stalled = now.checked_sub(before)? as f64;
    let passed = passed.as_micros() as f64;
    (passed > 0.0).then(|| (100.0 * stalled / passed).min(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn totals_are_differenced() {
        let second = Duration::from_secs(1);
        assert_eq!(percent(1_000_000, 1_250_000, second), Some(25.0));
        assert_eq!(percent(0, 1_000_400, second), Some(100.0));
        assert_eq!(percent(10, 5, second), None);
        assert_eq!(percent(5, 10, Duration::ZERO), None);
    }

    #[test]
    fn a_line_without_a_total_is_absent() {
        let text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00\n";
        assert_eq!(Stalled::parse(text), Stalled { some: Some(12), full: None });
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            Stalled::parse(&text);
        }
    }
}
