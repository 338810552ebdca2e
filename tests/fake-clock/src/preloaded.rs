//! Replacements for functions of the C library: the one that reads clocks, and those in which a thread waits for a
//! time.
//!
//! A wait ends when its time has come by the program's clock. So it consists of short waits, with a check of the clock
//! after each. Waits without a timeout, and programs without a fake clock, are unchanged.

use libc::{c_int, c_long, timespec};
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

/// Offsets that a test sets, in ms: the wall clock's lead, and the time that passed for all clocks.
#[repr(C)]
struct Moved {
    ahead: AtomicI64,
    passed: AtomicI64,
}

/// Address of the mapped offsets; null before the first call.
static MOVED: AtomicPtr<Moved> = AtomicPtr::new(std::ptr::null_mut());
/// Offsets of a program without a fake clock.
static NONE: Moved = Moved { ahead: AtomicI64::new(0), passed: AtomicI64::new(0) };

/// The C library's `syscall`; null before the first call.
static SYSCALL: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Nanoseconds per second, and per millisecond.
const SECOND: i128 = 1_000_000_000;
const MILLISECOND: i128 = 1_000_000;

/// Time between two checks of the clock in a wait, nanoseconds.
const CHECK_INTERVAL_NS: i128 = 10 * MILLISECOND;

fn moved() -> &'static Moved {
    let known = MOVED.load(Ordering::Acquire);
    let at = if known.is_null() { find() } else { known };
    // SAFETY: it is our own static, or aligned bytes of a mapping that stays.
    unsafe { &*at }
}

fn find() -> *mut Moved {
    let none: *mut Moved = (&raw const NONE).cast_mut();
    // SAFETY: names are C strings, the result of each call is checked, and the mapping is at least as long as the read.
    // The environment of a program under test does not change meanwhile.
    let found = unsafe {
        let name = libc::getenv(c"FAKE_CLOCK".as_ptr());
        let file = if name.is_null() { -1 } else { libc::open(name, libc::O_RDONLY | libc::O_CLOEXEC) };
        match file {
            ..0 => none,
            file => {
                let size = size_of::<Moved>();
                let mapped = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file, 0);
                libc::close(file);
                if mapped == libc::MAP_FAILED { none } else { mapped.cast() }
            }
        }
    };
    MOVED.store(found, Ordering::Release);
    found
}

/// Whether a test gave the program a clock.
fn is_ours() -> bool {
    !std::ptr::eq(moved(), &raw const NONE)
}

/// A system call by the C library's own function. Returns -1 on failure, with `errno` set.
///
/// # Safety
/// The requirements of the system call.
unsafe fn kernel(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let mut at = SYSCALL.load(Ordering::Acquire);
    if at.is_null() {
        // SAFETY: the name is a C string.
        at = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) };
        SYSCALL.store(at, Ordering::Release);
    }
    // SAFETY: the C library has this function, with this signature.
    let call: unsafe extern "C" fn(c_long, ...) -> c_long = unsafe { std::mem::transmute(at) };
    // SAFETY: the caller meets the requirements of the call. Surplus arguments are not read.
    unsafe { call(number, a, b, c, d, e, f) }
}

fn nanoseconds(time: &timespec) -> i128 {
    i128::from(time.tv_sec) * SECOND + i128::from(time.tv_nsec)
}

fn timespec_of(nanoseconds: i128) -> timespec {
    timespec {
        tv_sec: nanoseconds.div_euclid(SECOND) as libc::time_t,
        tv_nsec: nanoseconds.rem_euclid(SECOND) as c_long,
    }
}

/// The C library's `clock_gettime`, with moved clocks.
///
/// # Safety
/// `time` must point to a `timespec`, as for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller's pointer is passed on unchanged.
    let result = unsafe { kernel(libc::SYS_clock_gettime, [clock.into(), time as c_long, 0, 0, 0, 0]) } as c_int;
    let ms = match clock {
        _ if result != 0 => return result,
        libc::CLOCK_REALTIME => moved().ahead.load(Ordering::Relaxed) + moved().passed.load(Ordering::Relaxed),
        libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME => moved().passed.load(Ordering::Relaxed),
        _ => 0,
    };
    // SAFETY: the kernel has just written there.
    let time = unsafe { &mut *time };
    *time = timespec_of(nanoseconds(time) + i128::from(ms) * MILLISECOND);
    result
}

