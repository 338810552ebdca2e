//! Small files of /sys that are read rarely: names, types, links.

use std::path::Path;

/// The content of a small file without surrounding blanks; none if it cannot be read.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_string())
}

/// Names in a folder, sorted; empty if it cannot be read.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}
