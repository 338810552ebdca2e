//! A cache of the indexes of segments. A chart of a fleet reads one series each from a thousand blocks, and the next
//! chart reads from the same blocks. Half of these reads are of their indexes.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum bytes of a cache: 12 hours of 100 machines of 20 series are half of it.
const MAX_CACHED_BYTES: usize = 1 << 20;

/// Approximate overhead of an entry, bytes.
const ENTRY_BYTES: usize = 120;

/// Number of a file, and an offset in it.
pub(crate) type FilePlace = (u64, u64);

/// The cache shared by the segments of one folder. The [`Folder`](crate::Folder) owns it, and passes it to the
/// functions that open segments.
#[derive(Debug)]
pub struct Indexes {
    kept: Mutex<CachedBytes>,
    /// Number of files so far.
    files: AtomicU64,
}

impl Default for Indexes {
    fn default() -> Self {
        Indexes { kept: Mutex::new(CachedBytes::with_room(MAX_CACHED_BYTES)), files: AtomicU64::new(0) }
    }
}

impl Indexes {
    /// A number for an opened file, which is unique in this cache, also among files of the same name.
    pub(crate) fn number(&self) -> u64 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }

    /// The bytes at a place: the cached ones, or the result of `read`, which is then cached.
    ///
    /// # Errors
    /// As `read`; nothing is cached then.
    pub(crate) fn get(
        &self,
        place: FilePlace,
        len: usize,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<Vec<u8>> {
        // No code that holds the lock can leave it half changed.
        let lock = || self.kept.lock();
        if let Some(bytes) = lock().get(place).filter(|bytes| bytes.len() == len) {
            return Ok(bytes.to_vec());
        }
        // Not under the lock: the disk may hang.
        let bytes = read()?;
        lock().put(place, &bytes);
        Ok(bytes)
    }
}

/// Bytes by place. Those not requested since their last check are evicted first.
#[derive(Debug)]
struct CachedBytes {
    room: usize,
    used: usize,
    by_place: HashMap<FilePlace, (Box<[u8]>, bool)>,
    /// All places, in the order of the next checks.
    order: VecDeque<FilePlace>,
}

impl CachedBytes {
    fn with_room(room: usize) -> Self {
        CachedBytes { room, used: 0, by_place: HashMap::new(), order: VecDeque::new() }
    }

    fn get(&mut self, place: FilePlace) -> Option<&[u8]> {
        let (bytes, asked) = self.by_place.get_mut(&place)?;
        *asked = true;
        Some(bytes)
    }

    fn put(&mut self, place: FilePlace, bytes: &[u8]) {
        let size = bytes.len() + ENTRY_BYTES;
        // A request for all of a large history must not evict everything else for each of its blocks.
        if size > self.room / 16 || self.by_place.contains_key(&place) {
            return;
        }
        while self.used + size > self.room {
            let Some(oldest) = self.order.pop_front() else { return };
            match self.by_place.get_mut(&oldest) {
                Some((_, asked @ true)) => {
                    *asked = false;
                    self.order.push_back(oldest);
                }
                _ => {
                    let gone = self.by_place.remove(&oldest).map_or(0, |(bytes, _)| bytes.len() + ENTRY_BYTES);
                    self.used -= gone;
                }
            }
        }
        self.used += size;
        self.by_place.insert(place, (bytes.into(), false));
        self.order.push_back(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_within_its_room_and_keeps_what_is_asked_for() {
        let mut kept = CachedBytes::with_room(40 * (100 + ENTRY_BYTES));
        kept.put((0, 0), &[7; 100]);
        for n in 1..1_000 {
            kept.put((n, n), &[n as u8; 100]);
            assert_eq!(kept.by_place[&(n, n)].0[..], [n as u8; 100]);
            assert_eq!(kept.get((0, 0)), Some(&[7; 100][..]), "after {n}");
            assert!(kept.used <= kept.room && kept.by_place.len() == kept.order.len());
        }
        assert_eq!((kept.by_place.len(), kept.get((500, 500))), (40, None));
        kept.put((5_000, 0), &[1; 6_000]);
        assert_eq!(kept.get((5_000, 0)), None, "one alone takes no more than a part of it");
    }

    #[test]
    fn what_could_not_be_read_is_read_again() {
        let (indexes, place) = (Indexes::default(), (0, 1));
        assert!(indexes.get(place, 2, || Err(io::ErrorKind::Other.into())).is_err());
        assert_eq!(indexes.get(place, 2, || Ok(vec![1, 2])).ok(), Some(vec![1, 2]));
        assert_eq!(indexes.get(place, 2, || Err(io::ErrorKind::Other.into())).ok(), Some(vec![1, 2]));
    }
}
