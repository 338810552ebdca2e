//! Builds the book of docs/ with mdBook and puts it beside the page, so that the binary serves it at `/docs`.

use crate::Failure;
use crate::exec::{cargo, cmd};
use crate::paths;
use crate::setup::fetched_or_not;
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

/// Name of the step.
pub const STEP: &str = "docs";
/// The package of the program that calls mdBook.
const PACKAGE: &str = "watchglass-book";
/// Name of the stamp in the built book: a hash of its inputs. Hidden files are not served.
const STAMP: &str = ".made-from";

/// `cargo xtask docs`: builds the book, and prints its path.
pub fn docs() -> Result<(), Failure> {
    ready(&mut Steps::new("docs"))?;
    eprintln!("{}", made().join("index.html").display());
    Ok(())
}

/// True when the program that calls mdBook was compiled here before.
pub fn was_compiled() -> bool {
    program().is_file()
}

/// Builds the book unless it is up to date, and puts it beside the page. The page must be built before, since its build
/// empties the folder.
pub fn ready(steps: &mut Steps) -> Result<(), String> {
    steps.step(STEP, build)
}

fn program() -> PathBuf {
    paths::target().join("debug").join(format!("book{}", std::env::consts::EXE_SUFFIX))
}

/// The folder of the built book.
fn made() -> PathBuf {
    paths::page_target().join("docs")
}

fn build() -> Result<Done, String> {
    let _alone = paths::alone(&paths::page_target().join("building"))?;
    let sources = fingerprint()?;
    let is = |folder: &Path| std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|from| from == sources);
    let (made, served) = (made(), paths::dist().join("docs"));
    if is(&served) && is(&made) {
        return Ok(Done::Already(format!("{} is up to date", served.display())));
    }
    if !is(&made) {
        // Not optimized: it runs for a second.
        cargo().args(["build", "--quiet", "--package", PACKAGE]).run().map_err(fetched_or_not)?;
        paths::remove(&made)?;
        cmd(program()).arg(paths::root().join("docs")).arg(&made).run()?;
        paths::write(&made.join(STAMP), &sources)?;
    }
    paths::remove(&served)?;
    paths::copy(&made, &served)?;
    Ok(Done::Now(served.display().to_string()))
}

/// A hash of the book's inputs: its pages, its theme, its pictures, and the program that builds it.
fn fingerprint() -> Result<String, String> {
    let root = paths::root();
    let mut files = vec![root.join("Cargo.lock")];
    for folder in ["docs", "static", "xtask/book"] {
        paths::list(&root.join(folder), &|_| true, &mut files)?;
    }
    paths::digest(&[], files)
}
