//! People are notified once, in time, and never in a storm.

use super::inhibit::silences;
use super::*;
use crate::StateRow;
use crate::{Engine, Machine, Tick};
use shared::alert::Quiet;
use shared::catalog::VOCABULARY;
use shared::series::SeriesDef;

const T: i64 = 1_790_000_000_000;
const MINUTE: i64 = 60_000;

fn catalog() -> Catalog {
    Catalog::new(VOCABULARY.iter().copied().flatten().copied())
}

fn rule(id: &str, when: &str) -> Rule {
    Rule {
        id: id.into(),
        name: format!("rule {id}"),
        when: when.into(),
        enabled: true,
        resolved: true,
        quiet: true,
        ..Rule::default()
    }
}

fn channel(name: &str, kind: &str) -> Channel {
    Channel {
        id: name.into(),
        name: name.into(),
        kind: kind.into(),
        target: String::new(),
        quiet: Vec::new(),
        zone: None,
        is_default: true,
        delivery: shared::alert::Delivery::default(),
    }
}

fn notices(rules: &[Rule], channels: &[Channel]) -> Notices {
    let setup = Setup { public_url: Some("https://hub".into()), host: "hub".into(), ..Setup::default() };
    let mut notices = Notices::new(setup);
    notices.set_rules(rules, &catalog());
    assert_eq!(notices.set_channels(channels), []);
    notices
}

fn rules() -> Vec<Rule> {
    vec![
        rule("hot", "gpu.*.temp > 85 C for 2m"),
        Rule { severity: AlertSeverity::Critical, ..rule("crash", "run crashed") },
        rule("lost", "source lost for 60s"),
        rule("gone", "gpu.*.temp missing for 1m"),
        rule("xid", "xid *"),
        rule("idle", "gpus held idle for 30m"),
    ]
}

fn alert(rule: &str, subject: &str, t: i64, labels: &[(&str, &str)]) -> Transition {
    let severity = if rule == "crash" { AlertSeverity::Critical } else { AlertSeverity::Warning };
    let alert = Alert {
        id: id::alert(rule, subject, t),
        rule: rule.into(),
        name: format!("rule {rule}"),
        subject: subject.into(),
        severity,
        state: AlertState::Firing,
        began: t - 1000,
        fired: Some(t),
        ended: None,
        value: Some(90.0),
        worst: Some(90.0),
        sentence: format!("{subject} is bad"),
        text: String::new(),
        labels: labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        count: 1,
        acked: None,
        held: String::new(),
        unknown_since: None,
    };
    Transition { what: What::Fired, alert, event: matches!(rule, "crash" | "xid"), flapping: false }
}

fn ended(of: &Transition, t: i64) -> Transition {
    let mut over = Transition { what: What::Ended, ..of.clone() };
    (over.alert.state, over.alert.ended) = (AlertState::Resolved, Some(t));
    over
}

/// All notices of a span, polled each second: seconds after T, kind, how many alerts, title.
fn poll_notices(notices: &mut Notices, from: i64, to: i64) -> Vec<(i64, NoticeKind, usize, String)> {
    let mut all = Vec::new();
    for t in (from..to).step_by(1000) {
        for due in notices.poll(t) {
            all.push((
                (t - T) / 1000,
                due.notice.kind,
                due.notice.alerts.len() + due.notice.more as usize,
                due.notice.title,
            ));
        }
    }
    all
}

#[test]
fn alerts_of_a_group_are_one_notice_and_so_is_their_end() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    let hot: Vec<_> = (0..64).map(|i| alert("hot", &format!("n{i}"), T + i * 50, &[("source", "n")])).collect();
    hot.iter().for_each(|t| all.apply(t, t.alert.fired.expect("fired")));
    let seen = poll_notices(&mut all, T, T + 5 * MINUTE);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((seen[0].0, seen[0].1, seen[0].2), (10, NoticeKind::Firing, 64));
    assert!(seen[0].3.starts_with("rule hot: 64 firing; n0 is bad"), "{}", seen[0].3);
    hot.iter().take(63).for_each(|t| all.apply(&ended(t, T + 5 * MINUTE), T + 5 * MINUTE));
    let seen = poll_notices(&mut all, T + 5 * MINUTE, T + 10 * MINUTE);
    assert_eq!((seen.len(), seen[0].1, seen[0].2), (1, NoticeKind::Firing, 63));
    all.apply(&ended(&hot[63], T + 10 * MINUTE), T + 10 * MINUTE);
    let seen = poll_notices(&mut all, T + 10 * MINUTE, T + 15 * MINUTE);
    assert_eq!(
        (seen.len(), seen[0].1, seen[0].2, seen[0].3.as_str()),
        (1, NoticeKind::Resolved, 1, "Resolved: n63 is bad")
    );
    assert_eq!(all.next_due(), None);
}

