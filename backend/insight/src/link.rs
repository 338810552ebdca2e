//! Links below their capacity: PCIe with fewer lanes, unused NVLink or XGMI, networks with retransmissions.

use crate::device::Device;
use crate::device::NVLINK;
use crate::finding::Draft;
use crate::hang::counter;
use crate::host::Host;
use crate::key::{Key, What};
use crate::levels::{Ordered, median};
use crate::next;
use crate::scene::{Scene, host_sight, peers, sight};
use crate::signal::{HostSig, NamedSig, Sig, bridge_name, host_row_of, named_row_of};
use crate::words::{begin, devices, evidence, host as machine, number_of, rate, whole};
use crate::{DetectorEntry, Source};
use shared::finding::Severity;

pub(crate) static DETECTOR: DetectorEntry = DetectorEntry {
    rules: &[
        ("slow_link.pcie", |hosts| sight(hosts, &[Sig::Width, Sig::MaxWidth], &[(Sig::Gen, "PCIe generations")])),
        ("slow_link.nvlink", |hosts| sight(hosts, &[Sig::NvTx], &[])),
        ("slow_link.net", |hosts| host_sight(hosts, &[HostSig::Retransmits])),
    ],
    judge,
};

/// NVLink errors per minute that count as many.
const ERRORS_A_MINUTE: f64 = 30.0;
/// Retransmitted segments per second that count as many.
const MANY_RETRANSMITS: f64 = 50.0;

fn judge(scene: &mut Scene) {
    for source in scene.ticked() {
        for at in 0..scene.hosts[&source].devices.len() {
            pcie(scene, source, at);
            bridges(scene, source, at);
        }
        resends(scene, source);
        siblings(scene, source);
    }
    for at in 0..scene.groups.len() {
        if scene.groups[at].is_at(scene.hosts, scene.now) {
            nvlink(scene, at);
        }
    }
}

/// A value and its maximum.
type OfMost = Option<(f64, f64)>;

fn pair(device: &Device, now: Sig, most: Sig) -> OfMost {
    let (value, most) = (device.now(now)?, device.recent(most)?.now);
    // Drivers without the value report 0.
    (value >= 1.0 && most >= 1.0).then_some((value, most))
}

/// Judges whether a GPU's PCIe link is slower than it can be.
fn pcie(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let key = scene.key("slow_link", source, at);
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let (step, patience) = (host.step, host.patience());
    let at_most = |host: &Host| {
        let share = peers(host, at, 1, |d| {
            let (value, most) = (d.recent(Sig::Gen)?.now, d.recent(Sig::MaxGen)?.now);
            d.recent(Sig::Use).filter(|usage| usage.short >= 50.0)?;
            Some(if value >= most { 1.0 } else { 0.0 })
        });
        share.is_some_and(|share| share > 0.5)
    };
    let device = &host.devices[at];
    let usage = device.recent(Sig::Use).map_or(0.0, |slot| slot.short);
    let width = pair(device, Sig::Width, Sig::MaxWidth);
    let generation = pair(device, Sig::Gen, Sig::MaxGen);
    let narrow = width.map(|(width, most)| width < most);
    let slow = generation.map(|(value, most)| value < most && usage >= 50.0 && at_most(host));
    let device = &mut host.devices[at];
    let marks = &mut device.marks;
    marks.width.step(now, narrow, patience);
    marks.wide.step(now, narrow.map(|narrow| !narrow), patience);
    marks.gen_low.step(now, slow, patience);
    // An idle GPU lowers the generation, so the finding ends only at the maximum in use.
    let full = generation.map(|(value, most)| value >= most);
    marks.gen_high.step(now, full, patience);
    let marks = &device.marks;
    if let Some(open) = scene.ledger.get(&key) {
        let lanes = open.sentence.contains("lanes");
        let back = if lanes { &marks.wide } else { &marks.gen_high };
        if open.rule == "slow_link.pcie" && back.held(10.max(2 * step)) {
            scene.end(&key);
        }
        return;
    }
    let few = marks.width.held(10.max(3 * step)) && usage >= 10.0;
    let low = marks.gen_low.held(60.max(3 * step));
    if !few && !low {
        return;
    }
    let since = if few { marks.width.since() } else { marks.gen_low.since() }.unwrap_or(now);
    let from_start = few && since <= device.first + patience;
    let family = device.family;
    let alike = host.devices.iter().filter(|d| d.family == family);
    let all = alike.clone().count() > 1
        && alike.clone().all(|d| d.recent(Sig::Width).zip(d.recent(Sig::MaxWidth)).is_some_and(|(w, m)| w.now < m.now));
    let few = width.filter(|_| few);
    raise_pcie(scene, key, (source, at), (few, generation), usage, (since, from_start && all));
}

