//! Hanging jobs: their GPUs wait in a kernel, for one of them or for each other, or do nothing.

use crate::device::Device;
use crate::finding::Draft;
use crate::group::Group;
use crate::host::Host;
use crate::key::{Key, What};
use crate::kin;
use crate::phase::Phase;
use crate::scene::{Scene, sight};
use crate::signal::{HostSig, Sig, host_row_of};
use crate::words::{all, begin, devices, differs, evidence, rate, whole};
use crate::{DetectorEntry, Hosts, Source};
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[
        ("hang.spin", |hosts| {
            sight(
                hosts,
                &[Sig::Use, Sig::Power],
                &[(Sig::NvTx, "NVLink counters"), (Sig::Tensor, "profiling counters")],
            )
        }),
        ("hang.odd", |hosts| sight(hosts, &[Sig::Use, Sig::Power], &[(Sig::NvTx, "NVLink counters")])),
        ("hang.idle", |hosts| sight(hosts, &[Sig::Use], &[])),
    ],
    judge,
};

/// Traffic below which a link counts as idle, bytes per second: drivers transfer a little on their own.
const STILL_PCIE: f64 = 10e6;
const STILL_NVLINK: f64 = 1e6;
/// Maximum traffic of a quiet machine, bytes per second.
const MAX_QUIET_BYTES: f64 = 2e6;
const QUIET_MOST: f64 = 50e6;
/// Usual relative deviation of use in work.
const USE_STRAYS: f64 = 0.07;
/// Minimum seconds without evidence from links or counters.
const MIN_UNPROVEN_S: i64 = 120;
/// Minimum seconds among several machines without a known job.
const MIN_JOBLESS_S: i64 = 240;
/// Longest wait before a hang is reported, seconds. The second applies while a part of the same job works, which may be
/// the one waited for. An evaluation by one part takes half an hour at most: then collectives time out.
const MAX_WAIT_S: i64 = 900;
const MAX_KIN_WAIT_S: i64 = 3600;
/// Longest absence of one that computes, loads or saves, seconds: ten minutes are no computation between steps.
const MAX_ABSENCE_S: i64 = 600;
/// Groups that stopped together and have been idle for this many seconds belong to one job. A checkpoint of another job
/// is over by then.
const SAME_JOB_IDLE_S: i64 = 120;

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            group(scene, at);
        }
    }
}

/// State of a member that waits in a kernel.
struct Spin {
    /// Links or counters confirm that nothing is computed.
    confirmed: bool,
}

/// Whether the device waits in a kernel: power low and steady, and nothing else moves.
fn spins(device: &Device, host: &Host) -> Option<Spin> {
    let usage = device.recent(Sig::Use)?;
    let (power, limit) = device.power()?;
    if usage.short < 95.0 || device.work.on || !device.work.by_power {
        return None;
    }
    let span = (30 / host.step).clamp(3, 30) as usize;
    let (_, spread) = device.ring.spread(span)?;
    let still = if limit.is_finite() { 0.02 * limit } else { 0.03 * device.work_power() };
    if spread > still || power.short > device.work_power() {
        return None;
    }
    let mut confirmed = false;
    if let Some(traffic) = device.traffic()
        && let Some(level) = traffic.level
    {
        let floor = if traffic.bridge.is_some() { STILL_NVLINK } else { STILL_PCIE };
        if traffic.short > floor.max(0.03 * level) {
            return None;
        }
        confirmed |= level >= 20.0 * floor;
    }
    for (sig, share) in [(Sig::Tensor, 0.1), (Sig::Dram, 0.1), (Sig::Activity, 0.15)] {
        let Some(slot) = device.recent(sig) else { continue };
        let Some(level) = slot.level().filter(|level| *level >= 5.0) else { continue };
        if slot.short > (share * level).max(1.5) {
            return None;
        }
        confirmed |= sig != Sig::Activity || level >= 20.0;
    }
    if device.recent(Sig::Sm).is_some_and(|slot| slot.short > 30.0) {
        return None;
    }
    Some(Spin { confirmed })
}

/// Whether disks and networks of a machine are almost idle.
fn is_quiet(host: &Host, share: f64, floor: f64) -> bool {
    host.moved().is_none_or(|(moved, level)| moved <= QUIET_MOST && moved <= floor.max(share * level.unwrap_or(0.0)))
}

