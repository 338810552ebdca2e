//! The host collectors of macOS and Windows, thin readers over sysinfo. On Linux they are built only for tests, as an
//! independent reading to compare our own readers with.

pub(crate) mod cpu;
pub(crate) mod disk;
#[cfg(any(windows, all(test, target_os = "linux")))]
pub(crate) mod disk_usage;
pub(crate) mod linux_only;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod own;
pub(crate) mod process;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use crate::{Collector, OpenError, OpenErrorKind, Part};

const MIB: f64 = (1 << 20) as f64;

/// A sysinfo handle, or the reason why there is none.
fn handle<T>(made: Result<T, sysinfo::Error>) -> Result<T, OpenError> {
    made.map_err(|error| OpenError {
        kind: OpenErrorKind::Failed,
        tried: vec!["sysinfo".into()],
        reason: format!("the system does not respond: {error:?}"),
        remedy: String::new(),
    })
}

fn part(collector: impl Collector + 'static) -> Result<Vec<Part>, OpenError> {
    Ok(Part::only(["sysinfo".to_string()], collector))
}
