//! A GPU that is throttled: by heat, or by a lower power limit than it should have.

use crate::DetectorEntry;
use crate::Source;
use crate::device::Device;
use crate::finding::Draft;
use crate::host::Host;
use crate::key::Key;
use crate::next;
use crate::scene::{Scene, peers, sight};
use crate::signal::Sig;
use crate::words::{At, begin, devices, differs, evidence, whole};
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[
        ("throttle.heat", |hosts| sight(hosts, &[Sig::Throttle], &[(Sig::Clock, "SM clocks")])),
        ("throttle.power", |hosts| sight(hosts, &[Sig::Limit], &[(Sig::Throttle, "throttle reasons")])),
    ],
    judge,
};

/// Bits of the throttle reasons.
const SET_CLOCKS: u32 = 2;
const POWER_CAP: u32 = 4;
const HARDWARE: u32 = 8;
const HEAT: u32 = 32 | 64;
const BRAKE: u32 = 128;
/// Minimum °C above the usual, and minimum °C, where the driver gives no reasons.
const HOTTER: f64 = 6.0;
const HOT_CELSIUS: f64 = 80.0;
/// Half of this window, seconds.
const WINDOW: i64 = 30;
/// The finding ends when the condition held in less than 3 of these seconds.
const END_WINDOW_S: i64 = 60;
const OVER_SHARE: f64 = 0.05;
/// Usual relative deviation of use in work.
const STRAYS: f64 = 0.07;

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            heat(scene, source, at);
            power(scene, source, at);
        }
    }
}

/// Heat without reasons from the driver: hotter than usual in work, slower, and with no more power.
fn is_hot(device: &Device) -> Option<bool> {
    let (temp, clock) = (device.recent(Sig::Temp)?, device.recent(Sig::Clock)?);
    let (warm, fast) = (temp.level()?, clock.level()?);
    let (power, _) = device.power()?;
    let level = power.level()?;
    let hot = temp.short >= warm + HOTTER && temp.short >= HOT_CELSIUS;
    Some(hot && clock.short <= 0.94 * fast && power.short <= 1.02 * level && busy(device))
}

fn bits(device: &Device) -> Option<u32> {
    device.now(Sig::Throttle).map(|bits| bits as u32)
}

fn busy(device: &Device) -> bool {
    device.recent(Sig::Use).is_none_or(|slot| slot.short >= 50.0)
}

/// Expected clock: its level or its peers', the higher of the two.
fn usual_clock(scene: &Scene, source: Source, at: usize) -> Option<f64> {
    let host = &scene.hosts[&source];
    let level = host.devices[at].slot(Sig::Clock).level();
    let heated = |d: &Device| d.recent(Sig::Throttle).is_some_and(|slot| slot.raw as u32 & HEAT != 0);
    let peer = peers(host, at, 1, |d| d.recent(Sig::Clock).filter(|_| d.work.on && !heated(d)).map(|slot| slot.minute));
    [level, peer].into_iter().flatten().max_by(f64::total_cmp)
}

/// Judges whether heat holds a GPU back.
fn heat(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let key = scene.key("throttle", source, at);
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let step = host.step;
    let device = &mut host.devices[at];
    let hot = match device.has(Sig::Throttle) {
        true => bits(device).map(|bits| bits & HEAT != 0 && busy(device)),
        false => is_hot(device),
    };
    device.marks.heat.step(now, step, hot);
    if bits(device).is_some_and(|bits| bits & SET_CLOCKS != 0) && busy(device) {
        device.marks.set_clocks_at = u32::try_from(now).unwrap_or_default();
    }
    if hot == Some(true) {
        device.work.frozen = device.work.frozen.max(now + 2);
    }
    let clock = device.recent(Sig::Clock).map(|slot| slot.short);
    let (share, since) = (device.marks.heat, device.marks.heat.began(120));
    let open = scene.ledger.get(&key).map(|open| (open.rule.clone(), open.severity));
    if let Some((rule, severity)) = open {
        if rule == "throttle.heat" {
            let host = scene.hosts.get_mut(&source).expect("it is there");
            host.devices[at].work.frozen = now + 5;
            if share.ended(OVER_SHARE, END_WINDOW_S) {
                scene.end(&key);
            } else if severity == Severity::Warning
                && share.held(0.5, WINDOW)
                && is_severe(clock, usual_clock(scene, source, at))
            {
                scene.ledger.revise(&key, Severity::Critical, None);
            }
        }
        return;
    }
    if !share.held(0.5, WINDOW) {
        return;
    }
    // Without a clock the bits are the only evidence.
    let usual = usual_clock(scene, source, at);
    let slower = match (clock, usual) {
        (Some(clock), Some(usual)) => clock <= 0.97 * usual,
        (Some(_), None) => true,
        _ => true,
    };
    if !slower {
        return;
    }
    raise_heat(scene, key, (source, at), (clock, usual), since);
}

