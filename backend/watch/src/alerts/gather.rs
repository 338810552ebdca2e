//! Input of the rules: new samples, runs, findings and the server's own problems. A team's rules receive only data that
//! the team may see, so that none of their sentences can name anything else.

use super::team::{CALLS, TeamWatch};
use crate::findings::{FindingEntry, FindingRegistry, named};
use jobs::code_alerts::TakenCall;
use jobs::markers::marker;
use jobs::runs::{Month, RunRegistry};
use rules::{GpuHoursUsed, Machine, Tick, Tied};
use shared::alert_call::AlertCall;
use shared::catalog::{Catalog, gpu_parts};
use shared::finding::Finding;
use shared::run::Run;
use shared::scope::Scope;
use shared::series::SeriesId;
use shared::unit::rough_duration;
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use stream::live::{Live, Reader};
use stream::store::{Cursor, Frame, News};

/// Interval of the check of runs without new records, in checks: a silent run changes by time alone.
const RUNS_RARELY: u64 = 10;

/// Runs that ended longer ago are ignored, milliseconds.
const RUNS_BACK_MS: i64 = 30 * 60_000;

/// Likewise at the first check of a team's rules: a run may have ended while nothing was checked.
const RUNS_FIRST_MS: i64 = 24 * 3_600_000;

/// Interval of the check for findings that are not visible any more, in checks.
const FINDINGS_RARELY: u64 = 60;

/// Interval of the check of GPU-hours, in checks.
const GPU_HOURS_RARELY: u64 = 60;

/// After a start, older calls from code are ignored, milliseconds.
const CALLS_BACK_MS: i64 = 10 * 60_000;

/// Backlog of a hub that raises an alert, milliseconds: of live ticks, and of the history.
const BEHIND_MS: (i64, i64) = (5 * 60_000, 10 * 60_000);

struct Followed {
    key: String,
    cursor: Cursor,
    /// Its series, and the number of their changes.
    series: Vec<SeriesId>,
    version: u64,
    machine: Machine,
    /// Series that count critical errors of GPUs, each with the series of the last error's number.
    xids: Vec<Xid>,
}

struct Xid {
    gpu: u32,
    count: SeriesId,
    last: Option<SeriesId>,
    seen: Option<f64>,
}

/// Machines evaluated here.
#[derive(Default)]
pub(super) struct JudgedMachines {
    /// By id; None: all.
    pub own: Option<BTreeSet<String>>,
    /// Machines that have just joined.
    pub joined: BTreeSet<String>,
}

impl JudgedMachines {
    fn has(&self, key: &str) -> bool {
        self.own.as_ref().is_none_or(|own| own.contains(key))
    }

    /// Whether a machine unknown to the rules is new; with several hubs it may have moved from another.
    fn has_joined(&self, key: &str) -> bool {
        self.own.is_none() || self.joined.contains(key)
    }
}

/// The followed sources, with their positions.
pub(super) struct Gather {
    live: Arc<Live>,
    runs: Arc<RunRegistry>,
    findings: Arc<FindingRegistry>,
    sources: HashMap<SourceId, Followed>,
    /// Number of the newest change of findings that was passed on.
    told_findings: u64,
    /// The newest records of all sources at the last check of runs.
    records: Vec<u64>,
    looks: u64,
}

impl Gather {
    pub(super) fn new(live: Arc<Live>, runs: Arc<RunRegistry>, findings: Arc<FindingRegistry>) -> Self {
        Gather { live, runs, findings, sources: HashMap::new(), told_findings: 0, records: Vec::new(), looks: 0 }
    }