/// Evidence of disks and networks about groups that may hang.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bytes {
    /// They are almost idle.
    Still,
    /// They are busy, and another job of the machine may cause it.
    Foreign,
    /// They are busy, or the processes of the groups read or write.
    Busy,
}

/// State of the disks and networks of a group's machines. Where another job runs, the machine's totals say nothing of
/// this one: then only what its own processes read and write does. `others` are the groups of other jobs.
fn bytes_of(group: &Group, others: &[&Group], hosts: &Hosts, now: i64, (share, floor): (f64, f64)) -> Bytes {
    let own = group.bytes(hosts, now);
    let shared = |source: &Source| {
        let there = |group: &&&Group| group.members.iter().any(|(other, _)| other == source);
        others.iter().filter(there).any(|group| group.course.is_alive(now, MAX_WAIT_S))
    };
    let one = |source: &Source| match hosts.get(source) {
        Some(host) if is_quiet(host, share, floor) => Bytes::Still,
        Some(_) if shared(source) => match own {
            Some(bytes) if bytes > floor => Bytes::Busy,
            Some(_) => Bytes::Still,
            None => Bytes::Foreign,
        },
        Some(_) => Bytes::Busy,
        None => Bytes::Still,
    };
    group.sources().iter().map(one).max().unwrap_or(Bytes::Still)
}

/// Whether the CPU use of the machine is not above its level in work.
fn is_calm(host: &Host) -> bool {
    host.recent(HostSig::Cpu).is_none_or(|slot| slot.level().is_none_or(|level| slot.short <= level + 3.0))
}

/// Combined state of devices that may hang.
#[derive(Clone, Copy, Default)]
struct Look {
    /// All wait in a kernel; or all but this one, which is not busy or is absent.
    spin: bool,
    odd: Option<(Source, usize)>,
    /// Links or counters confirm it.
    confirmed: bool,
    /// Another job keeps the disks or networks busy, so it is not known whether this one does.
    blind: bool,
}

/// State of the members of groups, taken as one job; `beside` are the groups of other jobs.
fn read_members(groups: &[&Group], beside: &[&Group], hosts: &Hosts, now: i64) -> Look {
    let (mut spinning, mut others, mut odd) = (0, 0, None);
    let (mut confirmed, mut quiet, mut blind, mut unseen) = (true, true, false, false);
    for group in groups {
        for &(source, position) in &group.members {
            let Some(host) = hosts.get(&source) else { continue };
            let device = &host.devices[position];
            let here = host.is_recent(now) && device.answered >= host.newest - host.patience();
            match spins(device, host).filter(|_| here) {
                Some(spin) => {
                    spinning += 1;
                    confirmed &= spin.confirmed;
                }
                None => {
                    let idle = here && device.recent(Sig::Use).is_some_and(|slot| slot.short <= 2.0);
                    let still = device.traffic().is_none_or(|traffic| traffic.short <= STILL_PCIE);
                    let gone = host.is_recent(now) && !here;
                    others += 1;
                    odd = Some((source, position)).filter(|_| (idle && still) || gone);
                }
            }
        }
        let calm = group.sources().iter().filter_map(|source| hosts.get(source)).all(is_calm);
        let bytes = bytes_of(group, beside, hosts, now, (0.2, MAX_QUIET_BYTES));
        let cores = group.cores(hosts, now);
        quiet &= bytes != Bytes::Busy && cores.map_or(calm, |cores| cores <= 1.3);
        blind |= bytes == Bytes::Foreign;
        unseen |= bytes == Bytes::Foreign && cores.is_none();
    }
    let counts = quiet && spinning > 0;
    // A process writes outside of a kernel. So links or counters, or the job's own cores, tell that all only wait.
    let spin = counts && others == 0 && spinning >= 2 && (confirmed || !unseen);
    Look { spin, odd: odd.filter(|_| counts && others == 1), confirmed, blind }
}

/// State of a group by itself, and together with the groups that may belong to its job.
struct Stands {
    own: Look,
    /// Positions and combined state of all these groups; none where there are no others.
    whole: Option<(Vec<usize>, Look)>,
    /// At least one of those certainly belongs to its job.
    sure: bool,
    /// Positions of the groups of other jobs.
    beside: Vec<usize>,
}

