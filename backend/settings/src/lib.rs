//! What a table of the configuration file is ([`FileTable`]), and how [`length`]s of time are written in it: for the crates
//! that are configured, so that each has its own settings, and for the one that gathers them.
//!
//! This crate knows the words of [`shared`] and the reader of TOML. It has no option, no flag and no file.

pub mod length;

use serde::de::DeserializeOwned;
use toml::Table;

/// A table of the configuration file that no flag can say.
pub trait FileTable: DeserializeOwned + Default + PartialEq + 'static {
    /// Its keys, and what each is.
    const KEYS: &'static [(&'static str, &'static str)];

    /// Its values as they stand in a file.
    fn print(&self) -> Table;
}
