//! Apple silicon: cores by kind, GPU, power and temperatures, without root.
//!
//! macmon reads the sensors; [`sampler`] passes its samples to [`report`], which converts them to metrics. If the
//! sensors cannot be read, [`powermetrics`] replaces them, as root. [`accelerator`] reads the GPU's use of memory.

#[cfg(any(test, all(target_os = "macos", target_arch = "aarch64")))]
mod accelerator;
#[cfg(any(test, all(target_os = "macos", target_arch = "aarch64")))]
mod powermetrics;
#[cfg(any(test, all(target_os = "macos", target_arch = "aarch64")))]
mod report;
#[cfg(all(target_os = "macos", target_arch = "aarch64"))]
mod sampler;

#[cfg(all(target_os = "macos", target_arch = "aarch64"))]
pub(crate) use sampler::open;

/// Other machines have nothing to open.
#[cfg(not(all(target_os = "macos", target_arch = "aarch64")))]
pub(crate) fn open(_: &crate::Options, _: &crate::Roots) -> Result<Vec<crate::Part>, crate::OpenError> {
    let reason = "only on macOS with Apple silicon";
    Err(crate::OpenError::absent([], reason, "nothing to do: this machine has other processors"))
}

#[cfg(all(test, not(all(target_os = "macos", target_arch = "aarch64"))))]
#[test]
fn other_machines_have_none_and_say_so() {
    let error = open(&crate::Options::default(), &crate::Roots::default()).err().expect("nothing opens");
    assert_eq!((error.kind, error.tried.len()), (crate::OpenErrorKind::Absent, 0));
    assert!(error.reason.contains("only on macOS") && !error.remedy.is_empty());
}