    /// Passes data since the last check to the rules of all teams. It may read the disk.
    pub(super) fn pass_data(&mut self, teams: &mut [TeamWatch], judged: &JudgedMachines, trouble: Option<&str>) {
        if teams.is_empty() {
            return; // Data is read once there are rules.
        }
        let (live, now) = (self.live.clone(), self.live.clock.wall());
        let sources = live.store().sources();
        self.looks += 1;
        for source in sources.iter().filter(|source| judged.has(&source.key)) {
            self.enter(source);
            teams.iter_mut().for_each(|team| self.introduce(team, source, judged.has_joined(&source.key)));
            self.read_on(teams, source.id, now);
            report_connection_state(teams, source, &self.live, now);
            self.tell_calls(teams, source, now);
        }
        self.leave(teams, &sources, now);
        self.tell_runs(teams, &sources, now);
        self.tell_findings(teams, judged, now);
        self.tell_gpu_hours(teams, now);
        let behind = behind(&live);
        for team in teams {
            team.engine.hub_behind(behind.as_deref(), now);
            team.engine.history_failed(trouble, now);
            (team.fresh, team.rescoped) = (false, false);
        }
    }

    /// Drops these machines, by id, which other hubs evaluate now.
    pub(super) fn release(&mut self, teams: &mut [TeamWatch], lost: &BTreeSet<String>) {
        let names: BTreeMap<String, String> = self
            .sources
            .values()
            .filter(|followed| lost.contains(&followed.key))
            .map(|followed| (followed.key.clone(), followed.machine.name.clone()))
            .collect();
        let gone = |id: &SourceId| self.sources.get(id).is_some_and(|followed| lost.contains(&followed.key));
        for team in teams {
            team.lose(lost, &names);
            team.sources.retain(|id, _| !gone(id));
        }
        self.sources.retain(|_, followed| !lost.contains(&followed.key));
    }

    /// Starts to follow a source at its newest tick.
    fn enter(&mut self, source: &Arc<Source>) {
        let labels: BTreeMap<String, String> = self.live.source(source.id).labels().into_iter().collect();
        let interval_ms = u32::try_from(source.interval).unwrap_or(u32::MAX);
        let machine = Machine { id: source.key.clone(), name: source.name.clone(), interval_ms, labels };
        if let Some(followed) = self.sources.get_mut(&source.id).filter(|followed| followed.key == source.key) {
            followed.machine = machine;
            return;
        }
        let mut cursor = Cursor::new(source.id).with_state();
        cursor.begin_newest(&self.live.store());
        let mut followed =
            Followed { key: source.key.clone(), cursor, series: Vec::new(), version: 0, machine, xids: Vec::new() };
        followed.know(&self.live, source.id);
        self.sources.insert(source.id, followed);
    }

    /// Defines a source and its series for a team's rules, unless they are defined. Sources that the team may not see
    /// are removed.
    fn introduce(&self, team: &mut TeamWatch, source: &Source, joined: bool) {
        let Some(followed) = self.sources.get(&source.id) else { return };
        let known = team.sources.get(&source.id).copied();
        if !team.scope.sees(&source.key) {
            return;
        }
        team.engine.source(&followed.machine);
        team.keys.insert(source.name.clone(), source.key.clone());
        if known.is_none() && !team.fresh && joined {
            team.engine.joined(&source.key, self.live.clock.wall());
        }
        if known == Some(followed.version) {
            return;
        }
        let store = self.live.store();
        let defs = store.series(source.id, 0);
        for id in &followed.series {
            if let Some(def) = defs.get(*id as usize) {
                team.engine.define(&source.key, *id, def, store.catalog());
            }
        }
        team.sources.insert(source.id, followed.version);
    }

    fn read_on(&mut self, teams: &mut [TeamWatch], id: SourceId, now: i64) {
        let Some(followed) = self.sources.get_mut(&id) else { return };
        let news = followed.cursor.news(&self.live.store());
        match news {
            News::Ticks(frames, series) => {
                if !series.is_empty() {
                    followed.know(&self.live, id);
                    let source = self.live.store().source(id).map(|(source, _)| source.clone());
                    if let Some(source) = source {
                        teams.iter_mut().for_each(|team| self.introduce(team, &source, false));
                    }
                }
                let Some(followed) = self.sources.get_mut(&id) else { return };
                frames.iter().for_each(|frame| followed.tick(teams, id, frame, now));
            }
            News::Lost => {
                followed.cursor.begin_newest(&self.live.store());
                followed.know(&self.live, id);
            }
        }
    }

