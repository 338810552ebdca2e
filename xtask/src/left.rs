//! What a first run has to make: the parts that take minutes, and what each takes.

use crate::steps::Part;
use crate::{page, run, setup};

/// The parts that are not there yet, in the order in which they are made. The seconds are wall time on two idle cores,
/// while the program's libraries are compiled beside.
pub fn parts() -> Vec<Part> {
    let parts = [
        (setup::LIBRARY, 30, setup::library_is_made()),
        (setup::TRUNK, 150, setup::has_trunk()),
        (setup::WASM_BINDGEN, 60, setup::has_wasm_bindgen()),
        (page::STEP, 90, page::was_compiled()),
        (run::STEP, 90, run::binary().is_file()),
    ];
    parts.into_iter().filter(|(.., there)| !there).map(|(name, seconds, _)| Part { name, seconds }).collect()
}
