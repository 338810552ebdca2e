//! GPUs that wait for data: a machine that cannot bring it fast enough.

use crate::finding::{Draft, Key};
use crate::group::Group;
use crate::host::Host;
use crate::phase::Phase;
use crate::scene::{Scene, sight};
use crate::signal::{HostSig, NamedSig, Sig, host_row_of, named_row_of};
use crate::words::{all, bytes, evidence, whole};
use crate::{Entry, Hosts, Source};
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: Entry =
    Entry { rules: &[("starvation", |hosts| sight(hosts, &[Sig::Use], &[(Sig::Power, "power")]))], judge };

/// Use below which a group may starve, percent, and how far below its level it must be.
const BELOW: f64 = 75.0;
const LESS: f64 = 15.0;
/// A cause must hold in this share of so many seconds.
const SHARE: f64 = 0.6;
const WINDOW: i64 = 120;
/// Without a cause it is a note after so many seconds.
const UNKNOWN: i64 = 300;
/// Bytes a second that are a load for a network.
const LOADED: f64 = 20e6;

/// What keeps the data back.
struct Cause {
    source: Source,
    words: String,
    device: Option<String>,
    fact: Evidence,
}

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            group(scene, at);
        }
    }
}

/// How busy the group's members are: over a minute, now, and at their level; with their power and work as shares of theirs.
struct Busy {
    minute: f64,
    now: f64,
    level: f64,
    /// Power above idle and the cores' work, as shares of their levels.
    power: Option<f64>,
    work: Option<f64>,
}

fn busy(group: &Group, hosts: &Hosts, now: i64) -> Option<Busy> {
    let (mut minute, mut instant, mut level, mut n) = (0.0, 0.0, 0.0, 0.0);
    let mut power = Vec::new();
    for (source, position) in &group.members {
        let Some(host) = hosts.get(source).filter(|host| host.is_recent(now)) else { continue };
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
    }
    let work = group.pace(hosts, None, now).filter(|(_, sig)| !matches!(sig, Sig::Power | Sig::PowerShare));
    (n * 2.0 >= group.members.len() as f64 && n > 0.0).then(|| Busy {
        minute: minute / n,
        now: instant / n,
        level: level / n,
        power: crate::levels::median(&mut power),
        work: work.map(|(pace, _)| pace),
    })
}

fn group(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let own = &scene.groups[at];
    let step = own.step(scene.hosts);
    let patience = (3 * step).max(5);
    let key = Key::new("starvation", own.first(), format!("g{}", own.id));
    let phase = own.course.phase;
    let Some(busy) = busy(own, scene.hosts, now).filter(|_| own.course.worked >= 120) else { return };
    let fits = |share: Option<f64>| share.is_none_or(|share| share <= busy.minute / busy.level + 0.15);
    let low = busy.minute <= BELOW
        && busy.minute <= busy.level - LESS
        && matches!(phase, Phase::Working | Phase::Pausing)
        && fits(busy.power)
        && fits(busy.work);
    let cause = if low { own.sources().iter().find_map(|source| cause(scene.hosts, *source)) } else { None };
    let group = &mut scene.groups[at];
    group.marks.low.step(now, Some(low), patience);
    group.marks.cause.step(now, step, Some(cause.is_some()));
    // Data comes in pieces: between them the GPUs work. One long stop is another thing.
    group.marks.bursts.step(now, step, Some(busy.now >= 0.3 * busy.level));
    group.marks.well.step(now, Some(busy.minute >= busy.level - 8.0), patience);
    let works = group.marks.bursts.held(0.1, 30) && group.marks.bursts.held(0.15, WINDOW);
    let open = scene.ledger.get(&key).is_some();
    if low || open {
        let group = scene.groups[at].clone();
        let held = group.marks.low.since().map_or(0, |since| now - since);
        if open || held < 900 {
            group.freeze(scene.hosts, now + 1 + step);
        }
    }
    let group = &scene.groups[at];
    if open {
        let stopped = now - group.course.last_work >= 600.max(3 * step) || phase == Phase::Off;
        if group.marks.well.held(60.max(2 * step)) || stopped {
            scene.end(&key);
        }
        return;
    }
    let known = group.marks.low.held(60.max(3 * step)) && group.marks.cause.held(SHARE, WINDOW);
    let unknown = group.marks.low.held(UNKNOWN.max(3 * step));
    if !works || !(known && cause.is_some() || unknown && cause.is_none()) || !group.course.is_settled(now) && !known {
        return;
    }
    let since = group.marks.low.since().unwrap_or(now);
    let lag = (60.0 * LESS / (busy.level - busy.minute).max(LESS)) as i64;
    let members = group.devices(scene.hosts);
    let waits = whole(100.0 * (1.0 - busy.minute / busy.level));
    let name = all(scene.hosts, &members);
    let (severity, why) = match &cause {
        Some(cause) => (Severity::Warning, format!("data: {}", cause.words)),
        None => (Severity::Note, "something that is not measured here".into()),
    };
    let verb = if members.len() == 1 { "has waited" } else { "have waited" };
    let sentence = format!("{name} {verb} {waits} % of the time since {{since}} for {why}");
    let source = cause.as_ref().map_or(group.first(), |cause| cause.source);
    let (first, position) = group.members[0];
    let host = &scene.hosts[&first];
    let device = &host.devices[position];
    let mut facts = Vec::new();
    if let Some(row) = device.slot(Sig::Use).row {
        let words = format!("use {} % over a minute, usually {} %", whole(busy.minute), whole(busy.level));
        facts.push(evidence(host, row, device.index, words, (busy.minute, Some(busy.level))));
    }
    let device_name = cause.as_ref().and_then(|cause| cause.device.clone());
    match cause {
        Some(cause) => facts.push(cause.fact),
        None => {
            let words = "disks, processors and networks are not at their limit".to_string();
            facts.push(evidence(host, host_row_of(HostSig::Cpu), "", words, (f64::NAN, None)));
        }
    }
    if let (Some(share), Some(row)) = (busy.power, device.slot(device.power_sig()).row) {
        let level = device.work_power();
        let value = device.slot(device.power_sig()).minute;
        facts.push(evidence(
            host,
            row,
            device.index,
            format!("power above idle {} % of what is usual", whole(100.0 * share)),
            (value, Some(level)),
        ));
    }
    let _ = device_name;
    let draft = Draft {
        rule: "starvation",
        severity,
        source,
        subject: members,
        affects: Vec::new(),
        device: device_name,
        since: since - lag,
        sentence,
        evidence: facts,
        group: Some(group.id),
        also: Vec::new(),
    };
    scene.raise(key, draft);
}

