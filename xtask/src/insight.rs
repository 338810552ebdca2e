//! `cargo xtask insight`: measures how often findings are right, and writes the table.
//!
//! The measuring is an example of the crate, so that it needs nothing else of the product. Without arguments all of the
//! set is measured, and what people and the crate read of it is written anew.

use crate::Failure;
use crate::exec::{Cmd, cargo};
use crate::paths;

/// Measures with `args`; with none writes docs/reference/insight.md and the confidence of the rules.
pub fn insight(args: &[String]) -> Result<(), Failure> {
    let (root, mut measure) = (paths::root(), measure("release"));
    if args.is_empty() {
        measure = measure.arg("--report").arg(root.join("docs/reference/insight.md"));
        measure = measure.arg("--confidence").arg(root.join("backend/insight/confidence.txt"));
    }
    Ok(measure.args(args).run_shown()?)
}

/// Measures a third of the set, and fails where the bar is missed beyond doubt. The same traces each time, so the same
/// verdict; half a minute of processor time. The profile `dev` optimizes the two packages that work here.
pub fn quick() -> Result<(), String> {
    measure("dev").arg("--quick").run()
}

fn measure(profile: &str) -> Cmd {
    let measure = cargo().args(["run", "--profile", profile, "--quiet", "--package", "watchglass-insight"]);
    measure.args(["--example", "measure", "--"])
}
