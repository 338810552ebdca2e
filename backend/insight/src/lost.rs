//! A GPU that stopped answering while another one answers.

use crate::DetectorEntry;
use crate::ecc::critical_error;
use crate::finding::Draft;
use crate::scene::{Scene, sight};
use crate::signal::{Family, Sig, row_of};
use crate::words::{begin, devices, evidence};
use shared::finding::Severity;
use shared::xid::{Action, OFF_THE_BUS};

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("lost_gpu", |hosts| sight(hosts, &[Sig::Use], &[(Sig::Xids, "XID events")]))], judge };

/// Minimum seconds of presence before a device can be lost.
const MIN_PRESENCE_S: i64 = 60;

/// Seconds for which an unnamed report of a loss may be about the only device.
const UNNAMED: i64 = 120;

fn judge(scene: &mut Scene) {
    let now = scene.now;
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            let key = scene.key("lost_gpu", source, at);
            let open = scene.ledger.is_open(&key);
            let Some(host) = scene.hosts.get_mut(&source) else { continue };
            let (step, patience) = (host.step, host.patience());
            let report = host.loss_of(host.devices[at].index, host.devices.len() == 1);
            let report = report.map(|report| (report.gpu.is_some(), report.at, report.words.clone()));
            let is_named = report.as_ref().is_some_and(|(is_named, ..)| *is_named);
            let device = &mut host.devices[at];
            let answers = device.answered == now && !is_named;
            device.marks.back.step(now, Some(answers), patience);
            if open {
                let wait = if device.marks.errors.off_bus.is_some_and(|t| now - t < 90) { 60 } else { 10 };
                if device.marks.back.held(wait.max(step)) {
                    scene.end(&key);
                }
                continue;
            }
            let xid = critical_error(device, now) == Some(OFF_THE_BUS);
            if xid {
                device.marks.errors.off_bus = Some(now);
            }
            let known = device.answered - device.first >= MIN_PRESENCE_S;
            let missing = known && !device.parted && device.missed >= 3 && now - device.answered >= 3;
            let silent = now - device.answered >= 3 * step;
            // A report that names the device counts although some of its values still come.
            let counts = |(is_named, t, _): &(bool, i64, String)| *is_named || silent && now - t < UNNAMED;
            let report = report.filter(|report| known && counts(report)).map(|(.., words)| words);
            if !(xid || missing || report.is_some()) {
                continue;
            }
            device.marks.back.clear();
            lose(scene, (source, at), xid, report);
        }
    }
}

fn lose(scene: &mut Scene, (source, at): (u32, usize), xid: bool, report: Option<String>) {
    let now = scene.now;
    let Some(own) = scene.at(source, at) else { return };
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let gone = device.answered < now;
    let since = if xid || !gone { now } else { device.answered + host.step };
    let name = begin(&devices(scene.hosts, &[own]));
    let by_xid = xid || device.marks.errors.off_bus.is_some_and(|t| (t - since).abs() < 60);
    let others = host.devices.iter().filter(|d| d.family == own.1 && d.answered == now && d.index != own.2).count();
    let sentence = match (by_xid, others) {
        (true, _) => format!("{name} fell off the bus at {{since}} (XID {OFF_THE_BUS})"),
        (false, _) if !gone => {
            format!(
                "{name} has been lost to the driver since {{since}}: its collector reports it, some values still come"
            )
        }
        (false, 0) => {
            format!("{name} has not responded since {{since}}: {}", report.as_deref().unwrap_or("it is lost"))
        }
        (false, n) => format!(
            "{name} has not responded since {{since}}: {} ticks without its samples, {n} other{} on the machine \
            respond{}",
            device.missed,
            if n == 1 { "" } else { "s" },
            if n == 1 { "s" } else { "" },
        ),
    };
    let mut facts = Vec::new();
    if let Some(row) = device.slot(Sig::Use).row.or(row_of(own.1, Sig::Use)) {
        let words = if gone {
            let rest = if device.seen == now { " except values from other sources" } else { "" };
            format!("no sample of it for {} s{rest}, {others} other devices respond", now - device.answered)
        } else if by_xid {
            "it still responds".into()
        } else {
            format!("some values still come; the collector reports: {}", report.as_deref().unwrap_or("it is lost"))
        };
        facts.push(evidence(host, row, own.2, words, (f64::NAN, device.slot(Sig::Use).level())));
    }
    if let Some(row) = row_of(Family::Gpu, Sig::LastXid).filter(|_| own.1 == Family::Gpu) {
        let words = if by_xid { "XID 79: fallen off the bus" } else { "no XID 79 was read" };
        let value = if by_xid { f64::from(OFF_THE_BUS) } else { f64::NAN };
        facts.push(evidence(host, row, own.2, words.into(), (value, None)));
    }
    // The proof comes first.
    if by_xid {
        facts.reverse();
    }
    let draft = Draft {
        rule: "lost_gpu",
        severity: Severity::Critical,
        source,
        subject: vec![own],
        affects: scene.others(source, at),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
        next: by_xid.then(|| Action::RestartMachine.next()),
    };
    let key = scene.key("lost_gpu", source, at);
    scene.raise(key, draft);
}