/// Whether a machine is at a limit at which it was not in work.
fn cause(hosts: &Hosts, source: Source) -> Option<Cause> {
    let host = hosts.get(&source)?;
    let reads = match (host.recent(HostSig::DiskIn), host.recent(HostSig::DiskOut)) {
        // What is written is no data to wait for.
        (Some(read), Some(written)) => read.short >= written.short,
        _ => true,
    };
    let risen = |level: Option<f64>, value: f64, by: f64| level.is_none_or(|level| value >= level + by);
    let made = |words: String, device: Option<String>, fact: Evidence| Cause { source, words, device, fact };
    if reads {
        let busiest = host
            .named(NamedSig::Busy, host.patience())
            .filter(|n| n.slot.short >= 90.0 && risen(n.slot.level(), n.slot.short, 10.0))
            .max_by(|a, b| a.slot.short.total_cmp(&b.slot.short));
        if let Some(disk) = busiest {
            let words = format!("disk {} {} % busy", disk.name, whole(disk.slot.short));
            let row = named_row_of(NamedSig::Busy);
            let fact = evidence(host, row, &disk.name, words.clone(), (disk.slot.short, disk.slot.level()));
            return Some(made(words, Some(disk.name.clone()), fact));
        }
        if let Some(slot) = over(host, HostSig::PressureIo, 20.0, 10.0) {
            let words = format!("tasks wait for disks {} % of the time", whole(slot.0));
            let fact = evidence(host, host_row_of(HostSig::PressureIo), "", words.clone(), slot);
            return Some(made(words, None, fact));
        }
    }
    for (sig, least, by, what) in [
        (HostSig::Cpu, 92.0, 5.0, "processors"),
        (HostSig::PressureCpu, 25.0, 10.0, "tasks wait for processors"),
        (HostSig::Throttled, 20.0, 10.0, "processors throttled in periods"),
    ] {
        if let Some(slot) = over(host, sig, least, by) {
            let words = match sig {
                HostSig::Cpu => format!("{what} {} % busy", whole(slot.0)),
                HostSig::PressureCpu => format!("{what} {} % of the time", whole(slot.0)),
                _ => format!("its processes are throttled in {} % of periods", whole(slot.0)),
            };
            let fact = evidence(host, host_row_of(sig), "", words.clone(), slot);
            return Some(made(words, None, fact));
        }
    }
    let received = host.recent(HostSig::NetIn)?;
    let flat = (received.short - received.minute).abs() <= 0.05 * received.minute;
    let most = host.marks.received_most;
    let more = received.level().is_some_and(|level| received.minute >= 1.2 * level);
    if received.minute >= LOADED && flat && more && received.minute >= 0.95 * most {
        let words = format!("the network brings {}/s, as much as ever", bytes(received.minute));
        let fact = evidence(host, host_row_of(HostSig::NetIn), "", words.clone(), (received.minute, received.level()));
        return Some(made(words, None, fact));
    }
    None
}

/// A signal at its limit, where it was not in work: its value and level.
fn over(host: &Host, sig: HostSig, least: f64, by: f64) -> Option<(f64, Option<f64>)> {
    let slot = host.recent(sig)?;
    let level = slot.level();
    (slot.short >= least && level.is_none_or(|level| slot.short >= level + by)).then_some((slot.short, level))
}
