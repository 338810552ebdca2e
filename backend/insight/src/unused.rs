//! GPUs that a scheduler reserved for a job and that no process uses.

use crate::finding::Draft;
use crate::holder::Holder;
use crate::key::{Key, What};
use crate::scene::{Scene, sight};
use crate::signal::{Family, Sig, process_row};
use crate::words::{At, begin, devices, evidence, lasting, whole};
use crate::{DetectorEntry, Hosts, Job, Source};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[("unused", |hosts| sight(hosts, &[Sig::Use], &[(Sig::MemShare, "memory in use")]))],
    judge,
};

/// Seconds without a process before a finding.
const UNUSED_AFTER_S: i64 = 600;
/// Seconds after which a note becomes a warning.
const WARNING_AFTER_S: i64 = 3600;
/// Memory up to which a GPU is free, percent: the driver itself holds some.
const FREE_PERCENT: f64 = 2.0;
/// GPUs of one job that became free within this many seconds are reported together.
const JOINED_WITHIN_S: i64 = 60;

/// Notes for which jobs and pods GPUs are reserved. For a GPU of several jobs the first one counts. A pod counts where no
/// job is known: its job may not have begun.
pub(crate) fn reserve(hosts: &mut Hosts, jobs: &[Job]) {
    for (source, host) in hosts.iter_mut() {
        for at in 0..host.devices.len() {
            let (family, index) = (host.devices[at].family, host.devices[at].index);
            let own = |job: &&Job| job.reserved.iter().any(|of| of.source == *source && of.gpus.contains(&index));
            let run = |job: &Job| Holder::Run { id: job.id.clone(), owner: job.owner.clone() };
            let pod = || host.pods_of(index).min().map(|pod| Holder::Pod(pod.into()));
            let holder = jobs.iter().find(own).map(run).or_else(|| pod().filter(|_| family == Family::Gpu));
            let (holder, device) = (holder.map(Box::new), &mut host.devices[at]);
            if device.holder != holder {
                device.holder = holder;
                device.marks.unused.clear();
            }
        }
    }
}

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        let mut due: Vec<usize> = Vec::new();
        for at in 0..scene.hosts[&source].devices.len() {
            step(scene, source, at, &mut due);
        }
        while let Some(&first) = due.first() {
            let device = |at: usize| &scene.hosts[&source].devices[at];
            let since = device(first).marks.unused.since().unwrap_or(0);
            let is_joined = |at: &usize| {
                let begun = device(*at).marks.unused.since();
                device(*at).holder == device(first).holder
                    && begun.is_some_and(|begun| (begun - since).abs() <= JOINED_WITHIN_S)
            };
            let together: Vec<usize> = (0..scene.hosts[&source].devices.len()).filter(is_joined).collect();
            due.retain(|at| !together.contains(at));
            tell(scene, source, &together, since);
        }
    }
}

fn key(scene: &Scene, source: Source, at: usize) -> Key {
    let device = &scene.hosts[&source].devices[at];
    Key::new("unused", source, What::Device(device.family, device.index))
}

fn step(scene: &mut Scene, source: Source, at: usize, due: &mut Vec<usize>) {
    let now = scene.now;
    let key = key(scene, source, at);
    let host = scene.hosts.get_mut(&source).expect("it ticked");
    let patience = host.patience();
    let device = &mut host.devices[at];
    if device.holder.is_none() {
        return scene.end(&key);
    }
    let Some((short, instant)) = device.recent(Sig::Use).map(|slot| (slot.short, slot.now)) else { return };
    // A server that may not see the processes of a GPU still sees their memory.
    let is_free = device.pids.is_empty() && device.memory_share().is_some_and(|share| share <= FREE_PERCENT);
    let is_unused = is_free && short <= 1.0 && instant <= 1.0;
    device.marks.unused.step(now, Some(is_unused), patience);
    let begun = device.marks.unused.since();
    let is_due = device.marks.unused.held(UNUSED_AFTER_S);
    if !scene.ledger.is_open(&key) {
        if is_due {
            due.push(at);
        }
    } else if !is_unused {
        scene.end(&key);
    } else if begun.is_some_and(|since| now - since >= WARNING_AFTER_S) {
        scene.ledger.revise(&key, Severity::Warning, None);
    }
}

fn tell(scene: &mut Scene, source: Source, together: &[usize], since: i64) {
    let subject: Vec<At> = together.iter().filter_map(|at| scene.at(source, *at)).collect();
    let mut keys: Vec<Key> = together.iter().map(|at| key(scene, source, *at)).collect();
    let host = &scene.hosts[&source];
    let device = &host.devices[together[0]];
    let Some(holder) = device.holder.as_ref() else { return };
    let (is, them) = if subject.len() == 1 { ("is", "it") } else { ("are", "them") };
    let sentence = format!(
        "{} {is} reserved for {}, but nothing has used {them} for {}, since {{since}}: utilization 0 %",
        begin(&devices(scene.hosts, &subject)),
        holder.words(),
        lasting((scene.now - since) as f64),
    );
    let mut facts = Vec::new();
    if let Some(slot) = device.recent(Sig::Use) {
        let words = "utilization at most 1 %".into();
        facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.short, slot.level()))));
    }
    if let Some((slot, share)) = device.memory_slot().zip(device.memory_share()) {
        let words = format!("memory {} % allocated", whole(share));
        facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.now, slot.level()))));
    }
    facts.push(evidence(host, process_row(), device.index, "no known process uses the GPU".into(), (f64::NAN, None)));
    let (key, user) = (keys.remove(0), holder.user().to_string());
    let draft = Draft {
        rule: "unused",
        severity: Severity::Note,
        source,
        subject,
        affects: Vec::new(),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: None,
        also: keys,
        next: None,
    };
    scene.raise(key.clone(), draft);
    scene.ledger.concern(&key, &user);
}
