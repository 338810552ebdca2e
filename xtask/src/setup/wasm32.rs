//! A compiler that can build for wasm32: the active toolchain's own target, or Debian's compiler with a standard library
//! that we build once from Debian's sources.

use super::apt;
use crate::exec::{cargo, cmd, find};
use crate::paths;
use crate::steps::Done;
use std::path::{Path, PathBuf};

/// The page's target.
pub const TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "rust-web-clippy"];

/// Who compiles the page.
pub enum Compiler {
    /// The active toolchain; it has the target.
    Active {
        /// Its version line.
        version: String,
    },
    /// Debian's compiler with our sysroot.
    Debian {
        /// Its version line.
        version: String,
        /// The folder with the standard library for wasm32.
        sysroot: PathBuf,
        /// The linker, from the active toolchain.
        linker: PathBuf,
    },
}

impl Compiler {
    /// Its version, which tells two apart.
    pub fn id(&self) -> String {
        match self {
            Self::Active { version } => version.clone(),
            Self::Debian { version, sysroot, .. } => format!("{version} with {}", sysroot.display()),
        }
    }

    /// The environment in which cargo and trunk build the page.
    pub fn env(&self) -> Vec<(String, String)> {
        let mut vars = vec![("CARGO_TARGET_DIR".to_owned(), paths::page_target().display().to_string())];
        if let Self::Debian { sysroot, linker, .. } = self {
            let key = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN";
            vars.push(("RUSTC".to_owned(), DEBIAN_RUSTC.to_owned()));
            vars.push((format!("{key}_RUSTFLAGS"), format!("--sysroot={}", sysroot.display())));
            vars.push((format!("{key}_LINKER"), linker.display().to_string()));
        }
        vars
    }

    /// The cargo-clippy of the same compiler: another one could not read its sysroot.
    pub fn clippy(&self) -> PathBuf {
        match self {
            Self::Active { .. } => PathBuf::from("cargo-clippy"),
            Self::Debian { .. } => Path::new(DEBIAN_RUSTC).with_file_name("cargo-clippy"),
        }
    }
}

/// Finds or makes a compiler for wasm32.
pub fn ready() -> Result<(Compiler, Done), String> {
    if has_target() {
        let version = version_of("rustc")?;
        return Ok((Compiler::Active { version: version.clone() }, Done::Already(format!("{version} has it"))));
    }
    // A sysroot made earlier: rustup was tried then, and would only be waited for again.
    if let Some((version, sysroot)) = debian_sysroot().filter(|(_, sysroot)| sysroot.join("complete").exists()) {
        let done = Done::Already(format!("{version} with our sysroot"));
        return Ok((debian(version, sysroot)?, done));
    }
    let tried = if find("rustup").is_some() {
        eprintln!("    rustup target add {TARGET}");
        match cmd("rustup").args(["target", "add", TARGET]).env("RUSTUP_MAX_RETRIES", "1").run() {
            Ok(()) if has_target() => {
                let version = version_of("rustc")?;
                return Ok((Compiler::Active { version: version.clone() }, Done::Now(format!("added to {version}"))));
            }
            Ok(()) => "rustup added it, but not to the toolchain in use".to_owned(),
            Err(reason) => reason,
        }
    } else {
        "there is no rustup".to_owned()
    };
    eprintln!("    {tried}; trying Debian's compiler, which comes with the sources of its standard library");
    let (version, sysroot) = install_debian().map_err(|reason| {
        format!("no compiler for wasm32. With rustup: rustup target add {TARGET}. On Debian: {reason}")
    })?;
    build_std(&sysroot)?;
    let done = Done::Now(format!("{version} with its standard library built for wasm32"));
    Ok((debian(version, sysroot)?, done))
}

fn debian(version: String, sysroot: PathBuf) -> Result<Compiler, String> {
    let active = cmd("rustc").args(["--print", "sysroot"]).output()?;
    let host = host("rustc")?;
    let bundled = Path::new(active.trim()).join(format!("lib/rustlib/{host}/bin/rust-lld"));
    let linker = Some(bundled).filter(|path| path.is_file()).or_else(|| find("wasm-ld")).ok_or(
        "no linker for wasm32: the active toolchain has no rust-lld; install lld with your package manager (wasm-ld)",
    )?;
    Ok(Compiler::Debian { version, sysroot, linker })
}

