//! A job that goes on without getting anywhere: its GPUs wait in a kernel, for one of them or for each other, or do nothing.

use crate::device::Device;
use crate::finding::{Draft, Key, What};
use crate::group::Group;
use crate::host::Host;
use crate::phase::Phase;
use crate::scene::{Scene, sight};
use crate::signal::{HostSig, Sig, host_row_of};
use crate::words::{At, all, begin, bytes, devices, evidence, whole};
use crate::{Entry, Hosts};
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: Entry = Entry {
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

/// Traffic that counts as none, bytes a second: what a driver moves by itself.
const STILL_PCIE: f64 = 10e6;
const STILL_NVLINK: f64 = 1e6;
/// What a quiet machine may move, bytes a second.
const QUIET: f64 = 2e6;
const QUIET_MOST: f64 = 50e6;
/// Seconds without links and counters.
const WITHOUT: i64 = 120;
/// Seconds among several machines whose jobs are not told.
const UNTOLD: i64 = 240;
/// Longest wait before a hang is told, seconds.
const LONGEST: i64 = 900;

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            group(scene, at);
        }
    }
}

/// What a member that waits in a kernel shows.
struct Spin {
    /// Links or counters confirm that nothing is done.
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
    if let Some((sig, bytes, Some(level))) = device.traffic(false) {
        let floor = if sig == Sig::NvTx { STILL_NVLINK } else { STILL_PCIE };
        if bytes > floor.max(0.03 * level) {
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

/// Whether disks and networks of a machine are as good as still.
fn is_quiet(host: &Host, share: f64, floor: f64) -> bool {
    host.moved().is_none_or(|(moved, level)| moved <= QUIET_MOST && moved <= floor.max(share * level.unwrap_or(0.0)))
}

/// Whether the machine's processors do no more than in work.
fn is_calm(host: &Host) -> bool {
    host.recent(HostSig::Cpu).is_none_or(|slot| slot.level().is_none_or(|level| slot.short <= level + 3.0))
}

/// What is known of a group that may hang.
struct Look {
    spinning: usize,
    confirmed: bool,
    /// The one that is not busy, or not there.
    odd: Option<usize>,
    quiet: bool,
    calm: bool,
}

fn look(group: &Group, hosts: &Hosts, now: i64) -> Look {
    let mut look = Look { spinning: 0, confirmed: true, odd: None, quiet: true, calm: true };
    let mut others = 0;
    for (at, (source, position)) in group.members.iter().enumerate() {
        let Some(host) = hosts.get(source) else { continue };
        let device = &host.devices[*position];
        let here = host.is_recent(now) && device.seen >= host.newest - host.patience();
        match spins(device, host).filter(|_| here) {
            Some(spin) => {
                look.spinning += 1;
                look.confirmed &= spin.confirmed;
            }
            None => {
                let idle = here && device.recent(Sig::Use).is_some_and(|slot| slot.short <= 2.0);
                let still = device.traffic(false).is_none_or(|(_, bytes, _)| bytes <= STILL_PCIE);
                let gone = host.is_recent(now) && !here;
                others += 1;
                if (idle && still) || gone {
                    look.odd = Some(at);
                }
            }
        }
    }
    if others != 1 {
        look.odd = None;
    }
    for source in group.sources() {
        if let Some(host) = hosts.get(&source) {
            look.quiet &= is_quiet(host, 0.2, QUIET);
            look.calm &= is_calm(host);
        }
    }
    look
}

fn group(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let Some(own) = scene.groups.get(at) else { return };
    let step = own.step(scene.hosts);
    let patience = (3 * step).max(5);
    let key = Key::new("hang", own.first(), What::Group(own.id));
    let look = look(own, scene.hosts, now);
    let cores = own.cores(scene.hosts, now);
    let n = own.members.len();
    let phase = own.course.phase;
    let others_quiet = look.quiet && cores.map_or(look.calm, |cores| cores <= 1.3);
    let spin = phase == Phase::Spinning && n >= 2 && look.spinning == n && others_quiet;
    let odd = look.odd.filter(|_| phase == Phase::Spinning && n >= 2 && look.spinning + 1 == n && others_quiet);
    let odd_cpu = odd.and_then(|at| {
        let (source, position) = own.members[at];
        let host = scene.hosts.get(&source)?;
        host.cpu_of(*host.devices[position].pids.first()?, now)
    });
    let group = &mut scene.groups[at];
    group.marks.spin.step(now, Some(spin), patience);
    group.marks.odd.step(now, Some(odd.is_some()), patience);
    group.marks.works.step(now, Some(phase == Phase::Working), patience);
    let open = scene.ledger.get(&key).map(|open| open.rule.clone());
    if open.is_some() {
        let over = group.marks.works.held(10.max(2 * step)) || phase == Phase::Off;
        let members = group.members.clone();
        for (source, position) in members {
            if let Some(host) = scene.hosts.get_mut(&source) {
                host.devices[position].work.frozen = now + 5.max(2 * step);
            }
        }
        let freed = is_freed(&scene.groups[at], scene.hosts);
        if over || freed {
            scene.end(&key);
        }
        return;
    }
    let group = &scene.groups[at];
    let longest = group.course.longest_pause(Phase::Spinning);
    let after = scene.settings.hang_after.max(10);
    let wait = match look.confirmed {
        true => after.max(longest * 6 / 5),
        false => WITHOUT.max(after).max(longest * 3 / 2),
    };
    // Without a job that is told, the one that is waited for may be on another machine.
    let told = matches!(group.how, crate::group::How::Job(_)) || scene.hosts.len() == 1;
    let wait = if told { wait } else { wait.max(UNTOLD) };
    let wait = wait.min(LONGEST).max(3 * step);
    // One that computes is waited for; ten minutes are no computation between steps.
    let odd_wait = match odd_cpu {
        Some(cores) if cores <= 0.3 => wait,
        Some(cores) if cores <= 1.3 => wait.max(240),
        Some(_) => wait.max(600),
        None => wait.max(90),
    };
    if group.marks.spin.held((wait - 30).max(30).max(3 * step)) && now - group.course.since >= wait {
        spun(scene, at, key);
    } else if let Some(odd) =
        odd.filter(|_| group.marks.odd.held(30.max(3 * step)) && now - group.course.since >= odd_wait)
    {
        stopped(scene, at, odd, key);
    } else if phase == Phase::Idle {
        idle(scene, at, key, cores);
    }
}

/// Whether the memory of the group's members was given back: their processes are gone.
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

/// How the first member's power, links and counters stand, in words for the sentence.
fn stand(device: &Device) -> String {
    let mut said = Vec::new();
    said.extend(device.recent(Sig::Use).map(|slot| format!("use {} %", whole(slot.short))));
    if let Some((power, limit)) = device.power() {
        said.push(match limit.is_finite() {
            true => format!("power {} % of the limit", whole(100.0 * power.short / limit)),
            false => format!("power {} W of {} W", whole(power.short), whole(device.work_power())),
        });
    }
    if let Some((sig, _, Some(level))) = device.traffic(false)
        && level > STILL_PCIE
    {
        said.push(format!("no {} traffic", if sig == Sig::NvTx { "NVLink" } else { "PCIe" }));
    }
    said.join(", ")
}

/// Every condition of the rule for one member and its machine.
fn facts(host: &Host, device: &Device, cores: Option<f64>) -> Vec<Evidence> {
    let mut facts = Vec::new();
    let mut fact = |sig: Sig, words: String, value: f64, level: Option<f64>| {
        facts.extend(device.slot(sig).row.map(|row| evidence(host, row, device.index, words, (value, level))));
    };
    if let Some(slot) = device.recent(Sig::Use) {
        fact(Sig::Use, format!("use {} %", whole(slot.short)), slot.short, slot.level());
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
    match device.traffic(false) {
        Some((sig, now, level)) => {
            let usual = level.map_or(String::new(), |level| format!(", usually {}/s", bytes(level)));
            let name = if sig == Sig::NvTx { "NVLink" } else { "PCIe" };
            fact(sig, format!("{name} {}/s{usual}", bytes(now)), now, level);
        }
        None => {
            let row = crate::signal::row_of(device.family, Sig::NvTx);
            facts.extend(row.map(|row| crate::words::absent(host, row, device.index, "traffic over links")));
        }
    }
    match device.work_sig().and_then(|sig| Some((sig, device.recent(sig)?))) {
        Some((sig, slot)) => {
            let words = format!("{} {} %", counter(sig), whole(slot.short));
            facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.short, slot.level()))));
        }
        None => {
            let row = crate::signal::row_of(device.family, Sig::Tensor);
            facts.extend(row.map(|row| crate::words::absent(host, row, device.index, "work of the cores")));
        }
    }
    match host.moved() {
        Some((moved, level)) => {
            let row = [HostSig::DiskOut, HostSig::DiskIn, HostSig::NetIn, HostSig::NetOut];
            let row = row.into_iter().find(|sig| host.recent(*sig).is_some()).unwrap_or(HostSig::DiskOut);
            let words = format!("disks and networks {}/s", bytes(moved));
            facts.push(evidence(host, host_row_of(row), "", words, (moved, level)));
        }
        None => {
            facts.push(crate::words::absent(host, host_row_of(HostSig::DiskOut), "", "traffic of disks and networks"))
        }
    }
    let words = match cores {
        Some(cores) => format!("processes use {cores:.1} cores a GPU"),
        None => "processors of the job are not measured here".into(),
    };
    facts.push(evidence(host, host_row_of(HostSig::Cpu), "", words, (f64::NAN, None)));
    facts
}

