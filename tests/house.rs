//! The house rules that Cargo and clippy cannot enforce: allowed imports, the places of tags and units, and module
//! headers. Each rule has a name here and a planted violation below it.

mod circles;
mod documents;
mod features;
mod functions;
mod names;
mod rules;
pub mod source;

use source::{Source, tree};

fn holds(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn packages_depend_along_the_arrows() {
    holds(rules::packages(tree()));
}

#[test]
fn rooms_import_along_the_arrows() {
    holds(rules::rooms(tree()));
}

#[test]
fn no_two_files_know_each_other() {
    let folders = circles::folders();
    assert!(folders.contains("backend/insight/src") && folders.contains("tests/support"), "{folders:?}");
    holds(circles::circles(tree(), &folders));
}

#[test]
fn markup_of_the_page_stands_in_views() {
    holds(rules::markup(tree()));
}

#[test]
fn tags_stand_in_the_catalog_only() {
    holds(rules::tags(tree(), &collectors::catalog()));
}

#[test]
fn multiples_of_1024_stand_with_the_units() {
    holds(rules::kibi(tree()));
}

#[test]
fn lengths_of_time_and_sizes_are_written_by_the_units() {
    holds(rules::written_units(tree()));
}

#[test]
fn the_page_has_no_tests_that_nobody_runs() {
    holds(rules::untested(tree()));
}

#[test]
fn tests_run_to_their_end() {
    holds(rules::early_returns(tree()));
}

#[test]
fn no_test_waits_by_sleeping() {
    holds(rules::sleeps(tree()));
}

#[test]
fn no_static_can_be_changed() {
    holds(rules::statics(tree()));
}

#[test]
fn no_two_public_types_of_a_package_have_one_name() {
    holds(rules::type_names(tree()));
}

#[test]
fn documents_are_short_and_plain() {
    holds(documents::front_door(tree()));
    holds(documents::figures(tree()));
    holds(documents::long_sentences(tree()));
    holds(documents::mean(tree()));
    holds(documents::clauses(tree()));
    holds(documents::clauses_of_comments(tree()));
    holds(documents::spelling(tree()));
    holds(documents::spelling_of_code(tree()));
}

#[test]
fn links_to_headings_find_them() {
    holds(documents::anchors(tree()));
    holds(documents::linked_from_code(tree()));
}

#[test]
fn each_module_says_what_it_is_for() {
    holds(rules::modules(tree()));
}

#[test]
fn the_tree_names_no_place_where_it_was_made() {
    holds(rules::places(tree()));
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut sources = tree().to_vec();
    // Pictures are not text, so the tree does not contain them.
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../static")).expect("static/ is there") {
        let name = entry.expect("static/ can be read").file_name();
        sources.push(Source::new(&format!("static/{}", name.to_string_lossy()), ""));
    }
    holds(rules::links(&sources));
}

#[test]
fn functions_are_short() {
    holds(functions::long(tree()));
}

#[test]
fn constants_tell_what_they_limit() {
    holds(names::constants(tree()));
}

#[test]
fn private_types_tell_whose_they_are() {
    holds(names::types(tree()));
}

#[test]
fn functions_tell_what_they_do() {
    holds(names::functions(tree()));
}

#[test]
fn files_are_small() {
    let sources = tree();
    let lengths = rules::lengths(sources);
    let (median, longest) = (lengths[lengths.len() / 2].0, &lengths[lengths.len().saturating_sub(5)..]);
    println!("{} files, median {median} lines, longest {longest:?}", lengths.len());
    assert!(median <= 180, "the median file has {median} lines: split what has two reasons to change");
}

/// Asserts that the rule finds a fault in the second text, at the planted place, and none in the first.
fn catches(rule: impl Fn(&[Source]) -> Vec<String>, path: &str, good: &str, bad: &str) {
    assert_eq!(rule(&[Source::new(path, good)]), Vec::<String>::new(), "{path}: {good}");
    assert_eq!(rule(&[Source::new(path, bad)]).len(), 1, "{path}: {bad}");
}

#[test]
fn a_planted_dependency_is_caught() {
    let good = "[package]\nname = \"x\"\n[dependencies]\nshared.workspace = true\n[lints]\nworkspace = true\n";
    for bad in [
        "backend.workspace = true",
        "leptos = { version = \"1\" }",
        "[dependencies.axum]",
        "[dev-dependencies]\nhyper = \"1\"",
    ] {
        catches(
            rules::packages,
            "backend/collectors/Cargo.toml",
            good,
            &good.replace("[lints]", &format!("{bad}\n[lints]")),
        );
    }
    catches(rules::packages, "frontend/charts/Cargo.toml", good, &format!("{good}[dependencies]\nweb-sys = \"1\""));
    catches(rules::packages, "frontend/Cargo.toml", good, &format!("{good}[dependencies]\nplotters = \"1\""));
}

