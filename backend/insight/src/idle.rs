//! GPUs that are held without work.

use crate::finding::Draft;
use crate::key::{Key, What};
use crate::scene::{Scene, sight};
use crate::signal::{Sig, process_row};
use crate::words::{At, begin, devices, evidence, lasting, whole};
use crate::{DetectorEntry, Source};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("idle", |hosts| sight(hosts, &[Sig::Use], &[(Sig::MemShare, "memory in use")]))], judge };

/// Memory above which a GPU counts as held, percent.
const HELD_PERCENT: f64 = 5.0;
/// Seconds after which a note becomes a warning.
const WARNING_AFTER_S: i64 = 3600;
/// GPUs that became idle within this many seconds are reported together.
const JOINED_WITHIN_S: i64 = 60;

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        let mut due: Vec<usize> = Vec::new();
        for at in 0..scene.hosts[&source].devices.len() {
            step(scene, source, at, &mut due);
        }
        while let Some(&first) = due.first() {
            let begun = |at: usize| scene.hosts[&source].devices[at].marks.idle.since().unwrap_or(0);
            let since = begun(first);
            let together: Vec<usize> = (0..scene.hosts[&source].devices.len())
                .filter(|at| {
                    let marks = &scene.hosts[&source].devices[*at].marks;
                    !marks.idle_told && marks.idle.since().is_some_and(|own| (own - since).abs() <= JOINED_WITHIN_S)
                })
                .collect();
            due.retain(|at| !together.contains(at));
            tell(scene, source, &together, since);
        }
    }
}

fn step(scene: &mut Scene, source: Source, at: usize, due: &mut Vec<usize>) {
    let now = scene.now;
    let key = scene.key("idle", source, at);
    let after = scene.settings.idle_after.max(60);
    let host = scene.hosts.get_mut(&source).expect("it ticked");
    let (step, patience) = (host.step, host.patience());
    let device = &mut host.devices[at];
    let Some((short, instant)) = device.recent(Sig::Use).map(|slot| (slot.short, slot.now)) else { return };
    let held = !device.pids.is_empty() || device.memory_share().is_some_and(|share| share >= HELD_PERCENT);
    // In its idle state a GPU takes a small part of its limit, and somewhat more with a context.
    let low = device.power().is_none_or(|(slot, limit)| !limit.is_finite() || slot.short <= 0.4 * limit);
    device.marks.idle.step(now, Some(held && short <= 1.0 && low), patience);
    device.marks.used.step(now, Some(instant > 5.0), patience);
    let used = device.marks.used.held(10.max(step));
    if used || !held {
        device.marks.idle_told = false;
    }
    let begun = device.marks.idle.since();
    let told = device.marks.idle_told;
    if scene.ledger.is_open(&key) {
        if used || !held {
            scene.end(&key);
        } else if begun.is_some_and(|since| now - since >= WARNING_AFTER_S) {
            scene.ledger.revise(&key, Severity::Warning, None);
        }
    } else if !told && device.marks.idle.held(after) && !hangs(scene, source, at) {
        due.push(at);
    }
}

/// Whether its group is already reported as hanging: that is the same condition, known sooner.
fn hangs(scene: &Scene, source: Source, at: usize) -> bool {
    let group = scene.group_of(source, at).map(|group| Key::new("hang", group.first(), What::Group(group.id)));
    group.and_then(|key| scene.ledger.get(&key)).is_some_and(|open| open.rule == "hang.idle")
}

fn tell(scene: &mut Scene, source: Source, together: &[usize], since: i64) {
    let subject: Vec<At> = together.iter().filter_map(|at| scene.at(source, *at)).collect();
    let mut keys: Vec<Key> = together.iter().map(|at| scene.key("idle", source, *at)).collect();
    for at in together {
        scene.hosts.get_mut(&source).expect("it ticked").devices[*at].marks.idle_told = true;
    }
    let host = &scene.hosts[&source];
    let device = &host.devices[together[0]];
    let share = device.memory_share();
    let memory = share.map_or(String::new(), |share| format!(", memory {} %", whole(share)));
    let sentence = format!(
        "{} {} been reserved but idle for {}, since {{since}}: utilization 0 %{memory}",
        begin(&devices(scene.hosts, &subject)),
        if subject.len() == 1 { "has" } else { "have" },
        lasting((scene.now - since) as f64),
    );
    let mut facts = Vec::new();
    if let Some(slot) = device.recent(Sig::Use) {
        facts.extend(slot.row.map(|row| {
            evidence(host, row, device.index, "utilization at most 1 %".into(), (slot.short, slot.level()))
        }));
    }
    if let Some(slot) = device.memory_slot() {
        let words =
            share.map_or(String::from("memory is allocated"), |share| format!("memory {} % allocated", whole(share)));
        facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.now, slot.level()))));
    }
    if let Some((slot, _)) = device.power() {
        let words = format!("power {} W", whole(slot.short));
        facts.extend(slot.row.map(|row| evidence(host, row, device.index, words, (slot.short, slot.level()))));
    }
    let words = match device.pids.first() {
        Some(pid) => format!("process {pid} uses the GPU"),
        None => "the process is unknown".into(),
    };
    facts.push(evidence(host, process_row(), device.index, words, (f64::NAN, None)));
    let key = keys.remove(0);
    let draft = Draft {
        rule: "idle",
        severity: Severity::Note,
        source,
        subject,
        affects: Vec::new(),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: scene.group_of(source, together[0]).map(|group| group.id),
        also: keys,
        next: None,
    };
    scene.raise(key, draft);
}
