//! One member of a group that became slower, while the others wait for it.
//!
//! Differences by design or by board are removed: a member is compared with its usual ratio to its peers.

use crate::awaited;
use crate::device::{CHANNELS, CLOCK, Device, POWER, TRAFFIC, USE, WORK};
use crate::finding::Draft;
use crate::group::Group;
use crate::hang::counter;
use crate::hold::Share;
use crate::host::Host;
use crate::key::{Key, What};
use crate::levels::{Ordered, median};
use crate::logged;
use crate::next;
use crate::scene::{Scene, sight};
use crate::signal::{HostSig, NamedSig, Sig};
use crate::starvation::may_wait_for_network;
use crate::tenant;
use crate::words::{At, begin, devices, evidence, have_waited, in_unit, whole};
use crate::{DetectorEntry, Hosts, Source};
use shared::catalog::MetricDef;
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[
        ("straggler.slow", |hosts| {
            sight(hosts, &[Sig::Use, Sig::Power], &[(Sig::Clock, "SM clocks"), (Sig::Tensor, "profiling counters")])
        }),
        ("straggler.waits", |hosts| sight(hosts, &[Sig::Power], &[(Sig::Tensor, "profiling counters")])),
    ],
    judge,
};

/// Minimum seconds of habit before a member is judged.
const HABIT: f64 = 120.0;
/// Minimum excess of its power over its habit where neither work nor traffic is measured.
const POWER_ALONE: f64 = 0.1;
/// Minimum seconds that the others wait for one: the longest answer of a batch is waited for, too.
const MIN_WAIT_S: i64 = 150;
/// Minimum loss of the others, a share.
const SLOWED: f64 = 0.04;
/// A member that does less than usual by this share of the loss of all waits, too.
const WAITING_SHARE: f64 = 0.3;
/// A member whose use is this far below its habit has less to do.
const IDLE_DROP: f64 = 0.3;
/// A member that goes on as before is above its habit relative to the others, by at least this share of their loss. The
/// first applies to work and traffic; the second to power, because a wait takes power, too.
const SHOWN_BY_WORK: f64 = 0.85;
const SHOWN_BY_POWER: f64 = 0.3;
/// Minimum drop below the habit per channel: clock, power, use, work, memory traffic.
const FLOORS: [f64; 5] = [0.06, 0.10, 0.07, 0.10, 0.10];
/// The same for the clock at the power cap.
const CAPPED: f64 = 0.15;
/// Seconds until a member that may wait for its machine's network is reported as slow, if no other cause was found.
const REPORT_DELAY_S: i64 = 300;
/// Values below these carry no information, by channel.
const MIN_VALUES: [f64; CHANNELS] = [100.0, 10.0, 20.0, 3.0, 8.0, 1e8];
/// Minimum seconds between ticks from which the energy counter gives the power.
const MIN_ENERGY_STEP_S: i64 = 2;
/// Smaller deviations are no evidence, a share.
const STRAYS: f64 = 0.03;
/// 80 of 120 s.
const WINDOW: i64 = 120;
const SHARE: f64 = 2.0 / 3.0;
/// Share of the same window in which the driver reported the reason.
const REASON_SHARE: f64 = 0.25;
/// After this many seconds a deviation becomes usual.
const USUAL_AFTER_S: i64 = 900;

/// The value of a channel of a device at this tick. `step`: seconds between ticks.
fn channel(device: &Device, of: usize, work: Option<Sig>, step: i64) -> Option<f64> {
    match of {
        CLOCK => device.now(Sig::Clock),
        // Rare samples of power deviate more than the mean over all of the time between them.
        POWER => device.now(Sig::Energy).filter(|_| step >= MIN_ENERGY_STEP_S).or(device.now(device.power_sig())),
        USE => device.now(Sig::Use),
        WORK => device.now(work?),
        TRAFFIC => device.now(Sig::Activity),
        // Sent bytes over NVLink, else received bytes: their sum is no series that a chart can show.
        _ => device.now(Sig::NvTx).or(device.now(Sig::NvRx)),
    }
}