#[test]
fn a_planted_import_is_caught() {
    let rule = rules::rooms;
    catches(
        rule,
        "backend/src/doctor/mod.rs",
        "use crate::{config, sampler::Plan};",
        "use crate::{config, sampler::Plan, http::App};",
    );
    catches(rule, "backend/src/findings/read.rs", "use super::Found; use super::http;", "use super::super::http::App;");
    catches(rule, "backend/src/findings/read.rs", "// crate::http\nfn f() {}", "fn f() { crate::http::serve() }");
    catches(rule, "backend/src/http/api.rs", "use crate::config::{sampler, x};", "use crate::sampler;");
    catches(rule, "backend/src/control.rs", "\n#[cfg(test)]\nmod tests {\n use crate::http;\n}", "use crate::http;");
    catches(rule, "backend/src/http/mod.rs", "fn f() { \"crate::sampler\"; }", "use collectors::Entry;");
    catches(rule, "backend/src/control.rs", "use std::time::Instant;", "use super::config::Config;");
    catches(rule, "frontend/src/app.rs", "use leptos::prelude::*;", "use plotters::prelude::*;");
    catches(rule, "frontend/charts/src/line.rs", "use plotters::prelude::*;", "use leptos::prelude::*;");
    let widget = "frontend/src/widgets/picker.rs";
    catches(rule, widget, "use crate::browser;", "use crate::panels::board::Board;");
    catches(rule, widget, "use charts::Hue;", "use crate::state::Page;");
    catches(rule, "frontend/src/state/view.rs", "use crate::store::Store;", "use crate::panels::board::Board;");
    catches(rule, "frontend/src/panels/panel.rs", "use crate::state::Page;", "use crate::tools::menu;");
    catches(rule, widget, "use shared::window::Window;", "use shared::{catalog::Metric, window::Window};");
    catches(
        rule,
        "frontend/src/state/view.rs",
        "use shared::catalog::Chart;",
        "use crate::{panels::Panel, store::Store};",
    );
    assert_eq!(rule(&[Source::new("backend/src/new.rs", "")]).len(), 1, "a new room is put into the table");
}

#[test]
fn a_planted_circle_is_caught() {
    let faults = |files: &[(&str, &str)]| {
        let sources: Vec<Source> =
            files.iter().map(|(name, text)| Source::new(&format!("frontend/src/{name}.rs"), text)).collect();
        circles::circles(&sources, &["frontend/src".to_string()].into())
    };
    let none: [String; 0] = [];
    // A parent and its child may name each other, and tests may name any module.
    let kin = [("a/mod", "use self::b::B;"), ("a/b", "use super::A; use crate::c::C;"), ("c", "// crate::a\nmod d {}")];
    assert_eq!(faults(&kin), none);
    assert_eq!(faults(&[("a", "use crate::b::B;"), ("b", "#[cfg(test)]\nmod tests {\n use crate::a;\n}")]), none);
    // Between files, by each form of import; between rooms where no two files name each other.
    assert_eq!(faults(&[("r/a", "use super::b::B;"), ("r/b", "fn f() { crate::r::a::g() }")]).len(), 1);
    assert_eq!(
        faults(&[("r/a", "use super::{c, b::{B, D}};"), ("r/b", "use super::c;"), ("r/c", "use super::a;")]).len(),
        1
    );
    assert_eq!(faults(&[("a/x", "use crate::b::y;"), ("b/y", ""), ("b/z", "use crate::a::w;"), ("a/w", "")]).len(), 1);
}

#[test]
fn a_package_is_looked_at_for_circles_as_soon_as_cargo_knows_it() {
    let target = |kind: &str, path: &str| serde_json::json!({ "kind": [kind], "src_path": format!("/tree/{path}") });
    let packages = serde_json::json!([
        { "targets": [target("lib", "new/src/lib.rs"), target("test", "new/tests/main.rs")] },
        { "targets": [target("bin", "other/src/main.rs"), target("bin", "other/src/bin/one.rs")] },
        { "targets": [target("cdylib", "page/lib.rs"), target("custom-build", "page/main.rs")] },
        { "targets": [target("example", "shown/examples/main.rs")] },
    ]);
    let named = circles::named(&serde_json::json!({ "workspace_root": "/tree", "packages": packages }));
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["new/src", "other/src", "page"]);
}

