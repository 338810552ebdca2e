//! Findings: what is wrong with the machines, as the crate `insight` sees it in their samples. [`follow`] looks at what
//! comes, [`look_through`] at what was kept, and [`FindingBook`] has what was found.
//!
//! They follow from the samples alone, so that a replay finds the same again; what is kept of them is a file beside the
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
