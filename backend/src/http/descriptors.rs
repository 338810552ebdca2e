//! Maximum number of viewers: each uses one file descriptor.

/// Maximum number of viewers, if the limit of open files allows as many.
pub(super) const MAX_VIEWERS: usize = 10_000;
/// Open files for all else: listeners, other connections, history, collectors.
const OTHER_FILES: usize = 2_048;

/// Raises the limit of open files as far as [`MAX_VIEWERS`] needs it and the system allows. Returns the number of
/// viewers that fit.
#[cfg(unix)]
pub(super) fn viewers() -> usize {
    // The limit is not raised further than needed: child processes inherit it, and some close every file below it.
    let wanted = (MAX_VIEWERS + OTHER_FILES) as libc::rlim_t;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is that of `limit`.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return fit(OTHER_FILES / 2);
    }
    if limit.rlim_cur < wanted {
        let raised = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), rlim_max: limit.rlim_max };
        // SAFETY: the pointer is that of `raised`.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            limit = raised;
        }
    }
    let fits = fit(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX));
    if fits < MAX_VIEWERS {
        tracing::warn!(
            "at most {fits} viewers at once, not {MAX_VIEWERS}, and on a hub fewer by each machine that is linked: this process may have {} open \
             files; raise the hard limit (ulimit -Hn) to {wanted}",
            limit.rlim_cur
        );
    }
    fits
}

/// As above; this system has no such limit of open files.
#[cfg(not(unix))]
pub(super) fn viewers() -> usize {
    MAX_VIEWERS
}

/// Number of viewers that fit below a limit of open files. They get half of a low limit.
#[cfg(unix)]
fn fit(files: usize) -> usize {
    MAX_VIEWERS.min(files.saturating_sub(OTHER_FILES).max(files / 2))
}

#[cfg(all(test, unix))]
mod tests {
    use super::fit;

    #[test]
    fn viewers_leave_files_for_all_else() {
        assert_eq!([64, 1_000, 4_000].map(fit), [32, 500, 2_000]);
        assert_eq!([12_047, 12_048, 1_000_000].map(fit), [9_999, 10_000, 10_000]);
    }
}