#[test]
fn planted_markup_is_caught() {
    let room = "frontend/src/pages/bar.rs";
    catches(rules::markup, room, "view! { <b>{text}</b> }", "element.set_inner_html(text);");
    catches(rules::markup, room, "// create_element", "document().create_element(\"a\")");
    catches(rules::markup, "frontend/src/state/mod.rs", "RwSignal::new(0)", "Box::leak(Box::new(0))");
    catches(
        rules::markup,
        "frontend/src/browser.rs",
        "document().create_element(\"a\")",
        "e.insert_adjacent_html(a, b)",
    );
}

#[test]
fn a_planted_unit_is_caught() {
    let file = "backend/notify/src/text.rs";
    for bad in ["{} min", "{hours} h {} s", "{:.1}GiB", "at most {} MB here", "{n} days"] {
        catches(rules::written_units, file, "f(\"{} minds, {}hz, 5 min\")", &format!("f({bad:?})"));
        let home = Source::new("shared/src/unit/time.rs", &format!("f({bad:?})"));
        assert_eq!(rules::written_units(&[home]).len(), 0, "{bad}");
    }
    let idle = Source::new("backend/client/src/body.rs", "f(\"nothing\")");
    assert_eq!(rules::written_units(&[idle]).len(), 1, "an exception that nobody needs");
}

#[test]
fn a_planted_static_is_caught() {
    let good = "static NAMES: &[&str] = &[]; fn f(a: &'static Mutex<u8>) {} // static X: Mutex<u8>";
    for bad in [
        "static COUNT: AtomicU64 = AtomicU64::new(0);",
        "pub(super) static OPEN: Semaphore = Semaphore::const_new(2);",
        "fn f() {\n    static KEPT: std::sync::OnceLock<u8> = std::sync::OnceLock::new();\n}",
        "static mut PLACE: u8 = 0;",
        "thread_local! {\n    static DEPTH: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };\n}",
        "static ALL: LazyLock<\n    Mutex<u8>,\n> = LazyLock::new(|| Mutex::new(0));",
    ] {
        catches(rules::statics, "backend/src/http/listen.rs", good, bad);
        catches(rules::statics, "shared/src/tick.rs", &format!("#[cfg(test)]\nmod tests {{\n{bad}\n}}"), bad);
    }
    for program in ["backend/program/src/main.rs", "tests/support/server.rs", "backend/src/doctor/tests.rs"] {
        assert_eq!(rules::statics(&[Source::new(program, "static COUNT: AtomicU64 = AtomicU64::new(0);")]).len(), 0);
    }
}

#[test]
fn a_planted_long_function_is_caught() {
    let of = |head: &str, lines: usize| {
        format!("impl A {{\n    {head} {{\n{}    }}\n}}\nfn next() {{}}\n", "        a();\n".repeat(lines - 2))
    };
    for head in ["fn f()", "pub(super) async fn f(&self)", "pub const unsafe fn f<T>(a: T) -> T"] {
        let (good, bad) = (of(head, 80), of(head, 81));
        catches(functions::long, "backend/src/http/one.rs", &good, &bad);
        catches(functions::long, "frontend/src/pages/one.rs", &good, &bad);
    }
    // Tests tell a story, which may be long.
    assert_eq!(functions::long(&[Source::new("backend/src/http/tests.rs", &of("fn f()", 200))]), [""; 0]);
}

#[test]
fn a_planted_constant_that_does_not_tell_of_what_is_caught() {
    for (good, bad) in [
        ("const MAX_ROWS: usize = 3;", "const MOST: usize = 3;"),
        ("pub(super) const LINK_TIMEOUT: u64 = 3;", "pub(super) const PATIENCE: u64 = 3;"),
        ("fn f() {\n    static HELD_ROWS: u8 = 3;\n}", "fn f() {\n    static HELD: u8 = 3;\n}"),
    ] {
        catches(names::constants, "backend/src/http/one.rs", good, bad);
        catches(names::constants, "tests/hub/one.rs", good, bad);
    }
}

#[test]
fn a_planted_type_that_does_not_tell_whose_it_is_is_caught() {
    for (good, bad) in [
        ("struct FleetRow(u8);", "struct Row(u8);"),
        ("enum LinkState {}", "enum State {}"),
        ("pub struct Part(u8);", "pub(super) struct Part(u8);"),
        ("type ListAnswer<'a> = &'a u8;", "type Answer<'a> = &'a u8;"),
    ] {
        catches(names::types, "backend/src/http/one.rs", good, bad);
        catches(names::types, "tests/hub/one.rs", good, bad);
    }
}