/// What a counter is called in a sentence.
pub(crate) fn counter(sig: Sig) -> &'static str {
    match sig {
        Sig::Tensor => "tensor cores",
        Sig::Sm => "multiprocessors",
        Sig::Dram => "memory bandwidth",
        Sig::Activity => "memory traffic",
        _ => "use",
    }
}

fn draft(scene: &Scene, at: usize, rule: &'static str, severity: Severity) -> (Draft, Vec<At>) {
    let group = &scene.groups[at];
    let all = group.devices(scene.hosts);
    let since = group.course.since;
    let draft = Draft {
        rule,
        severity,
        source: group.first(),
        subject: all.clone(),
        affects: Vec::new(),
        device: None,
        since,
        sentence: String::new(),
        evidence: Vec::new(),
        group: Some(group.id),
        also: Vec::new(),
    };
    (draft, all)
}

fn spun(scene: &mut Scene, at: usize, key: Key) {
    let (mut draft, members) = draft(scene, at, "hang.spin", Severity::Critical);
    let group = &scene.groups[at];
    let (source, position) = group.members[0];
    let host = &scene.hosts[&source];
    let device = &host.devices[position];
    draft.sentence =
        format!("{} have waited in one kernel since {{since}}: {}", begin(&all(scene.hosts, &members)), stand(device));
    draft.evidence = facts(host, device, group.cores(scene.hosts, scene.now));
    scene.raise(key, draft);
}

