//! Groups of devices that work on one job: those of a known job, else those whose processes have one root. Otherwise,
//! devices of one machine and model that began to work at the same time.

use crate::device::{Device, POWER, TRAFFIC, WORK};
use crate::hold::{Hold, Share};
use crate::host::Host;
use crate::levels::{NEVER, median};
use crate::pace::Pace;
use crate::phase::{Course, MemberStates, Phase};
use crate::signal::{Family, Sig};
use crate::words::At;
use crate::{Hosts, Job, Source};

/// Devices that begin to work within this many seconds of each other are one group.
const GROUPED_WITHIN_S: i64 = 60;

/// Identification of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    Job(String),
    /// Machine and root process.
    Tree(Source, u32),
    /// Machine and first device.
    Start(Source, usize),
}

/// Progress of each rule with a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupMarks {
    pub spin: Hold,
    pub odd: Hold,
    /// The same for all groups that may belong to its job.
    pub whole_spin: Hold,
    pub whole_odd: Hold,
    /// Second of its stop, where another group is known to wait for the same since then.
    pub kin: i64,
    pub works: Hold,
    /// Most members compute now and then.
    pub alive: Hold,
    pub low: Share,
    pub cause: Share,
    pub well: Hold,
    pub bursts: Share,
    /// Slow members, and whether all are even again.
    pub even: Hold,
    pub suspect: Hold,
    pub slow: Vec<(Source, usize)>,
    /// The signal by which the members' work is compared, and the current bucket of seconds.
    pub work: Option<Sig>,
    pub bucket: i64,
    pub lived: i64,
    /// The finding was raised by the sum of buckets of work (`awaited`).
    pub awaited: bool,
    /// Relative loss of its members against the usual, over the last minutes.
    pub less: f64,
    /// Usual pace, and loss since another program came onto a member.
    pub pace: Pace,
    pub shared: Share,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub id: u64,
    pub how: How,
    /// Machine and position of each device there, in ascending order.
    pub members: Vec<(Source, usize)>,
    pub course: Course,
    pub marks: GroupMarks,
    /// Start of work of its first member.
    pub began: i64,
}

impl Group {
    /// Names of its devices.
    pub fn devices(&self, hosts: &Hosts) -> Vec<At> {
        self.members
            .iter()
            .filter_map(|&(source, at)| {
                let device = hosts.get(&source)?.devices.get(at)?;
                Some((source, device.family, device.index))
            })
            .collect()
    }

    /// Machines of the group.
    pub fn sources(&self) -> Vec<Source> {
        let mut all: Vec<Source> = self.members.iter().map(|(source, _)| *source).collect();
        all.dedup();
        all
    }

    /// Machine of its first member.
    pub fn first(&self) -> Source {
        self.members.first().map_or(0, |(source, _)| *source)
    }

    /// Seconds between the ticks of its slowest machine.
    pub fn step(&self, hosts: &Hosts) -> i64 {
        self.sources().iter().filter_map(|source| hosts.get(source)).map(|host| host.step).max().unwrap_or(1)
    }

    /// Whether any of its machines ticked at this second.
    pub fn is_at(&self, hosts: &Hosts, now: i64) -> bool {
        self.members.iter().any(|(source, _)| hosts.get(source).is_some_and(|host| host.is_at(now)))
    }

    /// Cores that its processes use per device; none where that is unknown now.
    pub fn cores(&self, hosts: &Hosts, now: i64) -> Option<f64> {
        let sum = self.of_trees(hosts, now, |host, root| host.trees.get(&root).copied())?;
        (!self.members.is_empty()).then(|| sum / self.members.len() as f64)
    }

    /// Bytes per second that its processes read from and write to disks; none where that is unknown now.
    pub fn bytes(&self, hosts: &Hosts, now: i64) -> Option<f64> {
        self.of_trees(hosts, now, |host, root| host.tree_bytes.get(&root).copied().filter(|sum| sum.is_finite()))
    }

    /// Sum of a value over the process trees of its members; none where it is unknown for any.
    fn of_trees(&self, hosts: &Hosts, now: i64, of: impl Fn(&Host, u32) -> Option<f64>) -> Option<f64> {
        let mut sum = 0.0;
        let mut roots: Vec<(Source, u32)> = Vec::new();
        for (source, at) in &self.members {
            let host = hosts.get(source)?;
            let (root, _) = host.devices.get(*at)?.root?;
            if host.table_at < now - 60.max(3 * host.step) {
                return None;
            }
            if !roots.contains(&(*source, root)) {
                roots.push((*source, root));
                sum += of(host, root)?;
            }
        }
        Some(sum)
    }

