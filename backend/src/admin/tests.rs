//! Commands as typed, on a data folder without a running hub.

use super::*;
use crate::config::{Command, parse};
use std::ffi::OsString;
use std::path::Path;

fn typed(folder: &Path, line: &str) -> (Config, Administration) {
    let folder = folder.display().to_string();
    let words = ["watchglass"].into_iter().chain(line.split(' ')).chain(["--data-dir", &folder]);
    match parse(words.map(OsString::from), &|_| None, &|_| Err(std::io::ErrorKind::NotFound.into())) {
        Ok(Command::Administer { config, wanted }) => (config, *wanted),
        other => panic!("{line}: {other:?}"),
    }
}

fn done(folder: &Path, line: &str) -> Result<Printed, AdminFailed> {
    let (config, wanted) = typed(folder, line);
    run(&config, &wanted)
}

fn status(folder: &Path, line: &str) -> u8 {
    done(folder, line).expect_err(line).status()
}

#[test]
fn a_hub_is_administered_before_it_runs() {
    let folder = tempfile::tempdir().expect("made");
    let folder = folder.path();
    let none = done(folder, "user list").expect_err("nothing is here");
    assert_eq!(none.status(), 4);
    assert!(!folder.join(team::accounts::FILE).exists(), "a question makes no file");
    let password = folder.join("password");
    std::fs::write(&password, "kiwi lamp under rain\n").expect("written");
    let file = format!("--password-file {}", password.display());
    assert_eq!(done(folder, &format!("user add mara --admin {file}")).expect("made").note, "mara can sign in now.");
    assert_eq!(status(folder, &format!("user add mara {file}")), 1, "there is one");
    done(folder, &format!("user add tom --role member {file}")).expect("made");
    let list = done(folder, "user list").expect("a table").output;
    assert!(list.starts_with("NAME  MAY             STATE   MADE\nmara  hub admin       active"), "{list}");
    assert!(list.contains("\ntom   member of main  active"), "{list}");
    assert_eq!(status(folder, "user remove mara"), 1, "the last admin of the hub stays");
    assert_eq!(status(folder, "user disable nobody"), 1);
    done(folder, "user role tom hub-admin").expect("given");
    done(folder, "user role mara viewer").expect("tom is there");
    done(folder, "user disable mara").expect("disabled");
    done(folder, &format!("user reset mara {file}")).expect("reset");
    let list: Value = serde_json::from_str(&done(folder, "user list --json").expect("JSON").output).expect("JSON");
    assert_eq!((&list["accounts"][0]["disabled"], &list["accounts"][0]["hub_admin"]), (&true.into(), &false.into()));
    done(folder, "user remove mara").expect("removed");
    std::fs::write(&password, "password1234\n").expect("written");
    assert_eq!(status(folder, &format!("user add eve {file}")), 2, "a weak password");
}

#[test]
fn where_no_hub_has_run_nothing_is_made_but_the_first_admin() {
    let own = tempfile::tempdir().expect("made");
    let (empty, missing) = (own.path().join("empty"), own.path().join("missing"));
    std::fs::create_dir(&empty).expect("made");
    let copy = format!("backup {}", own.path().join("copy").display());
    let lines = ["agents join", "key add ci --scope data:read", "agents list", "user invite", "team add vision", &copy];
    for (folder, line) in [&empty, &missing].into_iter().flat_map(|folder| lines.map(|line| (folder, line))) {
        let failed = done(folder, line).expect_err(line);
        let sentence = format!("no hub has ever run with the data folder {}; ", folder.display());
        assert_eq!(failed.status(), 4, "{line}");
        assert!(failed.to_string().starts_with(&sentence), "{line}: {failed}");
    }
    assert_eq!(std::fs::read_dir(&empty).expect("a folder").count(), 0);
    assert_eq!(std::fs::read_dir(own.path()).expect("a folder").count(), 1, "nothing but the empty folder");
}

/// Makes the first admin in a folder, as before the first start of a hub.
fn make_admin(folder: &Path) {
    let password = folder.join("password");
    std::fs::write(&password, "kiwi lamp under rain\n").expect("written");
    done(folder, &format!("user add mara --admin --password-file {}", password.display())).expect("made");
}

#[test]
fn keys_and_join_lines_are_alone_on_standard_output() {
    let folder = tempfile::tempdir().expect("made");
    let folder = folder.path();
    make_admin(folder);
    let key = done(folder, "key add ci --scope data:read,metrics:read --expires 90d").expect("made").output;
    assert!(key.starts_with("wg_s_") && key.lines().count() == 1, "{key}");
    let id = key.split('_').nth(2).expect("its id");
    let list = done(folder, "key list").expect("a table").output;
    assert!(list.contains(id) && list.contains("data:read,metrics:read") && !list.contains(key.trim()), "{list}");
    done(folder, &format!("key remove {id}")).expect("ended");
    assert_eq!(status(folder, &format!("key remove {id}")), 1);
    assert_eq!(status(folder, "key add ci --scope agent:write"), 2);
    let line = done(folder, "agents join --uses 3 --expires 24h --label rack=r12").expect("made").output;
    assert!(line.starts_with("watchglass agent --hub http") && line.contains(" --key wg_j_"), "{line}");
    assert_eq!(line.lines().count(), 1);
    for (line, sentence) in [
        ("agents revoke node-9", "there is no machine \"node-9\"; `watchglass agents list` lists them"),
        ("user remove nobody", "there is no account \"nobody\"; `watchglass user list` lists them"),
    ] {
        let failed = done(folder, line).expect_err(line);
        assert_eq!((failed.status(), failed.to_string().as_str()), (1, sentence), "{line}");
    }
    let made = done(folder, "agents join --expires never").expect("made");
    assert!(made.output.contains("--key-file") && !made.output.contains("wg_j_") && made.note.contains("wg_j_"));
    assert_eq!(status(folder, "agents join --expires tomorrow"), 2);
    assert_eq!(done(folder, "agents list").expect("a table").output, "NAME  STATE  HEARD  HOST  VERSION  LABELS  ID\n");
    for line in ["agents revoke x", "agents approve x", "agents rename x y", "agents label x a=b", "agents remove x"] {
        assert_eq!(status(folder, line), 1, "{line}");
    }
}

