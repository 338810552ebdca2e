//! Training jobs: [`list`] of all of them, the [`page`] of `one` with its ranks, which `edit` changes, several beside each other in `side`,
//! and those of one machine in its [`panel`]. [`read`] parses the server's responses.

mod columns;
mod differs;
mod edit;
pub mod fleet;
pub mod list;
mod one;
pub mod page;
pub mod panel;
pub mod parts;
mod printed;
mod ranks;
mod side;
