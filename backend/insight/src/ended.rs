//! Jobs that ended because the memory of a GPU or of their machine was full. Each is an event that stays open until
//! another job works in its place.

use crate::device::Device;
use crate::ending::{Brim, Ended};
use crate::finding::Draft;
use crate::host::Host;
use crate::key::{Key, What};
use crate::scene::{Scene, sight};
use crate::signal::Sig;
use crate::words::{At, all, devices, evidence, size_of, whole};
use crate::{DetectorEntry, Hosts, Source};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("gpu_memory.ended", |hosts| sight(hosts, &[Sig::MemShare], &[]))], judge };

/// A GPU is judged from `JUDGED_PERCENT` percent of its memory. It is full from `FULL_TOLD` where a rise was reported, otherwise
/// from `FULL_PERCENT`, or after a recent rise by `ROSE` points. Some memory is always reserved, and the last request is larger
/// than the rest.
const JUDGED_PERCENT: f64 = 85.0;
const FULL_TOLD: f64 = 95.0;
const FULL_PERCENT: f64 = 98.0;
const ROSE: f64 = 5.0;
const RECENT_S: i64 = 600;
/// Share of the memory that may remain when the process is gone.
const MAX_REMAINING_SHARE: f64 = 0.3;
/// A fall by more points is memory that the running job has released.
const GIVEN_BACK: f64 = 2.0;
/// Seconds until the state of the other members is known.
const SETTLED_S: i64 = 15;
/// Another job is accepted after this many seconds of work; the event ends `END_AFTER_S` seconds later.
const WORKS: i64 = 60;
const END_AFTER_S: i64 = 600;
/// Maximum number of ended jobs stored per machine.
const MAX_JOBS: usize = 8;

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            device(scene, source, at);
        }
        if !scene.hosts[&source].marks.ended.is_empty() {
            follow(scene, source);
        }
    }
}

/// Detects that a GPU is nearly full, and that the process that filled it is gone.
fn device(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let device = &scene.hosts[&source].devices[at];
    let Some(share) = device.memory_share().filter(|_| device.seen == now) else { return };
    if share < JUDGED_PERCENT && device.marks.brim.is_none() {
        return;
    }
    let told = scene.ledger.is_open(&scene.key("gpu_memory", source, at)) || device.marks.rise_told >= now - SETTLED_S;
    let group = scene.group_of(source, at);
    let known = device.marks.brim.as_ref();
    if share >= JUDGED_PERCENT {
        // A process that ends may have left its job a moment before its memory is released.
        let stays = |brim: &Brim| group.is_none_or(|group| group.members.iter().all(|one| brim.members.contains(one)));
        let members = group.filter(|_| !known.is_some_and(|brim| stays(brim))).map(|group| group.members.clone());
        let pids = known.is_none_or(|brim| brim.pids != device.pids).then(|| device.pids.clone());
        let device = &mut scene.hosts.get_mut(&source).expect("it ticked").devices[at];
        let worked = device.work.worked >= WORKS;
        let brim = device.marks.brim.get_or_insert_default();
        if let Some(members) = members {
            brim.members = members;
        }
        if let Some(pids) = pids {
            brim.pids = pids;
        }
        // Memory loaded before the work begins is what the job needs.
        brim.most = match worked {
            true if share >= brim.most - GIVEN_BACK => brim.most.max(share),
            true => share,
            false => 0.0,
        };
        brim.at = now;
        return;
    }
    // A process that ends releases everything at once, or within a few seconds.
    let step = scene.hosts[&source].step;
    if known.is_some_and(|brim| now - brim.at > SETTLED_S.max(3 * step)) {
        scene.hosts.get_mut(&source).expect("it ticked").devices[at].marks.brim = None;
        return;
    }
    let Some(brim) = known.filter(|brim| share <= MAX_REMAINING_SHARE * brim.most.max(JUDGED_PERCENT)) else { return };
    let filling = &device.marks.filling;
    let rose = brim.most >= FULL_PERCENT && filling.rose_by(brim.most) >= ROSE && now - filling.began <= RECENT_S;
    let full = (told && brim.most >= FULL_TOLD) || rose;
    let total = device.slot(Sig::MemTotal).now;
    let words = match total.is_finite() {
        true => format!("{} were in use", size_of(brim.most / 100.0 * total, total)),
        false => format!("{} % were in use", whole(brim.most)),
    };
    let (most, mut members, pids) = (brim.most, brim.members.clone(), brim.pids.clone());
    scene.hosts.get_mut(&source).expect("it ticked").devices[at].marks.brim = None;
    if !full {
        return;
    }
    if !members.contains(&(source, at)) {
        members = vec![(source, at)];
    }
    // The state of a job is stored with its first machine.
    let Some(first) = scene.hosts.get_mut(&members[0].0) else { return };
    let same = |ended: &&mut Ended| {
        ended.told.is_none()
            && !ended.full.is_empty()
            && ended.members.contains(&(source, at))
            && now - ended.at <= SETTLED_S
    };
    match first.marks.ended.iter_mut().find(same) {
        Some(ended) => ended.full.push((source, at)),
        None => {
            let full = vec![(source, at)];
            remember(first, Ended { at: now, full, words, most, pids, members, told: None, next: None });
        }
    }
}

