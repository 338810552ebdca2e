//! The standard library for wasm32 where rustup cannot download it. It is built once from the unchanged sources of
//! Debian's compiler.

use super::TARGET;
use crate::exec::{cargo, cmd};
use crate::paths;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "\
[package]
name = \"empty\"
version = \"0.0.0\"
edition = \"2024\"

[workspace]
";
const ARGS: [&str; 4] = ["build", "--quiet", "--release", "-Zbuild-std=std,panic_abort"];
// Link-time optimization of the page needs the bitcode.
const FLAGS: &str = "-Cembed-bitcode=yes";

/// True when a compiler has the sources of its library.
pub fn has_sources(rustc: &str) -> bool {
    let sysroot = cmd(rustc).args(["--print", "sysroot"]).output();
    sysroot.is_ok_and(|sysroot| Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").is_file())
}

/// The folder of the library, if it was built by the current recipe.
pub fn made(version: &str) -> Option<PathBuf> {
    let folder = folder().ok()?;
    let is_it = std::fs::read_to_string(folder.join("made-of")).is_ok_and(|of| of == recipe(version));
    is_it.then_some(folder)
}

/// All inputs that determine the library. When the recipe changes, the library is rebuilt.
pub fn recipe(version: &str) -> String {
    format!("{version}\n{MANIFEST}\n{}\n{FLAGS}\n", ARGS.join(" "))
}

fn folder() -> Result<PathBuf, String> {
    Ok(paths::cache()?.join("wasm32").join("std"))
}

/// Builds the library from an empty crate and stores its files as a sysroot, unless another run has done so in the
/// meantime.
pub fn make(rustc: &str, version: &str) -> Result<PathBuf, String> {
    let sysroot = folder()?;
    let _alone = paths::alone(&sysroot.with_extension("making"))?;
    if made(version).is_some() {
        return Ok(sysroot);
    }
    eprintln!("    building the standard library for wasm32");
    let work = sysroot.with_extension("new");
    paths::remove(&work)?;
    let result = build(rustc, &work).and_then(|new| {
        paths::write(&new.join("made-of"), &recipe(version))?;
        paths::remove(&sysroot)?;
        std::fs::rename(&new, &sysroot).map_err(|e| format!("{} could not be made: {e}", sysroot.display()))
    });
    paths::remove(&work)?;
    // Cargo does not notice a changed sysroot, so output of the old one is removed.
    paths::remove(&paths::page_target().join(TARGET))?;
    result.map(|()| sysroot)
}

fn build(rustc: &str, work: &Path) -> Result<PathBuf, String> {
    paths::write(&work.join("Cargo.toml"), MANIFEST)?;
    paths::write(&work.join("src/lib.rs"), "")?;
    let target = work.join("target");
    cargo()
        .dir(work)
        .args(ARGS)
        .args(["--target", TARGET])
        .env("RUSTC", rustc)
        // The option build-std is not stable, but these are the compiler's own sources.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", FLAGS)
        .run()?;
    let sysroot = work.join("sysroot");
    let to = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    std::fs::create_dir_all(&to).map_err(|e| format!("{} could not be made: {e}", to.display()))?;
    gather(&target.join(TARGET), &to)?;
    Ok(sysroot)
}

/// Moves the libraries into one folder. Cargo's path for them below `from` depends on its version.
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
