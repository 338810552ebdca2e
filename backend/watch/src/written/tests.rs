//! Two hubs of one database: a change at one is known at the other.

use super::*;
use crate::alerts::{AlertRegistry, AlertRegistryParts};
use jobs::runs::{DeletedUse, PlacedRun, RunDay, RunEdits};
use records::sources::{self, Source};
use records::teams::{self, Team};
use records::{Records, run_edits};
use shared::json::Seconds;
use shared::note::{NewNote, NoteChange};
use shared::run::{Run, RunProcess};
use shared::run_change::RunChange;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Manual;
use team::accounts::{Denied, Principal};

const NOW: i64 = 1_700_000_000_000;

/// Retention of ended runs.
const RUNS_KEPT: i64 = 30 * 86_400_000;

/// A hub of the database in a folder.
async fn hub(folder: &Path) -> WrittenRegistry {
    hub_at(folder, NOW).await
}

async fn hub_at(folder: &Path, now: i64) -> WrittenRegistry {
    let records = Records::open(folder).await.expect("a database");
    let about = AlertRegistryParts { names_teams: true, runs_kept: Some(RUNS_KEPT), ..AlertRegistryParts::default() };
    let clock = Arc::new(Manual::at(now, Duration::ZERO));
    WrittenRegistry::beside(&AlertRegistry::of_hub(records, folder.join("key"), clock, about))
}

/// Adds a team with a machine.
async fn machine(book: &WrittenRegistry) {
    let mut change = book.0.begin().await.expect("a change");
    let team = "t".repeat(26);
    teams::add(&mut change, &Team { id: team.clone(), name: "main".into(), settings: "{}".into() })
        .await
        .expect("a team");
    let source = Source {
        id: "node".into(),
        team,
        name: "node".into(),
        labels: "{}".into(),
        state: "active".into(),
        ephemeral: false,
        by_name: None,
        machine: None,
        links: "[]".into(),
        host: None,
        platform: None,
        version: None,
        facts: None,
        first_seen: 1,
        last_seen: None,
    };
    sources::add(&mut change, &source).await.expect("a machine");
    change.commit().await.expect("written");
}

fn placed(ended: Option<i64>) -> PlacedRun {
    let process = RunProcess { source: "node".into(), began: NOW - 9_000, ended, ..RunProcess::default() };
    let run = Run { id: "one".into(), began: NOW - 9_000, ended, processes: vec![process], ..Run::default() };
    PlacedRun { run, machines: [("node".to_string(), None)].into() }
}

fn named(name: &str, version: Option<u64>) -> RunChange {
    RunChange { name: Some(name.into()), version, ..RunChange::default() }
}

#[tokio::test]
async fn of_two_who_change_a_run_at_two_hubs_the_second_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (here, there) = (hub(folder.path()).await, hub(folder.path()).await);
    machine(&here).await;
    let (by, run) = (Principal::local(0), placed(None));
    here.change_run(&by, &run, named("first", Some(0))).await.expect("changed");
    let late = there.change_run(&by, &run, named("second", Some(0))).await;
    assert!(matches!(late, Err(Denied::Conflict(_))), "{late:?}");
    there.change_run(&by, &run, named("second", Some(1))).await.expect("changed");
    let edits = RunEdits::default();
    assert_eq!(here.refresh(&edits).await.ok(), Some((1, 2)), "one row, of the second version");
    let none = DeletedUse::default();
    let running = there.delete_run(&by, &run, &none).await;
    assert!(matches!(running, Err(Denied::Conflict(_))), "{running:?}");
    there.delete_run(&by, &placed(Some(NOW - 1_000)), &none).await.expect("deleted");
    assert_eq!(here.refresh(&edits).await.ok(), Some((1, 3)));
    // Its ID is free again, and the next run has no names of it.
    here.change_run(&by, &run, named("third", Some(0))).await.expect("another run");
    assert_eq!(there.refresh(&edits).await.ok(), Some((2, 4)));
}

