//! The parts that a first run has to make and that take minutes, with the time that each took when it was last made.

use crate::measured::usual;
use crate::steps::Part;
use crate::{book, page, paths, setup};

/// Name of the step that makes the program.
pub const PROGRAM: &str = "program";

/// The tools that are missing.
pub fn tools() -> Vec<Part> {
    part(setup::WASM_BINDGEN, setup::has_wasm_bindgen()).into_iter().collect()
}

/// The tools of the page, the page and its book, as far as they are missing.
pub fn page() -> Vec<Part> {
    let mut parts = tools();
    parts.extend(part(page::STEP, page::was_compiled()));
    parts.extend(part(book::STEP, book::was_compiled()));
    parts
}

/// All parts that the program needs and that are missing, in the order in which they are made. Most of the program is
/// compiled while the others are made.
pub fn program() -> Vec<Part> {
    let mut parts = page();
    parts.extend(part(PROGRAM, paths::program("release").is_file()));
    parts
}

fn part(name: &'static str, there: bool) -> Option<Part> {
    (!there).then(|| Part { name, seconds: usual(name) })
}
