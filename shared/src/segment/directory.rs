//! The directory.

/// Rows and dictionaries that were read last: neighbouring segments hold the same bytes, which are parsed and kept once.
#[derive(Debug, Default)]
pub struct Dictionaries {}
