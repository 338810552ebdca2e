//! Units, manifests and scripts in `deploy/` use only flags and keys that the program accepts.

mod helm;
mod kubernetes;
pub mod yaml;

use serde_json::Value;
use std::path::{Path, PathBuf};
use watchglass_tests::programs;
use watchglass_tests::server::{binary, run};

/// A file or folder of `deploy/`.
fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Texts of a list.
fn texts(list: &Value) -> Vec<&str> {
    list.as_array().map(|all| all.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// Checks that the program accepts a command line. The configuration file is checked separately. Placeholders of
/// systemd, Kubernetes or a shell count as words.
///
/// # Panics
/// Panics when it does not.
fn takes(place: &str, words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("a plain path");
    let mut args: Vec<String> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            // Each action has its own line in the help.
            "--status" => assert!(help(words[0]).contains("--status"), "{place}"),
            "--config" => drop(rest.next()),
            // The default for a variable that is not set.
            word if word.contains(":-") => {
                let (before, rest) = word.split_once("${").expect("a variable");
                let (default, after) =
                    rest.split_once(":-").and_then(|(_, rest)| rest.split_once('}')).expect("its end");
                args.push(format!("{before}{default}{after}"));
            }
            word => args.push(word.replace("%S", data).replace(['$', '{', '}'], "")),
        }
    }
    if !args.iter().any(|arg| arg == "--hub") && args[0] == "agent" {
        args.extend(["--hub".into(), "https://watch.example.org".into()]);
    }
    let output = run(args.iter().map(String::as_str).chain(["--print-config"]));
    assert!(output.status.success(), "{place}: {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn help(command: &str) -> String {
    String::from_utf8(run([command, "--help"]).stdout).expect("text")
}

/// Checks that the program accepts a configuration: every key and every value in it.
///
/// # Panics
/// Panics when it does not.
fn reads(place: &str, mode: &str, text: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("watchglass.toml");
    std::fs::write(&file, text).expect("written");
    let output = run([mode, "--config", file.to_str().expect("a plain path"), "--print-config"]);
    assert!(output.status.success(), "{place}: {}", String::from_utf8_lossy(&output.stderr));
}

const UNITS: [&str; 4] =
    ["watchglass.service", "watchglass-user.service", "watchglass-hub.service", "watchglass-agent.service"];

/// The value of a key of a unit.
fn value<'a>(unit: &'a str, key: &str) -> Option<&'a str> {
    unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

#[test]
fn units_start_what_the_program_knows_and_take_nothing_from_a_monitor() {
    for name in UNITS {
        let unit = read(&at("systemd").join(name));
        let command = value(&unit, "ExecStart").expect("a command");
        let words: Vec<&str> = command.strip_prefix("/usr/bin/watchglass ").expect("our program").split(' ').collect();
        takes(name, &words);
        // A filter ends a program that makes another call: socket_group of [runs] needs this one.
        let (denied, allowed) = ("SystemCallFilter=~@privileged @resources\n", "SystemCallFilter=fchownat\n");
        let order = unit.find(denied).zip(unit.find(allowed)).map(|(denied, allowed)| denied < allowed);
        assert_eq!(order, Some(true), "{name}: socket_group would end it");
        for key in ["ProtectProc", "ProcSubset", "PrivateDevices"] {
            assert_eq!(value(&unit, key), None, "{name}: what it measures");
        }
        if name != "watchglass-user.service" {
            assert_eq!(value(&unit, "NoNewPrivileges"), Some("yes"), "{name}");
            assert_eq!(value(&unit, "ProtectSystem"), Some("strict"), "{name}");
            assert!(value(&unit, "StateDirectory").is_some(), "{name} writes nowhere else");
            // MIG has nodes of its own, and neuron-monitor opens those of Trainium.
            for devices in ["char-nvidia rw", "char-nvidia-caps rw", "char-neuron rw", "char-drm rw"] {
                assert!(unit.contains(&format!("\nDeviceAllow={devices}\n")), "{name}: {devices}");
            }
        }
    }
    // The user unit has all settings of the system unit that need no namespace.
    let (system, own) = (read(&at("systemd/watchglass.service")), read(&at("systemd/watchglass-user.service")));
    let keeps = ["NoNewPrivileges=", "Restrict", "Lock", "Memory", "SystemCall", "UMask="];
    for line in system.lines().filter(|line| keeps.iter().any(|key| line.starts_with(key)) && !line.contains("Restart"))
    {
        assert!(own.lines().any(|own| own == line), "watchglass-user.service has no {line}");
    }
    assert!(!own.contains("\nProtect") && !own.contains("\nPrivate"), "others' processes would be nobody's");
    let hub = read(&at("systemd/watchglass-hub.service"));
    assert_eq!(value(&hub, "TimeoutStopSec"), Some("20s"), "it takes up to 15 s to let go of its agents");
    let agent = read(&at("systemd/watchglass-agent.service"));
    assert!(agent.contains("LoadCredential=key:") && agent.contains("WATCHGLASS_KEY_FILE=%d/key"), "no key in a unit");
}

