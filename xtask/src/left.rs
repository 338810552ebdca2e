//! The parts that a first run has to make and that take minutes, with the time of each.

use crate::steps::Part;
use crate::{page, paths, setup};

// Parts that are missing, in the order in which they are made. The seconds are wall time of a first run on two idle
// cores. Most of the program is compiled while the other parts are made.

/// Name of the step that makes the program.
pub const PROGRAM: &str = "program";

/// The tools that are missing.
pub fn tools() -> Vec<Part> {
    let parts = [part(setup::TRUNK, 235, setup::has_trunk()), part(setup::WASM_BINDGEN, 75, setup::has_wasm_bindgen())];
    parts.into_iter().flatten().collect()
}

/// The tools of the page, and the page, as far as they are missing.
pub fn page() -> Vec<Part> {
    let mut parts = tools();
    parts.extend(part(page::STEP, 170, page::was_compiled()));
    parts
}

/// All parts that the program needs and that are missing.
pub fn program() -> Vec<Part> {
    let mut parts = page();
    parts.extend(part(PROGRAM, 95, paths::program().is_file()));
    parts
}

fn part(name: &'static str, seconds: u64, there: bool) -> Option<Part> {
    (!there).then_some(Part { name, seconds })
}
