//! A compiler that can build for wasm32, with a standard library of our own where its sources are at hand: the active
//! toolchain, or Debian's compiler; else the active toolchain with the ready library of the target.

use super::apt;
use super::own_std::{self, Panics};
use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::Done;
use std::path::{Path, PathBuf};

/// The page's target.
pub const TARGET: &str = "wasm32-unknown-unknown";
const ACTIVE_RUSTC: &str = "rustc";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "rust-web-clippy"];

/// Who compiles the page.
pub struct Compiler {
    rustc: &'static str,
    /// Its version line.
    version: String,
    panics: Panics,
    /// The folder of our own standard library; absent where the ready one is used.
    sysroot: Option<PathBuf>,
    /// The linker, where it is not the compiler's own.
    linker: Option<PathBuf>,
}

impl Compiler {
    /// Its version and its library, which tell two apart.
    pub fn id(&self) -> String {
        match &self.sysroot {
            Some(_) => own_std::recipe(&self.version, self.panics),
            None => self.version.clone(),
        }
    }

    /// Its version line, for people.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether panics of the page are told in the browser's console.
    pub fn messages(&self) -> bool {
        self.panics == Panics::Text
    }

    /// The environment in which cargo and trunk build the page.
    pub fn env(&self) -> Vec<(String, String)> {
        let mut vars = vec![("CARGO_TARGET_DIR".to_owned(), paths::page_target().display().to_string())];
        if let Some(sysroot) = &self.sysroot {
            vars.push(("RUSTC".to_owned(), self.rustc.to_owned()));
            vars.push(("RUSTFLAGS".to_owned(), format!("--sysroot={} {}", sysroot.display(), self.panics.flags())));
            if self.panics == Panics::Trap {
                vars.push(("RUSTC_BOOTSTRAP".to_owned(), "1".to_owned())); // how a panic ends is not a stable flag
            }
        }
        if let Some(linker) = &self.linker {
            vars.push(("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER".to_owned(), linker.display().to_string()));
        }
        vars
    }

    /// The cargo-clippy of the same compiler: another one could not read its library.
    pub fn clippy(&self) -> PathBuf {
        Path::new(self.rustc).with_file_name("cargo-clippy")
    }

    fn active(panics: Panics) -> Result<Self, String> {
        let version = version_of(ACTIVE_RUSTC)?;
        Ok(Self { rustc: ACTIVE_RUSTC, version, panics, sysroot: None, linker: None })
    }

    /// Debian's compiler, if it is new enough and its sources are there.
    fn debian(panics: Panics) -> Option<Self> {
        let version = version_of(DEBIAN_RUSTC).ok()?;
        let number = version.split(' ').nth(1)?;
        if minor(number)? < minor(&minimum().ok()?)? || !own_std::has_sources(DEBIAN_RUSTC) {
            return None;
        }
        Some(Self { rustc: DEBIAN_RUSTC, version, panics, sysroot: None, linker: Some(debian_linker().ok()?) })
    }

    /// The same with our library, if that was made before.
    fn with_made(self) -> Option<Self> {
        let sysroot = own_std::made(&self.version, self.panics)?;
        Some(Self { sysroot: Some(sysroot), ..self })
    }

    /// The same with our library, which is made now if need be.
    fn with_own_std(self) -> Result<(Self, Done), String> {
        if let Some(sysroot) = own_std::made(&self.version, self.panics) {
            let done = Done::Already(format!("{} with our standard library", self.version));
            return Ok((Self { sysroot: Some(sysroot), ..self }, done));
        }
        let sysroot = own_std::make(self.rustc, &self.version, self.panics)?;
        let done = Done::Now(format!("{} with its standard library built for size", self.version));
        Ok((Self { sysroot: Some(sysroot), ..self }, done))
    }
}

/// Whether a standard library of our own was made before. Where none can be had, a ready one takes no time.
pub fn library_is_made() -> bool {
    let made = |rustc: &str| {
        let (version, panics) = (version_of(rustc).ok()?, Panics::wanted().ok()?);
        own_std::made(&version, panics)
    };
    made(ACTIVE_RUSTC).or_else(|| made(DEBIAN_RUSTC)).is_some()
}

/// Finds or makes a compiler for wasm32.
pub fn ready() -> Result<(Compiler, Done), String> {
    let panics = Panics::wanted()?;
    let active = Compiler::active(panics)?;
    // Made earlier: rustup was tried then, and would only be waited for again.
    if !own_std::has_sources(ACTIVE_RUSTC)
        && let Some(debian) = Compiler::debian(panics).and_then(Compiler::with_made)
    {
        let done = Done::Already(format!("{} with our standard library", debian.version));
        return Ok((debian, done));
    }
    let no_sources = match add(&["component", "add", "rust-src"], || own_std::has_sources(ACTIVE_RUSTC)) {
        Ok(()) => match active.with_own_std() {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        },
        Err(reason) => reason,
    };
    let no_target = match add(&["target", "add", TARGET], has_target) {
        Ok(()) => {
            let active = Compiler::active(panics)?;
            let cost = format!("{} with its ready standard library: the page gets an eighth larger", active.version);
            return Ok((active, Done::Without(format!("{cost}: {no_sources}"))));
        }
        Err(reason) => reason,
    };
    eprintln!("    {no_target}; trying Debian's compiler, which comes with the sources of its standard library");
    install_debian(panics).and_then(Compiler::with_own_std).map_err(|reason| {
        format!("no compiler for wasm32. With rustup, type: rustup target add {TARGET}. Without it, {reason}")
    })
}

/// Asks rustup for something that the active toolchain lacks.
fn add(what: &[&str], there: impl Fn() -> bool) -> Result<(), String> {
    if there() {
        return Ok(());
    }
    let line = format!("rustup {}", what.join(" "));
    if find("rustup").is_none() {
        return Err(format!("there is no rustup for `{line}`"));
    }
    eprintln!("    {line}");
    cmd("rustup").args(what).env("RUSTUP_MAX_RETRIES", "1").run()?;
    if there() { Ok(()) } else { Err(format!("`{line}` did not add it to the toolchain in use")) }
}

fn install_debian(panics: Panics) -> Result<Compiler, String> {
    if let Some(found) = Compiler::debian(panics) {
        return Ok(found);
    }
    apt::install(&DEBIAN_PACKAGES)?;
    debian_linker()?;
    Compiler::debian(panics).ok_or_else(|| {
        let minimum = minimum().unwrap_or_default();
        format!("{DEBIAN_RUSTC} with sources, version {minimum} or newer, is not there after the installation")
    })
}

/// The linker for Debian's compiler, which has none for wasm32: the active toolchain's, or the system's.
fn debian_linker() -> Result<PathBuf, String> {
    let active = cmd(ACTIVE_RUSTC).args(["--print", "sysroot"]).output()?;
    let bundled = Path::new(active.trim()).join(format!("lib/rustlib/{}/bin/rust-lld", host(ACTIVE_RUSTC)?));
    Some(bundled).filter(|path| path.is_file()).or_else(|| find("wasm-ld")).ok_or_else(|| {
        "no linker for wasm32: the active toolchain has no rust-lld; install lld with your package manager (wasm-ld)".into()
    })
}

/// Whether the active toolchain has the standard library for wasm32.
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
