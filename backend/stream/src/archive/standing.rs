//! How the history on disk stands, for people and for `/metrics`.
//!
//! The archive notes what it met. Who tells it is another thread: the archive itself may be waiting for the disk.

use crate::live::Live;
use crate::store::Figures;
use crate::throttle::Throttle;
use history::calls::Calls;
use history::{Health, Report};
use shared::wire::{Check, CheckState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A disk that has not returned from one call for this long hangs.
pub(super) const HUNG_AFTER: Duration = Duration::from_secs(5);

/// How long a log that failed is left alone after it was begun anew: first, and at the most.
const FIRST_RETRY_INTERVAL: Duration = Duration::from_secs(10);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(300);

/// What the disk refused.
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

/// How it stands.
pub struct Standing {
    path: PathBuf,
    calls: Arc<Calls>,
    seen: Mutex<Seen>,
}

/// What was seen last, and what was found at the start.
struct Seen {
    figures: Figures,
    /// Why segments are not written, merged or removed.
    trouble: Option<Trouble>,
    /// The oldest call that had not returned at the last look, and since when it is known.
    call: Option<(u64, Duration)>,
    /// When the log was begun anew last, while it fails, and how long it is left alone since.
    retried: Option<(Duration, Duration)>,
    /// As it was told last.
    told: CheckState,
    /// Warnings that history is not written: a disk may fail and work in turn.
    warned: Throttle,
    /// The last of them was told, and not yet that it is over.
    open: bool,
}

impl Standing {
    /// At the start; `calls` are those of the folder at this path.
    pub fn new(path: PathBuf, calls: Arc<Calls>, report: &Report) -> Self {
        let figures = Figures {
            skipped_bytes: report.skipped_bytes,
            missing_ticks: report.missing_ticks,
            cut_logs: report.torn.len() as u64,
            unclean: u64::from(report.unclean),
            damaged: report.damages.len() as u64,
            ..Figures::default()
        };
        let seen = Seen {
            figures,
            trouble: None,
            call: None,
            retried: None,
            told: CheckState::Ok,
            warned: Throttle::new(),
            open: false,
        };
        Standing { path, calls, seen: Mutex::new(seen) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the archive met: segments and their bytes, and why it does not go on.
    pub(super) fn note(&self, segments: usize, bytes: u64, trouble: Option<Trouble>) {
        let mut seen = self.seen();
        (seen.figures.segments, seen.figures.segment_bytes) = (segments as u64, bytes);
        seen.trouble = trouble;
    }

    /// Places were damaged.
    pub(super) fn damaged(&self, places: usize) {
        self.seen().figures.damaged += places as u64;
    }

    /// Whether segments are not written, merged or removed.
    pub(super) fn troubled(&self) -> bool {
        self.seen().trouble.is_some()
    }

    /// Whether it is time to begin the log anew, which is then noted: all that is in memory alone goes into it, while
    /// nothing is appended, so a disk that stays broken is tried less and less.
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

    /// Looks at the log and the disk, and tells the store. It waits for neither.
    pub(super) fn look(&self, live: &Live) {
        let Some(health) = live.writing().log.as_ref().map(|log| log.health()) else { return };
        let mut seen = self.seen();
        let check = seen.check(&self.path, &health, self.calls.oldest(), live.clock.steady());
        let mut store = live.store();
        store.set_check(&check);
        store.set_figures(seen.figures);
    }
}

impl Seen {
    /// Whether one and the same call has been under way for too long.
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
        // Where nobody has a page open, the log tells.
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
        // No figure that changes by itself: a check is sent to every page when it changes.
        Check { id, state, tried: vec![folder.to_string()], found: format!("in {folder}"), reason, remedy }
    }
}

/// The check of an archive that has ended by a fault of its own.
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
