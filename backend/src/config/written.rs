//! How values of each type stand in the configuration file.

use super::file_error::misplaced;
use super::{LocalAuth, show_duration, value};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing, which means true, or `=true` or `=false`.
    Switch,
    /// One value.
    One,
    /// A list, with commas or by repeating the flag. An empty value alone is the empty list.
    Many,
}

/// A type of values.
pub trait Written: Sized + PartialEq + 'static {
    /// What a flag with one such value takes.
    const TAKES: Takes = Takes::One;

    /// The value as it stands in a file.
    fn show(&self) -> Value;

    /// The text of a value that stands in a file; an error says what to write instead.
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

/// A number that the system or a driver gave: of a process, a user or a GPU.
impl Written for u32 {
    fn show(&self) -> Value {
        i64::from(*self).into()
    }
}

/// Bytes.
impl Written for u64 {
    fn show(&self) -> Value {
        value::show_bytes(*self).into()
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

impl Written for LocalAuth {
    fn show(&self) -> Value {
        if *self == LocalAuth::Uid { "uid" } else { "off" }.into()
    }
}