/// Gathers the members' values in work, without the seconds around a stop. Returns the length of a completed bucket of
/// seconds.
fn gather(scene: &mut Scene, at: usize) -> Option<i64> {
    let now = scene.now;
    let group = &mut scene.groups[at];
    let step = group.step(scene.hosts);
    let length = step.max(10);
    let settled = group.has_worked(now, 15.max(step));
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
    let quick = !group.marks.slow.is_empty();
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
                device.habits[of].close(length as f64, step as f64, quick);
            }
            if let Some(value) = channel(device, of, work, step).filter(|_| here) {
                device.habits[of].gather(value);
            }
        }
        if closes && settled {
            let values = std::array::from_fn(|of| device.habits[of].fresh().map_or(f32::NAN, |value| value as f32));
            device.lately.push((bucket - 2) * length, values);
        }
    }
    (closes && settled).then_some(length)
}

/// A member relative to its peers in each channel: its ratio, the ratio relative to its habit, and the peers' value.
#[derive(Clone, Copy, Default)]
struct Stand {
    ratio: [Option<f64>; CHANNELS],
    off: [Option<(f64, f64)>; CHANNELS],
    own: [f64; CHANNELS],
    peers: [f64; CHANNELS],
}

impl Stand {
    /// Whether its deviation is at most half of that of a slow member.
    fn is_even(&self) -> bool {
        let half = |of: usize| self.off[of].is_none_or(|(off, _)| off > -FLOORS[of] / 2.0);
        (0..FLOORS.len()).all(half)
    }
}

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            if let Some(length) = gather(scene, at) {
                let group = &mut scene.groups[at];
                let learns = group.marks.slow.is_empty() && !group.marks.suspect.held(0);
                awaited::bucket(group, scene.hosts, scene.now, length as f64, learns);
            }
            group(scene, at);
        }
    }
}

/// The members that can be compared: present, and of the most common family and model.
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
    let mut all: Vec<Option<Stand>> = members.iter().map(|d| d.map(|_| Stand::default())).collect();
    for (of, least) in MIN_VALUES.into_iter().enumerate() {
        let values: Vec<Option<f64>> = members.iter().map(|d| d.and_then(|d| d.habits[of].mean())).collect();
        let known = Ordered::new(values.iter().flatten().copied());
        if known.len() < 2 || known.len() * 2 < members.len() {
            continue;
        }
        for (at, value) in values.iter().enumerate() {
            let (Some(value), Some(stand), Some(device)) = (value, all[at].as_mut(), members[at]) else { continue };
            let Some(peers) = known.others(*value).filter(|peers| *peers >= least) else { continue };
            let ratio = value / peers;
            (stand.own[of], stand.peers[of]) = (*value, peers);
            stand.ratio[of] = Some(ratio);
            if let Some((habit, spread)) = device.habits[of].known(HABIT) {
                stand.off[of] = Some((ratio / habit - 1.0, 6.0 * spread / habit));
            }
        }
    }
    all
}

/// Slowness of a member: the channel, its deviation, and the minimum deviation.
#[derive(Clone, Copy)]
struct Slow {
    of: usize,
    off: f64,
    floor: f64,
    waits: bool,
}

/// The channel in which a member is slowest, if it is slow in any.
fn slow(stand: &Stand, device: &Device, members: usize) -> Option<Slow> {
    let mut worst: Option<Slow> = None;
    for (of, floor) in FLOORS.iter().enumerate() {
        // A member with less work or power at the same clock and use is not slower: it has less to do.
        if matches!(of, WORK | TRAFFIC) || (of == POWER && stand.ratio[CLOCK].is_some()) {
            continue;
        }
        let Some((off, spread)) = stand.off[of] else { continue };
        // Its peers go on as before, and are busy longer while they wait for it in a kernel; otherwise all do something
        // else.
        let usual = peers_level(stand, device, of);
        let goes_on = match of {
            // An idle device lowers its clock, and is not slow.
            CLOCK => stand.peers[of] >= 0.95 * usual && stand.off[USE].is_none_or(|(off, _)| off > -IDLE_DROP),
            // The peers wait as much of their idle time as the member loses; half of that is a safe bound.
            USE => stand.peers[of] >= (usual + 1.5_f64.max(0.5 * off.abs() * (100.0 - usual))).min(97.5),
            _ => true,
        };
        if !goes_on {
            continue;
        }
        let floor = if of == CLOCK && device.is_capped() { &CAPPED } else { floor };
        let floor = floor.max(spread);
        // Between two members a ratio does not show which one deviates; its own level does.
        if members == 2 && (!matches!(of, CLOCK | USE) || !below_level(device, of, floor)) {
            continue;
        }
        if off < -floor && worst.is_none_or(|w| off / floor < w.off / w.floor) {
            worst = Some(Slow { of, off, floor, waits: false });
        }
    }
    worst
}

