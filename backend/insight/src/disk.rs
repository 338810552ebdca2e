//! File systems that will be full.

use crate::finding::Draft;
use crate::key::{Key, What};
use crate::scene::{Scene, Sight};
use crate::signal::{NamedSig, named_row_of};
use crate::words::{evidence, lasting, of_host, whole};
use crate::{DetectorEntry, Hosts, Source};
use shared::finding::{Severity, Watch};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry { rules: &[("disk_full", watches)], judge };

/// Percent from which a file system is judged, and from which it is reported at any rate of filling.
const JUDGED_PERCENT: f64 = 90.0;
const FULL_PERCENT: f64 = 98.0;
/// Reported when it is full within an hour, critical within ten minutes; seconds.
const WARNING_S: f64 = 3600.0;
const CRITICAL_S: f64 = 600.0;
/// Minutes of its course that are used. The short one applies only where it is full before the long one is over.
const LONG_COURSE_MIN: usize = 15;
const SHORT_COURSE_MIN: usize = 5;

fn watches(hosts: &Hosts) -> Sight {
    let has = hosts.values().any(|host| host.named.iter().any(|named| named.sig == NamedSig::Full));
    match has {
        true => (Watch::Watching, String::new()),
        false => (Watch::Needs, format!("needs {}", named_row_of(NamedSig::Full).tag)),
    }
}

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].named.len() {
            volume(scene, source, at);
        }
    }
}

fn volume(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let host = scene.hosts.get_mut(&source).expect("it ticked");
    let length = host.step.max(60);
    let named = &mut host.named[at];
    if named.sig != NamedSig::Full || named.slot.at != now {
        return;
    }
    let share = named.slot.now;
    let from_start = *named.full_from_start.get_or_insert(share >= FULL_PERCENT);
    named.full_from_start = Some(from_start && share >= FULL_PERCENT);
    named.filling.add(now, length, share);
    let key = Key::new("disk_full", source, What::Named(named.name.clone()));
    let long = named.filling.climb(LONG_COURSE_MIN);
    let short = named
        .filling
        .climb(SHORT_COURSE_MIN)
        .filter(|rise| rise.left <= (LONG_COURSE_MIN * 60) as f64 && rise.fit >= 0.9);
    let rise = long
        .or(short)
        .filter(|rise| rise.share.min(share) >= JUDGED_PERCENT && share >= rise.share - 0.5 && rise.left <= WARNING_S);
    if let Some(open) = scene.ledger.get(&key) {
        let severity = open.severity;
        named.top = named.top.max(share);
        if share <= named.top - 1.0 {
            scene.end(&key);
        } else if severity == Severity::Warning && (share >= 99.9 || rise.is_some_and(|rise| rise.left <= CRITICAL_S)) {
            scene.ledger.revise(&key, Severity::Critical, None);
        }
        return;
    }
    let full = share >= FULL_PERCENT && !from_start;
    if rise.is_none() && !full {
        return;
    }
    named.top = share;
    let since = if rise.is_some() { named.filling.began.max(now - 3600) } else { now };
    let low = named.filling.low();
    let host = &scene.hosts[&source];
    let named = &host.named[at];
    let name = format!("{}{}", named.name, of_host(scene.hosts, source));
    let sentence = match rise {
        Some(rise) => format!(
            "{name} will be full in about {}: {share:.1} % used, {:.2} % more per minute since {{since}}",
            lasting(rise.left),
            rise.slope * 60.0
        ),
        None => format!("{name} is {share:.1} % full since {{since}}"),
    };
    let past = rise.map(|rise| {
        let (left, slope) = (lasting(rise.left), rise.slope * 60.0);
        let words = format!("{share:.1} % used, {slope:.2} % more per minute, {left} before it would be full");
        (now + rise.left as i64, format!("{name} was filling up from {{since}} on: {words}"))
    });
    let words = format!("{share:.1} % used, {} % when the rise began", whole(low));
    let facts = vec![evidence(host, named_row_of(NamedSig::Full), &named.name, words, (share, None))];
    let draft = Draft {
        rule: "disk_full",
        severity: if rise.is_some_and(|rise| rise.left <= CRITICAL_S) { Severity::Critical } else { Severity::Warning },
        source,
        subject: Vec::new(),
        affects: Vec::new(),
        device: Some(named.name.clone()),
        since,
        sentence,
        evidence: facts,
        group: None,
        also: Vec::new(),
        next: None,
    };
    scene.raise(key.clone(), draft);
    past.into_iter().for_each(|(due, past)| scene.ledger.foretell(&key, due, past));
}
