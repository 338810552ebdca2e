//! A GPU that stopped answering while another one answers.

use crate::DetectorEntry;
use crate::ecc::critical_error;
use crate::finding::Draft;
use crate::scene::{Scene, sight};
use crate::signal::{Family, Sig, row_of};
use crate::words::{begin, devices, evidence};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry =
    DetectorEntry { rules: &[("lost_gpu", |hosts| sight(hosts, &[Sig::Use], &[(Sig::Xids, "XID events")]))], judge };

/// XID: the GPU has fallen off the bus.
const OFF_THE_BUS: u32 = 79;
/// Minimum seconds of presence before a device can be lost.
const MIN_PRESENCE_S: i64 = 60;

fn judge(scene: &mut Scene) {
    let now = scene.now;
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            let key = scene.key("lost_gpu", source, at);
            let open = scene.ledger.is_open(&key);
            let Some(host) = scene.hosts.get_mut(&source) else { continue };
            let (step, patience) = (host.step, host.patience());
            let alone = host.devices.len() == 1;
            let device = &mut host.devices[at];
            let answers = device.answered == now;
            device.marks.back.step(now, Some(answers), patience);
            if open {
                let wait =
                    if device.marks.xid.is_some_and(|(t, code)| code == OFF_THE_BUS && now - t < 90) { 60 } else { 10 };
                if device.marks.back.held(wait.max(step)) {
                    scene.end(&key);
                }
                continue;
            }
            let xid = critical_error(device, now) == Some(OFF_THE_BUS);
            if xid {
                device.marks.xid = Some((now, OFF_THE_BUS));
                device.marks.back.clear();
            }
            let known = device.answered - device.first >= MIN_PRESENCE_S;
            let missing = known && !device.parted && device.missed >= 3 && now - device.answered >= 3;
            let (index, seen) = (device.index, device.answered);
            let said = host.said.iter().find(|(t, words)| {
                let named =
                    words.split("gpu ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
                let it = named.and_then(|number| number.parse::<u32>().ok()).map_or(alone, |number| number == index);
                it && known && now - seen >= 3 * step && now - t < 120
            });
            let said = said.cloned();
            if !(xid || missing || said.is_some()) {
                continue;
            }
            lose(scene, (source, at), xid, said.map(|(_, words)| words));
        }
    }
}

fn lose(scene: &mut Scene, (source, at): (u32, usize), xid: bool, said: Option<String>) {
    let now = scene.now;
    let Some(own) = scene.at(source, at) else { return };
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let gone = device.answered < now;
    let since = if xid { now } else { device.answered + host.step };
    let name = begin(&devices(scene.hosts, &[own]));
    let by_xid = xid || device.marks.xid.is_some_and(|(t, code)| code == OFF_THE_BUS && (t - since).abs() < 60);
    let others = host.devices.iter().filter(|d| d.family == own.1 && d.answered == now && d.index != own.2).count();
    let sentence = match (by_xid, others) {
        (true, _) => format!("{name} fell off the bus at {{since}} (XID {OFF_THE_BUS})"),
        (false, 0) => format!("{name} has not responded since {{since}}: {}", said.as_deref().unwrap_or("it is lost")),
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
        } else {
            "it still responds".into()
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
    };
    let key = scene.key("lost_gpu", source, at);
    scene.raise(key, draft);
}
