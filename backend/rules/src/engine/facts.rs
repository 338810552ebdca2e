//! Subjects without series: machines, runs, findings, errors, and the hub itself.

use super::say::hour;
use super::state::{Phase, Step, SubjectState};
use super::{EVENT_MS, Engine, LOST_AFTER_START_MS, ORPHAN_MS, SWEEP_MS, WINDOW_SWEEPS};
use crate::{Transition, What};
use serde::{Deserialize, Serialize};
use shared::alert::{Alert, AlertSeverity, AlertState, Rule};
use shared::failure::FailureClass;
use shared::finding::{Finding, next_line};
use shared::rule::Condition;
use shared::run::{Run, RunState};
use shared::unit::{grouped, rough_duration};
use shared::xid;
use std::collections::BTreeMap;

/// An alert without samples that fires or fired recently.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    pub state: SubjectState,
    pub labels: BTreeMap<String, String>,
    pub sentence: String,
    /// Further text of its notices; may be empty. It is not stored: whoever holds the fact sets it again.
    #[serde(skip)]
    pub text: String,
}

/// State of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The id that its machines use, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    pub state: Option<RunState>,
    pub name: String,
    pub began: i64,
    pub ended: Option<i64>,
    /// Time of its newest marker, or its begin.
    pub marked: i64,
    pub labels: BTreeMap<String, String>,
    /// Whether the class of its failure is final.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub classed: bool,
    /// Machines by name, with its GPUs there; empty: unknown.
    pub hosts: BTreeMap<String, Vec<u32>>,
}

/// Percentage points below a threshold of GPU-hours at which it no longer counts as reached.
const GPU_HOURS_SLACK: f64 = 5.0;

/// GPU-hours of a team in the present month.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuHoursUsed {
    /// GPU-hours used so far.
    pub hours: f64,
    /// The limit, GPU-hours.
    pub limit: u64,
    /// The month in UTC, as `2026-11`.
    pub month: String,
    /// Start of the month, milliseconds since the Unix epoch.
    pub month_began: i64,
}

impl RunFacts {
    /// The facts of a run at `now`, milliseconds since the Unix epoch, with the ones known before.
    fn new(run: &Run, before: Option<&RunFacts>, now: i64) -> RunFacts {
        let about = &run.about;
        let mut labels: BTreeMap<String, String> = about.tags.clone();
        let named = [
            ("project", &about.project),
            ("group", &about.group),
            ("job_type", &about.job_type),
            ("name", &about.name),
            ("user", &about.user),
        ];
        labels.extend(named.into_iter().filter_map(|(key, value)| Some((key.to_string(), value.clone()?))));
        labels.insert("run".into(), run.id.clone());
        labels.extend(run.failure.map(|class| ("failure".to_string(), class.name().to_string())));
        let mut hosts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for process in &run.processes {
            let gpus = hosts.entry(process.source.clone()).or_default();
            gpus.extend(process.rank.iter().flat_map(|r| r.gpus.iter().copied()));
            gpus.sort_unstable();
            gpus.dedup();
        }
        RunFacts {
            known_as: run.known_as.clone(),
            state: Some(run.state),
            name: about.name.clone().unwrap_or_else(|| run.id.clone()),
            began: run.began,
            ended: run.ended,
            marked: before.map_or(run.began, |b| b.marked),
            labels,
            classed: is_classed(run, now),
            hosts,
        }
    }
}

/// A run is dropped this long after its end, milliseconds.
const FORGET_RUN_MS: i64 = 86_400_000;

/// Time after the end of a run in which its last output may still give its failure another class, milliseconds.
pub const CLASS_SETTLES_MS: i64 = 10_000;

/// An event this much older than the last evaluated time before a start counts as reported; milliseconds.
const BEFORE_START_MS: i64 = 600_000;

fn key(rule: &str, subject: &str) -> (String, String) {
    (rule.to_string(), subject.to_string())
}

/// Whether the class of a run's failure is final: what the output names, or nothing for some time.
fn is_classed(run: &Run, now: i64) -> bool {
    match (run.failure, run.ended) {
        (Some(FailureClass::Unknown | FailureClass::Stopped), Some(ended)) => now - ended >= CLASS_SETTLES_MS,
        (class, _) => class.is_some(),
    }
}