#[test]
fn a_run_is_told_after_five_seconds_and_its_end_is_not() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    let crash = alert("crash", "r1", T, &[("run", "r1")]);
    all.apply(&crash, T);
    let sharpened = Transition {
        what: What::Changed,
        alert: Alert { sentence: "out of memory".into(), ..crash.alert.clone() },
        ..crash.clone()
    };
    all.apply(&sharpened, T + 2000);
    let seen = poll_notices(&mut all, T, T + MINUTE);
    assert_eq!(seen.iter().map(|s| (s.0, s.3.as_str())).collect::<Vec<_>>(), [(5, "out of memory")]);
    all.apply(&ended(&sharpened, T + 60 * MINUTE), T + 60 * MINUTE);
    assert_eq!(poll_notices(&mut all, T + 60 * MINUTE, T + 62 * MINUTE), []);
    // Late alerts of runs are notified, others are not.
    let late = alert("crash", "r2", T, &[("run", "r2")]);
    all.apply(&late, T + 120 * MINUTE);
    all.apply(&alert("hot", "x", T, &[]), T + 120 * MINUTE);
    assert_eq!(poll_notices(&mut all, T + 120 * MINUTE, T + 121 * MINUTE).len(), 1);
    assert!(all.held().iter().any(|(_, why)| why.contains("too long ago")));
}

#[test]
fn it_repeats_until_somebody_takes_it_on() {
    let mut all =
        notices(&[Rule { repeat: Some("1h".into()), ..rule("hot", "gpu.*.temp > 85") }], &[channel("lab", "slack")]);
    let hot = alert("hot", "a", T, &[]);
    all.apply(&hot, T);
    let seen = poll_notices(&mut all, T, T + 130 * MINUTE);
    assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), [10, 3610, 7210]);
    all.ack(&hot.alert.id, Acked { by: "sofia".into(), at: 0 });
    assert_eq!(poll_notices(&mut all, T + 130 * MINUTE, T + 260 * MINUTE), []);
    all.apply(&ended(&hot, T + 260 * MINUTE), T + 260 * MINUTE);
    assert_eq!(poll_notices(&mut all, T + 260 * MINUTE, T + 270 * MINUTE).len(), 1);
}

#[test]
fn a_lost_machine_a_crash_and_xid_79_hold_others_back() {
    let labels = [("source", "a"), ("gpu", "1"), ("run", "r")];
    for (holder, held, holds) in [
        (alert("lost", "a", T, &[("source", "a")]), alert("hot", "h", T, &labels), true),
        (alert("lost", "a", T, &[("source", "b")]), alert("hot", "h", T, &labels), false),
        (alert("lost", "a", T, &[("source", "a")]), alert("crash", "r", T, &labels), false),
        (alert("crash", "r", T, &[("run", "r")]), alert("idle", "h", T, &labels), true),
        (alert("crash", "r", T, &[("run", "r")]), alert("hot", "h", T, &labels), false),
        (alert("xid", "a", T, &[("source", "a"), ("gpu", "1"), ("xid", "79")]), alert("gone", "g", T, &labels), true),
        (alert("xid", "a", T, &[("source", "a"), ("gpu", "1"), ("xid", "48")]), alert("gone", "g", T, &labels), false),
    ] {
        let mut all = notices(&rules(), &[channel("lab", "slack")]);
        all.apply(&holder, T);
        all.apply(&held, T);
        let name = |n: &(i64, NoticeKind, usize, String)| n.3.clone();
        let seen: Vec<_> = poll_notices(&mut all, T, T + 3 * MINUTE).iter().map(name).collect();
        assert_eq!(seen.contains(&held.alert.sentence), !holds, "{seen:?}");
        assert_eq!(all.held().iter().any(|(id, why)| *id == held.alert.id && why.starts_with("inhibited: ")), holds);
        // Notified only if still true when the holder clears.
        all.apply(&ended(&holder, T + 3 * MINUTE), T + 3 * MINUTE);
        let seen: Vec<_> = poll_notices(&mut all, T + 3 * MINUTE, T + 6 * MINUTE).iter().map(name).collect();
        assert_eq!(seen.contains(&held.alert.sentence), holds, "{seen:?}");
    }
}

