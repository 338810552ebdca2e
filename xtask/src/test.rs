//! `cargo xtask test`: runs every check. A step that fails does not stop the others.

use crate::Failure;
use crate::exec::{Cmd, cargo, cmd, find};
use crate::insight;
use crate::left;
use crate::page;
use crate::paths;
use crate::setup;
use crate::steps::{Done, Steps};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Arguments that select all test programs; a name or `--skip` after them selects tests.
const ALL: [&str; 4] = ["--lib", "--bins", "--tests", "--"];

/// The largest number of failed tests that run once more. More than these do not fail for the load of the machine.
const MAX_RETRIED: usize = 3;

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
    let jupyter = setup::jupyter(&mut steps);

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
    check(&mut steps, "how often findings are right", insight::quick);
    check_tests(&mut steps, "unit and integration tests", || tests(&[]).args(ALL), &["--skip", "browser::"]);
    let nginx = programs.tests.contains(&"with_nginx_");
    let mut needs = programs.tests;
    needs.extend(here().iter().filter(|(_, is_here)| *is_here).map(|(tests, _)| tests));
    if !needs.is_empty() {
        // Without these names they are ignored and counted: what they need is not everywhere.
        check_tests(&mut steps, "tests that need more", || tests(&programs.folders).args(ALL).arg("--ignored"), &needs);
    }
    check_tests(&mut steps, "browser tests", || tests(&[]).args(ALL), &["browser::"]);
    if let Some(axe) = &axe {
        let tests = || tests(&[]).args(ALL).arg("--ignored").env("WATCHGLASS_AXE", axe);
        check_tests(&mut steps, "axe on the page", tests, &["with_axe_"]);
    }
    let oldest = jupyter.as_ref().and_then(|_| setup::oldest_jupyter(&mut steps));
    for (name, jupyter) in [("beside JupyterLab", &jupyter), ("beside the oldest JupyterLab 4", &oldest)] {
        if let Some(jupyter) = jupyter {
            let tests = || {
                let tests = tests(&programs.folders).args(ALL).arg("--ignored").env("WATCHGLASS_JUPYTER", jupyter);
                if nginx { tests } else { tests.args(["--skip", "with_jupyter_behind_nginx_"]) }
            };
            check_tests(&mut steps, name, tests, &["with_jupyter_"]);
        }
    }
    if let Some(python) = setup::python() {
        check(&mut steps, "tests of the Python package", || {
            let unittest = ["-m", "unittest", "discover", "-t", ".", "-s", "tests"];
            let folder = paths::root().join("notebook").join("python");
            cmd(&python).args(unittest).dir(&folder).env("PYTHONDONTWRITEBYTECODE", "1").run_shown()
        });
    }
    check(&mut steps, "documentation tests", || tests(&[]).arg("--doc").run_shown());
    Ok(steps.finish()?)
}

/// How the names of tests begin that need something of the machine, and whether it is here.
fn here() -> [(&'static str, bool); 8] {
    let root = cmd("id").arg("-u").output().is_ok_and(|uid| uid.trim() == "0");
    let recordings = std::env::var_os("WATCHGLASS_RECORDINGS").is_some_and(|folder| !folder.is_empty());
    let ipv6 = TcpListener::bind("[::1]:0").is_ok();
    let (bash, man) = (find("bash").is_some(), find("man").is_some() && find("groff").is_some());
    [
        ("with_root_", root),
        ("with_cgroups_", root && has_memory_cgroups()),
        ("with_recordings_", recordings),
        ("with_ipv6_", ipv6),
        ("with_bash_", bash),
        ("with_man_", man),
        ("with_systemd_analyze_", find("systemd-analyze").is_some()),
        ("with_kubectl_", find("kubectl").is_some()),
    ]
}

/// Whether a cgroup can be made whose memory has a limit.
fn has_memory_cgroups() -> bool {
    let of_memory = Path::new("/sys/fs/cgroup/memory");
    let root = if of_memory.is_dir() { of_memory } else { Path::new("/sys/fs/cgroup") };
    let group = root.join(format!("watchglass-try-{}", std::process::id()));
    let made = std::fs::create_dir(&group).is_ok();
    let limited = ["memory.limit_in_bytes", "memory.max"].iter().any(|limit| group.join(limit).exists());
    made && std::fs::remove_dir(&group).is_ok() && limited
}

fn check(steps: &mut Steps, name: &str, work: impl FnOnce() -> Result<(), String>) {
    eprintln!("[{name}]");
    let _ = steps.step(name, || work().map(|()| Done::Now("passed".to_owned())));
}

/// Runs the tests that `selection` names, and those that fail once more, alone. When they pass then, it was for the load
/// of the machine that they failed: the step ends well, and the table of steps names them, because such a test is a defect.
fn check_tests(steps: &mut Steps, name: &str, command: impl Fn() -> Cmd, selection: &[&str]) {
    eprintln!("[{name}]");
    let _ = steps.step(name, || {
        let mut failed = Vec::new();
        let Err(reason) = command().args(selection).run_read(|line| failed.extend(failed_test(line))) else {
            return Ok(Done::Now("passed".to_owned()));
        };
        if failed.is_empty() || failed.len() > MAX_RETRIED {
            return Err(reason);
        }
        eprintln!("[{name}] {reason}; once more, alone: {}", failed.join(", "));
        let mut passed = 0;
        let alone = ["--exact", "--test-threads", "1"];
        command().args(alone).args(&failed).run_read(|line| passed += usize::from(has_passed(line)))?;
        if passed < failed.len() {
            return Err(reason);
        }
        Ok(Done::But(format!("failed first, passed alone: {}", failed.join(", "))))
    });
}

/// The name of the test that has failed, from a line of the test runner.
fn failed_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.trim_end_matches(" - should panic").to_owned())
}

/// True for a line of the test runner that says that a test has passed.
fn has_passed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... ok")
}

/// The command that runs tests. `programs` are folders with programs that the tests start, besides those on PATH.
fn tests(programs: &[PathBuf]) -> Cmd {
    // Cargo does not build the binary for the tests of another package. The step before has built it.
    let binary = paths::target().join("debug").join(format!("watchglass{}", std::env::consts::EXE_SUFFIX));
    let tests = cargo().args(["test", "--workspace", "--no-fail-fast"]).env("WATCHGLASS_BINARY", binary);
    tests.path_first(programs)
}

#[cfg(test)]
mod unit_tests {
    use super::{failed_test, has_passed};

    #[test]
    fn the_lines_of_the_test_runner_are_understood() {
        assert_eq!(failed_test("test browser::keys::a_key ... FAILED").as_deref(), Some("browser::keys::a_key"));
        assert_eq!(failed_test("test a::b - should panic ... FAILED").as_deref(), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok"), None);
        assert_eq!(failed_test("test result: FAILED. 87 passed; 1 failed"), None);
        assert!(has_passed("test a::b ... ok"));
        assert!(!has_passed("test result: ok. 3 passed"));
    }
}
