//! Life cycles of agents: a wiped folder, a copied folder, a revoked key, a hub that loses data, a wrong clock. Each
//! sample is at the hub once.

use std::path::Path;
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::audit::Audit;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::server::watchglass;

/// Identity of a machine, below a folder: its id, its network card, its boot.
fn root(folder: &Path, boot: &str) -> String {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    write("proc/sys/kernel/random/boot_id", &format!("{boot}-0000-1111-2222-333344445555\n"));
    write("sys/class/net/eth0/address", "52:54:00:12:34:56\n");
    write("sys/class/net/eth0/device/uevent", "");
    folder.display().to_string()
}

#[track_caller]
fn sound(audit: &Audit) {
    assert!(audit.sound(), "lost {:?}, doubled {:?}, wrong {:?}", audit.lost, audit.doubled, audit.wrong);
    assert!(audit.stored > 15, "{} samples, and each test waits for more", audit.stored);
}

/// A fleet whose agent is identified by its machine, or by its name in a container.
fn known(name: &str) -> Fleet {
    let mut fleet = Fleet::hub(&[]);
    fleet.key = fleet.join_line(&["--by-name", "--uses", "9"]);
    let root = root(&fleet.folder().join("root"), "0d1e2f3a");
    fleet.agent_args = ["--name", name, "--root", &root].map(String::from).to_vec();
    fleet.start_agent();
    fleet.grows("samples come");
    fleet
}

#[test]
fn a_machine_whose_folder_was_wiped_is_the_same_and_goes_on_above_what_the_hub_has() {
    let mut fleet = known("node-7");
    let before = fleet.machines();
    fleet.lose_agent();
    fleet.agent_forgets();
    std::fs::remove_dir_all(fleet.agent_folder()).expect("it was there");
    fleet.start_agent();
    fleet.grows("samples come again");
    let after = fleet.machines();
    assert_eq!((before.len(), after.len()), (1, 1), "{after:?}");
    assert_eq!((&before[0].id, before[0].name.as_str()), (&after[0].id, after[0].name.as_str()));
    assert_ne!(before[0].key, after[0].key, "the old key was replaced");
    sound(&fleet.settle());
}

/// A copy of an agent's folder, as on a cloned disk.
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copied(&path, &to),
            // A file that is replaced or removed meanwhile is not copied, nor is a socket.
            Ok(kind) if kind.is_file() => drop(std::fs::copy(&path, &to)),
            _ => {}
        }
    }
}

#[test]
fn of_a_cloned_folder_the_second_is_refused_or_becomes_a_machine_of_its_own() {
    let fleet = known("node-7");
    let start = |name: &str, key: bool| {
        let folder = fleet.folder().join(name);
        copied(fleet.agent_folder(), &folder);
        let root = root(&fleet.folder().join(format!("{name}-root")), "ffffffff");
        let mut command = match key {
            true => agent::command(&fleet.url, &fleet.key, &folder),
            false => {
                let mut command = watchglass(["agent", "--hub", &fleet.url, "--data-dir"]);
                command.arg(&folder);
                command
            }
        };
        command.args(["--collectors", "cpu", "--name", "node-7", "--root", &root]);
        Agent::start(command)
    };
    let keyless = start("keyless", false);
    keyless.says("--new-identity");
    let other = start("other", true);
    other.says("as node-7-2");
    fleet.grows("the first goes on");
    assert_eq!(fleet.machines().len(), 2);
    sound(&fleet.settle());
}

#[test]
fn a_machine_that_was_revoked_samples_on_and_comes_back_by_a_line_of_its_own() {
    let mut fleet = Fleet::hub(&[]);
    fleet.start_agent();
    fleet.grows("samples come");
    let name = fleet.machines()[0].name.clone();
    fleet.administer(&["agents", "revoke", &name]);
    fleet.agent().says("revoked");
    fleet.samples_on(30);
    // Its old join line does not admit it any more, and neither does another machine's.
    fleet.kill_agent();
    fleet.key = fleet.join_line(&["--as", &name]);
    fleet.start_agent();
    fleet.grows("samples come again");
    let machines = fleet.machines();
    assert!(machines.len() == 1 && machines[0].name == name && machines[0].state != "revoked", "{machines:?}");
    sound(&fleet.settle());
}

