//! Debian's node_exporter, for the test that scrapes a real one. Unpacked into our cache: installed, it would start as a
//! service.

use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::PathBuf;

const PACKAGE: &str = "prometheus-node-exporter";

/// The program, where it is on PATH or Debian's package can be had; the test says that it was skipped otherwise.
pub fn node_exporter(steps: &mut Steps) -> Result<Option<PathBuf>, String> {
    let mut found = find(PACKAGE);
    steps.step("node_exporter", || {
        let root = paths::tool("node-exporter", "debian")?;
        let own = root.join("usr/bin").join(PACKAGE);
        if found.is_none() && own.is_file() {
            found = Some(own.clone());
        }
        if let Some(path) = &found {
            return Ok(Done::Already(path.display().to_string()));
        }
        if find("apt-get").is_none() || find("dpkg").is_none() {
            return Ok(Done::Without(format!("scraping a real one is not tested; install {PACKAGE}")));
        }
        std::fs::create_dir_all(&root).map_err(|e| format!("{} could not be made: {e}", root.display()))?;
        eprintln!("    apt-get download {PACKAGE}");
        if let Err(reason) = cmd("apt-get").args(["-q", "download", PACKAGE]).dir(&root).run() {
            return Ok(Done::Without(format!("scraping a real one is not tested: {reason}")));
        }
        let files = std::fs::read_dir(&root).map_err(|e| format!("{}: {e}", root.display()))?;
        let package = files.flatten().map(|file| file.path()).find(|path| path.extension().is_some_and(|e| e == "deb"));
        let package = package.ok_or_else(|| format!("no package came into {}", root.display()))?;
        cmd("dpkg").arg("-x").arg(&package).arg(&root).run()?;
        found = Some(own);
        Ok(Done::Now(PACKAGE.to_owned()))
    })?;
    Ok(found)
}
