//! State machine of one subject: ok, pending, firing, clearing; and flap detection. It advances by the time of samples.

use crate::What;
use serde::{Deserialize, Serialize};

/// A subject that fires more often than this within [`FLAP_MS`] flaps.
const FLAPS: usize = 4;

/// A condition is reported as pending once it has held for a quarter of its time, at most this long. Short crossings of
/// the limit are not reported. Milliseconds.
const PENDING_MS: u32 = 10_000;

/// Time window of flap detection; a subject must also be stable for as long before it is reported again. Milliseconds.
pub const FLAP_MS: i64 = 30 * 60_000;

/// Phase of a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The condition does not hold.
    #[default]
    Ok,
    /// It holds, but not for long enough.
    Pending,
    /// It fires.
    Firing,
    /// It fires. The condition is gone, but not for long enough.
    Clearing,
}

/// State of one subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectState {
    pub phase: Phase,
    /// It was reported as pending.
    pub told: bool,
    /// Time that it has held while pending, or has been gone while clearing; milliseconds.
    pub held: u32,
    /// Start of the condition, and time of firing; milliseconds since the Unix epoch.
    pub began: i64,
    pub fired: i64,
    /// Time of the newest sample; 0 before the first.
    pub seen: i64,
    /// Start of the time without samples; 0 while there are any.
    pub unknown: i64,
    pub value: f64,
    pub worst: f64,
    pub flaps: Option<Box<Flaps>>,
}

/// Recent firings of a subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flaps {
    /// Times of firing, the newest last; at most one more than the flap limit.
    pub fires: Vec<i64>,
    /// It flaps.
    pub on: bool,
    /// Number of firings since its alert began.
    pub count: u64,
    /// Time of the last change.
    pub moved: i64,
    /// Time of the last report of its count.
    pub told: i64,
    /// Begin of the alert that represents all of them.
    pub began: i64,
    pub fired: i64,
}

/// Input of a state at a sample.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub t: i64,
    /// Elapsed time, already bounded, milliseconds.
    pub dt: u32,
    pub holds: bool,
    pub clears: bool,
    pub hold: u32,
    pub clear: u32,
}

impl SubjectState {
    /// Whether it has an open alert that fires.
    pub fn fires(&self) -> bool {
        matches!(self.phase, Phase::Firing | Phase::Clearing) || self.flaps()
    }

    /// The transition of its alert when it is no longer watched; None: it has no alert.
    pub fn gone(&self) -> Option<What> {
        if self.fires() {
            return Some(What::Ended);
        }
        (self.phase == Phase::Pending && self.told).then_some(What::Dropped)
    }

    pub fn flaps(&self) -> bool {
        self.flaps.as_ref().is_some_and(|f| f.on)
    }

    /// Begin and firing of its alert.
    pub fn times(&self) -> (i64, i64) {
        match &self.flaps {
            Some(flaps) if flaps.on => (flaps.began, flaps.fired),
            _ => (self.began, self.fired),
        }
    }

    /// Advances the state. Returns the transition to report.
    pub fn step(&mut self, step: Step) -> Option<What> {
        let raw = self.raw(step);
        if self.flaps.is_none() && raw != Some(What::Fired) {
            return raw;
        }
        self.damp(step.t, raw)
    }

    fn raw(&mut self, s: Step) -> Option<What> {
        match self.phase {
            Phase::Ok if s.holds => {
                (self.began, self.held) = (s.t, 0);
                if s.hold == 0 {
                    return Some(self.fire(s.t));
                }
                (self.phase, self.told) = (Phase::Pending, false);
                self.tell_pending(s.hold)
            }
            Phase::Ok => None,
            Phase::Pending if s.holds => {
                self.held = self.held.saturating_add(s.dt);
                if self.held >= s.hold { Some(self.fire(s.t)) } else { self.tell_pending(s.hold) }
            }
            Phase::Pending => {
                self.phase = Phase::Ok;
                std::mem::take(&mut self.told).then_some(What::Dropped)
            }
            Phase::Firing if s.clears => {
                (self.phase, self.held) = (Phase::Clearing, 0);
                (s.clear == 0).then(|| self.end())
            }
            Phase::Clearing if s.clears => {
                self.held = self.held.saturating_add(s.dt);
                (self.held >= s.clear).then(|| self.end())
            }
            Phase::Clearing | Phase::Firing => {
                self.phase = Phase::Firing;
                None
            }
        }
    }

    fn tell_pending(&mut self, hold: u32) -> Option<What> {
        if self.told || self.held < (hold / 4).min(PENDING_MS) {
            return None;
        }
        self.told = true;
        Some(What::Pending)
    }

    fn fire(&mut self, t: i64) -> What {
        (self.phase, self.fired, self.held) = (Phase::Firing, t, 0);
        What::Fired
    }

    fn end(&mut self) -> What {
        (self.phase, self.held) = (Phase::Ok, 0);
        What::Ended
    }

    /// The transition to report for a subject that fires often.
    fn damp(&mut self, t: i64, raw: Option<What>) -> Option<What> {
        let (began, fired) = (self.began, self.fired);
        let flaps = self.flaps.get_or_insert_default();
        if raw == Some(What::Fired) {
            // Drop firings in the future, left by a clock that was set back.
            flaps.fires.retain(|f| t - f < FLAP_MS && *f <= t);
            flaps.fires.push(t);
            flaps.count += 1;
            if !flaps.on && flaps.fires.len() > FLAPS {
                let count = flaps.fires.len() as u64;
                **flaps =
                    Flaps { fires: std::mem::take(&mut flaps.fires), on: true, count, moved: t, told: t, began, fired };
                return Some(What::Fired);
            }
        }
        if !flaps.on {
            let old = raw.is_none() && self.phase == Phase::Ok && flaps.fires.last().is_none_or(|f| t - f > FLAP_MS);
            if old {
                self.flaps = None;
            }
            return raw;
        }
        if raw.is_some() || t < flaps.moved {
            flaps.moved = t;
        }
        if flaps.fires.len() > FLAPS + 1 {
            flaps.fires.remove(0);
        }
        if t - flaps.moved >= FLAP_MS {
            // Flapping has ended. If the subject still fires, the alert stays the same.
            let (began, fired) = (flaps.began, flaps.fired);
            if matches!(self.phase, Phase::Firing | Phase::Clearing) {
                (self.began, self.fired, self.flaps) = (began, fired, None);
                return Some(What::Changed);
            }
            return Some(What::Ended);
        }
        if t - flaps.told >= FLAP_MS {
            flaps.told = t;
            return Some(What::Changed);
        }
        None
    }

    /// Drops the flap state once its end is reported.
    pub fn forget_flaps(&mut self) {
        if self.flaps() {
            self.flaps = None;
        }
    }
}
