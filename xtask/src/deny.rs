//! `cargo deny`: checks that `deny.toml` allows the licenses, sources and versions of all crates, and that no crate has
//! a known vulnerability.

use crate::exec::{cargo, cmd};
use crate::paths;
use crate::setup;
use crate::steps::{Done, Steps};
use std::path::Path;

/// An exception in `deny.toml` that is no longer needed is an error, too.
const RULES: [&str; 10] = [
    "check",
    "-D",
    "unnecessary-skip",
    "-D",
    "unmatched-skip",
    "-D",
    "license-not-encountered",
    "--hide-inclusion-graph",
    "licenses",
    "sources",
];

/// Checks all crates. If the advisory database cannot be reached, its check is skipped, and this is reported.
pub fn check(steps: &mut Steps) {
    let Some(deny) = setup::deny(steps) else { return };
    // The table of steps has the errors.
    let _ = steps.step("licenses, sources, versions", || {
        // Includes the crates of other systems, which are never built here.
        cargo().args(["fetch", "--quiet", "--locked"]).run()?;
        run(&deny, &RULES, &["bans"])?;
        Ok(Done::Now("passed".to_owned()))
    });
    let _ = steps.step("known faults of crates", || {
        if let Err(reason) = cmd(&deny).args(["--color", "never", "fetch", "db"]).dir(&paths::root()).output() {
            return Ok(Done::Without(format!(
                "the database of known faults cannot be reached: {}",
                last_line(&reason)
            )));
        }
        run(&deny, &["check", "-D", "advisory-not-detected", "--hide-inclusion-graph"], &["advisories"])?;
        Ok(Done::Now("passed".to_owned()))
    });
}

fn run(deny: &Path, rules: &[&str], what: &[&str]) -> Result<(), String> {
    cmd(deny).args(["--offline", "--color", "never"]).args(rules).args(what).dir(&paths::root()).run()
}

/// The end of a reason, which names the last fault.
fn last_line(reason: &str) -> &str {
    reason.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::last_line;

    #[test]
    fn a_reason_ends_with_what_was_wrong() {
        assert_eq!(last_line("fetching\nCould not resolve host: x\n\n"), "Could not resolve host: x");
        assert_eq!(last_line(""), "");
    }
}
