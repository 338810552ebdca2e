//! Connection state of each source, and the index of all sources.

use super::source::About;
use super::{LinkFigures, Live};
use shared::connection_state::ConnectionState;
use shared::scope::Scope;
use shared::wire::{IndexEntry, Source, SourceId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A source is late after this many of its intervals without a tick,
const LATE_AFTER: i64 = 3;
/// but not before this many milliseconds: ticks are announced shortly after they were taken.
const MIN_LATE_MS: i64 = 3_000;
/// Interval of the check for late sources, milliseconds.
const LOOK_EVERY_MS: u64 = 1_000;
/// Number of spans of late samples remembered per source, for readers.
const MAX_REFILLS: usize = 16;

/// The part of the index that a reader knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownIndex {
    facts: u64,
    changes: u64,
}

impl Live {
    /// Sets the connection state of a source.
    pub fn set_connection_state(&self, source: SourceId, connection_state: ConnectionState) {
        let now = self.clock.wall();
        self.change(source, |about| {
            if about.connection_state.code() != connection_state.code() {
                about.since = now;
            }
            let changed = about.connection_state != connection_state;
            about.connection_state = connection_state;
            changed
        });
        // A source that has just connected has one interval for its first tick.
        self.source(source).heard.store(self.steady_ms(), Ordering::Relaxed);
    }

    /// Sets the state of a source that another hub holds, as that hub reports it: its time of change, labels and
    /// connection figures. Absent labels and figures stay. The gaps are those of this hub.
    pub fn set_reported_connection_state(
        &self,
        source: SourceId,
        (connection_state, since): (ConnectionState, i64),
        labels: Option<Vec<(String, String)>>,
        figures: Option<LinkFigures>,
    ) {
        self.change(source, |about| {
            if let Some(figures) = figures {
                about.figures = LinkFigures { holes: std::mem::take(&mut about.figures.holes), ..figures };
            }
            let labels = labels.unwrap_or_else(|| about.labels.clone());
            let changed = about.connection_state != connection_state || about.since != since || about.labels != labels;
            (about.connection_state, about.since, about.labels, about.told) = (connection_state, since, labels, true);
            changed
        });
    }

    /// Sets the labels of a source, for grouping and filtering.
    pub fn set_labels(&self, source: SourceId, mut labels: Vec<(String, String)>) {
        labels.sort();
        self.change(source, |about| {
            let changed = about.labels != labels;
            about.labels = labels;
            changed
        });
    }

    /// Sets the figures of the connection to a source. The API reports them; pages are not woken.
    pub fn set_link_figures(&self, source: SourceId, figures: LinkFigures) {
        self.source(source).about().figures = figures;
    }

    /// Records that samples of this span, milliseconds since the Unix epoch, arrived late and can be read now.
    pub fn refilled(&self, source: SourceId, from: i64, to: i64) {
        let state = self.source(source);
        let mut about = state.about();
        let number = about.refills.back().map_or(1, |(number, ..)| number + 1);
        about.refills.push_back((number, from, to));
        if about.refills.len() > MAX_REFILLS {
            // Joins the two oldest spans, so that no reader misses one.
            let (Some(first), Some(second)) = (about.refills.pop_front(), about.refills.front_mut()) else { return };
            (second.1, second.2) = (second.1.min(first.1), second.2.max(first.2));
        }
        drop(about);
        self.announce_quietly(source);
    }

    /// Spans of late samples after number `known`, and the newest number.
    pub(super) fn refills(&self, source: SourceId, known: u64) -> (Vec<(i64, i64)>, u64) {
        let state = self.source(source);
        let about = state.about();
        let new = about.refills.iter().filter(|(number, ..)| *number > known).map(|(_, from, to)| (*from, *to));
        (new.collect(), about.refills.back().map_or(0, |(number, ..)| *number))
    }

    fn change(&self, source: SourceId, change: impl FnOnce(&mut About) -> bool) {
        let state = self.source(source);
        let mut about = state.about();
        if change(&mut about) {
            // Within the lock: a reader that sees the count also sees the change.
            about.version = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
        }
    }