#[tokio::test]
async fn of_a_deleted_run_its_use_stays_and_none_of_its_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let book = hub(folder.path()).await;
    machine(&book).await;
    let by = Principal::local(0);
    book.change_run(&by, &placed(None), named("secret", None)).await.expect("changed");
    let days = vec![RunDay { day: 19_675, ..RunDay::default() }];
    let used = DeletedUse { project: Some("vision".into()), user: Some("ada".into()), days };
    book.delete_run(&by, &placed(Some(NOW - 1_000)), &used).await.expect("deleted");
    let mut change = book.0.begin().await.expect("a change");
    let row = run_edits::list(&mut change, "one").await.expect("read").pop().expect("a row");
    assert!(row.deleted.is_some());
    assert_eq!(row.names, "{}");
    let kept: DeletedUse = serde_json::from_str(&row.used.expect("its use")).expect("JSON");
    assert_eq!(kept, used);
    change.commit().await.expect("written");
    let idle = DeletedUse { days: Vec::new(), ..used };
    let run = PlacedRun { run: Run { id: "two".into(), ..placed(Some(NOW)).run }, ..placed(None) };
    book.delete_run(&by, &run, &idle).await.expect("deleted");
    let mut change = book.0.begin().await.expect("a change");
    let row = run_edits::list(&mut change, "two").await.expect("read").pop().expect("a row");
    assert_eq!(row.used, None, "it held no GPU, so nobody has to know whose it was");
}

#[tokio::test]
async fn the_use_of_a_deleted_run_goes_with_the_summaries_of_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let book = hub(folder.path()).await;
    machine(&book).await;
    let days = vec![RunDay { day: 19_675, ..RunDay::default() }];
    let used = DeletedUse { user: Some("ada".into()), days, ..DeletedUse::default() };
    book.delete_run(&Principal::local(0), &placed(Some(NOW - 1_000)), &used).await.expect("deleted");
    for (later, is_kept) in [(RUNS_KEPT - 1_000, true), (RUNS_KEPT, false)] {
        let book = hub_at(folder.path(), NOW + later).await;
        let mut change = book.0.begin().await.expect("a change");
        let row = run_edits::list(&mut change, "one").await.expect("read").pop().expect("it stays deleted");
        assert_eq!((row.used.is_some(), row.deleted), (is_kept, Some(NOW)));
        change.commit().await.expect("written");
    }
}

#[tokio::test]
async fn a_run_of_unknown_machines_is_nobodys() {
    let folder = tempfile::tempdir().expect("a folder");
    let book = hub(folder.path()).await;
    machine(&book).await;
    let none = PlacedRun { machines: Default::default(), ..placed(Some(NOW)) };
    let other = PlacedRun { machines: [("other".to_string(), None)].into(), ..placed(Some(NOW)) };
    for run in [none, other] {
        for by in [Principal::local(0)] {
            assert!(book.change_run(&by, &run, named("x", None)).await.is_err());
            assert!(book.delete_run(&by, &run, &DeletedUse::default()).await.is_err());
        }
    }
}

#[tokio::test]
async fn a_note_of_one_hub_is_read_and_changed_at_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let (here, there) = (hub(folder.path()).await, hub(folder.path()).await);
    machine(&here).await;
    let by = Principal::local(0);
    let name = |key: &str| (key == "node").then(|| "node-1".to_string());
    let subject = NoteSubject { source: "node".into(), run: Some("one".into()) };
    let new = NewNote { text: "new PSU".into(), t: Some(Seconds(NOW - 5_000)), ..NewNote::default() };
    let note = here.add_note(&by, subject, &new, "node-1".into()).await.expect("written");
    let wanted = WantedNotes { span: (0, NOW), ..WantedNotes::default() };
    assert_eq!(there.notes(Some(&by), &wanted, name).await.expect("read").notes, std::slice::from_ref(&note));
    assert_eq!(
        there.notes(Some(&by), &wanted, |_| None).await.expect("read").notes,
        [],
        "who does not see the machine"
    );
    let change = |version| NoteChange { text: "old PSU".into(), version };
    there.change_note(&by, &note.id, &change(1), name).await.expect("changed");
    let late = here.change_note(&by, &note.id, &change(1), name).await;
    assert!(matches!(late, Err(Denied::Conflict(_))), "{late:?}");
    let unseen = here.remove_note(&by, &note.id, |_| None).await;
    assert!(matches!(unseen, Err(Denied::Unknown)), "{unseen:?}");
    // It goes with its run.
    there.delete_run(&by, &placed(Some(NOW - 1_000)), &DeletedUse::default()).await.expect("deleted");
    assert_eq!(here.notes(Some(&by), &wanted, name).await.expect("read").notes, []);
}
