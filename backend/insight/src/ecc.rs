//! Memory errors, and other critical errors (XIDs). The table of XIDs gives severity and next step.

use crate::DetectorEntry;
use crate::Source;
use crate::device::{Device, Reported};
use crate::finding::Draft;
use crate::next;
use crate::scene::{Scene, sight};
use crate::signal::{Sig, row_of};
use crate::words::{begin, devices, evidence, number_of, whole};
use shared::finding::{Evidence, Severity};
use shared::xid::{self, Action, OFF_THE_BUS, RECOVERY_ACTION, Xid};

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[
        ("ecc.uncorrected", |hosts| sight(hosts, &[Sig::Uncorrected], &[(Sig::Xids, "XID events")])),
        ("ecc.corrected", |hosts| sight(hosts, &[Sig::Corrected], &[])),
        ("xid", |hosts| sight(hosts, &[Sig::LastXid], &[])),
    ],
    judge,
};

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

/// The last error again, where its action is known better now: the kernel's log may follow the driver's event.
fn known_better(device: &Device, now: i64) -> Option<u32> {
    let slot = device.slot(Sig::XidAction);
    let changed = slot.at == now && slot.before.is_finite() && slot.before != slot.raw;
    let code = device.slot(Sig::LastXid).raw;
    device.marks.errors.xid.map(|xid| xid.code).filter(|own| changed && f64::from(*own) == code)
}

/// The action for an error: that which its collector read from the message, else that of the table.
fn action_of(device: &Device, code: u32) -> Option<Action> {
    let (action, last) = (device.slot(Sig::XidAction), device.slot(Sig::LastXid));
    let read = action.at == last.at && action.raw.is_finite() && last.raw == f64::from(code);
    let read = read.then(|| Action::of_number(action.raw as u8)).flatten();
    read.or_else(|| xid::by_code(code).map(Xid::action))
}

fn judge(scene: &mut Scene) {
    let now = scene.now;
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            let Some(host) = scene.hosts.get_mut(&source) else { continue };
            let device = &mut host.devices[at];
            let error = critical_error(device, now).or_else(|| known_better(device, now));
            let uncorrected = device.slot(Sig::Uncorrected);
            let grew = if uncorrected.at == now { uncorrected.grew() } else { 0.0 };
            let is_of_memory = |code: &u32| xid::by_code(*code).is_some_and(Xid::is_of_memory);
            let memory = error.filter(is_of_memory);
            if grew > 0.0 || memory.is_some() {
                device.marks.errors.ecc_total += grew;
                device.marks.errors.ecc = Some(now);
                device.work.frozen = now + 30;
                uncorrectable(scene, source, at, memory);
            }
            if let Some(code) = error.filter(|code| !is_of_memory(code) && *code != OFF_THE_BUS) {
                report(scene, source, at, code);
            }
            corrected(scene, source, at);
            let marks = &scene.hosts[&source].devices[at].marks;
            let (ecc, xid) = (marks.errors.ecc, marks.errors.xid);
            if ecc.is_some_and(|last| now - last >= END_AFTER_S) {
                scene.end(&scene.key("ecc", source, at));
                let marks = &mut scene.hosts.get_mut(&source).expect("it is there").devices[at].marks;
                (marks.errors.ecc, marks.errors.ecc_total, marks.errors.ecc_xid) = (None, 0.0, None);
            }
            if xid.is_some_and(|xid| now - xid.last >= END_AFTER_S) {
                scene.end(&scene.key("xid", source, at));
                scene.hosts.get_mut(&source).expect("it is there").devices[at].marks.errors.xid = None;
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
        next: None,
    })
}

