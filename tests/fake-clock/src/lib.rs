//! A wall clock that a test sets. The library is put under a program by `LD_PRELOAD`: its `clock_gettime` adds to the wall
//! clock what stands in a file, which the variable `FAKE_CLOCK` names. Other clocks are the machine's.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

mod preloaded;

/// A clock for programs that are started with its [`environment`](FakeClock::environment).
pub struct FakeClock {
    file: PathBuf,
}

impl FakeClock {
    /// One that is right until it is set. It keeps a file in this folder.
    ///
    /// # Panics
    /// Panics when the file cannot be written.
    pub fn new(folder: &Path) -> FakeClock {
        let file = folder.join("fake-clock");
        std::fs::write(&file, 0i64.to_ne_bytes()).expect("a folder");
        FakeClock { file }
    }

    /// Sets it this much ahead of the machine's, in ms, at once.
    ///
    /// # Panics
    /// Panics when the file is gone.
    pub fn set_ahead(&self, ms: i64) {
        use std::os::unix::fs::FileExt;
        // In place: programs have it in their memory.
        let file = std::fs::OpenOptions::new().write(true).open(&self.file).expect("the file is there");
        file.write_all_at(&ms.to_ne_bytes(), 0).expect("it can be written");
    }

    /// The variables of a program that goes by it.
    ///
    /// # Panics
    /// Panics when the library was not built.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_str().expect("a plain path").to_string();
        vec![("LD_PRELOAD".into(), text(&built())), ("FAKE_CLOCK".into(), text(&self.file))]
    }
}

/// The library that Cargo built: beside the test's binary, or in a folder near it.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let dirs = own.ancestors().skip(1).take(2).flat_map(|dir| [dir.to_path_buf(), dir.join("deps")]);
    let found = dirs.map(|dir| dir.join("libfake_clock.so")).filter(|path| path.exists());
    // Cargo may leave an older library in the other folder.
    let newest = found.max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    newest.unwrap_or_else(|| panic!("libfake_clock.so is not near {}", own.display()))
}
