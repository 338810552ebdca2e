//! Evaluates the rules of all teams each second, and writes the results.

use super::deliver::Delivered;
use super::gather::{Gather, JudgedMachines};
use super::kept::{Restored, acked, load, write};
use super::registry::AlertRegistry;
use super::sharing::{Shared, SharingHub};
use super::team::{Loaded, TeamWatch, shown_rule};
use crate::findings::FindingRegistry;
use jobs::code_alerts::{Calls, TakenCall, ToldCall};
use jobs::runs::RunRegistry;
use rules::Setup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stream::live::{Live, Reader};
use team::accounts::Denied;
use tokio::sync::{mpsc, oneshot, watch};

/// Interval of the evaluation.
const EVALUATION_INTERVAL: Duration = Duration::from_secs(1);

/// Timeout for releasing the lease at the end.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Number of checks after which changes by people are read again: other hubs make some, too.
const RELOAD_LOOKS: u64 = 5;

/// Number of checks in which a reachable database may refuse a team's data before it is dropped.
const MOST_REFUSED: u32 = 5;

/// Maximum number of alerts about to fire that are shown.
const MOST_PENDING: usize = 1_000;

/// Inputs and outputs of the evaluation.
pub struct AlertSources {
    #[allow(missing_docs, reason = "where samples come from")]
    pub live: Arc<Live>,
    /// Source of running and past jobs.
    pub runs: Arc<RunRegistry>,
    /// Source of findings.
    pub findings: Arc<FindingRegistry>,
    /// Source of calls from code.
    pub calls: Arc<Calls>,
    /// Stores the alerts.
    pub registry: AlertRegistry,
    /// Whether several teams share the machines, each with those that it may see.
    pub has_teams: bool,
    /// Maximum number of notices of a channel in ten minutes.
    pub storm: usize,
    /// This hub, if several share the machines.
    pub hub: Option<SharingHub>,
}

