//! `cargo xtask insight`: measures how often findings are right, and writes the table.
//!
//! The measurement is an example of the crate, so that it needs no other part of the product. Without arguments the
//! whole set is measured, and the table and the crate's confidences are rewritten.

use crate::Failure;
use crate::exec::{Cmd, cargo};
use crate::paths;

/// Measures with `args`. Without arguments it writes docs/reference/insight.md and the confidences of the rules.
pub fn insight(args: &[String]) -> Result<(), Failure> {
    let (root, mut measure) = (paths::root(), measure("release"));
    if args.is_empty() {
        measure = measure.arg("--report").arg(root.join("docs/reference/insight.md"));
        measure = measure.arg("--confidence").arg(root.join("backend/insight/confidence.txt"));
    }
    Ok(measure.args(args).run_shown()?)
}

/// Measures 400 traces of the set, some of each kind, and fails when the bar is clearly missed. The traces are the same
/// each time, and so is the verdict. It takes about a minute of CPU time. The profile `dev` optimizes the two packages that it runs.
pub fn quick() -> Result<(), String> {
    measure("dev").arg("--quick").run()
}

fn measure(profile: &str) -> Cmd {
    let measure = cargo().args(["run", "--profile", profile, "--quiet", "--package", "watchglass-insight"]);
    measure.args(["--example", "measure", "--"])
}
