//! Debian's package manager.

use crate::exec::{cmd, find};

/// Installs packages if there is apt-get and we are root. Otherwise the error names the command to run.
pub fn install(packages: &[&str]) -> Result<(), String> {
    let list = packages.join(" ");
    if find("apt-get").is_none() {
        return Err(format!("install with your package manager what Debian calls {list}"));
    }
    if cmd("id").arg("-u").output()?.trim() != "0" {
        return Err(format!("type: sudo apt-get install -y --no-install-recommends {list}"));
    }
    eprintln!("    apt-get install {list}");
    let apt = || cmd("apt-get").args(["-q", "-y"]).env("DEBIAN_FRONTEND", "noninteractive");
    let install = || apt().args(["install", "--no-install-recommends"]).args(packages).run();
    // The package lists of a new image are empty or old. They are fetched only when the first attempt fails.
    install().or_else(|_| {
        apt().arg("update").run()?;
        install()
    })
}
