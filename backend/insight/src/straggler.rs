//! One member of a group that is slower than it used to be, and the others wait for it.
//!
//! What is uneven by design or by board is taken out: a member is compared with what it usually is among its peers.

use crate::device::{CHANNELS, CLOCK, Device, NVLINK, POWER, TRAFFIC, USE, WORK};
use crate::finding::{Draft, Key};
use crate::group::Group;
use crate::hang::counter;
use crate::levels::median;
use crate::scene::{Scene, sight};
use crate::signal::{HostSig, Sig, host_row_of};
use crate::words::{At, begin, devices, evidence, whole};
use crate::{Entry, Hosts, Source};
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: Entry = Entry {
    rules: &[
        ("straggler.slow", |hosts| {
            sight(hosts, &[Sig::Use, Sig::Power], &[(Sig::Clock, "SM clocks"), (Sig::Tensor, "profiling counters")])
        }),
        ("straggler.waits", |hosts| sight(hosts, &[Sig::Power], &[(Sig::Tensor, "profiling counters")])),
    ],
    judge,
};

/// Seconds of habit before a member can be off it.
const HABIT: f64 = 120.0;
/// How far below its habit each channel must be: clock, power, use, work, memory traffic.
const FLOORS: [f64; 5] = [0.06, 0.10, 0.07, 0.10, 0.10];
/// Below which a channel says nothing.
const LEAST: [f64; CHANNELS] = [100.0, 10.0, 20.0, 3.0, 8.0, 2e8];
/// 80 of 120 s.
const WINDOW: i64 = 120;
const SHARE: f64 = 2.0 / 3.0;
/// After so many seconds what is off is what is usual.
const SETTLES: i64 = 900;

/// The value of a channel of a device at this tick.
fn channel(device: &Device, of: usize, work: Option<Sig>) -> Option<f64> {
    match of {
        CLOCK => device.now(Sig::Clock),
        POWER => device.now(device.power_sig()),
        USE => device.now(Sig::Use),
        WORK => device.now(work?),
        TRAFFIC => device.now(Sig::Activity),
        _ => match (device.now(Sig::NvTx), device.now(Sig::NvRx)) {
            (None, None) => None,
            (tx, rx) => Some(tx.unwrap_or(0.0) + rx.unwrap_or(0.0)),
        },
    }
}

/// Gathers what the members do in work, and nothing of the seconds around a stop.
fn gather(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let group = &mut scene.groups[at];
    let step = group.step(scene.hosts);
    let length = step.max(10);
    let settled = group.is_working() && now - group.course.since >= 15.max(step);
    if group.marks.work.is_none() || now % 60 < step {
        let levels = |sig: &Sig| {
            let mut known = group.members.iter().filter_map(|(source, at)| scene.hosts.get(source)?.devices.get(*at));
            known.all(|d| d.recent(*sig).is_some_and(|slot| slot.level().is_some_and(|level| level >= 3.0)))
        };
        if group.marks.work.is_none_or(|sig| !levels(&sig)) {
            group.marks.work = [Sig::Tensor, Sig::Sm, Sig::Dram].into_iter().find(levels);
        }
    }
    let work = group.marks.work;
    let bucket = now.div_euclid(length);
    let closes = group.marks.bucket != bucket;
    group.marks.bucket = bucket;
    for (source, position) in &group.members {
        let Some(host) = scene.hosts.get_mut(source) else { continue };
        let here = host.newest == now;
        let device = &mut host.devices[*position];
        for of in 0..CHANNELS {
            if !settled {
                device.habits[of].discard();
                continue;
            }
            if closes {
                device.habits[of].close(length as f64, step as f64);
            }
            if let Some(value) = channel(device, of, work).filter(|_| here) {
                device.habits[of].gather(value);
            }
        }
    }
}

/// How a member stands to its peers in each channel: its ratio, and that over its habit; and the peers' value.
#[derive(Clone, Copy, Default)]
struct Stand {
    ratio: [Option<f64>; CHANNELS],
    off: [Option<(f64, f64)>; CHANNELS],
    own: [f64; CHANNELS],
    peers: [f64; CHANNELS],
}

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            gather(scene, at);
            group(scene, at);
        }
    }
}

