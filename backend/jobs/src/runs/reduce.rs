//! The list of runs, made from the records of machines.

use crate::failure::class_of;
use shared::failure::FailureClass;
use shared::record::Record;
use shared::run::{
    BEGIN_KIND, Begun, Cause, END_KIND, How, MAX_PROCESSES, Over, Paused, Run, RunProcess, RunState, STATE_KIND,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ends within this time count as one failure, milliseconds. A launcher ends the other ranks by SIGTERM, and itself, as
/// soon as the first one fails. The kernel reports these ends in any order.
const TOGETHER_MS: i64 = 5_000;

/// The launcher of ranks without a given number: each machine counts its own.
pub(super) const COUNTED: &str = "gpu";

/// Maximum number of runs of a machine; above it the oldest are dropped.
const MAX_RUNS: usize = 100_000;

/// Number of runs beyond the maximum that are dropped at once.
const SURPLUS: usize = 1_000;

/// A silent machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Silence {
    /// Its last contact, milliseconds since the Unix epoch.
    pub since: i64,
    /// It has been silent for longer than agents buffer unsent data.
    pub for_good: bool,
}

/// Runs, made from the records of sources.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// By ID, and by start where the ID is an address.
    runs: BTreeMap<(String, Option<i64>), Arc<Run>>,
}

impl Runs {
    /// Applies a record of a source. A record about no run, or an unreadable one, changes nothing; a repeated record
    /// counts once.
    pub fn take(&mut self, source: &str, record: &Record) {
        match record.kind.as_str() {
            BEGIN_KIND => {
                if let Ok(begun) = serde_json::from_slice::<Begun>(&record.body) {
                    self.process(source, begun);
                }
            }
            END_KIND => {
                if let Ok(over) = serde_json::from_slice::<Over>(&record.body)
                    && let Some(process) = self.process(source, over.begun)
                {
                    process.ended = Some(over.t);
                    // A scheduler's claim about an end, and the class of its output, may arrive before the end is repeated.
                    let known = process.how.take().unwrap_or_default();
                    let claim = over.how.claim.clone().or(known.claim);
                    process.how = Some(How { claim, failure: over.how.failure.or(known.failure), ..over.how });
                }
            }
            STATE_KIND => {
                if let Ok(Paused { run, pid, stopped, unheard }) = serde_json::from_slice(&record.body) {
                    let own = |one: &&mut RunProcess| one.source == source && one.pid == pid && one.ended.is_none();
                    let all = self.runs.range_mut((run.clone(), None)..).take_while(|((id, _), _)| *id == run);
                    for (_, run) in all {
                        Arc::make_mut(run)
                            .processes
                            .iter_mut()
                            .filter(own)
                            .for_each(|one| (one.stopped, one.unheard) = (stopped, unheard));
                    }
                }
            }
            _ => {}
        }
    }

    /// The process that began, inserted if it is new; None beyond [`MAX_PROCESSES`].
    fn process(&mut self, source: &str, begun: Begun) -> Option<&mut RunProcess> {
        let Begun { run: id, t, pid, joined, rank, told, about, generation, reserved, .. } = begun;
        // The time comes from another machine.
        let t = t.max(0);
        let label = about.label.clone();
        if self.runs.len() >= MAX_RUNS + SURPLUS {
            self.forget_oldest();
        }
        let run = self.runs.entry((id.clone(), generation)).or_insert_with(|| {
            Arc::new(Run {
                id,
                known_as: None,
                state: RunState::Running,
                sentence: String::new(),
                cause: None,
                failure: None,
                began: t,
                ended: None,
                about: about.clone(),
                processes: Vec::new(),
                further: 0,
                edited: None,
            })
        });
        let run = Arc::make_mut(run);
        // The names come from the process that began the run, in whatever order the machines' records are read.
        if !joined {
            run.about = about;
        }
        run.began = run.began.min(t);
        let known = |one: &RunProcess| (one.source.as_str(), one.pid, one.began) == (source, pid, t);
        if let Some(at) = run.processes.iter().position(known) {
            let known = run.processes.get_mut(at)?;
            known.rank = rank.or(known.rank.take());
            known.reserved = reserved.or(known.reserved.take());
            known.label = label.or(known.label.take());
            return Some(known);
        }
        if run.processes.len() == MAX_PROCESSES {
            run.further += 1;
            return None;
        }
        let source = source.into();
        run.processes.push(RunProcess {
            source,
            pid,
            label,
            began: t,
            ended: None,
            how: None,
            joined,
            stopped: false,
            rank,
            reserved,
            told,
            unheard: None,
        });
        run.processes.last_mut()
    }

    /// All runs, without a state yet, each with its generation.
    pub(super) fn all(&self) -> impl Iterator<Item = (Option<i64>, &Arc<Run>)> {
        self.runs.iter().map(|((_, generation), run)| (*generation, run))
    }

    fn forget_oldest(&mut self) {
        let mut begins: Vec<i64> = self.runs.values().map(|run| run.began).collect();
        let (_, last, _) = begins.select_nth_unstable(SURPLUS);
        let last = *last;
        self.runs.retain(|_, run| run.began > last);
    }
}

