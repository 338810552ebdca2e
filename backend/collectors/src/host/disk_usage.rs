//! Use of the file systems at the watched paths.
//!
//! Each path is a part of its own: a network mount without its server never answers, and only blocks its own part.

use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::disk;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const GIB: f64 = (1u64 << 30) as f64;

/// Opens one part per path. No path is accessed here, because that may hang.
pub(crate) fn open(options: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    let mut parts: Vec<Part> = Vec::new();
    for path in &options.disk_paths {
        let name = path.to_string_lossy().into_owned();
        if parts.iter().all(|part| part.name != name) {
            let collector = Box::new(Usage { path: path.clone(), name: name.clone() });
            parts.push(Part { tried: vec![name.clone()], name, collector });
        }
    }
    if parts.is_empty() {
        return Err(OpenError::absent([], "no path is configured", "name one with --disk-path PATH"));
    }
    Ok(parts)
}

struct Usage {
    path: PathBuf,
    name: String,
}

impl Collector for Usage {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let blocks = statvfs(&self.path).map_err(|error| CollectError::failed(format!("{}: {error}", self.name)))?;
        let space = blocks.space().ok_or_else(|| {
            CollectError::failed(format!(
                "{}: this file system has no size because it stores no files itself",
                self.name
            ))
        })?;
        out.put_rounded(&disk::USAGE_PERCENT, &*self.name, space.percent);
        out.put(&disk::USAGE_GB, &*self.name, space.used / GIB);
        Ok(())
    }
}

/// Result of statvfs, in blocks.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    size: u64,
    all: u64,
    free: u64,
    free_to_users: u64,
}

#[derive(Debug, PartialEq)]
struct Space {
    /// Bytes in use.
    used: f64,
    /// Percent of the bytes that unprivileged users can ever use.
    percent: f64,
}

impl Blocks {
    fn space(self) -> Option<Space> {
        let used = self.all.saturating_sub(self.free) as f64;
        let reach = used + self.free_to_users as f64;
        (reach > 0.0).then(|| Space { used: used * self.size as f64, percent: 100.0 * used / reach })
    }
}

#[allow(clippy::unnecessary_cast, reason = "the fields have other widths on other systems")]
fn statvfs(path: &Path) -> io::Result<Blocks> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<libc::statvfs>::uninit();
    loop {
        // SAFETY: the path ends in a zero byte, and `answer` has the size that the call expects.
        if unsafe { libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) } == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: the call succeeded, so the answer is filled in.
    let answer = unsafe { answer.assume_init() };
    Ok(Blocks {
        size: answer.f_frsize as u64,
        all: answer.f_blocks as u64,
        free: answer.f_bfree as u64,
        free_to_users: answer.f_bavail as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_reserved_for_root_are_in_neither_term() {
        let blocks = Blocks { size: 4096, all: 1000, free: 500, free_to_users: 300 };
        assert_eq!(blocks.space(), Some(Space { used: 500.0 * 4096.0, percent: 62.5 }));
        assert_eq!(Blocks { size: 4096, all: 0, free: 0, free_to_users: 0 }.space(), None);
    }
}
