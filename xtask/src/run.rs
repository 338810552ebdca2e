//! `cargo xtask build` and `cargo xtask run`.

use crate::Failure;
use crate::exec::{cargo, cmd};
use crate::page;
use crate::paths;
use crate::setup;
use crate::steps::{Done, Steps};
use std::path::PathBuf;

/// One release binary with the page inside it.
pub fn build() -> Result<(), Failure> {
    let mut steps = Steps::new();
    let binary = release(&mut steps)?;
    eprintln!("{}", binary.display());
    Ok(())
}

/// Builds, then becomes the binary.
pub fn run(args: &[String]) -> Result<(), Failure> {
    let binary = release(&mut Steps::new())?;
    Err(cmd(binary).args(args).become_it().into())
}

/// The page, then the binary around it.
pub fn release(steps: &mut Steps) -> Result<PathBuf, String> {
    let tools = setup::page_tools(steps)?;
    steps.step("page", || page::build(&tools))?;
    server(steps)
}

/// The binary, with the page as it was built last.
pub fn server(steps: &mut Steps) -> Result<PathBuf, String> {
    let binary = paths::target().join("release").join(format!("watchglass{}", std::env::consts::EXE_SUFFIX));
    let modified = || std::fs::metadata(&binary).and_then(|meta| meta.modified()).ok();
    steps.step("release binary", || {
        let before = modified();
        cargo().args(["build", "--release", "--package", "watchglass", "--bin", "watchglass"]).run()?;
        let bytes = std::fs::metadata(&binary).map_err(|e| format!("{}: {e}", binary.display()))?.len();
        let text = format!("{} ({:.1} MB)", binary.display(), bytes as f64 / 1e6);
        Ok(if before.is_some() && modified() == before { Done::Already(text) } else { Done::Now(text) })
    })?;
    Ok(binary)
}
