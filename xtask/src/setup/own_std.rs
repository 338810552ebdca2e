//! The standard library for the page, built once from the compiler's own sources: for size, and so that a panic is a trap
//! instead of a text that nobody reads. The ready one is built for speed, and makes the page an eighth larger.

use super::wasm32::TARGET;
use crate::exec::{cargo, cmd};
use crate::paths;
use std::path::{Path, PathBuf};

/// What a panic in the page leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Panics {
    /// A trap. Texts and places of panics are not in the page.
    Trap,
    /// A text in the browser's console, for those who look for a fault.
    Text,
}

impl Panics {
    /// What `WATCHGLASS_PAGE` asks for: `messages`, or nothing.
    pub fn wanted() -> Result<Self, String> {
        match std::env::var("WATCHGLASS_PAGE").as_deref() {
            Err(_) | Ok("") => Ok(Self::Trap),
            Ok("messages") => Ok(Self::Text),
            Ok(other) => {
                Err(format!("WATCHGLASS_PAGE=`{other}`: only `messages` is known; unset it for the small page"))
            }
        }
    }

    /// Flags for the library and for all that is compiled with it. They are not stable.
    pub fn flags(self) -> &'static str {
        match self {
            Self::Trap => "-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none",
            Self::Text => "",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Text => "text",
        }
    }
}

const MANIFEST: &str = "\
[package]
name = \"empty\"
version = \"0.0.0\"
edition = \"2024\"

[profile.release]
opt-level = \"z\"
codegen-units = 1

[workspace]
";
const ARGS: [&str; 5] =
    ["build", "--quiet", "--release", "-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];
// Link-time optimisation of the page reads the bitcode.
const FLAGS: &str = "-Cembed-bitcode=yes";

/// Whether a compiler has the sources of its library.
pub fn has_sources(rustc: &str) -> bool {
    let sysroot = cmd(rustc).args(["--print", "sysroot"]).output();
    sysroot.is_ok_and(|sysroot| Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").is_file())
}

/// The folder of the library, if it was made of just this.
pub fn made(version: &str, panics: Panics) -> Option<PathBuf> {
    let folder = folder(panics).ok()?;
    let is_it = std::fs::read_to_string(folder.join("made-of")).is_ok_and(|of| of == recipe(version, panics));
    is_it.then_some(folder)
}

/// Everything that decides what the library is; another recipe, and it is made again.
pub fn recipe(version: &str, panics: Panics) -> String {
    format!("{version}\n{MANIFEST}\n{}\n{FLAGS} {}\n", ARGS.join(" "), panics.flags())
}

fn folder(panics: Panics) -> Result<PathBuf, String> {
    Ok(paths::cache()?.join("wasm32").join(panics.name()))
}

/// Builds the library from an empty crate and keeps its files as a sysroot; unless another run has done so meanwhile.
pub fn make(rustc: &str, version: &str, panics: Panics) -> Result<PathBuf, String> {
    let sysroot = folder(panics)?;
    let _alone = paths::alone(&sysroot.with_extension("making"))?;
    if made(version, panics).is_some() {
        return Ok(sysroot);
    }
    eprintln!("    building the standard library for wasm32");
    let work = sysroot.with_extension("new");
    paths::remove(&work)?;
    let result = build(rustc, &work, panics).and_then(|new| {
        paths::write(&new.join("made-of"), &recipe(version, panics))?;
        paths::remove(&sysroot)?;
        std::fs::rename(&new, &sysroot).map_err(|e| format!("{} could not be made: {e}", sysroot.display()))
    });
    paths::remove(&work)?;
    // Cargo does not see that a sysroot has changed: what was built on an older one must go.
    paths::remove(&paths::page_target().join(TARGET))?;
    result.map(|()| sysroot)
}

fn build(rustc: &str, work: &Path, panics: Panics) -> Result<PathBuf, String> {
    paths::write(&work.join("Cargo.toml"), MANIFEST)?;
    paths::write(&work.join("src/lib.rs"), "")?;
    let target = work.join("target");
    cargo()
        .dir(work)
        .args(ARGS)
        .args(["--target", TARGET])
        .env("RUSTC", rustc)
        .env("RUSTC_BOOTSTRAP", "1") // build-std is not stable; these are the compiler's own sources
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", format!("{FLAGS} {}", panics.flags()))
        .run()?;
    let sysroot = work.join("sysroot");
    let to = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    std::fs::create_dir_all(&to).map_err(|e| format!("{} could not be made: {e}", to.display()))?;
    gather(&target.join(TARGET), &to)?;
    Ok(sysroot)
}

/// Moves the libraries into one folder from wherever below another cargo has put them: that differs by version.
fn gather(from: &Path, to: &Path) -> Result<(), String> {
    for entry in std::fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))?.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            gather(&path, to)?;
        } else if name.to_string_lossy().ends_with(".rlib") && !name.to_string_lossy().starts_with("libempty") {
            std::fs::rename(&path, to.join(&name)).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    Ok(())
}
