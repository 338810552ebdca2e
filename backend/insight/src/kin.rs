//! Groups that may be parts of one job without a run: a group may wait for a member on another machine or in another
//! container.

use crate::device::Device;
use crate::group::{Group, How};
use crate::phase::Phase;
use crate::{Hosts, Source};

/// Groups that began to work within this many seconds of each other may belong to one job.
const STARTED_WITHIN_S: i64 = 60;
/// Groups that stopped within this many seconds of each other, and are idle since, wait for the same.
const STOPPED_WITHIN_S: i64 = 20;
/// Seconds that a group must have gone on as usual to count as another job.
const GOES_ON: i64 = 120;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Kin {
    /// Its place among the groups.
    pub at: usize,
    /// Certain: a member of it stopped at the same time, and has not worked since.
    pub sure: bool,
}

fn devices<'a>(group: &'a Group, hosts: &'a Hosts) -> impl Iterator<Item = &'a Device> {
    group.members.iter().filter_map(|(source, at)| hosts.get(source)?.devices.get(*at))
}

/// Groups that may belong to one job with the group at `at`, which has stopped. Empty where a run names its job: then
/// all of it is one group.
pub(crate) fn find_kin(groups: &[Group], hosts: &Hosts, at: usize, now: i64) -> Vec<Kin> {
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
        let near = STOPPED_WITHIN_S + 2 * own.step(hosts).max(group.step(hosts));
        let waits = |device: &Device| !device.is_free() && (device.work.last - stopped).abs() <= near;
        let sure = devices(group, hosts).any(waits);
        // Groups of one machine may have been watched only after they began, so a common start is no evidence there.
        let elsewhere = !group.sources().iter().any(|source| sources.contains(source));
        let began = (group.began - own.began).abs() <= STARTED_WITHIN_S && elsewhere;
        (sure || began).then_some(Kin { at: other, sure })
    };
    groups.iter().enumerate().filter_map(kin).collect()
}

/// Whether all of a group works as usual, with usual traffic over its links, so no member waits. A single device may
/// evaluate while all others wait, so it does not count.
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
