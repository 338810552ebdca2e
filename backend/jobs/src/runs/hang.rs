//! Questions about a hang to the running jobs of this machine: to NCCL, at the port that the environment of the hanging job
//! names, and to launchers that take stacks.

use super::registry::RunRegistry;
use crate::nccl::{PORT, ask, port_in};
use shared::nccl::NcclReport;
use shared::processes::Process;
use shared::wire::SourceId;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::slice::from_ref;
use stream::live::Live;

/// Maximum number of processes of a job whose environments are read for this.
const MAX_PROCESSES: usize = 64;

/// Maximum number of ports that are asked, one after the other: a hub waits 5 s for the answer.
const MAX_PORTS: usize = 4;

/// Maximum number of parents between a process on a GPU and the one that a run names.
const MAX_PARENTS: usize = 16;

/// Identifies a job: its run, else the process that started its processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum JobKey {
    Run(String),
    Parent(u32),
}

/// A process of a job, and the GPUs that it holds; none if they are unknown.
#[derive(Debug)]
struct JobProcess {
    job: JobKey,
    pid: u32,
    gpus: Vec<u32>,
}

/// The processes of the jobs on this machine: those that the table sees on GPUs, and the others that runs name.
/// `named` has the processes of runs, each with its run and the GPUs of its rank.
fn processes(table: &[Process], named: &[(u32, String, Vec<u32>)]) -> Vec<JobProcess> {
    let parents: HashMap<u32, u32> = table.iter().map(|one| (one.pid, one.parent)).collect();
    let runs: HashMap<u32, &String> = named.iter().map(|(pid, run, _)| (*pid, run)).collect();
    let run_of = |pid: u32| {
        let line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied()).take(MAX_PARENTS);
        line.into_iter().find_map(|pid| runs.get(&pid).map(|run| JobKey::Run((*run).clone())))
    };
    let mut all: BTreeMap<u32, JobProcess> = BTreeMap::new();
    for (pid, run, gpus) in named {
        all.insert(*pid, JobProcess { job: JobKey::Run(run.clone()), pid: *pid, gpus: gpus.clone() });
    }
    for one in table.iter().filter(|one| !one.gpus.is_empty()) {
        let job = run_of(one.pid).unwrap_or(JobKey::Parent(one.parent));
        all.insert(one.pid, JobProcess { job, pid: one.pid, gpus: one.gpus.clone() });
    }
    all.into_values().collect()
}

/// The ports at which the job that holds these GPUs answers. None if that may be another job: NCCL names ranks by their
/// number alone, so the answer does not tell whose they are. `named_port` returns the port in the environment of a process.
fn ports(all: &[JobProcess], gpus: &[u32], named_port: impl Fn(u32) -> Option<u16>) -> Vec<u16> {
    let mut jobs: BTreeMap<&JobKey, Vec<&JobProcess>> = BTreeMap::new();
    for one in all {
        jobs.entry(&one.job).or_default().push(one);
    }
    let held = |of: &[&JobProcess]| {
        let held: BTreeSet<&u32> = of.iter().flat_map(|one| &one.gpus).filter(|gpu| gpus.contains(gpu)).collect();
        held.len()
    };
    let is_unknown = |of: &[&JobProcess]| gpus.is_empty() || of.iter().all(|one| one.gpus.is_empty());
    let most = jobs.values().map(|of| held(of)).max().unwrap_or_default();
    let fits = |of: &[&JobProcess]| if most > 0 { held(of) == most } else { is_unknown(of) };
    let (wanted, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|(_, of)| fits(of));
    let ports_of = |of: &[&JobProcess]| -> BTreeSet<u16> {
        let some = of.iter().take(MAX_PROCESSES);
        let named: BTreeSet<u16> = some.filter_map(|one| named_port(one.pid)).collect();
        if named.is_empty() { BTreeSet::from([PORT]) } else { named }
    };
    let own = match &wanted[..] {
        [] => BTreeSet::from([PORT]),
        [(_, of)] => ports_of(of),
        _ => return Vec::new(),
    };
    // NCCL needs two ranks. One process of another kind on a GPU, as that of a screen, has no port.
    let may_answer = |(job, of): &(&JobKey, Vec<&JobProcess>)| matches!(job, JobKey::Run(_)) || of.len() > 1;
    let taken: BTreeSet<u16> = others.iter().filter(|one| may_answer(one)).flat_map(|(_, of)| ports_of(of)).collect();
    own.difference(&taken).copied().take(MAX_PORTS).collect()
}

impl RunRegistry {
    /// The ranks for which the job that holds these GPUs waits, as NCCL names them on a machine, if that is this one. It
    /// blocks, for some seconds at most.
    pub fn nccl(&self, live: &Live, source: SourceId, gpus: &[u32]) -> Option<NcclReport> {
        if self.own != Some(source) {
            return None;
        }
        let own = live.store().source(source).map(|(source, _)| source.clone())?;
        let mut named = Vec::new();
        for run in self.open(live, from_ref(&own)) {
            let here = run.processes.iter().filter(|one| one.source == own.name && one.ended.is_none());
            named.extend(here.map(|one| {
                let gpus = one.rank.as_ref().map(|rank| rank.gpus.clone()).unwrap_or_default();
                (one.pid, run.machine_id().to_string(), gpus)
            }));
        }
        let table = live.source(source).processes.newest();
        let rows = table.as_ref().map(|table| table.rows.as_slice()).unwrap_or_default();
        ports(&processes(rows, &named), gpus, named_port).into_iter().find_map(ask)
    }
}