/// Members that can be compared: of the family and model that most of them are, and here now.
fn stands(group: &Group, hosts: &Hosts, now: i64) -> Vec<Option<Stand>> {
    let device = |(source, at): &(Source, usize)| {
        let host = hosts.get(source).filter(|host| host.is_recent(now))?;
        host.devices.get(*at).filter(|device| device.seen >= host.newest - host.patience())
    };
    let members: Vec<Option<&Device>> = group.members.iter().map(device).collect();
    let mut models: Vec<u64> = members.iter().flatten().map(|d| d.model()).collect();
    models.sort_unstable();
    let most = models.chunk_by(|a, b| a == b).max_by_key(|chunk| chunk.len()).and_then(|chunk| chunk.first().copied());
    let members: Vec<Option<&Device>> = members.into_iter().map(|d| d.filter(|d| Some(d.model()) == most)).collect();
    let work = [Sig::Tensor, Sig::Sm, Sig::Dram].into_iter().find(|sig| {
        members
            .iter()
            .flatten()
            .all(|d| d.recent(*sig).is_some_and(|slot| slot.level().is_some_and(|level| level >= 3.0)))
    });
    let mut all: Vec<Option<Stand>> = members.iter().map(|d| d.map(|_| Stand::default())).collect();
    for of in 0..CHANNELS {
        let values: Vec<Option<f64>> = members.iter().map(|d| d.and_then(|d| d.habits[of].mean())).collect();
        let mut known: Vec<f64> = values.iter().flatten().copied().collect();
        if known.len() < 2 || known.len() * 2 < members.len() {
            continue;
        }
        let whole = median(&mut known.clone());
        for (at, value) in values.iter().enumerate() {
            let (Some(value), Some(stand), Some(device)) = (value, all[at].as_mut(), members[at]) else { continue };
            // Among many one more or less is no difference.
            let peers = if known.len() > 16 {
                whole
            } else {
                let mut others: Vec<f64> =
                    values.iter().enumerate().filter(|(other, _)| *other != at).filter_map(|(_, v)| *v).collect();
                median(&mut others)
            };
            let Some(peers) = peers.filter(|peers| *peers >= LEAST[of]) else { continue };
            let ratio = value / peers;
            (stand.own[of], stand.peers[of]) = (*value, peers);
            stand.ratio[of] = Some(ratio);
            if let Some((habit, spread)) = device.habits[of].known(HABIT) {
                stand.off[of] = Some((ratio / habit - 1.0, 6.0 * spread / habit));
            }
        }
        known.clear();
    }
    all
}

/// How a member is slow: the channel, how far it is off, and what it must be off by.
#[derive(Clone, Copy)]
struct Slow {
    of: usize,
    off: f64,
    floor: f64,
    waits: bool,
}

/// Whether a member is slow by one channel; the one that says it most.
fn slow(stand: &Stand, device: &Device, members: usize) -> Option<Slow> {
    let mut worst: Option<Slow> = None;
    for (of, floor) in FLOORS.iter().enumerate() {
        // One that does less work or takes less power than it used to, at the same clock and use, is no slower: it has less to do.
        if matches!(of, WORK | TRAFFIC) || (of == POWER && stand.ratio[CLOCK].is_some()) {
            continue;
        }
        let Some((off, spread)) = stand.off[of] else { continue };
        // Its peers go on as they did: otherwise all do something else.
        if of != POWER && stand.peers[of] < 0.95 * peers_level(stand, device, of) {
            continue;
        }
        let floor = floor.max(spread);
        // Of two nobody knows which is off by their ratio; its own level tells.
        if members == 2 && (!matches!(of, CLOCK | USE) || !below_level(device, of, floor)) {
            continue;
        }
        if off < -floor && worst.is_none_or(|w| off / floor < w.off / w.floor) {
            worst = Some(Slow { of, off, floor, waits: false });
        }
    }
    worst
}

