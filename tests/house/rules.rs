//! The rules, each a function from sources to faults.

use super::source::{Source, is_word_char};
use shared::catalog::{Catalog, VOCABULARY};
use std::collections::{BTreeMap, BTreeSet};

/// Package folder, the packages of the workspace that it may name, and other packages that it must not name.
const PACKAGES: &[(&str, &[&str], &[&str])] = &[
    ("shared", &[], &["tokio", "axum", "libc", "sysinfo", "leptos", "plotters", "web-sys", "js-sys", "tracing"]),
    ("shared/api", &["shared"], &["tokio", "axum", "libc", "leptos", "web-sys", "js-sys", "tracing"]),
    ("shared/imports", &["shared"], &["tokio", "axum", "libc", "leptos", "web-sys", "js-sys", "tracing"]),
    // tokio is only for the sockets of the TPU's HTTP/2. The readings themselves run on plain threads.
    ("backend/client", &[], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing"]),
    ("backend/system", &[], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing"]),
    ("backend/settings", &["shared"], &["tokio", "axum", "hyper", "clap", "leptos", "plotters", "tracing"]),
    ("backend/inventory", &["shared"], &["tokio", "axum", "hyper", "libc", "leptos", "plotters", "tracing"]),
    (
        "backend/collectors",
        &["shared", "client", "inventory", "system"],
        &["axum", "hyper", "tower", "leptos", "plotters"],
    ),
    ("backend/history", &["shared"], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing"]),
    // Findings: the same code on a server, in a command and in the page.
    ("backend/insight", &["shared"], &["tokio", "axum", "libc", "leptos", "plotters", "web-sys", "js-sys", "tracing"]),
    // It gets its data passed in. Sockets and clocks belong to the program.
    (
        "backend/top",
        &["shared", "charts", "system", "viewer"],
        &["tokio", "axum", "hyper", "leptos", "plotters", "tracing"],
    ),
    // Transport of ticks and records, without collectors and sockets.
    ("backend/stream", &["shared", "history", "inventory"], &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"]),
    // Training jobs, without page, accounts and alerts.
    (
        "backend/jobs",
        &["shared", "client", "inventory", "launch", "rules", "settings", "stream", "system"],
        &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"],
    ),
    // People and keys, without sockets.
    (
        "backend/team",
        &["shared", "records", "rules", "stream"],
        &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"],
    ),
    // The hub's end of agent connections. The listener passes it the socket.
    (
        "backend/fleet",
        &["shared", "records", "stream", "team"],
        &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"],
    ),
    // The agent's end of its connection. It opens connections and accepts none.
    (
        "backend/uplink",
        &["shared", "api", "client", "jobs", "settings", "stream", "system"],
        &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"],
    ),
    // Messages among the hubs of a cluster, and no requests of people.
    (
        "backend/cluster",
        &["shared", "fleet", "jobs", "records", "settings", "stream", "system", "team", "uplink", "watch"],
        &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"],
    ),
    // Identity providers. It sends requests to them, and has no table and no listening socket.
    (
        "backend/providers",
        &["shared", "client", "settings", "stream", "team"],
        &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"],
    ),
    // Findings, alerts and notifications. It sends, and has no listening socket.
    (
        "backend/watch",
        &["shared", "insight", "jobs", "notify", "records", "rules", "stream", "system", "team"],
        &["axum", "hyper", "tower", "sqlx", "leptos", "plotters"],
    ),
    // It runs beside the job: small, and without a runtime of its own.
    ("backend/launch", &["shared", "system"], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing"]),
    // Requests are passed to its caller: no socket, no file, no thread.
    ("backend/mcp", &["shared", "api"], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing", "ureq"]),
    // Outgoing notices and their allowed targets: no rule, no table, no runtime.
    ("backend/notify", &["shared", "client"], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing", "ureq"]),
    ("backend/records", &["shared"], &["axum", "hyper", "leptos", "plotters", "tracing"]),
    // Time and samples are passed in. The service that feeds it, and a check of stored samples, run the same code.
    ("backend/rules", &["shared"], &["tokio", "axum", "hyper", "libc", "leptos", "plotters", "web-sys", "tracing"]),
    (
        "backend",
        &[
            "shared",
            "api",
            "imports",
            "charts",
            "client",
            "cluster",
            "collectors",
            "fleet",
            "history",
            "insight",
            "inventory",
            "jobs",
            "launch",
            "mcp",
            "notify",
            "providers",
            "records",
            "rules",
            "settings",
            "stream",
            "system",
            "team",
            "top",
            "uplink",
            "viewer",
            "watch",
        ],
        &["leptos", "plotters", "web-sys", "nvml-wrapper"],
    ),
    ("backend/page", &["shared"], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing"]),
    ("backend/program", &["backend", "page"], &["tokio", "axum", "hyper", "leptos", "plotters", "tracing"]),
    ("frontend/charts", &["shared"], &["leptos", "web-sys", "js-sys", "wasm-bindgen", "tokio"]),
    ("frontend/viewer", &["shared", "charts"], &["leptos", "web-sys", "js-sys", "wasm-bindgen", "plotters", "tokio"]),
    // It is loaded in addition to the page, and has no browser bindings.
    (
        "frontend/reader",
        &["shared", "imports", "insight"],
        &["leptos", "web-sys", "js-sys", "wasm-bindgen", "plotters", "tokio"],
    ),
    ("frontend", &["shared", "charts", "viewer"], &["plotters", "plotters-backend", "tokio", "axum"]),
    ("xtask", &[], &["leptos", "plotters", "axum"]),
    ("xtask/bindgen", &[], &["leptos", "plotters", "axum"]),
    // No code, and so no dependencies between packages: only features of dependencies.
    ("tests/features", &[], &["leptos", "web-sys", "js-sys", "wasm-bindgen"]),
    ("tests/features/base", &["api"], &["leptos", "web-sys", "js-sys", "wasm-bindgen"]),
    (
        "tests",
        &[
            "shared",
            "api",
            "collectors",
            "history",
            "insight",
            "jobs",
            "notify",
            "records",
            "rules",
            "stream",
            "system",
            "team",
            "backend",
            "charts",
            "page",
            "top",
            "watch",
        ],
        &["plotters", "leptos"],
    ),
];

/// Folder of sources, room, and the rooms beside it that it may import.
const ROOMS: &[(&str, &str, &[&str])] = &[
    ("backend/src", "build_info", &[]),
    ("backend/src", "config", &["build_info"]),
    ("backend/src", "terminal", &[]),
    ("backend/src", "stderr", &["terminal"]),
    ("backend/src", "export", &["config"]),
    // A chart as SVG by the page's own drawing code. It reads nothing.
    ("backend/src", "svg_chart", &[]),
    ("backend/src", "report", &["svg_chart"]),
    ("backend/src", "data", &["config"]),
    ("backend/src", "sampler", &[]),
    ("backend/src", "demo", &["config"]),
    ("backend/src", "doctor", &["config", "sampler"]),
    ("backend/src", "remote_write", &["config"]),
    ("backend/src", "control", &[]),
    // The command of that name.
    ("backend/src", "findings", &["config", "terminal"]),
    // The commands that administer a hub.
    ("backend/src", "admin", &["config", "control", "remote"]),
    // Requests to a server elsewhere, with a key.
    ("backend/src", "remote", &[]),
    // The client end of the page's stream.
    ("backend/src", "follow", &[]),
    (
        "backend/src",
        "http",
        &["build_info", "config", "control", "doctor", "export", "svg_chart", "remote_write", "report", "stderr"],
    ),
    // Nobody but the program imports a mode.
    ("backend/src", "modes", &["config", "control", "data", "demo", "http", "remote_write", "sampler", "stderr"]),
    ("frontend/src", "fetch", &[]),
    ("frontend/src", "access", &["browser", "fetch", "state"]),
    ("frontend/src", "browser", &["address"]),
    // These five are in frontend/viewer.
    ("frontend/src", "address", &[]),
    ("frontend/src", "player", &[]),
    ("frontend/src", "range", &[]),
    ("frontend/src", "shortcuts", &[]),
    ("frontend/src", "store", &[]),
    ("frontend/src", "surface", &[]),
    // A widget gets its values as props.
    ("frontend/src", "parts", &["browser", "fetch"]),
    ("frontend/src", "widgets", &["browser"]),
    ("frontend/src", "state", &["address", "browser", "player", "range", "store"]),
    ("frontend/src", "link", &["browser", "carrier", "state", "store"]),
    ("frontend/src", "carrier", &["browser", "fetch"]),
    ("frontend/src", "recording", &["browser", "range", "state"]),
    ("frontend/src", "panels", &["address", "browser", "range", "shortcuts", "state", "store", "surface", "widgets"]),
    ("frontend/src", "gestures", &["browser", "panels", "state"]),
    ("frontend/src", "tools", &["browser", "gestures", "panels", "parts", "range", "shortcuts", "state", "store"]),
    (
        "frontend/src",
        "pages",
        &[
            "access",
            "address",
            "browser",
            "fetch",
            "gestures",
            "panels",
            "parts",
            "player",
            "range",
            "recording",
            "shortcuts",
            "state",
            "store",
            "tools",
            "widgets",
        ],
    ),
    ("frontend/src", "keys", &["browser", "gestures", "panels", "player", "recording", "shortcuts", "state", "tools"]),
];

/// Rooms that assemble the rest may import all of it.
const ROOTS: &[&str] = &["lib", "main", "app", "bin", "program"];

/// Package folder and the only room that may name it.
const ONLY: &[(&str, &str, &[&str])] = &[
    ("plotters::", "frontend/charts/", &[]),
    ("leptos::", "frontend/src/", &[]),
    ("ureq::", "backend/client/", &[]),
    ("sqlx::", "backend/records/", &[]),
    ("lettre::", "backend/notify/", &[]),
    ("h2::", "backend/collectors/src/read/grpc", &[]),
    ("collectors::", "backend/", &["http"]),
    ("catalog", "", &["widgets"]), // a widget knows no metric
    // Request handlers use a Reader, which checks permissions.
    ("store().sources", "", &["http"]),
];

const WORKSPACE: &[&str] = &[
    "shared",
    "imports",
    "client",
    "cluster",
    "collectors",
    "fleet",
    "history",
    "inventory",
    "jobs",
    "mcp",
    "notify",
    "providers",
    "records",
    "rules",
    "settings",
    "stream",
    "system",
    "team",
    "top",
    "uplink",
    "watch",
    "backend",
    "charts",
    "viewer",
    "frontend",
    "xtask",
];

fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
            // [dependencies.name] is a dependency of its own
            return line.split_once("dependencies.").map(|(_, name)| name.trim_end_matches(']'));
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or("");
        (inside && line.contains('=') && !name.is_empty() && !name.starts_with('#')).then_some(name)
    })
}

/// The dependencies between packages, from their manifests.
pub fn packages(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for (folder, may, never) in PACKAGES {
        let Some(manifest) = sources.iter().find(|s| s.path == format!("{folder}/Cargo.toml")) else {
            continue;
        };
        for name in dependencies(&manifest.text) {
            if (WORKSPACE.contains(&name) && !may.contains(&name)) || never.contains(&name) {
                faults.push(format!("{}: {folder} may not depend on {name}", manifest.path));
            }
        }
    }
    faults
}

/// The first name of each path in a `use` tree: `a` and `b` of `{a, b::{c, d}}`, `a` of `a::b`.
fn heads(tree: &str) -> Vec<&str> {
    let name = |text: &str| text.len() - text.trim_start_matches(is_word_char).len();
    let Some(group) = tree.strip_prefix('{') else { return vec![&tree[..name(tree)]] };
    let (mut heads, mut depth, mut fresh) = (Vec::new(), 0, true);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if depth == 0 && fresh && is_word_char(c) => {
                heads.push(&group[i..i + name(&group[i..])]);
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

/// Rooms that this code names by `crate::`, or by as many `super::` as the file is deep.
fn imports(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let up = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", up.as_str()].into_iter().filter(|r| !r.is_empty()) {
        for (at, _) in code.match_indices(root) {
            let before = &code[..at];
            if !before.ends_with(is_word_char) && !before.ends_with("::") {
                let line = before.matches('\n').count() + 1;
                found.extend(heads(code[at + root.len()..].trim_start()).into_iter().map(|room| (line, room)));
            }
        }
    }
    found
}

/// Room and depth of a file: `http` and 2 for `backend/src/http/stream.rs`.
fn room<'a>(path: &'a str, folder: &str) -> Option<(&'a str, usize)> {
    let inner = path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let depth = inner.split('/').filter(|part| *part != "mod").count();
    Some((inner.split('/').next()?, depth))
}

/// The dependencies between rooms.
pub fn rooms(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let folders: BTreeSet<&str> = ROOMS.iter().map(|(folder, ..)| *folder).collect();
    for source in sources.iter().filter(|s| !s.is_test()) {
        for folder in &folders {
            let Some((from, depth)) = room(&source.path, folder) else { continue };
            if ROOTS.contains(&from) {
                continue;
            }
            let Some((.., may)) = ROOMS.iter().find(|(f, r, _)| f == folder && *r == from) else {
                faults.push(format!("{}: the table of rooms does not say what {from} may import", source.path));
                continue;
            };
            for (line, to) in imports(&source.code, depth) {
                let is_room = ROOMS.iter().any(|(f, r, _)| f == folder && *r == to);
                if is_room && to != from && !may.contains(&to) {
                    faults.push(format!("{}:{line}: {from} may not import {to}", source.path));
                }
            }
        }
        for (name, folder, never) in ONLY {
            for (line, text) in source.code.lines().enumerate() {
                let named =
                    text.match_indices(name).any(|(at, _)| !text[..at].ends_with(|c| is_word_char(c) || c == ':'));
                let here = folders.iter().find_map(|f| room(&source.path, f)).map(|(room, _)| room);
                let allowed = source.path.starts_with(folder) && here.is_none_or(|room| !never.contains(&room));
                let crate_itself = source.path.starts_with("xtask/") || source.path.starts_with("tests/");
                if named && !allowed && !crate_itself {
                    faults.push(format!("{}:{}: {name} has no place here", source.path, line + 1));
                }
            }
        }
    }
    faults
}

/// Tags and chart ids are written only in the catalog. A collector writes only the tags of its own rows.
pub fn tags(sources: &[Source], catalog: &Catalog) -> Vec<String> {
    let vocabulary = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
    let mut faults = Vec::new();
    // A translation between two vocabularies contains both. Its tests find each tag in the catalog.
    let is_table =
        |path: &str| path.starts_with("shared/src/catalog/") || path.starts_with("backend/rules/src/prometheus/");
    for source in sources.iter().filter(|s| !s.is_test() && !is_table(&s.path)) {
        // Rows that are not W&B's are in the collector that fills them.
        let known = if source.path.starts_with("backend/collectors/src/") { &vocabulary } else { catalog };
        for (line, text) in &source.literals {
            let shaped = text.contains(['.', '_', '{']) && !text.ends_with(".rs") && !text.contains(' ');
            let is_chart = || known.layout.charts.iter().any(|c| c.id == *text && text.contains('.'));
            let is_template =
                || known.metrics.iter().any(|m| m.tag == *text || m.aliases.iter().any(|alias| alias == text));
            let own_chart = source.path.starts_with("backend/collectors/src/") && is_chart();
            if shaped && (is_template() || known.find(text).is_ok() || is_chart()) && !own_chart {
                faults.push(format!("{}:{line}: {text:?} is a tag or a chart; name the catalog's row", source.path));
            }
        }
    }
    faults
}

/// Conversion by 1024 belongs to the units. Elsewhere a comment on the line, or on the one above it, gives the reason.
/// A size written as a product of numbers (`64 * 1024`) is not a conversion.
pub fn kibi(sources: &[Source]) -> Vec<String> {
    const NUMBERS: &[&str] = &["1024", "1024.0", "1048576", "1048576.0", "1073741824", "1073741824.0"];
    let at_home = |path: &str| path == "shared/src/unit.rs" || path.starts_with("shared/src/catalog/");
    let factor = |before: &str| {
        before.trim_end().strip_suffix('*').is_some_and(|b| b.trim_end().ends_with(|c: char| c.is_ascii_digit()))
    };
    let mut faults = Vec::new();
    for source in sources.iter().filter(|s| !s.is_test() && !at_home(&s.path)) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (i, code) in source.code.lines().enumerate() {
            let mut at = 0;
            let found = code.split_inclusive(|c: char| !(is_word_char(c) || c == '.')).any(|part| {
                let number = part.trim_end_matches(|c: char| !is_word_char(c)).replace('_', "");
                let before = &code[..at];
                at += part.len();
                NUMBERS.contains(&number.as_str()) && !factor(before)
            });
            let reason = lines[i].contains("//") || (i > 0 && lines[i - 1].trim_start().starts_with("//"));
            if found && !reason {
                let place = format!("{}:{}", source.path, i + 1);
                faults.push(format!("{place}: 1024 without a reason; units convert in shared/src/unit.rs"));
            }
        }
    }
    faults
}

/// Files that write a number with its unit themselves, and the reason.
const WRITES_UNITS: &[(&str, &str)] = &[
    ("backend/client/src/body.rs", "the client knows no other package"),
    ("frontend/src/pages/team/usage.rs", "days of the calendar are counted, and none is a length of time"),
    ("backend/src/http/usage.rs", "days of the calendar are counted, and none is a length of time"),
    ("backend/team/src/accounts/usage.rs", "days of the calendar are counted, and none is a length of time"),
];

/// A number with a unit of time or size (`{} min`, `{}GiB`) is formatted only by the units. So one quantity reads the
/// same on the page, the command line, in findings, notices and errors.
pub fn written_units(sources: &[Source]) -> Vec<String> {
    const UNITS: &[&str] =
        &["min", "h", "d", "days", "hours", "minutes", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"];
    let at_home = |path: &str| path == "shared/src/unit.rs" || path.starts_with("shared/src/unit/");
    let may = |path: &str| WRITES_UNITS.iter().any(|(own, _)| *own == path);
    let ours = |path: &str| ["shared/", "backend/", "frontend/"].iter().any(|root| path.starts_with(root));
    fn unit(rest: &str) -> &str {
        &rest[..rest.len() - rest.trim_start_matches(is_word_char).len()]
    }
    let mut faults = Vec::new();
    for source in sources.iter().filter(|s| ours(&s.path) && !s.is_test() && !at_home(&s.path)) {
        // Reports of measurements of this program are in examples.
        if source.path.contains("/examples/") {
            continue;
        }
        let before = faults.len();
        for (line, text) in &source.literals {
            let behind = text.split('}').skip(1).map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
            if behind.map(unit).any(|unit| UNITS.contains(&unit)) {
                faults.push(format!("{}:{line}: {text:?} writes a unit; shared/src/unit.rs has a writer", source.path));
            }
        }
        if may(&source.path) {
            let needed = faults.len() > before;
            faults.truncate(before);
            if !needed {
                faults.push(format!("{}: it writes no unit and needs no exception", source.path));
            }
        }
    }
    faults
}

/// Calls that create elements of the page by hand, or leak memory, and the one file that may use each. Canvases, links
/// to save a file, the field to choose one and the field to copy from are never in the page.
const BY_HAND: &[(&str, &[&str])] = &[
    ("set_inner_html", &[]),
    ("set_outer_html", &[]),
    ("insert_adjacent_html", &[]),
    ("create_element", &["frontend/src/browser.rs"]),
    ("Box::leak", &[]),
];

/// Markup of the page is in views, its values are in signals.
pub fn markup(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|s| s.path.starts_with("frontend/src/")) {
        for (i, line) in source.code.lines().enumerate() {
            let named =
                BY_HAND.iter().filter(|(name, may)| line.contains(name) && !may.contains(&source.path.as_str()));
            faults.extend(named.map(|(name, _)| format!("{}:{}: {name}: a view makes elements", source.path, i + 1)));
        }
    }
    faults
}

/// The page is compiled only for browsers, where no unit test runs. Code that can be tested without a browser belongs
/// in the viewer.
pub fn untested(sources: &[Source]) -> Vec<String> {
    let own = sources.iter().filter(|s| s.path.starts_with("frontend/src/"));
    let test = |line: &str| ["#[test]", "#[cfg(test)]"].contains(&line.trim());
    let first = |source: &Source| source.text.lines().position(test).map(|i| format!("{}:{}", source.path, i + 1));
    own.filter_map(first).map(|place| format!("{place}: no test of the page runs; frontend/viewer has tests")).collect()
}

/// A test runs to its end. A test without its prerequisites is ignored with a reason, never passed.
pub fn early_returns(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|s| s.path.ends_with(".rs")) {
        // Whether the next function is a test, and the indent of the test that contains the line.
        let (mut marked, mut inside) = (false, None);
        for (i, line) in source.text.lines().enumerate() {
            let code = line.trim_start();
            let indent = line.len() - code.len();
            match inside {
                Some(own) if indent == own && code == "}" => inside = None,
                // Deeper ones end a closure or a loop's body.
                Some(own) if indent <= own + 8 && (code.ends_with("return;") || code.contains("else { return };")) => {
                    faults.push(format!("{}:{}: a test that cannot run is ignored, not passed", source.path, i + 1));
                }
                Some(_) => {}
                None if code == "#[test]" || code.starts_with("#[tokio::test") => marked = true,
                None if code.contains("fn ") && std::mem::take(&mut marked) => inside = Some(indent),
                None => {}
            }
        }
    }
    faults
}

/// Files and folders of the tests that may sleep, and the reason.
const SLEEPERS: &[&str] = &[
    "tests/support/waiting.rs", // between two polls, for all others
    // Stand-ins for slow or hanging programs.
    "tests/fake-tool/",
    "tests/fake-nvml/",
    "tests/support/cutter.rs",
    "tests/support/hooks.rs",
    "tests/support/kubernetes.rs",
    "tests/support/link.rs",
    "tests/support/receiver.rs",
    "tests/support/kills.rs", // a kill comes at a random moment
    // Measurements take a fixed time.
    "tests/bench/",
    "tests/torture/",
];

/// Tests wait for a condition. Where time has to pass, they move a clock.
pub fn sleeps(sources: &[Source]) -> Vec<String> {
    let may = |source: &&Source| !SLEEPERS.iter().any(|path| source.path.starts_with(path));
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("tests/")).filter(may) {
        for (i, line) in source.code.lines().enumerate() {
            let named = line.match_indices("sleep").any(|(at, found)| {
                !line[..at].ends_with(is_word_char)
                    && !line[at + found.len()..].starts_with(|c| is_word_char(c) && c != '_')
            });
            if named {
                let place = format!("{}:{}", source.path, i + 1);
                faults.push(format!("{place}: wait by support/waiting.rs until something is so, or move a clock"));
            }
        }
    }
    faults
}

/// Folders of native code, where a server is a value and several may exist.
const NATIVE: &[&str] = &["backend/", "shared/"];

/// Types with interior mutability.
const CHANGEABLE: &[&str] = &["Atomic", "Cell", "Condvar", "LazyLock", "Mutex", "OnceLock", "RwLock", "Semaphore"];

/// Statics that are mutable nevertheless, and the reason.
const STATICS: &[(&str, &str)] = &[
    ("backend/stream/src/clock.rs", "START"), // process-wide: the start of its clock
    ("backend/src/stderr.rs", "OWN"),         // process-wide: it has one standard error and one panic hook
    ("shared/src/catalog/tag.rs", "READS"),   // counts for its own tests
    ("shared/imports/src/steps.rs", "STEPS"), // likewise
    ("backend/collectors/src/golden.rs", "SEEN"), // likewise
    // Process-wide: the tools that it started, and those of them that do not end.
    ("backend/collectors/src/read/exec.rs", "STUCK"),
    ("backend/collectors/src/read/exec/guard.rs", "GUARD"),
    ("shared/src/crc32c.rs", "TABLES"),   // computed once and never changed
    ("shared/src/xid.rs", "CATALOG"),     // parsed once and never changed
    ("shared/src/xid.rs", "LINK_ERRORS"), // likewise
];

/// No static of native code is mutable, except in programs, examples and tests.
pub fn statics(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let native = |s: &&Source| NATIVE.iter().any(|folder| s.path.starts_with(folder)) && !s.is_test();
    let library = |s: &&Source| !s.path.ends_with("/main.rs") && !s.path.contains("/examples/");
    for source in sources.iter().filter(native).filter(library) {
        for (at, _) in source.code.match_indices("static ") {
            let (before, behind) = (&source.code[..at], source.code[at..]["static ".len()..].trim_start());
            if before.ends_with(|c: char| is_word_char(c) || c == '\'') {
                continue; // a lifetime
            }
            let declared = behind.split(['=', ';']).next().unwrap_or_default();
            let Some((name, kind)) = declared.split_once(':') else { continue };
            let changeable = name.starts_with("mut ") || CHANGEABLE.iter().any(|changeable| kind.contains(changeable));
            if changeable && !STATICS.contains(&(source.path.as_str(), name.trim())) {
                let line = before.matches('\n').count() + 1;
                faults.push(format!(
                    "{}:{line}: {} belongs to a value: a server is one of several",
                    source.path,
                    name.trim()
                ));
            }
        }
    }
    faults
}

/// No two files of a package have public types with the same name.
pub fn type_names(sources: &[Source]) -> Vec<String> {
    let mut known: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut faults = Vec::new();
    for source in sources.iter().filter(|s| !s.is_test()) {
        let own = PACKAGES.iter().map(|(folder, ..)| *folder);
        let own = own.filter(|folder| source.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with("/src/")));
        let Some(package) = own.max_by_key(|folder| folder.len()) else {
            continue;
        };
        for (line, text) in source.code.lines().enumerate() {
            let Some(name) = public_type(text) else { continue };
            let first = known.entry((package, name)).or_insert(&source.path);
            if *first != source.path {
                faults.push(format!("{}:{}: {first} has a {name}, too; say of what each is", source.path, line + 1));
            }
        }
    }
    faults
}

/// The name of a public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(within) => within.split_once(')')?.1,
        None => rest,
    };
    let (kind, name) = rest.trim_start().split_once(' ')?;
    let name = &name[..name.len() - name.trim_start_matches(is_word_char).len()];
    (rest.starts_with(' ') && ["struct", "enum", "trait", "type", "union"].contains(&kind)).then_some(name)
}