/// Whether a user has a name; the number of a user unknown to its machine may be the same person elsewhere.
fn is_name(user: &str) -> bool {
    user.bytes().any(|byte| !byte.is_ascii_digit())
}

/// The part of a run that one machine knows.
#[derive(Clone, Debug)]
pub(super) struct RunPart {
    /// Key of the machine.
    pub key: Arc<str>,
    /// Name of the machine.
    pub name: Arc<str>,
    /// Its team; None where machines belong to none.
    pub team: Option<Arc<str>>,
    /// Number of the job among those of its address, as [`Begun::generation`].
    pub generation: Option<i64>,
    pub run: Arc<Run>,
}

impl RunPart {
    /// Whether it has the process that began the run.
    fn is_root(&self) -> bool {
        self.run.processes.iter().any(|process| !process.joined)
    }

    fn user(&self) -> Option<&String> {
        self.run.about.user.as_ref().filter(|user| is_name(user))
    }

    /// Whether it may be part of the same run as another: of the same team, and of the same user if both name one. The
    /// ID of a run is no secret.
    fn fits(&self, other: &RunPart) -> bool {
        let users = self.user().zip(other.user());
        self.team == other.team && users.is_none_or(|(one, other)| one == other)
    }
}

/// Splits the parts of one ID into runs, by the order of the machines. A run belongs to the machine on which it began;
/// parts that joined on other machines affect neither its name nor its state. Two machines that began it have two runs.
/// Times come from the machines, so they are used in one case only: to match ranks to the jobs of an address.
pub(super) fn apart(parts: Vec<RunPart>) -> Vec<Vec<RunPart>> {
    if parts.len() <= 1 {
        return vec![parts];
    }
    let (jobs, parts): (Vec<RunPart>, Vec<RunPart>) = parts.into_iter().partition(|part| part.generation.is_some());
    let mut runs = if parts.is_empty() { Vec::new() } else { by_begin(parts) };
    runs.extend(together(jobs));
    runs
}

/// Splits the parts whose ID is no address.
fn by_begin(parts: Vec<RunPart>) -> Vec<Vec<RunPart>> {
    let (roots, joined): (Vec<RunPart>, Vec<RunPart>) = parts.iter().cloned().partition(RunPart::is_root);
    let mut runs: Vec<Vec<RunPart>> = roots.into_iter().map(|root| vec![root]).collect();
    let mut others: Vec<Vec<RunPart>> = Vec::new();
    for part in joined {
        let mut fits = false;
        for run in runs.iter_mut().filter(|run| run[0].fits(&part)) {
            fits = true;
            run.push(part.clone());
        }
        if fits {
            continue;
        }
        match others.iter_mut().find(|run| run.iter().all(|own| own.fits(&part))) {
            Some(run) => run.push(part),
            None => others.push(vec![part]),
        }
    }
    runs.append(&mut others);
    // The machine that came first has the ID.
    let place = |run: &[RunPart]| parts.iter().position(|part| part.key == run[0].key);
    runs.sort_by_key(|run| place(run));
    runs
}

/// Groups parts into the jobs of an address. One job runs on several machines at once, each machine knows it once, and
/// none of its ranks runs twice. If several parts fit, those that began next to each other belong together: clocks
/// differ by less than jobs last, and ranks may come late.
fn together(mut parts: Vec<RunPart>) -> Vec<Vec<RunPart>> {
    parts.sort_by(|a, b| (a.run.began, &a.key).cmp(&(b.run.began, &b.key)));
    let spans: Vec<(i64, i64)> = parts.iter().map(|part| span(&part.run)).collect();
    let mut pairs: Vec<(i64, usize, usize)> = Vec::new();
    for (first, span) in spans.iter().enumerate() {
        let later = spans.iter().enumerate().skip(first + 1).take_while(|(_, later)| later.0 < span.1);
        let beside = later.filter(|(_, later)| are_together(*span, **later));
        pairs.extend(beside.map(|(second, later)| (later.0 - span.0, first, second)));
    }
    pairs.sort_unstable();
    let mut runs: Vec<Vec<usize>> = (0..parts.len()).map(|at| vec![at]).collect();
    let mut run_of: Vec<usize> = (0..parts.len()).collect();
    for (_, first, second) in pairs {
        let (one, other) = (run_of[first], run_of[second]);
        let fit = |a: usize, b: usize| {
            let (a, b) = (&parts[a], &parts[b]);
            a.key != b.key && a.fits(b) && !has_rank_of(&a.run, &b.run)
        };
        if one == other || !runs[one].iter().all(|a| runs[other].iter().all(|b| fit(*a, *b))) {
            continue;
        }
        let moved = std::mem::take(&mut runs[other]);
        moved.iter().for_each(|at| run_of[*at] = one);
        runs[one].extend(moved);
    }
    let own = |mut run: Vec<usize>| {
        run.sort_unstable();
        run.into_iter().map(|at| parts[at].clone()).collect()
    };
    runs.into_iter().filter(|run| !run.is_empty()).map(own).collect()
}

