//! GPUs that wait for data from a machine that cannot supply it fast enough.

use crate::finding::Draft;
use crate::group::Group;
use crate::host::Host;
use crate::key::{Key, What};
use crate::next;
use crate::phase::Phase;
use crate::scene::{Scene, sight};
use crate::signal::{HostSig, NamedSig, Sig, host_row_of, named_row_of};
use crate::words::{At, all as whole_group, begin, devices, evidence, number_of, rate, whole};
use crate::{DetectorEntry, Hosts, Source};
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("starvation", |hosts| sight(hosts, &[Sig::Use], &[(Sig::Power, "power")]))], judge };

/// Maximum use of a group that may starve without a measured cause, percent, and its minimum distance below the level.
/// Then the minimum distance with a measured cause, in points and as a share.
const MAX_STARVED_PERCENT: f64 = 75.0;
const MIN_DROP_PERCENT: f64 = 15.0;
const LESS_KNOWN: f64 = 8.0;
const SHARE_KNOWN: f64 = 0.9;
/// Maximum excess of power and work over use; and the maximum share of its power in work that a GPU takes in a wait. A
/// GPU keeps its clocks up while a process has it open: 17 of 61 W of a T4 at its limit, 40 of 94 W of an A10 in a
/// light job.
const MAX_EXCESS: f64 = 0.15;
const MAX_WAIT_POWER: f64 = 0.45;
/// A cause must hold in this share of the window, seconds.
const SHARE: f64 = 0.6;
const WINDOW: i64 = 120;
/// Seconds after which a wait without a known cause is a note.
const UNKNOWN: i64 = 300;
/// Minimum bytes per second of a loaded network.
const LOADED: f64 = 20e6;
/// Minimum number of requests under way to a mount, as a multiple of its level.
const MIN_WAITS: f64 = 1.5;
/// Minimum traffic of a network, as a multiple of its level.
const MIN_TRAFFIC: f64 = 1.2;

/// Cause that delays the data.
struct Cause {
    words: String,
    device: Option<String>,
    fact: Evidence,
    next: &'static str,
}

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            group(scene, at);
        }
    }
}

/// Use of the group's members on a machine: mean of a minute, now, and level; with their power and work as shares of
/// their levels.
struct Busy {
    minute: f64,
    now: f64,
    level: f64,
    /// Power above idle and the cores' work, as shares of their levels.
    power: Option<f64>,
    work: Option<f64>,
}

fn busy(group: &Group, hosts: &Hosts, source: Source) -> Option<Busy> {
    let (mut minute, mut instant, mut level, mut n, mut all) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut power, mut work) = (Vec::new(), Vec::new());
    let host = hosts.get(&source)?;
    for (_, position) in group.members.iter().filter(|(own, _)| *own == source) {
        all += 1.0;
        let device = &host.devices[*position];
        let Some((slot, usual)) = device.recent(Sig::Use).and_then(|slot| Some((slot, slot.level()?))) else {
            continue;
        };
        (minute, instant, level, n) = (minute + slot.minute, instant + slot.now, level + usual, n + 1.0);
        if let Some((watts, _)) = device.power() {
            let room = device.work_power() - device.idle_power();
            if room > 0.0 {
                power.push((watts.minute - device.idle_power()) / room);
            }
        }
        if let Some(slot) = device.work_sig().and_then(|sig| device.recent(sig)) {
            work.push(slot.minute / slot.level);
        }
    }
    (n * 2.0 >= all && n > 0.0).then(|| Busy {
        minute: minute / n,
        now: instant / n,
        level: level / n,
        power: crate::levels::median(&mut power),
        work: crate::levels::median(&mut work),
    })
}

impl Busy {
    /// Whether power and work fell together with use: otherwise the GPUs do something else.
    fn fits(&self) -> bool {
        let share = self.minute / self.level;
        let above = MAX_EXCESS.max(MAX_WAIT_POWER * (1.0 - share));
        self.power.is_none_or(|power| power <= share + above) && self.work.is_none_or(|work| work <= share + MAX_EXCESS)
    }

