//! The handle by which a test loads and controls its own copy of the library.

use crate::scenario::Scenario;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A copy of the library with its own scenario. Copies share nothing, so tests may run at the same time.
pub struct Fake {
    library: PathBuf,
    handle: *mut libc::c_void,
    _dir: tempfile::TempDir,
}

// SAFETY: the handle is only given to dlsym, which any thread may call.
unsafe impl Send for Fake {}
// SAFETY: any thread may call dlsym, and the functions that it finds lock the library's state.
unsafe impl Sync for Fake {}

impl Fake {
    /// Copies and loads the library and sets its scenario.
    ///
    /// # Panics
    /// Panics when the library was not built, or when the text is no scenario.
    pub fn new(scenario: &str) -> Fake {
        Fake::without(&[], scenario)
    }

    /// Makes a library of a driver that does not have these functions: they are not exported.
    ///
    /// # Panics
    /// Panics as [`Fake::new`] does, and when one of the functions does not exist.
    pub fn without(functions: &[&str], scenario: &str) -> Fake {
        let dir = tempfile::tempdir().expect("a folder for the library");
        let library = dir.path().join("libfake_nvml.so");
        let mut bytes = std::fs::read(built()).expect("the library can be read");
        functions.iter().for_each(|function| rename(&mut bytes, function));
        std::fs::write(&library, bytes).expect("the library can be written");
        std::fs::write(dir.path().join("scenario.json"), scenario).expect("the scenario can be written");
        let name = CString::new(library.as_os_str().as_bytes()).expect("a path without NUL");
        // SAFETY: the name is a C string. The library's only initializer is Rust's own.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} cannot be loaded", library.display());
        let fake = Fake { library, handle, _dir: dir };
        fake.scenario(scenario);
        fake
    }

    /// Path of the library.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// Replaces the scenario; calls that hang return.
    ///
    /// # Panics
    /// Panics when the text is no scenario.
    pub fn scenario(&self, scenario: &str) {
        serde_json::from_str::<Scenario>(scenario).unwrap_or_else(|error| panic!("no scenario: {error}\n{scenario}"));
        let set: extern "C" fn(*const u8, usize) -> u32 = self.symbol(c"fake_nvml_scenario");
        assert_eq!(set(scenario.as_ptr(), scenario.len()), 0, "the library read the scenario otherwise");
    }

    /// Replaces the scenario of the programs that have loaded the library.
    ///
    /// # Panics
    /// Panics when the text is no scenario, and when it cannot be written.
    pub fn publish(&self, scenario: &str) {
        serde_json::from_str::<Scenario>(scenario).unwrap_or_else(|error| panic!("no scenario: {error}\n{scenario}"));
        let new = self.library.with_file_name("scenario.new");
        std::fs::write(&new, scenario).expect("the scenario can be written");
        std::fs::rename(new, self.library.with_file_name("scenario.json")).expect("a file in our own folder");
    }

    /// Number of calls of a function since the library was loaded.
    pub fn calls(&self, function: &CStr) -> u64 {
        let calls: extern "C" fn(*const libc::c_char) -> u64 = self.symbol(c"fake_nvml_calls");
        calls(function.as_ptr())
    }

    /// Number of calls of all functions since the library was loaded.
    pub fn all_calls(&self) -> u64 {
        let calls: extern "C" fn(*const libc::c_char) -> u64 = self.symbol(c"fake_nvml_calls");
        calls(std::ptr::null())
    }

    fn symbol<F: Copy>(&self, name: &CStr) -> F {
        assert_eq!(size_of::<F>(), size_of::<*mut libc::c_void>());
        // SAFETY: the handle is of a library that is never closed, and the name is a C string.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!symbol.is_null(), "{name:?} is not exported");
        // SAFETY: the callers above name the types with which `exports` defines these functions, and sizes are equal.
        unsafe { std::mem::transmute_copy(&symbol) }
    }
}

/// Renames a function in the symbol table of the library, so that a lookup by its own name fails.
fn rename(library: &mut [u8], function: &str) {
    let name: Vec<u8> = [b"\0", function.as_bytes(), b"\0"].concat();
    let mut found = 0;
    for at in 0..library.len().saturating_sub(name.len()) {
        if library[at..].starts_with(&name) {
            library[at + 1] = b'-';
            found += 1;
        }
    }
    assert!(found > 0, "{function} is not in the library");
}

/// The library that Cargo built. It is in the folder of the test's binary, or in a folder near it.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let name = if cfg!(target_os = "macos") { "libfake_nvml.dylib" } else { "libfake_nvml.so" };
    let dirs = own.ancestors().skip(1).take(2).flat_map(|dir| [dir.to_path_buf(), dir.join("deps")]);
    let mut found: Vec<PathBuf> = dirs.map(|dir| dir.join(name)).collect();
    found.retain(|path| path.exists());
    // Cargo may leave an older library in the other folder.
    let newest = found.into_iter().max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    newest.unwrap_or_else(|| panic!("{name} is not near {}", own.display()))
}
