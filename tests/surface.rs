//! The interface that people and programs rely on: none of it disappears unnoticed. Each list in `tests/surface/` has
//! its earlier names; `UPDATE=1 cargo test -p watchglass-tests surface` adds new ones. A name that is removed from a
//! list is no longer supported, and is listed in `CHANGELOG.md`.

use api::Operation;
use std::cell::RefCell;
use std::collections::BTreeSet;
use watchglass_tests::server::{Server, run};
use watchglass_tests::waiting::{until, until_so};

fn listed(name: &str) -> BTreeSet<String> {
    let path = format!("{}/surface/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Whether the list is to be rewritten.
fn updates(name: &str, now: &BTreeSet<String>) -> bool {
    let wanted = std::env::var_os("UPDATE").is_some_and(|v| v == "1");
    if wanted {
        let path = format!("{}/surface/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let all: Vec<&str> = now.iter().map(String::as_str).collect();
        std::fs::write(&path, all.join("\n") + "\n").expect("the list is written");
    }
    wanted
}

#[track_caller]
fn keeps(name: &str, now: BTreeSet<String>) {
    let before = listed(name);
    let missing: Vec<&String> = before.difference(&now).collect();
    assert!(missing.is_empty(), "gone, and others rely on it (tests/surface/{name}.txt): {missing:?}");
    assert!(now.len() > 2, "{now:?}");
    if !updates(name, &now) {
        let new: Vec<&String> = now.difference(&before).collect();
        assert!(new.is_empty(), "new, and in no list yet: UPDATE=1 cargo test -p watchglass-tests surface: {new:?}");
    }
}

/// The same check for names that a running server prints over time. It waits for them, and additional names are not a
/// fault.
#[track_caller]
fn says_all(name: &str, now: impl Fn() -> BTreeSet<String>) {
    let before = listed(name);
    assert!(before.len() > 2, "tests/surface/{name}.txt is empty");
    let missing = RefCell::new(before);
    until_so(&format!("all of tests/surface/{name}.txt"), || {
        let left = &*missing.borrow() - &now();
        if left != *missing.borrow() {
            eprintln!("still missing, and others rely on it: {left:?}");
            *missing.borrow_mut() = left;
        }
        missing.borrow().is_empty()
    });
    updates(name, &(&listed(name) | &now()));
}

// The default of some differs by system.
#[cfg(target_os = "linux")]
#[test]
fn flags_and_keys_stay() {
    let reference = backend::config::reference();
    let (mut table, mut all) = (String::new(), BTreeSet::new());
    for line in reference.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            table =
                heading.strip_prefix("In `").map(|name| format!("{}.", name.trim_end_matches('`'))).unwrap_or_default();
        }
        let columns: Vec<&str> = line.split(" | ").map(|column| column.trim_matches(['|', ' ', '`'])).collect();
        let is_row = columns.len() > 2 && !line.starts_with("| ---");
        match (table.as_str(), &columns[..]) {
            (_, ["flag" | "key" | "collector", ..]) => {}
            ("", [flag, key, ..]) if is_row => {
                all.extend((!flag.is_empty()).then(|| format!("flag {flag}")));
                all.insert(format!("key {key}"));
            }
            ("[collectors.NAME].", [owner, key, ..]) if is_row => {
                all.insert(format!("key collectors.{owner}.{key}"));
            }
            (table, [key, ..]) if is_row => {
                all.insert(format!("key {table}{key}"));
            }
            _ => {}
        }
    }
    keeps("options", all);
}

#[cfg(target_os = "linux")]
#[test]
fn commands_and_their_flags_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(["man", &folder.path().display().to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut all = BTreeSet::new();
    for page in std::fs::read_dir(folder.path()).expect("pages").flatten() {
        let command = page.file_name().to_string_lossy().trim_end_matches(".1").replace('-', " ");
        let text = std::fs::read_to_string(page.path()).expect("a page").replace("\\-", "-");
        for line in text.lines().filter(|line| line.starts_with("\\fB-")) {
            let flags = line.split("\\fB").filter(|part| part.starts_with("--"));
            all.extend(flags.filter_map(|part| Some(format!("{command} {}", part.split('\\').next()?))));
        }
        all.insert(command);
    }
    keeps("commands", all);
}

#[test]
fn paths_stay() {
    let name = |operation: &Operation| format!("{} {}", operation.method().text(), operation.path());
    keeps("paths", Operation::ALL.iter().map(name).collect());
}

#[test]
fn tags_and_their_names_in_prometheus_stay() {
    let rows = include_str!("../docs/reference/metrics.md").lines().filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| {
        let columns: Vec<&str> = row.split(" | ").collect();
        let quoted = |column: &str| column.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        [quoted(columns[0]), columns.last().map(|last| quoted(last)).unwrap_or_default()].concat()
    });
    keeps("tags", names.collect());
}

/// The keys of an answer by their path. Elements of lists share one path.
fn keys(value: &serde_json::Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(all) => {
            for (key, value) in all {
                let at = format!("{at}.{key}");
                // Facts are specific to the machine.
                if !at.ends_with(".facts") {
                    keys(value, &at, into);
                }
                into.insert(at);
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|one| keys(one, &format!("{at}[]"), into)),
        _ => {}
    }
}

#[test]
fn the_shapes_of_answers_and_our_own_counters_stay() {
    let server = Server::start(["demo", "--gpus", "2", "--retention", "10m"]);
    let ask = |path: &str| serde_json::from_str::<serde_json::Value>(&server.get(path, &[]).body).ok();
    until("values", || {
        let current = ask("/api/v1/query?tag=cpu&from=-30s")?;
        current["series"][0]["points"].as_array().is_some_and(|points| points.len() > 2).then_some(())
    });
    let paths = [
        "sources",
        "series",
        "doctor",
        "query?tag=cpu&from=-30s",
        "query?tag=cpu&from=-30s&step=10s",
        "runs",
        "kernels",
        "markers",
    ];
    says_all("shapes", || {
        let mut shapes = BTreeSet::new();
        for path in paths {
            if let Some(answer) = ask(&format!("/api/v1/{path}")) {
                keys(&answer, path, &mut shapes);
            }
        }
        shapes
    });
    says_all("counters", || {
        let metrics = server.get("/metrics", &[]).body;
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
    });
}

#[test]
fn what_the_python_package_offers_stays() {
    let package = include_str!("../notebook/python/watchglass/__init__.py");
    let magics = include_str!("../notebook/python/watchglass/magic.py");
    let quoted = |text: &str| text.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let all = package.lines().find_map(|line| line.strip_prefix("__all__ = ")).expect("__all__");
    let usage = magics.lines().filter(|line| line.trim_start().trim_matches('"').starts_with('%'));
    let mut names: BTreeSet<String> = quoted(all).into_iter().map(|name| format!("watchglass.{name}")).collect();
    names.extend(usage.map(|line| line.split_whitespace().next().unwrap_or_default().trim_matches('"').to_owned()));
    let client = include_str!("../notebook/python/watchglass/client.py");
    let variables = [package, magics, client]
        .into_iter()
        .flat_map(quoted)
        .filter(|word| word.starts_with("WATCHGLASS_") && !word.contains(' '));
    names.extend(variables);
    keeps("python", names);
}

#[test]
fn program_package_and_extension_have_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    let package = include_str!("../notebook/python/watchglass/__init__.py");
    assert!(package.contains(&format!("__version__ = \"{version}\"")));
    let lab: serde_json::Value = serde_json::from_str(include_str!("../notebook/lab/package.json")).expect("JSON");
    assert_eq!(lab["version"], version);
    let changes = include_str!("../CHANGELOG.md");
    let unreleased = format!("The first release will be {version}.");
    assert!(changes.contains(&format!("\n## [{version}]")) || changes.contains(&unreleased));
}
