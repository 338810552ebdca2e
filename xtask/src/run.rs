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

const PACKAGE: [&str; 4] = ["build", "--release", "--package", "watchglass"];

/// Builds one release binary with the page inside.
pub fn build() -> Result<(), Failure> {
    let binary = release(&mut Steps::new())?;
    eprintln!("{}", binary.display());
    Ok(())
}

/// Builds the page alone.
pub fn page() -> Result<(), Failure> {
    let mut steps = Steps::new();
    let tools = setup::page_tools(&mut steps)?;
    Ok(steps.step(page::STEP, || page::build(&tools))?)
}

/// Builds the binary and replaces xtask by it.
pub fn run(args: &[String]) -> Result<(), Failure> {
    let binary = release(&mut Steps::new())?;
    Err(cmd(binary).args(args).become_it().into())
}

/// Builds the page, then the binary around it. On a first run, the libraries of the program are compiled at the same
/// time as the tools and the page, which leave a core idle while they download and link.
pub fn release(steps: &mut Steps) -> Result<PathBuf, String> {
    let left = left::program();
    if !left.is_empty()
        && let Some(warning) = room::warning()
    {
        eprintln!("Beware: {warning}.");
    }
    let no_program = left.iter().any(|part| part.name == left::PROGRAM);
    steps.expect(left);
    let libraries = no_program.then(libraries).transpose()?;
    let tools = setup::page_tools(steps)?;
    steps.step(page::STEP, || page::build(&tools))?;
    let binary = program(steps, libraries)?;
    steps.note();
    Ok(binary)
}

/// Starts to compile all of the program except the part that holds the page.
fn libraries() -> Result<Running, String> {
    cargo().args(PACKAGE).args(["--quiet", "--lib", "--jobs", &half_the_cores()]).start()
}

/// Builds the binary with the page that was built last.
pub fn server(steps: &mut Steps) -> Result<PathBuf, String> {
    program(steps, None)
}

fn program(steps: &mut Steps, libraries: Option<Running>) -> Result<PathBuf, String> {
    let binary = paths::program();
    let modified = || std::fs::metadata(&binary).and_then(|meta| meta.modified()).ok();
    steps.step(left::PROGRAM, || {
        let before = modified();
        libraries.map_or(Ok(()), Running::wait)?;
        cargo().args(PACKAGE).args(["--bin", "watchglass"]).run()?;
        let bytes = std::fs::metadata(&binary).map_err(|e| format!("{}: {e}", binary.display()))?.len();
        let text = format!("{} ({:.1} MB)", binary.display(), bytes as f64 / 1e6);
        Ok(if before.is_some() && modified() == before { Done::Already(text) } else { Done::Now(text) })
    })?;
    Ok(binary)
}