    /// Drops sources that have gone, and those that a team may not see any more.
    fn leave(&mut self, teams: &mut [TeamWatch], sources: &[Arc<Source>], now: i64) {
        let there: HashMap<SourceId, &str> = sources.iter().map(|source| (source.id, source.key.as_str())).collect();
        let key = |sources: &HashMap<SourceId, Followed>, id| sources.get(&id).map(|followed| followed.key.clone());
        for team in teams {
            let gone = |id: &SourceId| there.get(id).is_none_or(|key| !team.scope.sees(key));
            let gone: Vec<SourceId> = team.sources.keys().filter(|id| gone(id)).copied().collect();
            for id in gone {
                team.sources.remove(&id);
                if let Some(key) = key(&self.sources, id) {
                    team.engine.remove_source(&key, now);
                    team.keys.retain(|_, known| *known != key);
                }
            }
        }
        self.sources.retain(|id, followed| there.get(id).is_some_and(|key| *key == followed.key));
    }

    /// Passes on runs when a machine has new records of one, and from time to time.
    fn tell_runs(&mut self, teams: &mut [TeamWatch], sources: &[Arc<Source>], now: i64) {
        let records: Vec<u64> = {
            let store = self.live.store();
            sources.iter().map(|source| store.last_record(source.id)).collect()
        };
        let fresh = teams.iter().any(|team| team.fresh);
        if records == self.records && !self.looks.is_multiple_of(RUNS_RARELY) && !fresh {
            return;
        }
        self.records = records;
        for team in teams {
            // A team sees a run without its ranks on machines of others.
            let own: Vec<Arc<Source>> = sources.iter().filter(|source| team.scope.sees(&source.key)).cloned().collect();
            let back = if team.fresh { RUNS_FIRST_MS } else { RUNS_BACK_MS };
            let runs: Vec<Arc<Run>> = self.runs.newest_first(&self.live, &own, (now - back, now)).collect();
            // A run with a late end may have ended before the checked period.
            let late: Vec<String> = team.engine.open_runs().map(Into::into).collect();
            let late = late.into_iter().filter(|id| runs.iter().all(|run| run.id != *id));
            let late = late.filter_map(|id| self.runs.find(&self.live, &own, &id, (i64::MIN, i64::MAX)));
            let late: Vec<Arc<Run>> = late.map(Arc::new).collect();
            for run in runs.iter().chain(&late) {
                team.engine.run(run, now);
                if run.ended.is_some() {
                    team.run_ended(&run.id, now);
                }
            }
        }
    }

    /// Passes on the GPU-hours of teams with a limit, from time to time.
    fn tell_gpu_hours(&self, teams: &mut [TeamWatch], now: i64) {
        let is_due = self.looks.is_multiple_of(GPU_HOURS_RARELY);
        for team in teams.iter_mut().filter(|team| team.tells && (is_due || team.fresh)) {
            let Some(limit) = team.home.limit else {
                team.engine.gpu_hours(None, now);
                continue;
            };
            let reader = Reader::new(self.live.clone(), Scope::only([], team.home.machines.iter().cloned()));
            let Month { name, began } = Month::from_time(now);
            let hours = self.runs.gpu_hours(&reader, (began, now));
            let used = GpuHoursUsed { hours, limit, month: name, month_began: began };
            team.engine.gpu_hours(Some(&used), now);
        }
    }

