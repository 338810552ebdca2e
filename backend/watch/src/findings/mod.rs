//! Findings: problems of the machines that the crate `insight` detects in their samples. [`follow`] checks live data,
//! [`look_through`] stored data, and [`FindingBook`] holds the findings.
//!
//! They follow from the samples alone, so that a replay finds the same again. They are stored in a file beside the
//! history, which is read after a restart.

mod answer;
mod book;
mod changed;
mod feed;
mod follow;
mod kept;
pub mod testing;

pub use answer::answer;
pub(crate) use book::machines as named;
pub use book::{Entry, FindingBook, WantedFindings};
pub use changed::{Spans, changes};
pub use feed::look_through;
pub use follow::{Following, follow};
pub use kept::KeptFindings;