    /// State of its members at this second.
    fn read_members(&self, hosts: &Hosts, now: i64) -> MemberStates {
        let mut seen = MemberStates { members: self.members.len(), ..MemberStates::default() };
        for (source, at) in &self.members {
            let Some(host) = hosts.get(source).filter(|host| host.is_recent(now)) else { continue };
            let Some(device) = host.devices.get(*at) else { continue };
            if device.seen < host.newest - host.patience() {
                continue;
            }
            let Some(usage) =
                device.recent(Sig::Use).map(|slot| slot.short).or(device.work.w.is_finite().then_some(50.0))
            else {
                continue;
            };
            seen.known += 1;
            if device.work.on {
                seen.working += 1;
            } else if usage >= 95.0 && device.work.by_power {
                seen.spinning += 1;
            } else if usage <= 2.0 {
                seen.idle += 1;
                if device.pids.is_empty() && device.memory_share().is_some_and(|share| share <= 2.0) {
                    seen.off += 1;
                }
            }
        }
        seen
    }

    /// Advances its phase by a second.
    pub fn step_phase(&mut self, hosts: &Hosts, now: i64) {
        if self.is_at(hosts, now) {
            let ticked = self.sources();
            let dt = ticked.iter().filter_map(|s| hosts.get(s)).filter(|h| h.is_at(now)).map(|h| h.dt.min(2 * h.step));
            let dt = if ticked.len() == 1 { dt.max().unwrap_or(1) } else { (now - self.marks.lived).clamp(1, 60) };
            self.marks.lived = now;
            self.course.step(now, dt, self.read_members(hosts, now));
            let alive = |(source, at): &&(Source, usize)| {
                hosts.get(source).is_some_and(|host| host.is_recent(now) && host.devices[*at].is_alive(host.step))
            };
            let alive = self.members.iter().filter(alive).count() * 5 >= self.members.len() * 4;
            self.marks.alive.step(now, Some(alive), 10.max(3 * dt));
        }
    }

    /// Current work of its members as a share of the usual, 1 for all of it, and the signal that measures it. It is the
    /// median over members of their cores' work, else memory traffic, else power. `except` is left out.
    pub fn pace(&self, hosts: &Hosts, except: Option<usize>, now: i64) -> Option<(f64, Sig)> {
        self.paced(hosts, except, now, |device, of| device.habits[of].mean())
    }

    /// The same, restricted to the time since an onset.
    pub fn pace_since(&self, hosts: &Hosts, except: Option<usize>, now: i64, from: i64) -> Option<(f64, Sig)> {
        self.paced(hosts, except, now, |device, of| device.lately.mean(of, from).or(device.habits[of].mean()))
    }

    /// `mean` returns the mean of a device's channel over work.
    fn paced(
        &self,
        hosts: &Hosts,
        except: Option<usize>,
        now: i64,
        mean: impl Fn(&Device, usize) -> Option<f64>,
    ) -> Option<(f64, Sig)> {
        for sig in [Sig::Tensor, Sig::Sm, Sig::Dram, Sig::Activity, Sig::Power, Sig::PowerShare] {
            let (least, channel) = match sig {
                Sig::Activity => (8.0, TRAFFIC),
                Sig::Power | Sig::PowerShare => (3.0, POWER),
                _ => (3.0, WORK),
            };
            let part = |(at, (source, position)): (usize, &(Source, usize))| {
                let host = hosts.get(source).filter(|host| host.is_recent(now) && Some(at) != except)?;
                let device = host.devices.get(*position)?;
                let slot = device.recent(sig)?;
                let level = slot.level().filter(|level| *level >= least)?;
                // Only values in work where they are recorded, in the signal that they are recorded for.
                let of_work = (channel != WORK || self.marks.work == Some(sig)).then(|| mean(device, channel));
                let value = if self.is_working(now) { of_work.flatten()? } else { slot.minute };
                Some(value / level)
            };
            let mut parts: Vec<f64> = self.members.iter().enumerate().filter_map(part).collect();
            let members = self.members.len() - usize::from(except.is_some());
            if !parts.is_empty() && parts.len() * 2 >= members {
                return median(&mut parts).map(|pace| (pace, sig));
            }
        }
        None
    }

