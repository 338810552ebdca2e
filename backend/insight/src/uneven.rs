//! A GPU slower than its peers ever since its job is known: nothing changed, so it is only a note.

use crate::DetectorEntry;
use crate::Source;
use crate::device::Device;
use crate::finding::Draft;
use crate::group::Group;
use crate::levels::Ordered;
use crate::scene::{Scene, sight};
use crate::signal::Sig;
use crate::words::{begin, devices, evidence, whole};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("uneven", |hosts| sight(hosts, &[Sig::Use, Sig::Clock], &[]))], judge };

/// Minimum distance of its clock below its peers', a share; and the share of theirs above which the note ends.
const MIN_CLOCK_DROP: f64 = 0.06;
const END_SHARE: f64 = 0.97;
/// Minimum utilization of the slow one, and of its peers, percent.
const MIN_USE: f64 = 80.0;
const MIN_PEER_USE: f64 = 20.0;
/// Minimum seconds of the condition, and of the job.
const MIN_CONDITION_S: i64 = 300;
const MIN_JOB_S: i64 = 600;
/// A condition found within this many seconds counts as present from the start.
const START: i64 = 240;
/// Interval of judgments, seconds.
const JUDGE_INTERVAL_S: i64 = 60;

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        let own = &scene.groups[at];
        let due = scene.now % JUDGE_INTERVAL_S < own.step(scene.hosts) && own.is_at(scene.hosts, scene.now);
        if due && own.members.len() >= 3 && own.has_worked(scene.now, JUDGE_INTERVAL_S) {
            group(scene, &own.clone());
        }
    }
}

/// The clock of a working member, MHz, and whether nothing else explains that it is low. The power limit and waits only
/// lower clocks: one that is busy, not at its limit, and below peers that wait for it or are at theirs, is slower still.
fn clock(device: &Device) -> Option<(f64, bool)> {
    let usage = device.recent(Sig::Use)?.minute;
    let clock = device.recent(Sig::Clock).filter(|_| usage >= MIN_PEER_USE)?;
    Some((clock.minute, usage >= MIN_USE && !device.is_capped()))
}

fn group(scene: &mut Scene, group: &Group) {
    let now = scene.now;
    let device = |(source, at): &(Source, usize)| {
        let host = scene.hosts.get(source).filter(|host| host.is_recent(now))?;
        host.devices.get(*at).map(|device| (device.model(), clock(device)))
    };
    let members: Vec<_> = group.members.iter().map(device).collect();
    let Some((model, _)) = members.iter().flatten().next().copied() else { return };
    if members.iter().flatten().any(|(other, _)| *other != model) {
        return;
    }
    let clocks: Vec<Option<(f64, bool)>> = members.iter().map(|member| member.and_then(|(_, clock)| clock)).collect();
    let known = Ordered::new(clocks.iter().flatten().map(|(clock, _)| *clock));
    let enough = known.len() >= 3 && known.len() * 5 >= 4 * clocks.len();
    let told = ["throttle", "straggler", "hang"].iter().any(|kind| scene.ledger.has_in_group(kind, group.id));
    for (member, own) in clocks.into_iter().enumerate() {
        let (source, position) = group.members[member];
        let own = own.filter(|(_, is_free)| *is_free);
        let ratio =
            own.and_then(|(own, _)| Some((own, known.others(own)?))).filter(|(_, peers)| enough && *peers >= 100.0);
        let key = scene.key("uneven", source, position);
        let open = scene.ledger.is_open(&key);
        let Some(device) = scene.hosts.get_mut(&source).and_then(|host| host.devices.get_mut(position)) else {
            continue;
        };
        // A job that started again on the GPU began with its own work.
        let began = group.began.max(device.work.began);
        let since = &mut device.marks.uneven;
        match ratio {
            Some((own, peers)) if own > (1.0 - MIN_CLOCK_DROP) * peers => *since = 0,
            Some(_) if *since == 0 => *since = u32::try_from(now).unwrap_or_default(),
            _ => {}
        }
        let since = i64::from(*since);
        let from_start = since > 0 && since <= began + START && now - since >= MIN_CONDITION_S;
        if open {
            if ratio.is_some_and(|(own, peers)| own >= END_SHARE * peers) {
                scene.end(&key);
            }
        } else if let (false, Some(clocks), true) = (told, ratio, from_start && group.course.worked >= MIN_JOB_S) {
            tell(scene, (source, position), group, clocks, since);
        }
    }
}

fn tell(scene: &mut Scene, (source, at): (Source, usize), group: &Group, (own, peers): (f64, f64), since: i64) {
    let Some(subject) = scene.at(source, at) else { return };
    let name = begin(&devices(scene.hosts, &[subject]));
    let sentence = format!(
        "{name} has run at {} MHz since {{since}} at least, its peers at {}: as long as this job is known",
        whole(own),
        whole(peers)
    );
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let mut facts = Vec::new();
    for (sig, what) in [(Sig::Clock, "its clock"), (Sig::Use, "its utilization"), (Sig::Power, "its power")] {
        let Some(slot) = device.recent(sig) else { continue };
        let words = if sig == Sig::Clock {
            format!("clock {} MHz, its peers {}", whole(own), whole(peers))
        } else {
            what.into()
        };
        facts.extend(slot.row.map(|row| evidence(host, row, subject.2, words, (slot.minute, slot.level()))));
    }
    let draft = Draft {
        rule: "uneven",
        severity: Severity::Note,
        source,
        subject: vec![subject],
        affects: group.devices(scene.hosts).into_iter().filter(|other| *other != subject).collect(),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: Some(group.id),
        also: Vec::new(),
        next: None,
    };
    let key = scene.key("uneven", source, at);
    scene.raise(key, draft);
}
