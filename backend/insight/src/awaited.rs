//! Detects a member of a group that is slightly slower than the others, which wait a little for it in each step.
//!
//! A single minute does not show a tenth. So each bucket of work yields a log-likelihood ratio: the others wait for
//! this member, against they do not. It compares the member's share of the group's work with its habit, relative to its
//! usual deviation. The ratios are added up and the sum never falls below zero (Page's CUSUM test).

use crate::device::{Device, POWER, TRAFFIC, WORK};
use crate::group::Group;
use crate::levels::{Ordered, median};
use crate::{Hosts, Source};

/// Relative rise of a member's share of the group's work when the others wait for it, by channel. Its computation and
/// memory traffic rise as much as it is slower. Its power rises less, because waiting takes power, too.
const EFFECTS: [(usize, f64); 3] = [(WORK, 0.06), (TRAFFIC, 0.06), (POWER, 0.04)];
/// Minimum seconds of habit before a member is judged.
const MIN_HABIT_S: f64 = 240.0;
/// Maximum number of seconds that a habit averages over.
const LEARNED: f64 = 1732.0;
/// Minimum deviation assumed for a bucket: counters are not white noise.
const MIN_DEVIATION: f64 = 0.02;
/// Relative loss of the others from which they count as waiting; time constant of that loss, seconds.
const WAITING_LOSS: f64 = 0.015;
const LOSS_TIME_CONSTANT_S: f64 = 120.0;

fn member(hosts: &Hosts, (source, at): (Source, usize)) -> Option<&Device> {
    hosts.get(&source)?.devices.get(at)
}

/// Usual deviation of a member's ten-second buckets from its habit, as a share of the habit. None unless the habit is
/// known well enough to detect `effect`.
fn strays(device: &Device, of: usize, effect: f64) -> Option<f64> {
    let habit = &device.habits[of];
    let (ratio, spread) = habit.known(MIN_HABIT_S)?;
    // Buckets are correlated if the mean of five deviates more than a single bucket should.
    let strays = MIN_DEVIATION.max(1.25 * habit.strays).max(1.25 * 3.2 * spread / ratio);
    // Standard error of the habit, which is a mean over the buckets that it was learned from.
    let wrong = strays / (f64::from(habit.learned).min(LEARNED) / 10.0).sqrt();
    (wrong <= effect / 4.0).then_some(strays)
}

/// Evaluates a bucket of `length` seconds for each member. With `learns` the habits are updated, too.
pub(crate) fn bucket(group: &mut Group, hosts: &mut Hosts, now: i64, length: f64, learns: bool) {
    let n = group.members.len();
    if n < 3 {
        return;
    }
    let mut says = vec![None; n];
    let (mut less, mut weights) = (0.0, 0.0);
    for (of, effect) in EFFECTS {
        let fresh = |at: &(Source, usize)| member(hosts, *at)?.habits[of].fresh();
        let values: Vec<Option<f64>> = group.members.iter().map(fresh).collect();
        let known = Ordered::new(values.iter().flatten().copied());
        if known.len() < 3 || known.len() * 2 < n {
            continue;
        }
        let mut part = Vec::new();
        let mut noise = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let peers = known.others(value).unwrap_or_default();
            let Some(device) = member(hosts, group.members[at]).filter(|_| peers > 0.0) else { continue };
            let Some((habit, _)) = device.habits[of].known(60.0) else { continue };
            let off = value / peers / habit - 1.0;
            if let Some(strays) = strays(device, of, effect) {
                *says[at].get_or_insert(0.0) += effect * (off - effect / 2.0) / (strays * strays);
                if let Some(level) = device.level_of(of, group.marks.work) {
                    part.push(value / level);
                    noise.push(strays);
                }
            }
            if learns
                && let Some(device) = hosts.get_mut(&group.members[at].0).map(|h| &mut h.devices[group.members[at].1])
            {
                device.habits[of].stray(off.abs(), length);
            }
        }
        if let (Some(part), Some(noise)) = (median(&mut part), median(&mut noise)) {
            less += (1.0 - part) / (noise * noise);
            weights += 1.0 / (noise * noise);
        }
    }
    if weights > 0.0 {
        group.marks.less += length / (length + LOSS_TIME_CONSTANT_S) * (less / weights - group.marks.less);
    }
    for (at, says) in says.into_iter().enumerate() {
        let (source, position) = group.members[at];
        let Some(says) = says else { continue };
        if let Some(device) = hosts.get_mut(&source).and_then(|host| host.devices.get_mut(position)) {
            device.marks.awaited.add(now, length, says);
        }
    }
}

/// Whether the members do less than usual.
pub(crate) fn waits(group: &Group) -> bool {
    group.marks.less >= WAITING_LOSS
}

/// The channel with the strongest evidence, and the effect that is tested there.
pub(crate) fn shown_by(device: &Device) -> Option<(usize, f64)> {
    let known = EFFECTS.iter().filter_map(|(of, effect)| Some((strays(device, *of, *effect)? / effect, *of, *effect)));
    known.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, of, effect)| (of, effect))
}
