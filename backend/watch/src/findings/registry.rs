//! The findings of all machines, with their visibility.

use super::changed::explain;
use parking_lot::{Mutex, MutexGuard};
use shared::finding::{Dismissed, Finding, RuleState, Severity};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use stream::live::Live;

/// Maximum number of findings; above it those that ended first are evicted.
const MAX_KEPT: usize = 20_000;

/// Maximum number of changes that a follower may lag behind.
const MAX_CHANGES: usize = 10_000;

/// A finding, with the keys of its machines, by their names.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FindingEntry {
    /// In the form for display.
    #[serde(flatten)]
    pub finding: Finding,
    /// Key by name.
    pub machines: BTreeMap<String, String>,
}

/// Findings of other hubs, by hub and id, each with the number of its hub's lists in which it was missing without an
/// end.
type Theirs = HashMap<String, HashMap<String, (FindingEntry, u8)>>;

/// A finding missing in this number of its hub's lists is dropped.
const LACKING: u8 = 3;

/// Maximum number of dismissals for other hubs that they have not received yet.
const MAX_TO_OTHERS: usize = 200;

impl FindingEntry {
    /// Whether all of its machines are visible.
    fn is_seen(&self, sees: impl Fn(&str) -> bool) -> bool {
        machines(&self.finding).all(|name| self.machines.get(name).is_some_and(|key| sees(key)))
    }
}

#[derive(Debug, Default)]
struct Inner {
    by_id: HashMap<String, FindingEntry>,
    theirs: Theirs,
    /// A finding that was open when this program started continues under its old id.
    renamed: HashMap<String, String>,
    rules: Vec<RuleState>,
    /// Findings raised since the start, by kind and severity.
    totals: BTreeMap<(String, Severity), u64>,
    left_out: u64,
    /// Dismissals to be written, by id.
    said: BTreeSet<String>,
    /// Dismissals made here of findings of other hubs, by id, until those hubs report them.
    said_of_theirs: BTreeMap<String, Option<Dismissed>>,
    /// The ids of the last changes, and the number of changes before the first of them.
    changes: VecDeque<String>,
    before: u64,
}

/// The findings of all machines.
#[derive(Debug, Default)]
pub struct FindingRegistry {
    inner: Mutex<Inner>,
}

/// Filter of findings.
#[derive(Clone, Debug, Default)]
pub struct WantedFindings {
    /// Findings that were open at some time of this span, milliseconds since the Unix epoch, both ends included.
    pub span: Option<(i64, i64)>,
    /// Machines; empty: all.
    pub sources: Vec<String>,
    /// Kinds or rules; empty: all.
    pub kinds: Vec<String>,
    /// Only findings that have not ended.
    pub active: bool,
}

impl WantedFindings {
    /// Whether a finding matches the filter.
    pub fn wants(&self, finding: &Finding) -> bool {
        let overlaps = self.span.is_none_or(|(from, to)| {
            let until = finding.until.map_or(i64::MAX, |until| until.saturating_mul(1000));
            finding.since.saturating_mul(1000) <= to && until >= from
        });
        let of_source = self.sources.is_empty() || machines(finding).any(|name| self.sources.iter().any(|s| s == name));
        let of_kind = self.kinds.is_empty() || self.kinds.iter().any(|k| *k == finding.kind || *k == finding.rule);
        overlaps && of_source && of_kind && !(self.active && finding.until.is_some())
    }
}

/// The names of all machines in a finding.
pub(crate) fn machines(finding: &Finding) -> impl Iterator<Item = &str> {
    let places = finding.subject.iter().chain(&finding.affects).map(|place| place.source.as_str());
    let evidence = finding.evidence.iter().map(|evidence| evidence.source.as_str());
    places.chain(evidence).chain(finding.changed.iter().map(|change| change.source.as_str()))
}