#[test]
fn a_planted_function_without_an_object_is_caught() {
    for (good, bad) in [
        ("fn from_bytes(bytes: &[u8]) {}", "fn of(bytes: &[u8]) {}"),
        (
            "impl A {\n    pub(super) async fn send_message(&self) {}\n}",
            "impl A {\n    pub(super) async fn say(&self) {}\n}",
        ),
        ("pub const fn limit_of(a: u8) -> u8 {\n    a\n}", "pub const fn told(a: u8) -> u8 {\n    a\n}"),
    ] {
        catches(names::functions, "backend/src/http/one.rs", good, bad);
        catches(names::functions, "tests/hub/one.rs", good, bad);
    }
}

#[test]
fn a_planted_name_of_two_types_is_caught() {
    let faults = |first: &str, path: &str, second: &str| {
        rules::type_names(&[Source::new("backend/src/control.rs", first), Source::new(path, second)]).len()
    };
    let counts = "/// Counts.\npub struct Counts {\n    pub counts: u8,\n}\n";
    for second in ["pub enum Counts {}", "pub(super) struct Counts(u8);", "mod x {\n    pub type Counts = u8;\n}"] {
        assert_eq!(faults(counts, "backend/src/doctor/mod.rs", second), 1, "{second}");
        assert_eq!(faults(counts, "shared/src/wire.rs", second), 0, "of another package");
        assert_eq!(faults(counts, "backend/src/doctor/tests.rs", second), 0, "of tests");
    }
    for second in
        ["struct Counts;", "pub fn counts() -> Counts {}", "pub struct CountsOfLate;", "// pub struct Counts;"]
    {
        assert_eq!(faults(counts, "backend/src/doctor/mod.rs", second), 0, "{second}");
    }
    // The same type for another system.
    let twice = "#[cfg(unix)]\npub struct Own(u8);\n#[cfg(not(unix))]\npub struct Own;";
    assert_eq!(faults(twice, "backend/src/doctor/mod.rs", ""), 0);
}

#[test]
fn a_planted_tag_is_caught() {
    let catalog = collectors::catalog();
    let rule = |sources: &[Source]| rules::tags(sources, &catalog);
    for bad in [
        "gpu.{i}.temp",
        "gpu.0.temp",
        "memory_percent",
        "disk./.usageGB",
        "trn.host_total_memory_usage.tensors",
        "gpu.memory.percent",
    ] {
        for path in ["backend/src/control.rs", "frontend/src/panels/panel.rs", "frontend/charts/src/line.rs"] {
            catches(
                rule,
                path,
                &format!("// {bad}\nconst A: &str = \"memory\";"),
                &format!("const A: &str = {bad:?};"),
            );
        }
    }
    catches(
        rule,
        "backend/collectors/src/own.rs",
        "const A: &str = \"monitor.cpu\";",
        "const A: &str = \"cpu.0.cpu_percent\";",
    );
    catches(
        rule,
        "backend/src/control.rs",
        "#[cfg(test)]\nmod tests {\n    const A: &str = \"gpu.0.temp\";\n}",
        "const A: &str = \"monitor.cpu\";",
    );
}

#[test]
fn a_planted_early_return_is_caught() {
    let test = |line: &str| format!("fn f() {{\n    return;\n}}\n#[test]\nfn t() {{\n    {line};\n}}\n");
    for bad in ["let Some(x) = find() else { return }", "if !root() {\n        return;\n    }", "return"] {
        catches(rules::early_returns, "tests/x.rs", &test("go(|| return None)"), &test(bad));
    }
}

#[test]
fn a_planted_sleep_is_caught() {
    let good = "// sleep(a)\nfn f() { until(\"it\", || job(\"sleep(9)\")); Asleep(1); sleeps(2); }";
    for bad in ["std::thread::sleep(PAUSE);", "use std::thread::sleep;", "tokio::time::sleep_until(at).await;"] {
        catches(rules::sleeps, "tests/hub/links.rs", good, bad);
        for may in ["tests/support/waiting.rs", "tests/bench/hub.rs", "tests/support/cutter.rs"] {
            assert_eq!(rules::sleeps(&[Source::new(may, bad)]).len(), 0, "{may}");
        }
    }
}

