//! Another program came onto a GPU of a job, and the job is slower since then.
//!
//! The GPU itself shows little: it computes for both. The evidence is the new process, together with a loss of all
//! other members from then on.

use crate::DetectorEntry;
use crate::Source;
use crate::finding::Draft;
use crate::group::Group;
use crate::hang::counter;
use crate::key::{Key, What};
use crate::scene::{Scene, sight};
use crate::signal::Sig;
use crate::words::{begin, devices, evidence, size, whole};
use shared::catalog::gpu_parts;
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[("straggler.shared", |hosts| {
        sight(
            hosts,
            &[Sig::Use, Sig::Power],
            &[(Sig::Tensor, "profiling counters"), (Sig::Activity, "memory activity")],
        )
    })],
    judge,
};

/// Maximum age of the arrival, seconds; later the state is usual.
const MAX_ARRIVAL_AGE_S: i64 = 900;
/// Seconds after an arrival that count as the start of the program.
const STARTS: i64 = 20;
/// 80 of 120 s.
const WINDOW: i64 = 120;
const SHARE: f64 = 2.0 / 3.0;

fn judge(scene: &mut Scene) {
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            group(scene, at);
        }
    }
}

/// The member with the newest arrival of another program: its position, the time, and the PID of the program.
fn newcomer(scene: &Scene, group: &Group) -> Option<(usize, i64, u32)> {
    let guest = |(at, (source, position)): (usize, &(Source, usize))| {
        let (came, pid) = scene.hosts.get(source)?.devices.get(*position)?.guest;
        (scene.now - i64::from(came) <= MAX_ARRIVAL_AGE_S).then_some((at, i64::from(came), pid))
    };
    let all: Vec<_> = group.members.iter().enumerate().filter_map(guest).collect();
    // A program on most of them is another job, not a guest.
    let few = all.len() * 2 <= group.members.len();
    all.into_iter().max_by_key(|(_, came, _)| *came).filter(|_| few)
}

fn group(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let own = &scene.groups[at];
    let step = own.step(scene.hosts);
    let key = Key::new("straggler", own.first(), What::Group(own.id));
    if own.members.len() < 2 || !own.has_worked(now, 45.max(2 * step)) {
        return;
    }
    let Some((member, came, pid)) = newcomer(scene, own) else {
        let pace = own.pace(scene.hosts, None, now).filter(|_| !scene.ledger.is_open(&key));
        let marks = &mut scene.groups[at].marks;
        marks.shared.step(now, step, None);
        pace.into_iter().for_each(|(pace, _)| marks.pace.learn(pace, step as f64));
        return;
    };
    // The mean since the arrival: the longer it is, the less it deviates by chance.
    let Some((pace, sig)) = own.pace_since(scene.hosts, Some(member), now, came + STARTS) else { return };
    let lost = own.marks.pace.lost_over(pace, now - came - STARTS);
    let less = lost.is_some_and(|(lost, least)| lost >= least);
    let marks = &mut scene.groups[at].marks;
    if now - came >= STARTS {
        marks.shared.step(now, step, Some(less));
    }
    let holds = marks.shared.held(SHARE, WINDOW.max(6 * step));
    let own = scene.groups[at].clone();
    // The usual values stay those from before.
    own.freeze(scene.hosts, now + 1 + step);
    if holds && !scene.ledger.is_open(&key) {
        let Some((lost, _)) = lost else { return };
        tell(scene, &own, (member, came, pid), lost, (pace, sig));
        let marks = &mut scene.groups[at].marks;
        (marks.slow, marks.awaited) = (vec![own.members[member]], false);
        marks.even.clear();
    }
}

/// Whether a finding of this rule continues: the other program is there, and the job is still slower.
pub(crate) fn goes_on(group: &Group, scene: &Scene, (source, position): (Source, usize)) -> bool {
    let there = scene.hosts.get(&source).and_then(|host| host.devices.get(position)).is_some_and(|d| d.guest.0 > 0);
    let pace = group.pace(scene.hosts, None, scene.now);
    there && pace.and_then(|(pace, _)| group.marks.pace.lost(pace)).is_some_and(|(lost, least)| lost >= least / 2.0)
}

fn tell(scene: &mut Scene, group: &Group, (member, came, pid): (usize, i64, u32), lost: f64, (pace, sig): (f64, Sig)) {
    let (source, position) = group.members[member];
    let Some(subject) = scene.at(source, position) else { return };
    let host = &scene.hosts[&source];
    let device = &host.devices[position];
    let affects: Vec<_> = group.devices(scene.hosts).into_iter().filter(|other| *other != subject).collect();
    let held = host.held_by(pid, device.index);
    let holds = held.map_or(String::new(), |bytes| format!(" and uses {} of its memory", size(bytes)));
    let name = devices(scene.hosts, &[subject]);
    let sentence = format!(
        "{} has also been used by process {pid} of another job since {{since}}{holds}: the job runs {} % slower",
        begin(&name),
        whole(100.0 * lost)
    );
    let mut facts: Vec<Evidence> = Vec::new();
    let words = format!("process {pid} started, beside {}", device.pids.iter().filter(|other| **other != pid).count());
    let instance = format!("{}.proc.{pid}", device.index);
    facts.push(evidence(host, &gpu_parts::PROCESS_MEMORY, instance, words, (held.unwrap_or(f64::NAN), None)));
    let usual = whole(100.0 * group.marks.pace.mean);
    let words = format!(
        "the other GPUs work at {} % of their maximum, {usual} % before, by {}",
        whole(100.0 * pace),
        counter(sig)
    );
    if let Some((host, shown)) = group.shown(scene.hosts, Some(member), sig) {
        let slot = shown.slot(sig);
        let value = slot.level().map_or(f64::NAN, |level| pace * level);
        facts.extend(slot.row.map(|row| evidence(host, row, shown.index, words, (value, slot.level()))));
    }
    let draft = Draft {
        rule: "straggler.shared",
        severity: Severity::Warning,
        source,
        subject: vec![subject],
        affects,
        device: None,
        since: came,
        sentence,
        evidence: facts,
        group: Some(group.id),
        also: Vec::new(),
        next: None,
    };
    scene.raise(Key::new("straggler", group.first(), What::Group(group.id)), draft);
}
