//! Files for a forge and for rustup: they run the commands that exist, with the compiler that the manifest names.

use crate::deploy::yaml::documents;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A file of the repository.
fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn workflow(name: &str) -> Value {
    let [workflow] = <[Value; 1]>::try_from(documents(&at(".github/workflows").join(name))).expect("one document");
    workflow
}

/// The commands of a job, in their order.
fn commands(workflow: &Value, job: &str) -> Vec<String> {
    let steps = workflow["jobs"][job]["steps"].as_array().unwrap_or_else(|| panic!("no job {job}"));
    steps.iter().filter_map(|step| step["run"].as_str().map(str::to_owned)).collect()
}

#[test]
fn workflows_run_all_checks_and_may_change_nothing() {
    let (check, update) = (workflow("check.yml"), workflow("update.yml"));
    for workflow in [&check, &update] {
        assert_eq!(workflow["permissions"], serde_json::json!({ "contents": "read" }));
        for (name, job) in workflow["jobs"].as_object().expect("jobs") {
            assert!(job["timeout-minutes"].as_str().is_some_and(|most| most.parse::<u32>().is_ok()), "{name}");
            assert!(job.get("permissions").is_none(), "{name} asks for more");
            for step in job["steps"].as_array().expect("steps") {
                let keeps = &step["with"]["persist-credentials"];
                assert!(!step["uses"].as_str().is_some_and(|uses| uses.contains("checkout")) || keeps == "false");
                assert!(!step.to_string().contains("secrets."), "{name} has no secret: it publishes nothing");
            }
        }
    }
    assert_eq!(commands(&check, "check"), [".ci/run"]);
    assert_eq!(commands(&update, "update"), ["cargo update", ".ci/run"]);
    let release = &check["jobs"]["release"];
    assert_eq!((&release["needs"], &release["if"]), (&"check".into(), &"startsWith(github.ref, 'refs/tags/v')".into()));
    let [command] = &commands(&check, "release")[..] else { panic!("one command") };
    assert!(command.starts_with("cargo xtask release \"${GITHUB_REF_NAME#v}\" --forge "), "{command}");
    assert!(at(".ci/run").is_file());
}

#[test]
fn the_compiler_of_rustup_is_that_of_the_manifest() {
    let read = |path: &str| std::fs::read_to_string(at(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let named = |text: &str, key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
        value.unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    let (channel, oldest) =
        (named(&read("rust-toolchain.toml"), "channel"), named(&read("Cargo.toml"), "rust-version"));
    assert!(channel.starts_with(&format!("{oldest}.")), "{channel} is not a {oldest}");
}