/// Usual value of its peers, derived from its own level and habit.
fn peers_level(stand: &Stand, device: &Device, of: usize) -> f64 {
    let sig = if of == CLOCK { Sig::Clock } else { Sig::Use };
    let habit = device.habits[of].known(HABIT).map_or(1.0, |(habit, _)| habit);
    device.slot(sig).level().map_or(stand.peers[of], |level| level / habit)
}

fn below_level(device: &Device, of: usize, floor: f64) -> bool {
    let sig = if of == CLOCK { Sig::Clock } else { Sig::Use };
    device.slot(sig).level().zip(device.habits[of].mean()).is_some_and(|(level, mean)| mean < (1.0 - floor) * level)
}

/// Whether most members do less than usual. Where half of them go on, they are of another job, or wait for nobody.
fn all_wait(group: &Group, hosts: &Hosts, stands: &[Option<Stand>], pace: Option<(f64, Sig)>) -> bool {
    let Some((pace, _)) = pace else { return true };
    let does = |((source, at), stand): (&(Source, usize), &Option<Stand>)| {
        let (stand, device) = (stand.as_ref()?, hosts.get(source)?.devices.get(*at)?);
        let of = [WORK, TRAFFIC, POWER].into_iter().find(|of| stand.ratio[*of].is_some())?;
        Some(stand.own[of] / device.level_of(of, group.marks.work)?)
    };
    let all: Vec<f64> = group.members.iter().zip(stands).filter_map(does).collect();
    let wait = all.iter().filter(|part| **part <= 1.0 - WAITING_SHARE * (1.0 - pace).max(0.0)).count();
    // One of them does not wait.
    wait >= (all.len().saturating_sub(1) * 3).div_ceil(4)
}

/// Whether all others wait for a member that does not wait: they do a tenth less, and it does not.
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

/// The same for a member that takes a little longer, once the sum of evidence is sure.
fn awaited_by(group: &Group, stand: &Stand, device: &Device, lost: f64) -> Option<Slow> {
    let (of, effect) = awaited::shown_by(device)?;
    let (off, spread) = stand.off[of]?;
    let level = device.level_of(of, group.marks.work)?;
    // Members that wait for another do so in a kernel. Where use has fallen, all of them wait for something else, as
    // for data.
    let spins = stand.peers[USE] <= 0.0 || stand.peers[USE] >= (1.0 - FLOORS[USE]) * peers_level(stand, device, USE);
    // Power drifts by some hundredths with heat and fans: alone it needs a larger deviation.
    let alone = stand.off[WORK].is_none() && stand.off[TRAFFIC].is_none();
    let holds = off >= if alone { POWER_ALONE } else { effect / 2.0 }
        && off >= if of == POWER { SHOWN_BY_POWER } else { SHOWN_BY_WORK } * lost
        && stand.own[of] >= 0.95 * level
        && spins
        && awaited::waits(group);
    holds.then_some(Slow { of, off, floor: spread, waits: true })
}

/// A group that does not work drops its suspects; the finding about it ends once it is idle.
fn rest(scene: &mut Scene, at: usize, key: Key, open: bool) {
    let (now, own) = (scene.now, &scene.groups[at]);
    let step = own.step(scene.hosts);
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
        scene.groups[at].marks.slow.clear();
    }
}

/// Continues an open finding, or ends it when it is `over`. Meanwhile nothing is learned.
fn go_on(scene: &mut Scene, at: usize, key: &Key, over: bool) {
    let group = scene.groups[at].clone();
    group.freeze(scene.hosts, scene.now + 1 + group.step(scene.hosts));
    if over {
        scene.end(key);
        for (source, position) in std::mem::take(&mut scene.groups[at].marks.slow) {
            if let Some(device) = scene.hosts.get_mut(&source).and_then(|host| host.devices.get_mut(position)) {
                device.marks.awaited = Default::default();
            }
        }
    }
}

/// The two slowest candidates; none where so many are slow that the others are no reference.
fn worst(mut candidates: Vec<(f64, usize, Slow)>, members: usize) -> Vec<(f64, usize, Slow)> {
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let Some(&(worst, ..)) = candidates.first().filter(|_| candidates.len() * 2 < members.max(3)) else {
        return Vec::new();
    };
    candidates.into_iter().filter(|(off, ..)| *off <= 0.8 * worst).take(2).collect()
}

