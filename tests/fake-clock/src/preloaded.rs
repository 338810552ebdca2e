//! What stands in the place of the C library's function.

use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

/// Where the offset stands; null before the first call.
static OFFSET: AtomicPtr<AtomicI64> = AtomicPtr::new(std::ptr::null_mut());
/// The offset of a program that nobody gave a clock.
static NONE: AtomicI64 = AtomicI64::new(0);

/// Nanoseconds of a second, and of a millisecond.
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

fn offset() -> i64 {
    let known = OFFSET.load(Ordering::Acquire);
    let at = if known.is_null() { find() } else { known };
    // SAFETY: it is our own static, or eight aligned bytes of a mapping that stays.
    unsafe { (*at).load(Ordering::Relaxed) }
}

fn find() -> *mut AtomicI64 {
    let none: *mut AtomicI64 = (&raw const NONE).cast_mut();
    // SAFETY: names are C strings, the result of each call is looked at, and the mapping is at least as long as what is read.
    // The environment of a program under test is not changed while this runs.
    let found = unsafe {
        let name = libc::getenv(c"FAKE_CLOCK".as_ptr());
        let file = if name.is_null() { -1 } else { libc::open(name, libc::O_RDONLY | libc::O_CLOEXEC) };
        match file {
            ..0 => none,
            file => {
                let size = size_of::<AtomicI64>();
                let mapped = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file, 0);
                libc::close(file);
                if mapped == libc::MAP_FAILED { none } else { mapped.cast() }
            }
        }
    };
    OFFSET.store(found, Ordering::Release);
    found
}

/// The C library's function, with another wall clock.
///
/// # Safety
/// `time` is a place for a time, as for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller's pointer goes on as it came.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as libc::c_int;
    if result == 0 && clock == libc::CLOCK_REALTIME {
        // SAFETY: the kernel has just written there.
        let time = unsafe { &mut *time };
        let all = i128::from(time.tv_sec) * i128::from(SECOND)
            + i128::from(time.tv_nsec)
            + i128::from(offset()) * i128::from(MILLISECOND);
        time.tv_sec = all.div_euclid(i128::from(SECOND)) as libc::time_t;
        time.tv_nsec = all.rem_euclid(i128::from(SECOND)) as libc::c_long;
    }
    result
}
