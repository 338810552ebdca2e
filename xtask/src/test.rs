//! `cargo xtask test`: runs every check. A step that fails does not stop the others.

use crate::Failure;
use crate::book;
use crate::deny;
use crate::exec::{Cmd, cargo, cmd, find};
use crate::failures::Failures;
use crate::flaky;
use crate::insight;
use crate::left;
use crate::page;
use crate::paths;
use crate::setup::{self, PageFor, Programs};
use crate::steps::{Done, Steps};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// All packages that are compiled for this machine. The page is compiled only for the browser.
///
/// All compiling steps name the same targets. Cargo unites the features of the targets that it gets. Another selection
/// would compile the dependencies once more.
const NATIVE: [&str; 3] = ["--workspace", "--exclude", page::PACKAGE];

/// Seed of proptest: the same commit has the same result each time. A plain `cargo test` and `cargo xtask fuzz` use
/// random cases.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// Arguments that select all test programs; a name or `--skip` after them selects tests.
const ALL: [&str; 4] = ["--lib", "--bins", "--tests", "--"];

/// Maximum size of the released page of one machine in bytes, compressed by brotli. This bound catches unintended growth.
const MAX_PAGE_BYTES: &str = "560000";

/// Runs all checks and prints the table of steps. With `--quick` it skips the tests with other programs, for the
/// minutes between two edits.
pub fn test(args: &[String]) -> Result<(), Failure> {
    let quick = match args {
        [] => false,
        [flag] if flag == "--quick" => true,
        _ => return Err(Failure::usage("`test` knows one flag: --quick".to_owned())),
    };
    let mut steps = Steps::new("test");
    steps.expect(left::page());
    // The table of steps has the errors.
    let _ = setup::checkers(&mut steps);
    let tools = setup::page_tools(&mut steps, PageFor::Builders);
    let _ = setup::browser(&mut steps);
    let others = if quick { Others::default() } else { Others::ready(&mut steps) };

    check(&mut steps, "format", || cargo().args(["fmt", "--all", "--check"]).run());
    deny::check(&mut steps);
    check(&mut steps, "lints", || {
        let clippy = cargo().args(["clippy", "--quiet", "--keep-going"]).args(NATIVE).arg("--all-targets");
        clippy.args(["--", "-D", "warnings"]).run()
    });
    // The page is built before the program that embeds it.
    match &tools {
        Ok(tools) => {
            let _ = steps.step(page::STEP, || page::build(tools, PageFor::Builders));
            let _ = book::ready(&mut steps);
            let _ = steps.step("lints of the page", || page::clippy(tools));
        }
        Err(reason) => {
            let _ = steps.step(page::STEP, || Err(format!("not built: {reason}")));
        }
    }
    check(&mut steps, "compile", || cargo().args(["build", "--quiet"]).args(NATIVE).arg("--all-targets").run());
    check(&mut steps, "how often findings are right", insight::quick);
    let mut outcomes = TestOutcomes::default();
    all_tests(&mut steps, &others, &mut outcomes);
    let finished = steps.finish();
    outcomes.failures.tell();
    outcomes.repeated.tell();
    Ok(finished?)
}

/// Other programs for the tests.
#[derive(Default)]
struct Others {
    /// Programs of Debian's packages.
    programs: Programs,
    /// Path of axe-core's script.
    axe: Option<PathBuf>,
    /// Path of schemathesis.
    schemathesis: Option<PathBuf>,
    /// Path of a Python with Helm's engine, if kubectl is there too.
    helm: Option<PathBuf>,
    /// Environments with JupyterLab: the newest, and the oldest that our extension supports.
    jupyter: Option<PathBuf>,
    oldest: Option<PathBuf>,
}

impl Others {
    fn ready(steps: &mut Steps) -> Self {
        let programs = setup::programs(steps);
        let axe = setup::axe(steps).ok().flatten();
        let schemathesis = setup::schemathesis(steps);
        let helm = find("kubectl").and_then(|_| setup::helm(steps));
        let jupyter = setup::jupyter(steps);
        let oldest = jupyter.as_ref().and_then(|_| setup::oldest_jupyter(steps));
        Others { programs, axe, schemathesis, helm, jupyter, oldest }
    }
}