/// Raises the finding about a GPU with fewer PCIe lanes, or else a lower generation, than its maximum. `usage` is in
/// percent. A state that was so `from_start` is a note.
fn raise_pcie(
    scene: &mut Scene,
    key: Key,
    (source, at): (Source, usize),
    (lanes, generation): (OfMost, OfMost),
    usage: f64,
    (since, from_start): (i64, bool),
) {
    let Some(own) = scene.at(source, at) else { return };
    let name = begin(&devices(scene.hosts, &[own]));
    let host = &scene.hosts[&source];
    let device = &host.devices[at];
    let (sentence, sig, values) = match (lanes, generation) {
        (Some((width, most)), _) => (
            format!("{name} has {} of {} PCIe lanes since {{since}}", whole(width), whole(most)),
            Sig::Width,
            (width, most),
        ),
        (_, Some((value, most))) => (
            format!(
                "{name}'s PCIe runs at generation {} of {} since {{since}}, its peers at their highest",
                whole(value),
                whole(most)
            ),
            Sig::Gen,
            (value, most),
        ),
        _ => return,
    };
    let mut facts = Vec::new();
    if let Some(row) = device.slot(sig).row {
        facts.push(evidence(
            host,
            row,
            own.2,
            format!("{} of {}", whole(values.0), whole(values.1)),
            (values.0, Some(values.1)),
        ));
    }
    if let Some(row) = device.slot(Sig::Use).row {
        facts.push(evidence(host, row, own.2, format!("utilization {} %", whole(usage)), (usage, None)));
    }
    let draft = Draft {
        rule: "slow_link.pcie",
        severity: if from_start { Severity::Note } else { Severity::Warning },
        source,
        subject: vec![own],
        affects: scene.others(source, at),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
        next: lanes.is_none().then_some(next::PCIE_GENERATION),
    };
    scene.raise(key, draft);
}

/// Links that went down, and growing errors on them. NVLinks are read about every half minute, XGMI links at each tick.
fn bridges(scene: &mut Scene, source: Source, at: usize) {
    let now = scene.now;
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let device = &mut host.devices[at];
    let (up, crc, replays) = (device.slot(Sig::LinksUp), device.slot(Sig::LinkCrc), device.slot(Sig::LinkReplays));
    let reads = [up, crc, replays].iter().any(|slot| slot.at == now);
    if !reads {
        return;
    }
    let grown = |slot: &crate::levels::Slot| {
        if slot.at == now { slot.grew() * 60.0 / f64::from(slot.over.max(1)) } else { 0.0 }
    };
    let counted = crc.at == now || replays.at == now;
    let (errors, links) = (grown(crc) + grown(replays), (up.at == now).then_some(up.now));
    let used = device.recent(Sig::Use).is_some_and(|slot| slot.short >= 10.0);
    let marks = &mut device.marks;
    if let Some(links) = links {
        // Boards without bridges have fewer links than their maximum, so only links that were up can go down.
        marks.links_most = marks.links_most.max(links);
        marks.links_few.step(now, Some(links < marks.links_most), 200);
    }
    if counted && errors >= ERRORS_A_MINUTE {
        marks.link_errors_since = if marks.link_errors == 0 { now } else { marks.link_errors_since };
        (marks.link_errors, marks.link_errors_last) = (marks.link_errors + 1, now);
    } else if counted {
        marks.link_errors = 0;
    }
    // At least two readings.
    let few = marks.links_few.held(10).then(|| marks.links_few.since()).flatten();
    let many = (marks.link_errors >= 2).then_some(marks.link_errors_since);
    let calm = marks.links_few.since().is_none() && now - marks.link_errors_last >= 120;
    let (most, active) = (marks.links_most, device.slot(Sig::LinksUp).now);
    let key = scene.key("slow_link", source, at);
    if let Some(open) = scene.ledger.get(&key) {
        let own = open.rule == "slow_link.nvlink" && !open.sentence.contains("sends");
        if own && calm {
            scene.end(&key);
        }
        return;
    }
    // Links also go down while nothing uses them.
    let Some(since) = few.or(many).filter(|_| used) else { return };
    let Some(own) = scene.at(source, at) else { return };
    let host = &scene.hosts[&source];
    let name = begin(&devices(scene.hosts, &[own]));
    let links = match bridge_name(host.devices[at].slot(Sig::LinksUp).row) {
        "XGMI" => "XGMI links",
        _ => "NVLinks",
    };
    let (sig, words, value) = match few {
        Some(_) => (Sig::LinksUp, format!("{} of {} {links} are up", whole(active), whole(most)), active),
        None => (Sig::LinkCrc, format!("{} per minute on its NVLinks", number_of(errors, "error")), errors),
    };
    let sentence = match few {
        Some(_) => format!("{name} has {} of {} {links} since {{since}}", whole(active), whole(most)),
        None => format!("{name} has had {} per minute on its NVLinks since {{since}}", number_of(errors, "error")),
    };
    let row = host.devices[at].slot(sig).row.or_else(|| crate::signal::row_of(own.1, sig));
    let facts = row.map(|row| evidence(host, row, own.2, words, (value, None))).into_iter().collect();
    let draft = Draft {
        rule: "slow_link.nvlink",
        severity: Severity::Warning,
        source,
        subject: vec![own],
        affects: scene.others(source, at),
        device: None,
        since,
        sentence,
        evidence: facts,
        group: scene.group_of(source, at).map(|group| group.id),
        also: Vec::new(),
        next: few.map(|_| next::NVLINK_DOWN),
    };
    scene.raise(key, draft);
}

