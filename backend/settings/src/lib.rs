//! What a table of the configuration file is: a [`FileTable`], written down by [`table!`] with one place for each key. For the
//! crates that are configured, so that each has its own settings, and for the one that gathers them.
//!
//! This crate knows the words of [`shared`] and the reader of TOML. It has no option, no flag and no file.
//!
//! Read `declare.rs` (what is written for a key), `table.rs` (how a table is read and printed), `kinds.rs` (how one value is)
//! and `written.rs` (how values of each type stand in a file).

mod declare;
mod file_error;
pub mod kinds;
pub mod length;
mod nearest;
mod table;
pub mod value;
mod written;

pub use file_error::{FileError, deserialized, misplaced, table_of, unknown_key, wrong};
pub use kinds::Field;
pub use nearest::nearest;
pub use table::{Fault, FileTable, Inner, Key, KeyKind, KeyText};
pub use written::{Takes, Written};