/// Each module begins with its purpose, and has a name that describes it.
pub fn modules(sources: &[Source]) -> Vec<String> {
    const NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "types", "core", "manager", "misc"];
    let mut faults = Vec::new();
    for source in sources.iter().filter(|s| s.path.ends_with(".rs")) {
        let first = source.text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
        if !first.is_some_and(|line| line.starts_with("//! ")) {
            faults.push(format!("{}: a module begins with what it is for (//!)", source.path));
        }
        if source.path.split('/').any(|part| NAMES.contains(&part.trim_end_matches(".rs"))) {
            faults.push(format!("{}: the name says nothing", source.path));
        }
    }
    faults
}

/// The tree does not name the places where it was made or its parts come from.
pub fn places(sources: &[Source]) -> Vec<String> {
    // Split, so that this file does not break its own rule.
    let words = [
        concat!("crates", ".io"),
        concat!("docs", ".rs/"),
        concat!("pypi", ".org"),
        concat!("npmjs", ".com"),
        concat!("npmjs", ".org"),
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("fa", "rm-"),
    ];
    let mut faults = Vec::new();
    // Cargo writes its lock file itself.
    for source in sources.iter().filter(|s| s.path != "Cargo.lock") {
        for (i, line) in source.text.lines().enumerate() {
            faults.extend(
                words
                    .iter()
                    .filter(|word| line.contains(**word))
                    .map(|word| format!("{}:{}: {word} does not belong in the tree", source.path, i + 1)),
            );
        }
    }
    faults
}

/// A link in a document leads to a file in the tree.
pub fn links(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|s| s.path.ends_with(".md")) {
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in source.text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let path = resolved(folder, target);
            let inside = !target.is_empty() && !target.contains(':');
            let below = format!("{path}/");
            if inside && !sources.iter().any(|s| s.path == path || s.path.starts_with(&below)) {
                faults.push(format!("{}: {target} is not there", source.path));
            }
        }
    }
    faults
}

/// The path in the tree of a link target in a document of this folder.
pub fn resolved(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Lines of the sources of the product, shortest first.
pub fn lengths(sources: &[Source]) -> Vec<(usize, &str)> {
    let own = sources.iter().filter(|s| s.path.ends_with(".rs") && s.path.contains("src/"));
    let mut lengths: Vec<_> = own.map(|s| (s.text.lines().count(), s.path.as_str())).collect();
    lengths.sort_unstable();
    lengths
}
