//! The two threads of a log: one writes the queue and removes old files, the other syncs written data.

use super::{Current, IDLE_INTERVAL, Job, Shared, WriterState, name};
use crate::files::Append;
use crate::log::{self, Entry};
use parking_lot::MutexGuard;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// The writing thread.
pub(super) fn write(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if let Some(job) = state.queue.pop_front() {
            state.writing_since = Some(Instant::now());
            let epoch = state.epoch;
            let current = state.current.as_ref().map(|c| (c.file.clone(), c.len));
            drop(state);
            let (bytes, done) = match job {
                Job::Write(bytes) => (bytes.len(), append(current, &bytes).map(|()| None)),
                Job::Begin(number, opening) => (0, begin(shared, number, opening).map(Some)),
            };
            state = shared.lock();
            state.writing_since = None;
            state.queued -= bytes;
            state.done_jobs += 1;
            match done {
                Ok(begun) => written(shared, &mut state, bytes as u64, begun, epoch),
                Err(e) => state.fail(e.to_string()),
            }
            state.behind &= !state.queue.is_empty();
            // The woken thread needs the lock.
            drop(state);
            shared.done.notify_all();
            state = shared.lock();
        } else if state.remove_through > 0 {
            state = remove(shared, state);
        } else if state.closing {
            break;
        } else {
            shared.work.wait(&mut state);
        }
    }
    let last = state.current.as_ref().filter(|_| state.failing.is_none()).map(|c| (c.file.clone(), c.len));
    drop(state);
    let mut end = Vec::new();
    log::put(&mut end, &Entry::End);
    let ended = last.map(|current| append(Some(current), &end));
    state = shared.lock();
    match ended {
        Some(Ok(())) => shared.unsynced(&mut state),
        Some(Err(e)) => state.fail(e.to_string()),
        None => {}
    }
    state.writer_left = true;
    shared.written.notify_all();
    shared.done.notify_all();
}

fn append(current: Option<(Arc<dyn Append>, u64)>, bytes: &[u8]) -> io::Result<()> {
    let (file, len) = current.ok_or_else(|| io::Error::other("no log file is open"))?;
    // Readers take a torn record for damage; a failure to cut it off changes nothing else.
    file.append(bytes).inspect_err(|_| drop(file.truncate(len)))
}

fn begin(shared: &Shared, number: u64, opening: Vec<u8>) -> io::Result<Current> {
    let file = shared.files.create(&name(number))?;
    let mut bytes = Vec::with_capacity(log::HEADER_BYTES + opening.len());
    log::put_header(&mut bytes);
    bytes.extend(opening);
    // Its data is in memory and partly in the file before: half of it only takes space.
    file.append(&bytes).inspect_err(|_| drop(shared.files.remove(&name(number))))?;
    Ok(Current { file, number, len: bytes.len() as u64 })
}

fn written(shared: &Shared, state: &mut WriterState, bytes: u64, begun: Option<Current>, epoch: u64) {
    shared.unsynced(state);
    if let Some(begun) = begun {
        // A sync that failed meanwhile concerned the file before. This file replaces that one only if it was started
        // later.
        if state.epoch == epoch {
            state.failing = None;
        }
        state.folder_unsynced = true;
        state.sizes.insert(begun.number, begun.len);
        if let Some(before) = state.current.replace(begun) {
            state.complete.push(before.file);
        }
    } else if let Some(current) = &mut state.current {
        current.len += bytes;
        let (number, len) = (current.number, current.len);
        state.sizes.insert(number, len);
    }
}

fn remove<'a>(shared: &'a Shared, mut state: MutexGuard<'a, WriterState>) -> MutexGuard<'a, WriterState> {
    let through = std::mem::take(&mut state.remove_through);
    let present = state.current.as_ref().map_or(u64::MAX, |c| c.number);
    let old: Vec<u64> = state.sizes.range(..=through.min(present - 1)).map(|(&n, _)| n).collect();
    state.writing_since = Some(Instant::now());
    drop(state);
    // A file that cannot be removed stays counted and is tried again with the next cut.
    let gone: Vec<u64> = old.into_iter().filter(|&n| removed(shared.files.remove(&name(n)))).collect();
    state = shared.lock();
    state.writing_since = None;
    state.sizes.retain(|n, _| !gone.contains(n));
    state
}

fn removed(result: io::Result<()>) -> bool {
    result.is_ok() || result.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}

/// The syncing thread.
pub(super) fn sync(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        let due = state.unsynced.map(|since| (since + shared.every).saturating_duration_since(Instant::now()));
        match due {
            Some(wait) if wait.is_zero() || state.writer_left => state = sync_once(shared, state),
            None if state.writer_left => break,
            due => {
                let _ = shared.written.wait_for(&mut state, due.unwrap_or(IDLE_INTERVAL));
            }
        }
    }
    // The writing thread has ended before.
    state.lock = None;
    state.syncer_left = true;
    shared.done.notify_all();
}

fn sync_once<'a>(shared: &'a Shared, mut state: MutexGuard<'a, WriterState>) -> MutexGuard<'a, WriterState> {
    let mut files = std::mem::take(&mut state.complete);
    files.extend(state.current.as_ref().map(|c| c.file.clone()));
    let folder = std::mem::take(&mut state.folder_unsynced);
    state.covering = state.unsynced.take();
    state.syncing_since = Some(Instant::now());
    drop(state);
    let mut result = files.iter().try_for_each(|file| file.sync());
    if folder {
        result = result.and_then(|()| shared.files.sync_folder());
    }
    state = shared.lock();
    (state.syncing_since, state.covering) = (None, None);
    if let Err(e) = result {
        // The system may have dropped the pages: only writing them again, to another file, makes them durable.
        state.fail(format!("sync: {e}"));
        shared.done.notify_all();
    }
    state
}
