//! The archive: one folder with the binary, its manual, completions, units and licenses.

use super::{Release, tar};
use crate::exec::cmd;
use crate::paths;
use crate::steps::Done;
use std::path::Path;

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
    // A binary that does not run here is the same program for another machine.
    let binary = if release.runs_here() { release.binary() } else { crate::paths::program("release") };
    if !binary.is_file() {
        return Err(format!("{} is missing, which writes the manual: cargo xtask build", binary.display()));
    }
    let (man, shells) = (release.work.join("man"), release.work.join("completions"));
    paths::remove(&man)?;
    cmd(&binary).arg("man").arg(&man).run()?;
    for (shell, name) in SHELLS {
        paths::write(&shells.join(name), &cmd(&binary).args(["completions", shell]).output()?)?;
    }
    Ok(Done::Now(release.work.display().to_string()))
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
