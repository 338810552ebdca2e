//! The kernel's clock since its start.

use std::time::Duration;

/// Time since the kernel started, in which /proc counts the starts of processes. It goes on while the machine is
/// suspended. None if the kernel does not tell it.
///
/// Source: `CLOCK_BOOTTIME`. In a container of LXC, /proc/uptime has the age of the container.
pub fn since_boot() -> Option<Duration> {
    let mut time = std::mem::MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` has the size that the call expects.
    if unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, time.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so `time` is filled.
    let time = unsafe { time.assume_init() };
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}