#[test]
fn a_machine_that_is_removed_is_gone_from_the_running_hub_and_samples_on_for_itself() {
    let mut fleet = Fleet::with_people();
    let key = format!("Authorization: Bearer {}", fleet.keys["data"]);
    fleet.key = fleet.join_line(&["--uses", "1"]);
    fleet.agent_args = ["--name", "node-7"].map(String::from).to_vec();
    fleet.start_agent();
    fleet.grows("samples come");
    let find = |fleet: &Fleet| fleet.machines().into_iter().find(|machine| machine.name == "node-7");
    let id = find(&fleet).expect("it has joined").id;
    let samples = |fleet: &Fleet, of: &str| {
        let path = format!("/api/v1/export?format=csv&tag=openmetrics.books.*&from=-1h&source={of}");
        fleet.server().get(&path, &[&key])
    };
    assert_eq!(samples(&fleet, "node-7").status, 200);
    fleet.administer(&["agents", "remove", "node-7"]);
    fleet.until("it is hidden", || {
        let sources = fleet.server().get("/api/v1/sources", &[&key]).body;
        let there = ["node-7", &id].iter().any(|of| samples(&fleet, of).status == 200);
        (!there && !sources.contains(&id)).then_some(())
    });
    assert!(find(&fleet).is_none(), "it is in no list");
    // Its join line admits only one machine, so the agent is rejected as unknown, and keeps sampling.
    fleet.agent().says("was removed");
    fleet.samples_on(30);
    // A restart does not restore any of it.
    fleet.kill_hub();
    fleet.start_hub();
    assert_ne!(samples(&fleet, &id).status, 200);
    assert!(!fleet.server().get("/api/v1/sources", &[&key]).body.contains(&id));
    // With a line of its own it joins as another machine, from its new life on. The removed data does not come back.
    fleet.kill_agent();
    fleet.key = fleet.join_line(&["--uses", "1"]);
    fleet.start_agent();
    let new = |machine: &shared::session::Agent| machine.name.starts_with("node-7") && machine.id != id;
    let again = fleet.until("it has joined anew", || fleet.machines().into_iter().find(new));
    fleet.until("samples come again", || (samples(&fleet, &again.id).status == 200).then_some(()));
    assert_ne!(samples(&fleet, &id).status, 200);
}

#[test]
fn a_hub_that_was_restored_from_before_a_machine_joined_lets_it_join_anew() {
    let mut fleet = Fleet::hub(&[]);
    fleet.key = fleet.join_line(&["--uses", "9"]);
    fleet.kill_hub();
    let backup = fleet.folder().join("backup");
    let database = |from: &Path, to: &Path| {
        std::fs::create_dir_all(to).expect("made");
        for file in ["hub.db", "hub.db-wal", "hub.db-shm"] {
            // The two others exist only while they have content.
            let _ = std::fs::remove_file(to.join(file));
            let _ = std::fs::copy(from.join(file), to.join(file));
        }
        assert!(to.join("hub.db").is_file());
    };
    database(fleet.hub_folder(), &backup);
    fleet.start_hub();
    fleet.start_agent();
    fleet.grows("samples come");
    fleet.kill_hub();
    database(&backup, fleet.hub_folder());
    fleet.start_hub();
    fleet.agent().says("it joins again with its join key");
    fleet.grows("samples come again");
    assert_eq!(fleet.machines().len(), 1);
    fleet.until("the hub has all that the agent has", || fleet.lacks().is_empty().then_some(()));
}

