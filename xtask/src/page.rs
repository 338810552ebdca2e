//! Checks and builds the page for wasm32.

use crate::Failure;
use crate::bundle::{Module, bundle, name_of, replaced};
use crate::exec::{cargo, cmd};
use crate::paths;
use crate::setup::{self, PageFor, PageTools, TARGET};
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

/// Name of the step that builds the page.
pub const STEP: &str = "page";
/// Name of the page's package.
pub const PACKAGE: &str = "watchglass-frontend";
/// The variable that sets the compression level of the page in a binary, and its value for releases.
pub const PACK: &str = "WATCHGLASS_PACK";
/// See [`PACK`].
pub const BEST: &str = "best";
/// The feature of the page by which code that is needed later is loaded later.
const PARTS: [&str; 2] = ["--features", "watchglass-frontend/parts"];
/// Name of the page's program.
const PROGRAM: &str = "page";
/// Name of the package of the module that opens files. The page loads this module when it is first needed.
const READER: &str = "watchglass-reader";
/// The text in frontend/reader/worker.js that the name of this module replaces in the built page.
const READER_PLACE: &str = "reader.wasm";
/// The text in frontend/index.html that the name of the worker replaces in the built page.
const WORKER_PLACE: &str = "reader.js";
/// Features of wasm that the compiler uses, and that wasm-opt needs as flags. All recent browsers have them.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-mutable-globals",
    "--enable-multivalue",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// The passes that wasm-opt runs on the page. It is quiet, because it does not know all kinds of names that it removes.
const PASSES: [&str; 5] = ["--quiet", "-Oz", "--strip-debug", "--strip-producers", "--strip-target-features"];

/// Runs `cargo check` on the page for wasm32.
pub fn check(args: &[String]) -> Result<(), Failure> {
    let tools = setup::page_tools(&mut Steps::new("check-page"), PageFor::Builders)?;
    forget_other_compilers(&tools)?;
    let check =
        cargo().args(["check", "--package", PACKAGE, "--target", TARGET, "--profile", PageFor::Builders.profile()]);
    Ok(check.args(PARTS).args(args).envs(&tools.compiler.env()).run_shown()?)
}

/// Runs clippy on the page for wasm32; a warning is an error.
pub fn clippy(tools: &PageTools) -> Result<Done, String> {
    forget_other_compilers(tools)?;
    cmd(tools.compiler.clippy())
        .args(["clippy", "--quiet", "--package", PACKAGE, "--target", TARGET, "--profile", PageFor::Builders.profile()])
        .args(PARTS)
        .args(["--", "-D", "warnings"])
        .dir(&paths::root())
        .envs(&tools.compiler.env())
        .run()?;
    Ok(Done::Now("no warnings".to_owned()))
}

/// Builds another binary of the page's package for wasm32, in the release form, as one module.
pub fn binary(tools: &PageTools, name: &str) -> Result<PathBuf, String> {
    wasm(tools, PageFor::Release, &["--package", PACKAGE, "--bin", name])?;
    Ok(compiled(PageFor::Release, name))
}

/// True when the page was compiled here before.
pub fn was_compiled() -> bool {
    compiled(PageFor::Builders, PROGRAM).is_file()
}

/// Path of the compiled wasm of a binary.
fn compiled(whom: PageFor, name: &str) -> PathBuf {
    paths::page_target().join(TARGET).join(whom.profile()).join(format!("{name}.wasm"))
}

/// Builds packages of the workspace for wasm32.
fn wasm(tools: &PageTools, whom: PageFor, what: &[&str]) -> Result<(), String> {
    forget_other_compilers(tools)?;
    let build = cargo().args(["build", "--quiet", "--target", TARGET, "--profile", whom.profile()]);
    build.args(what).envs(&tools.compiler.env()).run()
}

