//! No circles: of two files of a package, or two rooms, only one may name the other. A parent and the modules below it
//! are one unit and may name each other.

use super::source::{Source, is_word_char};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Modules, and the modules that each of them names.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Source folders of all packages from Cargo's metadata, relative to the root of the tree.
#[allow(clippy::disallowed_methods, reason = "cargo, in tests only")]
pub fn folders() -> BTreeSet<String> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--offline", "--locked", "--no-deps", "--format-version", "1"]);
    let out = metadata.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    named(&serde_json::from_slice(&out.stdout).expect("cargo prints JSON"))
}

/// The folder of each library and program of these packages. A program in a single file (`src/bin/x.rs`) has no folder
/// of its own.
pub fn named(metadata: &Value) -> BTreeSet<String> {
    let root = metadata["workspace_root"].as_str().expect("a workspace has a root");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let targets = list(&metadata["packages"]).into_iter().flat_map(|package| list(&package["targets"]));
    let folder = |target: Value| {
        let of = |kind: &str| list(&target["kind"]).iter().any(|own| own == kind);
        let path = Path::new(target["src_path"].as_str()?);
        let is_root = path.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs");
        let is_ours = is_root && !of("test") && !of("bench") && !of("example") && !of("custom-build");
        let folder = path.parent()?.strip_prefix(root).ok()?.to_str()?;
        is_ours.then(|| folder.replace('\\', "/"))
    };
    targets.filter_map(folder).collect()
}

/// Circles between the files of a folder, and between its rooms.
pub fn circles(sources: &[Source], folders: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for folder in folders {
        let files = files(sources, folder);
        let rooms = rooms(&files);
        for graph in [files, rooms] {
            faults.extend(circle(&graph).map(|names| format!("{folder}: {} is a circle", names.join(" -> "))));
        }
    }
    faults
}

/// The module of a file: `http::stream` of `http/stream/mod.rs`. None for a file that assembles a package, is a
/// program, or contains only tests.
fn module(path: &str, folder: &str) -> Option<String> {
    let inner = path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    let root = ["lib", "main"].contains(&inner) || inner.starts_with("bin/");
    let tests = inner.split('/').any(|part| part == "tests") || inner.ends_with("_tests");
    (!root && !tests).then(|| inner.replace('/', "::"))
}

fn files(sources: &[Source], folder: &str) -> Graph {
    let own = || sources.iter().filter_map(|s| Some((s, module(&s.path, folder)?)));
    let modules: BTreeSet<String> = own().map(|(_, module)| module).collect();
    let mut graph = Graph::new();
    for (source, from) in own() {
        let named = graph.entry(from.clone()).or_default();
        for path in paths(&source.code) {
            let to = resolve(&from, &path, &modules).filter(|to| !kin(&from, to));
            named.extend(to);
        }
    }
    graph
}

/// The same graph between the rooms, which are the direct children of the folder.
fn rooms(files: &Graph) -> Graph {
    let room = |module: &str| module.split("::").next().unwrap_or_default().to_string();
    let mut graph = Graph::new();
    for (from, named) in files {
        let from = room(from);
        let named = named.iter().map(|to| room(to)).filter(|to| *to != from);
        graph.entry(from.clone()).or_default().extend(named.collect::<Vec<_>>());
    }
    graph
}

/// Whether one is below the other.
fn kin(a: &str, b: &str) -> bool {
    let below = |a: &str, b: &str| a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with("::"));
    below(a, b) || below(b, a)
}

/// The module that a path names, seen from another: the longest prefix of it that is a file.
fn resolve(from: &str, path: &[&str], modules: &BTreeSet<String>) -> Option<String> {
    let mut at: Vec<&str> = if path[0] == "crate" { Vec::new() } else { from.split("::").collect() };
    for part in path {
        match *part {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            name => at.push(name),
        }
    }
    (1..=at.len()).rev().map(|n| at[..n].join("::")).find(|name| modules.contains(name))
}

/// Every path that begins with `crate`, `super` or `self`. Those of a `use` tree are listed one by one.
fn paths(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for begin in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(begin) {
            let before = &code[..at];
            if !before.ends_with(is_word_char) && !before.ends_with("::") {
                tree(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads a `use` tree behind `prefix`. Returns the text after it.
fn tree<'a>(mut text: &'a str, prefix: &mut Vec<&'a str>, found: &mut Vec<Vec<&'a str>>) -> &'a str {
    let depth = prefix.len();
    loop {
        text = text.trim_start();
        if let Some(mut rest) = text.strip_prefix('{') {
            loop {
                rest = tree(rest, prefix, found).trim_start();
                match rest.strip_prefix(',') {
                    Some(next) => rest = next,
                    None => break,
                }
            }
            text = rest.strip_prefix('}').unwrap_or(rest);
            break;
        }
        let end = text.len() - text.trim_start_matches(is_word_char).len();
        if end > 0 {
            prefix.push(&text[..end]);
        }
        text = &text[end..];
        match text.strip_prefix("::").filter(|_| end > 0) {
            Some(rest) => text = rest,
            None => {
                if !prefix.is_empty() {
                    found.push(prefix.clone());
                }
                break;
            }
        }
    }
    prefix.truncate(depth);
    text
}

/// A circle, with its first name repeated at the end.
fn circle(graph: &Graph) -> Option<Vec<String>> {
    fn walk<'a>(graph: &'a Graph, at: &'a str, way: &mut Vec<&'a str>, done: &mut BTreeSet<&'a str>) -> bool {
        let back = way.contains(&at);
        way.push(at);
        if back {
            return true;
        }
        let next = graph.get(at).into_iter().flatten();
        if !done.contains(at) && next.into_iter().any(|to| walk(graph, to, way, done)) {
            return true;
        }
        done.insert(at);
        way.pop();
        false
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| {
        let mut way = Vec::new();
        walk(graph, start, &mut way, &mut done).then(|| {
            let last = way.last().copied().unwrap_or_default();
            let begin = way.iter().position(|name| *name == last).unwrap_or(0);
            way[begin..].iter().map(ToString::to_string).collect()
        })
    })
}
