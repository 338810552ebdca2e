//! How the history on disk stands, for people and for `/metrics`.

use crate::store::Figures;
use history::{Health, Report};
use shared::wire::{Check, CheckState};
use std::io;
use std::path::Path;
use std::time::Duration;

/// A disk that has not answered for this long hangs.
const HUNG: Duration = Duration::from_secs(5);

/// How long a log that failed is left alone after it was begun anew: first, and at the most.
const FIRST: Duration = Duration::from_secs(10);
const LAST: Duration = Duration::from_secs(300);

/// What the disk refused.
pub(super) struct Trouble {
    what: &'static str,
    error: io::Error,
}

impl Trouble {
    pub fn new(what: &'static str, error: io::Error) -> Self {
        Trouble { what, error }
    }
}

/// How it stands, and what was found at the start.
pub struct Standing {
    pub(super) damaged: u64,
    figures: Figures,
    /// When the log was begun anew last, while it fails, and how long it is left alone since.
    retried: Option<(Duration, Duration)>,
    /// As it was told last.
    told: CheckState,
}

impl Standing {
    /// At the start.
    pub fn new(report: &Report) -> Self {
        let figures = Figures {
            skipped_bytes: report.skipped_bytes,
            missing_ticks: report.missing_ticks,
            cut_logs: report.torn.len() as u64,
            unclean: u64::from(report.unclean),
            ..Figures::default()
        };
        Standing { damaged: report.damages.len() as u64, figures, retried: None, told: CheckState::Ok }
    }

    /// Counts as they stood at the last look.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Whether it is time to begin the log anew, which is then noted: all that is in memory alone goes into it, while
    /// nothing is appended, so a disk that stays broken is tried less and less.
    pub(super) fn retry(&mut self, now: Duration) -> bool {
        let wait = match self.retried {
            None => FIRST,
            Some((last, wait)) if now.saturating_sub(last) >= wait => (wait * 2).min(LAST),
            Some(_) => return false,
        };
        self.retried = Some((now, wait));
        true
    }

    /// Takes a look: the log, what segments met, how many there are.
    pub(super) fn check(
        &mut self,
        path: &Path,
        health: &Health,
        trouble: Option<&Trouble>,
        segments: usize,
        bytes: u64,
    ) -> Check {
        let failing = health.failing.is_some();
        self.figures = Figures {
            segments: segments as u64,
            segment_bytes: bytes,
            log_bytes: health.bytes,
            unlogged: health.dropped,
            unsynced_ms: health.unsynced_for.map_or(0, |age| age.as_millis() as u64),
            failing: u64::from(failing || trouble.is_some()),
            damaged: self.damaged,
            ..self.figures
        };
        let hung = health.waiting_for.filter(|age| *age >= HUNG);
        let folder = path.display();
        let (state, reason, remedy) = match (&health.failing, trouble, hung) {
            (_, _, Some(age)) => (
                CheckState::Hung,
                format!(
                    "history is not being written: the disk of {folder} has not answered for {} s; the last 15 minutes and more stay in memory",
                    age.as_secs()
                ),
                "see whether the disk or the network share works; --data-dir chooses another".to_string(),
            ),
            (Some(error), ..) => (
                CheckState::Failed,
                format!("history is not being written: {error}; the last 15 minutes and more stay in memory"),
                remedy(error, path),
            ),
            (None, Some(Trouble { what, error }), None) => (
                CheckState::Failed,
                format!("history is not being sealed: {what}: {error}; ticks are logged, and stay in memory"),
                remedy(&error.to_string(), path),
            ),
            (None, None, None) => (CheckState::Ok, String::new(), String::new()),
        };
        if state == CheckState::Ok {
            self.retried = None;
        }
        // Where nobody has a page open, the log tells.
        match std::mem::replace(&mut self.told, state) {
            before if before == state => {}
            _ if state == CheckState::Ok => tracing::info!("history is being written again, in {folder}"),
            _ => tracing::warn!("{reason}: {remedy}"),
        }
        let id = "history".into();
        // No figure that changes by itself: a check is sent to every page when it changes.
        Check { id, state, tried: vec![folder.to_string()], found: format!("in {folder}"), reason, remedy }
    }
}

/// The check of a keeper that has ended by a fault of its own.
pub(super) fn gone() -> Check {
    Check {
        id: "history".into(),
        state: CheckState::Failed,
        tried: Vec::new(),
        found: String::new(),
        reason: "history is not being sealed: what keeps it has failed, as the log of the server says".into(),
        remedy: "start Watchglass again; ticks are logged until then, and nothing is lost".into(),
    }
}

fn remedy(error: &str, path: &Path) -> String {
    let folder = path.display();
    let error = error.to_ascii_lowercase();
    match () {
        () if error.contains("space") => {
            format!("make room on the disk of {folder}, or choose another with --data-dir; writing goes on by itself")
        }
        () if error.contains("quota") => {
            format!("your quota is used up: make room on the disk of {folder}, or choose another with --data-dir")
        }
        () if error.contains("read-only") => {
            format!("the disk of {folder} can only be read: remount it, or choose another with --data-dir")
        }
        () => format!(
            "see whether {folder} can be written to, or choose another with --data-dir; it is tried again by itself"
        ),
    }
}