/// Judges whether members of a group use their NVLinks or XGMI links less than the others do.
fn nvlink(scene: &mut Scene, at: usize) {
    let now = scene.now;
    let group = &scene.groups[at];
    let step = group.step(scene.hosts);
    let patience = (3 * step).max(5);
    let working = group.has_worked(now, 45.max(2 * step)) && group.members.len() >= 3;
    let minute = |device: &Device| device.habits[NVLINK].mean().filter(|_| nvlink_sig(device).is_some());
    let values: Vec<Option<f64>> = group
        .members
        .iter()
        .map(|(source, position)| scene.hosts.get(source).and_then(|host| minute(&host.devices[*position])))
        .collect();
    if values.iter().all(Option::is_none) {
        return;
    }
    let all = Ordered::new(values.iter().flatten().copied());
    let (id, members) = (group.id, group.members.clone());
    for (member, (source, position)) in members.into_iter().enumerate() {
        let key = scene.key("slow_link", source, position);
        let open = scene.ledger.get(&key).map(|open| open.rule.clone());
        let sends = scene.ledger.get(&key).is_some_and(|open| open.sentence.contains("sends"));
        if open.as_deref().is_some_and(|rule| rule != "slow_link.nvlink" || !sends) {
            continue;
        }
        let peers = values[member].and_then(|own| all.others(own)).filter(|peers| *peers >= 1e8);
        let device = &mut scene.hosts.get_mut(&source).expect("a member is there").devices[position];
        let habit = device.habits[NVLINK].known(120.0).map(|(habit, _)| habit);
        let known = values[member].zip(peers).filter(|_| working);
        // Among equal peers, a GPU that hardly sends from the start never had its links.
        let mut others =
            values.iter().enumerate().filter(|(other, _)| *other != member).filter_map(|(_, value)| *value);
        let alike =
            all.len() >= 4 && peers.is_some_and(|peers| others.all(|other| (0.75..=1.33).contains(&(other / peers))));
        let low = known.map(|(own, peers)| {
            let fell = own < 0.5 * peers && habit.is_some_and(|habit| habit >= 0.8);
            fell || (own < 0.15 * peers && alike)
        });
        let high = known.map(|(own, peers)| own >= 0.8 * peers);
        device.marks.nvlink.step(now, low, patience);
        device.marks.nvlink_back.step(now, high, patience);
        if low == Some(true) || open.is_some() {
            device.work.frozen = device.work.frozen.max(now + 1 + step);
        }
        if open.is_some() {
            if device.marks.nvlink_back.held(60.max(3 * step)) {
                scene.end(&key);
            }
            continue;
        }
        let Some((own, peers)) = known.filter(|_| device.marks.nvlink.held(60.max(3 * step))) else { continue };
        // The mean of a minute fell to half some time after the onset; the finding covers the time from then on.
        let from = device.marks.nvlink.since().unwrap_or(now);
        raise_nvlink(scene, key, (source, position), id, (own, peers), from);
    }
}

