//! Memory errors, and critical errors (XIDs) that programs usually cause.

use crate::DetectorEntry;
use crate::Source;
use crate::device::Device;
use crate::finding::Draft;
use crate::scene::{Scene, sight};
use crate::signal::{Sig, row_of};
use crate::words::{begin, devices, evidence, number_of, whole};
use shared::finding::{Evidence, Severity};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[
        ("ecc.uncorrected", |hosts| sight(hosts, &[Sig::Uncorrected], &[(Sig::Xids, "XID events")])),
        ("ecc.corrected", |hosts| sight(hosts, &[Sig::Corrected], &[])),
        ("xid", |hosts| sight(hosts, &[Sig::LastXid], &[])),
    ],
    judge,
};

/// XIDs of broken memory: a double-bit error, rows remapped or not, contained and uncontained errors, too many
/// single-bit errors, an unrecoverable one.
const MEMORY: &[u32] = &[48, 63, 64, 92, 94, 95, 140];
/// Seconds without a new error until the finding ends.
const END_AFTER_S: i64 = 600;
/// Corrected errors that raise a finding: within one minute, and within ten.
const IN_A_MINUTE: f32 = 10.0;
const IN_TEN: f32 = 20.0;

/// The critical error reported at this second; 0 for one without a number.
pub(crate) fn critical_error(device: &Device, now: i64) -> Option<u32> {
    let (count, last) = (device.slot(Sig::Xids), device.slot(Sig::LastXid));
    let number = if last.raw.is_finite() { last.raw as u32 } else { 0 };
    if device.has(Sig::Xids) {
        return (count.at == now && count.grew() > 0.0).then_some(number);
    }
    // Without a count, an error shows only as a change of the last number.
    let changed = last.at == now && last.before.is_finite() && last.before != last.raw && number != 0;
    changed.then_some(number)
}

fn judge(scene: &mut Scene) {
    let now = scene.now;
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            let Some(host) = scene.hosts.get_mut(&source) else { continue };
            let device = &mut host.devices[at];
            let xid = critical_error(device, now);
            let uncorrected = device.slot(Sig::Uncorrected);
            let grew = if uncorrected.at == now { uncorrected.grew() } else { 0.0 };
            let memory = xid.filter(|xid| MEMORY.contains(xid));
            if grew > 0.0 || memory.is_some() {
                device.marks.ecc_total += grew;
                device.marks.ecc = Some(now);
                device.work.frozen = now + 30;
                uncorrectable(scene, source, at, memory);
            }
            if let Some(xid) = xid.filter(|xid| !MEMORY.contains(xid) && *xid != 79) {
                scene.hosts.get_mut(&source).expect("it is there").devices[at].marks.xid = Some((now, xid));
                program(scene, source, at, xid);
            }
            corrected(scene, source, at);
            let marks = &scene.hosts[&source].devices[at].marks;
            let (ecc, xid) = (marks.ecc, marks.xid);
            if ecc.is_some_and(|last| now - last >= END_AFTER_S) {
                scene.end(&scene.key("ecc", source, at));
                let marks = &mut scene.hosts.get_mut(&source).expect("it is there").devices[at].marks;
                (marks.ecc, marks.ecc_total) = (None, 0.0);
            }
            if xid.is_some_and(|(last, _)| now - last >= END_AFTER_S) {
                scene.end(&scene.key("xid", source, at));
                scene.hosts.get_mut(&source).expect("it is there").devices[at].marks.xid = None;
            }
        }
    }
}

fn draft(scene: &Scene, (source, at): (Source, usize), rule: &'static str, severity: Severity) -> Option<Draft> {
    Some(Draft {
        rule,
        severity,
        source,
        subject: vec![scene.at(source, at)?],
        affects: if severity == Severity::Critical { scene.others(source, at) } else { Vec::new() },
        device: None,
        since: scene.now,
        sentence: String::new(),
        evidence: Vec::new(),
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
    })
}

fn uncorrectable(scene: &mut Scene, source: Source, at: usize, xid: Option<u32>) {
    let key = scene.key("ecc", source, at);
    if scene.ledger.get(&key).is_some_and(|open| open.severity < Severity::Critical) {
        scene.end(&key);
    }
    let Some(mut draft) = draft(scene, (source, at), "ecc.uncorrected", Severity::Critical) else { return };
    let name = begin(&devices(scene.hosts, &draft.subject));
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let (errors, index) = (device.marks.ecc_total, device.index);
    let by = xid.map(|xid| format!(" (XID {xid})")).unwrap_or_default();
    draft.sentence = match errors {
        n if n > 0.0 => {
            let plural = if n == 1.0 { "" } else { "s" };
            format!("{name} found {} uncorrectable memory error{plural} at {{since}}{by}", whole(n))
        }
        _ => format!("{name} reported defective memory at {{since}}{by}"),
    };
    let row = row_of(device.family, Sig::Uncorrected);
    let count = device.slot(Sig::Uncorrected);
    let words = match count.raw.is_finite() {
        true => format!("{} more, {} in all", number_of(errors, "uncorrectable error"), whole(count.raw)),
        false => "the count of uncorrectable errors is not measured".into(),
    };
    draft.evidence.extend(row.map(|row| evidence(host, row, index, words, (count.raw, None))));
    draft.evidence.extend(xid_fact(scene, source, at, xid));
    scene.raise(key, draft);
}