/// Raises the finding about a GPU whose clock, MHz, is below the usual because of heat.
fn raise_heat(
    scene: &mut Scene,
    key: Key,
    (source, at): (Source, usize),
    (clock, usual): (Option<f64>, Option<f64>),
    since: i64,
) {
    let Some(own) = scene.at(source, at) else { return };
    let name = begin(&devices(scene.hosts, &[own]));
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let temp = device.recent(Sig::Temp).map(|slot| slot.now);
    let mut said = Vec::new();
    said.extend(temp.map(|temp| format!("{} °C", whole(temp))));
    said.extend(clock.map(|clock| match usual {
        Some(usual) => format!("{} of {} MHz", whole(clock), whole(usual)),
        None => format!("{} MHz", whole(clock)),
    }));
    let sentence = format!("{name} has been thermally throttled since {{since}}: {}", said.join(", "));
    let raw = device.slot(Sig::Throttle).raw;
    let mut facts = Vec::new();
    let mut fact = |sig: Sig, words: String, value: f64, level: Option<f64>| {
        facts.extend(device.slot(sig).row.map(|row| evidence(host, row, own.2, words, (value, level))));
    };
    if device.has(Sig::Throttle) {
        fact(Sig::Throttle, "the thermal slowdown was active for half of 30 s".into(), raw, None);
    }
    if let Some(clock) = clock {
        let usually = usual.map_or(String::new(), |usual| format!(", usually {} MHz", whole(usual)));
        fact(Sig::Clock, format!("clock {} MHz{usually}", whole(clock)), clock, usual);
    }
    if let Some(temp) = temp {
        fact(Sig::Temp, format!("{} °C", whole(temp)), temp, device.slot(Sig::Temp).level());
    }
    if let Some(usage) = device.recent(Sig::Use).filter(|usage| differs(usage.short, usage.level(), STRAYS)) {
        fact(Sig::Use, format!("utilization {} %", whole(usage.short)), usage.short, usage.level());
    }
    // The proof comes first, and missing values last.
    if !device.has(Sig::Throttle) {
        let row = crate::signal::row_of(own.1, Sig::Throttle);
        facts.extend(row.map(|row| crate::words::absent(host, row, own.2, "the throttle reason")));
    }
    let severity = if is_severe(clock, usual) { Severity::Critical } else { Severity::Warning };
    let draft = Draft {
        rule: "throttle.heat",
        severity,
        source,
        subject: vec![own],
        affects: scene.others(source, at),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
        next: None,
    };
    scene.raise(key, draft);
}

fn is_severe(clock: Option<f64>, usual: Option<f64>) -> bool {
    matches!((clock, usual), (Some(clock), Some(usual)) if clock < 0.6 * usual)
}

/// Reason why a limit is too low.
enum Low {
    /// It fell in this run, from this many watts.
    Fell(f64),
    /// Limit of its peers, watts.
    Peers(f64),
}

/// A power limit, watts, and the reason why it is too low.
struct Cut {
    limit: f64,
    usual: Option<f64>,
    low: Option<Low>,
}

impl Cut {
    fn measure(host: &Host, at: usize, limit: f64) -> Cut {
        let device = &host.devices[at];
        let before = device.slot(Sig::Limit).level();
        let higher = host.devices.iter().any(|d| d.recent(Sig::Limit).is_some_and(|slot| limit <= 0.95 * slot.now));
        let others = if higher { peers(host, at, 1, |d| d.recent(Sig::Limit).map(|slot| slot.now)) } else { None };
        // A cap shared by most equal devices of the machine is intended.
        let alike = |d: &&Device| d.model() == device.model() && d.family == device.family;
        let same = |d: &&Device| d.recent(Sig::Limit).is_some_and(|slot| slot.now <= 1.02 * limit);
        let shared = || {
            let all = host.devices.iter().filter(alike).count();
            all > 1 && host.devices.iter().filter(alike).filter(same).count() * 2 > all
        };
        let low = match (before, others) {
            (Some(before), _) if limit <= 0.95 * before && !shared() => Some(Low::Fell(before)),
            (_, Some(others)) if limit <= 0.95 * others && !shared() => Some(Low::Peers(others)),
            _ => None,
        };
        Cut { limit, usual: before.or(others), low }
    }
}

