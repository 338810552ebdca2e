//! Clocks that a test moves. `LD_PRELOAD` puts the library under a program. Its `clock_gettime` adds to the machine's
//! clocks the offsets in a file, which the variable `FAKE_CLOCK` names. Timed waits of the program follow these clocks
//! too.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

mod preloaded;

/// Clocks for programs that are started with its [`environment`](FakeClock::environment).
pub struct FakeClock {
    path: PathBuf,
    file: File,
}

impl FakeClock {
    /// Clocks that are right until they are moved. Their file is in this folder.
    ///
    /// # Panics
    /// Panics when the file cannot be written.
    pub fn new(folder: &Path) -> FakeClock {
        let path = folder.join("fake-clock");
        std::fs::write(&path, [0; 16]).expect("a folder");
        let file = File::options().read(true).write(true).open(&path).expect("the file is there");
        FakeClock { path, file }
    }

    /// Sets the wall clock this much ahead, in ms, at once. This is a step of the clock: no time passes.
    ///
    /// # Panics
    /// Panics when the file cannot be written.
    pub fn set_ahead(&self, ms: i64) {
        self.write(0, ms);
    }

    /// Sets the wall clock to this time. It runs on from there.
    ///
    /// # Panics
    /// Panics when the file cannot be written.
    pub fn set_to(&self, time: SystemTime) {
        let ms = |apart: Duration| apart.as_millis() as i64;
        #[allow(clippy::disallowed_methods, reason = "these clocks are those of the machine, moved")]
        let now = SystemTime::now();
        self.set_ahead(time.duration_since(now).map_or_else(|past| -ms(past.duration()), ms));
    }

    /// Moves all clocks forward by this much at once, in ms: what is due in that span becomes due now. Programs poll
    /// these clocks often. Periodic work of the program, such as measuring or heartbeats, does not happen within the
    /// jump. A test that must not miss it waits for it between two short jumps.
    ///
    /// # Panics
    /// Panics when the file cannot be read or written.
    pub fn pass(&self, ms: i64) {
        let mut passed = [0; 8];
        self.file.read_exact_at(&mut passed, 8).expect("the file is there");
        self.write(8, i64::from_ne_bytes(passed) + ms);
    }

    /// Writes in place, because programs have the file mapped.
    fn write(&self, at: u64, ms: i64) {
        self.file.write_all_at(&ms.to_ne_bytes(), at).expect("it can be written");
    }

    /// Environment of a program that uses this clock.
    ///
    /// # Panics
    /// Panics when the library was not built.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_str().expect("a plain path").to_string();
        vec![("LD_PRELOAD".into(), text(&built())), ("FAKE_CLOCK".into(), text(&self.path))]
    }
}

/// The library that Cargo built. It is in the folder of the test's binary, or in a folder near it.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let dirs = own.ancestors().skip(1).take(2).flat_map(|dir| [dir.to_path_buf(), dir.join("deps")]);
    let found = dirs.map(|dir| dir.join("libfake_clock.so")).filter(|path| path.exists());
    // Cargo may leave an older library in the other folder.
    let newest = found.max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    newest.unwrap_or_else(|| panic!("libfake_clock.so is not near {}", own.display()))
}
