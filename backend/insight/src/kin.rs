//! Groups that may be parts of one job that no run names: what one of them waits for may be on another machine, or in
//! another container.

use crate::device::Device;
use crate::group::{Group, How};
use crate::phase::Phase;
use crate::{Hosts, Source};

/// Groups that began to work within so many seconds of each other may be of one job.
const TOGETHER: i64 = 60;
/// What stopped within so many seconds of each other, and has done nothing since, waits for the same.
const STOPPED: i64 = 20;
/// For so many seconds a group must have gone on as ever to be known as another job.
const GOES_ON: i64 = 120;

/// A group that may be of the same job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kin {
    /// Its place among the groups.
    pub at: usize,
    /// A member of it has stopped at the same time, and has not worked since.
    pub sure: bool,
}

fn devices<'a>(group: &'a Group, hosts: &'a Hosts) -> impl Iterator<Item = &'a Device> {
    group.members.iter().filter_map(|(source, at)| hosts.get(source)?.devices.get(*at))
}

/// The groups that may be of one job with the group at `at`, which has stopped; none where a run names its job, for then all
/// of it is one group.
pub(crate) fn of(groups: &[Group], hosts: &Hosts, at: usize, now: i64) -> Vec<Kin> {
    let own = &groups[at];
    if matches!(own.how, How::Job(_)) {
        return Vec::new();
    }
    let of_model = |group: &Group| devices(group, hosts).next().map(|device| (device.family, device.model()));
    let (model, sources) = (of_model(own), own.sources());
    let stopped = own.course.last_work;
    let kin = |(other, group): (usize, &Group)| {
        let here = |source: &Source| hosts.get(source).is_some_and(|host| host.is_recent(now));
        let there = other != at && of_model(group) == model && group.sources().iter().any(here);
        if !there || group.course.phase == Phase::Off || goes_on(group, hosts, now) {
            return None;
        }
        let near = STOPPED + 2 * own.step(hosts).max(group.step(hosts));
        let waits = |device: &Device| !device.is_free() && (device.work.last - stopped).abs() <= near;
        let sure = devices(group, hosts).any(waits);
        // Of one machine that is watched for as long as they work nobody knows which of them began together.
        let elsewhere = !group.sources().iter().any(|source| sources.contains(source));
        let began = (group.began - own.began).abs() <= TOGETHER && elsewhere;
        (sure || began).then_some(Kin { at: other, sure })
    };
    groups.iter().enumerate().filter_map(kin).collect()
}

/// Whether all of a group works as ever, and moves as much over its links: nobody of it waits. Who works alone may evaluate
/// while all others wait.
fn goes_on(group: &Group, hosts: &Hosts, now: i64) -> bool {
    let moves = |device: &Device| match device.traffic() {
        Some(traffic) => traffic.level.is_some_and(|level| traffic.short >= 0.5 * level),
        None => false,
    };
    group.members.len() >= 2
        && group.course.phase == Phase::Working
        && now - group.course.since >= GOES_ON
        && devices(group, hosts).all(|device| device.work.on && moves(device))
}