/// What its peers usually have, by its own level and habit.
fn peers_level(stand: &Stand, device: &Device, of: usize) -> f64 {
    let sig = if of == CLOCK { Sig::Clock } else { Sig::Use };
    let habit = device.habits[of].known(HABIT).map_or(1.0, |(habit, _)| habit);
    device.slot(sig).level().map_or(stand.peers[of], |level| level / habit)
}

fn below_level(device: &Device, of: usize, floor: f64) -> bool {
    let sig = if of == CLOCK { Sig::Clock } else { Sig::Use };
    device.slot(sig).level().zip(device.habits[of].mean()).is_some_and(|(level, mean)| mean < (1.0 - floor) * level)
}

/// Whether all others wait for a member that does not: they do a tenth less, and it does not.
fn awaited(stand: &Stand, device: &Device) -> Option<Slow> {
    let of = [WORK, TRAFFIC, POWER].into_iter().find(|of| stand.off[*of].is_some())?;
    let (off, spread) = stand.off[of]?;
    let sig = match of {
        WORK => device.work_sig()?,
        TRAFFIC => Sig::Activity,
        _ => device.power_sig(),
    };
    let level = device.recent(sig)?.level()?;
    let floor = spread.max(0.08);
    (off >= floor && stand.own[of] >= 0.95 * level).then_some(Slow { of, off, floor, waits: true })
}

fn group(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let own = &scene.groups[at];
    let (n, step) = (own.members.len(), own.step(scene.hosts));
    let key = Key::new("straggler", own.first(), format!("g{}", own.id));
    let open = scene.ledger.is_open(&key);
    let patience = (3 * step).max(5);
    let working = own.is_working() && now - own.course.since >= 45.max(2 * step);
    if n < 2 || !working {
        let idle = now - own.course.last_work >= 60.max(3 * step);
        scene.groups[at].marks.suspect.clear();
        let members = own_members(scene, at);
        for (source, position) in members {
            let marks = &mut scene.hosts.get_mut(&source).expect("a member is there").devices[position].marks;
            marks.slow.step(now, step, None);
            marks.waits.step(now, step, None);
        }
        if open && idle {
            scene.end(&key);
        }
        return;
    }
    let stands = stands(own, scene.hosts, now);
    let pace = own.pace(scene.hosts, None, now);
    let slowed = pace.is_some_and(|(pace, _)| pace <= 0.96);
    let stopped = pace.is_some_and(|(pace, _)| pace <= 0.90);
    let mut suspect = false;
    let mut candidates: Vec<(f64, usize, Slow)> = Vec::new();
    let mut even = true;
    for (member, stand) in stands.iter().enumerate() {
        let (source, position) = scene.groups[at].members[member];
        let Some(stand) = stand else { continue };
        let device = &scene.hosts[&source].devices[position];
        let below = slow(stand, device, n);
        let waits = if stopped && n >= 3 { awaited(stand, device) } else { None };
        suspect |= below.is_some() || waits.is_some();
        if scene.groups[at].marks.slow.contains(&(source, position)) {
            let half = |of: usize| stand.off[of].is_none_or(|(off, _)| off > -FLOORS[of] / 2.0);
            even = (0..FLOORS.len()).all(half) && pace.is_none_or(|(pace, _)| pace > 0.94);
        }
        let marks = &mut scene.hosts.get_mut(&source).expect("a member is there").devices[position].marks;
        // A member that is so much slower costs the job that much, and hardly more: a larger fall is another phase.
        let fits = |slow: Slow| pace.is_none_or(|(pace, _)| 1.0 - pace <= 2.0 * slow.off.abs() + 0.06);
        let below = below.filter(|slow| fits(*slow));
        marks.slow.step(now, step, Some(below.is_some() && slowed));
        marks.waits.step(now, step, Some(waits.is_some()));
        if let Some(below) = below.filter(|_| marks.slow.held(SHARE, WINDOW.max(12 * step))) {
            candidates.push((below.off / below.floor, member, below));
        } else if let Some(waits) = waits.filter(|_| marks.waits.held(SHARE, WINDOW.max(12 * step))) {
            candidates.push((-waits.off / waits.floor / 2.0, member, waits));
        }
    }
    let group = &mut scene.groups[at];
    group.marks.suspect.step(now, Some(suspect), patience);
    group.marks.even.step(now, Some(even), patience);
    let held = group.marks.suspect.since().map_or(0, |since| now - since);
    if open {
        let over = group.marks.even.held(60.max(3 * step));
        let group = scene.groups[at].clone();
        group.freeze(scene.hosts, now + 1 + step);
        if over {
            scene.end(&key);
            scene.groups[at].marks.slow.clear();
        }
        return;
    }
    if suspect && held < SETTLES {
        let group = scene.groups[at].clone();
        group.freeze(scene.hosts, now + 1 + step);
    } else {
        learn(scene, at, &stands, step as f64);
    }
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let Some(&(worst, ..)) = candidates.first() else { return };
    if !scene.groups[at].course.is_settled(now) || candidates.len() * 2 >= n.max(3) {
        return;
    }
    let worst: Vec<_> = candidates.into_iter().filter(|(off, ..)| *off <= 0.8 * worst).take(2).collect();
    tell(scene, at, key, &worst, &stands);
}