fn is_over(state: RunState) -> bool {
    !matches!(state, RunState::Running | RunState::Suspended | RunState::Unreachable | RunState::Lost)
}

fn wanted(what: &[String], finding: &Finding) -> bool {
    let is = |word: &str| {
        word == "*"
            || word == finding.kind
            || word == finding.rule
            || word == finding.severity.as_str()
            || finding.rule.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
    };
    what.iter().any(|w| !w.starts_with('!') && is(w)) && !what.iter().any(|w| w.strip_prefix('!').is_some_and(is))
}

impl Engine {
    fn with(&self, is: impl Fn(&Condition) -> bool) -> Vec<usize> {
        (0..self.rules.len()).filter(|at| is(&self.rules[*at].condition)).collect()
    }

    /// The condition has held since `began`, as known at `t`.
    fn hold_fact(&mut self, rule: usize, subject: &str, (began, t): (i64, i64), fact: Fact) {
        if !self.rules[rule].admits(&fact.labels) {
            return;
        }
        let key = key(&self.rules[rule].rule.id, subject);
        if let Some(alert) = self.orphans.remove(&key) {
            self.facts
                .entry(key.clone())
                .or_insert_with(|| Fact { state: super::series::from_alert(&alert).state, ..fact.clone() });
        }
        let own = self.facts.entry(key.clone()).or_default();
        own.state.seen = t.max(own.state.seen);
        let what = if own.state.phase == Phase::Firing {
            (own.sentence != fact.sentence).then_some(What::Changed)
        } else {
            let what = own.state.step(Step { t, dt: 0, holds: true, clears: false, hold: 0, clear: 0 });
            if !own.state.flaps() {
                own.state.began = began;
            }
            what
        };
        (own.sentence, own.labels, own.text) = (fact.sentence, fact.labels, fact.text);
        if own.state.value.abs() < fact.state.value.abs() || own.state.phase == Phase::Firing {
            (own.state.value, own.state.worst) = (fact.state.value, fact.state.worst);
        }
        if let Some(what) = what {
            self.tell_fact(&key, what, None);
        }
        self.save_fact(&key);
    }

    fn tell_fact(&mut self, key: &(String, String), what: What, why: Option<&str>) {
        let Some(fact) = self.facts.get(key) else { return };
        let Some(rule) = self.rules.iter().find(|r| r.rule.id == key.0) else { return };
        let mut sentence = fact.sentence.clone();
        if let Some(why) = why {
            sentence += &format!("; {why}");
        }
        if let Some(flaps) = fact.state.flaps.as_ref().filter(|f| f.on) {
            sentence += &format!("; flapping: {} times", flaps.count);
        }
        let mut alert = super::say::alert(rule, what, &fact.state, key.1.clone(), fact.labels.clone(), sentence);
        // After the end there is nothing to do.
        if what != What::Ended {
            alert.text.clone_from(&fact.text);
        }
        if alert.value.is_some_and(|v| v == 0.0) {
            (alert.value, alert.worst) = (None, None);
        }
        self.out.push(Transition { what, alert, event: rule.condition.is_event(), flapping: fact.state.flaps() });
    }

    /// Ends a fact.
    pub(super) fn end_fact(&mut self, key: &(String, String), t: i64, why: &str) {
        let Some(fact) = self.facts.get_mut(key) else { return };
        fact.state.seen = t;
        let what = fact.state.step(Step { t, dt: 0, holds: false, clears: true, hold: 0, clear: 0 });
        if let Some(what) = what {
            self.tell_fact(key, what, Some(why));
            if what == What::Ended
                && let Some(fact) = self.facts.get_mut(key)
            {
                fact.state.forget_flaps();
            }
        }
        if self.facts.get(key).is_some_and(|f| f.state.phase == Phase::Ok && f.state.flaps.is_none()) {
            self.facts.remove(key);
        }
        self.save_fact(key);
    }