    fn is_low(&self) -> bool {
        self.minute <= MAX_STARVED_PERCENT && self.minute <= self.level - MIN_DROP_PERCENT && self.fits()
    }

    fn is_lower(&self) -> bool {
        self.minute <= self.level - LESS_KNOWN && self.minute <= SHARE_KNOWN * self.level && self.fits()
    }
}

/// Judges whether a group waits for data.
fn group(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let own = &scene.groups[at];
    let step = own.step(scene.hosts);
    let key = Key::new("starvation", own.first(), What::Group(own.id));
    let phase = own.course.phase;
    let runs = matches!(phase, Phase::Working | Phase::Pausing) && own.course.worked >= 120;
    let recent = |source: &Source| scene.hosts.get(source).is_some_and(|host| host.is_recent(now));
    let sources: Vec<Source> = own.sources().into_iter().filter(recent).collect();
    let all: Vec<(Source, Busy)> =
        sources.iter().filter_map(|source| Some((*source, busy(own, scene.hosts, *source)?))).collect();
    if all.is_empty() {
        return;
    }
    // Machines below their level that are at a limit.
    let lower = all.iter().filter(|(_, busy)| runs && busy.is_lower());
    let causes: Vec<(Source, Cause)> =
        lower.filter_map(|(source, _)| Some((*source, cause(scene, at, *source)?))).collect();
    let low = runs && all.iter().all(|(_, busy)| busy.is_low());
    let one = causes.first().map_or(all[0].0, |(source, _)| *source);
    let worst = all.iter().find(|(source, _)| *source == one).map_or(&all[0].1, |(_, busy)| busy);
    let well = all.iter().all(|(_, busy)| busy.minute >= busy.level - 8.0_f64.max(0.08 * busy.level));
    let group = &mut scene.groups[at];
    group.marks.low.step(now, step, Some(low));
    group.marks.cause.step(now, step, Some(!causes.is_empty()));
    // Data comes in pieces, and the GPUs work between them. One long stop has another cause.
    group.marks.bursts.step(now, step, Some(worst.now >= 0.3 * worst.level));
    group.marks.well.step(now, Some(well), (3 * step).max(5));
    let works = group.marks.bursts.held(0.1, 30) && group.marks.bursts.held(0.15, WINDOW);
    let marks = group.marks.clone();
    let open = scene.ledger.get(&key).map(|open| open.severity);
    if open.is_some() || ((low || !causes.is_empty()) && now - marks.low.since().min(marks.cause.since()) < 900) {
        let group = scene.groups[at].clone();
        group.freeze(scene.hosts, now + 1 + step);
    }
    let group = &scene.groups[at];
    let known = marks.cause.held(SHARE, WINDOW) && !causes.is_empty();
    if open.is_some_and(|severity| severity > Severity::Note || !known) {
        let stopped = now - group.course.last_work >= 600.max(3 * step) || phase == Phase::Off;
        if marks.well.held(60.max(2 * step)) || stopped {
            scene.end(&key);
        }
        return;
    }
    let unknown = marks.low.held(0.9, WINDOW) && now - marks.low.began(WINDOW) >= 100 && group.course.is_settled(now);
    let unknown = unknown && now - marks.low.since() >= UNKNOWN.max(3 * step) && !marks.cause.held(0.2, WINDOW);
    if !works || !(known || unknown) {
        return;
    }
    if open.is_some() {
        scene.ledger.supersede(now, &key);
    }
    let hit: Vec<Source> = if known { causes.iter().map(|(source, _)| *source).collect() } else { sources };
    let since = if known { marks.cause.began(WINDOW) } else { marks.low.since() };
    let found = causes.into_iter().next().filter(|_| known).map(|(_, cause)| cause);
    tell(scene, at, key, (one, worst, found), &hit, since);
}