fn own_members(scene: &Scene, at: usize) -> Vec<(Source, usize)> {
    let all = scene.groups[at].members.iter().copied();
    all.filter(|(source, position)| scene.hosts.get(source).is_some_and(|h| h.devices.len() > *position)).collect()
}

fn learn(scene: &mut Scene, at: usize, stands: &[Option<Stand>], dt: f64) {
    for (member, stand) in stands.iter().enumerate() {
        let (source, position) = scene.groups[at].members[member];
        let Some(stand) = stand else { continue };
        let Some(host) = scene.hosts.get_mut(&source).filter(|host| host.newest == scene.now) else { continue };
        let device = &mut host.devices[position];
        for of in 0..CHANNELS {
            if let Some(ratio) = stand.ratio[of].filter(|_| device.work.frozen < scene.now) {
                device.habits[of].learn(ratio, dt);
            }
        }
    }
}

fn tell(scene: &mut Scene, at: usize, key: Key, slow: &[(f64, usize, Slow)], stands: &[Option<Stand>]) {
    let group = &scene.groups[at];
    let (_, member, how) = slow[0];
    let (source, position) = group.members[member];
    let host = &scene.hosts[&source];
    let device = &host.devices[position];
    let all = group.devices(scene.hosts);
    let named = |member: usize| {
        let (source, position) = group.members[member];
        scene.hosts.get(&source).map(|host| (source, host.devices[position].family, host.devices[position].index))
    };
    let subject: Vec<At> = slow.iter().filter_map(|(_, member, _)| named(*member)).collect();
    let affects: Vec<At> = all.iter().filter(|other| !subject.contains(other)).copied().collect();
    let Some(stand) = &stands[member] else { return };
    let name = begin(&devices(scene.hosts, &subject));
    let less = group.pace(scene.hosts, Some(member), scene.now).map(|(pace, _)| 100.0 * (1.0 - pace));
    let less = less.filter(|less| *less >= 1.0);
    let loses = less.map_or(String::new(), |less| format!("; the job does {} % less", whole(less)));
    let (own, peers) = (stand.own[how.of], stand.peers[how.of]);
    let plural = if subject.len() == 1 { "" } else { "s" };
    let (runs, its) = if subject.len() == 1 { ("runs", "its") } else { ("run", "their") };
    let does = match (how.waits, how.of) {
        (true, _) => {
            let less = less.map_or(String::new(), |less| format!(": they do {} % less", whole(less)));
            format!(
                "{} other GPUs have waited for {} since {{since}}{less}, {its} {} {} %",
                affects.len(),
                devices(scene.hosts, &subject),
                channel_name(how.of),
                whole(own)
            )
        }
        (_, CLOCK) => {
            format!("{name} {runs} at {} MHz, {its} peers at {}, since {{since}}{loses}", whole(own), whole(peers))
        }
        (_, POWER) => format!(
            "{name} take{} {} W, {its} peers {}, since {{since}}{loses}",
            if plural.is_empty() { "s" } else { "" },
            whole(own),
            whole(peers)
        ),
        (_, of) => format!(
            "{name}: {} {} % since {{since}}, {its} peers {} %{loses}",
            channel_name(of),
            whole(own),
            whole(peers)
        ),
    };
    let sentence = format!("{}; {}", does, reason(device, host));
    let mut facts: Vec<Evidence> = Vec::new();
    for of in [how.of, CLOCK, POWER, USE, WORK] {
        let sig = match of {
            CLOCK => Some(Sig::Clock),
            POWER => Some(device.power_sig()),
            USE => Some(Sig::Use),
            WORK => device.work_sig(),
            _ => Some(Sig::Activity),
        };
        let Some(row) = sig.and_then(|sig| device.slot(sig).row) else { continue };
        if facts.iter().any(|fact| fact.tag == row.tag) || stand.ratio[of].is_none() {
            continue;
        }
        let off = stand.off[of].map_or(String::new(), |(off, _)| format!(", {:+.0} % of what is usual", 100.0 * off));
        let unit = |value| crate::words::in_unit(value, row.unit);
        let words = format!("{} {}, its peers {}{off}", channel_name(of), unit(stand.own[of]), unit(stand.peers[of]));
        let level = sig.and_then(|sig| device.slot(sig).level());
        facts.push(evidence(host, row, device.index, words, (stand.own[of], level)));
    }
    let (words, value) = match group.pace(scene.hosts, Some(member), scene.now) {
        Some((pace, sig)) => {
            (format!("the others do {} % of what is usual, by {}", whole(100.0 * pace), counter(sig)), pace)
        }
        None => ("the others' work is not measured here".into(), f64::NAN),
    };
    if let Some(row) = device.slot(device.power_sig()).row {
        let _ = value;
        facts.push(evidence(host, row, device.index, words, (f64::NAN, None)));
    }
    // The means of a minute have moved by the floor some time after it began.
    let lag = (60.0 * how.floor / how.off.abs().max(how.floor)) as i64;
    let marks = &device.marks;
    let since = if how.waits { marks.waits.began(WINDOW) } else { marks.slow.began(WINDOW) };
    let draft = Draft {
        rule: if how.waits { "straggler.waits" } else { "straggler.slow" },
        severity: Severity::Warning,
        source,
        subject,
        affects,
        device: None,
        since: since - lag.min(60),
        sentence,
        evidence: facts,
        group: Some(group.id),
        also: Vec::new(),
    };
    let members: Vec<(Source, usize)> = slow.iter().map(|(_, member, _)| group.members[*member]).collect();
    scene.groups[at].marks.slow = members;
    scene.groups[at].marks.even.clear();
    scene.raise(key, draft);
}

