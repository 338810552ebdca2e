//! `cargo xtask screenshots`: takes the pictures of the page for the README.
//!
//! A program of the `tests` package takes them, because it can start a server and a browser.

use crate::Failure;
use crate::exec::cargo;
use crate::paths;
use crate::run;
use crate::setup;
use crate::steps::Steps;

/// Writes the pictures into static/.
pub fn screenshots() -> Result<(), Failure> {
    let mut steps = Steps::new("screenshots");
    setup::browser(&mut steps)?;
    let server = run::release(&mut steps)?;
    let take = cargo().env("WATCHGLASS_BINARY", server);
    let take = take.args(["run", "--quiet", "--package", "watchglass-tests", "--bin", "screenshots", "--"]);
    Ok(take.arg(paths::root().join("static")).run_shown()?)
}
