//! A machine made of files, and a collector that runs on it.

use collectors::{COLLECTORS, CollectError, Entry, OpenError, Options, Out, Part, Roots};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

thread_local! {
    /// Tags of the metrics that tests of this thread have checked.
    pub static TESTED_TAGS: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Values of a tick, by tag.
pub type Readings = Vec<(String, f64)>;

pub struct Machine {
    dir: tempfile::TempDir,
    pub options: Options,
}

impl Machine {
    pub fn new() -> Machine {
        Machine { dir: tempfile::tempdir().unwrap(), options: Options::default() }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn folder(&self, path: &str) -> &Self {
        std::fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    pub fn remove(&self, path: &str) -> &Self {
        let path = self.path(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap()
        } else {
            std::fs::remove_file(path).unwrap()
        }
        self
    }

    pub fn roots(&self) -> Roots {
        Roots::below(self.dir.path())
    }

    pub fn try_open(&self, name: &str) -> Result<Running, OpenError> {
        let entry = COLLECTORS.iter().find(|entry| entry.name == name).unwrap();
        let parts = entry.open_here(&self.options, &self.roots())?;
        let parts = parts.into_iter().map(|part| (part, Out::default())).collect();
        Ok(Running { entry, parts, at: Duration::from_secs(1000), outcomes: Vec::new() })
    }

    pub fn open(&self, name: &str) -> Running {
        self.try_open(name).unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }
}

pub struct Running {
    entry: &'static Entry,
    pub parts: Vec<(Part, Out)>,
    at: Duration,
    /// Result of each part's last reading.
    pub outcomes: Vec<Result<(), CollectError>>,
}

impl Running {
    /// Reads once, this number of seconds after the previous reading.
    pub fn after(&mut self, seconds: f64) -> Readings {
        self.at += Duration::from_secs_f64(seconds);
        self.outcomes.clear();
        let mut readings = Vec::new();
        for (part, out) in &mut self.parts {
            out.begin(self.at);
            self.outcomes.push(part.collector.collect(out));
            readings.extend(out.present());
            for (def, instance) in out.slots() {
                if readings.iter().any(|(tag, _)| *tag == def.tag_of(&instance)) {
                    TESTED_TAGS.with_borrow_mut(|shown| shown.insert(def.tag));
                }
                let named = self.entry.metrics.iter().copied().flatten().any(|row| std::ptr::eq(*row, def));
                assert!(named, "the entry {} does not name {}", self.entry.name, def.tag);
            }
        }
        readings.sort_by(|a, b| a.0.cmp(&b.0));
        readings
    }

    /// Reads once, one second after the previous reading.
    pub fn next(&mut self) -> Readings {
        self.after(1.0)
    }

    /// The first reason of a failed part, and whether it still read some values.
    pub fn trouble(&self) -> Option<(&str, bool)> {
        let error = self.outcomes.iter().find_map(|outcome| outcome.as_ref().err())?;
        Some((&error.reason, error.partial))
    }
}

/// Expected values, sorted like those read.
pub fn readings<T: Into<String>>(expected: impl IntoIterator<Item = (T, f64)>) -> Readings {
    let mut expected: Readings = expected.into_iter().map(|(tag, value)| (tag.into(), value)).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    expected
}

/// The value of a tag; none if it is absent.
pub fn value(readings: &Readings, tag: &str) -> Option<f64> {
    readings.iter().find(|(found, _)| found == tag).map(|(_, value)| *value)
}