#[test]
fn what_is_silenced_waits_for_the_end_of_the_silence() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    let matches =
        BTreeMap::from([("source".to_string(), "a*".to_string()), ("rule".to_string(), "rule hot".to_string())]);
    let silence = Silence {
        id: "s".into(),
        matches,
        from: T / 1000,
        to: T / 1000 + 600,
        by: "sofia".into(),
        ..Silence::default()
    };
    all.set_silences(&[silence]);
    let (stays, goes, other) = (
        alert("hot", "a1", T, &[("source", "a1")]),
        alert("hot", "a2", T, &[("source", "a2")]),
        alert("hot", "b", T, &[("source", "b")]),
    );
    [&stays, &goes, &other].iter().for_each(|t| all.apply(t, T));
    assert_eq!(poll_notices(&mut all, T, T + MINUTE).iter().map(|s| s.3.as_str()).collect::<Vec<_>>(), ["b is bad"]);
    assert_eq!(all.held_back(), [("s".to_string(), 2)]);
    assert!(all.held().iter().any(|(id, why)| *id == stays.alert.id && why.starts_with("silenced by sofia until ")));
    all.apply(&ended(&goes, T + 2 * MINUTE), T + 2 * MINUTE);
    let seen = poll_notices(&mut all, T + MINUTE, T + 15 * MINUTE);
    assert_eq!(seen.iter().map(|s| s.3.as_str()).collect::<Vec<_>>(), ["a1 is bad"]);
    assert!((600..=620).contains(&seen[0].0), "{seen:?}");
    assert!(all.held().iter().any(|(id, why)| *id == stays.alert.id && why.is_empty()));
}

#[test]
fn quiet_hours_end_in_one_summary_and_what_is_critical_passes() {
    // T is 14:13:20 UTC.
    let hours = Quiet { days: String::new(), from: "14:00".into(), to: "15:00".into() };
    let mut all = notices(&rules(), &[Channel { quiet: vec![hours], ..channel("lab", "slack") }]);
    let (stays, goes) = (alert("hot", "a", T, &[]), alert("hot", "b", T, &[]));
    [&stays, &goes, &alert("crash", "r", T, &[("run", "r")])].iter().for_each(|t| all.apply(t, T));
    assert_eq!(
        poll_notices(&mut all, T, T + 5 * MINUTE).iter().map(|s| s.3.as_str()).collect::<Vec<_>>(),
        ["r is bad"]
    );
    all.apply(&ended(&goes, T + 5 * MINUTE), T + 5 * MINUTE);
    let seen = poll_notices(&mut all, T + 5 * MINUTE, T + 60 * MINUTE);
    assert_eq!(seen, [(2800, NoticeKind::Digest, 2, "During quiet hours: 2 alerts, 1 still firing".to_string())]);
    // Its firing was notified, so its end is, too.
    all.apply(&ended(&stays, T + 60 * MINUTE), T + 60 * MINUTE);
    let seen = poll_notices(&mut all, T + 60 * MINUTE, T + 75 * MINUTE);
    assert_eq!(seen.iter().map(|s| s.3.as_str()).collect::<Vec<_>>(), ["Resolved: a is bad"]);
}

#[test]
fn a_notice_that_was_given_up_has_no_end_and_a_blip_is_one_notice() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    let hot = alert("hot", "a", T, &[]);
    all.apply(&hot, T);
    let due = (0..20).find_map(|s| all.poll(T + s * 1000).pop()).expect("due");
    all.outcome("lab", &due.notice.id, false);
    all.apply(&ended(&hot, T + MINUTE), T + MINUTE);
    assert_eq!(poll_notices(&mut all, T + MINUTE, T + 5 * MINUTE), []);
    let blip = alert("hot", "b", T + 10 * MINUTE, &[]);
    all.apply(&blip, T + 10 * MINUTE);
    all.apply(&ended(&blip, T + 10 * MINUTE + 3000), T + 10 * MINUTE + 3000);
    let seen = poll_notices(&mut all, T + 10 * MINUTE, T + 15 * MINUTE);
    let expected = (1, NoticeKind::Firing, "b is bad (was firing 14:23–14:23 UTC)");
    assert_eq!((seen.len(), seen[0].1, seen[0].3.as_str()), expected);
}

