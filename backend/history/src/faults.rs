//! A folder with injected faults, for tests: the n-th operation that changes something fails.

use crate::files::{Append, Content, Files, Lock, LockError};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// Kind of a fault. A failed append has written half of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full from then on: nothing is created or appended until [`Faulty::heal`].
    Full,
    /// A single operation fails.
    Io,
    /// The process dies: nothing is done any more. Written data stays.
    Kill,
    /// The machine loses power: likewise, and unsynced data is lost, including names in the folder.
    PowerCut,
    /// The operation does not return until [`Faulty::heal`].
    Hang,
}

/// Files with a failing operation. Clones share their state.
#[derive(Clone)]
pub struct Faulty {
    files: Arc<dyn Files>,
    plan: Arc<Plan>,
}

#[derive(Default)]
struct Plan {
    state: Mutex<FaultState>,
    healed: Condvar,
}

#[derive(Default)]
struct FaultState {
    operations: Vec<String>,
    fault: Option<(usize, Fault)>,
    /// Operations with this prefix do not return.
    hangs: Option<String>,
    full: bool,
    dead: bool,
    open: Vec<Arc<Tracked>>,
    /// Files with unreadable contents.
    unread: HashSet<String>,
    /// Names changed since the folder was synced; each with its former name, if it had one.
    names: Vec<(String, Option<String>)>,
}

