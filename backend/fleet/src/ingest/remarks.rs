//! Remarks of the hub about a machine, in addition to its agent's report about its collectors.

use super::limits::Cause;
use shared::agent::Offer;
use shared::unit::duration;
use shared::wire::{Check, CheckState};

/// Shorter losses are not reported, milliseconds.
const LEAST_MS: i64 = 60_000;

/// Remark: timestamps of a machine are corrected by this shift.
pub(super) fn clock(shift_ms: i64) -> Option<Check> {
    let way = if shift_ms < 0 { "ahead" } else { "behind" };
    (shift_ms != 0).then(|| Check {
        id: "clock".into(),
        state: CheckState::Partial,
        tried: Vec::new(),
        found: format!("clock {} {way}, corrected", duration(shift_ms.saturating_abs())),
        reason: "the clock of this machine is wrong by more than 2 s; its samples have the hub's time".into(),
        remedy: "synchronize its clock with NTP, for example chrony or systemd-timesyncd".into(),
    })
}

/// Remark: data of a machine is dropped, with causes and approximate counts.
pub(super) fn limited(causes: &[(String, u64)]) -> Option<Check> {
    // Damage on its disk has a remark of its own.
    let causes = causes.iter().filter(|(word, _)| word != Cause::Damaged.as_str());
    let words: Vec<String> = causes.map(|(word, n)| format!("{word} {}", about(*n))).collect();
    (!words.is_empty()).then(|| Check {
        id: "limits".into(),
        state: CheckState::Partial,
        tried: Vec::new(),
        found: format!("dropped or delayed: {}", words.join(", ")),
        reason: "they exceed the limits of the hub for one machine, or are invalid".into(),
        remedy: "see refused in GET /api/v1/sources for exact counts; raise the limit with [agents] series of the hub"
            .into(),
    })
}

/// Remark: this number of columns or blocks of its history cannot be read on the machine itself, and is missing here.
pub(super) fn damaged(name: &str, places: u64) -> Option<Check> {
    (places > 0).then(|| Check {
        id: "damaged".into(),
        state: CheckState::Partial,
        tried: Vec::new(),
        found: format!("missing: {places} damaged parts of the history of {name}"),
        reason: "its disk returned other bytes than were written; each part is up to an hour of one series".into(),
        remedy: "check that disk; the log of its agent names the files".into(),
    })
}

/// Begin of a link: the newest data of the hub, and the data of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    /// Sequence and timestamp of the newest tick that the hub had; 0: none.
    pub had: (u64, i64),
    /// Start of the agent by its clock, milliseconds since the Unix epoch.
    pub started: i64,
    /// The oldest range that it offered.
    pub oldest: Option<Offer>,
}

/// Remark: a machine was away for longer than it keeps samples, so those between the newest in the hub and its own
/// oldest are lost. Before the start of an agent it may have measured nothing, so that time is not counted.
pub(super) fn lost(name: &str, meeting: &Meeting, shift_ms: i64) -> Option<Check> {
    let (oldest, (seq, newest)) = (meeting.oldest?, meeting.had);
    let gap = oldest.from.saturating_add(shift_ms).saturating_sub(newest);
    let ran = oldest.from.saturating_sub(meeting.started) >= LEAST_MS;
    (seq > 0 && oldest.first > seq + 1 && gap >= LEAST_MS && ran).then(|| Check {
        id: "link".into(),
        state: CheckState::Partial,
        tried: Vec::new(),
        found: format!("lost {}: longer than {name} keeps", duration(gap)),
        reason: "it was disconnected for longer than its retention".into(),
        remedy: "raise its retention with --spool and --spool-bytes".into(),
    })
}

/// An approximate count: from ten on, only its power of ten. An exact, rising count would change the remark each
/// second.
fn about(n: u64) -> String {
    match n.checked_ilog10() {
        None | Some(0) => n.to_string(),
        Some(tens) => format!("{} or more", 10u64.pow(tens)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_said_in_words() {
        let said = |shift| clock(shift).map(|check| check.found);
        assert_eq!(said(0), None);
        assert_eq!(said(-3_600_000).as_deref(), Some("clock 1 h ahead, corrected"));
        assert_eq!(said(65_000).as_deref(), Some("clock 1 min 5 s behind, corrected"));
        assert_eq!(said(-3_000).as_deref(), Some("clock 3 s ahead, corrected"));
    }

    #[test]
    fn what_is_left_out_is_said_with_about_how_often() {
        let causes = [("label", 2), ("pace", 9_999), ("text", 10)].map(|(cause, n)| (cause.to_owned(), n));
        let said = limited(&causes).map(|check| check.found);
        assert_eq!(said.as_deref(), Some("dropped or delayed: label 2, pace 1000 or more, text 10 or more"));
        assert!(limited(&[]).is_none());
        assert!(limited(&[("damaged".to_owned(), 3)]).is_none(), "it has a sentence of its own");
        let said = damaged("node-7", 3).map(|check| check.found);
        assert_eq!(said.as_deref(), Some("missing: 3 damaged parts of the history of node-7"));
        assert!(damaged("node-7", 0).is_none());
    }

    #[test]
    fn what_was_lost_is_said_and_what_was_never_measured_is_not() {
        let hour = 3_600_000;
        let offer = |first, from| Some(Offer { first, last: u64::MAX, from, to: i64::MAX });
        let all = Meeting { had: (100, 0), started: -hour, oldest: offer(9_000, 2 * hour + 660_000) };
        let said = |meeting: Meeting, shift| lost("node-7", &meeting, shift).map(|check| check.found);
        assert_eq!(said(all, 0).as_deref(), Some("lost 2 h 11 min: longer than node-7 keeps"));
        assert_eq!(said(all, -hour).as_deref(), Some("lost 1 h 11 min: longer than node-7 keeps"));
        assert_eq!(said(Meeting { oldest: offer(101, 2 * hour), ..all }, 0), None, "it goes on where the hub ends");
        assert_eq!(said(Meeting { oldest: offer(50, 2 * hour), ..all }, 0), None);
        assert_eq!(said(Meeting { had: (0, 0), ..all }, 0), None, "a machine that is new");
        assert_eq!(said(Meeting { started: 2 * hour + 650_000, ..all }, 0), None, "it did not run");
        assert_eq!(said(Meeting { oldest: None, ..all }, 0), None);
    }
}
