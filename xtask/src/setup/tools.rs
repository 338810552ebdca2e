//! The programs that turn wasm into a page: wasm-bindgen, wasm-opt; and npm packages for benches and tests.

use crate::exec::{cargo, cmd, find, quiet_in_a_log};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

/// Name of the step that prepares wasm-bindgen, which writes the page's script.
pub const WASM_BINDGEN: &str = "wasm-bindgen";
const WASM_BINDGEN_PACKAGE: &str = "wasm-bindgen-cli";
const BINARYEN: &str = "132.0.0";
const UPLOT: &str = "1.6.32";
const AXE: &str = "4.14.1";

/// Prepares wasm-bindgen in the version of the library in Cargo.lock, and returns its folder. Another version refuses
/// the file.
pub fn wasm_bindgen(steps: &mut Steps) -> Result<PathBuf, String> {
    let version = locked("wasm-bindgen")?;
    // The flag --locked is missing on purpose: its lock file may name a version that a registry's mirror does not have.
    // The programs for tests are left out, and so are the features for downloads.
    let flags = ["--bin", WASM_BINDGEN, "--no-default-features"];
    let install = |root: &Path| from_source(WASM_BINDGEN_PACKAGE, &version, root, &flags);
    let path = program(steps, WASM_BINDGEN, WASM_BINDGEN_PACKAGE, &version, install)?;
    Ok(path.parent().unwrap_or(&path).to_path_buf())
}

/// True when this wasm-bindgen is there.
pub fn has_wasm_bindgen() -> bool {
    locked("wasm-bindgen").is_ok_and(|version| there(WASM_BINDGEN, WASM_BINDGEN_PACKAGE, &version).is_some())
}

/// Prepares wasm-opt if possible. Debian's version is too old, but an npm package has a new one.
pub fn wasm_opt(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    let root =
        npm(steps, "wasm-opt", "binaryen", BINARYEN, "node_modules/.bin/wasm-opt", "the page gets a quarter larger")?;
    Ok(root.map(|root| root.join("node_modules/.bin/wasm-opt")))
}

/// The folder with uPlot, with which our drawing is compared; None when it is missing.
pub fn uplot(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    npm(steps, "uPlot", "uplot", UPLOT, "node_modules/uplot/dist/uPlot.iife.min.js", "redrawing is not compared")
}

/// Path of the script of axe-core, which finds what a keyboard or a screen reader cannot use; None when it is missing.
pub fn axe(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    const SCRIPT: &str = "node_modules/axe-core/axe.min.js";
    let root = npm(steps, "axe-core", "axe-core", AXE, SCRIPT, "the page is not checked by axe-core")?;
    Ok(root.map(|root| root.join(SCRIPT)))
}

/// The folder of an npm package in an exact version, from our cache or installed now. Without npm the step prints
/// `cost`.
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
        // A second retry would come only a minute later, which is useless without a network.
        let flags = [
            "install",
            "--fetch-retries=1",
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--no-progress",
            "--loglevel=error",
            "--prefix",
        ];
        if let Err(reason) = cmd(npm).args(flags).arg(&root).arg(&exact).dir(&root).run() {
            return Ok(Done::Without(format!("{cost}: {reason}")));
        }
        found = Some(root);
        Ok(Done::Now(format!("{package} {version}")))
    })?;
    Ok(found)
}

/// A program in an exact version: from PATH, from our cache, or installed now.
fn program(
    steps: &mut Steps,
    name: &str,
    package: &str,
    version: &str,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let mut found = None;
    steps.step(name, || {
        let already = |path: &PathBuf| Done::Already(format!("{version} ({})", path.display()));
        found = there(name, package, version);
        if let Some(path) = &found {
            return Ok(already(path));
        }
        let root = paths::tool(package, version)?;
        let _alone = paths::alone(&root.with_added_extension("making"))?;
        found = there(name, package, version);
        if let Some(path) = &found {
            return Ok(already(path)); // Another run has made it in the meantime.
        }
        install(&root)?;
        found = there(name, package, version);
        match &found {
            Some(_) => Ok(Done::Now(version.to_owned())),
            None => Err(format!("{} holds no {name} {version} after the installation", root.display())),
        }
    })?;
    found.ok_or_else(|| format!("{name} is missing"))
}

/// The path of a program in an exact version, in our cache or on PATH; None when there is none.
fn there(name: &str, package: &str, version: &str) -> Option<PathBuf> {
    let root = paths::tool(package, version).ok()?;
    let own = root.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let is_it =
        |path: &PathBuf| path.is_file() && cmd(path).arg("--version").output().is_ok_and(|text| names(&text, version));
    [Some(own), find(name)].into_iter().flatten().find(is_it)
}

/// Installs a program by `cargo binstall` if the user has it (seconds), else by `cargo install` (minutes). It is
/// compiled without optimisation, which takes a quarter of the time, because the program runs only for seconds.
fn from_source(package: &str, version: &str, root: &Path, flags: &[&str]) -> Result<(), String> {
    if find("cargo-binstall").is_some() {
        eprintln!("    cargo binstall {package} {version}");
        let binstall =
            cargo().args(["binstall", "--no-confirm", "--disable-strategies", "compile", "--root"]).arg(root);
        match binstall.args(["--version", version, package]).run() {
            Ok(()) => return Ok(()),
            Err(reason) => eprintln!("    {reason}"),
        }
    }
    eprintln!("    cargo install {package} {version}");
    // After a failure, what was compiled stays for the next try. The folder for temporary files may be too small for
    // it.
    let work = root.with_added_extension("compiled");
    cargo()
        .args(["install", "--debug", package, "--version", version, "--root"])
        .arg(root)
        .arg("--target-dir")
        .arg(&work)
        .args(flags)
        .args(quiet_in_a_log())
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        // This folder is outside of the workspace, so that its profiles and .cargo/config.toml do not apply to a tool.
        .dir(&std::env::temp_dir())
        .run()
        .map_err(fetched_or_not)?;
    paths::remove(&work)
}

/// The error of a cargo that may have tried to download something, with advice.
pub fn fetched_or_not(reason: String) -> String {
    format!(
        "{reason}. Cargo says above why. Without a network, or behind a proxy: set HTTPS_PROXY to the proxy's address, \
         then run this again. What was fetched and compiled is kept"
    )
}

/// The version of a package in Cargo.lock.
fn locked(package: &str) -> Result<String, String> {
    let lock = paths::read(&paths::root().join("Cargo.lock"))?;
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| format!("Cargo.lock has no package {package}"))
}

/// True when one word of a `--version` text is this version.
fn names(text: &str, version: &str) -> bool {
    text.split_whitespace().any(|word| word == version)
}

#[cfg(test)]
mod tests {
    use super::{locked, names};

    #[test]
    fn a_version_is_a_whole_word() {
        assert!(names("wasm-bindgen 0.2.130\n", "0.2.130"));
        assert!(!names("wasm-bindgen 0.2.1300\n", "0.2.130"));
        assert!(!names("wasm-bindgen 0.2.13\n", "0.2.130"));
    }

    #[test]
    fn the_lock_file_names_the_bindgen() {
        let version = locked("wasm-bindgen").expect("the page uses it");
        assert_eq!(version.split('.').count(), 3, "{version}");
        assert!(locked("no-such-package").is_err());
    }
}