fn stands(scene: &Scene, at: usize) -> Stands {
    let (groups, now) = (&*scene.groups, scene.now);
    let own = &groups[at];
    let stopped = matches!(own.course.phase, Phase::Spinning | Phase::Idle);
    let kin = if stopped { kin::find_kin(groups, scene.hosts, at, now) } else { Vec::new() };
    let spinning = own.course.phase == Phase::Spinning;
    let mut places: Vec<usize> = kin.iter().map(|kin| kin.at).chain([at]).collect();
    places.sort_unstable();
    let beside: Vec<usize> = (0..groups.len()).filter(|other| !places.contains(other)).collect();
    let look = |places: &[usize]| {
        let of = |places: &[usize]| places.iter().map(|at| &groups[*at]).collect::<Vec<&Group>>();
        if spinning { read_members(&of(places), &of(&beside), scene.hosts, now) } else { Look::default() }
    };
    let whole = (places.len() > 1).then(|| (places.clone(), look(&places)));
    Stands { own: look(&[at]), whole, sure: kin.iter().any(|kin| kin.sure), beside }
}

fn group(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let Some(own) = scene.groups.get(at) else { return };
    let step = own.step(scene.hosts);
    let patience = (3 * step).max(5);
    let key = Key::new("hang", own.first(), What::Group(own.id));
    let phase = own.course.phase;
    if scene.ledger.is_open(&key) {
        let group = &mut scene.groups[at];
        group.marks.works.step(now, Some(phase == Phase::Working), patience);
        let over = group.marks.works.held(10.max(2 * step)) || phase == Phase::Off;
        let group = group.clone();
        group.freeze(scene.hosts, now + 5.max(2 * step));
        if over || is_freed(&group, scene.hosts) {
            scene.end(&key);
        }
        return;
    }
    let mut stands = stands(scene, at);
    let group = &mut scene.groups[at];
    // After a quarter of an hour a wait becomes usual, so membership in its job is kept from before.
    if stands.sure && now - group.course.since >= SAME_JOB_IDLE_S {
        group.marks.kin = group.course.since;
    }
    stands.sure |= group.marks.kin == group.course.since;
    let whole = stands.whole.as_ref().map(|(_, look)| *look);
    let marks = &mut scene.groups[at].marks;
    marks.works.step(now, Some(phase == Phase::Working), patience);
    for (hold, holds) in [
        (&mut marks.spin, stands.own.spin),
        (&mut marks.odd, stands.own.odd.is_some()),
        (&mut marks.whole_spin, whole.is_some_and(|look| look.spin)),
        (&mut marks.whole_odd, whole.is_some_and(|look| look.odd.is_some())),
    ] {
        hold.step(now, Some(holds), patience);
    }
    let group = &scene.groups[at];
    // Without a known job, the member that is waited for may be on another machine.
    let named = matches!(group.how, crate::group::How::Job(_)) || scene.hosts.len() == 1;
    match &stands.whole {
        Some((places, look)) => {
            if !tell(scene, (at, places), *look, Waits { whole: true, least: 0 }) {
                let least = if stands.sure { MAX_KIN_WAIT_S } else { MAX_WAIT_S };
                tell(scene, (at, &[at]), stands.own, Waits { whole: false, least });
            }
        }
        None => {
            tell(scene, (at, &[at]), stands.own, Waits { whole: false, least: if named { 0 } else { MIN_JOBLESS_S } });
        }
    }
    if phase == Phase::Idle {
        let cores = scene.groups[at].cores(scene.hosts, now);
        idle(scene, at, key, cores, &stands);
    }
}

/// Minimum times before a report.
struct Waits {
    /// Several groups are judged as one.
    whole: bool,
    /// Seconds at least.
    least: i64,
}

/// Reports groups that have hung for long enough; true if it did.
fn tell(scene: &mut Scene, (at, places): (usize, &[usize]), look: Look, waits: Waits) -> bool {
    let now = scene.now;
    let all: Vec<&Group> = places.iter().map(|at| &scene.groups[*at]).collect();
    let step = all.iter().map(|group| group.step(scene.hosts)).max().unwrap_or(1);
    let longest = all.iter().map(|group| group.course.longest_pause(Phase::Spinning)).max().unwrap_or(0);
    let stopped = all.iter().filter(|group| group.course.phase == Phase::Spinning).map(|group| group.course.since);
    let since = stopped.max().unwrap_or(now);
    let after = scene.settings.hang_after.max(10);
    let wait = match look.confirmed {
        true => after.max(longest * 6 / 5),
        false => MIN_UNPROVEN_S.max(after).max(longest * 3 / 2),
    };
    let wait = wait.min(MAX_WAIT_S).max(waits.least).max(3 * step);
    let odd_wait = wait.max(look.odd.map_or(0, |odd| longest_absence(scene, odd, look)));
    let marks = &scene.groups[at].marks;
    let (spin, odd) = if waits.whole { (marks.whole_spin, marks.whole_odd) } else { (marks.spin, marks.odd) };
    if look.spin && spin.held((wait - 30).max(30).max(3 * step)) && now - since >= wait {
        spun(scene, (at, places), since);
    } else if let Some(one) = look.odd.filter(|_| odd.held(30.max(3 * step)) && now - since >= odd_wait) {
        stopped_one(scene, places, one, since);
    } else {
        return false;
    }
    true
}