/// Raises the finding about lost data. Its gravest XID decides how severe it is; without one it is critical.
fn uncorrectable(scene: &mut Scene, source: Source, at: usize, xid: Option<u32>) {
    let key = scene.key("ecc", source, at);
    let marks = &mut scene.hosts.get_mut(&source).expect("it is there").devices[at].marks;
    let action = |code: u32| xid::by_code(code).map(Xid::action);
    marks.errors.ecc_xid = [marks.errors.ecc_xid, xid].into_iter().flatten().max_by_key(|code| action(*code));
    let xid = marks.errors.ecc_xid;
    let action = xid.and_then(action);
    let severity = action.map_or(Severity::Critical, Action::severity);
    if scene.ledger.get(&key).is_some_and(|open| open.rule == "ecc.corrected") {
        scene.end(&key);
    }
    let Some(mut draft) = draft(scene, (source, at), "ecc.uncorrected", severity) else { return };
    draft.next = action.map(Action::next);
    let name = begin(&devices(scene.hosts, &draft.subject));
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let (errors, index) = (device.marks.errors.ecc_total, device.index);
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
    if scene.ledger.is_open(&key) {
        scene.ledger.revise(&key, severity, Some(draft.sentence));
        draft.next.into_iter().for_each(|next| scene.ledger.advise(&key, next));
        return;
    }
    scene.raise(key, draft);
}

fn xid_fact(scene: &Scene, source: Source, at: usize, xid: Option<u32>) -> Option<Evidence> {
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let row = row_of(device.family, Sig::LastXid)?;
    Some(match xid {
        Some(code) => {
            let name = xid::by_code(code).map_or(String::new(), |xid| format!(" ({})", xid.mnemonic));
            evidence(host, row, device.index, format!("XID {code}{name}"), (f64::from(code), None))
        }
        None if device.has(Sig::Xids) => evidence(host, row, device.index, "no XID".into(), (f64::NAN, None)),
        None => crate::words::absent(host, row, device.index, "XID"),
    })
}

/// Raises the finding about an error that is none of memory, or adds what it says to an open one of the device.
fn report(scene: &mut Scene, source: Source, at: usize, code: u32) {
    let now = scene.now;
    let known = action_of(&scene.hosts[&source].devices[at], code);
    let (action, next) = (known.unwrap_or(Action::Ignore), known.map_or(next::UNKNOWN_XID, Action::next));
    // Most restarts of programs are errors of the programs, whose ends are reported elsewhere.
    let severity = if action == Action::RestartApp { Severity::Note } else { action.severity() };
    // XID 154 sums up another error, and XID 45 follows one.
    if code == RECOVERY_ACTION || action == Action::FollowOther {
        let keys = ["lost_gpu", "ecc"].map(|kind| scene.key(kind, source, at));
        if let Some(key) = keys.iter().find(|key| scene.ledger.is_open(key)) {
            if action > Action::FollowOther {
                scene.ledger.advise(key, next);
            }
            return;
        }
    }
    let key = scene.key("xid", source, at);
    let Some(mut draft) = draft(scene, (source, at), "xid", severity) else { return };
    let name = begin(&devices(scene.hosts, &draft.subject));
    let what = xid::by_code(code).map_or(String::new(), |xid| format!(": {}", xid.words()));
    draft.sentence = match code {
        0 => format!("{name} reported a critical error at {{since}}"),
        _ => format!("{name} reported XID {code} at {{since}}{what}"),
    };
    draft.next = Some(next);
    draft.evidence.extend(xid_fact(scene, source, at, Some(code)));
    let open = scene.ledger.get(&key).map(|open| open.severity);
    let device = &mut scene.hosts.get_mut(&source).expect("it is there").devices[at];
    let before = device.marks.errors.xid.filter(|_| open.is_some());
    let is_same = before.is_some_and(|before| before.code == code);
    // A graver error replaces the one that is open; another one only prolongs it.
    let is_graver = before.is_none_or(|before| action > before.action);
    let kept = before.filter(|_| !is_same && !is_graver).map_or((code, action), |before| (before.code, before.action));
    device.marks.errors.xid = Some(Reported { last: now, code: kept.0, action: kept.1 });
    match open {
        Some(_) if is_same => {
            scene.ledger.revise(&key, severity, None);
            scene.ledger.advise(&key, next);
        }
        Some(open) if is_graver && severity > open => {
            scene.ledger.supersede(now, &key);
            scene.raise(key, draft);
        }
        Some(_) if is_graver => scene.ledger.advise(&key, next),
        Some(_) => {}
        None => scene.raise(key, draft),
    }
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
