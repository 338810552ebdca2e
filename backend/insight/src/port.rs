//! InfiniBand ports with less than their former rate: a link that lost lanes or speed.

use crate::finding::Draft;
use crate::key::{Key, What};
use crate::scene::Scene;
use crate::signal::{NamedSig, named_row_of};
use crate::words::{evidence, of_host, rate};
use crate::{DetectorEntry, Source};
use shared::finding::{Severity, Watch};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[("slow_link.port", |hosts| {
        match hosts.values().any(|host| host.named.iter().any(|named| named.sig == NamedSig::Rate)) {
            true => (Watch::Watching, String::new()),
            false => (Watch::Needs, format!("needs {}", named_row_of(NamedSig::Rate).tag)),
        }
    })],
    judge,
};

/// Seconds between two readings of a port, with a margin.
const READ_INTERVAL_S: i64 = 35;

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        ports(scene, source);
    }
}

fn ports(scene: &mut Scene, source: Source) {
    let now = scene.now;
    let open = scene.ledger.has("slow_link", source);
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let wait = 10.max(2 * host.step);
    let mut changed = Vec::new();
    for (at, named) in host.named.iter_mut().enumerate() {
        if named.sig != NamedSig::Rate || named.slot.at != now {
            continue;
        }
        // Ports of one machine may have different speeds, so a port is compared with its own maximum only.
        named.top = named.top.max(named.slot.now);
        let low = named.slot.now < 0.8 * named.top;
        let patience = READ_INTERVAL_S.max(3 * host.step);
        named.hold.step(now, Some(low), patience);
        named.back.step(now, Some(!low), patience);
        if named.hold.held(wait) || (open && named.back.held(wait)) {
            changed.push(at);
        }
    }
    for at in changed {
        let host = &scene.hosts[&source];
        let named = &host.named[at];
        let key = Key::new("slow_link", source, What::Named(named.name.clone()));
        if named.back.held(wait) {
            scene.end(&key);
            continue;
        }
        if scene.ledger.is_open(&key) {
            continue;
        }
        let (carried, top) = (named.slot.now, named.top);
        let sentence = format!(
            "{}{} has carried at most {} since {{since}}, of {}",
            named.name,
            of_host(scene.hosts, source),
            rate(carried),
            rate(top)
        );
        let words = format!("{} of {}", rate(carried), rate(top));
        let facts = vec![evidence(host, named_row_of(NamedSig::Rate), &named.name, words, (carried, Some(top)))];
        let group = scene.group_on(source);
        let draft = Draft {
            rule: "slow_link.port",
            severity: Severity::Warning,
            source,
            subject: Vec::new(),
            affects: group.map(|group| group.devices(scene.hosts)).unwrap_or_default(),
            device: Some(named.name.clone()),
            since: named.hold.since().unwrap_or(now),
            sentence,
            evidence: facts,
            group: group.map(|group| group.id),
            also: Vec::new(),
            next: None,
        };
        scene.raise(key, draft);
    }
}
