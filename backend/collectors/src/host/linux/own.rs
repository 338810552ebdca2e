//! Resource use of this program.

use crate::host::facts;
use crate::read::procfs::{HotFile, fields, number};
use crate::{CollectError, OpenError};
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

const STATM: &str = "/proc/self/statm";

/// Reads this program's files in /proc.
pub(crate) struct LinuxOwn {
    statm: HotFile,
    page: f64,
}

impl LinuxOwn {
    pub fn open() -> Result<Self, OpenError> {
        let statm = HotFile::open(STATM).map_err(|error| OpenError::from_io(Path::new(STATM), &error))?;
        Ok(LinuxOwn { statm, page: facts::page_size() as f64 })
    }

    pub fn tried(&self) -> Vec<String> {
        vec![STATM.into(), "getrusage".into()]
    }

    /// User and system time since the start.
    pub fn cpu_time(&mut self) -> Result<Duration, CollectError> {
        let mut usage = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: `usage` has the size that the call expects.
        if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
            return Err(CollectError::failed(format!("getrusage: {}", std::io::Error::last_os_error())));
        }
        // SAFETY: the call succeeded, so `usage` is filled.
        let usage = unsafe { usage.assume_init() };
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
        Ok(time(usage.ru_utime) + time(usage.ru_stime))
    }

    /// Resident memory, bytes.
    pub fn resident(&mut self) -> Result<f64, CollectError> {
        let text = self.statm.read().map_err(|error| CollectError::partial(format!("{STATM}: {error}")))?;
        let pages = fields(text).nth(1).and_then(number);
        pages.map(|n| n as f64 * self.page).ok_or_else(|| CollectError::partial(format!("{STATM}: no number")))
    }
}
