//! With the feature `parts`, the linker keeps the relocations of the page's program, by which xtask/bindgen takes it apart.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    if std::env::var_os("CARGO_FEATURE_PARTS").is_some() {
        writeln!(out, "cargo::rustc-link-arg-bin=page=--emit-relocs")?;
    }
    Ok(())
}
