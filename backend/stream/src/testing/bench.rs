//! A server without sockets, with a manual clock and a disk with injected faults.

use crate::archive::{Archive, Disk};
use crate::clock::{Clock, Manual};
use crate::live::Live;
use crate::store::{Limits, Store};
use history::faults::Faulty;
use history::files::Disk as Real;
use history::{Folder, Found, OpenError, Options, retain};
use shared::catalog::{Catalog, cpu};
use shared::series::{SeriesDef, SeriesId};
use shared::wire::{CheckState, SourceId};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Retention, milliseconds.
pub const RETENTION: i64 = 43_200_000;
/// Start of its clock, the beginning of an hour; milliseconds since the Unix epoch.
pub const T0: i64 = 1_700_000_000_000 / 3_600_000 * 3_600_000;

/// A machine with five series and a tick every second.
pub struct Bench {
    /// Its clock.
    pub clock: Arc<Manual>,
    /// The stream that ticks are appended to.
    pub live: Arc<Live>,
    /// The archive, which writes to the folder.
    pub archive: Archive,
    /// The disk, with injected faults.
    pub faulty: Faulty,
    /// The machine.
    pub source: SourceId,
    /// Its series.
    pub ids: Vec<SeriesId>,
}

fn value(t: i64, id: SeriesId) -> f64 {
    ((t / 1_000 * 7 + i64::from(id) * 13) % 10_000) as f64 / 100.0
}

/// Opens a folder once nobody has it: on a slow disk the log of an earlier bench has it for a while after its end.
fn open_free(files: &Faulty) -> (Folder, Found) {
    let begin = Instant::now();
    loop {
        match Folder::open_with(Arc::new(files.clone()), Options::default()) {
            Err(OpenError::Locked { .. }) if begin.elapsed() < Duration::from_secs(60) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.expect("a folder"),
        }
    }
}

impl Bench {
    /// Opens a folder, and restores its data.
    ///
    /// # Panics
    /// If the folder cannot be opened.
    pub fn open(path: &Path, clock: &Arc<Manual>) -> Self {
        Self::with_limit(path, clock, usize::MAX)
    }

    /// Likewise; the store may hold this many bytes of sealed blocks in memory.
    ///
    /// # Panics
    /// If the folder cannot be opened.
    pub fn with_limit(path: &Path, clock: &Arc<Manual>, bytes: usize) -> Self {
        let faulty = Faulty::new(Arc::new(Real::new(path)));
        let (folder, found) = open_free(&faulty);
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let limits = Limits { retention: RETENTION, bytes };
        let (mut store, unwritten) = Store::of_found(catalog, &found, limits, Some("here"));
        let source = store.named("here").expect("it is added where it was not found");
        store.begin_life(source, clock.wall());
        let def = |core: u32| SeriesDef { metric: 0, instance: core.to_string() };
        let ids = (0..5).map(|core| store.intern(source, def(core)).expect("a row")).collect();
        let live = Live::new(store, clock.clone(), 1, RETENTION);
        let limits = retain::Limits { retention: RETENTION, bytes: None };
        let disk = Disk::new(path.into(), folder, found, limits);
        let archive = Archive::on_disk(live.clone(), disk, unwritten).expect("threads");
        Bench { clock: clock.clone(), live, archive, faulty, source, ids }
    }

    /// Appends ticks for this many seconds, and steps the archive after each.
    ///
    /// # Panics
    /// If a tick is refused.
    pub fn ticks(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.clock.pass(Duration::from_secs(1));
            let t = self.live.clock.wall();
            let values: Vec<f64> = self.ids.iter().map(|id| value(t, *id)).collect();
            self.live.append(self.source, t, false, &values).expect("it is not closed");
            self.archive.step();
        }
    }

    /// All samples of each series.
    ///
    /// # Panics
    /// If the machine is unknown.
    pub fn read(&self) -> Vec<Vec<(i64, f64)>> {
        let snapshot = self.live.store().snapshot(self.source, 0, i64::MAX).expect("a source");
        snapshot.samples(&self.ids)
    }

    /// Asserts that each of these seconds from `from` on is there, once, with its value.
    ///
    /// # Panics
    /// If one is not.
    #[track_caller]
    pub fn holds(&self, from: i64, seconds: i64) {
        for (id, samples) in self.ids.iter().zip(self.read()) {
            let times = (1..=seconds).map(|s| from + s * 1_000);
            let expected: Vec<(i64, f64)> = times.map(|t| (t, value(t, *id))).collect();
            assert_eq!(samples.len(), expected.len(), "series {id}");
            assert_eq!(samples, expected, "series {id}");
        }
    }

    /// State of the history, and its explanation.
    ///
    /// # Panics
    /// If it has no check.
    pub fn state(&self) -> (CheckState, String) {
        let (checks, _) = self.live.store().checks(self.source);
        let check = checks.iter().find(|check| check.id == "history").expect("the history is checked");
        (check.state, format!("{}; {}", check.reason, check.remedy))
    }

    /// Steps until the history has this state, and returns its explanation; the log's threads work on their own.
    ///
    /// # Panics
    /// If it does not within a minute.
    #[track_caller]
    pub fn until(&mut self, state: CheckState) -> String {
        let begin = Instant::now();
        loop {
            self.archive.step();
            let (now, words) = self.state();
            if now == state {
                return words;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{now:?}: {words}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A clock that stands at [`T0`].
pub fn clock() -> Arc<Manual> {
    Arc::new(Manual::at(T0, Duration::ZERO))
}
