//! Times that ranks log for each step, as `watchglass.steps()` does: evidence about a member that is slower than the
//! others.

use crate::group::Group;
use crate::host::Named;
use crate::levels::median;
use crate::signal::{NamedSig, named_row_of};
use crate::words::evidence;
use crate::{Hosts, Job, Source};
use shared::finding::Evidence;
use shared::unit::{Unit, text};

/// Maximum age of a value, seconds: a step may take minutes.
const MAX_AGE_S: i64 = 300;
/// Minimum excess over the other ranks, as a share of their step.
const MIN_EXCESS: f64 = 0.05;

/// Notes on each device the series that its rank logs.
pub(crate) fn assign(hosts: &mut Hosts, jobs: &[Job]) {
    hosts.values_mut().flat_map(|host| &mut host.devices).for_each(|device| device.logs = Box::default());
    for rank in jobs.iter().flat_map(|job| &job.ranks).filter(|rank| !rank.logs.is_empty()) {
        let devices = hosts.get_mut(&rank.source).into_iter().flat_map(|host| &mut host.devices);
        devices
            .filter(|device| rank.gpus.contains(&device.index))
            .for_each(|device| device.logs = rank.logs.as_str().into());
    }
}

/// The values that the rank of a member logs, if they are current.
fn value(hosts: &Hosts, (source, at): (Source, usize), sig: NamedSig) -> Option<&Named> {
    let host = hosts.get(&source)?;
    let logs = &host.devices.get(at)?.logs;
    let named = host.named.iter().find(|named| named.sig == sig && !logs.is_empty() && *named.name == **logs)?;
    (named.slot.at >= host.newest - MAX_AGE_S && named.slot.minute.is_finite()).then_some(named)
}

/// A time of a member that stands out: the words about it, and the evidence.
pub(crate) fn stands_out(group: &Group, hosts: &Hosts, member: usize, sig: NamedSig) -> Option<(String, Evidence)> {
    let own = *group.members.get(member)?;
    let named = value(hosts, own, sig)?;
    let others = |sig: NamedSig| {
        let all = group.members.iter().enumerate().filter(|(at, _)| *at != member);
        median(&mut all.filter_map(|(_, at)| Some(value(hosts, *at, sig)?.slot.minute)).collect::<Vec<f64>>())
    };
    let (mine, theirs, step) = (named.slot.minute, others(sig)?, others(NamedSig::StepTime)?);
    if mine - theirs < MIN_EXCESS * step {
        return None;
    }
    let what = if sig == NamedSig::DataTime { "waits for data" } else { "takes" };
    let of = |seconds: f64| text(seconds, Unit::Seconds);
    let words = format!("its rank {what} {} per step, the others {}", of(mine), of(theirs));
    let fact = evidence(&hosts[&own.0], named_row_of(sig), &named.name, words.clone(), (mine, Some(theirs)));
    Some((words, fact))
}
