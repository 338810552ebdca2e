//! The list of runs, made from the records that machines have of them.

use crate::live::Live;
use shared::record::Record;
use shared::run::{BEGIN_KIND, Begun, END_KIND, MAX_PROCESSES, Over, Run, RunProcess, RunState};
use shared::standing::Standing;
use shared::wire::Source;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a machine is silent before its runs are said to be unreachable, milliseconds.
const SILENCE_MS: i64 = 60_000;

/// Runs, made from the records of sources.
#[derive(Debug, Default)]
pub struct Runs {
    runs: BTreeMap<String, Run>,
}

impl Runs {
    /// Takes a record of a source. One that tells of no run, or that cannot be read, changes nothing; the same record
    /// twice is once.
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
                    process.how = Some(over.how);
                }
            }
            _ => {}
        }
    }

    /// The process that began, which is entered where it is new; None beyond [`MAX_PROCESSES`].
    fn process(&mut self, source: &str, begun: Begun) -> Option<&mut RunProcess> {
        let Begun { run: id, t, pid, joined, about, .. } = begun;
        let label = about.label.clone();
        let run = self.runs.entry(id.clone()).or_insert_with(|| Run {
            id,
            state: RunState::Running,
            sentence: String::new(),
            began: t,
            ended: None,
            about: about.clone(),
            processes: Vec::new(),
            further: 0,
        });
        // The names are those of the process that began the run, in whatever order the machines' records are read.
        if !joined {
            run.about = about;
        }
        run.began = run.began.min(t);
        let known = |one: &RunProcess| (one.source.as_str(), one.pid, one.began) == (source, pid, t);
        if let Some(at) = run.processes.iter().position(known) {
            return run.processes.get_mut(at);
        }
        if run.processes.len() == MAX_PROCESSES {
            run.further += 1;
            return None;
        }
        run.processes.push(RunProcess { source: source.into(), pid, label, began: t, ended: None, how: None, joined });
        run.processes.last_mut()
    }

    /// The runs, newest first. `silent` is when a source that is not heard any more was heard last, milliseconds since the
    /// Unix epoch, and None for others.
    pub fn list(self, silent: impl Fn(&str) -> Option<i64>) -> Vec<Run> {
        let mut all: Vec<Run> = self.runs.into_values().map(|run| judged(run, &silent)).collect();
        all.sort_by(|a, b| b.began.cmp(&a.began).then_with(|| a.id.cmp(&b.id)));
        all
    }
}

/// The run with its state: that of the process that began it, else of all; of several the first that ended badly is the
/// cause.
fn judged(mut run: Run, silent: impl Fn(&str) -> Option<i64>) -> Run {
    run.processes.sort_by_key(|process| process.began);
    let root = run.processes.iter().find(|process| !process.joined);
    let over = match root {
        Some(root) => root.ended,
        None => {
            run.processes.iter().map(|one| one.ended).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max())
        }
    };
    run.ended = over;
    if over.is_none() {
        let running = run.processes.iter().filter(|process| process.ended.is_none());
        let unheard = running.filter_map(|process| Some((silent(&process.source)?, process.source.clone()))).min();
        (run.state, run.sentence) = match unheard {
            Some((_, source)) => (RunState::Unreachable, format!("{source} is not heard")),
            None => (RunState::Running, "running".into()),
        };
        return run;
    }
    let ended = run.processes.iter().filter_map(|one| Some((one.ended?, one.how.as_ref()?, one)));
    let bad = ended.filter(|(_, how, _)| !matches!(how.state(), RunState::Finished | RunState::Ended));
    let first = bad.min_by_key(|(t, _, one)| (*t, !one.joined)).map(|(_, how, one)| (how, one));
    let own = root.and_then(|root| root.how.as_ref());
    let how = own.or(first.map(|(how, _)| how)).cloned();
    let how = how.or_else(|| run.processes.iter().find_map(|one| one.how.clone())).unwrap_or_default();
    run.state = how.state();
    run.sentence = how.sentence();
    if let Some((cause, process)) = first
        && root.is_none_or(|root| root.pid != process.pid || root.source != process.source)
    {
        let name = process.label.clone().unwrap_or_else(|| format!("process {}", process.pid));
        run.sentence += &format!("; first {name} on {}: {}", process.source, cause.sentence());
    }
    run
}

/// The runs of machines that began or ended between two times, milliseconds since the Unix epoch, newest first. It may read
/// the disk.
pub fn list(live: &Live, sources: &[Arc<Source>], from: i64, to: i64) -> Vec<Run> {
    let mut runs = Runs::default();
    for source in sources {
        let records = live.store().records(source.id, from, to);
        records.into_iter().flatten().flatten().for_each(|record| runs.take(&source.name, &record));
    }
    let unheard = |source: &Arc<Source>| {
        let (standing, since) = live.source(source.id).standing();
        let silent = !matches!(standing, Standing::Live | Standing::Late | Standing::Filling { .. });
        (silent && live.clock.wall() - since >= SILENCE_MS).then(|| (source.name.clone(), since))
    };
    let silent: BTreeMap<String, i64> = sources.iter().filter_map(unheard).collect();
    runs.list(|source| silent.get(source).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use shared::run::{About, How};

    fn how(exit: Option<i32>, signal: Option<&str>) -> How {
        How { exit, signal: signal.map(Into::into), ..How::default() }
    }

    fn begun(run: &str, pid: u32, t: i64, joined: bool) -> Begun {
        let about = About { program: "train".into(), label: joined.then(|| format!("rank {pid}")), ..About::default() };
        Begun { run: run.into(), t, pid, start: None, namespace: None, joined, about }
    }

    fn record(kind: &str, body: &impl Serialize) -> Record {
        Record { n: 1, t: 0, kind: kind.into(), body: serde_json::to_vec(body).expect("JSON") }
    }

    #[test]
    fn the_process_that_began_a_run_has_its_state_and_the_first_to_fall_is_named() {
        let mut runs = Runs::default();
        let end = |pid, t, how| record(END_KIND, &Over { begun: begun("a", pid, i64::from(pid), pid != 1), t, how });
        // Records of the machines come in any order, and twice.
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
        assert_eq!(all[1].about.label, None, "the names of the one that began it");
        assert_eq!(all[1].processes.len(), 3);
    }

    #[test]
    fn the_silence_of_a_machine_is_no_end() {
        let mut runs = Runs::default();
        runs.take("node-1", &record(BEGIN_KIND, &begun("a", 1, 1, false)));
        let all = runs.list(|source| (source == "node-1").then_some(7));
        assert_eq!((all[0].state, all[0].ended), (RunState::Unreachable, None));
        assert_eq!(all[0].sentence, "node-1 is not heard");
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
