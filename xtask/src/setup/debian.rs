//! Programs from Debian's packages, for the tests that talk to real programs. They are unpacked into our cache, because
//! installed packages would start them as services.

use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

/// A package, the programs in it that tests start, how the names of these tests begin, and what is not tested without it.
const PACKAGES: [(&str, &[&str], &str, &str); 3] = [
    ("prometheus-node-exporter", &["prometheus-node-exporter"], "with_node_exporter_", "scraping a real exporter"),
    ("victoria-metrics", &["victoria-metrics"], "with_victoria_metrics_", "remote write to a real VictoriaMetrics"),
    ("prometheus", &["prometheus", "promtool"], "with_prometheus_", "what a real Prometheus makes of us"),
];

/// The programs that were found.
#[derive(Default)]
pub struct Programs {
    /// To be put in front of PATH so that tests find those that were unpacked from Debian's packages.
    pub folders: Vec<PathBuf>,
    /// How the names of the tests begin that need them and that are ignored otherwise.
    pub tests: Vec<&'static str>,
}

/// Finds the programs: on PATH, or unpacked from Debian's packages.
pub fn programs(steps: &mut Steps) -> Programs {
    let mut all = Programs::default();
    for (package, programs, tests, what) in PACKAGES {
        // An error is in the table of steps, which decides at the end.
        let _ = steps.step(package, || {
            if let Some(found) = programs.iter().map(|program| find(program)).collect::<Option<Vec<_>>>() {
                all.tests.push(tests);
                return Ok(Done::Already(found[0].display().to_string()));
            }
            let root = paths::tool(package, "debian")?;
            let own = root.join("usr/bin");
            let there = || programs.iter().all(|program| own.join(program).is_file());
            let done = if there() { Done::Already(own.display().to_string()) } else { unpacked(package, &root, what)? };
            if there() {
                all.folders.push(own);
                all.tests.push(tests);
            }
            Ok(done)
        });
    }
    all
}

/// Downloads a package and unpacks it below the folder `root`. This needs no rights of the user root.
fn unpacked(package: &str, root: &Path, what: &str) -> Result<Done, String> {
    if find("apt-get").is_none() || find("dpkg").is_none() {
        return Ok(Done::Without(format!("{what} is not tested; install {package}")));
    }
    std::fs::create_dir_all(root).map_err(|e| format!("{} could not be made: {e}", root.display()))?;
    eprintln!("    apt-get download {package}");
    if let Err(reason) = cmd("apt-get").args(["-q", "download", package]).dir(root).run() {
        return Ok(Done::Without(format!("{what} is not tested: {reason}")));
    }
    let files = std::fs::read_dir(root).map_err(|e| format!("{}: {e}", root.display()))?;
    let file = files.flatten().map(|file| file.path()).find(|path| path.extension().is_some_and(|e| e == "deb"));
    let file = file.ok_or_else(|| format!("no package came into {}", root.display()))?;
    cmd("dpkg").arg("-x").arg(&file).arg(root).run()?;
    Ok(Done::Now(package.to_owned()))
}
