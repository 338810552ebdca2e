//! The package for Debian and Ubuntu, built by dpkg-deb.

use super::Release;
use super::archive::{SHELLS, put};
use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::Done;

const DESCRIPTION: &str = "\
live dashboard for the machines that train models
 One program collects the metrics of CPU, memory, disks, network, processes
 and accelerators, keeps them, and shows them live in the browser, in windows
 from a minute to twelve hours.
 .
 Alone on one machine it needs no account, no cloud and no database. A hub
 shows many machines to a team.";

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Builds it from the binary, or returns the reason why it is skipped.
pub fn build(release: &Release) -> Result<Done, String> {
    let Some(dpkg) = find("dpkg-deb") else {
        return Ok(Done::Without("there is no package for Debian; install dpkg".to_owned()));
    };
    let (root, own) = (release.work.join("deb"), paths::root().join("xtask").join("dist"));
    paths::remove(&root)?;
    let at = |path: &str| root.join(path);
    put(&at("usr/bin"), [(&*release.binary(), "watchglass")])?;
    let units = paths::root().join("deploy").join("systemd");
    let of_system = ["watchglass.service", "watchglass-hub.service", "watchglass-agent.service"];
    let of_system = of_system.map(|name| (units.join(name), name));
    put(&at("lib/systemd/system"), of_system.iter().map(|(path, name)| (path.as_path(), *name)))?;
    put(&at("usr/lib/systemd/user"), [(&*units.join("watchglass-user.service"), "watchglass.service")])?;
    put(&at("usr/lib/sysusers.d"), [(&*own.join("sysusers.conf"), "watchglass.conf")])?;
    put(&at("etc/watchglass"), [(&*own.join("watchglass.toml"), "watchglass.toml")])?;
    let folders = [
        "usr/share/bash-completion/completions",
        "usr/share/zsh/vendor-completions",
        "usr/share/fish/vendor_completions.d",
    ];
    for (folder, (_, name)) in folders.into_iter().zip(SHELLS) {
        put(&at(folder), [(&*release.work.join("completions").join(name), name)])?;
    }
    paths::copy(&release.work.join("man"), &at("usr/share/man/man1"))?;
    let doc = at("usr/share/doc/watchglass");
    put(
        &doc,
        [
            (&*release.out.join("THIRD-PARTY.md"), "THIRD-PARTY.md"),
            (&*paths::root().join("LICENSE-MIT"), "copyright"),
            (&*paths::root().join("docs/reference/config.example.toml"), "config.example.toml"),
        ],
    )?;
    let day = cmd("date").args(["-u", "-R", "-d"]).arg(format!("@{}", release.time)).env("LC_ALL", "C").output()?;
    let version = format!("{}-1", release.version.replace("-dev", "~dev"));
    let changelog = format!(
        "watchglass ({version}) unstable; urgency=low\n\n  * See /usr/share/doc/watchglass/changelog.gz.\n\n -- Watchglass <watchglass@localhost>  {day}"
    );
    paths::write(&doc.join("changelog.Debian"), &changelog)?;
    put(&doc, [(&*paths::root().join("CHANGELOG.md"), "changelog")])?;
    let pages: Vec<_> =
        std::fs::read_dir(at("usr/share/man/man1")).map_err(|e| e.to_string())?.flatten().map(|e| e.path()).collect();
    cmd("gzip")
        .args(["-9", "-n", "-f"])
        .args(&pages)
        .arg(doc.join("changelog.Debian"))
        .arg(doc.join("changelog"))
        .run()?;
    let arch = release.debian_arch();
    let size = cmd("du").args(["-sk", "--apparent-size"]).arg(&root).output()?;
    let control = format!(
        "Package: watchglass\nVersion: {version}\nArchitecture: {arch}\nMaintainer: Watchglass <watchglass@localhost>\nInstalled-Size: {}\nDepends: libc6 (>= 2.17), adduser\nSection: admin\nPriority: optional\nDescription: {DESCRIPTION}\n",
        size.split_whitespace().next().unwrap_or("0")
    );
    paths::write(&at("DEBIAN/control"), &control)?;
    paths::write(&at("DEBIAN/conffiles"), "/etc/watchglass/watchglass.toml\n")?;
    put(&at("DEBIAN"), SCRIPTS.map(|name| (own.join(name), name)).iter().map(|(path, name)| (path.as_path(), *name)))?;
    cmd("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root).run()?;
    let programs = SCRIPTS.map(|name| at("DEBIAN").join(name));
    cmd("chmod").arg("755").args(programs).arg(at("usr/bin/watchglass")).run()?;
    // The order of names in a folder on disk varies. dpkg-deb sorts them, and takes the time from here.
    let build = cmd(dpkg).args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(release.deb());
    build.env("SOURCE_DATE_EPOCH", &release.time).run()?;
    Ok(Done::Now(release.deb().display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_know_each_service_of_the_machine_and_its_folder() {
        let script = |name: &str| paths::read(&paths::root().join("xtask/dist").join(name)).expect("a script");
        let [after, before, last] = SCRIPTS.map(script);
        for unit in ["watchglass", "watchglass-hub", "watchglass-agent"] {
            let service = format!(" {unit}.service");
            assert!(after.contains(&service), "upgraded, {unit} is still the old program");
            assert!(before.contains(&service), "removed, {unit} runs on");
            let text = paths::read(&paths::root().join(format!("deploy/systemd/{unit}.service"))).expect("a unit");
            let folder = text.lines().find_map(|line| line.strip_prefix("StateDirectory=")).expect("a folder");
            let is_removed = |above: &str| last.split_whitespace().any(|word| word == format!("{above}/{folder}"));
            assert!(is_removed("/var/lib"), "purged, {unit} leaves its data behind");
            // The folder of a dynamic user lies there.
            assert!(!text.contains("DynamicUser=yes") || is_removed("/var/lib/private"), "{unit}");
        }
        for name in SCRIPTS {
            cmd("sh").arg("-n").arg(paths::root().join("xtask/dist").join(name)).run().expect("a script of sh");
        }
    }
}