fn xid_fact(scene: &Scene, source: Source, at: usize, xid: Option<u32>) -> Option<Evidence> {
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let row = row_of(device.family, Sig::LastXid)?;
    Some(match xid {
        Some(xid) => evidence(host, row, device.index, format!("XID {xid}"), (f64::from(xid), None)),
        None if device.has(Sig::Xids) => evidence(host, row, device.index, "no XID".into(), (f64::NAN, None)),
        None => crate::words::absent(host, row, device.index, "XID"),
    })
}

fn program(scene: &mut Scene, source: Source, at: usize, xid: u32) {
    let Some(mut draft) = draft(scene, (source, at), "xid", Severity::Note) else { return };
    let name = begin(&devices(scene.hosts, &draft.subject));
    let what = match xid {
        13 | 31 | 43 | 45 | 68 => ": caused by a program, not by the board",
        74 => ": an NVLink error",
        119 | 120 => ": the GPU's system processor did not respond",
        _ => "",
    };
    draft.sentence = match xid {
        0 => format!("{name} reported a critical error at {{since}}"),
        _ => format!("{name} reported XID {xid} at {{since}}{what}"),
    };
    draft.evidence.extend(xid_fact(scene, source, at, Some(xid)));
    let key = scene.key("xid", source, at);
    scene.raise(key, draft);
}

/// Judges corrected errors, in 60 buckets of ten seconds.
fn corrected(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let device = &mut host.devices[at];
    let (seen, grew, over, index) = {
        let slot = device.slot(Sig::Corrected);
        (slot.at == now, slot.grew(), i64::from(slot.over), device.index)
    };
    let marks = &mut device.marks;
    if seen && grew > 0.0 {
        marks.corrected_last = now;
    }
    if marks.corrected.is_none() && !(seen && grew > 0.0) {
        return;
    }
    let bucket = now.div_euclid(10);
    let buckets = marks.corrected.get_or_insert_with(|| Box::new([0.0; 60]));
    let passed = (bucket - marks.corrected_at).clamp(0, 60);
    for back in 0..passed {
        buckets[(bucket - back).rem_euclid(60) as usize] = 0.0;
    }
    marks.corrected_at = bucket;
    if seen && grew > 0.0 {
        // Errors added during a gap may have come at any time within it.
        let spread = (over / 10).clamp(1, 60);
        let each = grew * 10.0 / over.max(10) as f64;
        for back in 0..spread {
            buckets[(bucket - back).rem_euclid(60) as usize] += if over <= 10 { grew as f32 } else { each as f32 };
        }
    }
    let minute: f32 = (0..6).map(|back| buckets[(bucket - back).rem_euclid(60) as usize]).sum();
    let ten: f32 = buckets.iter().sum();
    let last = marks.corrected_last;
    let key = scene.key("ecc", source, at);
    let open = scene.ledger.get(&key).map(|open| open.rule.clone());
    if now - last >= END_AFTER_S && open.as_deref() == Some("ecc.corrected") {
        scene.end(&key);
        scene.hosts.get_mut(&source).expect("it is there").devices[at].marks.corrected = None;
        return;
    }
    if open.is_some() || minute < IN_A_MINUTE || ten < IN_TEN {
        return;
    }
    let buckets = scene.hosts[&source].devices[at].marks.corrected.clone();
    let Some(mut draft) = draft(scene, (source, at), "ecc.corrected", Severity::Warning) else { return };
    let first = (0..60)
        .rev()
        .find(|back| buckets.as_ref().is_some_and(|buckets| buckets[(bucket - back).rem_euclid(60) as usize] > 0.0));
    draft.since = (bucket - first.unwrap_or(0)) * 10;
    let name = begin(&devices(scene.hosts, &draft.subject));
    let (minute, ten) = (f64::from(minute), f64::from(ten));
    draft.sentence = format!(
        "{name} has corrected {} since {{since}}, {} of them in the last minute",
        number_of(ten, "memory error"),
        whole(minute)
    );
    let host = &scene.hosts[&source];
    let raw = host.devices[at].slot(Sig::Corrected).raw;
    let words = format!("{} in a minute, {} in ten", number_of(minute, "corrected error"), whole(ten));
    let row = row_of(host.devices[at].family, Sig::Corrected);
    draft.evidence.extend(row.map(|row| evidence(host, row, index, words, (raw, None))));
    scene.raise(key, draft);
}
