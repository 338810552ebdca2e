//! Parsers of the plainest values. Each error is the rest of a sentence with the correct form.

use std::net::IpAddr;
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

/// The path below which everything is served, with both slashes. Characters that a router would read as a pattern are
/// refused.
///
/// # Errors
/// It is no path of a URL.
pub fn base_path(text: &str) -> Result<String, String> {
    let inner = text.trim_matches('/');
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~@%+=,".contains(c);
    let segment = |s: &str| !s.is_empty() && s != "." && s != ".." && s.chars().all(fits);
    match inner {
        "" => Ok("/".into()),
        _ if inner.split('/').all(segment) => Ok(format!("/{inner}/")),
        _ => Err(format!("\"{text}\" is not a path of a URL; write it like /tools/watchglass/")),
    }
}

/// A name that the page is reached by, in lower case; of an IPv6 address the bare form.
///
/// # Errors
/// It is no host name.
pub fn host(text: &str) -> Result<String, String> {
    let lower = text.to_ascii_lowercase();
    let bare = lower.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(&lower);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(ip.to_string());
    }
    if is_host_name(&lower) {
        return Ok(lower);
    }
    Err(format!("\"{text}\" is not a host name; write it without scheme, port and path, like gpu7.example.org"))
}

/// Labels of letters, digits, hyphens and underscores, parted by single dots.
pub fn is_host_name(text: &str) -> bool {
    let label =
        |s: &str| !s.is_empty() && s.len() <= 63 && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    text.len() <= 253 && text.split('.').all(label)
}