fn stopped(scene: &mut Scene, at: usize, odd: usize, key: Key) {
    let (mut draft, members) = draft(scene, at, "hang.odd", Severity::Critical);
    let group = &scene.groups[at];
    let (source, position) = group.members[odd];
    draft.source = source;
    draft.subject = vec![members[odd]];
    draft.affects = members.iter().enumerate().filter(|(at, _)| *at != odd).map(|(_, member)| *member).collect();
    let first = usize::from(odd == 0);
    let (other, its) = group.members[first];
    let host = &scene.hosts[&other];
    let device = &host.devices[its];
    let n = draft.affects.len();
    draft.sentence = format!(
        "{} stopped at {{since}}; {n} other{} for it: {}",
        begin(&devices(scene.hosts, &draft.subject)),
        if n == 1 { " waits" } else { "s wait" },
        stand(device)
    );
    let own = &scene.hosts[&source];
    let stopped = &own.devices[position];
    let usage = stopped.recent(Sig::Use);
    let words = usage.map_or("it is not there".into(), |slot| format!("its use {} %", whole(slot.short)));
    if let Some(row) = stopped.slot(Sig::Use).row {
        let value = usage.map_or(f64::NAN, |slot| slot.short);
        draft.evidence.push(evidence(own, row, stopped.index, words, (value, stopped.slot(Sig::Use).level())));
    }
    draft.evidence.extend(facts(host, device, group.cores(scene.hosts, scene.now)));
    scene.raise(key, draft);
}

/// Nothing is done any more, and the processes live.
fn idle(scene: &mut Scene, at: usize, key: Key, cores: Option<f64>) {
    let now = scene.now;
    let group = &scene.groups[at];
    let course = &group.course;
    let step = group.step(scene.hosts);
    let wait = 180.max(3 * course.longest_pause(Phase::Idle)).min(LONGEST).max(3 * step);
    if course.worked < 300 || course.longest < 120 || now - course.since < wait {
        return;
    }
    // Who works now and then only, as in a notebook, does so again: idle tells of it.
    let lived = course.since - group.began;
    if (course.worked as f64) < 0.6 * lived as f64 {
        return;
    }
    let mut held = true;
    let mut quiet = true;
    let mut processes: Vec<(u32, u32)> = Vec::new();
    for (source, position) in &group.members {
        let Some(host) = scene.hosts.get(source) else { return };
        let device = &host.devices[*position];
        // Another process may have taken its place.
        held &= device.work.worked >= 300;
        let memory = device.memory_slot();
        held &= memory.is_some_and(|slot| slot.level().is_some_and(|level| slot.now >= 0.5 * level));
        quiet &= is_quiet(host, 0.05, QUIET / 2.0);
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
    // One process may be a notebook whose reader thinks: what is one process alone is not sure.
    let sure = group.members.len() > 1 && processes.len() != 1;
    let (mut draft, members) = draft(scene, at, "hang.idle", if sure { Severity::Warning } else { Severity::Note });
    let group = &scene.groups[at];
    let (source, position) = group.members[0];
    let host = &scene.hosts[&source];
    let device = &host.devices[position];
    let memory = device.memory_share().map_or(String::new(), |share| format!(", memory {} %", whole(share)));
    draft.sentence = format!(
        "{} {} done nothing since {{since}}, and the processes live: use 0 %{memory}",
        begin(&all(scene.hosts, &members)),
        if members.len() == 1 { "has" } else { "have" },
    );
    draft.evidence = facts(host, device, cores);
    if let Some(slot) = device.memory_slot()
        && let Some(row) = slot.row
    {
        let words = format!("memory is held, {}", crate::words::in_unit(slot.now, row.unit));
        draft.evidence.insert(1, evidence(host, row, device.index, words, (slot.now, slot.level())));
    }
    scene.raise(key, draft);
}
