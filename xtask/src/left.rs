//! The parts of a first run that take minutes, with the time of each when it was last built.

use crate::measured::usual;
use crate::steps::StepPart;
use crate::{book, page, paths, setup};

/// Name of the step that builds the program.
pub const PROGRAM: &str = "program";

/// The tools that are missing.
pub fn tools() -> Vec<StepPart> {
    part(setup::WASM_BINDGEN, setup::has_wasm_bindgen()).into_iter().collect()
}

/// The tools of the page, the page and its book, if they are missing.
pub fn page() -> Vec<StepPart> {
    let mut parts = tools();
    parts.extend(part(page::STEP, page::was_compiled()));
    parts.extend(part(book::STEP, book::was_compiled()));
    parts
}

/// All missing parts that the program needs, in build order. Most of the program is compiled while the others are
/// built.
pub fn program() -> Vec<StepPart> {
    let mut parts = page();
    parts.extend(part(PROGRAM, paths::program("release").is_file()));
    parts
}

fn part(name: &'static str, there: bool) -> Option<StepPart> {
    (!there).then(|| StepPart { name, seconds: usual(name) })
}
