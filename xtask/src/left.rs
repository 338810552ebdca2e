//! What a first run has to make: the parts that take minutes, and what each takes.

use crate::steps::Part;
use crate::{page, paths, setup};

// Parts that are not there yet, in the order in which they are made. The seconds are wall time on two idle cores in a first
// run. Most of the program is compiled beside the others.

/// The name of the step that makes the program.
pub const PROGRAM: &str = "program";

/// What is left of the tools.
pub fn tools() -> Vec<Part> {
    let parts = [part(setup::TRUNK, 235, setup::has_trunk()), part(setup::WASM_BINDGEN, 75, setup::has_wasm_bindgen())];
    parts.into_iter().flatten().collect()
}

/// What is left of the page and its tools.
pub fn page() -> Vec<Part> {
    let mut parts = tools();
    parts.extend(part(page::STEP, 170, page::was_compiled()));
    parts
}

/// What is left of all that the program needs.
pub fn program() -> Vec<Part> {
    let mut parts = page();
    parts.extend(part(PROGRAM, 95, paths::program().is_file()));
    parts
}

fn part(name: &'static str, seconds: u64, there: bool) -> Option<Part> {
    (!there).then_some(Part { name, seconds })
}
