//! `cargo xtask build` and `cargo xtask run`.

use crate::Failure;
use crate::book;
use crate::exec::{Cmd, Running, cargo, cmd};
use crate::left;
use crate::page;
use crate::paths;
use crate::room;
use crate::setup::{self, PageFor};
use crate::steps::{Done, Steps};
use std::path::PathBuf;

/// Build profile of `cargo xtask run` and of `cargo xtask dist`.
#[derive(Clone, Copy)]
pub enum Profile {
    /// For people who build it: compiled quickly.
    Release,
    /// For people who install it: fast and small. The published figures apply to it.
    Dist,
}

impl Profile {
    /// Its name for cargo, and the name of its output folder.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Dist => "dist",
        }
    }
}

/// Builds one release binary with the page inside.
pub fn build() -> Result<(), Failure> {
    let binary = release(&mut Steps::new("build"))?;
    eprintln!("{}", binary.display());
    Ok(())
}

/// Builds only the page, for builders or for a release.
pub fn page(args: &[String]) -> Result<(), Failure> {
    let whom = match args {
        [] => PageFor::Builders,
        [flag] if flag == "--dist" => PageFor::Release,
        _ => return Err(Failure::usage("`page` knows one flag: --dist".to_owned())),
    };
    let mut steps = Steps::new("page");
    let tools = setup::page_tools(&mut steps, whom)?;
    steps.step(page::STEP, || page::build(&tools, whom))?;
    Ok(book::ready(&mut steps)?)
}

/// Builds the binary and replaces xtask by it.
pub fn run(args: &[String]) -> Result<(), Failure> {
    let binary = release(&mut Steps::new("run"))?;
    Err(cmd(binary).args(args).become_it().into())
}

/// Builds the page, then the binary with it. On a first run the server is compiled at the same time as the tools and
/// the page. Those leave a core idle while they download and link.
pub fn release(steps: &mut Steps) -> Result<PathBuf, String> {
    let left = left::program();
    if !left.is_empty()
        && let Some(warning) = room::warning()
    {
        eprintln!("Beware: {warning}.");
    }
    let no_program = left.iter().any(|part| part.name == left::PROGRAM);
    steps.expect(left);
    let server =
        no_program.then(|| compile(Profile::Release, "watchglass-backend").arg("--quiet").start()).transpose()?;
    let tools = setup::page_tools(steps, PageFor::Builders)?;
    steps.step(page::STEP, || page::build(&tools, PageFor::Builders))?;
    book::ready(steps)?;
    let binary = program(steps, Profile::Release, server)?;
    steps.note();
    Ok(binary)
}

fn compile(profile: Profile, package: &str) -> Cmd {
    let build = cargo().args(["build", "--profile", profile.name(), "--package", package]);
    match profile {
        Profile::Release => build,
        Profile::Dist => build.env(page::PACK, page::BEST),
    }
}

/// Builds the binary with the most recently built page.
pub fn server(steps: &mut Steps, profile: Profile) -> Result<PathBuf, String> {
    program(steps, profile, None)
}

fn program(steps: &mut Steps, profile: Profile, server: Option<Running>) -> Result<PathBuf, String> {
    let binary = paths::program(profile.name());
    let modified = || std::fs::metadata(&binary).and_then(|meta| meta.modified()).ok();
    steps.step(left::PROGRAM, || {
        let before = modified();
        server.map_or(Ok(()), Running::wait)?;
        compile(profile, "watchglass").run()?;
        let bytes = std::fs::metadata(&binary).map_err(|e| format!("{}: {e}", binary.display()))?.len();
        let text = format!("{} ({:.1} MB)", binary.display(), bytes as f64 / 1e6);
        Ok(if before.is_some() && modified() == before { Done::Already(text) } else { Done::Now(text) })
    })?;
    Ok(binary)
}