/// Start and end of a part of a run; the end of time while a process is running.
fn span(run: &Run) -> (i64, i64) {
    let ends = run.processes.iter().map(|one| one.ended.unwrap_or(i64::MAX));
    (run.began, ends.max().unwrap_or(i64::MAX).max(run.began))
}

/// Whether two spans overlap for at least half of the shorter one.
fn are_together(a: (i64, i64), b: (i64, i64)) -> bool {
    let both = a.1.min(b.1).saturating_sub(a.0.max(b.0));
    both >= 0 && both >= a.1.saturating_sub(a.0).min(b.1.saturating_sub(b.0)) / 2
}

/// Whether a rank runs in both at once. Ranks that this program numbered do not count.
fn has_rank_of(a: &Run, b: &Run) -> bool {
    let ranks = |run: &Run| -> Vec<(u32, (i64, i64))> {
        let of = |one: &RunProcess| {
            let rank = one.rank.as_ref().filter(|rank| rank.launcher != COUNTED)?;
            Some((rank.rank, (one.began, one.ended.unwrap_or(i64::MAX))))
        };
        run.processes.iter().filter_map(of).collect()
    };
    let others = ranks(b);
    ranks(a).iter().any(|(rank, span)| others.iter().any(|(other, time)| other == rank && are_together(*span, *time)))
}

/// Merges the parts of several machines into one run; the first machine began it.
pub(super) fn merged(parts: &[RunPart]) -> Option<Run> {
    let first = parts.first()?;
    let mut whole = Run { processes: Vec::new(), further: 0, ..Run::clone(&first.run) };
    for RunPart { name, run: part, .. } in parts {
        if !first.is_root() {
            whole.began = whole.began.min(part.began);
        }
        let room = MAX_PROCESSES - whole.processes.len();
        whole.further += part.further + part.processes.len().saturating_sub(room) as u64;
        // A machine may have another name by now; and only the first one has begun the run.
        let own = part.processes.iter().take(room).map(|one| RunProcess { source: name.to_string(), ..one.clone() });
        whole.processes.extend(own);
    }
    Some(whole)
}

/// The run between two times, milliseconds since the Unix epoch; None if it was not there then.
pub(super) fn clipped(mut run: Run, (from, to): (i64, i64)) -> Option<Run> {
    run.processes.retain(|one| one.began <= to && one.ended.is_none_or(|ended| ended >= from));
    for one in &mut run.processes {
        if one.ended.is_some_and(|ended| ended > to) {
            (one.ended, one.how) = (None, None);
        }
    }
    (!run.processes.is_empty()).then_some(run)
}

/// The run with its times limited to a span, milliseconds since the Unix epoch, so that nothing outside it is read.
pub fn limited(run: &Run, (from, to): (i64, i64)) -> Run {
    let mut run = run.clone();
    run.began = run.began.clamp(from, to);
    run.ended = Some(run.ended.unwrap_or(to).clamp(from, to));
    run.processes.retain(|one| one.began <= to && one.ended.is_none_or(|ended| ended >= from));
    for one in &mut run.processes {
        one.began = one.began.max(from);
        one.ended = Some(one.ended.map_or(to, |ended| ended.min(to)));
    }
    run
}

