//! The lock of the store. A thread that locks it twice would deadlock. With debug assertions, as in tests, that is a
//! panic that names both places.

use crate::store::Store;
use parking_lot::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::thread::ThreadId;

/// A store that one thread uses at a time.
pub(super) struct StoreLock {
    store: Mutex<Store>,
    /// The thread that holds the lock, and where it was taken; recorded with debug assertions.
    holder: Mutex<Option<(ThreadId, &'static Location<'static>)>>,
}

/// The locked store.
pub struct StoreGuard<'a> {
    store: MutexGuard<'a, Store>,
    lock: &'a StoreLock,
}

impl StoreLock {
    pub(super) fn new(store: Store) -> Self {
        StoreLock { store: Mutex::new(store), holder: Mutex::default() }
    }

    /// Locks the store.
    ///
    /// # Panics
    /// Panics with debug assertions if this thread has locked it already.
    #[track_caller]
    pub(super) fn lock(&self) -> StoreGuard<'_> {
        if cfg!(debug_assertions) {
            let holder = *self.holder.lock();
            if let Some((thread, place)) = holder.filter(|(thread, _)| *thread == std::thread::current().id()) {
                panic!("{thread:?} waits for itself: it took the store at {place}");
            }
        }
        let store = self.store.lock();
        self.held_by(cfg!(debug_assertions).then(|| (std::thread::current().id(), Location::caller())));
        StoreGuard { store, lock: self }
    }

    fn held_by(&self, holder: Option<(ThreadId, &'static Location<'static>)>) {
        if cfg!(debug_assertions) {
            *self.holder.lock() = holder;
        }
    }
}

impl Deref for StoreGuard<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for StoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl Drop for StoreGuard<'_> {
    fn drop(&mut self) {
        // The store itself is unlocked after this.
        self.lock.held_by(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Limits;
    use shared::catalog::Catalog;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    #[test]
    fn a_thread_that_would_wait_for_itself_panics() {
        let lock = StoreLock::new(Store::new(Arc::new(Catalog::new(Vec::new())), Limits { retention: 1, bytes: 1 }));
        let first = lock.lock();
        let second = catch_unwind(AssertUnwindSafe(|| drop(lock.lock()))).expect_err("it has it already");
        let said = second.downcast_ref::<String>().expect("a sentence");
        assert!(said.contains("waits for itself") && said.contains("lock.rs"), "{said}");
        drop(first);
        drop(lock.lock());
        std::thread::scope(|scope| {
            let held = lock.lock();
            let other = scope.spawn(|| drop(lock.lock()));
            drop(held);
            other.join().expect("another thread waits");
        });
    }
}
