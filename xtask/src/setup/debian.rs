//! Programs from Debian's packages, for tests with real programs, and for comparisons in the bench. They are unpacked
//! into our cache, because installed packages would start them as services.

use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

/// A package of Debian.
struct Package {
    name: &'static str,
    /// Packages of its libraries that not every machine has.
    with: &'static [&'static str],
    /// The programs in it that tests start.
    programs: &'static [&'static str],
    /// Name prefix of these tests.
    tests: &'static str,
    /// The subject that is untested without it.
    what: &'static str,
}

const PACKAGES: [Package; 12] = [
    Package {
        name: "prometheus-node-exporter",
        with: &[],
        programs: &["prometheus-node-exporter"],
        tests: "with_node_exporter_",
        what: "scraping a real exporter",
    },
    Package {
        name: "victoria-metrics",
        with: &[],
        programs: &["victoria-metrics", "vmagent", "vmauth"],
        tests: "with_victoria_metrics_",
        what: "remote write to a real VictoriaMetrics, and to two of them",
    },
    Package {
        name: "prometheus",
        with: &[],
        programs: &["prometheus", "promtool"],
        tests: "with_prometheus_",
        what: "what a real Prometheus makes of us",
    },
    Package {
        name: "prometheus-alertmanager",
        with: &[],
        programs: &["prometheus-alertmanager"],
        tests: "with_alertmanager_",
        what: "what a real Alertmanager makes of our alerts",
    },
    Package {
        name: "python3-aiosmtpd",
        with: &["python3-attr", "python3-pkg-resources", "python3-public"],
        programs: &["aiosmtpd"],
        tests: "with_aiosmtpd_",
        what: "e-mail to a real server",
    },
    Package { name: "nginx", with: &[], programs: &["nginx"], tests: "with_nginx_", what: "an agent behind nginx" },
    Package {
        name: "haproxy",
        with: &["liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"],
        programs: &["haproxy"],
        tests: "with_haproxy_",
        what: "an agent behind haproxy",
    },
    Package { name: "caddy", with: &[], programs: &["caddy"], tests: "with_caddy_", what: "an agent behind Caddy" },
    Package {
        name: "tinyproxy-bin",
        with: &[],
        programs: &["tinyproxy"],
        tests: "with_tinyproxy_",
        what: "an agent that goes out through a proxy",
    },
    Package {
        name: "postgresql-15",
        with: &["postgresql-client-15", "libpq5", "libicu72", "libldap-2.5-0", "libsasl2-2", "libxml2"],
        programs: &["initdb", "pg_ctl", "postgres", "psql"],
        tests: "with_postgresql_",
        what: "a hub whose records are in a PostgreSQL",
    },
    Package {
        name: "nats-server",
        with: &[],
        programs: &["nats-server"],
        tests: "with_nats_",
        what: "several hubs that share a database",
    },
    Package {
        name: "tmux",
        with: &["libevent-core-2.1-7", "libutempter0"],
        programs: &["tmux"],
        tests: "with_tmux_",
        what: "the picture in a terminal within tmux",
    },
];

/// Packages whose programs the bench compares with ours.
const PEERS: [Package; 2] = [
    Package {
        name: "htop",
        with: &["libncursesw6", "libnl-3-200", "libnl-genl-3-200"],
        programs: &["htop"],
        tests: "",
        what: "what htop costs",
    },
    Package { name: "btop", with: &[], programs: &["btop"], tests: "", what: "what btop costs" },
];

/// Folders of programs in packages.
const FOLDERS: [&str; 3] = ["usr/bin", "usr/sbin", "usr/lib/postgresql/15/bin"];

/// The programs that were found.
#[derive(Default)]
pub struct Programs {
    /// Folders to prepend to PATH, so that tests find the programs unpacked from Debian's packages.
    pub folders: Vec<PathBuf>,
    /// Name prefixes of the tests that need them, and that are ignored otherwise.
    pub tests: Vec<&'static str>,
}

