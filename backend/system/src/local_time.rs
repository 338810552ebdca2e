//! The time zone of the system.

/// Local time minus UTC at an instant (milliseconds since the Unix epoch), milliseconds; 0 if the system does not know
/// it.
pub fn offset(t: i64) -> i64 {
    #[cfg(unix)]
    {
        // SAFETY: all-zero bytes are a valid tm, a structure of integers and a pointer that may be null.
        let mut tm: libc::tm = unsafe { std::mem::zeroed() };
        let seconds = t.div_euclid(1_000) as libc::time_t;
        // SAFETY: both pointers are to live values of their types; the call fills the second.
        let known = unsafe { !libc::localtime_r(&raw const seconds, &raw mut tm).is_null() };
        if known {
            return tm.tm_gmtoff as i64 * 1_000;
        }
    }
    let _ = t;
    0
}
