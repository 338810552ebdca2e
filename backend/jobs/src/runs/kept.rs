//! Summaries of ended runs, one file each in the data folder: they outlive the samples.

use super::days::RunDay;
use super::edits::{KnownEdits, PlacedRun, RunEdits, renamed};
use super::other_id;
use super::output::last_file;
use super::summary::{RunNumbers, RunSummary};
use parking_lot::Mutex;
use shared::run::Run;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of summaries; above it the oldest are deleted. Each takes some 20 KiB of the disk at most.
const MAX_KEPT: usize = 20_000;

/// Maximum size of a file that is read, bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Rows of the stored summaries; their curves stay on the disk.
#[derive(Debug, Default)]
pub struct KeptRuns {
    folder: Mutex<Option<PathBuf>>,
    rows: Mutex<BTreeMap<String, Arc<SummaryRow>>>,
    edits: Arc<RunEdits>,
}

#[derive(Debug)]
struct SummaryRow {
    run: Arc<Run>,
    machines: BTreeMap<String, String>,
    numbers: RunNumbers,
    days: Vec<RunDay>,
    path: PathBuf,
}

impl SummaryRow {
    fn new(summary: RunSummary, path: PathBuf) -> SummaryRow {
        let RunSummary { run, machines, numbers, days, .. } = summary;
        SummaryRow { run: Arc::new(run), machines, numbers, days, path }
    }

    /// Whether a reader of these machines sees it: all of its machines, unless it was deleted.
    fn is_seen(&self, edits: &KnownEdits, sees: &impl Fn(&str) -> bool) -> bool {
        self.machines.values().all(|key| sees(key)) && !edits.has_deleted(&self.run, self.machines.values())
    }

    /// The run with the names that people gave it.
    fn renamed(&self, edits: &KnownEdits) -> Arc<Run> {
        renamed(self.run.clone(), edits.of_kept(&self.run, self.machines.values()))
    }
}

impl KeptRuns {
    pub(super) fn new(edits: Arc<RunEdits>) -> Self {
        KeptRuns { edits, ..KeptRuns::default() }
    }

    /// The stored runs on machines for which `sees` returns true, by machine key.
    pub(super) fn seen(&self, sees: impl Fn(&str) -> bool) -> Vec<Arc<Run>> {
        let rows: Vec<Arc<SummaryRow>> = self.rows().values().cloned().collect();
        let edits = self.edits.now();
        rows.iter().filter(|row| row.is_seen(&edits, &sees)).map(|row| row.renamed(&edits)).collect()
    }

    /// The summary of a run. It reads the disk.
    pub fn summary(&self, id: &str, sees: impl Fn(&str) -> bool) -> Option<RunSummary> {
        let (row, edits) = (self.rows().get(id)?.clone(), self.edits.now());
        if !row.is_seen(&edits, &sees) {
            return None;
        }
        let summary = read(&row.path)?;
        let edit = edits.of_kept(&summary.run, summary.machines.values());
        Some(RunSummary { run: Arc::unwrap_or_clone(renamed(Arc::new(summary.run), edit)), ..summary })
    }

    /// A stored run by its ID, with its machines.
    pub(super) fn placed(&self, id: &str, sees: impl Fn(&str) -> bool) -> Option<PlacedRun> {
        let (row, edits) = (self.rows().get(id)?.clone(), self.edits.now());
        // The number of a job is the begin of its first part, of which its listed ID is made.
        let began = row.run.began;
        let is_job = |key: &String| row.run.id == other_id(row.run.machine_id(), &format!("{key} {began}"));
        let generation = row.machines.values().any(is_job).then_some(began);
        let machines = row.machines.values().map(|key| (key.clone(), generation)).collect();
        let run = Arc::unwrap_or_clone(row.renamed(&edits));
        row.is_seen(&edits, &sees).then_some(PlacedRun { run, machines })
    }

    /// The numbers of a run, for a reader of all its machines, by machine key.
    pub fn numbers(&self, id: &str, sees: impl Fn(&str) -> bool) -> Option<RunNumbers> {
        let row = self.rows().get(id)?.clone();
        row.is_seen(&self.edits.now(), &sees).then(|| row.numbers.clone())
    }

    /// The GPU time of an ended run by day, for a reader of all its machines, by machine key; None if it is not stored.
    pub(super) fn days(&self, run: &Run, sees: impl Fn(&str) -> bool) -> Option<Vec<RunDay>> {
        let row = self.rows().get(&run.id).filter(|row| row.run.ended == run.ended && !row.days.is_empty())?.clone();
        row.is_seen(&self.edits.now(), &sees).then(|| row.days.clone())
    }

    /// Whether a run is stored in this version.
    pub(super) fn has(&self, run: &Run) -> bool {
        self.rows().get(&run.id).is_some_and(|row| *row.run == *run)
    }