/// Comparison of the members of a group.
struct Members {
    /// A member may be slow, or waited for.
    suspect: bool,
    /// The members of the open finding match the others again.
    even: bool,
    /// Members that may be about to deviate.
    doubts: Vec<bool>,
    /// Slowness, member, and details.
    candidates: Vec<(f64, usize, Slow)>,
}

/// Compares the members of a group; `shares`: the open finding is about GPUs that other programs use, too.
fn members(scene: &mut Scene, at: usize, stands: &[Option<Stand>], pace: Option<(f64, Sig)>, shares: bool) -> Members {
    let (now, n) = (scene.now, scene.groups[at].members.len());
    let step = scene.groups[at].step(scene.hosts);
    let slowed = pace.is_some_and(|(pace, _)| pace <= 0.96);
    let stopped = pace.is_some_and(|(pace, _)| (0.5..=0.90).contains(&pace));
    let mut suspect = false;
    let mut doubts = vec![false; stands.len()];
    let held = all_wait(&scene.groups[at], scene.hosts, stands, pace);
    let mut candidates: Vec<(f64, usize, Slow)> = Vec::new();
    let mut even = true;
    for (member, stand) in stands.iter().enumerate() {
        let (source, position) = scene.groups[at].members[member];
        let Some(stand) = stand else { continue };
        let device = &scene.hosts[&source].devices[position];
        let below = slow(stand, device, n);
        let waits = if stopped && n >= 3 { awaited(stand, device).filter(|_| held) } else { None };
        let more = device.marks.awaited;
        suspect |= below.is_some() || waits.is_some() || more.is_doubted();
        // A member that may be about to deviate updates no habit.
        doubts[member] =
            [CLOCK, POWER, USE].iter().any(|of| stand.off[*of].is_some_and(|(off, _)| off < -0.6 * FLOORS[*of]));
        let own = &scene.groups[at];
        if own.marks.slow.contains(&(source, position)) {
            even = match shares {
                true => !tenant::goes_on(own, scene, (source, position)),
                false => {
                    stand.is_even()
                        && pace.is_none_or(|(pace, _)| pace > 0.94)
                        && (!own.marks.awaited || more.is_over())
                }
            };
        }
        // A slower member costs the others as much as itself, and hardly more: a larger drop is another phase. A member
        // that waits for its own machine costs them hardly less.
        let asked = below.is_some() || (n >= 3 && more.is_sure());
        let others = asked.then(|| scene.groups[at].pace(scene.hosts, Some(member), now)).flatten();
        let lost = others.map(|(pace, _)| 1.0 - pace);
        let fits = |slow: Slow| {
            let least = if slow.of == USE { 0.6 * slow.off.abs() } else { 0.0 };
            lost.is_none_or(|lost| (least..=1.3 * slow.off.abs() + 0.05).contains(&lost))
        };
        let habits = &scene.hosts[&source].devices[position].habits;
        let recovers = |slow: Slow| habits[slow.of].last > stand.own[slow.of] * (1.0 + 0.5 * slow.off.abs());
        let below = below.filter(|slow| fits(*slow) && !recovers(*slow));
        let awaits = || awaited_by(&scene.groups[at], stand, device, lost.unwrap_or_default());
        let awaited = (n >= 3 && more.is_sure() && held).then(awaits).flatten();
        let marks = &mut scene.hosts.get_mut(&source).expect("a member is there").devices[position].marks;
        marks.slow.step(now, step, Some(below.is_some() && slowed && lost.is_some_and(|lost| lost >= SLOWED)));
        marks.waits.step(now, step, Some(waits.is_some()));
        let window = WINDOW.max(6 * step);
        let waited = marks.waits.held(SHARE, window) && now - marks.waits.since() >= MIN_WAIT_S;
        if let Some(below) = below.filter(|_| marks.slow.held(SHARE, window)) {
            candidates.push((below.off / below.floor, member, below));
        } else if let Some(waits) = waits.filter(|_| waited) {
            candidates.push((-waits.off / waits.floor / 2.0, member, waits));
        } else if let Some(awaited) = awaited {
            candidates.push((-more.sure() / 4.0, member, awaited));
        }
    }
    Members { suspect, even, doubts, candidates }
}