/// Builds the page into frontend/dist, unless the page there was built from the same sources with the same tools.
pub fn build(tools: &PageTools, whom: PageFor) -> Result<Done, String> {
    // Two runs at once would write into the same folders. The second run waits and then finds the page of the first.
    let _alone = paths::alone(&paths::page_target().join("building"))?;
    let stamp = paths::page_target().join("built");
    let sources = fingerprint(tools, whom)?;
    let done = paths::dist();
    if done.join("index.html").is_file() && std::fs::read_to_string(&stamp).is_ok_and(|built| built == sources) {
        return Ok(Done::Already(format!("{} is up to date", done.display())));
    }
    // The page is not built in frontend/dist itself. A plain `cargo build` embeds this folder in a binary, even when it
    // is incomplete.
    let dist = paths::page_target().join("dist");
    paths::remove(&dist)?;
    std::fs::create_dir_all(&dist).map_err(|e| format!("{} could not be made: {e}", dist.display()))?;
    // An interrupted build must not count as the old one. A missing stamp is not an error.
    let _ = std::fs::remove_file(&stamp);
    // Both at once, so that cargo unites their features and compiles shared crates once.
    let what = [&["--package", PACKAGE, "--package", READER, "--bin", PROGRAM, "--lib"], &PARTS[..]].concat();
    wasm(tools, whom, &what)?;
    let (module, page) = module(tools, whom)?;
    let html = bundle(&module, &dist)?;
    let (html, reader) = reader(tools, whom, &dist, &html)?;
    only_relative(&html)?;
    paths::write(&dist.join("index.html"), &html)?;
    paths::remove(&done)?;
    paths::copy(&dist, &done)?;
    paths::write(&stamp, &sources)?;
    Ok(Done::Now(format!("{page}; of its reader {reader}")))
}

/// Takes the page apart and runs wasm-bindgen, which writes the page's script. Returns the module, and its size in words.
fn module(tools: &PageTools, whom: PageFor) -> Result<(Module, String), String> {
    let folder = paths::page_target().join("bindgen");
    paths::remove(&folder)?;
    cmd(&tools.wasm_bindgen).arg("--parts").arg(compiled(whom, PROGRAM)).arg(&folder).arg(PROGRAM).run()?;
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let wasm = folder.join(format!("{PROGRAM}_bg.wasm"));
    let size = smaller(tools, whom, &wasm)?;
    let mut files = Vec::new();
    paths::list(&folder, &|path| path.extension().is_none_or(|e| e == "wasm") && path != wasm, &mut files)?;
    let mut parts = Vec::new();
    for file in files {
        smaller(tools, whom, &file)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        parts.push((name, read(&file)?));
    }
    let bytes: usize = parts.iter().map(|(_, part)| part.len()).sum();
    let words = format!("{size}; {bytes} bytes in {} files that are loaded later", parts.len());
    let script = paths::read(&folder.join(format!("{PROGRAM}.js")))?;
    let loader = paths::read(&folder.join(format!("{PROGRAM}_parts.js")))?;
    Ok((Module { script, wasm: read(&wasm)?, loader, parts }, words))
}

/// Runs wasm-opt on a release file if it is installed, and returns the result in words.
fn smaller(tools: &PageTools, whom: PageFor, wasm: &Path) -> Result<String, String> {
    let plain = size(wasm)?;
    if whom == PageFor::Builders {
        return Ok(format!("{plain} bytes of wasm, for who builds it"));
    }
    let Some(wasm_opt) = &tools.wasm_opt else { return Ok(format!("{plain} bytes of wasm")) };
    let smaller = paths::page_target().join("smaller.wasm");
    match cmd(wasm_opt).args(FEATURES).args(PASSES).arg(wasm).arg("-o").arg(&smaller).run() {
        Ok(()) => {
            std::fs::copy(&smaller, wasm).map_err(|e| format!("{}: {e}", wasm.display()))?;
            Ok(format!("{} bytes of wasm, {plain} before wasm-opt", size(wasm)?))
        }
        // The page works without wasm-opt too. One reason for a failure is an old Node.js.
        Err(reason) => Ok(format!("{plain} bytes of wasm, a quarter more than with wasm-opt: {reason}")),
    }
}

