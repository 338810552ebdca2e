//! Tables of the configuration file: each is a [`FileTable`], declared by [`table!`] with one row for each key. For the
//! configured crates, so that each has its own settings, and for the crate that collects them.
//!
//! This crate uses only [`shared`] and the TOML parser. It has no option, no flag and no file.
//!
//! Read `declare.rs` (the declaration of a key), `table.rs` (reading and printing a table), `kinds.rs` (reading and
//! printing a value) and `written.rs` (values of each type in a file).

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