/// Judges whether members of a group are slower than the others.
fn group(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let own = &scene.groups[at];
    let (n, step) = (own.members.len(), own.step(scene.hosts));
    let key = Key::new("straggler", own.first(), What::Group(own.id));
    let open = scene.ledger.is_open(&key);
    let patience = (3 * step).max(5);
    let working = own.has_worked(now, 45.max(2 * step));
    if n < 2 || !working {
        rest(scene, at, key, open);
        return;
    }
    let stands = stands(own, scene.hosts, now);
    let pace = own.pace(scene.hosts, None, now);
    let shares = open && scene.ledger.get(&key).is_some_and(|open| open.rule == "straggler.shared");
    let Members { suspect, even, doubts, candidates } = members(scene, at, &stands, pace, shares);
    let group = &mut scene.groups[at];
    group.marks.suspect.step(now, Some(suspect), patience);
    group.marks.even.step(now, Some(even), patience);
    let held = group.marks.suspect.since().map_or(0, |since| now - since);
    if open {
        let over = group.marks.even.held(60.max(3 * step));
        go_on(scene, at, &key, over);
        return;
    }
    if suspect && held < USUAL_AFTER_S {
        let group = scene.groups[at].clone();
        group.freeze(scene.hosts, now + 1 + step);
    } else {
        learn(scene, at, &stands, step as f64, &doubts);
    }
    // The group waits for machines that bring no data.
    if scene.ledger.has_in_group("starvation", scene.groups[at].id) {
        return;
    }
    let worst = worst(candidates, n);
    // A machine whose network may delay its data is checked first: its GPUs are used less, but they are not slow.
    let heard = worst.iter().all(|(_, member, slow)| {
        let (source, position) = scene.groups[at].members[*member];
        let host = &scene.hosts[&source];
        let long = now - host.devices[position].marks.slow.since() >= REPORT_DELAY_S;
        slow.waits || slow.of != USE || long || !may_wait_for_network(host)
    });
    if heard && !worst.is_empty() {
        tell(scene, at, key, &worst, &stands);
    }
}

fn own_members(scene: &Scene, at: usize) -> Vec<(Source, usize)> {
    let all = scene.groups[at].members.iter().copied();
    all.filter(|(source, position)| scene.hosts.get(source).is_some_and(|h| h.devices.len() > *position)).collect()
}

fn learn(scene: &mut Scene, at: usize, stands: &[Option<Stand>], dt: f64, doubts: &[bool]) {
    for (member, stand) in stands.iter().enumerate() {
        let (source, position) = scene.groups[at].members[member];
        let Some(stand) = stand else { continue };
        let Some(host) = scene.hosts.get_mut(&source).filter(|host| host.newest == scene.now) else { continue };
        let device = &mut host.devices[position];
        device.marks.doubted.step(scene.now, Some(doubts[member]), 60);
        let doubted = doubts[member] && !device.marks.doubted.held(USUAL_AFTER_S);
        for of in 0..CHANNELS {
            if doubted {
                continue;
            }
            if let Some(ratio) = stand.ratio[of].filter(|_| device.work.frozen < scene.now) {
                device.habits[of].learn(ratio, dt);
            }
        }
    }
}

/// Values of a member and its peers in a channel since an onset, and the member's deviation from its habit.
struct Since {
    own: f64,
    peers: f64,
    off: Option<f64>,
}

fn since(group: &Group, hosts: &Hosts, member: usize, stand: &Stand, (of, from): (usize, i64)) -> Since {
    let device = |(source, at): &(Source, usize)| hosts.get(source)?.devices.get(*at);
    let mean = |member: &(Source, usize)| device(member)?.lately.mean(of, from);
    let own = mean(&group.members[member]);
    let others = group.members.iter().enumerate().filter(|(at, _)| *at != member);
    let peers = median(&mut others.filter_map(|(_, member)| mean(member)).collect::<Vec<f64>>());
    let (Some(own), Some(peers)) = (own, peers.filter(|peers| *peers > 0.0)) else {
        return Since { own: stand.own[of], peers: stand.peers[of], off: stand.off[of].map(|(off, _)| off) };
    };
    let habit = device(&group.members[member]).and_then(|device| device.habits[of].known(HABIT));
    Since { own, peers, off: habit.map(|(habit, _)| own / peers / habit - 1.0) }
}

