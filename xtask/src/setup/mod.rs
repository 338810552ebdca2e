//! Prepares the machine for building the page and opening it.
//!
//! Each step first checks whether its work is already done, and then starts nothing. A step that cannot be done names
//! the command that would do it.

mod apt;
mod browser;
mod debian;
mod debian_std;
mod jupyter;
mod tools;
mod wasm32;

use crate::exec::{cargo, cmd, quiet_in_a_log};
use crate::paths;
use crate::steps::{Done, Steps};
use std::path::PathBuf;

pub use debian::{Programs, image_base, peers, programs};
pub use jupyter::{deny, helm, jupyter, oldest_jupyter, packers, python, schemathesis};
pub use tools::{WASM_BINDGEN, axe, fetched_or_not, has_wasm_bindgen, uplot};
pub use wasm32::Compiler;

/// The compiler's name of the page's target.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Audience of a build of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PageFor {
    /// People who build it, and tests: compiled in a fraction of the time.
    Builders,
    /// Releases: small.
    Release,
}

impl PageFor {
    /// The cargo profile. `frontend/index.html` names the first one, for trunk.
    pub fn profile(self) -> &'static str {
        match self {
            PageFor::Builders => "page",
            PageFor::Release => "page-dist",
        }
    }
}

/// The tools that build the page.
pub struct PageTools {
    /// The compiler for wasm32.
    pub compiler: Compiler,
    /// Path of the program that runs wasm-bindgen for the page's script.
    pub wasm_bindgen: PathBuf,
    /// Path of wasm-opt, for releases. None when it is missing, and then the page is larger.
    pub wasm_opt: Option<PathBuf>,
}

impl PageTools {
    /// A text that differs between two sets of tools. When it changes, the page is rebuilt.
    pub fn id(&self) -> String {
        let wasm_opt = self.wasm_opt.as_deref().map_or("none".into(), |path| path.to_string_lossy());
        format!("{} {} {wasm_opt}", self.compiler.id(), self.wasm_bindgen.display())
    }

    /// Prints which compiler builds the page.
    pub fn describe(&self) {
        eprintln!("The page is compiled by {}; `cargo xtask build` builds it.", self.compiler.version());
    }
}

/// Prepares the tools of the page.
pub fn page_tools(steps: &mut Steps, whom: PageFor) -> Result<PageTools, String> {
    let mut compiler = None;
    steps.step("wasm32 target", || {
        let (found, done) = wasm32::ready()?;
        compiler = Some(found);
        Ok(done)
    })?;
    let compiler = compiler.ok_or("the wasm32 target is missing")?;
    steps.step("packages of the page", || fetch(&compiler))?;
    let wasm_bindgen = tools::wasm_bindgen(steps)?;
    let wasm_opt = match whom {
        PageFor::Builders => None,
        PageFor::Release => tools::wasm_opt(steps)?,
    };
    Ok(PageTools { compiler, wasm_bindgen, wasm_opt })
}

/// Prepares rustfmt and clippy of the active toolchain.
pub fn checkers(steps: &mut Steps) -> Result<(), String> {
    steps.step("rustfmt and clippy", || {
        let there = || ["fmt", "clippy"].iter().all(|tool| cargo().args([tool, "--version"]).output().is_ok());
        if there() {
            return Ok(Done::Already("of the active toolchain".to_owned()));
        }
        let command = "rustup component add rustfmt clippy";
        eprintln!("    {command}");
        cmd("rustup").args(["component", "add", "rustfmt", "clippy"]).run()?;
        if there() { Ok(Done::Now("added".to_owned())) } else { Err(format!("still missing after: {command}")) }
    })
}

/// Prepares Chromium and its driver.
pub fn browser(steps: &mut Steps) -> Result<(), String> {
    steps.step("browser", browser::ready)
}

/// Downloads the sources that the page needs, so that it can be built without a network.
fn fetch(compiler: &Compiler) -> Result<Done, String> {
    let lock = paths::read(&paths::root().join("Cargo.lock"))?;
    let stamp = paths::page_target().join("fetched.lock");
    if std::fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == lock) {
        return Ok(Done::Already("as in Cargo.lock".to_owned()));
    }
    eprintln!("    cargo fetch");
    cargo()
        .args(["fetch", "--target", TARGET])
        .args(quiet_in_a_log())
        .envs(&compiler.env())
        .run()
        .map_err(tools::fetched_or_not)?;
    paths::write(&stamp, &paths::read(&paths::root().join("Cargo.lock"))?)?;
    Ok(Done::Now("as in Cargo.lock".to_owned()))
}