    /// Drops a fact whose rule has changed; `was` is the old rule, None: it was removed before the start.
    pub(super) fn drop_fact(&mut self, key: &(String, String), was: Option<&Rule>, t: i64, why: &str) {
        let Some(fact) = self.facts.remove(key) else { return };
        if fact.state.fires() {
            let (began, fired) = fact.state.times();
            let alert = Alert {
                id: crate::id::alert(&key.0, &key.1, began),
                rule: key.0.clone(),
                name: was.map(|rule| rule.name.clone()).unwrap_or_default(),
                subject: key.1.clone(),
                severity: was.map_or(AlertSeverity::Info, |rule| rule.severity),
                state: AlertState::Resolved,
                began,
                fired: Some(fired),
                ended: Some(t),
                value: None,
                worst: None,
                sentence: format!("{}; {why}", fact.sentence),
                text: String::new(),
                labels: fact.labels,
                count: 1,
                acked: None,
                held: String::new(),
                unknown_since: None,
            };
            self.out.push(Transition { what: What::Ended, alert, event: false, flapping: false });
        }
        self.save_fact(key);
    }

    fn fact(labels: BTreeMap<String, String>, sentence: String) -> Fact {
        Fact { labels, sentence, ..Fact::default() }
    }

    fn host_labels(&self, source: &str) -> Option<(String, BTreeMap<String, String>)> {
        let host = &self.hosts[*self.by_id.get(source)?];
        let mut labels = host.machine.labels.clone();
        labels.insert("source".into(), host.machine.name.clone());
        Some((host.machine.name.clone(), labels))
    }

    /// Records that a machine joined at `now`.
    pub fn joined(&mut self, source: &str, now: i64) {
        let Some((name, labels)) = self.host_labels(source) else { return };
        for rule in self.with(|c| *c == Condition::SourceJoined) {
            let fact = Self::fact(labels.clone(), format!("{name} has joined"));
            self.hold_fact(rule, &name, (now, now), fact);
        }
    }

    /// Records a message from a machine other than a tick.
    pub fn record_message(&mut self, source: &str, now: i64) {
        if let Some(at) = self.by_id.get(source) {
            let heard = &mut self.hosts[*at].heard;
            *heard = now.max(*heard);
        }
    }

    /// A machine announced its stop: it is not missing until it connects again, also over a start. An alert that it is
    /// missing ends. `now` in milliseconds since the Unix epoch.
    pub fn signed_off(&mut self, source: &str, now: i64) {
        let Some(at) = self.by_id.get(source) else { return };
        if self.signed_off.contains_key(source) {
            return;
        }
        let name = self.hosts[*at].machine.name.clone();
        for rule in self.with(|c| matches!(c, Condition::SourceLost(_))) {
            let key = key(&self.rules[rule].rule.id, &name);
            self.end_fact(&key, now, "it was stopped");
        }
        self.save_sign_off(source, &name, true);
        self.signed_off.insert(source.into(), name);
    }

    /// A machine is connected: from now on its silence counts. `now` in milliseconds since the Unix epoch.
    pub fn signed_on(&mut self, source: &str, now: i64) {
        if self.forget_sign_off(source) {
            self.record_message(source, now);
        }
    }

    /// Whether it had signed off.
    pub(super) fn forget_sign_off(&mut self, source: &str) -> bool {
        let name = self.signed_off.remove(source);
        name.iter().for_each(|name| self.save_sign_off(source, name, false));
        name.is_some()
    }

    /// The driver reported an XID error of a GPU, at `t`, milliseconds since the Unix epoch.
    pub fn xid(&mut self, source: &str, gpu: Option<u32>, number: u32, t: i64) {
        let Some((name, mut labels)) = self.host_labels(source) else { return };
        labels.insert("xid".into(), number.to_string());
        let place = gpu.map_or(name.clone(), |gpu| format!("{name} GPU {gpu}"));
        if let Some(gpu) = gpu {
            labels.insert("gpu".into(), gpu.to_string());
        }
        for rule in self.with(|c| matches!(c, Condition::Xid(list) if list.is_empty() || list.contains(&number))) {
            let step = xid::by_code(number).map_or("", |xid| xid.action().next());
            let sentence = format!("{place}: XID error {number} at {}", hour(t, t));
            let fact = Fact { text: next_line(step).unwrap_or_default(), ..Self::fact(labels.clone(), sentence) };
            let key = key(&self.rules[rule].rule.id, &format!("{place} xid {number}"));
            // A repeated error within the quiet hour causes no new alert.
            if let Some(known) = self.facts.get_mut(&key).filter(|f| f.state.phase == Phase::Firing) {
                known.state.seen = t.max(known.state.seen);
                self.save_fact(&key);
                continue;
            }
            self.hold_fact(rule, &key.1, (t, t), fact);
        }
    }