/// Evidence of a member: the channel in which it is slow, and others in which it deviates, each beside its peers.
fn member_evidence(
    host: &Host,
    device: &Device,
    stand: &Stand,
    how: Slow,
    told: impl Fn(usize) -> Since,
) -> Vec<Evidence> {
    let mut facts: Vec<Evidence> = Vec::new();
    for of in [how.of, CLOCK, POWER, USE, WORK] {
        let Some(row) = row_of(device, of) else { continue };
        if facts.iter().any(|fact| fact.tag == row.tag) || stand.ratio[of].is_none() {
            continue;
        }
        let Since { own, peers, off } = told(of);
        // A deviation within the usual range is no evidence.
        let strays = stand.off[of].map_or(STRAYS, |(_, spread)| spread.max(STRAYS));
        if of != how.of && off.is_none_or(|off| off.abs() <= strays) {
            continue;
        }
        let side = |off: f64| if off < 0.0 { "below" } else { "above" };
        let off = off.map_or(String::new(), |off| format!(", {:.0} % {} normal", 100.0 * off.abs(), side(off)));
        let unit = |value| in_unit(value, row.unit);
        let words = format!("{} {}, its peers {}{off}", channel_name(of), unit(own), unit(peers));
        let level = sig_of(device, of).and_then(|sig| device.slot(sig).level());
        facts.push(evidence(host, row, device.index, words, (own, level)));
    }
    facts
}

/// Pace of the other members, by the counter that measures it.
fn pace_of_others(scene: &Scene, group: &Group, member: usize, pace: Option<(f64, Sig)>) -> Option<Evidence> {
    let shown = pace.and_then(|(pace, sig)| Some((pace, sig, group.shown(scene.hosts, Some(member), sig)?)));
    let Some((pace, sig, (host, shown))) = shown else {
        let (source, position) = group.members[member];
        let host = &scene.hosts[&source];
        let device = &host.devices[position];
        let words = "the work of the other GPUs is not measured".to_string();
        let row = device.slot(device.power_sig()).row;
        return row.map(|row| evidence(host, row, device.index, words, (f64::NAN, None)));
    };
    let words = format!("the other GPUs work at {} % of normal, by {}", whole(100.0 * pace), counter(sig));
    let slot = shown.slot(sig);
    let value = slot.level().map_or(f64::NAN, |level| pace * level);
    slot.row.map(|row| evidence(host, row, shown.index, words, (value, slot.level())))
}

/// The cause of a member's slowness in words, its next step, and the evidence from times that ranks log.
struct Cause {
    why: String,
    next: Option<&'static str>,
    logged: Vec<Evidence>,
}

/// The cause that the member's device shows, else the one that its rank logs.
fn find_cause(group: &Group, hosts: &Hosts, member: usize, of: usize) -> Cause {
    let (source, position) = group.members[member];
    let host = &hosts[&source];
    let logged = |sig: NamedSig| logged::stands_out(group, hosts, member, sig);
    let (data, step) = (logged(NamedSig::DataTime), logged(NamedSig::StepTime));
    let (why, next) = reason(&host.devices[position], host, of)
        .or_else(|| data.clone().map(|(words, _)| (words, Some(next::RANK_DATA))))
        .or_else(|| step.clone().map(|(words, _)| (words, None)))
        .unwrap_or(("no cause visible in the metrics".into(), None));
    Cause { why, next, logged: [data, step].into_iter().flatten().map(|(_, fact)| fact).collect() }
}

