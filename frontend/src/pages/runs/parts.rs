//! Words and shapes of all pages of runs, and the lists of runs of a server.

use crate::fetch::{Json, WrongShape};
use viewer::runs::Listed;
pub use viewer::runs::words::{energy, figure, percent, sentence, shape, size, state_word, where_it_ran};

/// The runs of a list of the server.
///
/// # Errors
///
/// Fails where one of them is of another shape.
pub fn listed(body: &Json) -> Result<Vec<Listed>, WrongShape> {
    body.read_each("runs", |run| Ok(Listed::new(run.read()?, run.read()?, run.read()?)))
}
