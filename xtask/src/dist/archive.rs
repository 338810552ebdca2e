//! The archive: one folder with the binary, its manual, completions, units and licenses.

use super::{Release, tar};
use crate::exec::cmd;
use crate::paths;
use crate::steps::Done;
use std::path::{Path, PathBuf};

/// Shells, and the name of the completion file of each.
pub const SHELLS: [(&str, &str); 5] = [
    ("bash", "watchglass"),
    ("zsh", "_watchglass"),
    ("fish", "watchglass.fish"),
    ("elvish", "watchglass.elv"),
    ("powershell", "watchglass.ps1"),
];

/// Runs the binary to write its manual and its completions, into the folders `man` and `completions`.
pub fn words(release: &Release) -> Result<Done, String> {
    let binary = writer(release)?;
    let (man, shells) = (release.work.join("man"), release.work.join("completions"));
    paths::remove(&man)?;
    cmd(&binary).arg("man").arg(&man).run()?;
    for (shell, name) in SHELLS {
        paths::write(&shells.join(name), &cmd(&binary).args(["completions", shell]).output()?)?;
    }
    Ok(Done::Now(release.work.display().to_string()))
}

/// The program that writes the manual: the binary, or one for this machine if the binary does not run here. A release has
/// just built that one, so it is kept.
fn writer(release: &Release) -> Result<PathBuf, String> {
    let folder = release.work.join("native");
    if release.runs_here() {
        put(&folder, [(&*release.binary(), "watchglass")])?;
        return Ok(release.binary());
    }
    let kept = folder.join("watchglass");
    // A program of sources in no commit has a mark behind the hash, and the sources may have changed since.
    let is_of_commit =
        |text: String| text.contains(&format!("({}, ", release.commit)) && !release.commit.ends_with('+');
    if kept.is_file() && cmd(&kept).arg("--version").output().is_ok_and(is_of_commit) {
        return Ok(kept);
    }
    let built = paths::program("release");
    match built.is_file() {
        true => Ok(built),
        false => Err(format!("{} is missing, which writes the manual: cargo xtask build", built.display())),
    }
}

/// Copies files into a folder, which is created.
pub fn put<'a>(folder: &Path, files: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{} could not be made: {e}", folder.display()))?;
    for (from, name) in files {
        std::fs::copy(from, folder.join(name)).map_err(|e| format!("{} could not be copied: {e}", from.display()))?;
    }
    Ok(())
}

/// Builds the archive.
pub fn build(release: &Release) -> Result<Done, String> {
    let (root, folder) = (paths::root(), release.work.join(release.name()));
    paths::remove(&folder)?;
    let own = |name: &str| root.join(name);
    put(
        &folder,
        [
            (&*release.binary(), "watchglass"),
            (&*own("README.md"), "README.md"),
            (&*own("LICENSE-MIT"), "LICENSE-MIT"),
            (&*own("LICENSE-APACHE"), "LICENSE-APACHE"),
            (&*release.out.join("THIRD-PARTY.md"), "THIRD-PARTY.md"),
            (&*own("CHANGELOG.md"), "CHANGELOG.md"),
            (&*own("docs/reference/config.example.toml"), "config.example.toml"),
        ],
    )?;
    paths::copy(&release.work.join("man"), &folder.join("man"))?;
    paths::copy(&release.work.join("completions"), &folder.join("completions"))?;
    // Units, and the other files for a permanent installation. The tests check them in that folder.
    paths::copy(&own("deploy"), &folder.join("deploy"))?;
    let archive = release.archive();
    tar(release, &release.work, &release.name(), &archive)?;
    Ok(Done::Now(archive.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_for_this_machine_writes_the_manual_of_one_for_another() {
        let work = std::env::temp_dir().join(format!("watchglass-writer-{}", std::process::id()));
        paths::remove(&work).expect("removed");
        std::fs::create_dir_all(work.join("native")).expect("a folder");
        let kept = work.join("native/watchglass");
        // Another process writes it: a file that is open for writing cannot be started.
        let write = |commit: &str| {
            let script = format!("printf '#!/bin/sh\necho \"1.2.3 ({commit}, t)\"\n' > \"$0\" && chmod 755 \"$0\"");
            cmd("sh").args(["-c", script.as_str()]).arg(&kept).run().expect("written");
        };
        write("0123456789ab");
        let release = |commit: &str| Release {
            version: "1.2.3".into(),
            target: "elsewhere-unknown-linux-gnu".into(),
            time: "0".into(),
            commit: commit.into(),
            date: "2026-05-01".into(),
            out: work.clone(),
            work: work.clone(),
        };
        assert_eq!(writer(&release("0123456789ab")), Ok(kept.clone()));
        assert_ne!(writer(&release("ba9876543210")), Ok(kept.clone()), "it is of another commit");
        write("0123456789ab+");
        for commit in ["0123456789ab", "0123456789ab+"] {
            assert_ne!(writer(&release(commit)), Ok(kept.clone()), "nobody knows its sources");
        }
        paths::remove(&work).expect("removed");
    }
}