#[test]
fn what_fires_and_ends_before_its_notice_is_told_as_fired_with_its_end() {
    let short = |kind: &str| {
        let mut all = notices(&rules(), &[channel("lab", kind)]);
        let mut hot: Vec<_> = (0..2).map(|i| alert("hot", &format!("n{i}"), T, &[])).collect();
        for (n, one) in hot.iter_mut().enumerate() {
            one.alert.worst = Some(90.0 - n as f64);
            all.apply(one, T);
            all.apply(&ended(one, T + 9_000), T + 9_000);
        }
        let due = (0..200).flat_map(|s| all.poll(T + 10_000 + s * 1000)).collect::<Vec<_>>();
        due.into_iter().map(|due| (due.notice.kind, due.notice.title, due.notice.alerts)).collect::<Vec<_>>()
    };
    let seen = short("slack");
    assert_eq!(seen.len(), 1, "{seen:?}");
    let (kind, title, alerts) = &seen[0];
    assert_eq!(
        (*kind, title.as_str()),
        (NoticeKind::Firing, "rule hot: 2 fired; n0 is bad (was firing 14:13–14:13 UTC)")
    );
    assert!(alerts.iter().all(|alert| alert.state == AlertState::Resolved && alert.ended == Some(T + 9_000)));
    // Each opens and closes an incident of its own.
    let pager = short("pagerduty");
    assert_eq!(pager.iter().map(|seen| seen.0).collect::<Vec<_>>(), [NoticeKind::Firing, NoticeKind::Firing]);
    // An Alertmanager first sees them firing.
    let states: Vec<Vec<AlertState>> =
        short("alertmanager").iter().map(|seen| seen.2.iter().map(|alert| alert.state).collect()).collect();
    assert_eq!(states, [[AlertState::Firing; 2], [AlertState::Resolved; 2]]);
}

#[test]
fn waiting_notices_of_a_group_fold_into_one() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    let (a, b) = (alert("hot", "a", T, &[]), alert("hot", "b", T + 2 * MINUTE, &[]));
    let mut due = Vec::new();
    let mut hear = |all: &mut Notices, t: &Transition, at: i64| {
        all.apply(t, at);
        due.extend((at..at + 3 * MINUTE).step_by(1000).flat_map(|t| all.poll(t)).map(|d| d.notice));
    };
    hear(&mut all, &a, T);
    hear(&mut all, &b, T + 3 * MINUTE);
    hear(&mut all, &ended(&a, T + 8 * MINUTE), T + 8 * MINUTE);
    hear(&mut all, &ended(&b, T + 20 * MINUTE), T + 20 * MINUTE);
    assert_eq!(due.len(), 4, "{due:#?}");
    let one = fold_all(&due[3], due[..3].iter().rev().cloned());
    assert_eq!((one.kind, one.at, one.seq), (NoticeKind::Firing, due[0].at, 4), "nobody has heard of them");
    assert_eq!(
        one.alerts.iter().map(|a| (a.subject.as_str(), a.state)).collect::<Vec<_>>(),
        [("b", AlertState::Resolved), ("a", AlertState::Resolved)]
    );
    let two = text::fold(&due[0], &due[3]);
    assert!(two.title.ends_with(" (was firing 14:13–14:33 UTC)"), "{}", two.title);
}

#[test]
fn a_notice_of_one_alert_leads_to_its_run_or_its_machine() {
    let of = |labels: &[(&str, &str)], url: &str| {
        let setup = Setup { public_url: Some(url.into()).filter(|url: &String| !url.is_empty()), ..Setup::default() };
        Notices::new(setup).charts(&alert("hot", "a", T, labels).alert, T + MINUTE)
    };
    let began = alert("hot", "a", T, &[]).alert.began;
    let (from, to) = (began.div_euclid(1000) - 60, T / 1000 + 60);
    let machine = format!("https://hub/?source=node%201&from={from}&to={to}");
    assert_eq!(
        of(&[("source", "node 1"), ("run", "r&1")], "https://hub/"),
        Some("https://hub/?page=run&run=r%261".into())
    );
    assert_eq!(of(&[("source", "node 1")], "https://hub"), Some(machine.clone()));
    assert_eq!(
        of(&[("run", "r"), ("rank", "3")], "https://hub"),
        Some("https://hub/?page=run&run=r&pin=rank%203".into()),
        "the lines of its rank"
    );
    assert_eq!(of(&[("source", "node 1"), ("run", "r"), ("tag", "gpu.0.temp")], "https://hub"), Some(machine));
    assert_eq!((of(&[("source", "n")], ""), of(&[], "https://hub")), (None, None));
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    all.apply(&alert("crash", "a", T, &[("source", "n"), ("run", "r")]), T);
    let due = all.poll(T + MINUTE);
    assert_eq!(due[0].notice.charts.as_deref(), Some("https://hub/?page=run&run=r"));
}