/// Raises the finding about the members that are slow.
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
    // Its means reached the floor at `from`, some time after the onset; the finding covers the time from then on.
    let marks = &device.marks;
    let adds = how.waits && !marks.waits.held(SHARE, WINDOW);
    let from = match how.waits {
        true if adds => marks.awaited.since(),
        true => marks.waits.began(WINDOW),
        false => marks.slow.began(WINDOW),
    };
    let lag = (60.0 * how.floor / how.off.abs().max(how.floor)) as i64;
    let told = |of: usize| since(group, scene.hosts, member, stand, (of, from));
    let name = begin(&devices(scene.hosts, &subject));
    let pace = group.pace_since(scene.hosts, Some(member), scene.now, from);
    let less = pace.map(|(pace, _)| 100.0 * (1.0 - pace)).filter(|less| *less >= 1.0);
    let loses = less.map_or(String::new(), |less| format!("; the job runs {} % slower", whole(less)));
    let Since { own, peers, off } = told(how.of);
    let many = subject.len() > 1;
    let (runs, takes, its) = if many { ("run", "take", "their") } else { ("runs", "takes", "its") };
    let does = match (how.waits, how.of) {
        (true, _) => {
            let less = less.map_or(String::new(), |less| format!(": they run {} % slower", whole(less)));
            let unit = row_of(device, how.of).map_or(String::new(), |row| in_unit(own, row.unit));
            format!(
                "{} for {} since {{since}}{less}, {its} {} {unit}, {} % more relative to theirs than usual",
                have_waited(affects.len()),
                devices(scene.hosts, &subject),
                channel_name(how.of),
                whole(100.0 * off.unwrap_or(how.off))
            )
        }
        (_, CLOCK) => {
            format!("{name} {runs} at {} MHz, {its} peers at {}, since {{since}}{loses}", whole(own), whole(peers))
        }
        (_, POWER) => {
            format!("{name} {takes} {} W, {its} peers {}, since {{since}}{loses}", whole(own), whole(peers))
        }
        (_, of) => format!(
            "{name}: {} {} % since {{since}}, {its} peers {} %{loses}",
            channel_name(of),
            whole(own),
            whole(peers)
        ),
    };
    let Cause { why, next, logged } = find_cause(group, scene.hosts, member, how.of);
    let mut facts = member_evidence(host, device, stand, how, told);
    facts.extend(pace_of_others(scene, group, member, pace));
    facts.extend(logged);
    let draft = Draft {
        rule: if how.waits { "straggler.waits" } else { "straggler.slow" },
        severity: Severity::Warning,
        source,
        subject,
        affects,
        device: None,
        since: from - lag.min(60),
        sentence: format!("{does}; {why}"),
        evidence: facts,
        group: Some(group.id),
        also: Vec::new(),
        next,
    };
    let members: Vec<(Source, usize)> = slow.iter().map(|(_, member, _)| group.members[*member]).collect();
    scene.groups[at].marks.slow = members;
    scene.groups[at].marks.awaited = adds;
    scene.groups[at].marks.even.clear();
    scene.raise(key, draft);
}

/// The signal of a channel, and the row that fills it.
fn sig_of(device: &Device, of: usize) -> Option<Sig> {
    match of {
        CLOCK => Some(Sig::Clock),
        USE => Some(Sig::Use),
        of => device.sig_of(of, device.work_sig()),
    }
}

fn row_of(device: &Device, of: usize) -> Option<&'static MetricDef> {
    device.slot(sig_of(device, of)?).row
}

fn channel_name(of: usize) -> &'static str {
    match of {
        CLOCK => "clock",
        POWER => "power",
        USE => "utilization",
        WORK => "core activity",
        _ => "memory traffic",
    }
}

/// Reasons that the device itself shows for its slowness in a channel. The driver's are those of the last minutes: in a
/// checkpoint it reports none.
fn reason(device: &Device, host: &Host, of: usize) -> Option<(String, Option<&'static str>)> {
    let marks = &device.marks;
    let lately = |reason: &Share| reason.held(REASON_SHARE, WINDOW);
    let lanes = device.recent(Sig::Width).map(|s| s.now).zip(device.recent(Sig::MaxWidth).map(|s| s.now));
    let throttled = host.recent(HostSig::Throttled).map(|slot| slot.minute);
    Some(match () {
        () if lately(&marks.heat) => ("thermal throttling".into(), next::of_rule("throttle.heat")),
        () if lately(&marks.brake) => {
            (format!("the {} throttles it", crate::throttle::brake_name(device)), Some(next::POWER_BRAKE))
        }
        // Set clocks limit all GPUs of some sites, so they are a reason only where the clock itself is below the peers'.
        () if of == CLOCK && host.newest - i64::from(marks.set_clocks_at) <= WINDOW => {
            ("its clocks are set to a lower limit".into(), Some(next::CLOCKS_SET))
        }
        () if lanes.is_some_and(|(now, most)| now < most) => {
            let (now, most) = lanes.unwrap_or_default();
            let words = format!("it has {} of {} PCIe lanes", whole(now), whole(most));
            (words, next::of_rule("slow_link.pcie"))
        }
        () if device.pids.len() > 1 => (format!("process {} uses it too", device.pids[1]), Some(next::GUEST)),
        () if throttled.is_some_and(|share| share >= 20.0) => {
            let words = format!("its process was throttled in {} % of periods", whole(throttled.unwrap_or(0.0)));
            (words, Some(next::QUOTA))
        }
        () => return None,
    })
}
