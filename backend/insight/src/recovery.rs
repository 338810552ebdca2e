//! GPUs whose driver requires an action before they are whole again: a reset, or a restart of the machine.

use crate::finding::Draft;
use crate::scene::{Scene, sight};
use crate::signal::{Sig, row_of};
use crate::words::{begin, devices, evidence};
use crate::{DetectorEntry, Source};
use shared::xid::Action;

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("recovery", |hosts| sight(hosts, &[Sig::Recovery], &[]))], judge };

/// Findings about the fault itself. An open one gets the action as its next step, and no second one is raised.
const CAUSES: [&str; 3] = ["lost_gpu", "ecc", "xid"];

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            let action = scene.hosts[&source].devices[at].now(Sig::Recovery);
            if let Some(action) = action.and_then(|number| Action::of_recovery(number as u8)) {
                follow(scene, source, at, action);
            }
        }
    }
}

/// Raises, changes or ends the finding of a device by the action of this second.
fn follow(scene: &mut Scene, source: Source, at: usize, action: Action) {
    let key = scene.key("recovery", source, at);
    let Some(need) = action.need() else {
        scene.end(&key);
        return;
    };
    let causes = CAUSES.map(|kind| scene.key(kind, source, at));
    if let Some(cause) = causes.iter().find(|cause| scene.ledger.is_open(cause)) {
        scene.ledger.advise(cause, action.next());
        return;
    }
    let Some(subject) = scene.at(source, at) else { return };
    let name = begin(&devices(scene.hosts, &[subject]));
    let sentence = format!("{name} has needed {need} since {{since}}: its driver requires it");
    if scene.ledger.is_open(&key) {
        scene.ledger.retell(&key, &sentence);
        scene.ledger.advise(&key, action.next());
        return;
    }
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let raw = device.slot(Sig::Recovery).raw;
    let row = row_of(device.family, Sig::Recovery);
    let facts = row.map(|row| evidence(host, row, device.index, format!("the driver requires {need}"), (raw, None)));
    let draft = Draft {
        rule: "recovery",
        severity: action.severity(),
        source,
        subject: vec![subject],
        affects: scene.others(source, at),
        device: None,
        since: scene.now,
        sentence,
        evidence: facts.into_iter().collect(),
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
        next: Some(action.next()),
    };
    scene.raise(key, draft);
}