#[test]
fn teams_views_links_and_the_log() {
    let folder = tempfile::tempdir().expect("made");
    let folder = folder.path();
    make_admin(folder);
    done(folder, "team add vision").expect("made");
    assert_eq!(status(folder, "team add vision"), 1, "there is one");
    let list = done(folder, "team list").expect("a table").output;
    assert!(list.starts_with("TEAM    MAY    ID\nmain    admin") && list.contains("\nvision  admin"), "{list}");
    done(folder, "team rename vision sight").expect("renamed");
    done(folder, "team set members_invite=true --team sight").expect("set");
    let shown = done(folder, "team show main").expect("two tables").output;
    assert!(
        shown.contains("NAME  MAY    STATE") && shown.contains("mara  admin") && shown.contains("MACHINE"),
        "{shown}"
    );
    let link = done(folder, "user invite --team sight --role member").expect("a link").output;
    assert!(link.starts_with("http://127.0.0.1:7171/#invite=") && link.lines().count() == 1, "{link}");
    assert_eq!(status(folder, "team grant nothing --team sight"), 1);
    assert_eq!(status(folder, "view save ours w=1h"), 2, "there are two teams");
    done(folder, "view save ours w=1h --team main").expect("saved");
    let views = done(folder, "view list --team main").expect("a table").output;
    assert!(views.contains("All nodes") && views.contains("ours") && views.contains("w=1h"), "{views}");
    let id = views
        .lines()
        .find(|line| line.starts_with("ours"))
        .and_then(|line| line.split(' ').next_back())
        .expect("its id");
    assert_eq!(status(folder, &format!("share add {id} --team main")), 1, "there is no machine to show");
    done(folder, &format!("view remove {id}")).expect("removed");
    let log = done(folder, "audit --action team. --limit 10").expect("a table").output;
    assert!(log.starts_with("AT") && log.lines().count() == 4 && log.contains("team.change"), "{log}");
    assert!(!log.contains("kiwi"), "no secret is logged");
    assert_eq!(status(folder, "user leave mara --team sight"), 1, "she is not in it");
    done(folder, "team remove sight").expect("removed");
    assert_eq!(status(folder, "team remove main"), 1, "the last one");
}

#[test]
fn a_copy_of_a_hub_comes_back_in_an_empty_folder() {
    let (folder, other) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
    let (folder, other) = (folder.path(), other.path());
    let password = folder.join("password");
    std::fs::write(&password, "kiwi lamp under rain\n").expect("written");
    assert_eq!(status(folder, "backup copy"), 4, "there is nothing to copy");
    done(folder, &format!("user add mara --admin --password-file {}", password.display())).expect("made");
    let copy = folder.join("copy").display().to_string();
    done(folder, &format!("backup {copy}")).expect("copied");
    assert_eq!(status(folder, &format!("backup {copy}")), 4, "the file exists already");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&copy).expect("the copy").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "for its owner alone");
    }
    assert_eq!(status(other, &format!("restore {}", password.display())), 4, "no copy at all");
    assert_eq!(status(folder, &format!("restore {copy}")), 4, "the folder has a database");
    done(other, &format!("restore {copy}")).expect("back");
    assert!(done(other, "user list").expect("a table").output.contains("mara"));
    assert_eq!(status(other, &format!("backup {copy} --hub http://127.0.0.1:9")), 2);
}

#[test]
fn a_folder_that_another_process_has_is_left_alone() {
    use history::files::{Disk, Files};
    let folder = tempfile::tempdir().expect("made");
    make_admin(folder.path());
    let _held = Disk::new(folder.path()).lock().map_err(|_| "taken").expect("free");
    let failed = done(folder.path(), "key list").expect_err("taken");
    assert_eq!(failed.status(), 1);
    assert!(failed.to_string().contains("control socket does not respond"), "{failed}");
}

#[test]
fn what_is_asked_of_a_hub_elsewhere_needs_a_key() {
    let folder = tempfile::tempdir().expect("made");
    assert_eq!(status(folder.path(), "agents list --hub http://127.0.0.1:9"), 6);
    let key = folder.path().join("key");
    std::fs::write(&key, "wg_s_x_y\n").expect("written");
    let line = format!("agents list --hub http://127.0.0.1:1 --key-file {}", key.display());
    let failed = done(folder.path(), &line).expect_err("nothing listens");
    assert_eq!(failed.status(), 1);
    assert!(failed.to_string().contains("connection refused") && !failed.to_string().contains("wg_s"), "{failed}");
}