/// Its counter of bytes over NVLink or XGMI.
fn nvlink_sig(device: &Device) -> Option<Sig> {
    [Sig::NvTx, Sig::NvRx].into_iter().find(|sig| device.recent(*sig).is_some())
}

/// Raises the finding about a GPU that sends less over NVLink or XGMI than its peers, both in bytes per second.
fn raise_nvlink(
    scene: &mut Scene,
    key: Key,
    (source, position): (Source, usize),
    group: u64,
    (own, peers): (f64, f64),
    from: i64,
) {
    let Some(subject) = scene.at(source, position) else { return };
    let host = &scene.hosts[&source];
    let device = &host.devices[position];
    let Some(sig) = nvlink_sig(device) else { return };
    let own = device.lately.mean(NVLINK, from).unwrap_or(own);
    let bridge = bridge_name(device.slot(sig).row);
    let sentence = format!(
        "{} sends {} over {bridge} since {{since}}, its peers {}",
        begin(&devices(scene.hosts, &[subject])),
        rate(own),
        rate(peers)
    );
    let mut facts = Vec::new();
    if let Some(row) = device.slot(sig).row {
        let level = device.slot(sig).level();
        facts.push(evidence(
            host,
            row,
            subject.2,
            format!("{bridge} {}, its peers {}", rate(own), rate(peers)),
            (own, level),
        ));
    }
    if let Some((pcie, row)) = device.recent(Sig::PcieTx).zip(device.slot(Sig::PcieTx).row) {
        facts.push(evidence(host, row, subject.2, format!("PCIe sends {}", rate(pcie.now)), (pcie.now, pcie.level())));
    }
    let draft = Draft {
        rule: "slow_link.nvlink",
        severity: Severity::Warning,
        source,
        subject: vec![subject],
        affects: scene.others(source, position),
        device: None,
        since: from - 40,
        sentence,
        evidence: facts,
        group: Some(group),
        also: Vec::new(),
        next: Some(next::NVLINK_TRAFFIC),
    };
    scene.raise(key, draft);
}

/// The group that works on a machine, and its pace since `from` as a share of the usual, if known.
fn pace(scene: &Scene, source: Source, from: i64) -> Option<(u64, f64, Sig)> {
    let group = scene.group_on(source)?;
    if group.course.worked < 60 {
        return None;
    }
    group.pace_since(scene.hosts, None, scene.now, from).map(|(pace, sig)| (group.id, pace, sig))
}

fn resends(scene: &mut Scene, source: Source) {
    let now = scene.now;
    let key = Key::new("slow_link", source, What::Machine("net"));
    let open = scene.ledger.is_open(&key);
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let (step, patience) = (host.step, host.patience());
    let Some(slot) = host.recent(HostSig::Retransmits) else { return };
    let (rate, level) = (slot.short, slot.level().unwrap_or(0.0));
    let usual = level.max(0.1);
    let (raw, at) = (slot.raw, slot.at);
    host.marks.resends.step(now, Some(rate >= MANY_RETRANSMITS && rate >= 10.0 * usual), patience);
    if host.marks.resends.since() == Some(now) {
        host.marks.resent = (at, raw);
    }
    host.marks.clean.step(now, Some(rate < MANY_RETRANSMITS / 2.0), patience);
    if host.marks.resends.since().is_some() || open {
        host.devices.iter_mut().for_each(|d| d.work.frozen = d.work.frozen.max(now + 1 + step));
    }
    if open {
        if host.marks.clean.held(60.max(3 * step)) {
            scene.end(&key);
        }
        return;
    }
    let (many, since) = (host.marks.resends.held(30.max(3 * step)), host.marks.resends.since().unwrap_or(now));
    let slowed = if many { pace(scene, source, since).filter(|(_, pace, _)| *pace <= 0.95) } else { None };
    let Some((group, pace, by)) = slowed else { return };
    let row = host_row_of(HostSig::Retransmits);
    let host = &scene.hosts[&source];
    // The count since the onset; unavailable after a reset of the counter.
    let (from, before) = host.marks.resent;
    let rate = if at > from && raw >= before { (raw - before) / (at - from) as f64 } else { rate };
    let less = whole(100.0 * (1.0 - pace));
    let sentence = format!(
        "{} has retransmitted {} TCP segments per second since {{since}}; the job runs {less} % slower",
        machine(scene.hosts, source),
        whole(rate)
    );
    let words = format!("{} segments per second, usually {level:.1}", whole(rate));
    let mut facts = vec![evidence(host, row, "", words, (rate, Some(level)))];
    if let Some((host, shown)) = scene.group_on(source).and_then(|group| group.shown(scene.hosts, None, by)) {
        let slot = shown.slot(by);
        let words = format!("the job runs {less} % slower, by {}", counter(by));
        let value = slot.level().map_or(f64::NAN, |level| pace * level);
        facts.extend(slot.row.map(|row| evidence(host, row, shown.index, words, (value, slot.level()))));
    }
    let affects = scene.group_on(source).map(|g| g.devices(scene.hosts)).unwrap_or_default();
    let draft = Draft {
        rule: "slow_link.net",
        severity: Severity::Warning,
        source,
        subject: Vec::new(),
        affects,
        device: None,
        since,
        sentence,
        evidence: facts,
        group: Some(group),
        also: Vec::new(),
        next: None,
    };
    scene.raise(key, draft);
}

