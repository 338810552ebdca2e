//! Values of each type in the configuration file.

use crate::file_error::misplaced;
use crate::length::show_duration;
use shared::secret::Secret;
use shared::unit::size;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// Replacement of a secret wherever it is shown.
pub const HIDDEN: &str = "***";

/// Number of allowed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// One, true or false.
    Switch,
    /// One.
    One,
    /// A list.
    Many,
}

/// A type of values.
pub trait Written: Sized + PartialEq + 'static {
    /// Number of values in a single one.
    const TAKES: Takes = Takes::One;

    /// The value, for a file.
    fn show(&self) -> Value;

    /// The text of a value from a file.
    ///
    /// # Errors
    /// The correct form.
    fn text(value: Value) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(text),
            Value::Integer(number) => Ok(number.to_string()),
            other => Err(misplaced(other.type_str(), "text in quotation marks, or a list of it")),
        }
    }
}

impl Written for bool {
    const TAKES: Takes = Takes::Switch;

    fn show(&self) -> Value {
        (*self).into()
    }

    fn text(value: Value) -> Result<String, String> {
        match value {
            Value::Boolean(value) => Ok(value.to_string()),
            other => Err(misplaced(other.type_str(), "a boolean")),
        }
    }
}

/// A port.
impl Written for u16 {
    fn show(&self) -> Value {
        i64::from(*self).into()
    }

    fn text(value: Value) -> Result<String, String> {
        match value {
            Value::Integer(number) if u16::try_from(number).is_ok() => Ok(number.to_string()),
            Value::Integer(_) => Err("an integer does not fit here; write u16, a whole number from 0 to 65535".into()),
            other => Err(misplaced(other.type_str(), "a whole number from 0 to 65535")),
        }
    }
}

/// A number assigned by the system or a driver, of a process, a user or a GPU; or a limit.
impl Written for u32 {
    fn show(&self) -> Value {
        i64::from(*self).into()
    }

    // A user may be named, so text is accepted here.
    fn text(value: Value) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(text),
            Value::Integer(number) => Ok(number.to_string()),
            other => Err(misplaced(other.type_str(), "a whole number")),
        }
    }
}

/// Bytes.
impl Written for u64 {
    fn show(&self) -> Value {
        size::typed(*self).into()
    }
}

impl Written for f64 {
    fn show(&self) -> Value {
        (*self).into()
    }

    fn text(value: Value) -> Result<String, String> {
        match value {
            Value::Float(number) => Ok(number.to_string()),
            Value::Integer(number) => Ok(number.to_string()),
            other => Err(misplaced(other.type_str(), "a number")),
        }
    }
}

impl Written for Duration {
    fn show(&self) -> Value {
        show_duration(*self).into()
    }
}

impl Written for String {
    fn show(&self) -> Value {
        self.as_str().into()
    }
}

impl Written for Secret {
    fn show(&self) -> Value {
        HIDDEN.into()
    }
}

impl Written for PathBuf {
    fn show(&self) -> Value {
        self.to_string_lossy().into_owned().into()
    }
}

impl Written for IpAddr {
    fn show(&self) -> Value {
        self.to_string().into()
    }
}
