//! State of each collector as text, for the page's "not available here" and for doctor.

use collectors::{CollectError, Entry, OpenError, OpenErrorKind, Part};
use shared::wire::{Check, CheckState};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use stream::throttle::Throttle;

/// Stands for a part's number in errors of opening a collector.
const OPENING: usize = usize::MAX;

/// One collector's check and the troubles of its parts.
struct CollectorCheck {
    check: Check,
    parts: usize,
    troubles: BTreeMap<usize, (CheckState, String)>,
    /// Throttle of the warnings for each state of each part: a part that alternates between states must not fill the
    /// log.
    warned: Vec<(usize, CheckState, Throttle)>,
}

impl CollectorCheck {
    /// Whether a state needs a warning now; then the number of occurrences since the last one.
    fn warns(&mut self, part: usize, state: CheckState) -> Option<u64> {
        let same = |(p, s, _): &(usize, CheckState, Throttle)| *p == part && *s == state;
        let at = self.warned.iter().position(same).unwrap_or_else(|| {
            self.warned.push((part, state, Throttle::new()));
            self.warned.len() - 1
        });
        self.warned[at].2.came(Instant::now())
    }
}

/// Checks of all collectors.
pub(super) struct Checks {
    all: Vec<CollectorCheck>,
    changed: bool,
}

impl Checks {
    pub(super) fn new(entries: impl Iterator<Item = &'static Entry>) -> Self {
        let all = entries
            .map(|entry| CollectorCheck {
                check: Check {
                    id: entry.name.into(),
                    state: CheckState::Starting,
                    tried: Vec::new(),
                    found: entry.about.into(),
                    reason: String::new(),
                    remedy: String::new(),
                },
                parts: 0,
                troubles: BTreeMap::new(),
                warned: Vec::new(),
            })
            .collect();
        Checks { all, changed: true }
    }

    pub(super) fn not_opened(&mut self, entry: usize, error: OpenError) {
        let collector = &mut self.all[entry];
        let state = match error.kind {
            OpenErrorKind::Absent => CheckState::Absent,
            OpenErrorKind::Denied => CheckState::Denied,
            OpenErrorKind::Failed => CheckState::Failed,
        };
        collector.check.state = state;
        if error.kind != OpenErrorKind::Absent
            && let Some(before) = collector.warns(OPENING, state)
        {
            let collector = &collector.check.id;
            tracing::warn!(collector, reason = error.reason, remedy = error.remedy, before, "cannot open");
        }
        let check = &mut collector.check;
        (check.tried, check.reason, check.remedy) = (error.tried, error.reason, error.remedy);
        self.changed = true;
    }

    /// It has not opened within its deadline. A later answer still counts.
    pub(super) fn hangs_opening(&mut self, entry: usize, limit: Duration) {
        let before = self.all[entry].warns(OPENING, CheckState::Hung);
        let check = &mut self.all[entry].check;
        check.state = CheckState::Hung;
        check.reason = format!("opening has taken more than {} s: the driver or tool hangs", limit.as_secs());
        check.remedy = "check the vendor's own tool; this collector continues when it responds".into();
        if let Some(before) = before {
            tracing::warn!(collector = check.id, reason = check.reason, before, "Hung");
        }
        self.changed = true;
    }

    pub(super) fn opened(&mut self, entry: usize, parts: &[Part]) {
        self.all[entry].parts = parts.len();
        let check = &mut self.all[entry].check;
        check.state = CheckState::Starting;
        check.tried = parts.iter().flat_map(|p| p.tried.iter().cloned()).collect();
        check.reason.clear();
        check.remedy.clear();
        self.changed = true;
    }

    pub(super) fn answered(&mut self, entry: usize, part: usize, result: &Result<(), CollectError>) {
        let trouble = match result {
            Ok(()) => None,
            Err(error) if error.partial => Some((CheckState::Partial, error.reason.clone())),
            Err(error) => Some((CheckState::Failed, error.reason.clone())),
        };
        self.set(entry, part, trouble);
    }

    pub(super) fn hung(&mut self, entry: usize, part: usize, limit: Duration) {
        let reason =
            format!("no response for more than {} s; its values are absent until it responds", limit.as_secs());
        self.set(entry, part, Some((CheckState::Hung, reason)));
    }

    pub(super) fn no_thread(&mut self, entry: usize, part: usize) {
        let reason = "the system does not allow another thread; end some processes".into();
        self.set(entry, part, Some((CheckState::Failed, reason)));
    }

    fn set(&mut self, entry: usize, part: usize, trouble: Option<(CheckState, String)>) {
        let collector = &mut self.all[entry];
        let before = collector.troubles.get(&part);
        if before == trouble.as_ref() && collector.check.state != CheckState::Starting {
            return;
        }
        if let Some((state, reason)) = &trouble
            && before.is_none_or(|(s, _)| s != state)
            && let Some(before) = collector.warns(part, *state)
        {
            tracing::warn!(collector = collector.check.id, reason, before, "{state:?}");
        }
        match trouble {
            Some(trouble) => {
                collector.troubles.insert(part, trouble);
            }
            None => {
                collector.troubles.remove(&part);
            }
        }
        // If some parts work the whole is partial; otherwise it has the state of its first trouble.
        let all_troubled = collector.troubles.len() >= collector.parts;
        collector.check.state = match collector.troubles.values().next() {
            None => CheckState::Ok,
            Some((state, _)) if all_troubled => *state,
            Some(_) => CheckState::Partial,
        };
        collector.check.reason = collector.troubles.values().map(|(_, r)| r.as_str()).collect::<Vec<_>>().join("; ");
        self.changed = true;
    }

    /// All checks, when something changed since the last call.
    pub(super) fn changed(&mut self) -> Option<Vec<Check>> {
        std::mem::take(&mut self.changed).then(|| self.all.iter().map(|s| s.check.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_and_fails_in_turn_is_warned_of_once_each() {
        let mut checks = Checks::new(collectors::COLLECTORS.iter());
        let collector = &mut checks.all[0];
        let states = [CheckState::Hung, CheckState::Failed];
        let said: Vec<_> = states.iter().cycle().take(126).filter_map(|state| collector.warns(0, *state)).collect();
        assert_eq!(said, [0, 0]);
        assert_eq!(collector.warns(1, CheckState::Failed), Some(0), "another part");
        let passed_over: Vec<u64> = collector.warned.iter().map(|(.., throttle)| throttle.passed_over()).collect();
        assert_eq!(passed_over, [62, 62, 0]);
    }
}