/// Raises the finding about the machines `hit`, of which `one` is the worst, with the cause of the delay if known.
fn tell(
    scene: &mut Scene,
    at: usize,
    key: Key,
    (one, worst, found): (Source, &Busy, Option<Cause>),
    hit: &[Source],
    since: i64,
) {
    let group = &scene.groups[at];
    let lag = (60.0 * LESS_KNOWN / (worst.level - worst.minute).max(LESS_KNOWN)) as i64;
    let (members, affects): (Vec<At>, Vec<At>) =
        group.devices(scene.hosts).into_iter().partition(|(source, ..)| hit.contains(source));
    let waits = whole(100.0 * (1.0 - worst.minute / worst.level));
    let name = if affects.is_empty() {
        begin(&whole_group(scene.hosts, &members))
    } else {
        begin(&devices(scene.hosts, &members))
    };
    let (severity, why) = match &found {
        Some(cause) => (Severity::Warning, format!("data: {}", cause.words)),
        None => (Severity::Note, "an unknown reason".into()),
    };
    let verb = if members.len() == 1 { "has waited" } else { "have waited" };
    let sentence = format!("{name} {verb} {waits} % of the time since {{since}} for {why}");
    let device_name = found.as_ref().and_then(|cause| cause.device.clone());
    let next = found.as_ref().map(|cause| cause.next);
    let Some(facts) = proof(scene, group, one, worst, found) else { return };
    let draft = Draft {
        rule: "starvation",
        severity,
        source: one,
        subject: members,
        affects,
        device: device_name,
        since: since - lag,
        sentence,
        evidence: facts,
        group: Some(group.id),
        also: Vec::new(),
        next,
    };
    scene.raise(key, draft);
}

/// Evidence on the machine `one`: use, the cause, and power.
fn proof(scene: &Scene, group: &Group, one: Source, worst: &Busy, found: Option<Cause>) -> Option<Vec<Evidence>> {
    let (_, position) = group.members.iter().find(|(source, _)| *source == one)?;
    let host = &scene.hosts[&one];
    let device = &host.devices[*position];
    let mut facts = Vec::new();
    if let Some(row) = device.slot(Sig::Use).row {
        let words = format!("utilization {} % over a minute, usually {} %", whole(worst.minute), whole(worst.level));
        facts.push(evidence(host, row, device.index, words, (worst.minute, Some(worst.level))));
    }
    match found {
        Some(cause) => facts.push(cause.fact),
        None => {
            let words = "disks, processors and networks are not at their limit".to_string();
            facts.push(evidence(host, host_row_of(HostSig::Cpu), "", words, (f64::NAN, None)));
        }
    }
    match (worst.power, device.slot(device.power_sig()).row) {
        (Some(share), Some(row)) => {
            let value = device.slot(device.power_sig()).minute;
            let words = format!("power above idle {} % of normal", whole(100.0 * share));
            facts.push(evidence(host, row, device.index, words, (value, Some(device.work_power()))));
        }
        _ => facts.extend(
            crate::signal::row_of(device.family, Sig::Power)
                .map(|row| crate::words::absent(host, row, device.index, "power")),
        ),
    }
    Some(facts)
}

/// Whether another job than the group at `at` runs on a machine.
fn is_shared(scene: &Scene, at: usize, source: Source) -> bool {
    let there = |group: &Group| group.members.iter().any(|(own, _)| *own == source);
    let mut others = scene.groups.iter().enumerate().filter(|(other, _)| *other != at);
    others.any(|(_, group)| there(group) && group.course.is_alive(scene.now, 600))
}