struct Tracked {
    file: Arc<dyn Append>,
    name: String,
    /// Bytes written, bytes synced.
    len: Mutex<(u64, u64)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl Faulty {
    /// These files, without a fault until [`fail`](Self::fail).
    pub fn new(files: Arc<dyn Files>) -> Self {
        Faulty { files, plan: Arc::default() }
    }

    /// Makes the operation after `n` more fail: 0 is the next.
    pub fn fail(&self, n: usize, fault: Fault) {
        let mut state = lock(&self.plan.state);
        state.fault = Some((state.operations.len() + n, fault));
    }

    /// Makes operations with this prefix, as `append q-`, hang until [`heal`](Self::heal).
    pub fn hang(&self, what: &str) {
        lock(&self.plan.state).hangs = Some(what.into());
    }

    /// Makes a file of this name unreadable (`EIO`) until [`heal`](Self::heal), also if it is open.
    pub fn unread(&self, name: &str) {
        lock(&self.plan.state).unread.insert(name.into());
    }

    /// Ends all faults. A dead process stays dead.
    pub fn heal(&self) {
        let mut state = lock(&self.plan.state);
        (state.full, state.fault, state.hangs) = (false, None, None);
        state.unread.clear();
        self.plan.healed.notify_all();
    }

    /// All operations so far, as `append log-1`, including failed ones.
    pub fn operations(&self) -> Vec<String> {
        lock(&self.plan.state).operations.clone()
    }

    /// Whether the process has died.
    pub fn is_dead(&self) -> bool {
        lock(&self.plan.state).dead
    }

    fn alive(&self) -> io::Result<()> {
        if self.is_dead() { Err(dead()) } else { Ok(()) }
    }

    /// Loses unsynced data.
    fn cut_power(&self, state: &mut FaultState) {
        for (name, before) in state.names.drain(..).rev() {
            // A removed file cannot be lost any more.
            let _ = match before {
                Some(before) => self.files.rename(&name, &before),
                None => self.files.remove(&name),
            };
        }
        for tracked in &state.open {
            let _ = tracked.file.truncate(lock(&tracked.len).1);
        }
    }
}

impl Plan {
    /// Counts an operation; returns its fault, if it has one.
    fn step(&self, what: String, grows: bool, cut: impl FnOnce(&mut FaultState)) -> Option<Fault> {
        let mut state = lock(&self.state);
        if state.dead {
            return Some(Fault::Kill);
        }
        let now = state.operations.len();
        state.operations.push(what.clone());
        let hangs = |state: &mut FaultState| state.hangs.as_ref().is_some_and(|begin| what.starts_with(begin));
        self.healed.wait_while(&mut state, hangs);
        let fault = state.fault.filter(|(at, _)| *at == now).map(|(_, fault)| fault);
        match fault {
            Some(Fault::Full) => state.full = true,
            Some(Fault::Hang) => {
                let hangs = |state: &mut FaultState| state.fault.is_some_and(|(_, fault)| fault == Fault::Hang);
                self.healed.wait_while(&mut state, hangs);
                return state.dead.then_some(Fault::Kill);
            }
            Some(Fault::Kill | Fault::PowerCut) => {
                state.dead = true;
                if fault == Some(Fault::PowerCut) {
                    cut(&mut state);
                }
            }
            Some(Fault::Io) => return fault,
            None => {}
        }
        if state.dead {
            return fault;
        }
        (state.full && grows).then_some(Fault::Full)
    }
}

fn error(fault: Fault) -> io::Error {
    match fault {
        // The errors of the system, because people see their text.
        Fault::Full => io::Error::from_raw_os_error(libc::ENOSPC),
        Fault::Io | Fault::Hang => io::Error::from_raw_os_error(libc::EIO),
        Fault::Kill | Fault::PowerCut => dead(),
    }
}

impl Faulty {
    fn step(&self, what: String, grows: bool) -> io::Result<()> {
        let fault = self.plan.step(what, grows, |state| self.cut_power(state));
        fault.map_or(Ok(()), |fault| Err(error(fault)))
    }
}

impl Files for Faulty {
    fn list(&self) -> io::Result<Vec<String>> {
        self.alive()?;
        self.files.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Content>> {
        self.alive()?;
        // A temporary file counts under its final name.
        let name_later = name.strip_suffix(".tmp").unwrap_or(name).into();
        Ok(Arc::new(Reading { content: self.files.open(name)?, name: name_later, files: self.clone() }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Append>> {
        self.step(format!("create {name}"), true)?;
        let file = self.files.create(name)?;
        let files = self.clone();
        let tracked = Arc::new(Tracked { file, name: name.into(), len: Mutex::default() });
        let mut state = lock(&self.plan.state);
        state.open.push(tracked.clone());
        state.names.push((name.into(), None));
        Ok(Arc::new(Appender { tracked, files }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.step(format!("rename {from} {to}"), false)?;
        self.files.rename(from, to)?;
        lock(&self.plan.state).names.push((to.into(), Some(from.into())));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.step(format!("remove {name}"), false)?;
        self.files.remove(name)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.step("sync folder".into(), false)?;
        self.files.sync_folder()?;
        lock(&self.plan.state).names.clear();
        Ok(())
    }

    fn free(&self) -> io::Result<u64> {
        self.alive()?;
        if lock(&self.plan.state).full { Ok(0) } else { self.files.free() }
    }

    fn lock(&self) -> Result<Arc<dyn Lock>, LockError> {
        self.files.lock()
    }
}

struct Reading {
    content: Arc<dyn Content>,
    name: String,
    files: Faulty,
}

impl Content for Reading {
    fn size(&self) -> io::Result<u64> {
        self.content.size()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let fails = lock(&self.files.plan.state).unread.contains(&self.name);
        if fails { Err(error(Fault::Io)) } else { self.content.read_at(offset, len) }
    }
}

struct Appender {
    tracked: Arc<Tracked>,
    files: Faulty,
}

impl Append for Appender {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let Tracked { file, name, len } = &*self.tracked;
        // A process that was dead before writes no half of its bytes.
        let was_dead = self.files.is_dead();
        let fault = self.files.plan.step(format!("append {name}"), true, |state| self.files.cut_power(state));
        let bytes = match fault {
            None => bytes,
            Some(_) if was_dead => return Err(dead()),
            // After lost data nothing may be appended.
            Some(Fault::PowerCut) => return Err(dead()),
            Some(_) => &bytes[..bytes.len() / 2],
        };
        file.append(bytes)?;
        lock(len).0 += bytes.len() as u64;
        fault.map_or(Ok(()), |fault| Err(error(fault)))
    }

    fn sync(&self) -> io::Result<()> {
        let written = lock(&self.tracked.len).0;
        self.files.step(format!("sync {}", self.tracked.name), false)?;
        self.tracked.file.sync()?;
        let mut len = lock(&self.tracked.len);
        len.1 = len.1.max(written);
        Ok(())
    }

    fn truncate(&self, to: u64) -> io::Result<()> {
        self.files.step(format!("truncate {}", self.tracked.name), false)?;
        self.tracked.file.truncate(to)?;
        let mut len = lock(&self.tracked.len);
        *len = (to, len.1.min(to));
        Ok(())
    }
}