fn make_notice(kind: NoticeKind, group: &str, at: i64, alerts: &[Alert]) -> Notice {
    Notice {
        id: at.to_string(),
        kind,
        group: group.into(),
        seq: 1,
        severity: AlertSeverity::Warning,
        rule: "hot".into(),
        title: "a is bad".into(),
        note: String::new(),
        alerts: alerts.to_vec(),
        more: 0,
        counts: Vec::new(),
        link: None,
        charts: None,
        help: None,
        team: String::new(),
        host: String::new(),
        at: at / 1000,
    }
}

#[test]
fn folded_from_the_newest_on_what_is_newer_stays() {
    use NoticeKind::{Firing, Resolved};
    let (a, b) = (alert("hot", "a", T, &[]), alert("hot", "b", T + MINUTE, &[]));
    let over = |of: &Transition, at| ended(of, at).alert;
    let notices = [
        make_notice(Firing, "g", T, std::slice::from_ref(&a.alert)),
        make_notice(Firing, "g", T + MINUTE, &[a.alert.clone(), b.alert.clone()]),
        make_notice(Firing, "g", T + 2 * MINUTE, &[over(&a, T + 2 * MINUTE)]),
        make_notice(Resolved, "g", T + 20 * 60 * MINUTE, &[over(&b, T + 20 * 60 * MINUTE)]),
    ];
    let one = fold_all(&notices[3], notices[..3].iter().rev().cloned());
    assert_eq!((one.kind, one.at, one.more), (Firing, T / 1000, 0), "nobody has heard of them");
    assert!(one.alerts.iter().all(|a| a.state == AlertState::Resolved), "{:?}", one.alerts);
    assert_eq!(one.alerts.len(), 2);
    // The notice contains the time once, with the date where it is long ago.
    let (from, to) = (shared::date::text(T), shared::date::text(T + 20 * 60 * MINUTE));
    let from = from[..16].replace('T', " ");
    assert_eq!(one.title, format!("a is bad (was firing {from}–{} UTC)", &to[11..16]));
    let two = text::fold(&notices[1], &notices[3]);
    assert!(two.alerts.iter().all(|a| a.state == AlertState::Resolved));
    assert_eq!((two.alerts.len(), two.more), (1, 1));
}

#[test]
fn of_all_that_stood_before_only_what_is_over_is_told_with_what_stands() {
    let all: Vec<_> = (0..30).map(|i| alert("hot", &format!("n{i}"), T, &[])).collect();
    let over: Vec<Alert> = all[..5].iter().map(|t| ended(t, T + 1000).alert).collect();
    let fire: Vec<Alert> = all[5..].iter().map(|t| t.alert.clone()).collect();
    let old = make_notice(NoticeKind::Firing, "standing", T, &[&over[..], &fire[..]].concat());
    // In the newer one n5 has ended.
    let newer: Vec<Alert> = [&[ended(&all[5], T + 2000).alert], &fire[1..20]].concat();
    let one = text::fold(&old, &make_notice(NoticeKind::Firing, "standing", T + MINUTE, &newer));
    assert_eq!(one.alerts, [&newer[..], &over[..]].concat());
    assert_eq!((one.more, one.at), (0, (T + MINUTE) / 1000));
}

#[test]
fn a_crash_at_any_second_loses_no_notice_and_repeats_at_most_one() {
    // Each second the service writes the rows in one transaction with the due notices. It crashes after `dies` seconds,
    // either before or after that second's transaction.
    let (a, b) = (alert("hot", "a", T, &[]), alert("hot", "b", T + 30_000, &[]));
    let script = |all: &mut Notices, alerts: &mut BTreeMap<String, Alert>, second: i64| {
        for (at, change) in
            [(0, a.clone()), (30, b.clone()), (90, ended(&a, T + 90_000)), (100, ended(&b, T + 100_000))]
        {
            if at == second {
                alerts.insert(change.alert.id.clone(), change.alert.clone());
                all.apply(&change, T + second * 1000);
            }
        }
    };
    let make = || notices(&rules(), &[channel("lab", "slack")]);
    let mut plain = Vec::new();
    let (mut all, mut alerts) = (make(), BTreeMap::new());
    for second in 0..600 {
        script(&mut all, &mut alerts, second);
        plain.extend(all.poll(T + second * 1000).into_iter().map(|d| d.notice.id));
    }
    assert_eq!(plain.len(), 3);
    for dies in 0..200 {
        let mut sent = Vec::new();
        let mut rows: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let (mut all, mut alerts) = (make(), BTreeMap::new());
        for second in 0..600 {
            script(&mut all, &mut alerts, second);
            sent.extend(all.poll(T + second * 1000).into_iter().map(|d| d.notice.id));
            for row in all.changed_rows() {
                match row.bytes {
                    Some(bytes) => rows.insert(row.key, bytes),
                    None => rows.remove(&row.key),
                };
            }
            if second == dies {
                all = make();
                let rows: Vec<StateRow> =
                    rows.iter().map(|(key, bytes)| StateRow { key: key.clone(), bytes: Some(bytes.clone()) }).collect();
                all.restore(&rows, &alerts.values().cloned().collect::<Vec<_>>(), T + second * 1000);
            }
        }
        assert_eq!(sent, plain, "{dies}");
    }
}