/// Launchers take stacks only on Unix.
#[cfg(unix)]
impl RunRegistry {
    /// Requests the stacks of the jobs on a machine that hold one of these GPUs (all jobs if there are none), if that is
    /// this one. Returns the IDs of the runs whose launchers take them.
    pub fn request_stacks(&self, live: &Live, source: SourceId, gpus: &[u32]) -> Vec<String> {
        if self.logs.source() != Some(source) {
            return Vec::new();
        }
        let own = live.store().source(source).map(|(source, _)| source.clone());
        let Some(own) = own else { return Vec::new() };
        let mut asked = Vec::new();
        for run in self.open(live, from_ref(&own)) {
            let here = run.processes.iter().filter(|one| one.source == own.name && one.ended.is_none());
            let here: Vec<&shared::run::RunProcess> = here.collect();
            let ranks = super::stacks::wanted(&here, gpus);
            if !ranks.is_empty() && self.stacks.request(run.machine_id(), &shared::run::StacksAsked { ranks }) {
                asked.push(run.machine_id().to_string());
            }
        }
        asked
    }
}

#[cfg(not(unix))]
impl RunRegistry {
    /// See the other one.
    pub fn request_stacks(&self, _: &Live, _: SourceId, _: &[u32]) -> Vec<String> {
        Vec::new()
    }
}

/// The port in the environment of a process.
#[cfg(target_os = "linux")]
fn named_port(pid: u32) -> Option<u16> {
    port_in(&super::environ::read(pid).ok()?.nccl?)
}

#[cfg(not(target_os = "linux"))]
fn named_port(_: u32) -> Option<u16> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_gpus(pid: u32, parent: u32, gpus: &[u32]) -> Process {
        Process { pid, parent, gpus: gpus.to_vec(), ..Process::default() }
    }

    /// Two jobs of two ranks each, started by 10 and 20, and a screen on GPU 0.
    fn two_jobs() -> Vec<Process> {
        let shell = on_gpus(20, 1, &[]);
        let ranks = [(11, 10, 0), (12, 10, 1), (21, 20, 2), (22, 20, 3), (30, 1, 0)];
        ranks.iter().map(|(pid, parent, gpu)| on_gpus(*pid, *parent, &[*gpu])).chain([shell]).collect()
    }

    #[test]
    fn with_two_jobs_the_port_of_the_one_that_hangs_is_asked() {
        let all = processes(&two_jobs(), &[]);
        let own = |pid: u32| (pid / 10 == 2).then_some(29_000);
        assert_eq!(ports(&all, &[2, 3], own), [29_000]);
        assert_eq!(ports(&all, &[0, 1], own), [PORT], "the screen is no job with ranks");
        assert_eq!(ports(&all, &[0], |_| None), [0; 0], "a screen or a job on GPU 0");
        assert_eq!(ports(&all, &[2], |_| None), [0; 0], "both jobs may listen there");
        assert_eq!(ports(&all, &[], |_| None), [0; 0], "it is unknown which job it is");
        assert_eq!(ports(&all, &[7], own), [0; 0], "nobody knows that job, and another one has the usual port");
    }

    #[test]
    fn a_job_alone_is_asked_whatever_is_known_of_it() {
        assert_eq!(ports(&[], &[0], |_| None), [PORT]);
        let alone: Vec<Process> = two_jobs().into_iter().filter(|one| one.parent == 10).collect();
        assert_eq!(ports(&processes(&alone, &[]), &[0, 1], |_| None), [PORT]);
        assert_eq!(ports(&processes(&alone, &[]), &[], |_| Some(29_000)), [29_000]);
        // A run without GPUs, of which one rank names a port.
        let named = [(5, "one".to_string(), Vec::new()), (6, "one".to_string(), Vec::new())];
        assert_eq!(ports(&processes(&[], &named), &[0], |pid| (pid == 6).then_some(29_001)), [29_001]);
    }

    #[test]
    fn a_process_belongs_to_the_run_of_the_process_above_it() {
        // Two launchers of the same run, and one of another.
        let run = |pid, run: &str| (pid, run.to_string(), Vec::new());
        let mut named = vec![run(10, "one"), run(20, "one")];
        let all = processes(&two_jobs(), &named);
        assert_eq!(ports(&all, &[0, 1, 2, 3], |_| None), [PORT], "one job of four ranks");
        named[1].1 = "two".into();
        let all = processes(&two_jobs(), &named);
        assert_eq!(
            ports(&all, &[0, 1, 2], |pid| (pid == 21).then_some(29_000)),
            [PORT],
            "most of these GPUs are its own"
        );
        // A circle in the table ends.
        let circle = [on_gpus(1, 2, &[0]), on_gpus(2, 1, &[1])];
        assert_eq!(processes(&circle, &[]).len(), 2);
    }
}
