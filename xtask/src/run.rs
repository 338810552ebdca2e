//! `cargo xtask build` and `cargo xtask run`.

use crate::Failure;
use crate::exec::{Running, cargo, cmd, half_the_cores};
use crate::left;
use crate::page;
use crate::paths;
use crate::room;
use crate::setup;
use crate::steps::{Done, Steps};
use std::path::PathBuf;

/// The name of the step that makes the program.
pub const STEP: &str = "program";
const PACKAGE: [&str; 4] = ["build", "--release", "--package", "watchglass"];

/// One release binary with the page inside it.
pub fn build() -> Result<(), Failure> {
    let binary = release(&mut Steps::new())?;
    eprintln!("{}", binary.display());
    Ok(())
}

/// Builds, then becomes the binary.
pub fn run(args: &[String]) -> Result<(), Failure> {
    let binary = release(&mut Steps::new())?;
    Err(cmd(binary).args(args).become_it().into())
}

/// The page, then the binary around it. On a first run the program's libraries are compiled while the tools of the page
/// and the page are, and the page while its tools are: each of these builds has stretches in which only one core works.
pub fn release(steps: &mut Steps) -> Result<PathBuf, String> {
    let left = left::parts();
    let is_left = |name: &str| left.iter().any(|part| part.name == name);
    let (no_tools, no_program) = (is_left(setup::TRUNK) || is_left(setup::WASM_BINDGEN), is_left(STEP));
    if !left.is_empty()
        && let Some(warning) = room::warning()
    {
        eprintln!("Beware: {warning}.");
    }
    steps.expect(left);
    let libraries = no_program.then(libraries).transpose()?;
    let compiler = setup::compiler(steps)?;
    let ahead = no_tools.then(|| page::ahead(&compiler)).transpose()?;
    let tools = setup::tools(steps, compiler)?;
    steps.step(page::STEP, || {
        ahead.map_or(Ok(()), Running::wait)?;
        page::build(&tools)
    })?;
    if let Some(libraries) = libraries {
        libraries.wait()?;
    }
    let binary = server(steps)?;
    steps.note();
    Ok(binary)
}

/// Begins to compile all of the program but what holds the page.
fn libraries() -> Result<Running, String> {
    cargo().args(PACKAGE).args(["--quiet", "--lib", "--jobs", &half_the_cores()]).start()
}

/// The program's file.
pub fn binary() -> PathBuf {
    paths::target().join("release").join(format!("watchglass{}", std::env::consts::EXE_SUFFIX))
}

/// The binary, with the page as it was built last.
pub fn server(steps: &mut Steps) -> Result<PathBuf, String> {
    let binary = binary();
    let modified = || std::fs::metadata(&binary).and_then(|meta| meta.modified()).ok();
    steps.step(STEP, || {
        let before = modified();
        cargo().args(PACKAGE).args(["--bin", "watchglass"]).run()?;
        let bytes = std::fs::metadata(&binary).map_err(|e| format!("{}: {e}", binary.display()))?.len();
        let text = format!("{} ({:.1} MB)", binary.display(), bytes as f64 / 1e6);
        Ok(if before.is_some() && modified() == before { Done::Already(text) } else { Done::Now(text) })
    })?;
    Ok(binary)
}