/// Seconds for which one that does nothing may be waited for, though nothing hangs.
fn longest_absence(scene: &Scene, (source, position): (Source, usize), look: Look) -> i64 {
    let Some(host) = scene.hosts.get(&source) else { return 0 };
    let device = &host.devices[position];
    // A rank that was started again loads before it works. And one that saves while another job keeps the disks busy is
    // not seen to do so.
    if device.is_starting() || look.blind {
        return MAX_ABSENCE_S;
    }
    // One that computes is waited for.
    match device.pids.first().and_then(|pid| host.cpu_of(*pid, scene.now)) {
        Some(cores) if cores <= 0.3 => 0,
        Some(cores) if cores <= 1.3 => 240,
        Some(_) => MAX_ABSENCE_S,
        None => 90,
    }
}

/// Whether the memory of the group's members was released: their processes are gone.
fn is_freed(group: &Group, hosts: &Hosts) -> bool {
    let mut known = 0;
    let mut freed = 0;
    for (source, position) in &group.members {
        let Some(device) = hosts.get(source).and_then(|host| host.devices.get(*position)) else { continue };
        let Some(slot) = device.memory_slot() else { continue };
        known += 1;
        freed += usize::from(device.is_free() || slot.level().is_some_and(|level| slot.now < 0.3 * level));
    }
    known > 0 && freed * 2 > known
}

/// Power, links and counters of the first member, for the sentence.
fn stand(device: &Device) -> String {
    let mut said = Vec::new();
    said.extend(device.recent(Sig::Use).map(|slot| format!("utilization {} %", whole(slot.short))));
    if let Some((power, limit)) = device.power() {
        said.push(match limit.is_finite() {
            true => format!("power {} % of the limit", whole(100.0 * power.short / limit)),
            false => format!("power {} W of {} W", whole(power.short), whole(device.work_power())),
        });
    }
    if let Some(traffic) = device.traffic()
        && traffic.level.is_some_and(|level| level > STILL_PCIE)
    {
        said.push(format!("no {} traffic", traffic.name()));
    }
    said.join(", ")
}

/// The main proof of a hang, listed first: low power while busy, or no use.
#[derive(Clone, Copy, PartialEq)]
enum Proof {
    Power,
    Use,
}