fn channel_name(of: usize) -> &'static str {
    match of {
        CLOCK => "clock",
        POWER => "power",
        USE => "use",
        WORK => "work of the cores",
        _ => "memory traffic",
    }
}

/// What else the device shows that makes it slow.
fn reason(device: &Device, host: &crate::host::Host) -> String {
    let bits = device.recent(Sig::Throttle).map_or(0, |slot| slot.raw as u32);
    let lanes = device.recent(Sig::Width).map(|s| s.now).zip(device.recent(Sig::MaxWidth).map(|s| s.now));
    let throttled = host.recent(HostSig::Throttled).map(|slot| slot.minute);
    match () {
        () if bits & (32 | 64) != 0 => "heat holds it back".into(),
        () if bits & (8 | 128) != 0 => "the board cuts its power".into(),
        () if lanes.is_some_and(|(now, most)| now < most) => {
            let (now, most) = lanes.unwrap_or_default();
            format!("it has {} of {} PCIe lanes", whole(now), whole(most))
        }
        () if device.pids.len() > 1 => format!("process {} uses it too", device.pids[1]),
        () if throttled.is_some_and(|share| share >= 20.0) => {
            let _ = host_row_of(HostSig::Throttled);
            format!("its process was throttled in {} % of periods", whole(throttled.unwrap_or(0.0)))
        }
        () => "no reason in what is measured".into(),
    }
}
