//! The Debian package in a root of its own with only Debian's base: installed, used, upgraded, removed, purged. A
//! package for another machine is tried if an emulator for it is registered.

use super::Release;
use super::serving::serves;
use crate::exec::{Cmd, cmd, find};
use crate::paths;
use crate::steps::Done;
use std::path::Path;

/// Folder in which the service keeps its samples.
const DATA: &str = "var/lib/watchglass/history";
/// A file that an operator changes.
const SETTINGS: &str = "etc/watchglass/watchglass.toml";

/// Tries the package, or reports the missing prerequisite.
pub fn check(release: &Release, scratch: &Path) -> Result<Done, String> {
    let without = |what: &str| Ok(Done::Without(format!("{what}, so this was not tried")));
    let Some(debootstrap) = find("mmdebstrap") else { return without("mmdebstrap is missing") };
    if !release.runs_here() && !release.is_emulated_here() {
        return without("it is for another machine, and no emulator is registered (apt-get install qemu-user-static)");
    }
    if cmd("id").arg("-u").output()?.trim() != "0" {
        return without("it needs root");
    }
    let root = scratch.join("root");
    let arch = format!("--architectures={}", release.debian_arch());
    let suite = ["--quiet", "--variant=minbase", "--include=adduser", &arch, "bookworm"];
    if let Err(reason) = cmd(debootstrap).args(suite).arg(&root).run() {
        return without(&format!("there is no root: {reason}"));
    }
    let next = newer(release, scratch)?;
    for (from, to) in [(release.deb(), "first.deb"), (next, "next.deb")] {
        std::fs::copy(&from, root.join(to)).map_err(|e| format!("{}: {e}", from.display()))?;
    }
    let inside = |args: &[&str]| cmd("chroot").arg(&root).args(args).env("LC_ALL", "C");
    let dpkg = |args: &[&str]| -> Result<(), String> { Cmd::run(inside(&[&["dpkg"], args].concat())) };
    let is_there = |path: &str| root.join(path).exists();
    let expect = |so: bool, what: &str| if so { Ok(()) } else { Err(what.to_owned()) };

    // README's line, without its `sudo`: its dependencies are installed.
    Cmd::run(inside(&["apt-get", "install", "--yes", "/first.deb"]))?;
    let who = cmd("chroot").args(["--userspec=nobody:nogroup"]).arg(&root);
    let version = who.args(["/usr/bin/watchglass", "--version"]).output()?;
    expect(version.contains(&release.python_version()), "a user without rights cannot run it")?;
    serves(&root.join("usr/bin/watchglass"), &scratch.join("home"), &root)?;
    inside(&["id", "watchglass"]).output().map_err(|why| format!("its user was not made: {why}"))?;
    paths::write(&root.join(DATA), "kept")?;
    let settings = paths::read(&root.join(SETTINGS))? + "# mine\n";
    paths::write(&root.join(SETTINGS), &settings)?;
    dpkg(&["--install", "/next.deb"])?;
    expect(is_there(DATA), "an upgrade loses what was measured")?;
    expect(paths::read(&root.join(SETTINGS))? == settings, "an upgrade loses an operator's settings")?;
    dpkg(&["--remove", "watchglass"])?;
    expect(!is_there("usr/bin/watchglass"), "removed, it is still there")?;
    expect(is_there(DATA) && is_there(SETTINGS), "removed, it takes data and settings along")?;
    dpkg(&["--purge", "watchglass"])?;
    expect(!is_there("var/lib/watchglass") && !is_there(SETTINGS), "purged, it leaves data or settings behind")?;
    let how = if release.runs_here() { "" } else { ", all of it emulated" };
    Ok(Done::Now(format!("installed, run by a user, its page served, upgraded with its data, removed, purged{how}")))
}

/// The same package with a newer version.
fn newer(release: &Release, scratch: &Path) -> Result<std::path::PathBuf, String> {
    let (folder, path) = (scratch.join("next"), scratch.join("next.deb"));
    cmd("dpkg-deb").arg("-R").arg(release.deb()).arg(&folder).run()?;
    let control = folder.join("DEBIAN/control");
    let text = paths::read(&control)?;
    let version = text.lines().find(|line| line.starts_with("Version: ")).ok_or("the package has no version")?;
    paths::write(&control, &text.replace(version, &format!("{version}.1")))?;
    cmd("dpkg-deb").args(["--root-owner-group", "-Zgzip", "-z1", "--build"]).arg(&folder).arg(&path).run()?;
    Ok(path)
}
