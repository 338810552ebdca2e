//! State of the history on disk, for checks and `/metrics`.
//!
//! The archive records results here, and another thread reports them: the archive itself may be blocked by the disk.

use crate::live::Live;
use crate::store::Figures;
use crate::throttle::Throttle;
use history::calls::Calls;
use history::{Health, Report};
use parking_lot::{Mutex, MutexGuard};
use shared::wire::{Check, CheckState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A single disk call that takes longer than this counts as hung.
pub(super) const HUNG_AFTER: Duration = Duration::from_secs(5);

/// Delay before a failed log that was restarted is restarted again: the first, and the longest.
const FIRST_RETRY_INTERVAL: Duration = Duration::from_secs(10);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(300);

/// An operation that the disk refused.
#[derive(Debug)]
pub(super) struct Trouble {
    what: &'static str,
    error: io::Error,
}

impl Trouble {
    pub fn new(what: &'static str, error: io::Error) -> Self {
        Trouble { what, error }
    }
}

/// State of the history on disk.
pub struct HistoryHealth {
    path: PathBuf,
    calls: Arc<Calls>,
    seen: Mutex<LastState>,
}

/// The state seen last, and the report of the start.
struct LastState {
    figures: Figures,
    /// Reason why segments are not written, merged or removed.
    trouble: Option<Trouble>,
    /// The oldest call that had not returned at the last check, and when it was first seen.
    call: Option<(u64, Duration)>,
    /// Time of the last restart of a failing log, and the delay until the next.
    retried: Option<(Duration, Duration)>,
    /// State that was reported last.
    told: CheckState,
    /// Warnings that history is not written. Throttled, since a disk may fail and work in turn.
    warned: Throttle,
    /// The last failure was logged, and its end not yet.
    open: bool,
}

impl HistoryHealth {
    /// State at the start; `calls` are those of the folder at this path.
    pub fn new(path: PathBuf, calls: Arc<Calls>, report: &Report) -> Self {
        let figures = Figures {
            skipped_bytes: report.skipped_bytes,
            missing_ticks: report.missing_ticks,
            cut_logs: report.torn.len() as u64,
            unclean: u64::from(report.unclean),
            damaged: report.damages.len() as u64,
            ..Figures::default()
        };
        let seen = LastState {
            figures,
            trouble: None,
            call: None,
            retried: None,
            told: CheckState::Ok,
            warned: Throttle::new(),
            open: false,
        };
        HistoryHealth { path, calls, seen: Mutex::new(seen) }
    }

    fn seen(&self) -> MutexGuard<'_, LastState> {
        self.seen.lock()
    }

    /// Records the result of a step: segments and their bytes, and the reason of a failure.
    pub(super) fn note(&self, segments: usize, bytes: u64, trouble: Option<Trouble>) {
        let mut seen = self.seen();
        (seen.figures.segments, seen.figures.segment_bytes) = (segments as u64, bytes);
        seen.trouble = trouble;
    }

    /// Counts damaged places.
    pub(super) fn damaged(&self, places: usize) {
        self.seen().figures.damaged += places as u64;
    }

    /// Whether segments are not written, merged or removed.
    pub(super) fn troubled(&self) -> bool {
        self.seen().trouble.is_some()
    }

    /// Whether the log is to be restarted now, which is then recorded. A restart writes all data that is in memory
    /// alone while nothing is appended. The delay therefore grows while the disk stays broken.
    pub(super) fn retry(&self, now: Duration) -> bool {
        let mut seen = self.seen();
        let wait = match seen.retried {
            None => FIRST_RETRY_INTERVAL,
            Some((last, wait)) if now.saturating_sub(last) >= wait => (wait * 2).min(MAX_RETRY_INTERVAL),
            Some(_) => return false,
        };
        seen.retried = Some((now, wait));
        true
    }

    /// Checks the log and the disk, and updates the store. Waits for neither.
    pub(super) fn check_disk(&self, live: &Live) {
        let Some(health) = live.writing().log.as_ref().map(|log| log.health()) else { return };
        let mut seen = self.seen();
        let check = seen.check(&self.path, &health, self.calls.oldest(), live.clock.steady());
        let mut store = live.store();
        store.set_check(&check);
        store.set_figures(seen.figures);
    }
}

