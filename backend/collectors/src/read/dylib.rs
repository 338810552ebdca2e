//! Vendor libraries: which names and paths to try, in words for doctor.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name that a library goes by: the path that the user gave, else the system's name for it.
pub(crate) fn name(chosen: Option<&Path>, system: &str) -> OsString {
    chosen.map_or_else(|| OsString::from(system), |path| path.as_os_str().to_owned())
}

/// Why a library did not open, in one sentence without a full stop: "it was not found" unless a file stands where it was
/// looked for.
pub(crate) fn why_not(name: &OsStr, loader_says: &str) -> String {
    let path = Path::new(name);
    let shown = path.display();
    if path.components().count() > 1 && path.exists() {
        format!("{shown} could not be loaded: {loader_says}")
    } else {
        format!("{shown} was not found")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_told_from_one_that_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lib.so");
        assert!(why_not(file.as_os_str(), "x").ends_with("lib.so was not found"));
        std::fs::write(&file, "text").unwrap();
        assert!(why_not(file.as_os_str(), "file too short").ends_with("could not be loaded: file too short"));
        assert_eq!(why_not(OsStr::new("libnvidia-ml.so.1"), "x"), "libnvidia-ml.so.1 was not found");
        assert_eq!(name(Some(&file), "a"), file.as_os_str());
        assert_eq!(name(None, "a"), "a");
    }
}