    /// Passes on new calls and markers from code of a machine.
    fn tell_calls(&mut self, teams: &mut [TeamWatch], source: &Source, now: i64) {
        let newest = self.live.store().last_record(source.id);
        let behind = |team: &&mut TeamWatch| {
            team.scope.sees(&source.key) && team.calls.get(&source.key).copied().unwrap_or(0) < newest
        };
        let mut teams: Vec<&mut TeamWatch> = teams.iter_mut().filter(behind).collect();
        let Some(first) = teams.iter().map(|team| team.calls.get(&source.key).copied().unwrap_or(0)).min() else {
            return;
        };
        let records = self.live.store().records_behind(source.id, first);
        for record in records.into_iter().flatten().flatten() {
            let call = jobs::code_alerts::from_record(&record);
            let tied = call.as_ref().and_then(|call| self.tied(source.id, call));
            let marked = marker::of_record(&record).and_then(|marker| marker.run);
            for team in &mut teams {
                let told = team.calls.get(&source.key).copied();
                // A team that sees a machine for the first time gets the most recent calls, too.
                if told.is_some_and(|told| record.n <= told) || (told.is_none() && record.t < now - CALLS_BACK_MS) {
                    continue;
                }
                if let Some(run) = &marked {
                    team.engine.marker(run, record.t);
                }
                if let (Some(call), Some(tied)) = (&call, &tied) {
                    team.take_call(call, tied, now);
                }
            }
        }
        for team in teams {
            team.calls.insert(source.key.clone(), newest);
            team.batch.states.insert((CALLS, source.key.clone()), Some(newest.to_le_bytes().to_vec()));
        }
    }

    /// The machine and the run of a call.
    fn tied(&self, source: SourceId, call: &AlertCall) -> Option<Tied> {
        let followed = self.sources.get(&source)?;
        let mut labels = followed.machine.labels.clone();
        let about = call.run.as_ref().and_then(|run| {
            let source = self.live.store().source(source).map(|(source, _)| source.clone())?;
            self.runs.find(&self.live, &[source], run, (i64::MIN, i64::MAX)).map(|run| run.about)
        });
        labels.extend(about.and_then(|about| about.project).map(|project| ("project".to_string(), project)));
        Some(Tied { source: followed.machine.name.clone(), run: call.run.clone(), labels })
    }

    /// Passes a call from code to the teams that see its machine; returns its result.
    pub(super) fn take_call(
        &self,
        teams: &mut [TeamWatch],
        source: SourceId,
        call: &AlertCall,
        now: i64,
    ) -> Option<TakenCall> {
        let (tied, followed) = (self.tied(source, call)?, self.sources.get(&source)?);
        let teams = teams.iter_mut().filter(|team| team.scope.sees(&followed.key));
        teams.filter_map(|team| team.take_call(call, &tied, now)).last()
    }

    /// Passes on changed findings; a new team gets all.
    fn tell_findings(&mut self, teams: &mut [TeamWatch], judged: &JudgedMachines, now: i64) {
        let (changed, newest) = self.findings.changed_since(self.told_findings);
        self.told_findings = newest;
        let mut all: Option<Vec<FindingEntry>> = None;
        for team in teams {
            let told = match team.fresh {
                true => all.get_or_insert_with(|| self.findings.changed_since(0).0),
                false => &changed,
            };
            for FindingEntry { finding, machines } in told {
                let first = finding.subject.first().and_then(|place| machines.get(&place.source));
                if first.is_some_and(|key| !judged.has(key)) {
                    continue;
                }
                let sees = |name: &str| machines.get(name).is_some_and(|key| team.scope.sees(key));
                if named(finding).all(sees) {
                    // A dismissed finding has ended for the teams that received it.
                    let ended = finding.until.or(finding.dismissed.as_ref().map(|said| said.at));
                    team.engine.finding(&Finding { until: ended, ..finding.clone() }, now);
                }
            }
            if team.rescoped || self.looks.is_multiple_of(FINDINGS_RARELY) {
                let all = all.get_or_insert_with(|| self.findings.changed_since(0).0);
                let sees = |machines: &BTreeMap<String, String>, name: &str| {
                    machines.get(name).is_some_and(|key| team.scope.sees(key))
                };
                let seen = all.iter().filter(|one| named(&one.finding).all(|name| sees(&one.machines, name)));
                let seen: HashSet<&str> = seen.map(|one| one.finding.id.as_str()).collect();
                let gone: Vec<String> =
                    team.engine.findings().filter(|id| !seen.contains(id)).map(Into::into).collect();
                gone.iter().for_each(|id| team.engine.finding_gone(id, now));
            }
        }
    }
}