/// Sets the run's state: that of the process that began it, else of all processes. If several failed, the first failure
/// is the cause.
pub(super) fn judged(mut run: Run, silent: &impl Fn(&str) -> Option<Silence>) -> Run {
    run.processes.sort_by_key(|process| process.began);
    let root = deciding_root(&run.processes);
    let counted = counted(&run.processes);
    let over = match root {
        // All processes that began it have ended with the deciding one.
        Some(root) => root.ended.and(run.processes.iter().filter(|one| !one.joined).filter_map(|one| one.ended).max()),
        None => counted.iter().map(|one| one.ended).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max()),
    };
    run.ended = over;
    if over.is_none() {
        // The state of a begun run comes from the machine on which it began.
        let of_root = root.map(|root| root.source.clone());
        let has_say = |process: &&RunProcess| of_root.as_ref().is_none_or(|source| process.source == *source);
        let running = run.processes.iter().filter(has_say).filter(|process| process.ended.is_none());
        let stopped = running.clone().count() > 0 && running.clone().all(|process| process.stopped);
        let unheard = running.clone().filter_map(|process| {
            let of_source = silent(&process.source).map(|silence| (silence, process.source.clone()));
            let of_launcher = process.unheard.map(|since| Silence { since, for_good: false });
            of_source.or_else(|| Some((of_launcher?, "its launcher".into())))
        });
        let (unheard, told) = (unheard.min(), running.clone().any(|process| process.told));
        (run.state, run.sentence) = match unheard {
            Some((Silence { since, for_good: true }, source)) => {
                run.ended = Some(since);
                (RunState::Lost, format!("lost: no samples from {source} for 12 h"))
            }
            Some((_, source)) => (RunState::Unreachable, format!("{source} is not reporting")),
            None if stopped => (RunState::Suspended, "suspended".into()),
            None if told => (RunState::Running, "running (as reported)".into()),
            None => (RunState::Running, "running".into()),
        };
        return run;
    }
    let ended = counted.iter().filter_map(|one| Some((one.ended?, one.how.as_ref()?, one)));
    let bad = ended.filter(|(_, how, _)| !matches!(how.state(), RunState::Finished | RunState::Ended));
    let bad: Vec<_> = bad.collect();
    let earliest = bad.iter().map(|(t, ..)| *t).min().unwrap_or_default();
    let together = bad.into_iter().filter(|(t, ..)| t - earliest <= TOGETHER_MS);
    let asked = |how: &shared::run::How| how.signal.as_deref() == Some("SIGTERM");
    let first = together.min_by_key(|(t, how, one)| (asked(how), !one.joined, *t)).map(|(_, how, one)| (how, one));
    let own = root.and_then(|root| root.how.as_ref());
    let how = own.or(first.map(|(how, _)| how)).cloned();
    let how = how.or_else(|| counted.iter().find_map(|one| one.how.clone())).unwrap_or_default();
    run.state = how.state();
    run.sentence = how.sentence();
    run.cause = first.filter(|_| run.state != RunState::Finished).map(|(how, one)| Cause {
        source: one.source.clone(),
        pid: one.pid,
        rank: one.rank.as_ref().map(|rank| rank.rank),
        t: one.ended.unwrap_or_default(),
        state: how.state(),
        sentence: how.sentence(),
    });
    run.failure = failure(&how, first.map(|(how, _)| how));
    if let Some((cause, process)) = first.filter(|_| run.state != RunState::Finished)
        && root.is_none_or(|root| root.pid != process.pid || root.source != process.source)
    {
        let name = match (&process.label, &process.rank) {
            (Some(label), _) => label.clone(),
            (None, Some(rank)) => format!("rank {}", rank.rank),
            (None, None) => format!("process {}", process.pid),
        };
        run.sentence += &format!("; first {name} on {}: {}", process.source, cause.sentence());
    }
    run
}

/// The process that decides the end of a run: the one that began it. If several began it under one ID, because no server
/// gave one of them another ID, the run goes on until all have ended; then the first that failed decides, else the last.
fn deciding_root(processes: &[RunProcess]) -> Option<&RunProcess> {
    let roots = || processes.iter().filter(|process| !process.joined);
    let is_bad = |one: &RunProcess| {
        one.how.as_ref().is_some_and(|how| !matches!(how.state(), RunState::Finished | RunState::Ended))
    };
    let open = roots().find(|root| root.ended.is_none());
    let bad = || roots().filter(|root| is_bad(root)).min_by_key(|root| root.ended);
    open.or_else(bad).or_else(|| roots().max_by_key(|root| root.ended))
}

/// The class of the failure of a run that ended like this, with the end of the process that failed first. A launcher's
/// own output may name what that of its rank does not.
fn failure(how: &How, first: Option<&How>) -> Option<FailureClass> {
    let own = class_of(how)?;
    let is_named = |class: &FailureClass| *class != FailureClass::Unknown;
    Some(first.and_then(class_of).filter(is_named).unwrap_or(own))
}

