//! Vendor libraries: names and paths to try, as texts for doctor.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Name of a library: the user's path, else the system's name.
pub(crate) fn name(chosen: Option<&Path>, system: &str) -> OsString {
    chosen.map_or_else(|| OsString::from(system), |path| path.as_os_str().to_owned())
}

/// Whether the name is an existing file. Then a library that does not open is broken, not absent.
pub(crate) fn is_file(name: &OsStr) -> bool {
    let path = Path::new(name);
    path.components().count() > 1 && path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_told_from_one_that_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lib.so");
        assert!(!is_file(file.as_os_str()));
        std::fs::write(&file, "text").unwrap();
        assert!(is_file(file.as_os_str()));
        assert!(!is_file(OsStr::new("libnvidia-ml.so.1")), "a bare name is looked for by the loader");
        assert_eq!(name(Some(&file), "a"), file.as_os_str());
        assert_eq!(name(None, "a"), "a");
    }
}
