//! `watchglass doctor`: every collector, what was tried, what came back, why, and what to do.
//!
//! It runs the real sampler for a moment, so that what it says is what the server would see.

use crate::clock::System;
use crate::live::Hub;
use crate::sampler::{self, Plan};
use crate::store::{Limits, Store};
use shared::wire::{Check, CheckState};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Opens every collector, waits until each has answered or its deadline has passed, and returns how they stand.
pub fn examine(plan: Plan) -> Vec<Check> {
    let most = collectors::deadline(plan.interval) + Duration::from_secs(1);
    let limits = Limits { retention: 60_000, bytes: 1 << 20 };
    let mut store = Store::new(Arc::new(collectors::catalog()), limits);
    let source = store.add_source(String::new(), plan.interval.as_millis() as i64, Vec::new());
    let hub = Hub::new(store, Arc::new(System), 0, limits.retention);
    let stop = Arc::new(AtomicBool::new(false));
    let (theirs, asked) = (hub.clone(), stop.clone());
    // Never joined: a collector that hangs must not hang its doctor.
    std::thread::spawn(move || sampler::run(theirs, source, plan, asked));
    let end = Instant::now() + most;
    let checks = loop {
        let (checks, _) = hub.store().checks(source);
        let waiting = checks.is_empty() || checks.iter().any(|c| c.state == CheckState::Starting);
        if !waiting || Instant::now() >= end {
            break checks.to_vec();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    stop.store(true, Ordering::Relaxed);
    checks
}

/// Whether everything that is here works; what is absent is no fault.
pub fn healthy(checks: &[Check]) -> bool {
    checks.iter().all(|c| matches!(c.state, CheckState::Ok | CheckState::Absent))
}

/// The report for a person.
pub fn report(checks: &[Check]) -> String {
    let mut text = String::new();
    let width = checks.iter().map(|c| c.id.len()).max().unwrap_or(0);
    for check in checks {
        let state = match check.state {
            CheckState::Ok => "● ok",
            CheckState::Absent => "◌ not here",
            CheckState::Starting => "◌ no answer yet",
            CheckState::Partial => "▲ in part",
            CheckState::Denied => "■ not allowed",
            CheckState::Failed => "■ failed",
            CheckState::Hung => "■ hung",
        };
        let _ = writeln!(text, "{:width$}  {state:<13}  {}", check.id, check.found);
        let indent = " ".repeat(width + 2);
        for (word, what) in [("why", &check.reason), ("do", &check.remedy), ("tried", &check.tried.join(", "))] {
            if !what.is_empty() && (word != "tried" || check.state != CheckState::Ok) {
                let _ = writeln!(text, "{indent}{word}: {what}");
            }
        }
    }
    text
}
