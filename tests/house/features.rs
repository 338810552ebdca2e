//! The same features in each build: a crate that was compiled for all packages is not recompiled for the tests of one.

use std::collections::BTreeSet;
use std::process::Command;

/// The page is built only for browsers, so it is excluded from all packages.
const ALL: [&str; 3] = ["--workspace", "--exclude", "watchglass-frontend"];

/// Crates of a build, each as `NAME VERSION|FEATURE,FEATURE`.
type Crates = BTreeSet<String>;

/// The crates that cargo would compile for a selection of packages: for tests, or only for the programs.
#[allow(clippy::disallowed_methods, reason = "cargo, in tests only")]
fn crates(packages: &[&str], tests: bool) -> Crates {
    let edges = if tests { "normal,build,dev" } else { "normal,build" };
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p}|{f}", "--edges", edges]);
    let out = tree.args(packages).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    listed(&String::from_utf8_lossy(&out.stdout))
}

/// Parses the output of `cargo tree`, without its marks for repeated entries.
fn listed(text: &str) -> Crates {
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.filter(|line| !line.is_empty()).map(String::from).collect()
}

/// Crates that were compiled before only with other features, and so are compiled twice.
fn twice(now: &Crates, before: &Crates) -> Vec<String> {
    let name = |line: &str| line.split('|').next().unwrap_or_default().to_string();
    let features = |line: &str| -> BTreeSet<String> {
        line.split('|').nth(1).unwrap_or_default().split(',').filter(|f| !f.is_empty()).map(String::from).collect()
    };
    let fault = |line: &String| {
        let same: Vec<&String> = before.iter().filter(|other| name(other) == name(line)).collect();
        let (own, there) = (features(line), same.iter().flat_map(|other| features(other)).collect::<BTreeSet<_>>());
        let lacks: Vec<&String> = there.difference(&own).collect();
        let has: Vec<&String> = own.difference(&there).collect();
        (!same.is_empty()).then(|| format!("{} lacks {lacks:?}, and alone has {has:?}", name(line)))
    };
    now.difference(before).filter_map(fault).collect()
}

/// The packages that have tests, by their manifests.
fn members(manifest: &str) -> Vec<String> {
    let (_, list) = manifest.split_once("members = [").expect("the workspace has members");
    let list = list.split(']').next().unwrap_or_default();
    let folders = list.split(',').map(|folder| folder.trim().trim_matches('"'));
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let name = |folder: &str| {
        let text = std::fs::read_to_string(root.join(folder).join("Cargo.toml")).expect("a member has a manifest");
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"').map(String::from));
        let has_tests = !text.contains("test = false") || text.contains("[[test]]");
        has_tests.then(|| name.expect("a package has a name"))
    };
    folders.filter_map(name).collect()
}

#[test]
fn tests_of_one_package_compile_nothing_that_is_there() {
    let manifest = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")).expect("it is there");
    let members = members(&manifest);
    assert!(members.len() > 12 && members.contains(&"watchglass-shared".into()), "{members:?}");
    let whole = crates(&ALL, true);
    let told = std::thread::scope(|scope| {
        // Each start of cargo takes a sixth of a second.
        let whole = &whole;
        let ask = move |name: &String| twice(&crates(&["--package", name], true), whole);
        let asked: Vec<_> = members.iter().map(|name| (name, scope.spawn(move || ask(name)))).collect();
        asked.into_iter().map(|(name, faults)| (name, faults.join().expect("cargo tells"))).collect::<Vec<_>>()
    });
    let faults = told.iter().flat_map(|(name, faults)| faults.iter().map(move |fault| format!("{name}: {fault}")));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "write these into tests/features/base or tests/features:\n{}", faults.join("\n"));
}

#[test]
fn the_benches_compile_nothing_that_the_binary_has() {
    let (binary, benches) =
        (crates(&["--package", "watchglass"], false), crates(&["--package", "watchglass-tests"], false));
    let faults = twice(&benches, &binary);
    assert!(faults.is_empty(), "write these beside `rustix` in the root Cargo.toml:\n{}", faults.join("\n"));
}

#[test]
fn the_page_is_in_no_build_for_this_machine() {
    let whole = crates(&ALL, true);
    let named = |name: &str| whole.iter().any(|line| line.starts_with(&format!("{name} v")));
    assert!(named("serde") && !named("leptos") && !named("wasm-bindgen") && !named("web-sys"));
}

#[test]
fn a_planted_feature_is_caught() {
    let whole = listed("a v1.0.0|std\nb v2.0.0|std,sync\nb v2.0.0|std (*)\nc v1.0.0|\n");
    assert_eq!(twice(&listed("a v1.0.0|std (*)\nb v2.0.0|std\n\nc v1.0.0|\nd v1.0.0|\n"), &whole), [""; 0]);
    assert_eq!(twice(&listed("b v2.0.0|\n"), &whole), ["b v2.0.0 lacks [\"std\", \"sync\"], and alone has []"]);
    assert_eq!(twice(&listed("b v2.0.0|net,std,sync\n"), &whole), ["b v2.0.0 lacks [], and alone has [\"net\"]"]);
}
