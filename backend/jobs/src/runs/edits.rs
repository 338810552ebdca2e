//! Changes of runs by people. They lie over the records of machines, which stay as they came: so a report that arrives
//! late, a restart, or another hub changes nothing of them.

use super::days::RunDay;
use super::reduce::RunPart;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use shared::run::{Run, RunEdited};
use shared::run_change::RunChange;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Tolerance of clocks of machines where a part of a deleted run arrives late, milliseconds.
const CLOCKS_MS: i64 = 60_000;

/// A run, and the machines that have a part of it.
#[derive(Clone, Debug)]
pub struct PlacedRun {
    /// The run, as it is listed.
    pub run: Run,
    /// Its machines by their keys, each with the number of the job among those of its address.
    pub machines: BTreeMap<String, Option<i64>>,
}

/// The use of a deleted run, without its name. It counts for its team, project and user on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeletedUse {
    /// Its project.
    pub project: Option<String>,
    /// The user of its processes.
    pub user: Option<String>,
    /// Its GPU time by day.
    pub days: Vec<RunDay>,
}

/// The changes of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEdit {
    /// The ID that its machines use.
    pub run: String,
    /// The ID of its team; None without teams.
    pub team: Option<String>,
    /// Its machines by their keys, each with the number of the job among those of its address.
    pub machines: BTreeMap<String, Option<i64>>,
    /// Its begin and its end at the last change, milliseconds since the Unix epoch.
    pub span: (i64, Option<i64>),
    /// Its new names.
    pub names: RunChange,
    /// The last change, and its author.
    pub edited: RunEdited,
    /// When it was deleted, milliseconds since the Unix epoch.
    pub deleted: Option<i64>,
    /// Its use, if it was deleted.
    pub used: Option<Arc<DeletedUse>>,
}

impl RunEdit {
    /// Whether it is about a part of a run that a machine of this key knows.
    fn has(&self, key: &str, generation: Option<i64>) -> bool {
        self.machines.get(key).is_some_and(|own| *own == generation)
    }

    /// Whether a part of the deleted run arrived after the deletion, from a machine that was not known to have one.
    fn is_late(&self, key: &str, team: Option<&str>, run: &Run) -> bool {
        let span = self.span.0.saturating_sub(CLOCKS_MS)..=self.span.1.unwrap_or(i64::MAX).min(self.cut());
        !self.machines.contains_key(key)
            && team.is_some()
            && team == self.team.as_deref()
            && run.processes.iter().all(|process| process.joined)
            && span.contains(&run.began)
    }

    /// The last begin of a process that was deleted with it. Processes that begin later are a new run of the same ID.
    fn cut(&self) -> i64 {
        // The clock of its machine may be ahead of ours.
        self.deleted.unwrap_or(i64::MIN).max(self.span.1.unwrap_or(i64::MIN))
    }
}

/// The changes by the ID that machines use.
type ById = HashMap<String, Vec<Arc<RunEdit>>>;

/// The changes of all runs.
#[derive(Debug, Default)]
pub struct RunEdits(RwLock<Arc<ById>>);

/// The changes at one moment.
#[derive(Clone, Debug)]
pub(super) struct KnownEdits(Arc<ById>);

impl RunEdits {
    /// Replaces all changes.
    pub fn set(&self, all: Vec<RunEdit>) {
        let mut by_id = ById::new();
        for edit in all {
            by_id.entry(edit.run.clone()).or_default().push(Arc::new(edit));
        }
        *self.0.write() = Arc::new(by_id);
    }

    pub(super) fn now(&self) -> KnownEdits {
        KnownEdits(self.0.read().clone())
    }
}

impl KnownEdits {
    /// Whether nobody has changed any run.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn edits_of(&self, run: &str) -> impl Iterator<Item = &Arc<RunEdit>> {
        self.0.get(run).into_iter().flatten()
    }

    /// The part of a run that is left of what a machine knows; None if it was deleted.
    pub fn left(&self, (key, team): (&str, Option<&str>), generation: Option<i64>, run: &Arc<Run>) -> Option<Arc<Run>> {
        let covers = |edit: &&Arc<RunEdit>| edit.has(key, generation) || edit.is_late(key, team, run);
        let deleted = self.edits_of(&run.id).filter(|edit| edit.deleted.is_some()).filter(covers);
        let Some(cut) = deleted.map(|edit| edit.cut()).max() else { return Some(run.clone()) };
        let mut run = Run::clone(run);
        run.processes.retain(|process| process.began > cut);
        run.began = run.processes.iter().map(|process| process.began).min()?;
        Some(Arc::new(run))
    }

    /// The spans in which processes of deleted runs of an ID began on a machine of this key, milliseconds since the Unix
    /// epoch. Jobs of one address share the ID, so that only the time of the deleted one counts.
    pub fn deleted_spans(&self, run: &str, key: &str) -> Vec<(i64, i64)> {
        let deleted = self.edits_of(run).filter(|edit| edit.deleted.is_some());
        let span = |edit: &Arc<RunEdit>| match edit.machines.get(key)? {
            None => Some((i64::MIN, edit.cut())),
            Some(_) => Some((edit.span.0, edit.span.1.unwrap_or(edit.cut()))),
        };
        deleted.filter_map(span).collect()
    }

    /// The uses of deleted runs, for a reader of all their machines, by machine key.
    pub fn uses_of_deleted(&self, sees: impl Fn(&str) -> bool) -> Vec<Arc<DeletedUse>> {
        let is_seen = |edit: &&Arc<RunEdit>| edit.deleted.is_some() && edit.machines.keys().all(|key| sees(key));
        self.0.values().flatten().filter(is_seen).filter_map(|edit| edit.used.clone()).collect()
    }

    /// The change of the names of the run with these parts.
    pub fn of_parts(&self, parts: &[RunPart]) -> Option<Arc<RunEdit>> {
        let first = parts.first()?;
        let own = |edit: &&Arc<RunEdit>| parts.iter().any(|part| edit.has(&part.key, part.generation));
        self.newest(&first.run.id, own)
    }

    /// The change of the names of a stored run on these machines, given by their keys.
    pub fn of_kept<'a>(&self, run: &Run, machines: impl Iterator<Item = &'a String> + Clone) -> Option<Arc<RunEdit>> {
        self.newest(run.machine_id(), |edit| is_of_kept(edit, run, machines.clone()))
    }

    /// Whether a stored run on these machines was deleted.
    pub fn has_deleted<'a>(&self, run: &Run, machines: impl Iterator<Item = &'a String> + Clone) -> bool {
        let of_run = |edit: &Arc<RunEdit>| {
            edit.deleted.is_some() && run.began <= edit.cut() && is_of_kept(edit, run, machines.clone())
        };
        self.edits_of(run.machine_id()).any(of_run)
    }

    fn newest(&self, run: &str, own: impl Fn(&&Arc<RunEdit>) -> bool) -> Option<Arc<RunEdit>> {
        self.edits_of(run).filter(|edit| edit.deleted.is_none()).filter(own).max_by_key(|edit| edit.edited.at).cloned()
    }
}

