//! `cargo xtask bench`: measures the published figures.
//!
//! The benches are a program of the `tests` package, because they need internals of the product, and xtask must not
//! depend on it. The page and the server are built here first in the release form, because the figures apply to that.

use crate::Failure;
use crate::exec::{cargo, cmd};
use crate::page;
use crate::paths;
use crate::run::{self, Profile};
use crate::setup::{self, PageFor, PageTools};
use crate::steps::{Done, Steps};
use std::path::Path;

/// Runs the benches with `args`.
pub fn bench(args: &[String]) -> Result<(), Failure> {
    let mut steps = Steps::new("bench");
    let tools = setup::page_tools(&mut steps, PageFor::Release)?;
    setup::browser(&mut steps)?;
    steps.step("page", || page::build(&tools, PageFor::Release))?;
    let uplot = setup::uplot(&mut steps)?;
    let peers = setup::peers(&mut steps);
    let jupyter = setup::jupyter(&mut steps);
    // The CPU use of the server is measured on the real binary.
    let server = run::server(&mut steps, Profile::Dist)?;
    let mut bench = cargo().env("WATCHGLASS_BINARY", server).path_first(&peers);
    bench =
        bench.args(["run", "--profile", "dist", "--quiet", "--package", "watchglass-tests", "--bin", "bench", "--"]);
    if let Some(jupyter) = jupyter {
        bench = bench.env("WATCHGLASS_JUPYTER", jupyter);
    }
    if let Some(uplot) = uplot {
        let folder = paths::root().join("target/bench/redraw");
        steps.step("redraw", || redraw(&tools, &uplot, &folder))?;
        bench = bench.arg("--redraw").arg(&folder);
    }
    Ok(bench.args(args).run_shown()?)
}

/// Puts our drawing code as wasm and uPlot's script into one folder for the browser.
fn redraw(tools: &PageTools, uplot: &Path, folder: &Path) -> Result<Done, String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let wasm = page::binary(tools, "redraw")?;
    cmd(&tools.wasm_bindgen).arg(wasm).arg(folder).arg("redraw").run()?;
    let own = paths::root().join("tests/bench/redraw");
    let theirs = uplot.join("node_modules/uplot/dist");
    let scenarios = std::fs::read_dir(&own).map_err(|e| format!("{}: {e}", own.display()))?;
    let scenarios = scenarios.flatten().map(|file| file.path());
    for file in scenarios.chain([theirs.join("uPlot.iife.min.js"), theirs.join("uPlot.min.css")]) {
        let name = file.file_name().unwrap_or_default();
        std::fs::copy(&file, folder.join(name)).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(Done::Now(folder.display().to_string()))
}