impl FindingRegistry {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Adds or updates a finding; `key` returns the key of a machine by its name. Returns the entry to be written; None
    /// without a change.
    pub fn take(&self, mut finding: Finding, key: impl Fn(&str) -> Option<String>) -> Option<FindingEntry> {
        let mut inner = self.inner();
        if let Some(old) = inner.renamed.get(&finding.id).and_then(|id| inner.by_id.get(id)) {
            (finding.id, finding.since, finding.told) = (old.finding.id.clone(), old.finding.since, old.finding.told);
        } else if let Some(old) = inner.continued(&finding).or_else(|| inner.moved(&finding)) {
            inner.renamed.insert(finding.id.clone(), old.0.clone());
            (finding.id, finding.since, finding.told) = old;
        }
        if let Some(because) = finding.because.as_ref().and_then(|id| inner.renamed.get(id)) {
            finding.because = Some(because.clone());
        }
        let machines = machines(&finding).filter_map(|name| Some((name.to_string(), key(name)?))).collect();
        // A dismissal stays.
        finding.dismissed = inner.known(&finding.id).and_then(|old| old.finding.dismissed.clone());
        let entry = FindingEntry { finding, machines };
        let old = inner.by_id.insert(entry.finding.id.clone(), entry.clone());
        if old.as_ref() == Some(&entry) {
            return None;
        }
        if old.is_none() {
            *inner.totals.entry((entry.finding.kind.clone(), entry.finding.severity)).or_default() += 1;
        }
        inner.change(entry.finding.id.clone());
        inner.bound();
        Some(entry)
    }

    /// Likewise. A new finding also gets the other changes at that time, which reads the history.
    pub(super) fn take_explained(
        &self,
        live: &Live,
        mut finding: Finding,
        key: impl Fn(&str) -> Option<String>,
    ) -> Option<FindingEntry> {
        let known = {
            let inner = self.inner();
            let id = inner.renamed.get(&finding.id).unwrap_or(&finding.id);
            inner.by_id.get(id).map(|old| old.finding.changed.clone())
        };
        match known {
            Some(changed) => finding.changed = changed,
            None => explain(live, &mut finding),
        }
        self.take(finding, key)
    }

    /// The open findings of this hub.
    pub fn open(&self) -> Vec<FindingEntry> {
        self.inner().by_id.values().filter(|entry| entry.finding.until.is_none()).cloned().collect()
    }

    /// Adds changed findings of another hub; `open` are the ids of all open ones there, if it lists them.
    pub fn lay(&self, hub: &str, changed: Vec<FindingEntry>, open: Option<&HashSet<String>>) {
        let mut inner = self.inner();
        let Inner { theirs, said_of_theirs, .. } = &mut *inner;
        let own = theirs.entry(hub.to_string()).or_default();
        for mut entry in changed {
            match said_of_theirs.get(&entry.finding.id) {
                Some(said) if *said == entry.finding.dismissed => drop(said_of_theirs.remove(&entry.finding.id)),
                Some(said) => entry.finding.dismissed.clone_from(said),
                None => {}
            }
            if own.len() < MAX_KEPT || own.contains_key(&entry.finding.id) {
                own.insert(entry.finding.id.clone(), (entry, 0));
            }
        }
        let Some(open) = open else { return };
        own.retain(|id, (entry, lacking)| {
            *lacking = if entry.finding.until.is_some() || open.contains(id) { 0 } else { *lacking + 1 };
            *lacking < LACKING
        });
    }

    /// Drops the findings of a hub that has been gone for too long.
    pub fn forget_hub(&self, hub: &str) {
        self.inner().theirs.remove(hub);
    }

    /// Drops open findings of machines that another hub evaluates by now, without an end: that hub continues them.
    /// `left` returns whether a machine has moved, by its key.
    pub(super) fn release(&self, left: impl Fn(&str) -> bool) -> bool {
        let mut inner = self.inner();
        let count = inner.by_id.len();
        inner.by_id.retain(|_, entry| {
            let first = entry.finding.subject.first().and_then(|place| entry.machines.get(&place.source));
            entry.finding.until.is_some() || !first.is_some_and(|key| left(key))
        });
        inner.by_id.len() != count
    }

    /// Dismisses a finding, or revokes that; returns the finding after it. A dismissal of another hub's finding is
    /// [sent](Self::to_others) to that hub. None for an unknown id or a finding that is not visible, and if too many
    /// dismissals wait for other hubs.
    pub fn dismiss(&self, id: &str, said: Option<Dismissed>, sees: impl Fn(&str) -> bool) -> Option<Finding> {
        let mut inner = self.inner();
        inner.known(id).filter(|entry| entry.is_seen(&sees))?;
        if let Some(finding) = inner.dismiss(id, said.as_ref()) {
            return Some(finding);
        }
        let Inner { theirs, said_of_theirs, .. } = &mut *inner;
        if said_of_theirs.len() >= MAX_TO_OTHERS && !said_of_theirs.contains_key(id) {
            return None;
        }
        let (entry, _) = theirs.values_mut().find_map(|own| own.get_mut(id))?;
        entry.finding.dismissed.clone_from(&said);
        said_of_theirs.insert(id.to_string(), said);
        Some(entry.finding.clone())
    }