/// The program's monotonic clock, nanoseconds.
fn steady() -> i128 {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid `timespec`.
    unsafe { clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    nanoseconds(&time)
}

/// Waits until `end` of the program's monotonic clock, in short waits. `wait` takes a duration in nanoseconds of the
/// machine. It returns a value when the wait is over for another reason.
fn wait_until<T>(end: i128, wait: impl Fn(i128) -> Option<T>) -> Option<T> {
    loop {
        let left = end - steady();
        if let Some(over) = wait(left.clamp(0, CHECK_INTERVAL_NS)) {
            return Some(over);
        }
        if left <= 0 {
            return None;
        }
    }
}

fn errno() -> c_int {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() }
}

/// The C library's function, with timeouts by the program's clock.
///
/// # Safety
/// The requirements of the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(epoll: c_int, events: *mut libc::epoll_event, most: c_int, ms: c_int) -> c_int {
    let wait = |ms: c_int| {
        // No signal mask is set. The last argument is the size of the absent set.
        let arguments = [epoll.into(), events as c_long, most.into(), ms.into(), 0, 8];
        // SAFETY: the caller's arguments are passed on unchanged.
        unsafe { kernel(libc::SYS_epoll_pwait, arguments) as c_int }
    };
    if ms <= 0 || !is_ours() {
        return wait(ms);
    }
    // A timer must not fire early: a fraction of a millisecond is rounded up.
    let short = |left: i128| Some(wait((left + MILLISECOND - 1).div_euclid(MILLISECOND) as c_int)).filter(|n| *n != 0);
    wait_until(steady() + i128::from(ms) * MILLISECOND, short).unwrap_or(0)
}

/// The C library's function. The timeout of a futex wait, which Rust's own primitives use, is by the program's clock.
///
/// # Safety
/// The requirements of the system call. A call with fewer arguments has arbitrary values in the rest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let kind = b as c_int & !libc::FUTEX_PRIVATE_FLAG;
    let waits = number == libc::SYS_futex && (kind == libc::FUTEX_WAIT || kind == libc::FUTEX_WAIT_BITSET);
    if !waits || d == 0 || !is_ours() {
        // SAFETY: the caller's arguments are passed on unchanged.
        return unsafe { kernel(number, [a, b, c, d, e, f]) };
    }
    // SAFETY: the fourth argument of such a wait is a `timespec` or null.
    let time = nanoseconds(unsafe { &*(d as *const timespec) });
    // `FUTEX_WAIT` takes a duration, the other kind a deadline.
    let end = if kind == libc::FUTEX_WAIT { steady() + time } else { time };
    let wait = c_long::from(b as c_int & libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_WAIT);
    let short = |left: i128| {
        let left = timespec_of(left);
        // SAFETY: the caller's address is passed on unchanged, and the time is our own.
        let result = unsafe { kernel(libc::SYS_futex, [a, wait, c, &raw const left as c_long, 0, 0]) };
        Some(result).filter(|result| *result == 0 || errno() != libc::ETIMEDOUT)
    };
    wait_until(end, short).unwrap_or_else(|| {
        // SAFETY: the location is this thread's own.
        unsafe { *libc::__errno_location() = libc::ETIMEDOUT };
        -1
    })
}

/// The C library's function, with times by the program's clock. Returns an error number.
///
/// # Safety
/// The requirements of the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let call = |flags: c_int, time: *const timespec, left: *mut timespec| {
        let arguments = [clock.into(), flags.into(), time as c_long, left as c_long, 0, 0];
        // SAFETY: both times are the caller's, or our own.
        if unsafe { kernel(libc::SYS_clock_nanosleep, arguments) } == 0 { 0 } else { errno() }
    };
    if clock != libc::CLOCK_MONOTONIC || !is_ours() {
        return call(flags, time, left);
    }
    // SAFETY: the caller gives a time.
    let given = nanoseconds(unsafe { &*time });
    let end = if flags & libc::TIMER_ABSTIME == 0 { steady() + given } else { given };
    let short = |rest: i128| {
        let mut cut = timespec { tv_sec: 0, tv_nsec: 0 };
        Some(call(0, &timespec_of(rest), &mut cut)).filter(|error| *error != 0)
    };
    let error = wait_until(end, short).unwrap_or(0);
    if error == libc::EINTR && flags & libc::TIMER_ABSTIME == 0 && !left.is_null() {
        // SAFETY: the caller gives memory for the remaining time.
        unsafe { *left = timespec_of((end - steady()).max(0)) };
    }
    error
}