fn remember(host: &mut Host, ended: Ended) {
    if host.marks.ended.len() < MAX_JOBS {
        host.marks.ended.push(ended);
    }
}

/// Records that the kernel killed a process of a machine, reported under `key`. The state of its GPUs from then on
/// belongs to that finding.
pub(crate) fn killed(scene: &mut Scene, source: Source, key: &Key, sentence: &str) {
    let now = scene.now;
    let host = &scene.hosts[&source];
    let worked = |device: &Device| device.work.last >= now - RECENT_S / 5;
    let own = host.devices.iter().enumerate().filter(|(_, device)| worked(device)).map(|(at, _)| (source, at));
    let members: Vec<(Source, usize)> = scene.group_on(source).map_or_else(|| own.collect(), |g| g.members.clone());
    if members.is_empty() || host.marks.ended.iter().any(|ended| ended.full.is_empty() && ended.next.is_none()) {
        return;
    }
    let told = Some((key.clone(), sentence.to_string()));
    let (words, pids) = (String::new(), Vec::new());
    let ended = Ended { at: now, full: Vec::new(), words, most: 0.0, pids, members, told, next: None };
    remember(scene.hosts.get_mut(&source).expect("it ticked"), ended);
}

/// Whether a kill is still current: no other job works in the place of the killed one.
pub(crate) fn is_awaited(host: &Host) -> bool {
    host.marks.ended.iter().any(|ended| ended.full.is_empty())
}

/// Whether no member with a recent use is used by more than 5 %; false where no use is known.
fn idle(hosts: &Hosts, ended: &Ended) -> bool {
    let device = |(source, at): &(Source, usize)| hosts.get(source)?.devices.get(*at);
    let uses = |device: &Device| device.recent(Sig::Use).map(|slot| slot.now);
    let known: Vec<f64> = ended.members.iter().filter_map(device).filter_map(uses).collect();
    !known.is_empty() && known.iter().all(|usage| *usage <= 5.0)
}

