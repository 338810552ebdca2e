//! `cargo xtask insight`: measures how often findings are right, and writes the table.
//!
//! The measuring is an example of the crate, so that it needs nothing else of the product. Without arguments all of the
//! set is measured, and what people and the crate read of it is written anew.

use crate::Failure;
use crate::exec::cargo;
use crate::paths;

/// Measures with `args`; with none writes static/insight.md and the confidence of the rules.
pub fn insight(args: &[String]) -> Result<(), Failure> {
    let root = paths::root();
    let mut measure = cargo().args(["run", "--release", "--quiet", "--package", "watchglass-insight"]);
    measure = measure.args(["--example", "measure", "--"]);
    if args.is_empty() {
        measure = measure.arg("--report").arg(root.join("static/insight.md"));
        measure = measure.arg("--confidence").arg(root.join("backend/insight/confidence.txt"));
    }
    Ok(measure.args(args).run_shown()?)
}