    /// Whether a new reader gets the entry of a source: not if the source has gone and has no data left.
    pub fn is_shown(&self, source: SourceId) -> bool {
        let is_empty = self.store().is_empty(source);
        let state = self.source(source);
        let about = state.about();
        !(is_empty && about.has_gone() && !about.told)
    }

    /// Checks, at most once a second, which sources became late or are no longer late.
    pub fn find_late(&self) {
        let steady = self.steady_ms();
        let looked = self.looked.load(Ordering::Relaxed);
        let due = steady >= looked.saturating_add(LOOK_EVERY_MS) && self.provenance.recorded.is_none();
        let mine = || self.looked.compare_exchange(looked, steady, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !due || !mine() {
            return;
        }
        let wall = self.clock.wall();
        let sources = self.store().sources();
        // The state of other sources comes from the hub that holds them.
        for source in sources.iter().filter(|source| self.holds(source.id)) {
            let silent = steady.saturating_sub(self.source(source.id).heard.load(Ordering::Relaxed)) as i64;
            let late = silent > (source.interval * LATE_AFTER).max(MIN_LATE_MS);
            self.change(source.id, |about| {
                match about.connection_state {
                    ConnectionState::Live if late => {
                        (about.connection_state, about.since) = (ConnectionState::Late, wall - silent)
                    }
                    ConnectionState::Late if !late => {
                        (about.connection_state, about.since) = (ConnectionState::Live, wall)
                    }
                    _ => return false,
                }
                true
            });
        }
    }

    /// The entries of the index that are new or changed for a reader, in order of number; `known` is updated. A new
    /// reader gets no entry of a source that has gone and has no samples left.
    pub fn index(&self, scope: &Scope, known: &mut KnownIndex) -> Vec<IndexEntry> {
        let changes = self.changes.load(Ordering::Acquire);
        let (facts, sources) = {
            let store = self.store();
            if *known == (KnownIndex { facts: store.facts(), changes }) {
                return Vec::new();
            }
            let sources = store.sources().into_iter().filter(|source| scope.sees(&source.key));
            let with_facts =
                |source: Arc<Source>| Some((store.source(source.id)?.1, store.is_empty(source.id), source));
            (store.facts(), sources.filter_map(with_facts).collect::<Vec<_>>())
        };
        let before = std::mem::replace(known, KnownIndex { facts, changes });
        let begins = before == KnownIndex::default();
        let entry = |(facts, is_empty, source): (u64, bool, Arc<Source>)| {
            let state = self.source(source.id);
            let about = state.about();
            let is_new = if begins {
                !(is_empty && about.has_gone() && !about.told)
            } else {
                facts > before.facts || about.version > before.changes
            };
            let entry = || match &self.provenance.recorded {
                Some(recorded) => source.entry(ConnectionState::Ended, recorded.to, about.labels.clone()),
                None => source.entry(about.connection_state.clone(), about.since, about.labels.clone()),
            };
            is_new.then(entry)
        };
        sources.into_iter().filter_map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;
    use crate::store::{Limits, Store};
    use shared::catalog::Catalog;
    use std::time::Duration;

    fn two() -> (Arc<Live>, Arc<Manual>) {
        let clock = Arc::new(Manual::at(1_000_000, Duration::from_secs(100)));
        let mut store = Store::new(Arc::new(Catalog::default()), Limits { retention: 60_000, bytes: usize::MAX });
        store.add_source("a".into(), 1_000, Vec::new());
        store.add_source("b".into(), 5_000, Vec::new());
        (Live::new(store, clock.clone(), 1, 60_000), clock)
    }

    fn stands(entries: &[IndexEntry]) -> Vec<(u16, &str, i64)> {
        entries.iter().map(|entry| (entry.id, entry.state.as_str(), entry.since)).collect()
    }

    #[test]
    fn a_reader_is_told_of_each_line_once_and_again_when_it_is_another() {
        let (live, clock) = two();
        let mut known = KnownIndex::default();
        assert_eq!(stands(&live.index(&Scope::All, &mut known)), [(0, "live", 1_000_000), (1, "live", 1_000_000)]);
        assert_eq!(live.index(&Scope::All, &mut known), []);
        clock.pass(Duration::from_secs(1));
        live.set_connection_state(1, ConnectionState::Filling { missing: 60_000, rate: 0.0 });
        assert_eq!(stands(&live.index(&Scope::All, &mut known)), [(1, "filling", 1_001_000)]);
        clock.pass(Duration::from_secs(1));
        live.set_connection_state(1, ConnectionState::Filling { missing: 30_000, rate: 30.0 });
        assert_eq!(
            stands(&live.index(&Scope::All, &mut known)),
            [(1, "filling", 1_001_000)],
            "since the same time, less is missing"
        );
        live.set_connection_state(1, ConnectionState::Filling { missing: 30_000, rate: 30.0 });
        assert_eq!(live.index(&Scope::All, &mut known), []);
        let label = |word: &str| (word.to_string(), "x".to_string());
        live.set_labels(0, vec![label("rack"), label("pod")]);
        let told = live.index(&Scope::All, &mut known);
        assert_eq!(told[0].labels, [label("pod"), label("rack")]);
        live.store().add_facts(0, vec![("name".into(), "node-7".into())]);
        let told = live.index(&Scope::All, &mut known);
        assert_eq!((told.len(), told[0].key.as_str(), told[0].name.as_str()), (1, "a", "node-7"));
    }

    #[test]
    fn a_source_that_has_gone_leaves_the_index_once_no_sample_is_left() {
        let (live, _) = two();
        let all = || stands(&live.index(&Scope::All, &mut KnownIndex::default())).len();
        live.append(1, 1_000_000, false, &[]).expect("it is not closed");
        let mut known = KnownIndex::default();
        live.index(&Scope::All, &mut known);
        for connection_state in [
            ConnectionState::Unreachable,
            ConnectionState::Stopped("the machine goes down".into()),
            ConnectionState::Ended,
        ] {
            live.set_connection_state(0, connection_state.clone());
            live.set_connection_state(1, connection_state);
            assert_eq!(all(), 1, "of the other something is left");
            assert_eq!(live.index(&Scope::All, &mut known).len(), 2, "who knows it is told how it stands");
        }
        live.set_connection_state(0, ConnectionState::Refused("its clone has a link".into()));
        assert_eq!(all(), 2, "what somebody has to do something about stays");
    }

    #[test]
    fn a_source_without_a_tick_for_three_intervals_is_late_until_one_comes() {
        let (live, clock) = two();
        let mut known = KnownIndex::default();
        let mut after = |seconds: u64| {
            clock.pass(Duration::from_secs(seconds));
            live.find_late();
            live.index(&Scope::All, &mut known)
        };
        after(0);
        assert_eq!(after(3), []);
        assert_eq!(stands(&after(1)), [(0, "late", 1_000_000)], "the other has a longer interval");
        live.announce(&[0]);
        assert_eq!(stands(&after(1)), [(0, "live", 1_005_000)]);
        live.set_connection_state(0, ConnectionState::Unreachable);
        assert_eq!(
            stands(&after(60)),
            [(0, "unreachable", 1_005_000), (1, "late", 1_000_000)],
            "who is not linked is not late"
        );
    }

    #[test]
    fn a_source_beyond_the_scope_is_in_no_index() {
        let (live, _) = two();
        let scope = Scope::only([], ["b".to_string()]);
        assert_eq!(stands(&live.index(&scope, &mut KnownIndex::default())), [(1, "live", 1_000_000)]);
        live.set_connection_state(0, ConnectionState::Unreachable);
        assert_eq!(live.index(&Scope::nothing(), &mut KnownIndex::default()), []);
    }

    #[test]
    fn spans_that_came_in_late_are_told_once_and_none_is_lost() {
        let (live, _) = two();
        live.refilled(0, 10, 20);
        let (spans, known) = live.refills(0, 0);
        assert_eq!(spans, [(10, 20)]);
        assert_eq!(live.refills(0, known), (Vec::new(), known));
        (0..100).for_each(|n| live.refilled(0, 100 + n, 110 + n));
        let (spans, _) = live.refills(0, known);
        assert!(spans.len() <= MAX_REFILLS);
        assert_eq!(spans.iter().fold((i64::MAX, 0), |all, span| (all.0.min(span.0), all.1.max(span.1))).1, 209);
        assert!(spans.iter().any(|span| span.0 <= 100));
    }
}