/// Links of one kind with equal traffic, as `ib0` to `ib7`.
fn siblings(scene: &mut Scene, source: Source) {
    let now = scene.now;
    let open = scene.ledger.has("slow_link", source);
    let Some(host) = scene.hosts.get_mut(&source) else { return };
    let (step, patience) = (host.step, host.patience());
    let mut of: Vec<(usize, f64, &str, f64)> = Vec::new();
    for (at, named) in host.named.iter().enumerate() {
        let recent = named.sig == NamedSig::LinkOut && named.slot.at >= host.newest - patience;
        if let Some(level) = named.slot.level().filter(|level| recent && *level >= 5e6) {
            let stem = named.name.trim_end_matches(|c: char| c.is_ascii_digit());
            of.push((at, named.slot.minute / level, stem, named.slot.minute));
        }
    }
    let beside = |&(at, share, stem, own): &(usize, f64, &str, f64)| {
        let others = of.iter().filter(|(other, _, its, _)| *other != at && *its == stem);
        let (mut shares, mut carry): (Vec<f64>, Vec<f64>) = others.map(|(_, share, _, own)| (*share, *own)).unzip();
        (shares.len() >= 2).then_some(())?;
        Some((at, share, own, median(&mut shares)?, median(&mut carry)?))
    };
    let compared: Vec<_> = of.iter().filter_map(beside).collect();
    let mut slow: Vec<(usize, f64, f64)> = Vec::new();
    for (at, share, own, peers, carry) in compared {
        let named = &mut host.named[at];
        // When all are idle, the job pauses.
        let known = (peers >= 0.3).then_some(share < 0.6 * peers);
        named.hold.step(now, known, patience);
        named.back.step(now, known.map(|_| share >= 0.8 * peers), patience);
        if named.hold.held(60.max(3 * step)) || (open && named.back.held(60.max(3 * step))) {
            slow.push((at, own, carry));
        }
    }
    if slow.is_empty() {
        return;
    }
    let group = scene.group_on(source).filter(|group| group.course.worked >= 60).map(|group| group.id);
    for (at, own, carry) in slow {
        let named = &scene.hosts[&source].named[at];
        let key = Key::new("slow_link", source, What::Named(named.name.clone()));
        if named.back.held(60.max(3 * step)) {
            scene.end(&key);
            continue;
        }
        let host = &scene.hosts[&source];
        let sentence = format!(
            "{}{} sends {} since {{since}}, its siblings {}",
            named.name,
            crate::words::of_host(scene.hosts, source),
            rate(own),
            rate(carry)
        );
        let row = named_row_of(NamedSig::LinkOut);
        let words = format!("{}, usually {}", rate(own), rate(named.slot.level));
        let facts = vec![evidence(host, row, &named.name, words, (own, Some(named.slot.level)))];
        let draft = Draft {
            rule: "slow_link.net",
            severity: Severity::Warning,
            source,
            subject: Vec::new(),
            affects: Vec::new(),
            device: Some(named.name.clone()),
            since: named.hold.since().unwrap_or(now) - 40,
            sentence,
            evidence: facts,
            group,
            also: Vec::new(),
            next: None,
        };
        scene.raise(key, draft);
    }
}