/// Evidence of the rule for one member and its machine; a use at its usual value is left out.
fn facts(host: &Host, device: &Device, cores: Option<f64>, proof: Proof) -> Vec<Evidence> {
    let mut facts = Vec::new();
    let mut fact = |sig: Sig, words: String, value: f64, level: Option<f64>| {
        facts.extend(device.slot(sig).row.map(|row| evidence(host, row, device.index, words, (value, level))));
    };
    let usage = device.recent(Sig::Use);
    if let Some(slot) = usage.filter(|_| proof == Proof::Use) {
        fact(Sig::Use, format!("utilization {} %", whole(slot.now)), slot.now, slot.level());
    }
    if let Some((slot, limit)) = device.power() {
        let share = if limit.is_finite() {
            format!(", {} % of the limit", whole(100.0 * slot.short / limit))
        } else {
            String::new()
        };
        let level = device.work_power();
        fact(
            device.power_sig(),
            format!("power {} W{share}, usually {} W", whole(slot.short), whole(level)),
            slot.short,
            Some(level),
        );
    }
    if let Some(slot) = usage.filter(|slot| proof == Proof::Power && differs(slot.now, slot.level(), USE_STRAYS)) {
        fact(Sig::Use, format!("utilization {} %", whole(slot.now)), slot.now, slot.level());
    }
    match device.traffic() {
        Some(traffic) => {
            for (sig, slot, does) in traffic.series(device) {
                let usual = slot.level().map_or(String::new(), |level| format!(", usually {}", rate(level)));
                fact(sig, format!("{} {does} {}{usual}", traffic.name(), rate(slot.now)), slot.now, slot.level());
            }
        }
        None => {
            let row = crate::signal::row_of(device.family, Sig::NvTx);
            facts.extend(row.map(|row| crate::words::absent(host, row, device.index, "traffic over links")));
        }
    }
    match device.work_sig().and_then(|sig| Some((sig, device.recent(sig)?))) {
        Some((sig, slot)) => {
            let words = format!("{} {} %", counter(sig), whole(slot.now));
            facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.now, slot.level()))));
        }
        None => {
            let row = crate::signal::row_of(device.family, Sig::Tensor);
            facts.extend(row.map(|row| crate::words::absent(host, row, device.index, "core activity")));
        }
    }
    match host.busiest() {
        Some((sig, slot, moved)) => {
            let words = format!("disk and network traffic at most {}", rate(moved));
            facts.push(evidence(host, host_row_of(sig), "", words, (slot.now, slot.level())));
        }
        None => facts.push(crate::words::absent(host, host_row_of(HostSig::DiskOut), "", "disk and network traffic")),
    }
    let words = match cores {
        Some(cores) => format!("processes use {cores:.1} cores per GPU"),
        None => "the CPU use of the job is not measured".into(),
    };
    facts.push(evidence(host, host_row_of(HostSig::Cpu), "", words, (f64::NAN, None)));
    facts
}

/// Name of a counter in a sentence.
pub(crate) fn counter(sig: Sig) -> &'static str {
    match sig {
        Sig::Tensor => "tensor cores",
        Sig::Sm => "multiprocessors",
        Sig::Dram => "memory bandwidth",
        Sig::Activity => "memory traffic",
        _ => "utilization",
    }
}

/// A finding about groups that hang together. Each group has its own key, under which it ends. Returns the first key.
fn draft(scene: &Scene, places: &[usize], rule: &'static str, severity: Severity, since: i64) -> (Key, Draft) {
    let groups = places.iter().map(|at| &scene.groups[*at]);
    let mut keys: Vec<Key> = groups.clone().map(|g| Key::new("hang", g.first(), What::Group(g.id))).collect();
    let key = keys.remove(0);
    let draft = Draft {
        rule,
        severity,
        source: scene.groups[places[0]].first(),
        subject: groups.flat_map(|group| group.devices(scene.hosts)).collect(),
        affects: Vec::new(),
        device: None,
        since,
        sentence: String::new(),
        evidence: Vec::new(),
        group: Some(scene.groups[places[0]].id),
        also: keys,
        next: None,
    };
    (key, draft)
}

fn spun(scene: &mut Scene, (at, places): (usize, &[usize]), since: i64) {
    let (key, mut draft) = draft(scene, places, "hang.spin", Severity::Critical, since);
    let group = &scene.groups[at];
    let (source, position) = group.members[0];
    let host = &scene.hosts[&source];
    let device = &host.devices[position];
    draft.sentence = format!(
        "{} {} been stuck in one kernel since {{since}}: {}",
        begin(&all(scene.hosts, &draft.subject)),
        if draft.subject.len() == 1 { "has" } else { "have" },
        stand(device)
    );
    draft.evidence = facts(host, device, group.cores(scene.hosts, scene.now), Proof::Power);
    scene.raise(key, draft);
}

fn stopped_one(scene: &mut Scene, places: &[usize], (source, position): (Source, usize), since: i64) {
    let (key, mut draft) = draft(scene, places, "hang.odd", Severity::Critical, since);
    let Some(odd) = scene.at(source, position) else { return };
    draft.source = source;
    draft.group = scene.group_of(source, position).map(|group| group.id);
    draft.affects = std::mem::replace(&mut draft.subject, vec![odd]);
    draft.affects.retain(|other| *other != odd);
    let members = places.iter().flat_map(|at| scene.groups[*at].members.iter().map(move |member| (*at, *member)));
    let Some((at, (other, its))) = members.into_iter().find(|(_, member)| *member != (source, position)) else {
        return;
    };
    let host = &scene.hosts[&other];
    let device = &host.devices[its];
    let n = draft.affects.len();
    draft.sentence = format!(
        "{} stopped at {{since}}; {n} other{} for it: {}",
        begin(&devices(scene.hosts, &draft.subject)),
        if n == 1 { " is waiting" } else { "s are waiting" },
        stand(device)
    );
    let own = &scene.hosts[&source];
    let stopped = &own.devices[position];
    let usage = stopped.recent(Sig::Use);
    let words = usage.map_or("it is missing".into(), |slot| format!("its utilization {} %", whole(slot.now)));
    if let Some(row) = stopped.slot(Sig::Use).row {
        let value = usage.map_or(f64::NAN, |slot| slot.now);
        draft.evidence.push(evidence(own, row, stopped.index, words, (value, stopped.slot(Sig::Use).level())));
    }
    draft.evidence.extend(facts(host, device, scene.groups[at].cores(scene.hosts, scene.now), Proof::Power));
    scene.raise(key, draft);
}

