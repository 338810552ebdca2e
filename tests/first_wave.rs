//! Files of the first release stay readable forever: a data folder, a recording and a configuration, made by it and
//! never regenerated. Its own output for them is stored with them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use watchglass_tests::server::{Server, run};
use watchglass_tests::waiting::until_so;

fn fixture(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/first-wave")).join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// The lines of a table in any order, because the order is not part of the promise.
fn lines(csv: &str) -> BTreeSet<&str> {
    csv.lines().collect()
}

/// The first release's output for its folder and its recording.
fn samples() -> String {
    std::fs::read_to_string(fixture("samples.csv")).expect("the list")
}

/// The data folder, as a server keeps it.
fn data() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder for the user alone");
    for file in std::fs::read_dir(fixture("data")).expect("the folder").flatten() {
        std::fs::copy(file.path(), folder.path().join(file.file_name())).expect("copied");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let own = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(folder.path().join(file.file_name()), own).expect("its owner's");
        }
    }
    folder
}

fn exported(folder: &Path) -> String {
    let output = run(["export", "--data-dir", text(folder), "--tag", "*", "--format", "csv"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_data_folder_is_exported_as_it_was() {
    let (exported, samples) = (exported(data().path()), samples());
    assert_eq!(lines(&exported), lines(&samples));
    assert_eq!(exported.lines().count(), samples.lines().count());
}

#[test]
fn a_server_goes_on_with_a_data_folder() {
    let (folder, samples) = (data(), samples());
    let old = lines(&samples);
    let args = ["--retention", "3650d", "--collectors", "memory", "--interval", "100ms", "--data-dir"];
    let server = Server::start(args.into_iter().chain([text(folder.path())]));
    let served = || server.get("/api/v1/export?format=csv&tag=*&from=0", &[]).body;
    until_so("there are new samples", || served().contains(",memory.used,"));
    let now = served();
    assert!(lines(&now).is_superset(&old), "{:?} are missing", old.difference(&lines(&now)));
    let sources = server.get("/api/v1/sources", &[]).body;
    assert!(["\"node-a\"", "\"node-b\""].iter().all(|name| sources.contains(name)), "{sources}");
    drop(server); // by SIGKILL
    let now = exported(folder.path());
    assert!(lines(&now).is_superset(&old) && now.contains(",memory.used,"), "what was written since is behind it");
}

#[test]
fn a_recording_is_replayed_as_it_was() {
    let (server, samples) = (Server::start(["replay", text(&fixture("recording.watchglass"))]), samples());
    let served = server.get("/api/v1/export?format=csv&tag=*&from=0", &[]).body;
    assert_eq!(lines(&served), lines(&samples));
}

/// The keys of a configuration, each with its section.
fn keys(toml: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut keys = BTreeSet::new();
    for line in toml.lines() {
        match line.starts_with('[') {
            true => section = line,
            false => drop(keys.insert(format!("{section} {line}"))),
        }
    }
    keys
}

#[test]
fn a_configuration_means_what_it_meant() {
    for (file, printed) in [("watchglass.toml", "printed.toml"), ("spellings.toml", "spellings-printed.toml")] {
        let output = run(["--print-config", "--config", text(&fixture(file))]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = std::fs::read_to_string(fixture(printed)).expect("the list");
        let now = keys(&String::from_utf8_lossy(&output.stdout));
        // New keys may be added.
        let missing: Vec<String> = keys(&printed).into_iter().filter(|key| !now.contains(key)).collect();
        assert!(missing.is_empty(), "{file}: {missing:#?}");
    }
}