fn follow(scene: &mut Scene, source: Source) {
    let now = scene.now;
    let mut all = std::mem::take(&mut scene.hosts.get_mut(&source).expect("it ticked").marks.ended);
    all.retain_mut(|ended| {
        let settled = SETTLED_S.max(3 * scene.hosts[&source].step);
        if now - ended.at < settled {
            return true;
        }
        let idles = idle(scene.hosts, ended);
        let stays = |(source, at): &(Source, usize)| {
            let device = scene.hosts.get(source).and_then(|host| host.devices.get(*at));
            device.is_some_and(|device| ended.pids.iter().any(|pid| device.pids.contains(pid)))
        };
        // The job released memory that it did not need, and goes on.
        if ended.told.is_none() && ended.full.first().is_some_and(stays) {
            return false;
        }
        if ended.told.is_none() {
            ended.told = Some(tell(scene, ended, idles));
        }
        let Some((key, sentence)) = &ended.told else { return false };
        let worked = |(at, place): (&Source, &usize)| {
            let device = scene.hosts.get(at)?.devices.get(*place)?;
            Some(device.work.last > ended.at + settled && device.work.worked >= WORKS && device.work.on)
        };
        let works = ended.members.iter().any(|(at, place)| worked((at, place)).unwrap_or(false));
        if ended.next.is_none() && works {
            ended.next = Some(now);
        }
        let own = match (idles && ended.next.is_none(), ended.full.is_empty()) {
            (true, _) => format!("{sentence}{}", idle_words(scene.hosts, ended)),
            (false, _) => sentence.clone(),
        };
        let words = if ended.words.is_empty() { own } else { format!("{own}: {}", ended.words) };
        scene.ledger.retell(key, &words);
        let over = ended.next.is_some_and(|next| ended.full.is_empty() || now - next >= END_AFTER_S);
        if over && !ended.full.is_empty() {
            scene.ledger.end(now, key);
        }
        !over
    });
    scene.hosts.get_mut(&source).expect("it ticked").marks.ended = all;
}

fn places(hosts: &Hosts, of: &[(Source, usize)]) -> Vec<At> {
    let at = |&(source, at): &(Source, usize)| {
        let device = hosts.get(&source)?.devices.get(at)?;
        Some((source, device.family, device.index))
    };
    of.iter().filter_map(at).collect()
}

fn idle_words(hosts: &Hosts, ended: &Ended) -> String {
    let members = places(hosts, &ended.members);
    if members.len() == 1 {
        return "; it has been idle since".into();
    }
    let all = all(hosts, &members);
    format!("; {} have been idle since", all.replacen("All ", "all ", 1).replacen("Both ", "both ", 1))
}

/// Raises the finding. Returns its key, and its sentence without the state of the other members.
fn tell(scene: &mut Scene, ended: &Ended, idles: bool) -> (Key, String) {
    let subject = places(scene.hosts, &ended.full);
    let (source, at) = ended.full[0];
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let named = devices(scene.hosts, &subject);
    let were = if subject.len() == 1 { "was" } else { "were" };
    let sentence = match idles {
        true => format!("The job ended at {{since}}: {named} {were} full"),
        false => format!("The job on {named} ended at {{since}}: the memory was full"),
    };
    let key = Key::new("gpu_memory", source, What::Named(format!("ended {}", device.index)));
    let mut facts = Vec::new();
    if let Some(slot) = device.memory_slot() {
        let words = format!("{}, {} % of the memory, until it was released at once", ended.words, whole(ended.most));
        facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.now, None))));
    }
    if let Some(slot) = device.recent(Sig::Use) {
        let words = format!("utilization {} % since then", whole(slot.now));
        facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.now, slot.level()))));
    }
    let draft = Draft {
        rule: "gpu_memory.ended",
        severity: Severity::Critical,
        source,
        affects: places(scene.hosts, &ended.members).into_iter().filter(|own| !subject.contains(own)).collect(),
        subject,
        device: None,
        since: ended.at,
        sentence: format!(
            "{sentence}{}: {}",
            if idles { idle_words(scene.hosts, ended) } else { String::new() },
            ended.words
        ),
        evidence: facts,
        group: None,
        also: Vec::new(),
        next: None,
    };
    // This event ends the previous one on the same GPU.
    scene.ledger.supersede(scene.now, &key);
    scene.raise(key.clone(), draft);
    (key, sentence)
}
