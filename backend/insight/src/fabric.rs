//! GPUs whose NVLink fabric is not complete or not healthy.

use crate::finding::Draft;
use crate::scene::{Scene, sight};
use crate::signal::{Sig, row_of};
use crate::words::{begin, devices, evidence};
use crate::{DetectorEntry, Source};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("fabric", |hosts| sight(hosts, &[Sig::FabricState], &[]))], judge };

/// Seconds for which a GPU may register after its driver has started.
const REGISTRATION_S: i64 = 120;

/// The fault, its severity, its signal and the text of its evidence.
type Fault = (&'static str, Severity, Sig, &'static str);

/// The fault of a state and a health.
fn fault(state: Option<f64>, health: Option<f64>) -> Option<Fault> {
    Some(match (state, health) {
        (Some(1.0), _) => ("has not joined", Severity::Critical, Sig::FabricState, "not started"),
        (Some(2.0), _) => ("has not joined", Severity::Critical, Sig::FabricState, "in progress"),
        (Some(4.0), _) => ("could not join", Severity::Critical, Sig::FabricState, "failed"),
        (_, Some(2.0)) => ("has an unhealthy place in", Severity::Critical, Sig::FabricHealth, "unhealthy"),
        (_, Some(3.0)) => ("has a limited place in", Severity::Warning, Sig::FabricHealth, "limited capacity"),
        _ => return None,
    })
}

fn judge(scene: &mut Scene) {
    let now = scene.now;
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            let Some(host) = scene.hosts.get_mut(&source) else { continue };
            let device = &mut host.devices[at];
            if device.now(Sig::FabricState).is_none() {
                continue;
            }
            let found = fault(device.now(Sig::FabricState), device.now(Sig::FabricHealth));
            let since = device.marks.fabric.filter(|_| found.is_some()).or(found.map(|_| now));
            device.marks.fabric = since;
            match (found, since) {
                (Some((_, _, Sig::FabricState, "not started" | "in progress")), Some(since))
                    if now - since < REGISTRATION_S => {}
                (Some(found), Some(since)) => raise(scene, source, at, found, since),
                _ => scene.end(&scene.key("fabric", source, at)),
            }
        }
    }
}

fn raise(scene: &mut Scene, source: Source, at: usize, (does, severity, sig, words): Fault, since: i64) {
    let key = scene.key("fabric", source, at);
    let Some(subject) = scene.at(source, at) else { return };
    let name = begin(&devices(scene.hosts, &[subject]));
    let sentence = match sig {
        Sig::FabricState => format!("{name} {does} its NVLink fabric since {{since}}: programs cannot use it"),
        _ => format!("{name} {does} its NVLink fabric since {{since}}"),
    };
    if scene.ledger.is_open(&key) {
        scene.ledger.revise(&key, severity, None);
        scene.ledger.retell(&key, &sentence);
        return;
    }
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let row = row_of(device.family, sig);
    let facts = row.map(|row| evidence(host, row, device.index, words.into(), (device.slot(sig).raw, None)));
    let draft = Draft {
        rule: "fabric",
        severity,
        source,
        subject: vec![subject],
        affects: scene.others(source, at),
        device: None,
        since,
        sentence,
        evidence: facts.into_iter().collect(),
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
        next: None,
    };
    scene.raise(key, draft);
}
