//! What is wrong in the configuration file, in the words of its writer.

use super::nearest::nearest;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong in the file: where, in bytes from its begin, and why.
pub struct FileError {
    /// Bytes before the place.
    pub at: usize,
    /// A sentence without the value, which may be secret.
    pub message: String,
}

/// That a type cannot stand where it does.
pub fn misplaced(found: &str, wanted: &str) -> String {
    let article = if found.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {found} is not allowed here; write {wanted}")
}

/// A value of the file as a type that serde reads.
pub fn deserialized<'de, T: Deserialize<'de>>(value: Spanned<DeValue<'de>>) -> Result<T, FileError> {
    let place = value.span().start;
    T::deserialize(value.into_deserializer()).map_err(|error| wrong(&error, place))
}

/// A fault that the reader of TOML found; `place` is where it is if the reader does not say.
pub fn wrong(error: &toml::de::Error, place: usize) -> FileError {
    FileError { at: error.span().map_or(place, |span| span.start), message: reworded(error.message()) }
}

/// The table that a value of the file is, and where it begins.
pub fn table(value: Spanned<DeValue<'_>>) -> Result<(usize, DeTable<'_>), FileError> {
    let at = value.span().start;
    match value.into_inner() {
        DeValue::Table(table) => Ok((at, table)),
        other => Err(FileError { at, message: misplaced(other.type_str(), "a table") }),
    }
}

/// Serde's "unknown field `a`, expected one of `b`, `c`" in a user's words, and its "invalid type: string \"...\", expected a
/// map" without the value, which may be a secret; other messages as they are.
fn reworded(message: &str) -> String {
    let unfit = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = unfit.and_then(|rest| rest.rsplit_once(", expected ")) {
        return misplaced(found.split(['"', '`']).next().unwrap_or_default().trim(), expected);
    }
    if !message.starts_with("unknown field ") {
        return message.to_string();
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    unknown_key(unknown, &quoted.collect::<Vec<_>>())
}

/// That there is no such key, and which one was perhaps meant.
pub fn unknown_key(key: &str, known: &[&str]) -> String {
    format!("unknown key `{key}`{}", nearest(key, known))
}