#[test]
fn a_planted_test_of_the_page_is_caught() {
    let (good, bad) = ("fn f() {} // #[test]", "fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n");
    catches(rules::untested, "frontend/src/pages/past.rs", good, bad);
    catches(rules::untested, "frontend/src/app.rs", good, "#[test]\nfn t() {}\n");
}

#[test]
fn a_planted_number_name_or_place_is_caught() {
    catches(
        rules::kibi,
        "backend/src/control.rs",
        "const A: u32 = 1024; // pages of the kernel",
        "const A: u32 = 1024;",
    );
    catches(rules::kibi, "backend/src/control.rs", "// a page\nconst A: u32 = 1_048_576;", "const A: u32 = 1_048_576;");
    catches(
        rules::kibi,
        "shared/src/tick.rs",
        "const A: u32 = 10240; const B: &str = \"1024\";",
        "const A: f64 = 1024.0;",
    );
    catches(rules::kibi, "backend/src/control.rs", "f(64 * 1024, 4 * 1024 * 1024)", "f(kb * 1024)");
    catches(rules::modules, "backend/src/control.rs", "#![allow(x)]\n//! Live.\n", "/// Live.\nmod x;\n");
    assert_eq!(rules::modules(&[Source::new("backend/src/utils.rs", "//! Live.\n")]).len(), 1);
    catches(rules::links, "README.md", "[a](README.md#x) [b](https://example.org) [c](#d)", "[a](static/none.md)");
    let deep = "docs/develop/a.md";
    catches(rules::links, deep, "[a](../../docs/develop/a.md) [b](a.md)", "[a](../../docs/develop/none.md)");
    let page = "docs/use/page.md";
    let long = "A word and another ".repeat(8) + "end.";
    catches(documents::long_sentences, page, "A word and another. ".repeat(20).trim(), &long);
    catches(documents::long_sentences, page, "- one\n- two\n\n```\nno end\n```", &long.replace("another", "`x y`"));
    catches(
        documents::mean,
        page,
        "The hub asks an agent.",
        &"It is one of those sentences that go on and on, without a stop or even a rest, until all are tired. "
            .repeat(3),
    );
    catches(documents::clauses, page, "Who reads this page of ours? People.", "Who has no account here reads nothing.");
    catches(
        documents::clauses,
        page,
        "# Of its parts and all the rest\nIt runs.",
        "- Of runs that ended only the last is kept.",
    );
    let code = "backend/rules/src/a.rs";
    catches(
        documents::clauses_of_comments,
        code,
        "/// What is it? Files of a run.\nlet what = 1;",
        "/// What a run prints.",
    );
    catches(
        documents::clauses_of_comments,
        code,
        "//! Files of a run.",
        "// Ended runs. Of the others\n// only one is kept.",
    );
    catches(documents::spelling, page, "The color of `utilisation`.", "The colour is new.");
    catches(documents::spelling_of_code, "backend/src/a.rs", "let color = \"ipu utilisation (%)\";", "let colour = 1;");
    catches(documents::spelling, page, "The adjustment is done.", "It is just done.");
    catches(documents::anchors, page, "# The page, and `keys`\n[a](#the-page-and-keys)", "# The page\n[a](#keys)");
    let guide = Source::new("docs/start/guide.md", "# Guide\n## cpu\n");
    for (link, faults) in [
        ("\"docs/start/guide.html\"", 0),
        ("\"/docs/start/guide.html#cpu\"", 0),
        ("\"docs/start/guide.html#{}\"", 0),
        ("\"docs/start/none.html\"", 1),
        ("\"docs/start/guide.html#gpu\"", 1),
    ] {
        let page = Source::new("frontend/src/a.rs", link);
        assert_eq!(documents::linked_from_code(&[guide.clone(), page]).len(), faults, "{link}");
    }
    assert_eq!(documents::front_door(&[Source::new("README.md", &"a\n".repeat(201))]).len(), 1);
    let table = |path: &str, row: &str| {
        Source::new(path, &format!("a\n\n| figure | here | peers |\n| --- | --- | --- |\n{row}\n\nb\n"))
    };
    let costs = table("docs/cost.md", "| a tick † | 1 ms | |");
    assert!(documents::figures(&[table("README.md", "| a tick | 1 ms | |"), costs.clone()]).is_empty());
    assert_eq!(documents::figures(&[table("README.md", "| a tick | 2 ms | |"), costs]).len(), 1);
    for bad in [concat!("https://docs", ".rs/x"), concat!("/wo", "rk/x"), concat!("static.crates", ".io")] {
        catches(rules::places, "README.md", "https://example.org/work", bad);
    }
}
