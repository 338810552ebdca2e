//! Live detection, each second.

use super::feed::{announce, feed, running};
use super::hangs::{HangQuestions, Hangs};
use super::kept::KeptFindings;
use super::registry::{FindingEntry, FindingRegistry};
use insight::{Insight, Settings};
use jobs::runs::RunRegistry;
use parking_lot::Mutex;
use shared::finding::Finding;
use shared::run::Run;
use shared::series::SeriesId;
use shared::wire::{CheckState, Source, SourceId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use stream::store::{Cursor, Frame, News};
use tokio::sync::watch;

/// Interval of the detection.
const DETECTION_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum delay of a tick, milliseconds: of this machine, and of others.
const LATENESS_MS: (i64, i64) = (1_500, 5_000);

/// Length of the history that is read first, to learn the usual values, milliseconds. For this machine, and for others,
/// of which there may be many.
const LEARN_MS: (i64, i64) = (60 * 60_000, 15 * 60_000);

/// Time that a machine is checked before a finding from before the start, which is not found again, ends, milliseconds.
const SETTLED_MS: i64 = 120_000;

/// Interval of reading jobs and dropping old data, in checks.
const RARE_CHECKS: u64 = 5;

/// Inputs and outputs of the detection.
pub struct Following {
    #[allow(missing_docs, reason = "what is followed")]
    pub live: Arc<Live>,
    /// Stores the findings.
    pub registry: Arc<FindingRegistry>,
    /// Jobs.
    pub runs: Arc<RunRegistry>,
    #[allow(missing_docs, reason = "see insight")]
    pub settings: Settings,
    /// The machines are other ones, which may stop reporting.
    pub of_others: bool,
    /// File of the findings; none without a data folder.
    pub kept: Option<KeptFindings>,
    /// Asks machines about a hanging job; none where nobody is asked.
    pub hangs: Option<HangQuestions>,
}

struct Followed {
    key: String,
    name: String,
    cursor: Cursor,
    checks: u64,
    processes: i64,
    stopped: bool,
    /// Time of the first tick since the start, milliseconds.
    first: Option<i64>,
}

struct Follower {
    following: Following,
    insight: Insight,
    sources: HashMap<SourceId, Followed>,
    hangs: Hangs,
    looks: u64,
}

/// Runs the detection on new ticks until `stop` becomes true.
pub async fn follow(following: Following, mut stop: watch::Receiver<bool>) {
    let begun = tokio::task::spawn_blocking(move || Arc::new(Mutex::new(Follower::begin(following)))).await;
    let Ok(follower) = begun else {
        return tracing::error!("nothing is looked for: looking through the history failed");
    };
    let mut due = tokio::time::interval(DETECTION_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let theirs = follower.clone();
        let look = move || theirs.lock().run_detection();
        if tokio::task::spawn_blocking(look).await.is_err() {
            return tracing::error!("nothing is looked for any more: a look failed");
        }
    }
}

impl Follower {
    /// Replays the newest history, to learn the usual values.
    fn begin(following: Following) -> Self {
        let mut insight = Insight::new(following.settings.clone());
        insight.follow(following.of_others);
        let now = following.live.clock.wall();
        let from = now - if following.of_others { LEARN_MS.1 } else { LEARN_MS.0 };
        let hangs = Hangs::new(following.hangs.clone());
        let mut follower = Follower { following, insight, sources: HashMap::new(), hangs, looks: 0 };
        let sources = follower.following.live.store().sources();
        // The cursors start at the end of the replayed history.
        let newest: Vec<i64> = sources.iter().filter_map(|source| follower.enter(source)).collect();
        let live = follower.following.live.clone();
        let Some(to) = newest.into_iter().max() else {
            // A first start: there is nothing to replay, and the replay would define the sources.
            sources.iter().for_each(|source| drop(announce(&mut follower.insight, &live, source)));
            return follower;
        };
        let jobs: Vec<Run> =
            follower.following.runs.newest_first(&live, &sources, (from, now)).map(Arc::unwrap_or_clone).collect();
        let mut found = Vec::new();
        feed(&mut follower.insight, &live, &sources, (from, to), &jobs, |finding| found.push(finding));
        follower.take(found);
        follower
    }

    /// Starts to follow a source at its newest tick; returns the time of that tick.
    fn enter(&mut self, source: &Arc<Source>) -> Option<i64> {
        let mut cursor = Cursor::new(source.id).with_state();
        let newest = {
            let store = self.following.live.store();
            cursor.begin_newest(&store);
            store.newest(source.id).map(|(t, _)| t)
        };
        let (key, name) = (source.key.clone(), source.name.clone());
        let followed = Followed { key, name, cursor, checks: 0, processes: 0, stopped: false, first: None };
        self.sources.insert(source.id, followed);
        newest
    }

    /// Runs the detection on the ticks since the last check.
    fn run_detection(&mut self) {
        let live = self.following.live.clone();
        let all = live.store().sources();
        // Sources of another hub are evaluated there.
        let sources: Vec<Arc<Source>> = all.iter().filter(|source| live.holds(source.id)).cloned().collect();
        if sources.len() < all.len() {
            let held: HashSet<&str> = sources.iter().map(|source| source.key.as_str()).collect();
            let known: HashSet<&str> = all.iter().map(|source| source.key.as_str()).collect();
            if self.following.registry.release(|key| known.contains(key) && !held.contains(key)) {
                self.write(&[], true);
            }
        }
        self.looks += 1;
        for source in &sources {
            match self.sources.get(&source.id) {
                Some(followed) if followed.key == source.key && followed.name == source.name => {}
                Some(followed) if followed.key == source.key => {
                    self.insight.source(source.id.into(), &source.name, source.interval);
                    self.sources.entry(source.id).and_modify(|followed| followed.name = source.name.clone());
                }
                other => {
                    if other.is_some() {
                        self.insight.remove(source.id.into());
                    }
                    self.enter(source);
                    announce(&mut self.insight, &live, source);
                }
            }
            self.read_on(&live, source);
        }
        let there: HashSet<SourceId> = sources.iter().map(|source| source.id).collect();
        let gone: Vec<SourceId> = self.sources.keys().filter(|id| !there.contains(id)).copied().collect();
        for id in gone {
            self.insight.remove(id.into());
            self.sources.remove(&id);
        }
        let now = live.clock.wall();
        if self.looks % RARE_CHECKS == 1 {
            let by_name: BTreeMap<&str, SourceId> = sources.iter().map(|s| (s.name.as_str(), s.id)).collect();
            let open: Vec<Run> = self.following.runs.open(&live, &sources).map(Arc::unwrap_or_clone).collect();
            self.insight.jobs(&running(&open, &by_name, now));
            let removed = live.store().removed().clone();
            if self.following.registry.forget((now - live.retention) / 1000, |key| removed.contains(key)) {
                self.write(&[], true);
            }
        }
        let lateness = if self.following.of_others { LATENESS_MS.1 } else { LATENESS_MS.0 };
        let mut found = Vec::new();
        self.insight.judge(now - lateness, &mut found);
        self.take(found);
        self.write(&self.following.registry.take_dismissals(), false);
        if self.looks % RARE_CHECKS == 1 {
            self.end_others(now);
        }
    }

    /// Ends findings that an earlier run left open and that are not found again. They may still hold on a machine that
    /// has not reported since. A finding that takes long to detect needs that time again if less of the past was read.
    fn end_others(&mut self, now: i64) {
        let late = if self.following.of_others { self.following.settings.idle_after * 1000 } else { 0 };
        let young = |followed: &&Followed| followed.first.is_none_or(|first| now < first + SETTLED_MS + late);
        let young: HashSet<&str> = self.sources.values().filter(young).map(|followed| followed.key.as_str()).collect();
        let open: Vec<String> = self.insight.open().into_iter().map(|finding| finding.id.clone()).collect();
        let ended = self.following.registry.end_others(&open, now / 1000, |key| !young.contains(key));
        self.write(&ended, false);
    }

    fn read_on(&mut self, live: &Live, source: &Source) {
        let id = source.id;
        let Some(followed) = self.sources.get_mut(&id) else { return };
        let (news, checks, changed) = {
            let store = live.store();
            let news = followed.cursor.news(&store);
            let (checks, version) = store.checks(id);
            (news, checks, std::mem::replace(&mut followed.checks, version) != version)
        };
        match news {
            News::Ticks(frames, series) => {
                tell(&mut self.insight, live, id, &series);
                followed.first = followed.first.or(frames.first().map(|frame| frame.t));
                frames.iter().for_each(|frame| tick(&mut self.insight, id, &mut followed.cursor, frame));
            }
            News::Lost => {
                followed.cursor.begin_newest(&live.store());
                announce(&mut self.insight, live, source);
            }
        }
        let state = live.source(id);
        if let Some(table) = state.processes.newest().filter(|table| table.t > followed.processes) {
            followed.processes = table.t;
            self.insight.processes(id.into(), &table);
        }
        let (connection_state, since) = state.connection_state();
        let stopped = connection_state.has_signed_off();
        if stopped && !std::mem::replace(&mut followed.stopped, stopped) {
            self.insight.goodbye(id.into(), since);
        }
        followed.stopped = stopped;
        for check in checks.iter().filter(|_| changed) {
            // A collector that reads its other devices still tells of a lost one.
            let fails = matches!(check.state, CheckState::Failed | CheckState::Partial);
            let reason = if fails { check.reason.as_str() } else { "" };
            self.insight.record_reason(id.into(), live.clock.wall(), &check.id, reason);
        }
    }

    /// Adds findings to the registry, and writes the changes.
    fn take(&mut self, found: Vec<Finding>) {
        let now = self.following.live.clock.wall() / 1000;
        let ids: HashMap<&str, SourceId> =
            self.sources.iter().map(|(id, followed)| (followed.name.as_str(), *id)).collect();
        let complete = |finding| self.hangs.complete(finding, now, |name| ids.get(name).copied());
        let mut found: Vec<Finding> = found.into_iter().map(complete).collect();
        found.extend(self.hangs.answered());
        let keys: HashMap<&str, &str> =
            self.sources.values().map(|followed| (followed.name.as_str(), followed.key.as_str())).collect();
        let key = |name: &str| keys.get(name).map(|key| (*key).to_string());
        let changed: Vec<FindingEntry> = found
            .into_iter()
            .filter_map(|finding| self.following.registry.take_explained(&self.following.live, finding, key))
            .collect();
        self.following.registry.set_rules(self.insight.rules(), self.insight.left_out());
        for FindingEntry { finding, .. } in changed.iter().filter(|entry| entry.finding.until.is_none()) {
            tracing::info!(id = finding.id, severity = finding.severity.as_str(), "{}", finding.sentence_utc());
        }
        self.write(&changed, false);
    }

    fn write(&mut self, changed: &[FindingEntry], anew: bool) {
        let Following { registry, kept, .. } = &mut self.following;
        let Some(kept) = kept.as_mut().filter(|_| anew || !changed.is_empty()) else { return };
        kept.write(changed, || registry.all());
    }
}

/// Defines new and redefined series.
fn tell(insight: &mut Insight, live: &Live, source: SourceId, series: &[SeriesId]) {
    if series.is_empty() {
        return;
    }
    let store = live.store();
    let defs = store.series(source, 0);
    for id in series {
        let def = defs.get(*id as usize);
        if let Some((def, metric)) = def.and_then(|def| Some((def, store.catalog().metric(def)?))) {
            insight.series(source.into(), *id, metric, &def.instance);
        }
    }
}

fn tick(insight: &mut Insight, source: SourceId, cursor: &mut Cursor, frame: &Arc<Frame>) {
    cursor.take(frame);
    let Some(state) = cursor.state() else { return };
    let present = state.values().iter().enumerate().filter(|(_, value)| value.is_finite());
    insight.tick(source.into(), frame.t, present.map(|(id, value)| (id as SeriesId, *value)));
}