impl Followed {
    /// Reads its series again.
    fn know(&mut self, live: &Live, id: SourceId) {
        let store = live.store();
        let (defs, catalog): (_, &Catalog) = (store.series(id, 0), store.catalog());
        self.version += 1;
        self.series = (0..defs.len() as SeriesId).collect();
        let of = |template: &str, instance: &str| {
            let row = catalog.position(template);
            (0..)
                .zip(defs.iter())
                .find(|(_, def)| Some(def.metric) == row && def.instance == instance)
                .map(|(id, _)| id)
        };
        let counts = catalog.position(gpu_parts::XID_ERRORS.tag);
        let known: HashMap<SeriesId, Option<f64>> = self.xids.iter().map(|xid| (xid.count, xid.seen)).collect();
        let counted = (0..).zip(defs.iter()).filter(|(_, def)| counts.is_some() && Some(def.metric) == counts);
        self.xids = counted
            .filter_map(|(count, def)| {
                let last = of(gpu_parts::LAST_XID.tag, &def.instance);
                Some(Xid { gpu: def.instance.parse().ok()?, count, last, seen: known.get(&count).copied().flatten() })
            })
            .collect();
    }

    fn tick(&mut self, teams: &mut [TeamWatch], id: SourceId, frame: &Arc<Frame>, now: i64) {
        self.cursor.take(frame);
        let Some(state) = self.cursor.state() else { return };
        let values = state.values();
        let tick = Tick { source: &self.key, t: frame.t, now, clock_step: frame.clock_step, values };
        for team in teams.iter_mut().filter(|team| team.sources.contains_key(&id)) {
            team.engine.tick(&tick);
        }
        let value = |id: SeriesId| values.get(id as usize).copied().filter(|value| value.is_finite());
        for xid in &mut self.xids {
            let Some(count) = value(xid.count) else { continue };
            let before = xid.seen.replace(count);
            if before.is_some_and(|before| count > before)
                && let Some(number) = xid.last.and_then(value)
            {
                for team in teams.iter_mut().filter(|team| team.sources.contains_key(&id)) {
                    team.engine.xid(&self.key, Some(xid.gpu), number as u32, frame.t);
                }
            }
        }
    }
}

/// Passes on whether a machine has signed off or is connected. In between it is as it was: after a start all are unreachable.
fn report_connection_state(teams: &mut [TeamWatch], source: &Source, live: &Live, now: i64) {
    let (connection_state, since) = live.source(source.id).connection_state();
    for team in teams.iter_mut().filter(|team| team.scope.sees(&source.key)) {
        if connection_state.has_signed_off() {
            team.engine.signed_off(&source.key, since);
        } else if connection_state.is_linked() {
            team.engine.signed_on(&source.key, now);
        }
    }
}

/// A sentence about a hub that lags behind this machine; None if there is none.
fn behind(live: &Live) -> Option<String> {
    let mut behind = live.uplinks().into_iter().filter_map(|uplink| {
        let lag = live.lag(&uplink);
        let late = lag.unsent.is_some_and(|ms| ms > BEHIND_MS.0) || lag.unconfirmed.is_some_and(|ms| ms > BEHIND_MS.1);
        late.then(|| {
            let ms = lag.unsent.into_iter().chain(lag.unconfirmed).max().unwrap_or_default();
            format!("{} is {} behind", uplink.hub, rough_duration(ms))
        })
    });
    behind.next()
}
