//! One member of a group does its part ever so little more slowly, and the others wait for it a little in each step.
//!
//! No minute shows a tenth. So each bucket of work says how much more likely it is that the others wait than that they do
//! not, by how far the member's share of the group's work is above its habit, measured by how far it usually strays. What
//! buckets say is added up and never falls below zero: the sum that Page described, of logarithms of likelihoods.

use crate::device::{Device, POWER, TRAFFIC, WORK};
use crate::group::Group;
use crate::levels::{Ordered, median};
use crate::{Hosts, Source};

/// How much more of the group's work one has for which the others wait, by what shows it: what it computes and moves
/// rises as it is slower, its power by less, for some of that is there in a wait, too.
const EFFECTS: [(usize, f64); 3] = [(WORK, 0.06), (TRAFFIC, 0.06), (POWER, 0.04)];
/// Seconds of habit before anything can be said of it.
const KNOWN: f64 = 240.0;
/// Of so many seconds it is made at most.
const LEARNED: f64 = 1732.0;
/// The least by which a bucket is trusted to stray: what counters say is not white noise.
const LEAST: f64 = 0.02;
/// By how much less the others must do, and the time constant of what they do, seconds.
const LESS: f64 = 0.015;
const SLOW: f64 = 120.0;

fn member(hosts: &Hosts, (source, at): (Source, usize)) -> Option<&Device> {
    hosts.get(&source)?.devices.get(at)
}

/// How far a bucket of ten seconds of a member usually strays from its habit, as a share of it; where the habit is known
/// well enough to see an effect of this size.
fn strays(device: &Device, of: usize, effect: f64) -> Option<f64> {
    let habit = &device.habits[of];
    let (ratio, spread) = habit.known(KNOWN)?;
    // A mean over five buckets that strays more than buckets do says that they do not stray by themselves.
    let strays = LEAST.max(1.25 * habit.strays).max(1.25 * 3.2 * spread / ratio);
    // The habit is a mean over as many buckets as it was learned of, and wrong by this much.
    let wrong = strays / (f64::from(habit.learned).min(LEARNED) / 10.0).sqrt();
    (wrong <= effect / 4.0).then_some(strays)
}

/// A bucket of `length` seconds is over: what it says of each member. `learns`: and what is usual is learned.
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
        group.marks.less += length / (length + SLOW) * (less / weights - group.marks.less);
    }
    for (at, says) in says.into_iter().enumerate() {
        let (source, position) = group.members[at];
        let Some(says) = says else { continue };
        if let Some(device) = hosts.get_mut(&source).and_then(|host| host.devices.get_mut(position)) {
            device.marks.awaited.add(now, length, says);
        }
    }
}

/// Whether the others do less than they usually do.
pub(crate) fn waits(group: &Group) -> bool {
    group.marks.less >= LESS
}

/// The channel that shows it best, and the effect that is looked for there.
pub(crate) fn shown_by(device: &Device) -> Option<(usize, f64)> {
    let known = EFFECTS.iter().filter_map(|(of, effect)| Some((strays(device, *of, *effect)? / effect, *of, *effect)));
    known.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, of, effect)| (of, effect))
}