/// Whether the active toolchain has the standard library for wasm32.
fn has_target() -> bool {
    let Ok(libdir) = cmd("rustc").args(["--print", "target-libdir", "--target", TARGET]).output() else {
        return false;
    };
    let Ok(files) = std::fs::read_dir(libdir.trim()) else {
        return false;
    };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

/// Debian's compiler, if it is new enough and its sources are there: its version, and where its sysroot belongs.
fn debian_sysroot() -> Option<(String, PathBuf)> {
    let version = version_of(DEBIAN_RUSTC).ok()?;
    let number = version.split(' ').nth(1)?;
    if minor(number)? < minor(&minimum().ok()?)? {
        return None;
    }
    let sysroot = cmd(DEBIAN_RUSTC).args(["--print", "sysroot"]).output().ok()?;
    if !Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").is_file() {
        return None;
    }
    let key: String = version.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    Some((version, paths::cache().ok()?.join("wasm32").join(key)))
}

fn install_debian() -> Result<(String, PathBuf), String> {
    if let Some(found) = debian_sysroot() {
        return Ok(found);
    }
    apt::install(&DEBIAN_PACKAGES)?;
    debian_sysroot().ok_or_else(|| {
        let minimum = minimum().unwrap_or_default();
        format!("{DEBIAN_RUSTC} with sources, version {minimum} or newer, is not there after the installation")
    })
}

/// Builds the standard library from an empty crate and keeps its files as a sysroot.
fn build_std(sysroot: &Path) -> Result<(), String> {
    eprintln!("    building the standard library for wasm32 (half a minute on two cores)");
    let crate_dir = sysroot.with_extension("build");
    paths::remove(&crate_dir)?;
    paths::remove(sysroot)?;
    let manifest = "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";
    paths::write(&crate_dir.join("Cargo.toml"), manifest)?;
    paths::write(&crate_dir.join("src/lib.rs"), "")?;
    let target = crate_dir.join("target");
    cargo()
        .dir(&crate_dir)
        .args(["build", "--quiet", "--release", "-Zbuild-std=std,panic_abort,test", "--target", TARGET])
        .env("RUSTC", DEBIAN_RUSTC)
        .env("RUSTC_BOOTSTRAP", "1") // build-std is not stable; this is a one-off build of the compiler's own sources
        .env("CARGO_TARGET_DIR", &target)
        // Link-time optimisation of the page reads the bitcode.
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Cembed-bitcode=yes")
        .env_remove("RUSTFLAGS")
        .run()?;
    let from = target.join(TARGET).join("release/deps");
    let to = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    std::fs::create_dir_all(&to).map_err(|e| format!("{} could not be made: {e}", to.display()))?;
    for file in std::fs::read_dir(&from).map_err(|e| format!("{}: {e}", from.display()))?.flatten() {
        let name = file.file_name();
        if name.to_string_lossy().ends_with(".rlib") && !name.to_string_lossy().starts_with("libempty") {
            std::fs::copy(file.path(), to.join(&name)).map_err(|e| format!("{}: {e}", file.path().display()))?;
        }
    }
    // New files have new hashes, and cargo does not see a sysroot change: what was built on the old one must go.
    paths::remove(&paths::page_target().join(TARGET))?;
    paths::remove(&crate_dir)?;
    paths::write(&sysroot.join("complete"), "")
}

fn version_of(rustc: &str) -> Result<String, String> {
    Ok(cmd(rustc).arg("--version").output()?.trim().to_owned())
}

fn host(rustc: &str) -> Result<String, String> {
    let text = cmd(rustc).arg("-vV").output()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("`{rustc} -vV` names no host"))
}

/// The workspace's `rust-version`.
fn minimum() -> Result<String, String> {
    let manifest = paths::read(&paths::root().join("Cargo.toml"))?;
    let value = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    value.map(str::to_owned).ok_or_else(|| "Cargo.toml names no rust-version".to_owned())
}

/// The second number of a version; Rust's first has been 1 since 2015.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}
