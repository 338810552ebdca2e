//! `cargo xtask dist --check`: tries the artifacts as a user would. A check without its tool is skipped, and this is
//! reported.

use super::serving::serves;
use super::{GLIBC, Release, newest_glibc};
use crate::exec::{Cmd, cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::Path;

type Check = fn(&Release) -> Result<Done, String>;

/// The goal for the wheel.
const MAX_WHEEL_BYTES: u64 = 10_000_000;

/// All checks; one that fails does not stop the others.
pub fn all(steps: &mut Steps, release: &Release) {
    let checks: [(&str, Check); 13] = [
        ("checksums", sums),
        ("wheel", wheel),
        ("archive", archive),
        ("contents", super::contents::check),
        ("package for Debian", deb),
        ("package in a clean root", |release| super::clean_root::check(release, &Scratch::new("check-root")?.0)),
        ("image for containers", image),
        ("the same twice", twice),
        ("binary", binary),
        ("browser tests", browser),
        ("completions and manual", words),
        ("units", units),
        ("README's lines", |release| super::readme::check(release, &Scratch::new("check-readme")?.0)),
    ];
    for (name, check) in checks {
        // The table of steps has the errors.
        let _ = steps.step(name, || check(release));
    }
}

fn passed(text: impl Into<String>) -> Result<Done, String> {
    Ok(Done::Now(text.into()))
}

fn without(tool: &str) -> Result<Done, String> {
    Ok(Done::Without(format!("{tool} is missing, so this was not tried")))
}

fn sums(release: &Release) -> Result<Done, String> {
    cmd("sha256sum").args(["--check", "--quiet", "--strict", "SHA256SUMS"]).dir(&release.out).run()?;
    passed("as in SHA256SUMS")
}

/// Removes its folder when it is dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Self, String> {
        let path = paths::target().join("dist").join(name);
        paths::remove(&path)?;
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = paths::remove(&self.0);
    }
}

/// The released page passes the tests of the page that people build.
fn browser(release: &Release) -> Result<Done, String> {
    if !release.runs_here() {
        return Ok(Done::Without(format!("the binary is for {}, which does not run here", release.target)));
    }
    crate::test::browser(&release.binary())?;
    passed("as those of `cargo xtask test`")
}

