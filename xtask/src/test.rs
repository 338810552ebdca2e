//! `cargo xtask test`: runs every check. A step that fails does not stop the others.

use crate::Failure;
use crate::exec::{Cmd, cargo, cmd};
use crate::left;
use crate::page;
use crate::paths;
use crate::setup;
use crate::steps::{Done, Steps};
use std::net::TcpListener;
use std::path::PathBuf;

/// Arguments that select all test programs; a name or `--skip` after them selects tests.
const ALL: [&str; 4] = ["--lib", "--bins", "--tests", "--"];

/// Runs all checks and prints the table of steps.
///
/// The steps that compile all name the same targets, those of the whole workspace. Cargo unites the features of the
/// targets that it gets, so with another choice it would compile the dependencies once more.
pub fn test() -> Result<(), Failure> {
    let mut steps = Steps::new();
    steps.expect(left::page());
    // The table of steps has the errors.
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
    // The page is built before the programs that have it inside.
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
    check(&mut steps, "unit and integration tests", || tests(&[]).args(ALL).args(["--skip", "browser::"]).run_shown());
    let mut needs = programs.tests;
    needs.extend(here().iter().filter(|(_, is_here)| *is_here).map(|(tests, _)| tests));
    if !needs.is_empty() {
        // Without these names they are ignored and counted: what they need is not everywhere.
        check(&mut steps, "tests that need more", || {
            tests(&programs.folders).args(ALL).arg("--ignored").args(&needs).run_shown()
        });
    }
    check(&mut steps, "browser tests", || tests(&[]).args(ALL).arg("browser::").run_shown());
    if let Some(axe) = &axe {
        check(&mut steps, "axe on the page", || {
            tests(&[]).args(ALL).args(["--ignored", "with_axe_"]).env("WATCHGLASS_AXE", axe).run_shown()
        });
    }
    check(&mut steps, "documentation tests", || tests(&[]).arg("--doc").run_shown());
    Ok(steps.finish()?)
}

/// How the names of tests begin that need something of the machine, and whether it is here.
fn here() -> [(&'static str, bool); 3] {
    let root = cmd("id").arg("-u").output().is_ok_and(|uid| uid.trim() == "0");
    let recordings = std::env::var_os("WATCHGLASS_RECORDINGS").is_some_and(|folder| !folder.is_empty());
    let ipv6 = TcpListener::bind("[::1]:0").is_ok();
    [("with_root_", root), ("with_recordings_", recordings), ("with_ipv6_", ipv6)]
}

fn check(steps: &mut Steps, name: &str, work: impl FnOnce() -> Result<(), String>) {
    eprintln!("[{name}]");
    let _ = steps.step(name, || work().map(|()| Done::Now("passed".to_owned())));
}

/// The command that runs tests. `programs` are folders with programs that the tests start, besides those on PATH.
fn tests(programs: &[PathBuf]) -> Cmd {
    // Cargo does not build the binary for the tests of another package. The step before has built it.
    let binary = paths::target().join("debug").join(format!("watchglass{}", std::env::consts::EXE_SUFFIX));
    let tests = cargo().args(["test", "--workspace", "--no-fail-fast"]).env("WATCHGLASS_BINARY", binary);
    tests.path_first(programs)
}
