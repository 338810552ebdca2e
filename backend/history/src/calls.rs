//! Calls that change the folder and have not returned. A call that stays reveals a hanging disk, whether it comes from
//! the log's threads or from writing, merging and removing segments.

use crate::files::{Append, Content, Files, Lock, LockError};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// Calls that have not returned.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    open: BTreeSet<u64>,
}

/// One call; dropped when it has returned.
struct Call<'a>(&'a Calls, u64);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.lock().open.remove(&self.1);
    }
}

impl Calls {
    /// The number of the oldest call that has not returned; no other call has it.
    pub fn oldest(&self) -> Option<u64> {
        self.lock().open.first().copied()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // No code that holds the lock can leave it half changed.
        self.0.lock()
    }

    fn begin(&self) -> Call<'_> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.open.insert(number);
        Call(self, number)
    }
}

/// Files whose calls are tracked.
pub(crate) struct Noted {
    files: Arc<dyn Files>,
    calls: Arc<Calls>,
}

impl Noted {
    pub(crate) fn new(files: Arc<dyn Files>, calls: Arc<Calls>) -> Self {
        Noted { files, calls }
    }
}

impl Files for Noted {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Content>> {
        let _call = self.calls.begin();
        self.files.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Append>> {
        let _call = self.calls.begin();
        let file = self.files.create(name)?;
        Ok(Arc::new(NotedFile { file, calls: self.calls.clone() }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let _call = self.calls.begin();
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let _call = self.calls.begin();
        self.files.remove(name)
    }

    fn sync_folder(&self) -> io::Result<()> {
        let _call = self.calls.begin();
        self.files.sync_folder()
    }

    fn free(&self) -> io::Result<u64> {
        let _call = self.calls.begin();
        self.files.free()
    }

    fn lock(&self) -> Result<Arc<dyn Lock>, LockError> {
        self.files.lock()
    }
}

struct NotedFile {
    file: Arc<dyn Append>,
    calls: Arc<Calls>,
}

impl Append for NotedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let _call = self.calls.begin();
        self.file.append(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        let _call = self.calls.begin();
        self.file.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let _call = self.calls.begin();
        self.file.truncate(len)
    }
}
