//! Memory of GPUs and machines that will be full, and processes killed for lack of memory.

use crate::ended;
use crate::filling::Rise;
use crate::finding::Draft;
use crate::key::{Key, What};
use crate::next;
use crate::scene::{Scene, host_sight, sight};
use crate::signal::{HostSig, Sig, host_row_of};
use crate::words::{begin, devices, evidence, host as machine, lasting, size, size_of, whole};
use crate::{DetectorEntry, Source};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[
        ("gpu_memory", |hosts| sight(hosts, &[Sig::MemShare], &[])),
        ("host_memory", |hosts| host_sight(hosts, &[HostSig::Working])),
    ],
    judge,
};

/// Percent from which memory is judged.
const JUDGED_PERCENT: f64 = 80.0;
/// Seconds until it is full at which it is reported, and at which it is critical.
const WARNING_S: f64 = 600.0;
const CRITICAL_S: f64 = 120.0;
/// A rise younger than `YOUNG_S` seconds is reported only above `NEAR_PERCENT` percent: it may be the first tooth of a sawtooth,
/// and few of those go so high.
const YOUNG_S: i64 = 900;
const NEAR_PERCENT: f64 = 94.0;
const CLOSE: f64 = 200.0;
/// Seconds for which a kill is reported.
const KILLED: i64 = 600;

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            gpu(scene, source, at);
        }
        host(scene, source);
        kills(scene, source);
    }
}

/// Length and number of the buckets.
fn buckets(step: i64) -> (i64, usize) {
    (BUCKET_S.max(step), if step <= BUCKET_S { 12 } else { (120 / step).clamp(6, 12) as usize })
}

/// Seconds of the shortest bucket. Samples that are rarer are buckets by themselves.
const BUCKET_S: i64 = 10;

/// A rise up to the newest sample, `share` percent. The newest bucket is closed by the sample after it, so rare samples
/// would show it a step late.
fn up_to_now(rise: Rise, step: i64, share: f64) -> Rise {
    if step > BUCKET_S { Rise { share, left: (100.0 - share) / rise.slope, ..rise } } else { rise }
}

/// The rise, if it should be reported.
fn fills(rise: Option<Rise>, age: i64, step: i64) -> Option<Rise> {
    // It may be full before the sample after the next rare one.
    let ahead = if step > BUCKET_S { step as f64 } else { 0.0 };
    rise.filter(|rise| {
        rise.share >= JUDGED_PERCENT
            && rise.left <= WARNING_S
            && (age >= YOUNG_S || rise.share + rise.slope * ahead >= NEAR_PERCENT && rise.left <= CLOSE)
    })
}

/// Seconds until it is full. The fit of a rise refers to the middle of the newest bucket, half a bucket ago; a rare
/// sample is of now.
fn time_left(rise: Rise, step: i64) -> f64 {
    let ago = if step > BUCKET_S { 0.0 } else { BUCKET_S as f64 / 2.0 };
    (rise.left - ago).max(1.0)
}

fn severity(rise: Rise) -> Severity {
    if rise.left <= CRITICAL_S { Severity::Critical } else { Severity::Warning }
}

/// Judges whether the memory of a GPU will be full soon.
fn gpu(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let key = scene.key("gpu_memory", source, at);
    let started = scene.group_of(source, at).is_none_or(|group| group.course.worked >= 60);
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let ((length, n), step, patience) = (buckets(host.step), host.step, host.patience());
    let device = &mut host.devices[at];
    // The machine's own memory is judged with the machine.
    if device.seen != now || device.has(Sig::Shared) {
        return;
    }
    let Some(share) = device.memory_share() else { return };
    let starts = !started || device.is_free() || (device.work.worked < 60 && now - device.first < 600);
    if starts && !scene.ledger.is_open(&key) {
        device.marks.filling.forget();
        device.marks.filled.clear();
        return;
    }
    // Memory loaded while nothing is computed is no leak.
    if now - device.work.last > 60.max(2 * step) && !scene.ledger.is_open(&key) {
        device.marks.filling.restart();
        device.marks.filled.clear();
        return;
    }
    if !device.marks.filling.add(now, length, share) {
        return;
    }
    let rise = device.marks.filling.rise(n).map(|rise| up_to_now(rise, step, share));
    let slope = device.marks.filling.slope((n / 2).max(3));
    let found = fills(rise, now - device.marks.filling.began, step);
    device.marks.filled.step(now, Some(found.is_some()), patience + 2 * length);
    if scene.ledger.is_open(&key) {
        device.marks.rise_told = now;
        let over = slope.map(|slope| slope <= 0.1 * device.marks.slope);
        device.marks.flat.step(now, over, patience + 2 * length);
        let fell = slope.is_some_and(|slope| slope < -0.1);
        if device.marks.flat.held(60.max(2 * step)) || fell || device.is_free() {
            device.marks.filled.clear();
            scene.end(&key);
        }
        return;
    }
    let Some(rise) = found.filter(|_| device.marks.filled.held(length)) else { return };
    (device.marks.slope, device.marks.flat) = (rise.slope, Default::default());
    let left = time_left(rise, step);
    let since = device.marks.filling.began;
    let low = device.marks.filling.low();
    raise_gpu(scene, key, (source, at), rise, (share, low, left), since);
}

