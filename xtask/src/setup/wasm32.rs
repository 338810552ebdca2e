//! A compiler that can build for wasm32: the active toolchain with the library of the target from rustup, or Debian's
//! compiler when rustup cannot download the library.

use super::{TARGET, apt, debian_std};
use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::Done;
use std::path::{Path, PathBuf};

const ACTIVE_RUSTC: &str = "rustc";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "rust-web-clippy"];

/// Leptos' own switch that erases the types of views where they meet. The code is smaller, so the first chart appears
/// sooner.
const FLAGS: &str = "--cfg erase_components";

/// The compiler of the page.
pub struct Compiler {
    rustc: &'static str,
    /// The version line of the compiler.
    version: String,
    /// Folder of the standard library that was built here; None when the library of the toolchain is used.
    sysroot: Option<PathBuf>,
    /// Path of the linker; None for the compiler's own.
    linker: Option<PathBuf>,
}

impl Compiler {
    /// Version, library and flags. Two compilers with the same text build the same page.
    pub fn id(&self) -> String {
        let library = self.sysroot.as_ref().map(|_| debian_std::recipe(&self.version)).unwrap_or_default();
        format!("{} {FLAGS} {library}", self.version)
    }

    /// The version line of the compiler, for messages.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The environment in which cargo builds the page.
    pub fn env(&self) -> Vec<(String, String)> {
        let mut vars = vec![("CARGO_TARGET_DIR".to_owned(), paths::page_target().display().to_string())];
        let mut flags = FLAGS.to_owned();
        if let Some(sysroot) = &self.sysroot {
            vars.push(("RUSTC".to_owned(), self.rustc.to_owned()));
            flags += &format!(" --sysroot={}", sysroot.display());
        }
        vars.push(("RUSTFLAGS".to_owned(), flags));
        if let Some(linker) = &self.linker {
            vars.push(("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER".to_owned(), linker.display().to_string()));
        }
        vars
    }

    /// Path of the cargo-clippy of the same compiler. Another one could not read the compiler's library.
    pub fn clippy(&self) -> PathBuf {
        Path::new(self.rustc).with_file_name("cargo-clippy")
    }

    fn active() -> Result<Self, String> {
        Ok(Self { rustc: ACTIVE_RUSTC, version: version_of(ACTIVE_RUSTC)?, sysroot: None, linker: None })
    }

    /// Debian's compiler; None when it is too old, or when its sources or a linker are missing.
    fn debian() -> Option<Self> {
        let version = version_of(DEBIAN_RUSTC).ok()?;
        let number = version.split(' ').nth(1)?;
        if minor(number)? < minor(&minimum().ok()?)? || !debian_std::has_sources(DEBIAN_RUSTC) {
            return None;
        }
        Some(Self { rustc: DEBIAN_RUSTC, version, sysroot: None, linker: Some(debian_linker().ok()?) })
    }

    /// The compiler with its library; None when the library has not been built yet.
    fn with_made(self) -> Option<Self> {
        let sysroot = debian_std::made(&self.version)?;
        Some(Self { sysroot: Some(sysroot), ..self })
    }

    /// The compiler with its library, which is built now if needed.
    fn with_library(self) -> Result<(Self, Done), String> {
        if let Some(sysroot) = debian_std::made(&self.version) {
            let done = Done::Already(format!("{} with its library", self.version));
            return Ok((Self { sysroot: Some(sysroot), ..self }, done));
        }
        let sysroot = debian_std::make(self.rustc, &self.version)?;
        let done = Done::Now(format!("{} with its library", self.version));
        Ok((Self { sysroot: Some(sysroot), ..self }, done))
    }
}

/// Finds or installs a compiler for wasm32.
pub fn ready() -> Result<(Compiler, Done), String> {
    let active = Compiler::active()?;
    if has_target() {
        let done = Done::Already(active.version.clone());
        return Ok((active, done));
    }
    // The library was built earlier, so rustup failed then. Another attempt would only cost time.
    if let Some(debian) = Compiler::debian().and_then(Compiler::with_made) {
        let done = Done::Already(format!("{} with its library", debian.version));
        return Ok((debian, done));
    }
    let no_target = match add_target() {
        Ok(()) => {
            let done = Done::Now(active.version.clone());
            return Ok((active, done));
        }
        Err(reason) => reason,
    };
    eprintln!("    {no_target}; trying Debian's compiler, which comes with the sources of its standard library");
    install_debian().and_then(Compiler::with_library).map_err(|reason| {
        format!("no compiler for wasm32. With rustup, type: rustup target add {TARGET}. Without it, {reason}")
    })
}

/// Installs the library of the target with rustup.
fn add_target() -> Result<(), String> {
    let line = format!("rustup target add {TARGET}");
    if find("rustup").is_none() {
        return Err(format!("there is no rustup for `{line}`"));
    }
    eprintln!("    {line}");
    cmd("rustup").args(["target", "add", TARGET]).env("RUSTUP_MAX_RETRIES", "1").run()?;
    if has_target() { Ok(()) } else { Err(format!("`{line}` did not add it to the toolchain in use")) }
}

fn install_debian() -> Result<Compiler, String> {
    if let Some(found) = Compiler::debian() {
        return Ok(found);
    }
    apt::install(&DEBIAN_PACKAGES)?;
    debian_linker()?;
    Compiler::debian().ok_or_else(|| {
        let minimum = minimum().unwrap_or_default();
        format!("{DEBIAN_RUSTC} with sources, version {minimum} or newer, is not there after the installation")
    })
}

/// The linker for Debian's compiler, which has none for wasm32: that of the active toolchain, else the system's.
fn debian_linker() -> Result<PathBuf, String> {
    let active = cmd(ACTIVE_RUSTC).args(["--print", "sysroot"]).output()?;
    let bundled = Path::new(active.trim()).join(format!("lib/rustlib/{}/bin/rust-lld", host(ACTIVE_RUSTC)?));
    Some(bundled).filter(|path| path.is_file()).or_else(|| find("wasm-ld")).ok_or_else(|| {
        "no linker for wasm32: the active toolchain has no rust-lld; install lld with your package manager (wasm-ld)".into()
    })
}

/// True when the active toolchain has the standard library for wasm32.
fn has_target() -> bool {
    let Ok(libdir) = cmd(ACTIVE_RUSTC).args(["--print", "target-libdir", "--target", TARGET]).output() else {
        return false;
    };
    let Ok(files) = std::fs::read_dir(libdir.trim()) else {
        return false;
    };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

fn version_of(rustc: &str) -> Result<String, String> {
    Ok(cmd(rustc).arg("--version").output()?.trim().to_owned())
}

fn host(rustc: &str) -> Result<String, String> {
    let text = cmd(rustc).arg("-vV").output()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("`{rustc} -vV` names no host"))
}

/// The `rust-version` of the workspace.
fn minimum() -> Result<String, String> {
    let manifest = paths::read(&paths::root().join("Cargo.toml"))?;
    let value = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    value.map(str::to_owned).ok_or_else(|| "Cargo.toml names no rust-version".to_owned())
}

/// The second number of a version. The first one of Rust has been 1 since 2015.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}
