//! `cargo xtask test`: every check. A step that fails does not keep the others from running.

use crate::Failure;
use crate::exec::{Cmd, cargo};
use crate::left;
use crate::page;
use crate::paths;
use crate::setup;
use crate::steps::{Done, Steps};
use std::path::PathBuf;

/// All test programs; a name or `--skip` after it chooses tests.
const ALL: [&str; 4] = ["--lib", "--bins", "--tests", "--"];

/// Runs all checks and ends with the table of steps.
///
/// The compiling steps name the same targets, those of the whole workspace: cargo unites the features of what it is
/// asked for, and with another choice it would compile the dependencies once more.
pub fn test() -> Result<(), Failure> {
    let mut steps = Steps::new();
    steps.expect(left::page());
    // Errors are in the table of steps, which decides at the end.
    let _ = setup::checkers(&mut steps);
    let tools = setup::page_tools(&mut steps);
    let _ = setup::browser(&mut steps);
    let programs = setup::programs(&mut steps);
    let axe = setup::axe(&mut steps).ok().flatten();

    check(&mut steps, "format", || cargo().args(["fmt", "--all", "--check"]).run());
    check(&mut steps, "lints", || {
        let packages = ["--workspace", "--exclude", page::PACKAGE, "--all-targets"];
        cargo().args(["clippy", "--quiet", "--keep-going"]).args(packages).args(["--", "-D", "warnings"]).run()
    });
    // The page comes before the programs that have it inside.
    match &tools {
        Ok(tools) => {
            let _ = steps.step("page", || page::build(tools));
            let _ = steps.step("lints of the page", || page::clippy(tools));
        }
        Err(reason) => {
            let _ = steps.step("page", || Err(format!("not built: {reason}")));
        }
    }
    check(&mut steps, "compile", || cargo().args(["build", "--quiet", "--workspace", "--all-targets"]).run());
    check(&mut steps, "unit and integration tests", || {
        tests(&programs).args(ALL).args(["--skip", "browser::"]).run_shown()
    });
    check(&mut steps, "browser tests", || {
        let mut tests = tests(&[]).args(ALL).arg("browser::");
        if let Some(axe) = &axe {
            tests = tests.env("WATCHGLASS_AXE", axe);
        }
        tests.run_shown()
    });
    check(&mut steps, "documentation tests", || tests(&[]).arg("--doc").run_shown());
    Ok(steps.finish()?)
}

fn check(steps: &mut Steps, name: &str, work: impl FnOnce() -> Result<(), String>) {
    eprintln!("[{name}]");
    let _ = steps.step(name, || work().map(|()| Done::Now("passed".to_owned())));
}

/// `programs` are folders of programs that the tests start, beside those on PATH.
fn tests(programs: &[PathBuf]) -> Cmd {
    // The tests of another package do not get the binary built for them; it is, by the step before.
    let binary = paths::target().join("debug").join(format!("watchglass{}", std::env::consts::EXE_SUFFIX));
    let tests = cargo().args(["test", "--workspace", "--no-fail-fast"]).env("WATCHGLASS_BINARY", binary);
    tests.path_first(programs)
}