/// Reports a group that does nothing while its processes live.
fn idle(scene: &mut Scene, at: usize, key: Key, cores: Option<f64>, stands: &Stands) {
    let now = scene.now;
    let group = &scene.groups[at];
    let course = &group.course;
    let step = group.step(scene.hosts);
    let wait = 180.max(3 * course.longest_pause(Phase::Idle)).min(MAX_WAIT_S).max(3 * step);
    // It may wait for an active part of its job.
    let waits = |places: &[usize]| places.iter().any(|at| scene.groups[*at].course.phase != Phase::Idle);
    let wait = match &stands.whole {
        Some((places, _)) if waits(places) => wait.max(if stands.sure { MAX_KIN_WAIT_S } else { MAX_WAIT_S }),
        _ => wait,
    };
    if course.worked < 300 || course.longest < 120 || now - course.since < wait {
        return;
    }
    // A group that works only now and then, as a notebook does, will work again: the rule `idle` reports it.
    let lived = course.since - group.began;
    if (course.worked as f64) < 0.6 * lived as f64 {
        return;
    }
    let beside: Vec<&Group> = stands.beside.iter().map(|at| &scene.groups[*at]).collect();
    let bytes = bytes_of(group, &beside, scene.hosts, now, (0.05, MAX_QUIET_BYTES / 2.0));
    if bytes == Bytes::Busy || (bytes == Bytes::Foreign && now - course.since < MAX_ABSENCE_S) {
        return;
    }
    let mut held = true;
    let mut quiet = true;
    let mut processes: Vec<(u32, u32)> = Vec::new();
    for (source, position) in &group.members {
        let Some(host) = scene.hosts.get(source) else { return };
        let device = &host.devices[*position];
        // Another process may have replaced it.
        held &= device.work.worked >= 300;
        let memory = device.memory_slot();
        held &= memory.is_some_and(|slot| slot.level().is_some_and(|level| slot.now >= 0.5 * level));
        let cpu = host.recent(HostSig::Cpu).or_else(|| host.recent(HostSig::ProcessCpu));
        quiet &= match (cores, cpu) {
            (Some(cores), _) => cores <= 0.3,
            (None, Some(cpu)) => cpu.level().is_some_and(|level| cpu.minute <= (0.7 * level).max(1.0)),
            (None, None) => false,
        };
        processes.extend(device.pids.first().map(|pid| (*source, *pid)));
    }
    if !held || !quiet {
        return;
    }
    processes.sort_unstable();
    processes.dedup();
    // A single process may be a notebook whose user is reading, so this is not certain.
    let sure = group.members.len() > 1 && processes.len() != 1;
    let severity = if sure { Severity::Warning } else { Severity::Note };
    let (_, mut draft) = draft(scene, &[at], "hang.idle", severity, course.since);
    let group = &scene.groups[at];
    let (source, position) = group.members[0];
    let host = &scene.hosts[&source];
    let device = &host.devices[position];
    let memory = device.memory_share().map_or(String::new(), |share| format!(", memory {} %", whole(share)));
    draft.sentence = format!(
        "{} {} been idle since {{since}}, but the processes are still running: utilization 0 %{memory}",
        begin(&all(scene.hosts, &draft.subject)),
        if draft.subject.len() == 1 { "has" } else { "have" },
    );
    draft.evidence = facts(host, device, cores, Proof::Use);
    if let Some(slot) = device.memory_slot()
        && let Some(row) = slot.row
    {
        let words = format!("memory is still allocated, {}", crate::words::in_unit(slot.now, row.unit));
        draft.evidence.insert(1, evidence(host, row, device.index, words, (slot.now, slot.level())));
    }
    scene.raise(key, draft);
}