    /// The first member but `except` whose machine reads a signal: the evidence refers to it on behalf of all.
    pub fn shown<'a>(&self, hosts: &'a Hosts, except: Option<usize>, sig: Sig) -> Option<(&'a Host, &'a Device)> {
        let others = self.members.iter().enumerate().filter(|(at, _)| Some(*at) != except);
        let device = |(source, position): &(Source, usize)| {
            let host = hosts.get(source)?;
            Some((host, host.devices.get(*position)?)).filter(|(_, device)| device.recent(sig).is_some())
        };
        others.filter_map(|(_, member)| device(member)).next()
    }

    /// Stops learning for its members until this second.
    pub fn freeze(&self, hosts: &mut Hosts, until: i64) {
        for (source, at) in &self.members {
            if let Some(device) = hosts.get_mut(source).and_then(|host| host.devices.get_mut(*at)) {
                device.work.frozen = device.work.frozen.max(until);
            }
        }
    }

    /// It works, and has for a minute in all. This includes members that wait for most of each step.
    pub fn is_working(&self, now: i64) -> bool {
        let slowly = self.course.phase == Phase::Pausing && self.marks.alive.held(60);
        let works = self.course.phase == Phase::Working || slowly || self.course.is_cyclic(now);
        works && self.course.worked >= 60
    }

    /// The same, and a phase of steady work has lasted for at least `seconds`.
    pub fn has_worked(&self, now: i64, seconds: i64) -> bool {
        let steady = self.course.is_cyclic(now) || self.course.phase == Phase::Pausing;
        self.is_working(now) && (steady || now - self.course.since >= seconds)
    }
}

/// A device that may be of a group.
struct Free {
    at: (Source, usize),
    family: Family,
    model: u64,
    began: i64,
    known: bool,
    root: Option<(u32, u32)>,
    pids: Vec<u32>,
}

/// Rebuilds the groups. Groups with the same members go on. Returns the ids of groups that are gone.
pub(crate) fn regroup(
    groups: &mut Vec<Group>,
    next_id: &mut u64,
    hosts: &mut Hosts,
    jobs: &[Job],
    now: i64,
) -> Vec<u64> {
    let mut wanted: Vec<(How, Vec<(Source, usize)>)> = Vec::new();
    let mut taken: Vec<(Source, usize)> = Vec::new();
    for job in jobs {
        let mut members = Vec::new();
        for rank in &job.ranks {
            let Some(host) = hosts.get(&rank.source) else { continue };
            let own = |d: &Device| rank.gpus.contains(&d.index) && d.family == Family::Gpu;
            let at = host.devices.iter().enumerate().filter(|(_, d)| own(d)).map(|(at, _)| (rank.source, at));
            members.extend(at.filter(|at| !taken.contains(at)));
        }
        members.sort_unstable();
        members.dedup();
        taken.extend(&members);
        if !members.is_empty() {
            wanted.push((How::Job(job.id.clone()), members));
        }
    }
    for (&source, host) in &*hosts {
        on_host(source, host, groups, &taken, &mut wanted, now);
    }
    let mut old = std::mem::take(groups);
    for (how, members) in wanted {
        let is_job = |how: &How| matches!(how, How::Job(_));
        // The same devices under another job form a new group without history.
        let another = |group: &Group| is_job(&group.how) && group.how != how;
        if old.iter().any(|group| another(group) && group.members == members) {
            for (source, at) in &members {
                if let Some(device) = hosts.get_mut(source).and_then(|host| host.devices.get_mut(*at)) {
                    device.forget();
                }
            }
        }
        let same = old.iter().position(|group| group.members == members && !another(group));
        let same = same.or_else(|| old.iter().position(|group| group.how == how));
        let mut group = match same {
            Some(at) => old.swap_remove(at),
            None => {
                *next_id += 1;
                let began = members.iter().filter_map(|(s, at)| hosts.get(s)?.devices.get(*at)).map(|d| d.work.began);
                let began = began.filter(|began| *began != NEVER).min().unwrap_or(now);
                let mut course = Course::new(now);
                // Work before the group was known counts, too.
                let worked = members.iter().filter_map(|(s, at)| hosts.get(s)?.devices.get(*at)).map(|d| d.work.worked);
                (course.worked, course.stretch, course.changed) = (worked.min().unwrap_or(0), began, began);
                Group {
                    id: *next_id,
                    how: how.clone(),
                    members: Vec::new(),
                    course,
                    marks: GroupMarks::default(),
                    began,
                }
            }
        };
        (group.how, group.members) = (how, members);
        groups.push(group);
    }
    groups.sort_by_key(|group| group.id);
    hosts.values_mut().flat_map(|host| &mut host.devices).for_each(|device| device.group = None);
    for group in &*groups {
        for (source, at) in &group.members {
            if let Some(device) = hosts.get_mut(source).and_then(|host| host.devices.get_mut(*at)) {
                device.group = Some(group.id);
            }
        }
    }
    old.into_iter().map(|group| group.id).collect()
}