/// Puts the module that opens files and its worker beside the page. Their names contain the hashes of their contents.
/// The worker gets the name of the module, and the page gets the name of the worker.
fn reader(tools: &PageTools, whom: PageFor, dist: &Path, html: &str) -> Result<(String, String), String> {
    let built = paths::page_target().join(TARGET).join(whom.profile()).join(READER_PLACE);
    let wasm = paths::page_target().join(READER_PLACE);
    std::fs::copy(&built, &wasm).map_err(|e| format!("{}: {e}", built.display()))?;
    let result = smaller(tools, whom, &wasm)?;
    let content = std::fs::read(&wasm).map_err(|e| format!("{}: {e}", wasm.display()))?;
    let module = name_of("reader", "wasm", &content);
    std::fs::write(dist.join(&module), content).map_err(|e| format!("{module}: {e}"))?;
    let source = paths::root().join("frontend").join("reader").join("worker.js");
    let script = replaced(&paths::read(&source)?, READER_PLACE, &module)?;
    let worker = name_of("reader", "js", script.as_bytes());
    paths::write(&dist.join(&worker), &script)?;
    Ok((replaced(html, WORKER_PLACE, &worker)?, result))
}

/// An error when the page contains an address that begins with a slash. Such an address is wrong behind a proxy with a
/// path prefix.
fn only_relative(html: &str) -> Result<(), String> {
    for wrong in ["=\"/", "'/", "=/"] {
        if let Some(at) = html.find(wrong) {
            let excerpt: String = html[at..].chars().take(60).collect();
            return Err(format!("frontend/dist/index.html has an address from the root: {excerpt}"));
        }
    }
    Ok(())
}

fn size(path: &Path) -> Result<u64, String> {
    std::fs::metadata(path).map(|meta| meta.len()).map_err(|e| format!("{}: {e}", path.display()))
}

/// Removes wasm32 output of another compiler, because cargo does not notice a changed sysroot.
fn forget_other_compilers(tools: &PageTools) -> Result<(), String> {
    let stamp = paths::page_target().join("compiler");
    let id = tools.compiler.id();
    if std::fs::read_to_string(&stamp).is_ok_and(|last| last == id) {
        return Ok(());
    }
    paths::remove(&paths::page_target().join(TARGET))?;
    paths::write(&stamp, &id)
}

/// A hash of all inputs of the page: its sources, the tools, and the code that assembles it.
fn fingerprint(tools: &PageTools, whom: PageFor) -> Result<String, String> {
    let root = paths::root();
    let mut files =
        ["Cargo.toml", "Cargo.lock", "xtask/bindgen/src/main.rs", "xtask/src/bundle.rs", "xtask/src/page.rs"]
            .map(|file| root.join(file))
            .to_vec();
    for folder in ["frontend", "shared", "static", "backend/insight/src"] {
        paths::list(&root.join(folder), &can_change_the_page, &mut files)?;
    }
    paths::digest(&[whom.profile(), &tools.id()], files)
}

/// Whether a file or folder can change the page. Built files, tests, and texts and pictures for readers cannot.
fn can_change_the_page(path: &Path) -> bool {
    let for_readers = path.extension().is_some_and(|e| e == "md" || e == "png");
    !for_readers && path != paths::dist() && !path.ends_with("tests")
}

#[cfg(test)]
mod tests {
    use super::only_relative;

    #[test]
    fn an_address_from_the_root_is_refused() {
        assert!(only_relative("<link href=\"./a.css\"><script>import init from './a.js';</script>").is_ok());
        assert!(only_relative("<link href=\"/a.css\">").is_err());
        assert!(only_relative("import init from '/a.js'").is_err());
    }
}