/// Evaluates until `stop` becomes true.
pub async fn watch(sources: AlertSources, done: mpsc::Receiver<Delivered>, mut stop: watch::Receiver<bool>) {
    let told = sources.calls.listen();
    let mut changed = sources.registry.changed();
    changed.mark_changed();
    let AlertSources { live, runs, findings, registry, has_teams, storm, hub, .. } = sources;
    let gather = Gather::new(live.clone(), runs, findings);
    let shared = hub.map(Shared::new);
    let judged = JudgedMachines::default();
    let all = Vec::new();
    let mut watcher = Watcher {
        live,
        registry,
        has_teams,
        storm,
        gather: Some(gather),
        all,
        done,
        told,
        away: None,
        is_full: false,
        shared,
        judged,
    };
    let (mut answers, mut looks, mut generation) = (Vec::new(), 0_u64, None);
    let mut due = tokio::time::interval(EVALUATION_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let ends = tokio::select! {
            _ = due.tick() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        if ends {
            return watcher.end().await;
        }
        looks += 1;
        let anew = changed.has_changed().unwrap_or(false) || looks.is_multiple_of(RELOAD_LOOKS);
        let now_changed = watcher.registry.generation().await;
        if anew || watcher.away.is_some() || (watcher.shared.is_some() && generation != now_changed) {
            changed.mark_unchanged();
            generation = now_changed;
            watcher.away = watcher.reload().await.err().map(|error| error.to_string());
        }
        if watcher.away.is_none() {
            watcher.away = watcher.share().await.err().map(|error| error.to_string());
        }
        watcher.receive_calls(&mut answers);
        if !watcher.pass_data().await {
            let sentence =
                "rules are no longer evaluated because the evaluation crashed; restart the server".to_string();
            tracing::error!("{sentence}");
            watcher.registry.set_troubles(BTreeMap::from([(String::new(), vec![sentence])]));
            return;
        }
        // Alerts found while the assignment of machines is unknown are written once it is known.
        if watcher.shared.is_none() || watcher.away.is_none() {
            watcher.write(&mut answers).await;
        }
        watcher.update_figures();
    }
}

/// The caller, and the result of the call once it is stored.
type CallAnswer = (oneshot::Sender<TakenCall>, TakenCall);

struct Watcher {
    live: Arc<Live>,
    registry: AlertRegistry,
    has_teams: bool,
    storm: usize,
    /// None during a check.
    gather: Option<Gather>,
    all: Vec<TeamWatch>,
    done: mpsc::Receiver<Delivered>,
    told: mpsc::Receiver<ToldCall>,
    /// Reason why the database is unreachable.
    away: Option<String>,
    /// The last write failed because the disk was full.
    is_full: bool,
    /// None: there is no other hub.
    shared: Option<Shared>,
    judged: JudgedMachines,
}

impl Watcher {
    /// Reads changes by people. A new team starts from the state of an earlier run of the server.
    async fn reload(&mut self) -> Result<(), Denied> {
        let (loaded, acked) = (load(&self.registry, self.has_teams).await?, acked(&self.registry).await?);
        let now = self.live.clock.wall();
        let known = |all: &[TeamWatch], one: &Loaded| {
            all.iter().position(|team| team.id == one.id || (!self.has_teams && team.id.is_none()))
        };
        let is_new = |one: &Loaded| known(&self.all, one).is_none_or(|at| self.all[at].is_first());
        let restored = match loaded.iter().any(|one| one.id.is_some() && is_new(one)) {
            // With several hubs, each continues with the machines that it evaluates.
            _ if self.shared.is_some() => None,
            true => Some(Restored::read(&self.registry, now).await?),
            false => None,
        };
        let mut before = std::mem::take(&mut self.all);
        for one in loaded {
            let at = before.iter().position(|team| team.id == one.id || (!self.has_teams && team.id.is_none()));
            let mut team = match at {
                Some(at) => before.swap_remove(at),
                None => self.new_team(&one, now),
            };
            let restored = restored.as_ref().filter(|_| team.is_first());
            let earlier = restored.zip(one.id.as_ref()).map(|(restored, id)| restored.earlier_of(id));
            let catalog = Reader::new(self.live.clone(), one.scope.clone()).catalog();
            team.take_in(one, self.has_teams, earlier, &catalog, now);
            team.acked(&acked);
            self.all.push(team);
        }
        Ok(())
    }

    fn new_team(&self, one: &Loaded, now: i64) -> TeamWatch {
        let mut team = TeamWatch::new(self.setup(one), now);
        if let Some(shared) = &self.shared {
            team.engine.share(&shared.hub().id, &shared.hub().name);
            team.tells = shared.tells;
        }
        team
    }

    /// Releases the lease, so that another hub makes notices.
    async fn end(self) {
        if let Some(shared) = &self.shared
            && tokio::time::timeout(LAST_WORD, shared.end(&self.registry)).await.is_err()
        {
            tracing::warn!("that another hub may tell was not written: the database does not answer");
        }
    }

    /// Reads the machines evaluated here, whether this hub makes notices, and alerts of the other hubs.
    async fn share(&mut self) -> Result<(), Denied> {
        let Some(shared) = self.shared.as_mut().filter(|_| !self.all.is_empty()) else { return Ok(()) };
        let (now, sources) = (self.live.clock.wall(), self.live.store().sources());
        let found = shared.read_shared(&self.registry, &sources, now).await?;
        if found.sees_again {
            self.all.iter_mut().for_each(|team| team.engine.excuse_silent(now));
        }
        if let Some(gather) = self.gather.as_mut().filter(|_| !found.lost.is_empty()) {
            gather.release(&mut self.all, &found.lost);
        }
        if found.ends {
            self.all.iter_mut().for_each(TeamWatch::stop_telling);
        }
        if let Some((gained, restored)) = &found.gained {
            let own = sources.iter().filter(|source| gained.contains(&source.key));
            let names: BTreeMap<String, String> = own.map(|source| (source.key.clone(), source.name.clone())).collect();
            self.all.iter_mut().for_each(|team| team.gain(&names, restored, now));
        }
        if let Some(restored) = &found.begins {
            tracing::info!("this hub makes the notices of all hubs now");
            self.all.iter_mut().for_each(|team| team.begin_telling(restored, now));
        }
        for (team, row, alert) in found.unheard {
            if let Some(team) = self.all.iter_mut().find(|known| known.id.as_ref() == Some(&team)) {
                team.hear_written(&row, alert, now);
            }
        }
        for (notice, channel, taken) in found.delivered {
            let delivered = Delivered { channel, notice, taken };
            self.all.iter_mut().for_each(|team| team.outcome(&delivered));
        }
        self.judged = JudgedMachines { own: Some(shared.own.clone()), joined: found.joined };
        Ok(())
    }

    fn setup(&self, team: &Loaded) -> Setup {
        let about = &self.registry.0.about;
        Setup {
            team: team.name.clone(),
            salt: team.id.clone().unwrap_or_default(),
            host: about.host.clone(),
            public_url: about.public_url.as_ref().map(|url| url.trim_end_matches('/').into()),
            storm: self.storm,
        }
    }

    /// Receives results of notices, and calls from code to the hub itself.
    fn receive_calls(&mut self, answers: &mut Vec<CallAnswer>) {
        while let Ok(delivered) = self.done.try_recv() {
            self.all.iter_mut().for_each(|team| team.outcome(&delivered));
        }
        let now = self.live.clock.wall();
        while let Ok(ToldCall { source, call, answer }) = self.told.try_recv() {
            let gather = self.gather.as_ref().expect("no look is under way");
            if let Some(taken) = gather.take_call(&mut self.all, source, &call, now) {
                answers.push((answer, taken));
            }
        }
    }

    /// Passes new data to the rules; false: that failed.
    async fn pass_data(&mut self) -> bool {
        let Some(mut gather) = self.gather.take() else { return false };
        let (mut all, now) = (std::mem::take(&mut self.all), self.live.clock.wall());
        let failing = self.live.store().figures().is_some_and(|figures| figures.failing > 0);
        let judged = std::mem::take(&mut self.judged);
        let looked = tokio::task::spawn_blocking(move || {
            gather.pass_data(&mut all, &judged, failing.then_some("history is not being written"));
            all.iter_mut().for_each(|team| team.collect(now));
            (gather, all, judged)
        });
        let Ok((gather, all, judged)) = looked.await else { return false };
        (self.gather, self.all) = (Some(gather), all);
        // A machine joins only once.
        self.judged = JudgedMachines { joined: BTreeSet::new(), ..judged };
        true
    }

    /// Writes pending data, and answers the callers.
    async fn write(&mut self, answers: &mut Vec<CallAnswer>) {
        let (now, mut mail, mut failed) = (self.live.clock.wall(), false, None);
        let is_there = self.all.iter().any(|team| team.id.is_some());
        for team in &mut self.all {
            // Without a rule by people and a firing alert, no file is created.
            if team.batch.is_empty() || (!is_there && team.batch.is_state_alone()) {
                continue;
            }
            match write(&self.registry, team, self.shared.as_ref().map(|shared| &shared.lease), now).await {
                Ok(more) => {
                    mail |= more;
                    team.batch.clear(false);
                }
                Err(error) => {
                    team.batch.bound();
                    // Data that a reachable database keeps refusing would block everything after it. With a full disk
                    // it is retried later.
                    let waits = self.away.is_some() || error == Denied::Full;
                    team.batch.refused += u32::from(!waits);
                    if team.batch.refused >= MOST_REFUSED {
                        tracing::error!(%error, "alerts are left out: the database does not take them");
                        team.batch.clear(true);
                    }
                    failed = Some(error);
                }
            }
        }
        if let Some(shared) = self.shared.as_mut().filter(|shared| shared.tells)
            && self.all.iter().any(|team| !team.tells)
        {
            shared.stop_telling();
            self.all.iter_mut().for_each(TeamWatch::stop_telling);
        }
        if mail {
            self.registry.has_mail();
        }
        match failed {
            None => {
                self.is_full = false;
                for (answer, taken) in answers.drain(..) {
                    let _: Result<(), TakenCall> = answer.send(taken); // The caller may have gone.
                }
            }
            Some(error) => {
                let was_full = std::mem::replace(&mut self.is_full, error == Denied::Full);
                if self.away.replace(error.to_string()).is_none() && !was_full {
                    tracing::error!(%error, "alerts wait in memory: the database does not take them");
                }
                // The callers learn that it is unknown whether their calls are stored.
                answers.clear();
            }
        }
    }

    /// Updates the figures.
    fn update_figures(&self) {
        let left_out = self.all.iter().map(|team| team.batch.left_out).sum();
        self.registry.set_pending(self.all.iter().flat_map(TeamWatch::about_to_fire).take(MOST_PENDING).collect());
        self.registry.count(|figures| {
            figures.firing = self.all.iter().map(|team| team.firing.len() as u64).sum();
            figures.pending = self.all.iter().map(|team| team.pending.len() as u64).sum();
            figures.subjects = self.all.iter().map(|team| team.engine.subjects() as u64).sum();
            figures.left_out = left_out;
        });
        let mut troubles: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (rule, sentence) in self.all.iter().flat_map(TeamWatch::troubles) {
            let known = troubles.entry(shown_rule(&rule).to_string()).or_default();
            if !known.contains(&sentence) {
                known.push(sentence);
            }
        }
        let of_all = troubles.entry(String::new()).or_default();
        if let Some(why) = &self.away {
            of_all.push(format!("alerts are kept in memory and sent late: {why}"));
        }
        if left_out > 0 {
            of_all.push(format!("{left_out} alerts and notifications could not be stored and were dropped"));
        }
        self.registry.set_troubles(troubles);
    }
}
