//! Errors of the configuration file, in the words of its writer.

use crate::nearest;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in the file: its position, in bytes from the start and as a key, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Bytes before the position.
    pub at: usize,
    /// The key, from the outermost table on, with dots; if it is empty, the caller names the enclosing table.
    pub key: String,
    /// A sentence without the value, which may be secret.
    pub message: String,
}

impl FileError {
    /// An error at a position that needs no key.
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        FileError { at, key: String::new(), message: message.into() }
    }

    /// Its line in the text of the file.
    pub fn line(&self, text: &str) -> usize {
        1 + text[..self.at.min(text.len())].matches('\n').count()
    }

    /// The same error below one more key.
    #[must_use]
    pub fn below(mut self, key: &str) -> Self {
        self.key = if self.key.is_empty() { key.into() } else { format!("{key}.{}", self.key) };
        self
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => f.write_str(&self.message),
            key => write!(f, "{key}: {}", self.message),
        }
    }
}

/// Message that a type is not allowed there.
pub fn misplaced(found: &str, wanted: &str) -> String {
    let article = if found.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {found} is not allowed here; write {wanted}")
}

/// A value of the file, deserialized by serde.
///
/// # Errors
/// It has another type.
pub fn deserialized<'de, T: Deserialize<'de>>(value: Spanned<DeValue<'de>>) -> Result<T, FileError> {
    let place = value.span().start;
    T::deserialize(value.into_deserializer()).map_err(|error| wrong(&error, place))
}

/// A fault from the TOML parser; `place` is its position if the parser reports none.
pub fn wrong(error: &toml::de::Error, place: usize) -> FileError {
    FileError::new(error.span().map_or(place, |span| span.start), reworded(error.message()))
}

/// The table in a value of the file, and its position.
///
/// # Errors
/// It is something else.
pub fn table_of(value: Spanned<DeValue<'_>>) -> Result<(usize, DeTable<'_>), FileError> {
    let at = value.span().start;
    match value.into_inner() {
        DeValue::Table(table) => Ok((at, table)),
        other => Err(FileError::new(at, misplaced(other.type_str(), "a table"))),
    }
}

/// Serde's "invalid type: string \"...\", expected a map" without the value, which may be a secret; other messages as
/// they are.
fn reworded(message: &str) -> String {
    let unfit = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match unfit.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => misplaced(found.split(['"', '`']).next().unwrap_or_default().trim(), expected),
        None => message.to_string(),
    }
}

/// Message that there is no such key, with the key that was perhaps meant.
pub fn unknown_key(key: &str, known: &[&str]) -> String {
    format!("unknown key `{key}`{}", nearest(key, known))
}