    /// Sets whether the hub falls behind, with a sentence; None: it does not.
    pub fn hub_behind(&mut self, why: Option<&str>, now: i64) {
        self.own(&Condition::HubBehind, "hub", why, now);
    }

    /// Sets whether writing the history fails, with a sentence; None: it works.
    pub fn history_failed(&mut self, why: Option<&str>, now: i64) {
        self.own(&Condition::HistoryFailed, "history", why, now);
    }

    /// Sets the GPU-hours that the team has used in the present month; None without a limit. Each threshold is reported
    /// once a month: it counts as reached until the month ends, or until the use is 5 points below it, because the limit
    /// was raised.
    pub fn gpu_hours(&mut self, used: Option<&GpuHoursUsed>, now: i64) {
        for rule in self.with(|condition| matches!(condition, Condition::GpuHours(_))) {
            let Condition::GpuHours(least) = self.rules[rule].condition else { continue };
            let id = self.rules[rule].rule.id.clone();
            let percent = used.map_or(0.0, |used| 100.0 * used.hours / used.limit.max(1) as f64);
            let month = used.map(|used| used.month.as_str());
            let over = |subject: &str| Some(subject) != month || percent < f64::from(least) - GPU_HOURS_SLACK;
            let ended: Vec<(String, String)> =
                self.facts.keys().filter(|(of, subject)| *of == id && over(subject)).cloned().collect();
            for key in ended {
                self.end_fact(&key, now, if Some(key.1.as_str()) == month { "the limit is higher" } else { "over" });
            }
            if let Some(used) = used.filter(|_| percent >= f64::from(least)) {
                let hours = grouped(used.limit as f64, 0);
                let sentence = format!("{least} % of the {hours} GPU-hours of {} are used", used.month);
                // Several hubs find the same alert, because it begins with the month for each of them.
                let began = if self.hub.is_some() { used.month_began } else { now };
                self.hold_fact(rule, &used.month, (began, now), Self::fact(BTreeMap::new(), sentence));
            }
        }
    }

    fn own(&mut self, condition: &Condition, what: &str, why: Option<&str>, now: i64) {
        let (mut labels, mut subject, mut why) = (BTreeMap::new(), what.to_string(), why.map(str::to_string));
        if let Some((hub, name)) = &self.hub {
            labels.insert("hub".to_string(), hub.clone());
            subject = format!("{what} of {hub}");
            why = why.map(|why| format!("{name}: {why}"));
        }
        let subject = subject.as_str();
        for rule in self.with(|c| c == condition) {
            match &why {
                Some(why) => self.hold_fact(rule, subject, (now, now), Self::fact(labels.clone(), why.clone())),
                None => {
                    let key = key(&self.rules[rule].rule.id, subject);
                    self.end_fact(&key, now, "over");
                }
            }
        }
    }

    pub(super) fn run_name(&self, run: &str) -> String {
        self.runs.get(run).map_or_else(|| format!("run {run}"), |r| format!("run {}", r.name))
    }

    /// Assigns active runs to their machines; labels and groups of series follow.
    pub(super) fn put_runs_on_hosts(&mut self) {
        let needs = self.rules.iter().any(super::Compiled::needs_runs);
        for host in self.hosts.iter_mut().filter(|h| !h.gone) {
            let runs: Vec<(String, Vec<u32>)> = self
                .runs
                .iter()
                .filter(|(_, run)| run.state.is_some_and(|s| !is_over(s)))
                .filter_map(|(id, run)| Some((id.clone(), run.hosts.get(&host.machine.name)?.clone())))
                .collect();
            if runs != host.runs {
                host.runs = runs;
                host.rebuild |= needs;
            }
        }
    }