/// In an environment of its own, without a network: the wheel runs, serves its page, and leaves nothing behind.
fn wheel(release: &Release) -> Result<Done, String> {
    let wheel = release.wheel();
    let bytes =
        std::fs::metadata(&wheel).map_err(|e| format!("{}: {e}; make it: cargo xtask dist", wheel.display()))?.len();
    if !release.runs_here() {
        return Ok(Done::Without(format!("it is for {}, which does not run here", release.target)));
    }
    let Some(python) = crate::setup::python() else { return without("Python") };
    let scratch = Scratch::new("check-wheel")?;
    let at = |path: &str| scratch.0.join(path);
    cmd(python).args(["-m", "venv"]).arg(&scratch.0).run()?;
    let list = || {
        files(&scratch.0).map(|all| all.into_iter().filter(|name| !name.contains("__pycache__")).collect::<Vec<_>>())
    };
    let before = list()?;
    let pip = || cmd(at("bin/pip")).args(["--disable-pip-version-check", "--quiet"]);
    pip().args(["install", "--no-index", "--no-deps"]).arg(&wheel).run()?;
    let version = cmd(at("bin/watchglass")).arg("--version").output()?;
    if !version.contains(&release.python_version()) {
        return Err(format!("it says that it is {version}"));
    }
    serves(&at("bin/watchglass"), &at("home"), Path::new("/"))?;
    cmd(at("bin/python")).args(["-c", "import watchglass, watchglass.jupyter as j; assert j.server()['command'][1] == 'serve'; assert j.has_lab_extension()"]).run()?;
    paths::remove(&at("home"))?;
    pip().args(["uninstall", "--yes", "watchglass"]).run()?;
    let left: Vec<String> = list()?.into_iter().filter(|name| !before.contains(name)).collect();
    if !left.is_empty() {
        return Err(format!("it leaves behind: {}", left.join(", ")));
    }
    let text = format!("{:.1} MB; goal {:.0} MB", bytes as f64 / 1e6, MAX_WHEEL_BYTES as f64 / 1e6);
    if bytes > MAX_WHEEL_BYTES { Ok(Done::But(format!("it has {text}"))) } else { passed(text) }
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    let text = cmd("find").arg(folder).args(["-type", "f", "-printf", "%P\\n"]).output()?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The archive contains the same binary as the wheel, in one folder.
fn archive(release: &Release) -> Result<Done, String> {
    let scratch = Scratch::new("check-archive")?;
    cmd("tar").arg("-xzf").arg(release.archive()).arg("-C").arg(&scratch.0).run()?;
    let folder = scratch.0.join(release.name());
    same(&folder.join("watchglass"), &release.binary())?;
    for name in [
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY.md",
        "CHANGELOG.md",
        "config.example.toml",
        "man/watchglass.1",
        "deploy/systemd/watchglass.service",
        "deploy/kubernetes/hub/kustomization.yaml",
    ] {
        if !folder.join(name).is_file() {
            return Err(format!("there is no {name}"));
        }
    }
    passed(format!("{} files in one folder", files(&scratch.0)?.len()))
}

fn same(one: &Path, other: &Path) -> Result<(), String> {
    cmd("cmp").arg(one).arg(other).run()
}

fn deb(release: &Release) -> Result<Done, String> {
    let Some(dpkg) = find("dpkg-deb") else { return without("dpkg-deb") };
    let scratch = Scratch::new("check-deb")?;
    cmd(dpkg).arg("-x").arg(release.deb()).arg(&scratch.0).run()?;
    same(&scratch.0.join("usr/bin/watchglass"), &release.binary())?;
    if let Some(lintian) = find("lintian") {
        // The package has no maintainer mailbox.
        let known = "bogus-mail-host,bogus-mail-host-in-debian-changelog";
        cmd(lintian).args(["--fail-on", "error", "--suppress-tags", known]).arg(release.deb()).run()?;
    } else {
        return Ok(Done::But("lintian is missing, so its errors are not known".to_owned()));
    }
    passed("lintian has no error")
}

fn image(release: &Release) -> Result<Done, String> {
    let scratch = Scratch::new("check-image")?;
    super::image::check(release, &scratch.0)
}

/// A second packing of one binary, in another folder and with another umask, has the same bytes.
fn twice(release: &Release) -> Result<Done, String> {
    let scratch = Scratch::new("check-twice")?;
    let (out, work) = (scratch.0.join("out"), scratch.0.join("work"));
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let again = Release { out, work, ..release.clone() };
    for part in ["man", "completions"] {
        paths::copy(&release.work.join(part), &again.work.join(part))?;
    }
    for (from, to) in
        [(release.binary(), again.binary()), (release.out.join("THIRD-PARTY.md"), again.out.join("THIRD-PARTY.md"))]
    {
        cmd("cp").arg(from).arg(to).run()?;
    }
    cmd("chmod").arg("-R").arg("go-rwx").arg(&again.work).run()?;
    type ArtifactPath = fn(&Release) -> std::path::PathBuf;
    let all: [(&str, ArtifactPath, Check); 3] = [
        ("archive", Release::archive, super::archive::build),
        ("package", Release::deb, super::deb::build),
        ("image", Release::image, super::image::build),
    ];
    let mut compared = Vec::new();
    for (name, place, build) in all {
        if place(release).is_file() {
            build(&again)?;
            same(&place(release), &place(&again))?;
            compared.push(name);
        }
    }
    match compared.is_empty() {
        true => Ok(Done::Without("there is nothing to compare; make it: cargo xtask dist".to_owned())),
        false => passed(compared.join(", ")),
    }
}

/// The binary has no symbol newer than the oldest glibc, no path of the building machine, and is hardened.
fn binary(release: &Release) -> Result<Done, String> {
    let binary = release.binary();
    let newest = newest_glibc(&binary)?;
    if newest > GLIBC {
        return Err(format!("it asks for glibc {}.{}", newest.0, newest.1));
    }
    let bytes = std::fs::read(&binary).map_err(|e| format!("{}: {e}", binary.display()))?;
    let own = [Some(paths::root().display().to_string()), std::env::var("HOME").ok().filter(|home| home.len() > 5)];
    if let Some(path) =
        own.into_iter().flatten().find(|path| bytes.windows(path.len()).any(|part| part == path.as_bytes()))
    {
        return Err(format!("it names {path}, a folder of this machine"));
    }
    let Some(readelf) = find("readelf") else { return without("readelf") };
    let told = |flags: &str| Cmd::output(cmd(&readelf).arg(flags).arg(&binary));
    let (head, load, dynamic) = (told("-h")?, told("-lW")?, told("-d")?);
    let stack = load.lines().find(|line| line.contains("GNU_STACK")).unwrap_or_default();
    for (is_so, what) in [
        (head.contains("DYN "), "it is no PIE"),
        (load.contains("GNU_RELRO"), "it has no RELRO"),
        (!stack.contains("RWE"), "its stack can be run"),
        (!dynamic.contains("RPATH") && !dynamic.contains("RUNPATH"), "it has an RPATH"),
    ] {
        if !is_so {
            return Err(what.to_owned());
        }
    }
    passed(format!("glibc {}.{}, PIE, RELRO, no RPATH", newest.0, newest.1))
}

fn words(release: &Release) -> Result<Done, String> {
    let folder = release.work.join("completions");
    let mut lacking = Vec::new();
    for (shell, name) in &super::archive::SHELLS[..3] {
        match find(shell) {
            Some(shell) => cmd(shell).arg("-n").arg(folder.join(name)).run()?,
            None => lacking.push(*shell),
        }
    }
    match find("mandoc") {
        Some(mandoc) => {
            let man = release.work.join("man");
            let pages = files(&man)?.into_iter().map(|name| man.join(name));
            cmd(mandoc).args(["-T", "lint", "-W", "error"]).args(pages).run()?
        }
        None => lacking.push("mandoc"),
    }
    if lacking.is_empty() {
        passed("they load")
    } else {
        Ok(Done::But(format!("not tried, for want of: {}", lacking.join(", "))))
    }
}

fn units(release: &Release) -> Result<Done, String> {
    let Some(analyze) = find("systemd-analyze") else { return without("systemd-analyze") };
    let scratch = Scratch::new("check-units")?;
    let mut told = Vec::new();
    for name in ["watchglass.service", "watchglass-hub.service", "watchglass-agent.service"] {
        // systemd-analyze looks for the program at the path in the unit.
        let text = paths::read(&paths::root().join("deploy").join("systemd").join(name))?;
        let unit = scratch.0.join(name);
        paths::write(&unit, &text.replace("/usr/bin/watchglass", &release.binary().display().to_string()))?;
        cmd(&analyze).arg("verify").arg(&unit).run()?;
        let level = ["security", "--offline=true", "--no-pager", "--threshold=20"];
        let text = cmd(&analyze).args(level).arg(&unit).output()?;
        told.push(text.lines().last().unwrap_or(name).trim().to_owned());
    }
    passed(told.join("; "))
}
