//! `cargo xtask bench`: the figures that we publish.
//!
//! The benches themselves are a program of the `tests` package, because they need the product's insides and this tool
//! must not. Here the page is built first, so that its weight is that of the real one.

use crate::Failure;
use crate::exec::cargo;
use crate::page;
use crate::setup;
use crate::steps::Steps;

/// Runs the benches with `args`.
pub fn bench(args: &[String]) -> Result<(), Failure> {
    let mut steps = Steps::new();
    let tools = setup::page_tools(&mut steps)?;
    steps.step("page", || page::build(&tools))?;
    let bench = cargo().args(["run", "--release", "--package", "watchglass-tests", "--bin", "bench", "--"]);
    Ok(bench.args(args).run_shown()?)
}