#[test]
fn a_machine_that_was_removed_is_removed_again_when_an_older_database_is_back() {
    let mut fleet = Fleet::with_people();
    fleet.key = fleet.join_line(&["--uses", "1"]);
    fleet.agent_args = ["--name", "node-7"].map(String::from).to_vec();
    fleet.start_agent();
    fleet.grows("samples come");
    let id = fleet.machines().into_iter().find(|machine| machine.name == "node-7").expect("it has joined").id;
    fleet.kill_agent();
    let copy = fleet.folder().join("copy.db");
    fleet.administer(&["backup", &copy.display().to_string()]);
    fleet.administer(&["agents", "remove", "node-7"]);
    let list = fleet.hub_folder().join("removed-machines");
    fleet.until("it is written down", || {
        std::fs::read_to_string(&list).ok().filter(|list| list.contains(&id)).map(drop)
    });
    fleet.kill_hub();
    for file in ["hub.db", "hub.db-wal", "hub.db-shm"] {
        let _ = std::fs::remove_file(fleet.hub_folder().join(file));
    }
    let mut restore = watchglass(["restore", &copy.display().to_string(), "--data-dir"]);
    let restored = restore.arg(fleet.hub_folder()).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&restored.stderr);
    assert!(restored.status.success(), "{said}");
    assert!(said.contains("removed-machines") && said.contains("Erase people again"), "{said}");
    fleet.start_hub();
    assert!(fleet.machines().iter().all(|machine| machine.id != id), "{:?}", fleet.machines());
    let key = format!("Authorization: Bearer {}", fleet.keys["data"]);
    assert!(!fleet.server().get("/api/v1/sources", &[&key]).body.contains(&id));
}

#[cfg(target_os = "linux")]
mod clock {
    use super::sound;
    use fake_clock::FakeClock;
    use watchglass_tests::fleet::Fleet;
    use watchglass_tests::server::watchglass;

    const HOUR: i64 = 3_600_000;
    /// Maximum error of timestamps with an unsynchronized clock, and maximum duration of a test, ms.
    const LONG_MS: i64 = 600_000;

    /// A fleet whose agent has a clock of its own, this many ms ahead.
    fn ahead(ms: i64) -> (Fleet, FakeClock) {
        let mut fleet = Fleet::hub(&[]);
        let clock = FakeClock::new(fleet.folder());
        clock.set_ahead(ms);
        fleet.agent_env = clock.environment();
        fleet.start_agent();
        (fleet, clock)
    }

    /// The hub's samples have current timestamps, regardless of the agent's clock.
    #[track_caller]
    fn in_place(fleet: &Fleet) {
        use stream::clock::{Clock, System};
        let (now, (first, last)) = (System.wall(), fleet.span());
        assert!(now - LONG_MS < first && last < now + 5_000, "{} to {} ms from now", first - now, last - now);
    }

    #[test]
    fn doctor_says_by_how_much_a_clock_is_off() {
        for (off, way) in [(HOUR, " s ahead of the hub's"), (-HOUR, " s behind the hub's")] {
            let (fleet, _clock) = ahead(off);
            fleet.grows("samples come");
            let mut command =
                watchglass(["doctor", "--json", "--collectors", "cpu", "--hub", &fleet.url, "--data-dir"]);
            let output = command.arg(fleet.agent_folder()).envs(fleet.agent_env.clone()).output().expect("it starts");
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let steps = told["hubs"][0]["steps"].as_array().expect("steps");
            let clock = steps.iter().find(|step| step["step"] == "clock").expect("it is looked at");
            let why = clock["reason"].as_str().expect("it is wrong");
            let seconds = why.split(' ').find_map(|word| word.parse::<i64>().ok());
            assert!(why.contains(way) && seconds.is_some_and(|s| (s - HOUR / 1_000).abs() < 60), "{why}");
            assert_eq!(output.status.code(), Some(1), "{told}");
        }
    }

    #[test]
    fn a_clock_that_is_an_hour_off_is_corrected_and_no_sample_is_lost() {
        for off in [HOUR, -HOUR] {
            let (fleet, _clock) = ahead(off);
            fleet.grows("samples come");
            sound(&fleet.settle_corrected());
            in_place(&fleet);
        }
    }

    #[test]
    fn a_clock_that_is_set_while_the_link_is_cut_is_corrected_before_and_behind_the_step() {
        for by in [HOUR, -HOUR] {
            let (fleet, clock) = ahead(0);
            fleet.grows("samples come");
            fleet.cutter.close();
            fleet.samples_on(20);
            clock.set_ahead(by);
            fleet.samples_on(20);
            fleet.cutter.pass();
            fleet.grows("samples come again");
            let audit = fleet.settle_corrected();
            in_place(&fleet);
            sound(&audit);
        }
    }
}