/// Judges whether the power of a GPU is limited more than it should be.
fn power(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let key = scene.key("throttle", source, at);
    let host = scene.hosts.get_mut(&source).expect("it ticked");
    let step = host.step;
    let device = &mut host.devices[at];
    let Some(limit) = device.recent(Sig::Limit).map(|slot| slot.now).or(device.has(Sig::Throttle).then_some(f64::NAN))
    else {
        return;
    };
    let brake = bits(device).map(|bits| bits & (HARDWARE | BRAKE) != 0 && bits & HEAT == 0 && busy(device));
    device.marks.brake.step(now, step, brake);
    // At its cap: by the driver's reason, or by power at the limit.
    let power = device.now(Sig::Power);
    let capped = match bits(device) {
        Some(bits) => Some(bits & POWER_CAP != 0 && busy(device)),
        None if device.has(Sig::Throttle) => None,
        None => power.map(|watts| watts >= 0.95 * limit && busy(device)),
    };
    device.marks.cap.step(now, step, capped);
    if brake == Some(true) {
        device.marks.brake_bits = bits(device).unwrap_or_default();
        device.work.frozen = device.work.frozen.max(now + 2);
    }
    let (brake, cap) = (device.marks.brake, device.marks.cap);
    let cut = Cut::measure(&scene.hosts[&source], at, limit);
    if let Some(open) = scene.ledger.get(&key) {
        if open.rule == "throttle.power" {
            let over =
                brake.ended(OVER_SHARE, END_WINDOW_S) && (cut.low.is_none() || cap.ended(OVER_SHARE, END_WINDOW_S));
            scene.hosts.get_mut(&source).expect("it ticked").devices[at].work.frozen = now + 5;
            if over {
                scene.end(&key);
            }
        }
        return;
    }
    let by_brake = brake.held(0.5, WINDOW);
    if matches!(cut.low, Some(Low::Fell(_))) {
        scene.hosts.get_mut(&source).expect("it ticked").devices[at].work.frozen = now + 2;
    }
    // Limits of several GPUs are set one after the other.
    let patience = scene.hosts[&source].patience();
    let marks = &mut scene.hosts.get_mut(&source).expect("it ticked").devices[at].marks;
    marks.cut.step(now, Some(cut.low.is_some()), patience);
    let by_limit = marks.cut.held(10.max(2 * step)) && cap.held(0.5, WINDOW);
    if !(by_brake || by_limit) {
        return;
    }
    let share = if by_brake { brake } else { cap };
    raise_power(scene, key, (source, at), (&cut, by_brake), share.began(120));
}

/// Raises the finding about a GPU with too low a limit, or with an active power brake.
fn raise_power(scene: &mut Scene, key: Key, (source, at): (Source, usize), (cut, by_brake): (&Cut, bool), since: i64) {
    let Some(own) = scene.at(source, at) else { return };
    let name = begin(&devices(scene.hosts, &[own]));
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let watts = device.recent(Sig::Power).map_or(f64::NAN, |slot| slot.short);
    let clock = device.recent(Sig::Clock).map(|slot| (slot.short, slot.level()));
    let at_clock = match clock {
        Some((clock, Some(level))) => format!(", {} of {} MHz", whole(clock), whole(level)),
        Some((clock, None)) => format!(", {} MHz", whole(clock)),
        None => String::new(),
    };
    let limit = whole(cut.limit);
    let sentence = match (by_brake, &cut.low) {
        (true, _) => {
            let cause = brake_name(device);
            format!("{name}'s {cause} has been active since {{since}}: {} W{at_clock}", whole(watts))
        }
        (false, Some(Low::Fell(before))) => {
            format!("{name} has a power limit of {limit} W since {{since}}, {} W before{at_clock}", whole(*before))
        }
        (false, Some(Low::Peers(others))) => {
            let others = whole(*others);
            format!("{name} has a power limit of {limit} W, its peers {others} W, since {{since}}{at_clock}")
        }
        (false, None) => return,
    };
    // A limit from the start is intended as likely as a fault.
    let from_start = !by_brake && matches!(cut.low, Some(Low::Peers(_)));
    let draft = Draft {
        rule: "throttle.power",
        severity: if from_start { Severity::Note } else { Severity::Warning },
        source,
        subject: vec![own],
        affects: scene.others(source, at),
        device: None,
        since,
        sentence,
        evidence: power_evidence(host, own, device, (cut, by_brake), watts, clock),
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
        next: by_brake.then_some(next::POWER_BRAKE),
    };
    scene.raise(key, draft);
}

/// The slowdown by the hardware that no heat explains: the power brake, unless the driver reports the slowdown alone.
pub(crate) fn brake_name(device: &Device) -> &'static str {
    let bits = device.marks.brake_bits;
    if bits & HARDWARE != 0 && bits & BRAKE == 0 { "hardware slowdown" } else { "power brake" }
}

/// Evidence: the driver's reason, the limit, watts, and the clock, MHz, with its level.
fn power_evidence(
    host: &Host,
    own: At,
    device: &Device,
    (cut, by_brake): (&Cut, bool),
    watts: f64,
    clock: Option<(f64, Option<f64>)>,
) -> Vec<Evidence> {
    let mut facts = Vec::new();
    let mut fact = |sig: Sig, words: String, value: f64, level: Option<f64>| {
        facts.extend(device.slot(sig).row.map(|row| evidence(host, row, own.2, words, (value, level))));
    };
    if device.has(Sig::Throttle) {
        let what = if by_brake { brake_name(device) } else { "power cap" };
        let words = format!("the {what} was active for half of 30 s");
        fact(Sig::Throttle, words, device.slot(Sig::Throttle).raw, None);
    }
    if cut.limit.is_finite() {
        let usually = cut.usual.map_or(String::new(), |usual| format!(", usually {} W", whole(usual)));
        fact(Sig::Limit, format!("limit {} W{usually}", whole(cut.limit)), cut.limit, cut.usual);
    }
    fact(Sig::Power, format!("power {} W", whole(watts)), watts, device.slot(Sig::Power).level());
    if let Some((clock, level)) = clock {
        fact(Sig::Clock, format!("clock {} MHz", whole(clock)), clock, level);
    }
    facts
}