/// Finds the programs of the tests: on PATH, or unpacked from Debian's packages.
pub fn programs(steps: &mut Steps) -> Programs {
    found(&PACKAGES, steps)
}

/// Finds the programs that the bench compares with ours. Returns the folders to prepend to PATH.
pub fn peers(steps: &mut Steps) -> Vec<PathBuf> {
    found(&PEERS, steps).folders
}

fn found(packages: &'static [Package], steps: &mut Steps) -> Programs {
    let mut all = Programs::default();
    for package in packages {
        // An error is in the table of steps, which decides at the end.
        let _ = steps.step(package.name, || {
            if let Some(found) = package.programs.iter().map(|program| find(program)).collect::<Option<Vec<_>>>() {
                all.tests.push(package.tests);
                return Ok(Done::Already(found[0].display().to_string()));
            }
            let root = paths::tool(package.name, "debian")?;
            let folder = || {
                // An installed program that is not on PATH is used like an unpacked one.
                let roots = [Path::new("/"), &root].into_iter();
                let mut folders = roots.flat_map(|root| FOLDERS.map(|folder| root.join(folder)));
                folders.find(|folder| package.programs.iter().all(|program| folder.join(program).is_file()))
            };
            let done = match folder() {
                Some(own) => Done::Already(own.display().to_string()),
                None => unpacked(package, &root)?,
            };
            if let Some(own) = folder() {
                all.folders.push(own);
                all.tests.push(package.tests);
            }
            Ok(done)
        });
    }
    all
}

/// Packages that our binary needs in an image: the C library, and the trusted certificates.
const IMAGE: Package = Package {
    name: "libc6",
    with: &["libgcc-s1", "ca-certificates"],
    programs: &[],
    tests: "",
    what: "an image for containers",
};

/// The folder with the unpacked packages of an image, and their names and versions; or the reason why there is none.
///
/// # Errors
/// They cannot be unpacked.
pub fn image_base() -> Result<Result<(PathBuf, String), String>, String> {
    let root = paths::tool("image-base", "debian")?;
    if !root.join("lib64").is_dir() {
        match unpacked(&IMAGE, &root)? {
            Done::Without(why) => return Ok(Err(why)),
            Done::Already(_) | Done::Now(_) | Done::But(_) => {}
        }
    }
    let list = std::fs::read_dir(&root).map_err(|e| format!("{}: {e}", root.display()))?;
    let mut names: Vec<String> = list.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let packages = names.iter().filter_map(|name| {
        let mut words = name.strip_suffix(".deb")?.split('_');
        Some(format!("{} {}", words.next()?, words.next()?))
    });
    Ok(Ok((root, packages.collect::<Vec<_>>().join(", "))))
}

/// Downloads a package and unpacks it, with its libraries, below the folder `root`. This does not need root.
fn unpacked(package: &Package, root: &Path) -> Result<Done, String> {
    let Package { name, what, .. } = package;
    if find("apt-get").is_none() || find("dpkg").is_none() {
        return Ok(Done::Without(format!("{what} is not tested; install {name}")));
    }
    std::fs::create_dir_all(root).map_err(|e| format!("{} could not be made: {e}", root.display()))?;
    let names = || [*name].into_iter().chain(package.with.iter().copied());
    eprintln!("    apt-get download {}", names().collect::<Vec<_>>().join(" "));
    if let Err(reason) = cmd("apt-get").args(["-q", "download"]).args(names()).dir(root).run() {
        return Ok(Done::Without(format!("{what} is not tested: {reason}")));
    }
    let files = std::fs::read_dir(root).map_err(|e| format!("{}: {e}", root.display()))?;
    let files = files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "deb"));
    let files: Vec<PathBuf> = files.collect();
    if files.is_empty() {
        return Err(format!("no package came into {}", root.display()));
    }
    for file in files {
        cmd("dpkg").arg("-x").arg(&file).arg(root).run()?;
    }
    Ok(Done::Now((*name).to_owned()))
}
