//! The watched processes of a Linux host (`--pid`) with all their descendants, counted once when trees overlap.
//!
//! A process is identified by its PID and its start. When a watched one ends, its descendants stay watched, under any
//! parent. When all have ended their tags stay absent, even if their PIDs are reused.

pub(super) mod limits;
pub(crate) mod stat;
pub(super) mod tree;
mod watched;

use self::limits::TreeLimits;
use self::stat::Stat;
use self::tree::{Member, Tree};
pub(crate) use self::watched::Watched;
use crate::host::facts;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::process;
use std::collections::HashMap;
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;

/// Interval of reading limits.
const LIMITS_INTERVAL: Duration = Duration::from_secs(10);

/// Opens the collector, if there is a process to watch.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    if options.pids.is_empty() {
        return Err(OpenError::absent([], "no process is configured", "name one with --pid PID"));
    }
    let tried: Vec<_> = options.pids.iter().map(|pid| roots.proc.join(pid.to_string()).display().to_string()).collect();
    let tree = Tree::new(roots.proc.clone(), &options.pids);
    let reasons: Vec<&str> = tree.roots.iter().filter_map(|root| root.gone.as_deref()).collect();
    if reasons.len() == tree.roots.len() {
        return Err(OpenError::absent(tried, reasons.join(", "), "use --pid with the id of a running process"));
    }
    let processes = Processes {
        tree,
        limits: TreeLimits::default(),
        looked: None,
        before: None,
        roots: roots.clone(),
        ticks: facts::ticks_per_second(),
        page: facts::page_size() as f64,
    };
    Ok(Part::only(tried, processes))
}

struct Processes {
    tree: Tree,
    limits: TreeLimits,
    looked: Option<Duration>,
    /// The previous tick, and the machine's uptime then, in the kernel's ticks.
    before: Option<(Duration, Option<f64>)>,
    roots: Roots,
    ticks: f64,
    page: f64,
}

impl Collector for Processes {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let uptime = facts::since_boot(&self.roots.proc);
        let before = self.tree.refresh();
        let last = self.before.replace((out.at(), uptime.map(|seconds| seconds * self.ticks)));
        self.look_up_limits(out.at());
        out.put_some(&process::OOM_KILLS, (), self.limits.kills());
        let alive = || self.tree.members.values().map(|member| member.stat).filter(|stat| !stat.ended);
        if alive().next().is_some() {
            let bytes = alive().map(|stat| stat.pages as f64).sum::<f64>() * self.page;
            out.put(&process::THREADS, (), alive().map(|stat| stat.threads as f64).sum());
            out.put(&process::PROCESSES, (), alive().count() as f64);
            out.put(&process::UNINTERRUPTIBLE, (), alive().filter(|stat| stat.uninterruptible).count() as f64);
            out.put(&process::RSS, (), bytes / MIB);
            out.put_rounded(&process::RSS_PERCENT, (), self.limits.memory.map(|limit| 100.0 * bytes / limit));
            if let Some((at, uptime)) = last {
                let used = used(&before, &self.tree.members, uptime) as f64 / self.ticks;
                let passed = out.at().saturating_sub(at).as_secs_f64();
                let share = self.limits.capacity.map(|cores| 100.0 * used / passed / cores);
                out.put_rounded(&process::CPU, (), share.filter(|_| passed > 0.0));
            }
            out.put_rounded(&process::THROTTLED, (), self.limits.throttled_percent());
        }
        let any = alive().next().is_some();
        let orphans = |root: usize| self.tree.members.values().any(|m| m.root == root && !m.stat.ended);
        let gone = self.tree.roots.iter().enumerate().filter_map(|(i, root)| Some((i, root.gone.as_deref()?)));
        let reasons: Vec<String> = gone
            .map(|(i, reason)| format!("{reason}{}", if orphans(i) { "; its descendants still run" } else { "" }))
            .collect();
        match reasons.join(", ") {
            reason if reason.is_empty() => Ok(()),
            reason if any => Err(CollectError::partial(reason)),
            reason => Err(CollectError::failed(reason)),
        }
    }
}

impl Processes {
    fn look_up_limits(&mut self, now: Duration) {
        if self.looked.is_some_and(|then| now.saturating_sub(then) < LIMITS_INTERVAL) {
            return;
        }
        self.looked = Some(now);
        let roots = self.tree.roots.iter().filter(|root| root.gone.is_none()).map(|root| root.pid);
        // Descendants may be in other groups, and replace a process that has ended.
        let members = self.tree.members.iter().filter(|(_, member)| !member.stat.ended).map(|(pid, _)| *pid);
        let mut pids: Vec<u32> = roots.collect();
        let members: Vec<u32> = members.filter(|pid| !pids.contains(pid)).collect();
        pids.extend(members);
        self.limits.refresh(&self.roots, &pids);
    }
}

/// Ticks of CPU time that the tree used between two readings.
///
/// A process that ends passes its time to the parent that reaps it. Time already counted while it lived is subtracted.
/// So children that live for less than a tick count in full, and none counts twice.
///
/// A process with a parent outside the tree passes nothing to the tree. A process that is new to the tree but older
/// than the previous reading joined late, so its earlier time is left out.
fn used(before: &HashMap<u32, Member>, now: &HashMap<u32, Member>, uptime_before: Option<f64>) -> u64 {
    let known =
        |pid: &u32, stat: &Stat| before.get(pid).map(|member| member.stat).filter(|old| old.start == stat.start);
    let (mut own, mut reaped, mut gone) = (0, 0, 0);
    for (pid, Member { stat, .. }) in now {
        if let Some(old) = known(pid, stat) {
            own += stat.own.saturating_sub(old.own);
            reaped += stat.reaped.saturating_sub(old.reaped);
        } else if uptime_before.is_none_or(|uptime| stat.start as f64 + 1.0 >= uptime) {
            own += stat.own;
            reaped += stat.reaped;
        }
    }
    for (pid, Member { stat, .. }) in before {
        if before.contains_key(&stat.parent) && now.get(pid).is_none_or(|member| member.stat.start != stat.start) {
            gone += stat.own + stat.reaped;
        }
    }
    own + u64::saturating_sub(reaped, gone)
}