/// Whether a machine is at a limit that it did not reach in work.
fn cause(scene: &Scene, at: usize, source: Source) -> Option<Cause> {
    let host = scene.hosts.get(&source)?;
    let reads = match (host.recent(HostSig::DiskIn), host.recent(HostSig::DiskOut)) {
        // Written data is no data to wait for.
        (Some(read), Some(written)) => {
            let goes_on = read.level().is_some_and(|level| level >= 0.5 && read.short >= 0.3 * level);
            read.short >= written.short || goes_on
        }
        _ => true,
    };
    let risen = |level: Option<f64>, value: f64, by: f64| level.is_none_or(|level| value >= level + by);
    let made = |words: String, device: Option<String>, fact: Evidence, next| Cause { words, device, fact, next };
    if reads {
        let busiest = host
            .named(NamedSig::Busy, host.patience())
            .filter(|n| n.slot.short >= 90.0 && risen(n.slot.level(), n.slot.short, 10.0))
            .max_by(|a, b| a.slot.short.total_cmp(&b.slot.short));
        if let Some(disk) = busiest {
            let words = format!("disk {} {} % busy", disk.name, whole(disk.slot.short));
            let row = named_row_of(NamedSig::Busy);
            let fact = evidence(host, row, &disk.name, words.clone(), (disk.slot.short, disk.slot.level()));
            return Some(made(words, Some(disk.name.clone()), fact, next::DISK_BUSY));
        }
        if let Some(cause) = mount(host) {
            return Some(cause);
        }
        if let Some(slot) = over(host, HostSig::PressureIo, 20.0, 10.0) {
            let words = format!("tasks wait for disks {} % of the time", whole(slot.0));
            let fact = evidence(host, host_row_of(HostSig::PressureIo), "", words.clone(), slot);
            return Some(made(words, None, fact, next::DISK_WAITS));
        }
    }
    for (sig, least, by, what, next) in [
        (HostSig::Cpu, 92.0, 5.0, "processors", next::CORES_FULL),
        (HostSig::PressureCpu, 25.0, 10.0, "tasks wait for CPUs", next::CORES_AWAITED),
        (HostSig::Throttled, 20.0, 10.0, "CPU throttling", next::QUOTA),
    ] {
        if let Some(slot) = over(host, sig, least, by) {
            let words = match sig {
                HostSig::Cpu => format!("{what} {} % busy", whole(slot.0)),
                HostSig::PressureCpu => format!("{what} {} % of the time", whole(slot.0)),
                _ => format!("its processes are throttled in {} % of periods", whole(slot.0)),
            };
            let fact = evidence(host, host_row_of(sig), "", words.clone(), slot);
            return Some(made(words, None, fact, next));
        }
    }
    // A network tells no limit. That it receives more than ever shows one only where nobody else began to.
    let received = host.recent(HostSig::NetIn).filter(|_| !is_shared(scene, at, source))?;
    let flat = (received.short - received.minute).abs() <= 0.05 * received.minute;
    let most = host.marks.received_most;
    let more = received.level().is_some_and(|level| received.minute >= MIN_TRAFFIC * level);
    if received.minute >= LOADED && flat && more && received.minute >= 0.95 * most {
        let words = format!("the network receives {}, its maximum so far", rate(received.minute));
        let fact = evidence(host, host_row_of(HostSig::NetIn), "", words.clone(), (received.minute, received.level()));
        return Some(made(words, None, fact, next::NETWORK_FULL));
    }
    None
}

/// The network file system that a machine waits for all the time and did not wait for in work: the one with the most
/// requests under way. Waits for it are no use of a disk.
fn mount(host: &Host) -> Option<Cause> {
    let waits = host
        .named(NamedSig::Waiting, host.patience())
        .filter(|n| n.slot.short >= 1.0 && n.slot.level().is_none_or(|level| n.slot.short >= MIN_WAITS * level))
        .max_by(|a, b| a.slot.short.total_cmp(&b.slot.short))?;
    let requests = number_of(waits.slot.short.round(), "request");
    let words = format!("{requests} to {} always under way", waits.name);
    let fact = evidence(
        host,
        named_row_of(NamedSig::Waiting),
        &waits.name,
        words.clone(),
        (waits.slot.short, waits.slot.level()),
    );
    Some(Cause { words, device: Some(waits.name.clone()), fact, next: next::MOUNT_WAITS })
}

/// Whether a machine receives far more than in work. Only steady means of a minute show whether that is the capacity of
/// its network.
pub(crate) fn may_wait_for_network(host: &Host) -> bool {
    let received = host.recent(HostSig::NetIn);
    received
        .is_some_and(|slot| slot.short >= LOADED && slot.level().is_some_and(|level| slot.short >= MIN_TRAFFIC * level))
}

/// Value and level of a signal at its limit, if it was below in work.
fn over(host: &Host, sig: HostSig, least: f64, by: f64) -> Option<(f64, Option<f64>)> {
    let slot = host.recent(sig)?;
    let level = slot.level();
    (slot.short >= least && level.is_none_or(|level| slot.short >= level + by)).then_some((slot.short, level))
}
