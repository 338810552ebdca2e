//! A collector that stopped: the state of its values is unknown.

use crate::finding::Draft;
use crate::key::{Key, What};
use crate::scene::{Scene, Sight};
use crate::signal::{NamedSig, named_row_of};
use crate::words::{evidence, lasting, of_host};
use crate::{DetectorEntry, Hosts, Source};
use shared::finding::{Severity, Watch};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry { rules: &[("collector_silent", watches)], judge };

/// Seconds of silence before a finding, and of answers before its end.
const SILENT_S: i64 = 30;
const ANSWERS_S: i64 = 10;

fn watches(hosts: &Hosts) -> Sight {
    match hosts.values().any(|host| host.named.iter().any(|named| named.sig == NamedSig::Answers)) {
        true => (Watch::Watching, String::new()),
        false => (Watch::Needs, format!("needs {}", named_row_of(NamedSig::Answers).tag)),
    }
}

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].named.len() {
            if scene.hosts[&source].named[at].sig == NamedSig::Answers {
                collector(scene, source, at);
            }
        }
    }
}

fn collector(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let host = scene.hosts.get_mut(&source).expect("it ticked");
    let (step, patience) = (host.step, host.patience());
    let named = &mut host.named[at];
    let answers = (named.slot.at == now).then_some(named.slot.now > 0.0);
    named.hold.step(now, answers.map(|answers| !answers), patience);
    named.back.step(now, answers, patience);
    // A collector that never answered has nothing to measure here.
    named.top = named.top.max(if named.back.held(SILENT_S.max(3 * step)) { 1.0 } else { 0.0 });
    let silent = named.top > 0.0 && named.hold.held(SILENT_S.max(3 * step));
    // Common case: the collector answers and has no finding.
    if !silent && !scene.ledger.has("collector_silent", source) {
        return;
    }
    let key = Key::new("collector_silent", source, What::Named(named.name.clone()));
    if scene.ledger.is_open(&key) {
        if named.back.held(ANSWERS_S.max(step)) {
            scene.end(&key);
        }
        return;
    }
    if !silent {
        return;
    }
    let (name, since) = (named.name.clone(), named.hold.since().unwrap_or(now));
    let silent = lasting((now - since) as f64);
    let sentence = format!(
        "The collector {name}{} has been incomplete since {{since}}, for {silent}; missing values are not evaluated",
        of_host(scene.hosts, source)
    );
    let words = format!("0 for {silent}, 1 before");
    let draft = Draft {
        rule: "collector_silent",
        severity: Severity::Note,
        source,
        subject: Vec::new(),
        affects: Vec::new(),
        device: Some(name.clone()),
        since,
        sentence,
        evidence: vec![evidence(
            &scene.hosts[&source],
            named_row_of(NamedSig::Answers),
            &name,
            words,
            (0.0, Some(1.0)),
        )],
        group: None,
        also: Vec::new(),
        next: None,
    };
    scene.raise(key, draft);
}
