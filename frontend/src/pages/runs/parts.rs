//! Words and shapes that all pages of runs have, and the lists of runs that a server tells.

use crate::fetch::Json;
use viewer::runs::Listed;
pub use viewer::runs::words::{energy, figure, percent, sentence, shape, size, where_it_ran, word};

/// The runs of a list of the server.
pub fn listed(body: &Json) -> Vec<Listed> {
    let run = |run: &Json| Some(Listed::new(run.read()?, run.read()?, run.read()?));
    body.get("runs").list().iter().filter_map(run).collect()
}
