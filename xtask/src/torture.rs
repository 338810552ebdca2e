//! `cargo xtask torture`: checks that samples shown by a page survive any end of the server.
//!
//! The torture is a program of the `tests` package. The real binary is built here for it.

use crate::Failure;
use crate::exec::cargo;
use crate::run::{self, Profile};
use crate::steps::Steps;

/// Runs the torture with `args`.
pub fn torture(args: &[String]) -> Result<(), Failure> {
    let mut steps = Steps::new("torture");
    let server = run::server(&mut steps, Profile::Release)?;
    let torture = cargo().env("WATCHGLASS_BINARY", server);
    let torture =
        torture.args(["run", "--release", "--quiet", "--package", "watchglass-tests", "--bin", "torture", "--"]);
    Ok(torture.args(args).run_shown()?)
}