    /// Dismissals made here of findings of other hubs, by id, that those hubs do not report yet.
    pub fn to_others(&self) -> Vec<(String, Option<Dismissed>)> {
        let mut inner = self.inner();
        let Inner { theirs, said_of_theirs, .. } = &mut *inner;
        said_of_theirs.retain(|id, _| theirs.values().any(|own| own.contains_key(id)));
        said_of_theirs.iter().map(|(id, said)| (id.clone(), said.clone())).collect()
    }

    /// Applies dismissals from another hub, by id, to findings of this hub.
    pub fn heed_others(&self, said: &[(String, Option<Dismissed>)]) {
        let mut inner = self.inner();
        for (id, said) in said {
            if inner.by_id.get(id).is_some_and(|entry| entry.finding.dismissed != *said) {
                inner.dismiss(id, said.as_ref());
            }
        }
    }

    /// The keys of a finding's machines; None for an unknown id, or a finding that is not visible.
    pub fn machines_of(&self, id: &str, sees: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let inner = self.inner();
        let entry = inner.known(id).filter(|entry| entry.is_seen(&sees))?;
        Some(entry.machines.values().cloned().collect())
    }

    /// A finding by its id; None for an unknown id, or a finding that is not visible.
    pub fn one(&self, id: &str, sees: impl Fn(&str) -> bool) -> Option<Finding> {
        let inner = self.inner();
        inner.known(id).filter(|entry| entry.is_seen(&sees)).map(|entry| entry.finding.clone())
    }

    /// Dismissals since the last call, to be written.
    pub(super) fn take_dismissals(&self) -> Vec<FindingEntry> {
        let mut inner = self.inner();
        let said = std::mem::take(&mut inner.said);
        said.iter().filter_map(|id| inner.by_id.get(id).cloned()).collect()
    }

    /// Restores findings stored by an earlier run of the program.
    pub(super) fn restore(&self, entries: impl IntoIterator<Item = FindingEntry>) {
        let mut inner = self.inner();
        for entry in entries {
            inner.change(entry.finding.id.clone());
            inner.by_id.insert(entry.finding.id.clone(), entry);
        }
        inner.bound();
    }

    /// Ends findings that an earlier run left open and that are not among `open`, at `now`, seconds. `lives` returns
    /// whether a machine, by its key, was checked for long enough, which must hold for all machines of a finding.
    /// Returns the ended ones.
    pub(super) fn end_others(&self, open: &[String], now: i64, lives: impl Fn(&str) -> bool) -> Vec<FindingEntry> {
        let mut inner = self.inner();
        let open: Vec<String> = open.iter().map(|id| inner.renamed.get(id).unwrap_or(id).clone()).collect();
        let left = inner.by_id.values_mut().filter(|entry| {
            let mut subject = entry.finding.subject.iter().filter_map(|place| entry.machines.get(&place.source));
            entry.finding.until.is_none() && !open.contains(&entry.finding.id) && subject.all(|key| lives(key))
        });
        let ended: Vec<FindingEntry> = left
            .map(|entry| {
                entry.finding.until = Some(now);
                entry.clone()
            })
            .collect();
        ended.iter().for_each(|entry| inner.change(entry.finding.id.clone()));
        ended
    }

    /// All entries changed after the change of this number, in their present state, and the number of the newest
    /// change. A follower too far behind gets all entries.
    pub fn changed_since(&self, number: u64) -> (Vec<FindingEntry>, u64) {
        let inner = self.inner();
        let newest = inner.before + inner.changes.len() as u64;
        let changed = match number.checked_sub(inner.before) {
            Some(skip) => {
                let ids: HashSet<&String> = inner.changes.iter().skip(skip as usize).collect();
                ids.into_iter().filter_map(|id| inner.by_id.get(id)).cloned().collect()
            }
            None => inner.by_id.values().cloned().collect(),
        };
        (changed, newest)
    }

