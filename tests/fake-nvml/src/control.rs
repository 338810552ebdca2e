//! The handle by which a test loads a library of its own and steers it.

use crate::scenario::Scenario;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A copy of the library with a scenario of its own: copies share nothing, so tests may run side by side.
pub struct Fake {
    library: PathBuf,
    handle: *mut libc::c_void,
    _dir: tempfile::TempDir,
}

// SAFETY: the handle is only given to dlsym, which any thread may call.
unsafe impl Send for Fake {}
// SAFETY: likewise; the functions found by it lock the library's state.
unsafe impl Sync for Fake {}

impl Fake {
    /// Copies and loads the library and puts the scenario in force.
    ///
    /// # Panics
    /// When the library was not built or the scenario is not one.
    pub fn new(scenario: &str) -> Fake {
        Fake::without(&[], scenario)
    }

    /// Likewise, of a driver that does not have these functions: they are not exported.
    ///
    /// # Panics
    /// Likewise, and when a function is not there to be left out.
    pub fn without(functions: &[&str], scenario: &str) -> Fake {
        let dir = tempfile::tempdir().expect("a folder for the library");
        let library = dir.path().join("libfake_nvml.so");
        let mut bytes = std::fs::read(built()).expect("the library can be read");
        functions.iter().for_each(|function| rename(&mut bytes, function));
        std::fs::write(&library, bytes).expect("the library can be written");
        std::fs::write(dir.path().join("scenario.json"), scenario).expect("the scenario can be written");
        let name = CString::new(library.as_os_str().as_bytes()).expect("a path without NUL");
        // SAFETY: the name is a C string; the library's only initialiser is Rust's own.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} cannot be loaded", library.display());
        let fake = Fake { library, handle, _dir: dir };
        fake.scenario(scenario);
        fake
    }

    /// Where it is.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// Replaces the scenario; calls that hang return.
    ///
    /// # Panics
    /// When it is not one.
    pub fn scenario(&self, scenario: &str) {
        serde_json::from_str::<Scenario>(scenario).unwrap_or_else(|error| panic!("no scenario: {error}\n{scenario}"));
        let set: extern "C" fn(*const u8, usize) -> u32 = self.symbol(c"fake_nvml_scenario");
        assert_eq!(set(scenario.as_ptr(), scenario.len()), 0, "the library read the scenario otherwise");
    }

    /// How often a function was called since the library was loaded.
    pub fn calls(&self, function: &CStr) -> u64 {
        let calls: extern "C" fn(*const libc::c_char) -> u64 = self.symbol(c"fake_nvml_calls");
        calls(function.as_ptr())
    }

    /// How often any function was called.
    pub fn all_calls(&self) -> u64 {
        let calls: extern "C" fn(*const libc::c_char) -> u64 = self.symbol(c"fake_nvml_calls");
        calls(std::ptr::null())
    }

    fn symbol<F: Copy>(&self, name: &CStr) -> F {
        assert_eq!(size_of::<F>(), size_of::<*mut libc::c_void>());
        // SAFETY: the handle is of a library that is never closed, the name is a C string.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!symbol.is_null(), "{name:?} is not exported");
        // SAFETY: the callers above name the types with which `exports` defines these functions, and sizes are equal.
        unsafe { std::mem::transmute_copy(&symbol) }
    }
}

/// Gives a function another name in the library's tables, so that it is not found under its own.
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

/// The library as Cargo built it: beside the test's binary, or near the folder above.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let name = if cfg!(target_os = "macos") { "libfake_nvml.dylib" } else { "libfake_nvml.so" };
    let dirs = own.ancestors().skip(1).take(2).flat_map(|dir| [dir.to_path_buf(), dir.join("deps")]);
    let mut found: Vec<PathBuf> = dirs.map(|dir| dir.join(name)).collect();
    found.retain(|path| path.exists());
    // Cargo may leave an older one in the other folder.
    let newest = found.into_iter().max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    newest.unwrap_or_else(|| panic!("{name} is not near {}", own.display()))
}