/// The processes that decide the state of a run. Only ranks of the last life count, which began when all before it had
/// ended. So a launcher that restarts its ranks is not judged by those that failed before.
fn counted(processes: &[RunProcess]) -> Vec<&RunProcess> {
    let mut life: Vec<&RunProcess> = Vec::new();
    for one in processes.iter().filter(|one| one.rank.is_some() && one.joined) {
        if life.iter().all(|before| before.ended.is_some_and(|ended| ended < one.began)) {
            life.clear();
        }
        life.push(one);
    }
    processes.iter().filter(|one| one.rank.is_none() || !one.joined).chain(life).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use shared::json::Number;
    use shared::run::{About, Claim, Reserved};

    impl Runs {
        /// The runs, newest first. `silent` returns the last contact of a silent source.
        fn list(self, silent: impl Fn(&str) -> Option<Silence>) -> Vec<Run> {
            let own = |run: Arc<Run>| judged(Arc::unwrap_or_clone(run), &silent);
            let mut all: Vec<Run> = self.runs.into_values().map(own).collect();
            all.sort_by(|a, b| b.began.cmp(&a.began).then_with(|| a.id.cmp(&b.id)));
            all
        }
    }

    fn how(exit: Option<i32>, signal: Option<&str>) -> How {
        How { exit, signal: signal.map(Into::into), ..How::default() }
    }

    fn begun(run: &str, pid: u32, t: i64, joined: bool) -> Begun {
        let about = About { program: "train".into(), label: joined.then(|| format!("rank {pid}")), ..About::default() };
        Begun { run: run.into(), t, pid, joined, about, ..Begun::default() }
    }

    #[test]
    fn reservations_of_all_machines_are_added_and_those_of_one_machine_count_once() {
        let mut runs = Runs::default();
        let part = |gpus: &[u32], millicores, memory_bytes| Reserved {
            by: "slurm".into(),
            gpus: gpus.to_vec(),
            millicores,
            memory_bytes,
            since: Some(-4_000),
            until: Some(60_000),
        };
        let mut begin = |source: &str, pid, reserved| {
            let begun = Begun { reserved, ..begun("one", pid, i64::from(pid), pid > 1) };
            runs.take(source, &record(BEGIN_KIND, &begun));
            runs.clone().list(|_| None)[0].reserved(6_000)
        };
        assert_eq!(begin("a", 1, None), None, "an unknown reservation is no reservation of nothing");
        begin("a", 2, Some(part(&[0, 1], Some(8_000), Some(4 << 30))));
        begin("a", 3, Some(part(&[1], Some(2_500), Some(4 << 30))));
        let all = begin("b", 4, Some(part(&[1], Some(1_500), None))).expect("known");
        let number = |value: Option<Number>| value.map(|value| value.0);
        assert_eq!((all.by.as_str(), all.gpus, number(all.cores)), ("slurm", Some(3), Some(9.5)));
        assert_eq!(number(all.memory_bytes), None, "the memory of one machine is unknown");
        assert_eq!((number(all.limit_seconds), number(all.used_seconds)), (Some(64.0), Some(10.0)));
    }

    #[test]
    fn a_run_that_two_processes_began_goes_on_until_both_have_ended_and_the_failure_counts() {
        let mut runs = Runs::default();
        let over =
            |pid, t, end, status| Over { begun: begun("one", pid, t, false), t: end, how: how(Some(status), None) };
        let state = |runs: &Runs| {
            let run = runs.clone().list(|_| None).remove(0);
            (run.state, run.ended, run.sentence)
        };
        runs.take("node", &record(BEGIN_KIND, &begun("one", 1, 10, false)));
        runs.take("node", &record(BEGIN_KIND, &begun("one", 2, 20, false)));
        runs.take("node", &record(END_KIND, &over(1, 10, 30, 3)));
        assert_eq!(state(&runs), (RunState::Running, None, "running".into()));
        runs.take("node", &record(END_KIND, &over(2, 20, 40, 0)));
        let (state, ended, sentence) = state(&runs);
        assert_eq!((state, ended), (RunState::Failed, Some(40)));
        assert!(sentence.starts_with("failed (exit 3)"), "{sentence}");
    }

    fn record(kind: &str, body: &impl Serialize) -> Record {
        Record { n: 1, t: 0, kind: kind.into(), body: serde_json::to_vec(body).expect("JSON") }
    }

    /// The part of the run "a" on a machine of a team: its process began at `t`, and ended so.
    fn part(
        source: &str,
        team: Option<&str>,
        user: Option<&str>,
        (t, joined): (i64, bool),
        end: Option<How>,
    ) -> RunPart {
        let mut runs = Runs::default();
        let mut begun = begun("a", 7, t, joined);
        begun.about.user = user.map(Into::into);
        begun.about.name = Some(format!("as {source} calls it"));
        runs.take(source, &record(BEGIN_KIND, &begun));
        if let Some(how) = end {
            runs.take(source, &record(END_KIND, &Over { begun, t: t + 5, how }));
        }
        let run = runs.all().next().expect("a run").1.clone();
        RunPart { key: source.into(), name: source.into(), team: team.map(Into::into), generation: None, run }
    }

    fn names(runs: &[Vec<RunPart>]) -> Vec<Vec<&str>> {
        runs.iter().map(|run| run.iter().map(|part| &*part.name).collect()).collect()
    }

    #[test]
    fn the_class_of_a_failure_and_a_schedulers_word_may_come_in_any_order() {
        let begun = begun("a", 7, 10, false);
        let over = |how| record(END_KIND, &Over { begun: begun.clone(), t: 20, how });
        let failed = how(Some(1), None);
        let read = How { failure: Some(FailureClass::NcclTimeout), ..failed.clone() };
        let word = |word: &str| Some(Claim { who: "slurm".into(), word: word.into() });
        let classes = |ends: &[&How]| {
            let mut runs = Runs::default();
            ends.iter().for_each(|end| runs.take("node-1", &over((*end).clone())));
            runs.list(|_| None).remove(0).failure
        };
        let (plain, time) =
            (How { claim: word("FAILED"), ..failed.clone() }, How { claim: word("TIMEOUT"), ..failed.clone() });
        assert_eq!(classes(&[&failed]), Some(FailureClass::Unknown));
        assert_eq!(classes(&[&failed, &read, &plain]), Some(FailureClass::NcclTimeout));
        assert_eq!(classes(&[&failed, &plain, &read]), Some(FailureClass::NcclTimeout));
        // The scheduler knows that it ended the job.
        assert_eq!(classes(&[&failed, &read, &time]), Some(FailureClass::Stopped));
        assert_eq!(classes(&[&how(Some(0), None)]), None);
        let rank = Over { begun: Begun { pid: 9, joined: true, ..begun.clone() }, t: 20, how: read };
        let mut runs = Runs::default();
        runs.take("node-1", &record(END_KIND, &rank));
        runs.take("node-1", &over(failed));
        assert_eq!(runs.list(|_| None)[0].failure, Some(FailureClass::NcclTimeout), "that of the first to fail");
    }

    #[test]
    fn a_run_is_one_users_on_all_machines() {
        let part = |source: &str, user, t, joined| part(source, None, user, (t, joined), None);
        let (root, rank) = (false, true);
        let ann = [part("node-1", Some("ann"), 10, root), part("node-2", Some("ann"), 12, rank)];
        let bob = part("node-3", Some("bob"), 11, rank);
        let all = apart([&ann[..], &[bob]].concat());
        assert_eq!(
            names(&all),
            [vec!["node-1", "node-2"], vec!["node-3"]],
            "another user knows the id: it is another run"
        );
        // A machine without a user name does not contradict.
        let unnamed = [part("node-2", Some("1000"), 9, rank), part("node-3", None, 11, rank)];
        assert_eq!(names(&apart([&ann[..1], &unnamed].concat())), [["node-1", "node-2", "node-3"]]);
        // Ranks that nobody began form one run, too, user by user.
        let ranks = [("node-1", "ann"), ("node-2", "bob"), ("node-3", "ann")];
        let ranks = ranks.map(|(node, user)| part(node, Some(user), 1, rank)).to_vec();
        assert_eq!(names(&apart(ranks)), [vec!["node-1", "node-3"], vec!["node-2"]]);
    }

    /// The part of a job at an address on a machine: its ranks, from and until a second; None while it runs.
    fn job(source: &str, ranks: std::ops::Range<u32>, (from, until): (i64, Option<i64>)) -> RunPart {
        let mut runs = Runs::default();
        for number in ranks {
            let rank = Some(shared::run::Rank { rank: number, launcher: "torch".into(), ..Default::default() });
            let generation = Some(from * 1_000);
            let begun = Begun { rank, generation, ..begun("ddp", 100 + number, from * 1_000, true) };
            runs.take(source, &record(BEGIN_KIND, &begun));
            if let Some(until) = until {
                runs.take(source, &record(END_KIND, &Over { begun, t: until * 1_000, how: how(Some(0), None) }));
            }
        }
        let (generation, run) = runs.all().next().expect("a run");
        RunPart { key: source.into(), name: source.into(), team: None, generation, run: run.clone() }
    }

    #[test]
    fn jobs_one_behind_the_other_at_one_address_are_several_on_all_machines() {
        let listed = |parts: &[RunPart]| {
            let one = |run: &Vec<RunPart>| {
                run.iter().map(|part| format!("{} {}", part.name, part.run.began / 1_000)).collect()
            };
            let mut all: Vec<Vec<String>> = apart(parts.to_vec()).iter().map(one).collect();
            all.sort();
            all
        };
        // The clock of b is 6 s behind that of a.
        let first = [job("a", 0..2, (100, Some(200))), job("b", 2..4, (94, Some(194)))];
        let second = [job("a", 0..2, (205, Some(300))), job("b", 2..4, (199, Some(294)))];
        let both = [vec!["a 205".to_string(), "b 199".into()], vec!["b 94".into(), "a 100".into()]];
        let sorted = |mut all: Vec<Vec<String>>| {
            all.iter_mut().for_each(|run| run.sort());
            all.sort();
            all
        };
        assert_eq!(sorted(listed(&[first.clone(), second.clone()].concat())), sorted(both.to_vec()));
        // A machine that the first job did not have; and ranks that come minutes later.
        let late = [job("a", 0..2, (205, None)), job("c", 4..6, (600, None))];
        let all = [&first[..1], &second[1..], &late].concat();
        let expected = [vec!["a 100".to_string()], vec!["a 205".into(), "b 199".into(), "c 600".into()]];
        assert_eq!(sorted(listed(&all)), sorted(expected.to_vec()));
        // A rank of the first job that hangs belongs to the first.
        let hangs = [job("a", 0..2, (100, Some(200))), job("b", 2..4, (101, Some(400)))];
        let next = [job("a", 0..2, (205, None)), job("b", 2..4, (206, None))];
        let expected = [vec!["a 100".to_string(), "b 101".into()], vec!["a 205".into(), "b 206".into()]];
        assert_eq!(sorted(listed(&[hangs, next].concat())), sorted(expected.to_vec()));
        // Two jobs with the same rank at once are two, even with the same address.
        assert_eq!(apart(vec![job("a", 0..2, (100, None)), job("b", 0..2, (101, None))]).len(), 2);
        // On a single machine the parts stay as they are.
        assert_eq!(apart(vec![first[0].clone(), second[0].clone()]).len(), 2);
    }

    #[test]
    fn a_machine_knows_the_jobs_of_an_address_apart_and_who_is_stopped_in_which() {
        let mut runs = Runs::default();
        let rank = |generation: i64, pid| Begun { generation: Some(generation), ..begun("ddp", pid, generation, true) };
        runs.take("a", &record(END_KIND, &Over { begun: rank(1, 7), t: 5, how: how(Some(0), None) }));
        runs.take("a", &record(BEGIN_KIND, &rank(9, 7)));
        runs.take("a", &record(BEGIN_KIND, &rank(9, 8)));
        runs.take("a", &record(STATE_KIND, &Paused { run: "ddp".into(), pid: 7, stopped: true, unheard: None }));
        let stopped = |run: &Arc<Run>| run.processes.iter().map(|one| one.stopped).collect::<Vec<_>>();
        let all: Vec<_> = runs.all().map(|(generation, run)| (generation, stopped(run))).collect();
        assert_eq!(all, [(Some(1), vec![false]), (Some(9), vec![true, false])]);
    }

    #[test]
    fn no_machine_has_a_say_in_a_run_that_began_on_another() {
        let own = || part("node-a", Some("alpha"), Some("ann"), (1_000, false), None);
        let failed = || Some(how(Some(3), None));
        let judge = |run: &[RunPart], silent: &str| {
            let silence = |source: &str| (source == silent).then_some(Silence { since: 1, for_good: true });
            judged(merged(run).expect("a run"), &silence)
        };
        let alone = judge(&apart(vec![own()])[0], "");
        for (team, user) in [("alpha", "ann"), ("alpha", "eve"), ("alpha", "1000"), ("beta", "ann"), ("beta", "eve")] {
            for (t, joined) in [(0, false), (i64::MIN, false), (0, true), (9_000, false), (9_000, true)] {
                for end in [None, failed()] {
                    let rogue = part("rogue", Some(team), Some(user), (t, joined), end);
                    for all in [vec![own(), rogue.clone()], vec![rogue, own()]] {
                        let runs = apart(all);
                        let theirs = runs.iter().find(|run| &*run[0].name == "node-a").expect("it is listed");
                        let theirs = judge(theirs, "rogue");
                        let said = (&theirs.about, theirs.state, &theirs.sentence, theirs.began, theirs.ended);
                        let was = (&alone.about, alone.state, &alone.sentence, alone.began, alone.ended);
                        assert_eq!(said, was, "{team} {user} {t} {joined}");
                        assert!(team == "alpha" || theirs.processes.len() == 1, "another team joins nothing");
                    }
                }
            }
        }
        // The real job's run is also listed when another run took its ID first.
        let squatter = part("rogue", Some("alpha"), Some("ann"), (0, false), failed());
        assert_eq!(names(&apart(vec![squatter, own()])), [["rogue"], ["node-a"]]);
    }

    #[test]
    fn the_process_that_began_a_run_has_its_state_and_the_first_to_fall_is_named() {
        let mut runs = Runs::default();
        let end = |pid, t, how| record(END_KIND, &Over { begun: begun("a", pid, i64::from(pid), pid != 1), t, how });
        // Records of the machines arrive in any order, and twice.
        runs.take("node-2", &end(3, 50, how(None, Some("SIGKILL"))));
        runs.take("node-1", &record(BEGIN_KIND, &begun("a", 1, 1, false)));
        runs.take("node-1", &end(2, 60, how(Some(1), None)));
        runs.take("node-1", &end(1, 70, how(Some(1), None)));
        runs.take("node-1", &end(1, 70, how(Some(1), None)));
        runs.take("node-1", &record(BEGIN_KIND, &begun("b", 9, 5, false)));
        runs.take("node-1", &record(BEGIN_KIND, &"nothing"));
        let all = runs.list(|_| None);
        assert_eq!(all.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["b", "a"], "newest first");
        assert_eq!((all[0].state, all[0].ended), (RunState::Running, None));
        assert_eq!((all[1].state, all[1].began, all[1].ended), (RunState::Failed, 1, Some(70)));
        assert_eq!(all[1].sentence, "failed (exit 1); first rank 3 on node-2: crashed (SIGKILL)");
        let cause = all[1].cause.as_ref().expect("who fell first");
        assert_eq!((cause.source.as_str(), cause.pid, cause.t), ("node-2", 3, 50));
        assert_eq!(all[1].about.label, None, "the names of the one that began it");
        assert_eq!(all[1].processes.len(), 3);
    }

    #[test]
    fn ranks_that_their_launcher_began_anew_are_judged_by_their_last_life() {
        let rank = |pid: u32, t| {
            let rank = Some(shared::run::Rank { rank: pid % 10, ..Default::default() });
            let about = About::default();
            Begun { rank, about, ..begun("a", pid, t, true) }
        };
        let mut runs = Runs::default();
        for (pid, began, ended, exit) in [(10, 1, 5, 1), (11, 1, 6, 0), (20, 7, 9, 0)] {
            runs.take(
                "node-1",
                &record(END_KIND, &Over { begun: rank(pid, began), t: ended, how: how(Some(exit), None) }),
            );
        }
        runs.take("node-2", &record(BEGIN_KIND, &rank(21, 8)));
        let state = |runs: Runs| runs.list(|_| None).remove(0);
        let copy = Runs { runs: runs.runs.clone() };
        assert_eq!(state(copy).state, RunState::Running, "one rank of the last life runs");
        runs.take("node-2", &record(END_KIND, &Over { begun: rank(21, 8), t: 9, how: how(Some(0), None) }));
        let copy = Runs { runs: runs.runs.clone() };
        assert_eq!(state(copy).sentence, "finished");
        let fell = Over { begun: rank(31, 20), t: 30, how: how(None, Some("SIGBUS")) };
        runs.take("node-2", &record(END_KIND, &fell));
        assert_eq!(state(runs).sentence, "crashed (SIGBUS); first rank 1 on node-2: crashed (SIGBUS)");
    }

    #[test]
    fn whom_the_launcher_ended_did_not_fall_first() {
        let mut runs = Runs::default();
        for (pid, t, how) in [
            (1, 48, how(Some(1), None)),
            (2, 49, how(None, Some("SIGTERM"))),
            (3, 50, how(None, Some("SIGKILL"))),
            (4, 50 + TOGETHER_MS, how(None, Some("SIGBUS"))),
        ] {
            runs.take("node-1", &record(END_KIND, &Over { begun: begun("a", pid, 1, pid != 1), t, how }));
        }
        let sentence = runs.list(|_| None).remove(0).sentence;
        assert_eq!(sentence, "failed (exit 1); first rank 3 on node-1: crashed (SIGKILL)");
    }

    #[test]
    fn the_silence_of_a_machine_is_no_end() {
        let mut runs = Runs::default();
        runs.take("node-1", &record(BEGIN_KIND, &begun("a", 1, 1, false)));
        let since = |for_good| move |source: &str| (source == "node-1").then_some(Silence { since: 7, for_good });
        let all = runs.clone().list(since(false));
        assert_eq!((all[0].state, all[0].ended), (RunState::Unreachable, None));
        assert_eq!(all[0].sentence, "node-1 is not reporting");
        let lost = runs.list(since(true)).remove(0);
        assert_eq!((lost.state, lost.ended), (RunState::Lost, Some(7)));
        assert_eq!(lost.sentence, "lost: no samples from node-1 for 12 h");
    }

    #[test]
    fn a_run_whose_processes_are_all_stopped_is_suspended() {
        let mut runs = Runs::default();
        let pause = |pid, stopped| record(STATE_KIND, &Paused { run: "a".into(), pid, stopped, unheard: None });
        runs.take("node-1", &record(BEGIN_KIND, &begun("a", 1, 1, false)));
        runs.take("node-1", &record(BEGIN_KIND, &begun("a", 2, 1, true)));
        runs.take("node-1", &pause(1, true));
        let state = |runs: &Runs| runs.clone().list(|_| None).remove(0).sentence;
        assert_eq!(state(&runs), "running");
        runs.take("node-2", &pause(2, true));
        assert_eq!(state(&runs), "running", "another machine's");
        runs.take("node-1", &pause(2, true));
        assert_eq!(state(&runs), "suspended");
        runs.take("node-1", &pause(1, false));
        assert_eq!(state(&runs), "running");
    }

    #[test]
    fn the_silence_of_who_tells_of_a_run_is_no_end_either() {
        let mut runs = Runs::default();
        let heard = |unheard| record(STATE_KIND, &Paused { run: "a".into(), pid: 0, stopped: false, unheard });
        runs.take("node-1", &record(BEGIN_KIND, &Begun { told: true, ..begun("a", 0, 1, false) }));
        let said = |runs: &Runs| {
            let run = runs.clone().list(|_| None).remove(0);
            (run.state, run.sentence)
        };
        assert_eq!(said(&runs), (RunState::Running, "running (as reported)".into()));
        runs.take("node-1", &heard(Some(7)));
        assert_eq!(said(&runs), (RunState::Unreachable, "its launcher is not reporting".into()));
        runs.take("node-1", &heard(None));
        assert_eq!(said(&runs).0, RunState::Running);
    }

    #[test]
    fn what_a_scheduler_says_of_an_end_stays() {
        let mut runs = Runs::default();
        let end = |how| record(END_KIND, &Over { begun: begun("a", 1, 1, false), t: 9, how });
        let claim = Some(shared::run::Claim { who: "slurm".into(), word: "PREEMPTED".into() });
        runs.take("node-1", &end(how(None, Some("SIGTERM"))));
        runs.take("node-1", &end(How { claim, ..how(None, Some("SIGTERM")) }));
        runs.take("node-1", &end(how(None, Some("SIGTERM"))));
        let run = runs.list(|_| None).remove(0);
        assert_eq!((run.state, run.sentence.as_str()), (RunState::Preempted, "preempted (Slurm: PREEMPTED)"));
    }

    #[test]
    fn processes_of_a_run_are_bounded_and_the_others_counted() {
        let mut runs = Runs::default();
        for pid in 0..=MAX_PROCESSES as u32 {
            runs.take("node-1", &record(BEGIN_KIND, &begun("a", pid, 1, true)));
        }
        let all = runs.list(|_| None);
        assert_eq!((all[0].processes.len(), all[0].further), (MAX_PROCESSES, 1));
    }
}
