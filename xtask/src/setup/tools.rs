//! The programs that make a page out of wasm: trunk, wasm-bindgen, wasm-opt.

use crate::exec::{cargo, cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

const TRUNK: &str = "0.21.14";
const BINARYEN: &str = "132.0.0";
const UPLOT: &str = "1.6.32";
const AXE: &str = "4.14.1";

/// trunk, pinned: the shape of what it writes differs between versions.
pub fn trunk(steps: &mut Steps) -> Result<PathBuf, String> {
    let install = |root: &Path| from_source("trunk", TRUNK, root, &["--locked"], "seven to nine minutes on two cores");
    program(steps, "trunk", "trunk", TRUNK, install)
}

/// The folder of the wasm-bindgen that equals the library in Cargo.lock: any other refuses the file.
pub fn wasm_bindgen(steps: &mut Steps) -> Result<PathBuf, String> {
    let version = locked("wasm-bindgen")?;
    // Not --locked: its own lock file may name a version that a registry's mirror does not have.
    let install = |root: &Path| from_source("wasm-bindgen-cli", &version, root, &[], "three minutes on two cores");
    let path = program(steps, "wasm-bindgen", "wasm-bindgen-cli", &version, install)?;
    Ok(path.parent().unwrap_or(&path).to_path_buf())
}

/// wasm-opt, if it can be had: Debian's is too old, npm's package carries a new one.
pub fn wasm_opt(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    let root =
        npm(steps, "wasm-opt", "binaryen", BINARYEN, "node_modules/.bin/wasm-opt", "the page gets a quarter larger")?;
    Ok(root.map(|root| root.join("node_modules/.bin/wasm-opt")))
}

/// The folder with uPlot, the peer that our drawing is measured against, if it can be had.
pub fn uplot(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    npm(steps, "uPlot", "uplot", UPLOT, "node_modules/uplot/dist/uPlot.iife.min.js", "redrawing is not compared")
}

/// axe-core, which finds what a keyboard or a screen reader cannot use, if it can be had: one script.
pub fn axe(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    const SCRIPT: &str = "node_modules/axe-core/axe.min.js";
    let root = npm(steps, "axe-core", "axe-core", AXE, SCRIPT, "the page is not checked by axe-core")?;
    Ok(root.map(|root| root.join(SCRIPT)))
}

/// The folder of an npm package of an exact version: from our cache, or installed now. Without npm `cost` is said.
fn npm(
    steps: &mut Steps,
    name: &str,
    package: &str,
    version: &str,
    file: &str,
    cost: &str,
) -> Result<Option<PathBuf>, String> {
    let mut found = None;
    steps.step(name, || {
        let root = paths::tool(package, version)?;
        let exact = format!("{package}@{version}");
        let wanted = format!("npm install --prefix {} {exact}", root.display());
        if root.join(file).exists() {
            found = Some(root);
            return Ok(Done::Already(format!("{package} {version}")));
        }
        let Some(npm) = find("npm") else {
            return Ok(Done::Without(format!("{cost}; install Node.js, then: {wanted}")));
        };
        eprintln!("    {wanted}");
        std::fs::create_dir_all(&root).map_err(|e| format!("{} could not be made: {e}", root.display()))?;
        let flags =
            ["install", "--no-audit", "--no-fund", "--no-save", "--no-progress", "--loglevel=error", "--prefix"];
        if let Err(reason) = cmd(npm).args(flags).arg(&root).arg(&exact).dir(&root).run() {
            return Ok(Done::Without(format!("{cost}: {reason}")));
        }
        found = Some(root);
        Ok(Done::Now(format!("{package} {version}")))
    })?;
    Ok(found)
}

/// A program of an exact version: from PATH, from our cache, or installed now.
fn program(
    steps: &mut Steps,
    name: &str,
    package: &str,
    version: &str,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let mut found = None;
    steps.step(name, || {
        let root = paths::tool(package, version)?;
        let own = root.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let is_it = |path: &PathBuf| cmd(path).arg("--version").output().is_ok_and(|text| names(&text, version));
        if let Some(path) =
            [Some(own.clone()), find(name)].into_iter().flatten().filter(|path| path.is_file()).find(is_it)
        {
            let done = Done::Already(format!("{version} ({})", path.display()));
            found = Some(path);
            return Ok(done);
        }
        install(&root)?;
        if !is_it(&own) {
            return Err(format!("{} is not version {version} after the installation", own.display()));
        }
        found = Some(own);
        Ok(Done::Now(version.to_owned()))
    })?;
    found.ok_or_else(|| format!("{name} is missing"))
}

/// `cargo binstall` where the user has it (seconds), else `cargo install` (minutes).
fn from_source(package: &str, version: &str, root: &Path, flags: &[&str], time: &str) -> Result<(), String> {
    if find("cargo-binstall").is_some() {
        eprintln!("    cargo binstall {package} {version}");
        let binstall =
            cargo().args(["binstall", "--no-confirm", "--disable-strategies", "compile", "--root"]).arg(root);
        match binstall.args(["--version", version, package]).run() {
            Ok(()) => return Ok(()),
            Err(reason) => eprintln!("    {reason}"),
        }
    }
    eprintln!("    cargo install {package} {version} ({time}; once)");
    cargo()
        .args(["install", "--quiet", package, "--version", version, "--root"])
        .arg(root)
        .args(flags)
        .dir(&std::env::temp_dir()) // not ours: the workspace's profiles and .cargo/config.toml are no business of a tool
        .env_remove("CARGO_TARGET_DIR")
        .run()
}

/// The version of a package in Cargo.lock.
fn locked(package: &str) -> Result<String, String> {
    let lock = paths::read(&paths::root().join("Cargo.lock"))?;
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| format!("Cargo.lock has no package {package}"))
}

/// Whether one word of a `--version` text is that version.
fn names(text: &str, version: &str) -> bool {
    text.split_whitespace().any(|word| word == version)
}

#[cfg(test)]
mod tests {
    use super::{locked, names};

    #[test]
    fn a_version_is_a_whole_word() {
        assert!(names("trunk 0.21.14\n", "0.21.14"));
        assert!(!names("trunk 0.21.140\n", "0.21.14"));
        assert!(!names("trunk 0.21.1\n", "0.21.14"));
    }

    #[test]
    fn the_lock_file_names_the_bindgen() {
        let version = locked("wasm-bindgen").expect("the page uses it");
        assert_eq!(version.split('.').count(), 3, "{version}");
        assert!(locked("no-such-package").is_err());
    }
}