    fn rows(&self) -> parking_lot::MutexGuard<'_, BTreeMap<String, Arc<SummaryRow>>> {
        self.rows.lock()
    }

    /// Reads the files of the folder that are not older than `oldest`, milliseconds since the Unix epoch. Unreadable
    /// files are left there.
    pub(super) fn open(&self, folder: &Path, oldest: i64) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
        let mut rows = BTreeMap::new();
        for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).take(MAX_KEPT) {
            match read(&path) {
                Some(summary) if summary.made < oldest => {
                    let _ = (fs::remove_file(&path), fs::remove_file(last_file(folder, summary.run.machine_id())));
                }
                Some(summary) => {
                    rows.insert(summary.run.id.clone(), Arc::new(SummaryRow::new(summary, path)));
                }
                None => tracing::warn!("{} is no summary of a run; remove it", path.display()),
            }
        }
        *self.rows() = rows;
        *self.folder.lock() = Some(folder.into());
        Ok(())
    }

    pub(super) fn keep(&self, summary: RunSummary) -> io::Result<()> {
        let folder = self.folder.lock().clone();
        let Some(folder) = folder else { return Ok(()) };
        let path = folder.join(format!("{}.json", summary.run.id));
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&summary).map_err(io::Error::other)?)?;
        file.sync_data()?;
        fs::rename(&new, &path)?;
        self.rows().insert(summary.run.id.clone(), Arc::new(SummaryRow::new(summary, path)));
        Ok(())
    }

    /// Deletes summaries that are older than `oldest`, milliseconds since the Unix epoch, that exceed the maximum, or
    /// whose machines were removed; and those of runs that people deleted. `own` is the key of the machine of which lines
    /// of output are stored here.
    pub(super) fn forget(&self, oldest: i64, removed: impl Fn(&str) -> bool, own: Option<&str>) {
        let edits = self.edits.now();
        let mut rows = self.rows();
        let mut ends: Vec<i64> = rows.values().map(|row| row.run.ended.unwrap_or(row.run.began)).collect();
        ends.sort_unstable_by_key(|end| std::cmp::Reverse(*end));
        let oldest = ends.get(MAX_KEPT).copied().unwrap_or(i64::MIN).max(oldest);
        rows.retain(|_, row| {
            let keeps = row.run.ended.unwrap_or(row.run.began) > oldest
                && !row.machines.values().any(|key| removed(key))
                && !edits.has_deleted(&row.run, row.machines.values());
            if !keeps {
                // Its stored output is deleted with it. A run of another machine may have the same ID.
                let is_own = row.machines.values().any(|key| Some(key.as_str()) == own);
                let lines = row
                    .path
                    .parent()
                    .filter(|_| is_own)
                    .map(|folder| last_file(folder, row.run.machine_id()))
                    .filter(|file| file.exists());
                for path in lines.iter().chain([&row.path]) {
                    if let Err(error) = fs::remove_file(path) {
                        tracing::warn!(%error, "{} cannot be removed", path.display());
                    }
                }
            }
            keeps
        });
    }
}

fn read(path: &Path) -> Option<RunSummary> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(id: &str, ended: i64) -> RunSummary {
        let run = Run { id: id.into(), ended: Some(ended), ..Run::default() };
        RunSummary { run, machines: [("node".into(), "key".into())].into(), made: ended, ..RunSummary::default() }
    }

    #[test]
    fn summaries_outlive_the_process_and_go_with_their_time_and_their_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = KeptRuns::default();
        let day = 86_400_000;
        kept.open(folder.path(), i64::MIN).expect("a folder");
        kept.keep(summary("old", day)).expect("written");
        kept.keep(summary("new", 300 * day)).expect("written");
        fs::write(folder.path().join("bad.json"), "{").expect("written");
        let again = KeptRuns::default();
        again.open(folder.path(), day).expect("a folder");
        let ids = |kept: &KeptRuns| kept.seen(|_| true).into_iter().map(|run| run.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&again), ["new", "old"]);
        assert_eq!(again.seen(|key| key != "key"), [], "who does not see the machine");
        assert_eq!(again.summary("old", |_| true), Some(summary("old", day)));
        again.forget(i64::MIN, |_| false, None);
        assert_eq!(ids(&again), ["new", "old"], "for ever");
        let lines = ["old", "new"].map(|id| last_file(folder.path(), id));
        lines.iter().for_each(|file| fs::write(file, "{}").expect("written"));
        again.forget(2 * day, |_| false, Some("another"));
        assert_eq!((ids(&again), lines[0].exists()), (vec!["new".to_string()], true), "they are of a run here");
        again.forget(2 * day, |key| key == "key", Some("key"));
        assert_eq!((ids(&again), lines[1].exists()), (vec![], false));
        fs::remove_file(&lines[0]).expect("there");
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1, "what is none of ours stays");
    }
}
