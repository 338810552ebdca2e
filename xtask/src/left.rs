//! What a first run has to make: the parts that take minutes, and what each takes.

use crate::steps::Part;
use crate::{page, run, setup};

/// The parts that are not there yet, in the order in which they are made. The seconds are wall time on two idle cores, each
/// part alone. Most of the program is compiled beside the others: these take longer and it less, and the sum is right.
pub fn parts() -> Vec<Part> {
    let parts = [
        (setup::LIBRARY, 30, setup::library_is_made()),
        (setup::TRUNK, 120, setup::has_trunk()),
        (setup::WASM_BINDGEN, 45, setup::has_wasm_bindgen()),
        (page::STEP, 130, page::was_compiled()),
        (run::STEP, 150, run::binary().is_file()),
    ];
    parts.into_iter().filter(|(.., there)| !there).map(|(name, seconds, _)| Part { name, seconds }).collect()
}
