//! The wheel, by maturin and the linker of zig, which links against an old glibc.

use super::{GLIBC, Release, newest_glibc};
use crate::exec::cmd;
use crate::page;
use crate::paths;
use crate::steps::Done;
use std::path::Path;

/// Replaces paths of this machine in the wheel's SBOM, and updates the SBOM's digests in RECORD.
const PLACES: &str = r#"
import base64, hashlib, os, sys, zipfile
path, places = sys.argv[1], [pair.split('=', 1) for pair in sys.argv[2:]]
with zipfile.ZipFile(path) as wheel:
    parts = [(info, wheel.read(info)) for info in wheel.infolist()]
records = {}
with zipfile.ZipFile(path + '.new', 'w') as wheel:
    for info, data in sorted(parts, key=lambda part: part[0].filename.endswith('/RECORD')):
        name = info.filename
        if '/sboms/' in name:
            for place, instead in places:
                data = data.replace(place.encode(), instead.encode())
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            records[name] = f'{name},sha256={digest},{len(data)}'
        if name.endswith('.dist-info/RECORD'):
            lines = [records.get(line.split(',')[0], line) for line in data.decode().splitlines()]
            data = ('\n'.join(lines) + '\n').encode()
        wheel.writestr(info, data, compresslevel=9)
os.replace(path + '.new', path)
"#;

/// Builds the binary and packs it with the Python package and the extension. `packers` is the environment with maturin.
pub fn build(release: &Release, packers: &Path) -> Result<Done, String> {
    let home = |key: &str, below: &str| {
        std::env::var(key).unwrap_or_else(|_| format!("{}/{below}", std::env::var("HOME").unwrap_or_default()))
    };
    if !release.runs_here() {
        // Zig compiles C for every machine. Rust needs the library of this target.
        cmd("rustup").args(["target", "add", &release.target]).run()?;
    }
    let root = paths::root();
    let replaced = [(root.display().to_string(), "/watchglass"), (home("CARGO_HOME", ".cargo"), "/cargo")];
    let flags: Vec<String> = replaced.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    let maturin = cmd(packers.join("bin").join("maturin")).dir(&root).path_first(&[packers.join("bin")]);
    maturin
        .args([
            "build",
            "--profile",
            "dist",
            "--zig",
            "--compatibility",
            "manylinux2014",
            "--target",
            &release.target,
            "--out",
        ])
        .arg(&release.out)
        .env("CARGO_TARGET_DIR", paths::target().join("dist"))
        .env("SOURCE_DATE_EPOCH", &release.time)
        .env("WATCHGLASS_COMMIT", &release.commit)
        .env("WATCHGLASS_DATE", &release.date)
        .env("RUSTFLAGS", flags.join(" "))
        .env("CARGO_INCREMENTAL", "0")
        .env(page::PACK, page::BEST)
        .run()?;
    let wheel = release.wheel();
    let places = replaced.iter().map(|(from, to)| format!("{from}={to}"));
    cmd(packers.join("bin").join("python")).args(["-c", PLACES]).arg(&wheel).args(places).run()?;
    let bytes = std::fs::metadata(&wheel).map_err(|e| format!("{}: {e}", wheel.display()))?.len();
    Ok(Done::Now(format!("{} ({:.1} MB)", wheel.display(), bytes as f64 / 1e6)))
}

/// Extracts the binary from the wheel for the other packages, and checks its glibc version. Also extracts the SBOM in
/// CycloneDX format, for vulnerability scanners.
pub fn binary(release: &Release, packers: &Path) -> Result<Done, String> {
    const TAKE: &str = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    name, = [name for name in wheel.namelist() if name.endswith('.data/scripts/watchglass')]
    open(sys.argv[2], 'wb').write(wheel.read(name))
    name, = [name for name in wheel.namelist() if '/sboms/' in name and name.endswith('.json')]
    open(sys.argv[3], 'wb').write(wheel.read(name))";
    let binary = release.binary();
    let list = release.out.join(format!("watchglass-{}.cdx.json", release.version));
    cmd(packers.join("bin").join("python")).args(["-c", TAKE]).arg(release.wheel()).arg(&binary).arg(list).run()?;
    cmd("chmod").arg("755").arg(&binary).run()?;
    let newest = newest_glibc(&binary)?;
    if newest > GLIBC {
        return Err(format!(
            "the binary asks for glibc {}.{}, and may for {}.{}",
            newest.0, newest.1, GLIBC.0, GLIBC.1
        ));
    }
    Ok(Done::Now(format!("{} asks for glibc {}.{}", binary.display(), newest.0, newest.1)))
}