    /// Updates a run. Called on every change of it, and once per run after a start. `now` in milliseconds.
    pub fn run(&mut self, run: &Run, now: i64) {
        let before = self.runs.get(&run.id);
        let facts = RunFacts::new(run, before, now);
        let was = before.and_then(|b| b.state);
        let was_classed = before.is_some_and(|b| b.classed);
        let moved = before.is_none_or(|b| b.hosts != facts.hosts || b.labels != facts.labels) || was != Some(run.state);
        if before == Some(&facts) && !self.facts.keys().any(|(_, subject)| *subject == run.id) {
            return;
        }
        self.runs.insert(run.id.clone(), facts.clone());
        self.save_run(&run.id);
        if moved {
            self.put_runs_on_hosts();
        }
        if !self.judges(&facts) {
            return;
        }
        let at = run.ended.unwrap_or(now);
        // A run that ended before the last stored state was reported then.
        let old = was.is_none() && is_over(run.state) && at < self.horizon() - BEFORE_START_MS;
        for rule in self.with(|c| matches!(c, Condition::Run(_))) {
            let Condition::Run(states) = &self.rules[rule].condition else { continue };
            let key = key(&self.rules[rule].rule.id, &run.id);
            let open = self.facts.get(&key).is_some_and(|f| f.state.fires()) || self.orphans.contains_key(&key);
            let waits = self.rules[rule].needs_class();
            if waits && run.failure.is_some() && !facts.classed {
                continue;
            }
            if states.contains(&run.state) {
                let is_new = (was != Some(run.state) || waits && facts.classed && !was_classed) && !old;
                if open || is_new {
                    let mut labels = facts.labels.clone();
                    if let Some(cause) = &run.cause {
                        labels.insert("source".into(), cause.source.clone());
                        labels.extend(cause.rank.map(|rank| ("rank".to_string(), rank.to_string())));
                    } else if let (Some(host), true) = (facts.hosts.keys().next(), facts.hosts.len() == 1) {
                        labels.insert("source".into(), host.clone());
                    }
                    let mut fact = Self::fact(labels, format!("run {}: {}", facts.name, run_words(run)));
                    fact.state.seen = at;
                    self.hold_fact(rule, &run.id, (at, now.max(at)), fact);
                }
            } else if open {
                let why = format!("it is {}", run.state.name().replace('_', " "));
                self.end_fact(&key, now, &why);
            }
        }
        if is_over(run.state) {
            let lasting = self.with(|c| matches!(c, Condition::RunLonger(_) | Condition::RunSilent(_)));
            for rule in lasting {
                let key = key(&self.rules[rule].rule.id, &run.id);
                self.end_fact(&key, at, "it has ended");
            }
        }
    }

    /// Ids of known runs that have not ended.
    pub fn open_runs(&self) -> impl Iterator<Item = &str> {
        let open = |run: &RunFacts| run.ended.is_none() && run.state.is_none_or(|state| !is_over(state));
        self.runs.iter().filter(move |(_, run)| open(run)).map(|(id, _)| id.as_str())
    }

    /// Records a marker of a run at `t`, milliseconds since the Unix epoch.
    pub fn marker(&mut self, run: &str, t: i64) {
        // Machines may use their own id for it where another run is listed under that id.
        let own = |(id, facts): &(&String, &mut RunFacts)| *id == run || facts.known_as.as_deref() == Some(run);
        for (_, facts) in self.runs.iter_mut().filter(own).filter(|(_, facts)| facts.began <= t) {
            facts.marked = facts.marked.max(t);
        }
    }

    /// Updates a finding that was raised, has changed, or has ended.
    pub fn finding(&mut self, finding: &Finding, now: i64) {
        self.findings.insert(finding.id.clone(), finding.clone());
        self.judge_finding(finding, now);
        if finding.until.is_some() {
            self.findings.remove(&finding.id);
        }
    }

    /// Ids of known findings that have not ended.
    pub fn findings(&self) -> impl Iterator<Item = &str> {
        self.findings.keys().map(String::as_str)
    }

    /// Ends the alerts of a finding that is gone without an end. `now` in milliseconds since the Unix epoch. An unknown
    /// id changes nothing.
    pub fn finding_gone(&mut self, id: &str, now: i64) {
        self.findings.remove(id);
        for rule in self.with(|c| matches!(c, Condition::Finding { .. })) {
            let key = key(&self.rules[rule].rule.id, id);
            if self.facts.contains_key(&key) {
                self.end_fact(&key, now, "it is no longer reported");
            }
        }
    }

