//! Names of the series of ranks, as W&B names the writers of a shared run.

use inventory::RankProcess;
use shared::catalog::LABEL;
use shared::run::{Begun, series_label};
use std::collections::HashSet;

/// Maximum number of ranks of a machine with series; further ones have none.
const MAX_RANKS: usize = 1_024;

/// The running processes that have series: the ranks; in a run without ranks, the processes that its launchers started.
/// `here` returns whether the PID of a process is valid on this machine.
pub(super) fn list_ranks<'a>(
    running: impl Iterator<Item = &'a Begun>,
    here: impl Fn(&Begun) -> bool,
) -> Vec<RankProcess> {
    let mut all: Vec<&Begun> = running.filter(|begun| begun.start.is_some() && here(begun)).collect();
    let ranked: HashSet<&str> = all.iter().filter(|one| one.rank.is_some()).map(|one| one.run.as_str()).collect();
    all.retain(|one| one.rank.is_some() || !ranked.contains(one.run.as_str()));
    // The one that began first keeps its name when another of that name follows.
    all.sort_by_key(|one| (one.t, one.run.clone(), one.rank.as_ref().map(|rank| rank.rank), one.pid));
    let mut names = HashSet::new();
    let mut named = |one: &Begun| {
        let rank = one.rank.as_ref().map(|rank| rank.rank);
        let name = names_of(one.about.label.as_deref(), rank, one.pid, &one.run).find(|name| !names.contains(name))?;
        names.insert(name.clone());
        Some(name)
    };
    let made = all.into_iter().filter_map(|one| {
        Some(RankProcess { pid: one.pid, start: one.start?, instance: format!("{LABEL}{}", named(one)?) })
    });
    made.take(MAX_RANKS).collect()
}

/// Candidate names for the series of a process: the first free one is used.
pub fn names_of(label: Option<&str>, rank: Option<u32>, pid: u32, run: &str) -> impl Iterator<Item = String> + use<> {
    let own = series_label(label, rank, pid);
    [own.clone(), format!("{own}.{run}"), format!("{own}.{pid}")].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::{About, Rank};

    fn begun(run: &str, pid: u32, rank: Option<u32>, label: Option<&str>) -> Begun {
        Begun {
            run: run.into(),
            t: i64::from(pid),
            pid,
            start: Some(7),
            rank: rank.map(|rank| Rank { rank, ..Rank::default() }),
            about: About { label: label.map(String::from), ..About::default() },
            ..Begun::default()
        }
    }

    #[test]
    fn ranks_are_named_as_wandb_names_writers_and_each_name_is_there_once() {
        let running = [
            begun("a", 1, None, None),
            begun("a", 2, Some(0), None),
            begun("a", 3, Some(1), Some("loader")),
            begun("b", 4, Some(0), None),
            begun("b", 5, Some(0), None),
            begun("c", 6, None, None),
            begun("d", 7, Some(9), None),
        ];
        let names: Vec<String> =
            list_ranks(running.iter(), |one| one.run != "d").into_iter().map(|one| one.instance).collect();
        // A launcher with ranks has no series of its own.
        assert_eq!(names, ["/l:rank_0", "/l:loader", "/l:rank_0.b", "/l:rank_0.5", "/l:pid_6"]);
    }

    #[test]
    fn ranks_of_a_machine_are_bounded() {
        let running: Vec<Begun> = (0..=MAX_RANKS as u32).map(|n| begun("a", n, Some(n), None)).collect();
        assert_eq!(list_ranks(running.iter(), |_| true).len(), MAX_RANKS);
    }
}
