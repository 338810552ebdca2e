//! Successive jobs at one address, as `MASTER_ADDR` and port name it: the job to which a rank belongs.
//!
//! The address is the same on all machines, and the same for the next job. So each machine counts for itself. A rank
//! belongs to the newest job of its address while that lives and lacks a rank of its number. Else it begins the next
//! job. A launcher that restarts its ranks, as torchrun does, continues its own job. [`apart`](super::fold::apart)
//! matches the jobs of several machines by their times.

use shared::run::Begun;
use std::collections::HashMap;

/// Maximum number of addresses; above it the address whose last job ended first is dropped.
const MAX_ADDRESSES: usize = 1_024;
/// Maximum number of jobs of an address.
const MAX_JOBS: usize = 4;
/// Maximum number of launchers and ranks of a job.
const MAX_RANKS: usize = 4_096;

/// PID and start (clock ticks since boot) of a process.
pub(super) type Process = (u32, u64);

/// The newest process of a rank.
#[derive(Debug)]
struct RankProcess {
    process: Option<Process>,
    /// Its end, milliseconds since the Unix epoch.
    ended: Option<i64>,
}

#[derive(Debug)]
struct Job {
    /// Start of its first rank, milliseconds since the Unix epoch.
    generation: i64,
    launchers: Vec<Process>,
    ranks: HashMap<u32, RankProcess>,
}

impl Job {
    /// End of its last rank; None while one lives, or if it is unknown.
    fn ended(&self) -> Option<i64> {
        self.ranks.values().map(|rank| rank.ended).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn lives(&self, is_alive: &impl Fn(Process) -> bool) -> bool {
        self.ranks.values().any(|rank| rank.ended.is_none() && rank.process.is_some_and(is_alive))
    }
}

/// The jobs of this machine whose IDs are addresses, by ID.
#[derive(Debug, Default)]
pub(super) struct Jobs(HashMap<String, Vec<Job>>);

impl Jobs {
    /// The generation of a new rank, which `launcher` started.
    pub fn generation_of(&mut self, new: &Begun, launcher: Option<Process>, is_alive: impl Fn(Process) -> bool) -> i64 {
        let jobs = self.0.get(&new.run).map(Vec::as_slice).unwrap_or_default();
        let number = new.rank.as_ref().map_or(0, |rank| rank.rank);
        let is_elastic = new.rank.as_ref().is_some_and(|rank| rank.attempt.is_some());
        let own = |job: &&Job| is_elastic && launcher.is_some_and(|launcher| job.launchers.contains(&launcher));
        let fits = |job: &&Job| match job.ranks.get(&number) {
            // The new process began while the job ran: the old rank started it, and it outlived that rank.
            Some(RankProcess { ended: Some(ended), .. }) => new.t < *ended,
            Some(_) => false,
            None => job.lives(&is_alive) || job.ended().is_some_and(|ended| new.t < ended),
        };
        let known = jobs.iter().rev().find(own).or_else(|| jobs.last().filter(fits)).map(|job| job.generation);
        let generation = known.unwrap_or(new.t);
        self.enter(new, generation, launcher);
        generation
    }

    /// Adds a process whose job is known.
    pub fn enter(&mut self, begun: &Begun, generation: i64, launcher: Option<Process>) {
        if !self.0.contains_key(&begun.run) && self.0.len() >= MAX_ADDRESSES {
            let newest = |jobs: &Vec<Job>| jobs.last().map(|job| job.ended().unwrap_or(i64::MAX));
            let first = self.0.iter().min_by_key(|(_, jobs)| newest(jobs)).map(|(run, _)| run.clone());
            first.and_then(|run| self.0.remove(&run));
        }
        let jobs = self.0.entry(begun.run.clone()).or_default();
        let at = jobs.iter().position(|job| job.generation == generation).unwrap_or_else(|| {
            if jobs.len() == MAX_JOBS {
                jobs.remove(0);
            }
            jobs.push(Job { generation, launchers: Vec::new(), ranks: HashMap::new() });
            jobs.len() - 1
        });
        let job = &mut jobs[at];
        let number = begun.rank.as_ref().map_or(0, |rank| rank.rank);
        if job.ranks.len() < MAX_RANKS || job.ranks.contains_key(&number) {
            let process = begun.start.map(|start| (begun.pid, start));
            job.ranks.insert(number, RankProcess { process, ended: None });
        }
        let is_new = |launcher: &Process| !job.launchers.contains(launcher);
        let launcher = launcher.filter(is_new).filter(|_| job.launchers.len() < MAX_RANKS);
        job.launchers.extend(launcher);
    }

