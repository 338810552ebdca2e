//! Machines that stopped sending samples without a goodbye, on a hub that follows them.

use crate::DetectorEntry;
use crate::finding::Draft;
use crate::key::{Key, What};
use crate::levels::NEVER;
use crate::scene::Scene;
use crate::signal::{HostSig, host_row_of};
use crate::words::evidence;
use shared::finding::{Severity, Watch};

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("host_lost", |_| (Watch::Watching, String::new()))], judge };

fn judge(scene: &mut Scene) {
    let now = scene.now;
    let sources: Vec<_> = scene.hosts.keys().copied().collect();
    for source in sources {
        let host = &scene.hosts[&source];
        let key = Key::new("host_lost", source, What::Machine(""));
        if scene.ledger.is_open(&key) {
            if host.is_at(now) || host.goodbye.is_some() || !scene.follow {
                scene.end(&key);
            }
            continue;
        }
        let silent = now - host.newest;
        let known = host.newest != NEVER && host.newest - host.first >= 3 * host.step;
        let left = host.goodbye.is_some_and(|at| at >= host.newest - host.patience());
        if !scene.follow || !known || left || silent <= 3 * host.step + 10 {
            continue;
        }
        let since = host.newest + host.step;
        let words = format!("no sample for {silent} s; the interval is {} s", host.step);
        let facts = vec![evidence(host, host_row_of(HostSig::Cpu), "", words, (f64::NAN, None))];
        let group = scene.group_on(source);
        let affects = group.map(|g| g.devices(scene.hosts).into_iter().filter(|(own, ..)| *own != source).collect());
        let sentence = format!("{} has not reported since {{since}}, for {silent} s", host.name);
        let draft = Draft {
            rule: "host_lost",
            severity: Severity::Critical,
            source,
            subject: Vec::new(),
            affects: affects.unwrap_or_default(),
            device: None,
            since,
            sentence,
            evidence: facts,
            group: group.map(|g| g.id),
            also: Vec::new(),
            next: None,
        };
        scene.raise(key, draft);
    }
}
