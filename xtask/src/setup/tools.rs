//! The programs that turn wasm into a page: bindgen, wasm-opt; and npm packages for benches and tests.

use crate::exec::{cargo, cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::PathBuf;

/// Name of the step that prepares wasm-bindgen, which writes the page's script.
pub const WASM_BINDGEN: &str = "wasm-bindgen";
const BINARYEN: &str = "132.0.0";
const UPLOT: &str = "1.6.32";
const AXE: &str = "4.14.1";

/// Compiles the program that runs wasm-bindgen for the page's script, with the library version of Cargo.lock, and
/// returns its path. It is compiled without optimization, because it runs only for seconds.
pub fn wasm_bindgen(steps: &mut Steps) -> Result<PathBuf, String> {
    let path = bindgen();
    let modified = || std::fs::metadata(&path).and_then(|meta| meta.modified()).ok();
    steps.step(WASM_BINDGEN, || {
        let before = modified();
        cargo().args(["build", "--quiet", "--package", "watchglass-bindgen"]).run().map_err(fetched_or_not)?;
        let text = path.display().to_string();
        Ok(if before.is_some() && modified() == before { Done::Already(text) } else { Done::Now(text) })
    })?;
    Ok(path)
}

/// True when this program was compiled here before.
pub fn has_wasm_bindgen() -> bool {
    bindgen().is_file()
}

fn bindgen() -> PathBuf {
    paths::target().join("debug").join(format!("bindgen{}", std::env::consts::EXE_SUFFIX))
}

/// Prepares wasm-opt if possible. Debian's version is too old, but an npm package has a recent one.
pub fn wasm_opt(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    let root =
        npm(steps, "wasm-opt", "binaryen", BINARYEN, "node_modules/.bin/wasm-opt", "the page gets a quarter larger")?;
    Ok(root.map(|root| root.join("node_modules/.bin/wasm-opt")))
}

/// The folder with uPlot, which our drawing is compared with; None when it is missing.
pub fn uplot(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    npm(steps, "uPlot", "uplot", UPLOT, "node_modules/uplot/dist/uPlot.iife.min.js", "redrawing is not compared")
}

/// Path of the script of axe-core, which finds barriers for keyboards and screen readers; None when it is missing.
pub fn axe(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    const SCRIPT: &str = "node_modules/axe-core/axe.min.js";
    let root = npm(steps, "axe-core", "axe-core", AXE, SCRIPT, "the page is not checked by axe-core")?;
    Ok(root.map(|root| root.join(SCRIPT)))
}

/// The folder of an npm package in an exact version, from our cache or newly installed. Without npm the step prints
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
        // A second retry would come a minute later, which is useless without a network.
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

/// Adds advice to an error of cargo that may come from a download.
pub fn fetched_or_not(reason: String) -> String {
    format!(
        "{reason}. Cargo says above why. Without a network, or behind a proxy: set HTTPS_PROXY to the proxy's address, \
         then run this again. What was fetched and compiled is kept"
    )
}