impl LastState {
    /// Whether the same call has been running for too long.
    fn hangs(&mut self, oldest: Option<u64>, now: Duration) -> bool {
        let since = match (oldest, self.call) {
            (Some(oldest), Some((call, since))) if call == oldest => since,
            _ => now,
        };
        self.call = oldest.map(|oldest| (oldest, since));
        oldest.is_some() && now.saturating_sub(since) >= HUNG_AFTER
    }

    fn check(&mut self, path: &Path, health: &Health, oldest: Option<u64>, now: Duration) -> Check {
        let hung = self.hangs(oldest, now);
        self.figures = Figures {
            log_bytes: health.bytes,
            unlogged: health.dropped,
            unsynced_ms: health.unsynced_for.map_or(0, |age| age.as_millis() as u64),
            failing: u64::from(hung || health.failing.is_some() || self.trouble.is_some()),
            ..self.figures
        };
        let folder = path.display();
        let (state, reason, remedy) = match (&health.failing, &self.trouble) {
            _ if hung => (
                CheckState::Hung,
                format!(
                    "history is not being written: the disk of {folder} does not respond; the last 15 minutes and \
                    more stay in memory"
                ),
                "check the disk or the network share; --data-dir chooses another".to_string(),
            ),
            (Some(error), _) => (
                CheckState::Failed,
                format!("history is not being written: {error}; the last 15 minutes and more stay in memory"),
                remedy(error, path),
            ),
            (None, Some(Trouble { what, error })) => (
                CheckState::Failed,
                format!("history is not being sealed: {what}: {error}; ticks are logged, and stay in memory"),
                remedy(&error.to_string(), path),
            ),
            (None, None) => (CheckState::Ok, String::new(), String::new()),
        };
        if state == CheckState::Ok {
            self.retried = None;
        }
        // The log reports it even when nobody has a page open.
        match std::mem::replace(&mut self.told, state) {
            before if before == state => {}
            _ if state == CheckState::Ok => {
                if std::mem::take(&mut self.open) {
                    tracing::info!("history is being written again, in {folder}");
                }
            }
            _ => {
                if let Some(before) = self.warned.came(Instant::now()) {
                    tracing::warn!(before, "{reason}: {remedy}");
                    self.open = true;
                }
            }
        }
        let id = "history".into();
        // No number that changes by itself: every change of a check is sent to every page.
        Check { id, state, tried: vec![folder.to_string()], found: format!("in {folder}"), reason, remedy }
    }
}

/// The check of an archive that panicked.
pub(super) fn gone() -> Check {
    Check {
        id: "history".into(),
        state: CheckState::Failed,
        tried: Vec::new(),
        found: String::new(),
        reason: "history is not being sealed: the writer has failed; see the log of the server".into(),
        remedy: "restart Watchglass; until then ticks are logged, and nothing is lost".into(),
    }
}

fn remedy(error: &str, path: &Path) -> String {
    let folder = path.display();
    let error = error.to_ascii_lowercase();
    match () {
        () if error.contains("space") => {
            format!(
                "free space on the disk of {folder}, or choose another with --data-dir; writing then continues \
                by itself"
            )
        }
        () if error.contains("quota") => {
            format!("your quota is used up: free space on the disk of {folder}, or choose another with --data-dir")
        }
        () if error.contains("read-only") => {
            format!("the disk of {folder} is read-only: remount it, or choose another with --data-dir")
        }
        () => format!(
            "check that {folder} can be written to, or choose another with --data-dir; Watchglass retries by itself"
        ),
    }
}