#[test]
#[ignore = "needs systemd-analyze"]
fn with_systemd_analyze_units_are_sound_and_hardened() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in UNITS {
        // systemd-analyze looks for the program at the path in the unit.
        let text = read(&at("systemd").join(name)).replace("/usr/bin/watchglass", binary().to_str().expect("plain"));
        let unit = folder.path().join(name);
        std::fs::write(&unit, text).expect("written");
        let path = unit.to_str().expect("a plain path");
        let output = programs::run("systemd-analyze", &["verify", path], "");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{name}: {said}");
        if name != "watchglass-user.service" {
            let level = ["security", "--offline=true", "--no-pager", "--threshold=20", path];
            let output = programs::run("systemd-analyze", &level, "");
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

#[test]
fn the_container_of_one_machine_is_started_with_flags_that_are_known() {
    let [compose] = &yaml::documents(&at("compose/compose.yaml"))[..] else { panic!("one document") };
    let services = compose["services"].as_object().expect("services");
    for (name, service) in services {
        takes(name, &texts(&service["command"]));
        // Nothing is published, so a default would be asked of a public registry.
        let image = service["image"].as_str().expect("a name");
        assert!(image.starts_with("${WATCHGLASS_IMAGE:?"), "{image}: the image that was loaded");
        let named: Vec<&String> = compose["volumes"].as_object().expect("volumes").keys().collect();
        for volume in texts(&service["volumes"]) {
            let (from, to) = volume.split_once(':').expect("from and to");
            assert!(from.starts_with('/') || named.iter().any(|name| *name == from), "{volume}");
            assert!(to == "/data" || to.ends_with(":ro"), "{volume}: it writes to its data alone");
        }
        assert_eq!((service["read_only"].as_str(), texts(&service["cap_drop"])), (Some("true"), vec!["ALL"]));
    }
}

#[test]
#[ignore = "needs bash"]
fn with_bash_the_script_for_slurm_is_one() {
    let script = at("slurm/agent.sbatch");
    let output = programs::run("bash", &["-n", script.to_str().expect("a plain path")], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_agent_of_a_job_is_started_with_flags_that_are_known() {
    let text = read(&at("slurm/agent.sbatch"));
    let line = text.lines().find_map(|line| line.trim().strip_prefix("'exec watchglass ")).expect("the agent's line");
    let command = line.split('\'').next().expect("its words").replace('"', "");
    takes("agent.sbatch", &command.split(' ').collect::<Vec<_>>());
}

#[test]
fn what_the_page_says_is_there_and_its_configuration_is_read() {
    let page = read(&at("README.md"));
    for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(at(link).exists(), "{link}");
    }
    for block in page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        reads("README.md", "hub", block);
    }
    // Its administration commands are valid, too.
    for command in page.split("watchglass agents join").skip(1) {
        let flags =
            command.split(['`', '\n']).next().unwrap_or_default().split(' ').filter(|word| word.starts_with("--"));
        let known = String::from_utf8(run(["agents", "join", "--help"]).stdout).expect("text");
        flags.for_each(|flag| assert!(known.contains(flag), "{flag}"));
    }
}