/// Raises the finding about the filling memory of a GPU: percent in use, percent at the start of the rise, and seconds
/// until it is full.
fn raise_gpu(
    scene: &mut Scene,
    key: Key,
    (source, at): (Source, usize),
    rise: Rise,
    (share, low, left): (f64, f64, f64),
    since: i64,
) {
    let Some(own) = scene.at(source, at) else { return };
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let name = begin(&devices(scene.hosts, &[own]));
    let total = device.slot(Sig::MemTotal).now;
    let amount = match total.is_finite() {
        true => {
            format!("{}, {} more per minute", size_of(share / 100.0 * total, total), size(rise.slope * 0.6 * total))
        }
        false => format!("{} %, {:.1} % more per minute", whole(share), rise.slope * 60.0),
    };
    let sentence = format!("{name}'s memory will be full in about {}: {amount} since {{since}}", lasting(left));
    let past = format!(
        "{name}'s memory was filling up from {{since}} on: {amount}, {} before it would be full",
        lasting(left)
    );
    let row = device.memory_slot().and_then(|slot| slot.row);
    let slot = device.memory_slot().map_or(f64::NAN, |slot| slot.now);
    let words = format!(
        "{} % used, {} % when the rise began, {:.1} % more per minute, linear fit {:.2}",
        whole(share),
        whole(low),
        rise.slope * 60.0,
        rise.fit
    );
    let facts = row.map(|row| evidence(host, row, own.2, words, (slot, None))).into_iter().collect();
    let draft = Draft {
        rule: "gpu_memory",
        // The first tooth of a sawtooth looks like a leak, and the library of a job reports its own oversized requests.
        severity: Severity::Warning,
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
    scene.raise(key.clone(), draft);
    scene.ledger.foretell(&key, scene.now + left as i64, past);
}

/// Judges whether the memory of a machine will be full soon, or is full.
fn host(scene: &mut Scene, source: Source) {
    let now = scene.now;
    let key = Key::new("host_memory", source, What::Machine("memory"));
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let ((length, n), step, patience) = (buckets(host.step), host.step, host.patience());
    let Some((share, at)) = host.recent(HostSig::Working).map(|slot| (slot.now, slot.at)) else { return };
    if at != now {
        return;
    }
    let total = host.recent(HostSig::MemoryTotal).map(|slot| slot.now);
    let pressure = host.recent(HostSig::PressureMemory).map(|slot| slot.now);
    let marks = &mut host.marks;
    marks.pressed.step(now, pressure.map(|full| share >= 95.0 && full >= 10.0), patience);
    marks.eased.step(now, Some(share < 93.0 || pressure.is_none_or(|full| full < 3.0)), patience);
    let closed = marks.filling.add(now, length, share);
    let pressed = marks.pressed.held(20.max(3 * step));
    let rise = marks.filling.rise(n).map(|rise| up_to_now(rise, step, share));
    let slope = marks.filling.slope((n / 2).max(3));
    let found = fills(rise, now - marks.filling.began, step);
    if closed {
        marks.filled.step(now, Some(found.is_some()), patience + 2 * length);
    }
    if let Some(open) = scene.ledger.get(&key) {
        let severity_now = open.severity;
        if closed {
            marks.flat.step(now, slope.map(|slope| slope <= 0.1 * marks.slope), patience + 2 * length);
        }
        let flat = marks.flat.held(60.max(2 * step)) || slope.is_some_and(|slope| slope < -0.1);
        if flat && marks.eased.held(60.max(2 * step)) {
            marks.filled.clear();
            scene.end(&key);
        } else if severity_now == Severity::Warning && found.is_some_and(|rise| rise.left <= CRITICAL_S) {
            scene.ledger.revise(&key, Severity::Critical, None);
        }
        return;
    }
    let rise = found.filter(|_| closed && marks.filled.held(length));
    if rise.is_none() && !pressed {
        return;
    }
    let since = if rise.is_some() { marks.filling.began } else { marks.pressed.since().unwrap_or(now) };
    (marks.slope, marks.flat) = (rise.map_or(0.0, |rise| rise.slope), Default::default());
    let low = marks.filling.low();
    let left = rise.map_or(0.0, |rise| time_left(rise, step));
    raise_host(scene, key, source, (rise, left), (share, low, pressure, total), since);
}

/// Raises the finding about the filling or full memory of a machine: its rise and the seconds until it is full. Then
/// percent in use, percent at the start of the rise, percent of time that all tasks wait for memory, and its bytes.
fn raise_host(
    scene: &mut Scene,
    key: Key,
    source: Source,
    (rise, left): (Option<Rise>, f64),
    (share, low, pressure, total): (f64, f64, Option<f64>, Option<f64>),
    since: i64,
) {
    let host = &scene.hosts[&source];
    let name = machine(scene.hosts, source);
    let mut past = None;
    let sentence = match (rise, pressure) {
        (Some(rise), _) => {
            let took = total.map_or(format!("{:.1} %", rise.slope * 60.0), |total| size(rise.slope * 0.6 * total));
            let share = whole(share);
            past = Some(format!(
                "{name} was running out of memory from {{since}} on: {share} % used, {took} more per minute, {} \
                before it would be full",
                lasting(left)
            ));
            format!(
                "{name} will run out of memory in about {}: {share} % used, {took} more per minute since {{since}}",
                lasting(left)
            )
        }
        (None, full) => format!(
            "{name} has been out of memory since {{since}}: {} % used, all tasks wait for memory {} % of the time",
            whole(share),
            whole(full.unwrap_or(0.0))
        ),
    };
    let mut facts = vec![evidence(
        host,
        host_row_of(HostSig::Working),
        "",
        format!("{} % used, {} % when the rise began", whole(share), whole(low)),
        (share, None),
    )];
    facts.push(match pressure {
        Some(full) => {
            let words = format!("all tasks wait for memory {} % of the time", whole(full));
            evidence(host, host_row_of(HostSig::PressureMemory), "", words, (full, None))
        }
        None => crate::words::absent(host, host_row_of(HostSig::PressureMemory), "", "memory pressure"),
    });
    let draft = Draft {
        rule: "host_memory",
        severity: rise.map_or(Severity::Critical, severity),
        source,
        subject: Vec::new(),
        affects: Vec::new(),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: scene.group_on(source).map(|group| group.id),
        also: Vec::new(),
        next: rise.is_none().then_some(next::MEMORY_FULL),
    };
    scene.raise(key.clone(), draft);
    past.into_iter().for_each(|past| scene.ledger.foretell(&key, scene.now + left as i64, past));
}

fn kills(scene: &mut Scene, source: Source) {
    let now = scene.now;
    let key = Key::new("host_memory", source, What::Machine("kills"));
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    // The kernel counts kills of the whole machine, and a cgroup its own, which are included in them.
    let grown = |sig| host.recent(sig).filter(|slot| slot.at == now).map_or(0.0, |slot| slot.grew());
    let (own, all) = (grown(HostSig::Kills), grown(HostSig::AllKills));
    let (sig, grew) = if all > own { (HostSig::AllKills, all) } else { (HostSig::Kills, own) };
    if grew <= 0.0 {
        // It stays until another job works in place of the killed one.
        if host.marks.killed.is_some_and(|last| now - last >= KILLED) && !ended::is_awaited(host) {
            (host.marks.killed, host.marks.kills) = (None, 0.0);
            scene.end(&key);
        }
        return;
    }
    host.marks.killed = Some(now);
    host.marks.kills += grew;
    let host = &scene.hosts[&source];
    let n = host.marks.kills;
    let words = format!("{} process{} killed", whole(n), if n == 1.0 { "" } else { "es" });
    let mut facts = vec![evidence(host, host_row_of(sig), "", words.clone(), (n, None))];
    let used = host.recent(HostSig::Working).map(|slot| slot.short);
    if let Some(used) = used {
        facts.push(evidence(
            host,
            host_row_of(HostSig::Working),
            "",
            format!("{} % of the memory used", whole(used)),
            (used, None),
        ));
    }
    let at = used.map_or(String::new(), |used| format!(", {} % used", whole(used)));
    let draft = Draft {
        rule: "host_memory",
        severity: Severity::Critical,
        source,
        subject: Vec::new(),
        affects: Vec::new(),
        device: None,
        since: now,
        sentence: format!("{} ran out of memory at {{since}}: {words}{at}", machine(scene.hosts, source)),
        evidence: facts,
        group: scene.group_on(source).map(|group| group.id),
        also: Vec::new(),
        next: Some(next::KILLED),
    };
    let sentence = draft.sentence.clone();
    scene.raise(key.clone(), draft);
    ended::killed(scene, source, &key, &sentence);
}