    fn judge_finding(&mut self, finding: &Finding, now: i64) {
        for rule in self.with(|c| matches!(c, Condition::Finding { .. })) {
            let Condition::Finding { what, hold } = &self.rules[rule].condition else { continue };
            let key = key(&self.rules[rule].rule.id, &finding.id);
            let open = self.facts.get(&key).is_some_and(|f| f.state.fires()) || self.orphans.contains_key(&key);
            let (hold, wanted) = (i64::from(*hold), wanted(what, finding));
            if open && finding.until.is_some() {
                self.end_fact(&key, finding.until.unwrap_or(0) * 1000, "over");
                continue;
            }
            if let (true, Some(root)) = (open, &finding.because) {
                let why = self.findings.get(root).map_or("it is a consequence of another".into(), |r| {
                    format!("a consequence of: {}", r.sentence_utc())
                });
                self.end_fact(&key, now, &why);
                continue;
            }
            let due = now >= (finding.since + hold) * 1000;
            if finding.until.is_some() || finding.because.is_some() || !(open || wanted && due) {
                continue;
            }
            let mut labels = BTreeMap::from([("finding".to_string(), finding.kind.clone())]);
            labels.extend(finding.user.clone().map(|user| ("user".to_string(), user)));
            if let Some(place) = finding.subject.first() {
                if let Some(host) = self.hosts.iter().find(|h| h.machine.name == place.source) {
                    labels.extend(host.machine.labels.clone());
                    let mut runs = host.runs.iter().filter(|(_, gpus)| {
                        place.gpus.is_empty() || gpus.is_empty() || place.gpus.iter().any(|g| gpus.contains(g))
                    });
                    if let (Some((run, _)), None) = (runs.next(), runs.next()) {
                        labels.extend(self.runs.get(run).map(|r| r.labels.clone()).unwrap_or_default());
                    }
                }
                labels.insert("source".into(), place.source.clone());
                if let [gpu] = place.gpus[..] {
                    labels.insert("gpu".into(), gpu.to_string());
                }
            }
            let fact = Fact {
                text: next_line(&finding.next).unwrap_or_default(),
                ..Self::fact(labels, finding.sentence_utc())
            };
            self.hold_fact(rule, &finding.id, (finding.since * 1000, now), fact);
        }
    }

    pub(super) fn judge_findings(&mut self, now: i64) {
        for finding in self.findings.values().cloned().collect::<Vec<_>>() {
            self.judge_finding(&finding, now);
        }
    }