#[test]
fn each_alert_is_an_event_of_its_own_for_a_pager_and_all_stand_for_an_alertmanager() {
    let mut all = notices(&rules(), &[channel("duty", "pagerduty"), channel("am", "alertmanager")]);
    let hot: Vec<_> = (0..3).map(|i| alert("hot", &format!("n{i}"), T, &[])).collect();
    hot.iter().for_each(|t| all.apply(t, T));
    let mut by: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for t in (T..T + 5 * MINUTE).step_by(1000) {
        if t == T + 2 * MINUTE {
            all.apply(&ended(&hot[0], t), t);
        }
        for due in all.poll(t) {
            by.entry(due.channel).or_default().push(due.notice.alerts.len());
        }
    }
    assert_eq!(by["duty"], [1, 1, 1, 1]);
    assert_eq!(by["am"], [3, 3, 3, 2, 2]);
}

#[test]
fn all_that_stands_is_in_messages_that_are_not_too_long_and_is_written_only_when_told() {
    let mut all = notices(&rules(), &[channel("am", "alertmanager")]);
    for i in 0..200 {
        let mut hot = alert("hot", &format!("n{i}"), T, &[]);
        hot.alert.text = "\"line\"\n".repeat(200);
        all.apply(&hot, T);
    }
    let due = all.poll(T);
    assert!(due.len() > 1);
    assert_eq!(due.iter().map(|d| d.notice.alerts.len()).sum::<usize>(), 200);
    for one in &due {
        // The debug format has the same names and quotes as JSON.
        assert!(format!("{:?}", one.notice).len() < 128 * 1024);
    }
    all.poll(T + 10_000);
    all.changed_rows();
    assert_eq!(all.poll(T + 20_000), []);
    assert_eq!(all.changed_rows(), []);
}

#[test]
fn ids_are_others_for_another_team_and_for_a_channel_that_is_made_again() {
    let id = |setup: Setup, at: i64| {
        let mut all = Notices::new(setup);
        all.set_rules(&rules(), &catalog());
        all.set_channels(&[channel("lab", "slack")]);
        all.apply(&alert("hot", "a", T, &[]), at);
        all.poll(at + MINUTE).pop().expect("due").notice.id
    };
    let team = |salt: &str| Setup { salt: salt.into(), ..Setup::default() };
    assert_eq!(id(team("1"), T), id(team("1"), T));
    assert_ne!(id(team("1"), T), id(team("2"), T));
    assert_ne!(id(team("1"), T), id(team("1"), T + 1));
}