    /// Drops findings that ended before `before`, seconds, and those of removed machines.
    pub(super) fn forget(&self, before: i64, removed: impl Fn(&str) -> bool) -> bool {
        let mut inner = self.inner();
        let count = inner.by_id.len();
        inner.by_id.retain(|_, entry| {
            entry.finding.until.is_none_or(|until| until >= before) && !entry.machines.values().any(|key| removed(key))
        });
        for own in inner.theirs.values_mut() {
            own.retain(|_, (entry, _)| {
                entry.finding.until.is_none_or(|until| until >= before)
                    && !entry.machines.values().any(|key| removed(key))
            });
        }
        let Inner { by_id, renamed, .. } = &mut *inner;
        renamed.retain(|_, old| by_id.contains_key(old));
        inner.by_id.len() != count
    }

    /// All findings, oldest first.
    pub(super) fn all(&self) -> Vec<FindingEntry> {
        let mut all: Vec<FindingEntry> = self.inner().by_id.values().cloned().collect();
        all.sort_unstable_by(|a, b| (a.finding.told, &a.finding.id).cmp(&(b.finding.told, &b.finding.id)));
        all
    }

    /// Sets the state of each rule, and the number of findings left out.
    pub(super) fn set_rules(&self, rules: Vec<RuleState>, left_out: u64) {
        let mut inner = self.inner();
        (inner.rules, inner.left_out) = (rules, left_out);
    }

    /// The state of each rule.
    pub fn rules(&self) -> Vec<RuleState> {
        self.inner().rules.clone()
    }

    /// Findings raised since the start, by kind and severity, and the number left out at the maximum.
    pub fn totals(&self) -> (BTreeMap<(String, Severity), u64>, u64) {
        let inner = self.inner();
        (inner.totals.clone(), inner.left_out)
    }

    /// Findings of the machines for which `sees` returns true, by their keys: the most recently raised first. A finding
    /// with a machine that is not visible is left out, since its sentence names it.
    pub fn seen(&self, wanted: &WantedFindings, sees: impl Fn(&str) -> bool) -> Vec<Finding> {
        let inner = self.inner();
        // The previous hub of a moved finding may list it, too.
        let theirs: HashMap<&String, &FindingEntry> = inner
            .theirs
            .values()
            .flatten()
            .filter(|(id, _)| !inner.by_id.contains_key(*id))
            .map(|(id, (entry, _))| (id, entry))
            .collect();
        let all = inner.by_id.values().chain(theirs.into_values());
        let all = all.filter(|entry| wanted.wants(&entry.finding) && entry.is_seen(&sees));
        let mut seen: Vec<Finding> = all.map(|entry| entry.finding.clone()).collect();
        seen.sort_unstable_by(|a, b| (b.told, &a.id).cmp(&(a.told, &b.id)));
        seen
    }
}

impl Inner {
    /// A finding of this hub, or of another one.
    fn known(&self, id: &str) -> Option<&FindingEntry> {
        let theirs = || self.theirs.values().find_map(|own| own.get(id)).map(|(entry, _)| entry);
        self.by_id.get(id).or_else(theirs)
    }

    /// Dismisses a finding of this hub; returns the finding after it.
    fn dismiss(&mut self, id: &str, said: Option<&Dismissed>) -> Option<Finding> {
        let entry = self.by_id.get_mut(id)?;
        entry.finding.dismissed = said.cloned();
        let finding = entry.finding.clone();
        self.said.insert(id.to_string());
        self.change(id.to_string());
        Some(finding)
    }

    fn change(&mut self, id: String) {
        if self.changes.len() >= MAX_CHANGES {
            self.changes.pop_front();
            self.before += 1;
        }
        self.changes.push_back(id);
    }

    /// The id, the onset and the time of raising of the finding that an earlier run left open and that this one
    /// continues.
    fn continued(&self, finding: &Finding) -> Option<(String, i64, i64)> {
        if self.by_id.contains_key(&finding.id) {
            return None;
        }
        let same = |entry: &&FindingEntry| {
            let old = &entry.finding;
            old.until.is_none()
                && (&old.rule, &old.subject, &old.device) == (&finding.rule, &finding.subject, &finding.device)
        };
        self.by_id.values().find(same).map(|old| (old.finding.id.clone(), old.finding.since, old.finding.told))
    }