/// Whether a change is about a stored run. Its parts are not stored, so that jobs of one address are told apart by time.
fn is_of_kept<'a>(edit: &RunEdit, run: &Run, mut machines: impl Iterator<Item = &'a String>) -> bool {
    let is_address = edit.machines.values().any(Option::is_some);
    machines.any(|key| edit.machines.contains_key(key)) && (!is_address || edit.span.0 == run.began)
}

/// The run with the new names.
pub(super) fn renamed(run: Arc<Run>, edit: Option<Arc<RunEdit>>) -> Arc<Run> {
    let Some(edit) = edit else { return run };
    let mut run = Arc::unwrap_or_clone(run);
    edit.names.apply(&mut run.about);
    run.edited = Some(edit.edited.clone());
    Arc::new(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::RunProcess;

    fn run(began: i64, joined: bool) -> Arc<Run> {
        let process = RunProcess { began, joined, ..RunProcess::default() };
        Arc::new(Run { id: "a".into(), began, processes: vec![process], ..Run::default() })
    }

    fn deleted() -> KnownEdits {
        let edits = RunEdits::default();
        edits.set(vec![RunEdit {
            run: "a".into(),
            team: Some("team".into()),
            machines: [("key".to_string(), None)].into(),
            span: (100_000, Some(900_000)),
            deleted: Some(500_000),
            ..RunEdit::default()
        }]);
        edits.now()
    }

    #[test]
    fn a_deleted_run_stays_deleted_and_a_new_one_of_its_id_is_there() {
        let left = |key: &str, team, run: &Arc<Run>| deleted().left((key, team), None, run).is_some();
        assert!(!left("key", None, &run(100_000, false)));
        assert!(!left("key", None, &run(900_000, false)), "the clock of the machine is ahead");
        assert!(left("key", None, &run(900_001, false)), "the same id again");
        assert!(left("other", Some("team"), &run(100_000, false)), "another run of this id");
        assert!(!left("other", Some("team"), &run(150_000, true)), "a rank whose machine was away");
        assert!(left("other", Some("foreign"), &run(150_000, true)), "of another team");
        assert!(left("other", Some("team"), &run(1_000, true)), "long before");
        assert!(deleted().left(("key", None), Some(5), &run(100_000, false)).is_some(), "another job of the address");
        let both = Run {
            processes: [run(100_000, false), run(950_000, false)]
                .iter()
                .flat_map(|run| run.processes.clone())
                .collect(),
            ..Run::clone(&run(100_000, false))
        };
        let rest = deleted().left(("key", None), None, &Arc::new(both)).expect("the new one");
        assert_eq!((rest.began, rest.processes.len()), (950_000, 1));
    }

    #[test]
    fn what_a_deleted_run_printed_is_known_by_the_time_of_its_processes() {
        assert_eq!(deleted().deleted_spans("a", "key"), [(i64::MIN, 900_000)]);
        assert_eq!(deleted().deleted_spans("a", "other"), []);
        assert_eq!(deleted().deleted_spans("b", "key"), []);
        let edits = RunEdits::default();
        let machines = [("key".to_string(), Some(3))].into();
        let span = (100_000, Some(200_000));
        edits.set(vec![RunEdit { run: "a".into(), machines, span, deleted: Some(500_000), ..RunEdit::default() }]);
        assert_eq!(edits.now().deleted_spans("a", "key"), [(100_000, 200_000)]);
        let machines = [("key".to_string(), None)].into();
        edits.set(vec![RunEdit { run: "a".into(), machines, ..RunEdit::default() }]);
        assert_eq!(edits.now().deleted_spans("a", "key"), [], "it has other names only");
    }

    #[test]
    fn a_stored_run_is_changed_by_its_machines() {
        let keys = ["key".to_string(), "more".to_string()];
        assert!(deleted().has_deleted(&run(100_000, false), keys.iter()));
        assert!(!deleted().has_deleted(&run(950_000, false), keys.iter()));
        assert!(!deleted().has_deleted(&run(100_000, false), keys[1..].iter()));
    }
}