    /// Evaluates conditions that depend on time alone; to be called once a second.
    pub fn poll(&mut self, now: i64) {
        self.poll_sources(now);
        self.poll_runs(now);
        if self.rules.iter().any(|r| matches!(r.condition, Condition::Finding { hold, .. } if hold > 0)) {
            self.judge_findings(now);
        }
        let over: Vec<_> = self
            .facts
            .iter()
            .filter(|(key, fact)| {
                let event = self.rules.iter().any(|r| r.rule.id == key.0 && r.condition.is_event());
                let settles = fact.state.phase == Phase::Ok && fact.state.flaps.is_some();
                settles || (event && fact.state.phase == Phase::Firing && now - fact.state.seen >= EVENT_MS)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            self.end_fact(&key, now, "an hour ago");
        }
        if now - self.started >= ORPHAN_MS {
            self.end_orphans(now);
        }
        if now - self.swept >= SWEEP_MS || now < self.swept {
            self.swept = now;
            self.sweeps += 1;
            self.sweep(self.sweeps.is_multiple_of(WINDOW_SWEEPS), now);
        }
    }

    fn poll_sources(&mut self, now: i64) {
        for rule in self.with(|c| matches!(c, Condition::SourceLost(_))) {
            let Condition::SourceLost(hold) = self.rules[rule].condition else { continue };
            let hold = i64::from(hold) * 1000;
            for at in 0..self.hosts.len() {
                let host = &self.hosts[at];
                let is_off = self.signed_off.contains_key(&host.machine.id);
                if host.gone || is_off || !self.rules[rule].admits_machine(&host.machine) {
                    continue;
                }
                // A machine without messages since the start may still be reconnecting.
                let heard = if host.heard == 0 { self.judged_since(&host.machine.name) } else { host.heard };
                let grace = if host.heard == 0 { hold.max(LOST_AFTER_START_MS) } else { hold };
                let name = host.machine.name.clone();
                let key = key(&self.rules[rule].rule.id, &name);
                if now - heard >= grace {
                    let open = self.facts.get(&key).is_some_and(|f| f.state.phase == Phase::Firing);
                    if open {
                        continue;
                    }
                    let Some((_, labels)) = self.host_labels(&self.hosts[at].machine.id) else { continue };
                    let fact = Self::fact(labels, format!("no data from {name} since {}", hour(heard, now)));
                    self.hold_fact(rule, &name, (heard, now), fact);
                } else if host.heard != 0 && self.facts.contains_key(&key) {
                    let why = match self.facts.get(&key) {
                        Some(fact) => format!("data again after {}", rough_duration(heard - fact.state.began)),
                        None => String::new(),
                    };
                    self.end_fact(&key, now, &why);
                }
            }
        }
    }

    fn poll_runs(&mut self, now: i64) {
        let forgotten = &mut self.forgotten;
        self.runs.retain(|id, run| {
            let stays = run.ended.is_none_or(|ended| now - ended < FORGET_RUN_MS);
            if !stays {
                forgotten.push(id.clone());
            }
            stays
        });
        for rule in self.with(|c| matches!(c, Condition::RunLonger(_) | Condition::RunSilent(_))) {
            let (hold, silent) = match self.rules[rule].condition {
                Condition::RunLonger(hold) => (hold, false),
                Condition::RunSilent(hold) => (hold, true),
                _ => continue,
            };
            let alive: Vec<(String, RunFacts)> = self
                .runs
                .iter()
                .filter(|(_, r)| r.ended.is_none() && r.state == Some(RunState::Running) && self.judges(r))
                .map(|(id, r)| (id.clone(), r.clone()))
                .collect();
            for (id, run) in alive {
                let since = if silent { run.marked.max(run.began) } else { run.began };
                let key = key(&self.rules[rule].rule.id, &id);
                let open = self.facts.get(&key).is_some_and(|f| f.state.phase == Phase::Firing);
                if now - since >= i64::from(hold) * 1000 {
                    if open {
                        continue;
                    }
                    let sentence = match silent {
                        true => format!("run {} has had no marker since {}", run.name, hour(since, now)),
                        false => format!("run {} has run for {}", run.name, rough_duration(now - since)),
                    };
                    self.hold_fact(rule, &id, (since, now), Self::fact(run.labels.clone(), sentence));
                } else if open {
                    self.end_fact(&key, now, "it continues");
                }
            }
        }
    }

    /// Ends alerts that fired before the start and whose subject is gone.
    fn end_orphans(&mut self, now: i64) {
        let silent = |engine: &Engine, labels: &BTreeMap<String, String>| {
            // A machine without messages since the start may still have it.
            let name = labels.get("source");
            let young = |name: &String| now - engine.judged_since(name) < ORPHAN_MS;
            if name.is_some_and(young) {
                return true;
            }
            engine.hosts.iter().any(|h| !h.gone && h.ticks == 0 && Some(&h.machine.name) == name)
        };
        let over: Vec<_> =
            self.orphans.iter().filter(|(_, a)| !silent(self, &a.labels)).map(|(key, _)| key.clone()).collect();
        for key in over {
            let Some(mut alert) = self.orphans.remove(&key) else { continue };
            self.kept.remove(&key);
            (alert.state, alert.ended) = (AlertState::Resolved, Some(now));
            alert.sentence += "; it is no longer watched";
            self.forget(&key);
            self.out.push(Transition { what: What::Ended, alert, event: false, flapping: false });
        }
        let lost: Vec<_> = self
            .facts
            .iter()
            .filter(|((rule, subject), fact)| {
                let of = self.rules.iter().find(|r| r.rule.id == *rule).map(|r| &r.condition);
                let young = fact.labels.get("source").is_some_and(|name| now - self.judged_since(name) < ORPHAN_MS);
                matches!(of, Some(Condition::Finding { .. })) && !self.findings.contains_key(subject) && !young
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in lost {
            self.end_fact(&key, now, "over");
        }
    }
}

fn run_words(run: &Run) -> String {
    let mut words = if run.sentence.is_empty() { run.state.name().replace('_', " ") } else { run.sentence.clone() };
    let is_vague = matches!(run.state, RunState::Failed | RunState::Crashed);
    if let Some(class) = run.failure.filter(|class| is_vague && *class != FailureClass::Unknown) {
        words += &format!(": {}", class.words());
    }
    if let Some(cause) = &run.cause {
        let rank = cause.rank.map(|r| format!(", rank {r}")).unwrap_or_default();
        words += &format!(" on {}{rank}", cause.source);
    }
    words
}