/// Runs all tests. Tests with a name that begins with `with_` need prerequisites. They are ignored and counted, unless
/// the prerequisite is there.
fn all_tests(steps: &mut Steps, others: &Others, outcomes: &mut TestOutcomes) {
    let plain = || tests(others).args(ALL);
    let waiting = || plain().env("RUST_TEST_THREADS", many_threads());
    check_tests(steps, outcomes, "unit and integration tests", waiting, &["--skip", "browser::"]);
    let mut needs = others.programs.tests.clone();
    needs.extend(here().iter().filter(|(_, is_here)| *is_here).map(|(tests, _)| tests));
    if !needs.is_empty() {
        check_tests(steps, outcomes, "tests that need more", || waiting().arg("--ignored"), &needs);
    }
    check_tests(steps, outcomes, "browser tests", plain, &["browser::"]);
    if let Some(axe) = &others.axe {
        let tests = || plain().arg("--ignored").env("WATCHGLASS_AXE", axe);
        check_tests(steps, outcomes, "axe on the page", tests, &["with_axe_"]);
    }
    if let Some(schemathesis) = &others.schemathesis {
        let tests = || plain().arg("--ignored").env("WATCHGLASS_SCHEMATHESIS", schemathesis);
        check_tests(steps, outcomes, "schemathesis on the API", tests, &["with_schemathesis_"]);
    }
    if let Some(helm) = &others.helm {
        let tests = || plain().arg("--ignored").env("WATCHGLASS_HELM", helm);
        check_tests(steps, outcomes, "the chart by Helm", tests, &["with_helm_"]);
    }
    let nginx = others.programs.tests.contains(&"with_nginx_");
    for (name, jupyter) in [("beside JupyterLab", &others.jupyter), ("beside the oldest JupyterLab 4", &others.oldest)]
    {
        if let Some(jupyter) = jupyter {
            let tests = || {
                let tests = plain().arg("--ignored").env("WATCHGLASS_JUPYTER", jupyter);
                if nginx { tests } else { tests.args(["--skip", "with_jupyter_behind_nginx_"]) }
            };
            check_tests(steps, outcomes, name, tests, &["with_jupyter_"]);
        }
    }
    if let Some(python) = setup::python() {
        check(steps, "tests of the Python package", || {
            let unittest = ["-m", "unittest", "discover", "-t", ".", "-s", "tests"];
            let folder = paths::root().join("notebook").join("python");
            let run = || cmd(&python).args(unittest).dir(&folder).env("PYTHONDONTWRITEBYTECODE", "1").run_shown();
            // An interpreter (3.11.7, with IPython) was seen to crash by itself. That is not a failure of our tests.
            run().or_else(|reason| match reason.contains("signal: 11") {
                true => {
                    outcomes.repeated.0.push(format!("tests of the Python package ({reason})"));
                    run()
                }
                false => Err(reason),
            })
        });
    }
}

/// Name prefixes of tests with a prerequisite of the machine, and whether it is met.
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

/// Whether a cgroup with a memory limit can be made.
fn has_memory_cgroups() -> bool {
    let of_memory = Path::new("/sys/fs/cgroup/memory");
    let root = if of_memory.is_dir() { of_memory } else { Path::new("/sys/fs/cgroup") };
    let group = root.join(format!("watchglass-try-{}", std::process::id()));
    let made = std::fs::create_dir(&group).is_ok();
    let limited = ["memory.limit_in_bytes", "memory.max"].iter().any(|limit| group.join(limit).exists());
    made && std::fs::remove_dir(&group).is_ok() && limited
}

/// Outcomes of tests that are printed after the table of steps.
#[derive(Default)]
struct TestOutcomes {
    failures: Failures,
    repeated: Repeated,
}

/// The tests that were run twice.
#[derive(Default)]
struct Repeated(Vec<String>);

impl Repeated {
    /// Prints them as the last line of the run.
    fn tell(&self) {
        if !self.0.is_empty() {
            eprintln!("Repeated, as tests/flaky.txt allows: {}", self.0.join(", "));
        }
    }
}

/// Runs the tests that `selection` names. If only tests in `tests/flaky.txt` failed, they run once more, alone, and the
/// second result counts.
fn check_tests(
    steps: &mut Steps,
    outcomes: &mut TestOutcomes,
    name: &str,
    command: impl Fn() -> Cmd,
    selection: &[&str],
) {
    eprintln!("[{name}]");
    let _ = steps.step(name, || {
        let passed = || Ok(Done::Now("passed".to_owned()));
        let mut failed = Vec::new();
        let mut read = |line: &str| {
            failed.extend(failed_test(line));
            outcomes.failures.read(line);
        };
        let Err(reason) = command().args(selection).run_read(&mut read) else {
            return passed();
        };
        let may_fail = flaky::list()?;
        if failed.is_empty() || !failed.iter().all(|test| may_fail.iter().any(|flaky| flaky.name == *test)) {
            return Err(reason);
        }
        let alone = command().args(["--exact", "--test-threads", "1"]).args(&failed);
        let mut passed_alone = 0;
        let again = alone.run_read(|line| passed_alone += usize::from(has_passed(line)));
        let outcome = if again.is_ok() && passed_alone == failed.len() { "passed" } else { "failed" };
        outcomes.repeated.0.extend(failed.iter().map(|test| format!("{test} ({outcome})")));
        if outcome == "passed" { passed() } else { Err(reason) }
    });
}

/// The name of the failed test in a line of the test runner.
fn failed_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.trim_end_matches(" - should panic").to_owned())
}

/// True for a line of the test runner that reports a passed test.
fn has_passed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... ok")
}

fn check(steps: &mut Steps, name: &str, work: impl FnOnce() -> Result<(), String>) {
    eprintln!("[{name}]");
    let _ = steps.step(name, || work().map(|()| Done::Now("passed".to_owned())));
}

/// The command that runs tests, with the programs that they start.
fn tests(others: &Others) -> Cmd {
    // Cargo does not build the binary for the tests of another package. The step before has built it.
    tests_of(&paths::program("debug")).path_first(&others.programs.folders)
}

fn tests_of(binary: &Path) -> Cmd {
    cargo().arg("test").args(NATIVE).arg("--no-fail-fast").env("WATCHGLASS_BINARY", binary).env(SEED.0, SEED.1)
}

/// Number of threads for tests that mostly wait for a program that they started. With one thread per core, half of the
/// cores are idle. Browsers use them all.
fn many_threads() -> String {
    (2 * std::thread::available_parallelism().map_or(1, usize::from)).to_string()
}

/// Runs the browser tests with another binary, which has the released page.
pub fn browser(binary: &Path) -> Result<(), String> {
    tests_of(binary).env("WATCHGLASS_PAGE_BYTES", MAX_PAGE_BYTES).args(ALL).arg("browser::").run_shown()
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