/// Appends the groups of a machine's devices to `wanted`.
fn on_host(
    source: Source,
    host: &Host,
    groups: &[Group],
    taken: &[(Source, usize)],
    wanted: &mut Vec<(How, Vec<(Source, usize)>)>,
    now: i64,
) {
    let mut free: Vec<Free> = Vec::new();
    for (at, device) in host.devices.iter().enumerate() {
        if !taken.contains(&(source, at)) {
            free.push(Free {
                at: (source, at),
                family: device.family,
                model: device.model(),
                began: device.work.began,
                known: device.work.worked >= 60,
                root: device.root,
                pids: device.pids.clone(),
            });
        }
    }
    by_root(source, &mut free, groups, wanted);
    by_known_start(source, host, &mut free, groups, wanted, now);
    by_start(source, free, wanted);
}

/// Devices by the root of their processes, or by roots of one parent that began to work together.
fn by_root(source: Source, free: &mut Vec<Free>, groups: &[Group], wanted: &mut Vec<(How, Vec<(Source, usize)>)>) {
    while let Some(first) = free.iter().find(|f| f.root.is_some()) {
        let (root, parent) = first.root.unwrap_or_default();
        let (family, began, pid) = (first.family, first.began, first.at);
        let near = |f: &Free| began != NEVER && f.began != NEVER && (f.began - began).abs() <= GROUPED_WITHIN_S;
        let is = |f: &Free| {
            f.at == pid
                || (f.family == family
                    && f.root.is_some_and(|(r, p)| r == root || (p == parent && parent > 1 && near(f))))
        };
        let mut members: Vec<(Source, usize)> = free.iter().filter(|f| is(f)).map(|f| f.at).collect();
        free.retain(|f| !is(f));
        let how = How::Tree(source, root);
        // A member whose process has ended stays as long as the others go on.
        if let Some(group) = groups.iter().find(|group| group.how == how) {
            let stays = |f: &Free| f.root.is_none() && group.members.contains(&f.at);
            members.extend(free.iter().filter(|f| stays(f)).map(|f| f.at));
            free.retain(|f| !stays(f));
        }
        members.sort_unstable();
        wanted.push((how, members));
    }
}

/// Groups by start live until half of their members are free.
fn by_known_start(
    source: Source,
    host: &Host,
    free: &mut Vec<Free>,
    groups: &[Group],
    wanted: &mut Vec<(How, Vec<(Source, usize)>)>,
    now: i64,
) {
    for group in groups {
        let How::Start(own, _) = &group.how else { continue };
        if *own != source {
            continue;
        }
        let mut members: Vec<(Source, usize)> =
            group.members.iter().filter(|at| free.iter().any(|f| f.at == **at)).copied().collect();
        let gone = members.iter().filter(|(_, at)| {
            let device = &host.devices[*at];
            let silent = device.memory_share().is_none() && device.seen == host.newest && device.work.last < now - 1200;
            device.is_free() || silent
        });
        if gone.count() * 2 >= members.len() {
            continue;
        }
        let Some(model) = free.iter().find(|f| members.contains(&f.at)).map(|f| (f.family, f.model)) else { continue };
        let joins = |f: &Free| {
            f.known
                && !members.contains(&f.at)
                && (f.family, f.model) == model
                && (f.began - group.began).abs() <= GROUPED_WITHIN_S
        };
        let more: Vec<_> = free.iter().filter(|f| joins(f)).map(|f| f.at).collect();
        members.extend(more);
        members.sort_unstable();
        free.retain(|f| !members.contains(&f.at));
        wanted.push((group.how.clone(), members));
    }
}

/// Groups the remaining devices by start of work, or by a shared process.
fn by_start(source: Source, mut free: Vec<Free>, wanted: &mut Vec<(How, Vec<(Source, usize)>)>) {
    free.retain(|f| f.known);
    free.sort_by_key(|f| (f.began, f.at));
    while let Some(first) = free.first() {
        let (family, model, began) = (first.family, first.model, first.began);
        let pids = first.pids.clone();
        let is = |f: &Free| {
            let same = f.pids.iter().any(|pid| pids.contains(pid));
            f.family == family && ((f.model == model && f.began - began <= GROUPED_WITHIN_S) || same)
        };
        let mut members: Vec<(Source, usize)> = free.iter().filter(|f| is(f)).map(|f| f.at).collect();
        free.retain(|f| !is(f));
        members.sort_unstable();
        let lead = members.first().map_or(0, |(_, at)| *at);
        wanted.push((How::Start(source, lead), members));
    }
}