    /// A process has ended at `t`, milliseconds since the Unix epoch.
    pub fn ended(&mut self, begun: &Begun, t: i64) {
        let process = begun.start.map(|start| (begun.pid, start));
        let job = self.0.get_mut(&begun.run).into_iter().flatten().find(|job| Some(job.generation) == begun.generation);
        let rank = begun.rank.as_ref().map_or(0, |rank| rank.rank);
        if let Some(rank) = job.and_then(|job| job.ranks.get_mut(&rank)).filter(|rank| rank.process == process) {
            rank.ended = Some(t);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::Rank;
    use std::collections::HashSet;

    /// A machine on which ranks begin and end.
    #[derive(Default)]
    struct Machine {
        jobs: Jobs,
        alive: HashSet<Process>,
    }

    const TORCHRUN: Option<Process> = Some((10, 1));
    const OTHER: Option<Process> = Some((20, 1));

    impl Machine {
        fn rank(&mut self, number: u32, pid: u32, t: i64, launcher: Option<Process>, attempt: Option<u32>) -> Begun {
            let rank = Some(Rank { rank: number, attempt, ..Rank::default() });
            let begun = Begun { run: "ddp-n1-29500".into(), t, pid, start: Some(t as u64), rank, ..Begun::default() };
            self.alive.insert((pid, t as u64));
            let generation = self.jobs.generation_of(&begun, launcher, |process| self.alive.contains(&process));
            Begun { generation: Some(generation), ..begun }
        }

        fn end(&mut self, begun: &Begun, t: i64) {
            self.alive.remove(&(begun.pid, begun.start.expect("a start")));
            self.jobs.ended(begun, t);
        }
    }

    fn generations<const N: usize>(all: &[Begun; N]) -> [i64; N] {
        std::array::from_fn(|at| all[at].generation.expect("a generation"))
    }

    #[test]
    fn a_job_behind_another_at_the_same_address_is_another() {
        // Started by torchrun, and from one shell.
        for (attempt, launchers) in [(Some(0), [TORCHRUN, OTHER]), (None, [OTHER, OTHER]), (None, [TORCHRUN, OTHER])] {
            let mut machine = Machine::default();
            let first = [0, 1].map(|n| machine.rank(n, 100 + n, 1_000 + i64::from(n), launchers[0], attempt));
            first.iter().for_each(|one| machine.end(one, 5_000));
            let second = [0, 1].map(|n| machine.rank(n, 200 + n, 6_000 + i64::from(n), launchers[1], attempt));
            assert_eq!((generations(&first), generations(&second)), ([1_000; 2], [6_000; 2]), "{attempt:?}");
            // With other ranks than before, too.
            second.iter().for_each(|one| machine.end(one, 8_000));
            assert_eq!(
                machine.rank(7, 300, 9_000, launchers[0].filter(|_| attempt.is_none()), attempt).generation,
                Some(9_000)
            );
        }
    }

    #[test]
    fn ranks_that_their_launcher_begins_anew_are_of_its_job() {
        let mut machine = Machine::default();
        let first = [0, 1].map(|n| machine.rank(n, 100 + n, 1_000, TORCHRUN, Some(0)));
        first.iter().for_each(|one| machine.end(one, 5_000));
        // After a failure, and after machines have joined; then the attempt count stays.
        for (attempt, t) in [(1, 6_000), (1, 60_000)] {
            let again = [0, 1].map(|n| machine.rank(n, 200 + n, t, TORCHRUN, Some(attempt)));
            assert_eq!(generations(&again), [1_000; 2]);
            again.iter().for_each(|one| machine.end(one, t + 1_000));
        }
    }

    #[test]
    fn ranks_that_come_late_are_of_the_job_that_lives() {
        let mut machine = Machine::default();
        let first = machine.rank(0, 100, 1_000, TORCHRUN, None);
        let late = [1, 2].map(|n| machine.rank(n, 100 + n, 600_000, OTHER, None));
        assert_eq!(generations(&late), [1_000; 2]);
        // A rank that is detected late began before the others ended.
        machine.end(&first, 700_000);
        late.iter().for_each(|one| machine.end(one, 700_000));
        assert_eq!(machine.rank(3, 103, 699_000, OTHER, None).generation, Some(1_000));
    }

    #[test]
    fn a_rank_that_is_there_again_while_an_old_one_hangs_is_of_the_next_job() {
        let mut machine = Machine::default();
        let first = [0, 1].map(|n| machine.rank(n, 100 + n, 1_000, TORCHRUN, None));
        machine.end(&first[0], 5_000);
        let second = [0, 1].map(|n| machine.rank(n, 200 + n, 6_000, OTHER, None));
        assert_eq!(generations(&second), [6_000; 2]);
        // A process that a rank started and that outlived it, with the same number, belongs to the rank's job.
        machine.end(&second[0], 9_000);
        assert_eq!(machine.rank(0, 250, 7_000, None, None).generation, Some(6_000));
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut jobs = Jobs::default();
        for n in 0..3 * MAX_ADDRESSES {
            let begun = Begun {
                run: n.to_string(),
                t: n as i64,
                start: Some(1),
                generation: Some(n as i64),
                ..Begun::default()
            };
            jobs.generation_of(&begun, OTHER, |_| true);
            jobs.ended(&begun, n as i64);
        }
        assert_eq!(jobs.0.len(), MAX_ADDRESSES);
        for t in 0..20 {
            let begun = Begun { run: "one".into(), t, start: Some(t as u64), ..Begun::default() };
            jobs.generation_of(&begun, OTHER, |_| false);
        }
        assert_eq!(jobs.0["one"].len(), MAX_JOBS);
    }
}
