//! Parsers of the plainest values. Each error is the rest of a sentence with the correct form.

use std::path::PathBuf;

/// True or false.
///
/// # Errors
/// It is neither.
pub fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a boolean; write true or false"))
}

/// A whole number from 0 on.
///
/// # Errors
/// It is none, or too large.
pub fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("\"{text}\" does not fit here; write a whole number from 0 to {}", u32::MAX))
}

/// A port.
///
/// # Errors
/// It is none.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a port; write a whole number from 0 to 65535"))
}

/// Any text.
///
/// # Errors
/// None.
pub fn any(text: &str) -> Result<String, String> {
    Ok(text.into())
}

/// A file or folder, absolute or relative to the working directory at start.
///
/// # Errors
/// It is empty.
pub fn file(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("the file name is empty; write a path".into()) } else { Ok(text.into()) }
}

/// A file or folder, independent of the working directory.
///
/// # Errors
/// It is relative.
pub fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("write the whole path, from / on".into()) }
}