/// Retention of each machine at the hub, seconds.
fn retention(fleet: &Fleet, key: &str, name: &str) -> Option<f64> {
    let told = fleet.server().get("/api/v1/sources", &[key]);
    let told: serde_json::Value = serde_json::from_str(&told.body).expect("JSON");
    told["sources"].as_array()?.iter().find(|source| source["name"] == name)?["retention"].as_f64()
}

#[test]
fn machines_are_kept_as_long_as_the_labels_say_that_an_admin_gave_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hub.toml");
    let rules = "[[agents.keep]]\nmatch = { tier = \"gpu\" }\nretention = \"30d\"\n\
                 [[agents.keep]]\nmatch = { tier = \"test\" }\nretention = \"1h\"\n";
    std::fs::write(&file, rules).expect("written");
    let mut fleet = Fleet::hub(&["--config", file.to_str().expect("a plain path")]);
    let key = fleet.administer(&["key", "add", "reader", "--scope", "data:read"]);
    let key = format!("Authorization: Bearer {}", key.trim());
    fleet.key = fleet.join_line(&["--uses", "1", "--label", "tier=gpu"]);
    // Its own claims are ignored.
    fleet.agent_args = ["--name", "node-7", "--label", "tier=test"].map(String::from).to_vec();
    fleet.start_agent();
    fleet.grows("samples come");
    let kept = |fleet: &Fleet, seconds: f64| {
        fleet.until("it is kept so long", || (retention(fleet, &key, "node-7") == Some(seconds)).then_some(()));
    };
    kept(&fleet, 30.0 * 86_400.0);
    fleet.administer(&["agents", "label", "node-7", "tier=test"]);
    kept(&fleet, 3_600.0);
    fleet.administer(&["agents", "label", "node-7", "rack=r1"]);
    kept(&fleet, 12.0 * 3_600.0);
    fleet.administer(&["agents", "label", "node-7", "tier=gpu"]);
    kept(&fleet, 30.0 * 86_400.0);
    fleet.kill_hub();
    fleet.start_hub();
    fleet.grows("samples come again");
    kept(&fleet, 30.0 * 86_400.0);
    sound(&fleet.settle());
}

#[test]
fn a_machine_that_is_renamed_while_it_is_linked_has_its_new_name_at_once_and_is_found_by_both() {
    let mut fleet = Fleet::hub(&[]);
    let key = fleet.administer(&["key", "add", "reader", "--scope", "data:read"]);
    let key = format!("Authorization: Bearer {}", key.trim());
    fleet.key = fleet.join_line(&["--uses", "1"]);
    fleet.agent_args = ["--name", "node-7"].map(String::from).to_vec();
    fleet.start_agent();
    fleet.grows("samples come");
    fleet.administer(&["agents", "rename", "node-7", "gpu-7"]);
    let told = || {
        let told: serde_json::Value =
            serde_json::from_str(&fleet.server().get("/api/v1/sources", &[&key]).body).expect("JSON");
        told["sources"].as_array().and_then(|all| all.first().cloned()).unwrap_or_default()
    };
    fleet.administer(&["agents", "label", "gpu-7", "rack=r1"]);
    fleet.until("its new name", || (told()["name"] == "gpu-7").then_some(()));
    fleet.until("its label", || (told()["labels"]["rack"] == "r1").then_some(()));
    let host = told()["host"].clone();
    assert!(host.as_str().is_some_and(|host| !host.is_empty() && host != "gpu-7"), "what it calls itself: {host}");
    for (name, status) in [("gpu-7", 200), ("node-7", 200), ("node-8", 404)] {
        let path = format!("/api/v1/query?tag=openmetrics.books.*&from=-1h&source={name}");
        assert_eq!(fleet.server().get(&path, &[&key]).status, status, "{name}");
    }
    fleet.samples_on(20);
    sound(&fleet.settle());
}