    /// Likewise for a finding of another hub from before the machine moved here.
    fn moved(&self, finding: &Finding) -> Option<(String, i64, i64)> {
        let same = |entry: &&FindingEntry| {
            let old = &entry.finding;
            old.until.is_none()
                && (&old.rule, &old.subject, &old.device) == (&finding.rule, &finding.subject, &finding.device)
        };
        if self.by_id.contains_key(&finding.id) || finding.until.is_some() {
            return None;
        }
        let found = self.theirs.values().flat_map(HashMap::values).map(|(entry, _)| entry).find(same)?;
        Some((found.finding.id.clone(), found.finding.since, found.finding.told))
    }

    fn bound(&mut self) {
        if self.by_id.len() <= MAX_KEPT {
            return;
        }
        let mut ends: Vec<(i64, String)> = self
            .by_id
            .values()
            .map(|entry| (entry.finding.until.unwrap_or(i64::MAX), entry.finding.id.clone()))
            .collect();
        ends.sort_unstable();
        // Some more than needed, so that this is not done at each new finding.
        ends.iter().take(MAX_KEPT / 10).for_each(|(_, id)| drop(self.by_id.remove(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::finding;
    use super::*;
    use shared::finding::Place;

    fn key(name: &str) -> Option<String> {
        Some(format!("key of {name}"))
    }

    fn ids(registry: &FindingRegistry, wanted: &WantedFindings) -> Vec<String> {
        registry.seen(wanted, |_| true).into_iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn who_follows_the_book_gets_what_was_changed_and_the_rest_only_where_that_is_not_known() {
        let registry = FindingRegistry::default();
        let ids = |number| {
            let (changed, newest) = registry.changed_since(number);
            let mut ids: Vec<String> = changed.into_iter().map(|entry| entry.finding.kind).collect();
            ids.sort();
            (ids.join(" "), newest)
        };
        assert_eq!(ids(0), (String::new(), 0));
        registry.take(finding("hang", "a", 10, None), key);
        registry.take(finding("lost", "a", 20, None), key);
        assert_eq!(ids(0), ("hang lost".into(), 2));
        registry.take(finding("lost", "a", 20, None), key);
        assert_eq!(ids(2), (String::new(), 2), "nothing of it has changed");
        registry.take(finding("hang", "a", 10, Some(90)), key);
        assert_eq!(ids(2), ("hang".into(), 3));
        for until in 0..MAX_CHANGES as i64 {
            registry.take(finding("hang", "a", 10, Some(100 + until)), key);
        }
        assert_eq!(ids(2).0, "hang lost", "too far behind");
    }

    #[test]
    fn what_names_a_machine_that_may_not_be_seen_is_not_there() {
        let registry = FindingRegistry::default();
        registry.take(finding("hang", "a", 10, None), key);
        let mut both = finding("lost", "a", 20, None);
        both.affects = vec![Place { source: "b".into(), gpus: vec![1] }];
        registry.take(both, key);
        assert_eq!(ids(&registry, &WantedFindings::default()), ["lost:a:0:20", "hang:a:0:10"], "the newest first");
        let seen = registry.seen(&WantedFindings::default(), |key| key == "key of a");
        assert_eq!(seen.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["hang:a:0:10"]);
        registry.take(finding("idle", "gone", 30, None), |_| None);
        assert_eq!(
            ids(&registry, &WantedFindings::default()).len(),
            2,
            "a machine that nobody knows is nobody's to see"
        );
    }

    #[test]
    fn what_a_person_says_of_one_stays_until_it_is_taken_back() {
        let registry = FindingRegistry::default();
        registry.take(finding("hang", "a", 10, None), key);
        let (id, said) = ("hang:a:0:10", Dismissed { at: 50, by: "ada".into(), why: "it is the evaluation".into() });
        let of = |registry: &FindingRegistry| registry.seen(&WantedFindings::default(), |_| true)[0].dismissed.clone();
        assert_eq!(registry.dismiss(id, Some(said.clone()), |_| false), None, "who does not see it");
        assert_eq!(registry.dismiss("hang:a:0:11", Some(said.clone()), |_| true), None, "there is none");
        assert!(registry.take_dismissals().is_empty());
        let (_, before) = registry.changed_since(0);
        assert!(registry.dismiss(id, Some(said.clone()), |_| true).is_some_and(|one| !one.is_on_top()));
        assert_eq!(registry.changed_since(before).0.len(), 1, "who follows the registry is told");
        registry.take(finding("hang", "a", 10, Some(90)), key);
        assert_eq!(of(&registry), Some(said), "its end changes nothing of it");
        let again = FindingRegistry::default();
        again.restore(registry.take_dismissals());
        assert!(of(&again).is_some() && registry.take_dismissals().is_empty(), "it is written down once");
        registry.dismiss(id, None, |_| true);
        assert_eq!(of(&registry), None);
    }

    #[test]
    fn what_a_person_says_of_a_finding_of_another_hub_reaches_that_hub_and_holds_here_meanwhile() {
        let (here, there) = (FindingRegistry::default(), FindingRegistry::default());
        there.take(finding("hang", "a", 10, None), key);
        let (id, said) = ("hang:a:0:10", Dismissed { at: 50, by: "ada".into(), why: "it is the evaluation".into() });
        let told = |here: &FindingRegistry| here.lay("there", there.open(), None);
        let of = |registry: &FindingRegistry| registry.seen(&WantedFindings::default(), |_| true)[0].dismissed.clone();
        told(&here);
        assert_eq!(here.machines_of(id, |_| true), Some(vec!["key of a".to_string()]));
        assert_eq!(here.dismiss(id, Some(said.clone()), |_| false), None, "who does not see it");
        assert!(here.dismiss(id, Some(said.clone()), |_| true).is_some());
        // Sent again for a hub that has not received it.
        told(&here);
        assert_eq!((of(&here), of(&there)), (Some(said.clone()), None));
        there.heed_others(&here.to_others());
        assert_eq!((of(&there), there.take_dismissals().len()), (Some(said.clone()), 1));
        told(&here);
        assert_eq!((of(&here), here.to_others()), (Some(said), Vec::new()), "it is said until it is heard");
    }

    #[test]
    fn they_are_chosen_by_time_machine_kind_and_whether_they_last() {
        let registry = FindingRegistry::default();
        registry.take(finding("hang", "a", 10, Some(100)), key);
        registry.take(finding("idle", "b", 50, None), key);
        let wanted = |change: fn(&mut WantedFindings)| {
            let mut wanted = WantedFindings::default();
            change(&mut wanted);
            ids(&registry, &wanted)
        };
        assert_eq!(wanted(|w| w.active = true), ["idle:b:0:50"]);
        assert_eq!(wanted(|w| w.span = Some((0, 20_000))), ["hang:a:0:10"]);
        assert_eq!(wanted(|w| w.span = Some((101_000, 200_000))), ["idle:b:0:50"]);
        assert_eq!(wanted(|w| w.sources = vec!["a".into()]), ["hang:a:0:10"]);
        assert_eq!(wanted(|w| w.kinds = vec!["hang.one".into()]), ["hang:a:0:10"]);
        assert_eq!(wanted(|w| w.kinds = vec!["ecc".into()]), [""; 0]);
    }

    #[test]
    fn one_that_was_open_at_a_restart_goes_on_or_ends() {
        let first = FindingRegistry::default();
        first.take(finding("hang", "a", 10, None), key);
        first.take(finding("idle", "b", 20, None), key);
        let second = FindingRegistry::default();
        second.restore(first.all());
        // The replayed history begins after the onset.
        assert_eq!(second.take(finding("hang", "a", 700, None), key), None, "it is the one that is known");
        let open = ["hang:a:0:700".to_string()];
        assert_eq!(second.end_others(&open, 800, |key| key != "key of b"), [], "nothing is known of a silent machine");
        let ended = second.end_others(&open, 900, |_| true);
        assert_eq!(ended.iter().map(|e| e.finding.id.as_str()).collect::<Vec<_>>(), ["idle:b:0:20"]);
        second.take(finding("hang", "a", 700, Some(1000)), key);
        let seen = second.seen(&WantedFindings::default(), |_| true);
        let ends: Vec<_> = seen.iter().map(|f| (f.id.as_str(), f.until)).collect();
        assert_eq!(ends, [("idle:b:0:20", Some(900)), ("hang:a:0:10", Some(1000))]);
        // The next one of its kind is a new finding.
        second.take(finding("hang", "a", 2000, None), key);
        assert_eq!(ids(&second, &WantedFindings { active: true, ..WantedFindings::default() }), ["hang:a:0:2000"]);
        assert!(second.forget(950, |_| false), "what ended long ago goes");
        assert_eq!(ids(&second, &WantedFindings::default()).len(), 2);
    }
}