#[test]
fn what_one_notice_lost_another_may_have_told() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    let (a, b) = (alert("hot", "a", T, &[]), alert("hot", "b", T + 2 * MINUTE, &[]));
    all.apply(&a, T);
    let first = all.poll(T + MINUTE).pop().expect("due").notice;
    all.apply(&b, T + 2 * MINUTE);
    let second = all.poll(T + 4 * MINUTE).pop().expect("due").notice;
    all.outcome("lab", &second.id, true);
    all.outcome("lab", &first.id, false);
    [&a, &b].iter().for_each(|t| all.apply(&ended(t, T + 5 * MINUTE), T + 5 * MINUTE));
    let over = all.poll(T + 10 * MINUTE).pop().expect("due").notice;
    assert_eq!(over.alerts.iter().map(|a| a.subject.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_clock_that_is_set_back_holds_no_notice_up() {
    let ahead = T + 8 * 60 * MINUTE;
    let make = || notices(&rules(), &[channel("lab", "slack")]);
    let (mut all, a) = (make(), alert("hot", "a", ahead, &[]));
    all.apply(&a, ahead);
    assert_eq!(poll_notices(&mut all, ahead, ahead + MINUTE).len(), 1);
    let rows = all.changed_rows();
    // The group had a notice just now, and the next is not spaced from a time to come.
    let b = alert("hot", "b", T, &[]);
    all.apply(&b, T);
    let seen = poll_notices(&mut all, T, T + 15 * MINUTE);
    assert_eq!(seen.iter().map(|s| s.2).collect::<Vec<_>>(), [1], "{seen:?}");
    // Likewise after a restart.
    let mut next = make();
    next.restore(&rows, std::slice::from_ref(&a.alert), T);
    next.apply(&b, T);
    let seen = poll_notices(&mut next, T, T + 15 * MINUTE);
    assert_eq!(seen.iter().map(|s| s.2).collect::<Vec<_>>(), [1], "{seen:?}");
    // A storm ends by the clock that is.
    let mut all = make();
    for i in 0..30 {
        let run = format!("r{i}");
        all.apply(&alert("hot", &run, ahead, &[("run", run.as_str())]), ahead);
    }
    assert_eq!(poll_notices(&mut all, ahead, ahead + MINUTE).len(), 20);
    let seen = poll_notices(&mut all, T, T + 15 * MINUTE);
    assert!(seen.iter().any(|s| s.1 == NoticeKind::Digest), "{seen:?}");
}

#[test]
fn a_group_without_members_is_forgotten_and_so_is_its_row() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    let hot = alert("hot", "a", T, &[]);
    all.apply(&hot, T);
    all.poll(T + MINUTE);
    all.apply(&ended(&hot, T + 2 * MINUTE), T + 2 * MINUTE);
    let over = all.poll(T + 5 * MINUTE).pop().expect("due").notice;
    all.changed_rows();
    let gone = |all: &mut Notices, minutes: i64| {
        all.poll(T + minutes * MINUTE);
        all.changed_rows().iter().any(|row| row.key.starts_with('g') && row.bytes.is_none())
    };
    // Its last notice may still be queued.
    assert!(!gone(&mut all, 120));
    all.outcome("lab", &over.id, true);
    assert!(gone(&mut all, 122));
    assert_eq!(all.groups.len(), 0);
}

#[test]
fn a_pager_is_told_of_ends_in_storms_and_quiet_hours() {
    let over = |quiet: Vec<Quiet>, storm: usize, from: i64| {
        let mut all = Notices::new(Setup { storm, ..Setup::default() });
        all.set_rules(&rules(), &catalog());
        all.set_channels(&[Channel { quiet, ..channel("duty", "pagerduty") }]);
        let hot = [alert("hot", "a", from, &[]), alert("hot", "b", from, &[])];
        hot.iter().for_each(|t| all.apply(t, from));
        assert_eq!(poll_notices(&mut all, from, from + MINUTE).len(), 2);
        hot.iter().for_each(|t| all.apply(&ended(t, from + 3 * MINUTE), from + 3 * MINUTE));
        poll_notices(&mut all, from + 3 * MINUTE, from + 6 * MINUTE).iter().map(|s| s.1).collect::<Vec<_>>()
    };
    // T is 14:13:20 UTC.
    let hours = vec![Quiet { days: String::new(), from: "14:15".into(), to: "15:00".into() }];
    assert_eq!(over(hours, 20, T), [NoticeKind::Resolved, NoticeKind::Resolved]);
    assert_eq!(over(Vec::new(), 2, T), [NoticeKind::Resolved, NoticeKind::Resolved]);
}

#[test]
fn what_passes_quiet_hours_is_repeated_in_them() {
    // T is 14:13:20 UTC.
    let hours = Quiet { days: String::new(), from: "14:00".into(), to: "20:00".into() };
    let every = |id: &str| Rule { repeat: Some("1h".into()), ..rule(id, "gpu.*.temp > 85 C") };
    let mut all = notices(&[every("hot")], &[Channel { quiet: vec![hours], ..channel("lab", "slack") }]);
    let (mut worst, plain) = (alert("hot", "a", T, &[]), alert("hot", "b", T, &[]));
    worst.alert.severity = AlertSeverity::Critical;
    [&worst, &plain].iter().for_each(|t| all.apply(t, T));
    let seen = poll_notices(&mut all, T, T + 130 * MINUTE);
    assert_eq!(seen.iter().map(|s| (s.0, s.2)).collect::<Vec<_>>(), [(10, 1), (3610, 1), (7210, 1)]);
}

#[test]
fn what_a_summary_told_is_written() {
    // T is 14:13:20 UTC.
    let hours = Quiet { days: String::new(), from: "14:00".into(), to: "15:00".into() };
    let channels = [Channel { quiet: vec![hours], ..channel("lab", "slack") }];
    let mut all = notices(&rules(), &channels);
    let hot = alert("hot", "a", T, &[]);
    all.apply(&hot, T);
    let mut rows = BTreeMap::new();
    for t in (T..T + 50 * MINUTE).step_by(1000) {
        all.poll(t);
        rows.extend(all.changed_rows().into_iter().map(|row| (row.key.clone(), row)));
    }
    // After a start its end is notified, too.
    let mut next = notices(&rules(), &channels);
    next.restore(&rows.into_values().collect::<Vec<_>>(), std::slice::from_ref(&hot.alert), T + 50 * MINUTE);
    next.apply(&ended(&hot, T + 51 * MINUTE), T + 51 * MINUTE);
    assert_eq!(poll_notices(&mut next, T + 51 * MINUTE, T + 65 * MINUTE).len(), 1);
}

#[test]
fn a_silence_of_a_rule_means_it_in_each_team() {
    let hot = alert("hot@team", "a", T, &[]).alert;
    let of = |rule: &str| Silence { matches: BTreeMap::from([("rule".into(), rule.into())]), ..Silence::default() };
    assert!(silences(&of("hot"), &hot));
    assert!(!silences(&of("ho"), &hot));
}

#[test]
fn of_a_channel_that_is_removed_no_row_stays() {
    let mut all = notices(&rules(), &[channel("lab", "slack")]);
    all.apply(&alert("hot", "a", T, &[]), T);
    assert_eq!(all.poll(T + MINUTE).len(), 1);
    let wrote: Vec<String> = all.changed_rows().into_iter().filter(|r| r.bytes.is_some()).map(|r| r.key).collect();
    assert_eq!(wrote.len(), 2);
    all.set_channels(&[]);
    let gone: Vec<String> = all.changed_rows().into_iter().filter(|r| r.bytes.is_none()).map(|r| r.key).collect();
    assert_eq!(gone, wrote);
}

/// Series that flap, for an hour at one sample in 10 s: maximum number of notices of a channel, and number of alerts.
fn storm(machines: usize, each: usize, period: usize, groups: usize) -> (usize, usize, usize) {
    let catalog = catalog();
    let hot = rule("hot", "gpu.*.temp > 85 C for 10s, until < 82 C for 10s");
    let mut engine = Engine::new(T);
    engine.set_rules(std::slice::from_ref(&hot), &catalog, T);
    let metric = catalog.position("gpu.{i}.temp").expect("a row");
    for machine in 0..machines {
        let labels = BTreeMap::from([("group".to_string(), format!("g{}", machine % groups))]);
        let name = format!("n{machine}");
        engine.source(&Machine { id: name.clone(), name: name.clone(), interval_ms: 10_000, labels });
        (0..each)
            .for_each(|i| engine.define(&name, i as u32, &SeriesDef { metric, instance: i.to_string() }, &catalog));
    }
    let mut all = notices(&[hot], &[channel("lab", "slack"), channel("ops", "email")]);
    let (mut sent, mut subjects, mut rows) = (BTreeMap::<String, usize>::new(), BTreeSet::new(), 0);
    for step in 0..360usize {
        let now = T + step as i64 * 10_000;
        for machine in 0..machines {
            // On every second machine they change four times as slowly: too seldom to count as flapping.
            let period = if machine % 2 == 0 { period } else { period * 4 };
            let hot = |i: usize| ((step + machine * 7 + i * 13) % period) * 2 < period;
            let values: Vec<f64> = (0..each).map(|i| if hot(i) { 90.0 } else { 70.0 }).collect();
            engine.tick(&Tick { source: &format!("n{machine}"), t: now, now, clock_step: false, values: &values });
        }
        for change in engine.take() {
            if change.what != What::Pending && change.what != What::Dropped {
                rows += 1;
            }
            if change.what == What::Fired {
                subjects.insert(change.alert.subject.clone());
            }
            all.apply(&change, now);
        }
        for due in all.poll(now) {
            *sent.entry(due.channel).or_default() += 1;
        }
    }
    (sent.values().copied().max().unwrap_or(0), subjects.len(), rows)
}

#[test]
fn ten_thousand_series_that_flap_for_an_hour_are_few_notices_and_all_in_the_history() {
    for (machines, each, groups) in [(1000, 10, 1000), (20, 100, 1), (20, 100, 2)] {
        let (most, subjects, rows) = storm(machines, each, 12, groups);
        assert!(most <= 26, "{most} notices of {machines} machines in {groups} groups");
        assert!(most >= 1);
        assert_eq!(subjects, machines * each);
        // A subject that changes seldom enough is reported each time; one that flaps has five alerts and a row each
        // half hour.
        assert!(rows <= subjects * 16, "{rows}");
    }
}
