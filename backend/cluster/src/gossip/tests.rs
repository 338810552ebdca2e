//! Two hubs: machines of one are shown by the other.

use super::receive::GossipReceiver;
use super::send::GossipSender;
use crate::others::is_linked_elsewhere;
use shared::catalog::fleet::{EACH_TEMP, GPU_BUSY, Grain, place, rows};
use shared::catalog::{Catalog, gpu};
use shared::connection_state::ConnectionState;
use shared::scope::Scope;
use shared::series::SeriesDef;
use shared::tick::TickState;
use shared::wire::{Received, ServerMessage, decode_server};
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Manual;
use stream::live::{Holder, KnownIndex, LinkFigures, Live, OverviewPlace};
use stream::store::{Limits, Store};
use watch::findings::testing::finding;
use watch::findings::{FindingRegistry, WantedFindings};

const T: i64 = 1_790_000_000_000;

struct Hub {
    live: Arc<Live>,
    clock: Arc<Manual>,
    findings: Arc<FindingRegistry>,
}

fn hub() -> Hub {
    let clock = Arc::new(Manual::at(T, Duration::from_secs(1_000)));
    let catalog = Catalog::new(gpu::ROWS.iter().copied());
    let store = Store::new(Arc::new(catalog), Limits { retention: 3_600_000, bytes: usize::MAX });
    Hub { live: Live::new(store, clock.clone(), 1, 3_600_000), clock, findings: Arc::default() }
}

/// The newest values of a row, as a page shows them, by machine key.
fn shown(live: &Live, grain: Grain, row: &shared::catalog::fleet::FleetRow) -> Vec<(String, String, Option<f64>)> {
    let (overview, _) = live.overview(grain, &Scope::All);
    overview.beat(live);
    let (messages, frames) = overview.next(&mut OverviewPlace::default()).expect("it is new");
    let (mut all, mut state) = (Vec::new(), TickState::default());
    for message in messages {
        let ServerMessage::Cells { cells, .. } = message else { panic!("cells") };
        state.extend(cells.iter().flat_map(|_| rows(grain)).map(|row| row.steps));
        all.extend(cells);
    }
    let Ok(Received::Overview(_, frames)) = decode_server(&frames) else { panic!("frames") };
    for frame in frames {
        state.apply(frame).expect("a keyframe");
    }
    let (count, own) = (rows(grain).len(), place(grain, row).expect("a row"));
    let mut shown: Vec<_> = (0..)
        .zip(all)
        .filter_map(|(at, cell)| {
            let key = live.store().source(cell.source?)?.0.key.clone();
            Some((key, cell.instance, Some(state.values()[at * count + own]).filter(|value| value.is_finite())))
        })
        .collect();
    shown.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    shown
}

fn stands(live: &Live) -> Vec<(String, &'static str, i64)> {
    let index = live.index(&Scope::All, &mut KnownIndex::default());
    index.into_iter().map(|entry| (entry.key, entry.state.as_str(), entry.since)).collect()
}

fn tick(hub: &Hub, source: u16, values: &[f64]) {
    let now = hub.live.clock.wall();
    hub.live.append(source, now, false, values).expect("it is not closed");
    hub.live.announce(&[source]);
}

#[test]
fn what_one_hub_holds_the_other_shows_until_it_is_silent() {
    let (one, two) = (hub(), hub());
    let (mut sayer, mut hearer) = (
        GossipSender::new(one.live.clone(), one.findings.clone()),
        GossipReceiver::new(two.live.clone(), two.findings.clone()),
    );
    // The two hubs number machines differently.
    let own = two.live.store().add_source("own".into(), 1_000, Vec::new());
    let there = two.live.store().add_source("node-b".into(), 1_000, Vec::new());
    two.live.set_holder(there, Holder::Nobody);
    for name in ["node-a", "node-b"] {
        let source = one.live.store().add_source(name.into(), 1_000, vec![("name".into(), format!("called {name}"))]);
        let mut store = one.live.store();
        let position = |tag: &str| store.catalog().position(tag).expect("a row");
        let defs = [gpu::UTILIZATION.tag, gpu::TEMP.tag].map(position);
        for (metric, instance) in [(defs[0], "0"), (defs[0], "1"), (defs[1], "0")] {
            store.intern(source, SeriesDef { metric, instance: instance.into() }).expect("room");
        }
    }
    one.live.set_labels(1, vec![("rack".into(), "r1".into())]);
    one.live.set_link_figures(1, LinkFigures { version: Some("9.9".into()), ..LinkFigures::default() });
    tick(&one, 0, &[20.0, 40.0, 55.0]);
    tick(&one, 1, &[60.0, 80.0, 65.0]);
    let mut wrong = finding("hang", "called node-a", T / 1000, None);
    wrong.subject[0].gpus = vec![1];
    one.findings.take(wrong.clone(), |_| Some("node-a".into()));
    let mut say = |anew| sayer.beat(anew);
    let mut hear = |words: Vec<Vec<u8>>| words.iter().for_each(|word| hearer.receive("one", word));
    // The first message of all.
    let first = say(false);
    // A machine that this hub does not know has no holder until a message names one.
    two.live.store().add_source("node-a".into(), 1_000, Vec::new());
    two.live.set_holder(2, Holder::There);
    two.live.set_holder(there, Holder::There);
    hear(first);
    assert_eq!(
        stands(&two.live),
        [("own".into(), "live", T), ("node-b".into(), "live", T), ("node-a".to_string(), "live", T)]
    );
    let is_elsewhere = |key: &str| is_linked_elsewhere(&two.live, key);
    assert!(is_elsewhere("node-b") && !is_elsewhere("own") && !is_elsewhere("unknown"));
    let node_b = two.live.source(there);
    assert_eq!(node_b.labels(), [("rack".to_string(), "r1".to_string())]);
    assert_eq!(node_b.figures().version.as_deref(), Some("9.9"));
    assert_eq!(two.live.store().source(there).map(|(source, _)| source.name.clone()).as_deref(), Some("called node-b"));
    let busy = |live: &Live| shown(live, Grain::Sources, &GPU_BUSY);
    let value = |key: &str, value| (key.to_string(), String::new(), value);
    assert_eq!(busy(&two.live), [value("node-a", Some(30.0)), value("node-b", Some(70.0)), value("own", None)]);
    let gpus = shown(&two.live, Grain::Gpus, &EACH_TEMP);
    let gpu_of = |key: &str, gpu: &str, value| (key.to_string(), gpu.to_string(), value);
    assert_eq!(
        gpus,
        [
            gpu_of("node-a", "0", Some(55.0)),
            gpu_of("node-a", "1", None),
            gpu_of("node-b", "0", Some(65.0)),
            gpu_of("node-b", "1", None)
        ]
    );
    let ids = |registry: &FindingRegistry, sees: &str| {
        let seen = registry.seen(&WantedFindings { active: true, ..WantedFindings::default() }, |key| key == sees);
        seen.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&two.findings, "node-a"), [wrong.id.clone()]);
    assert_eq!(ids(&two.findings, "node-b"), [""; 0], "it is another's to see");
    // Changes are sent without a request, and take few bytes.
    for hub in [&one, &two] {
        hub.clock.pass(Duration::from_secs(1));
    }
    tick(&one, 1, &[62.0, 80.0, 65.0]);
    tick(&two, own, &[]);
    wrong.until = Some(T / 1000 + 1);
    one.findings.take(wrong, |_| Some("node-a".into()));
    let words = say(false);
    let bytes: usize = words.iter().map(Vec::len).sum();
    assert!(bytes < 700, "{bytes} bytes, the finding among them");
    hear(words);
    assert_eq!(busy(&two.live)[1], value("node-b", Some(71.0)));
    assert_eq!(ids(&two.findings, "node-a"), [""; 0], "it is over");
    // A machine that another hub holds by now stays with that hub, whoever reports it.
    one.live.set_holder(0, Holder::There);
    two.live.set_holder(2, Holder::Here);
    hear(say(false));
    assert_eq!(busy(&two.live)[0], value("node-a", None), "it has not ticked here");
    // Three beats of silence.
    two.clock.pass(Duration::from_secs(2));
    hearer.mark_silent_hubs();
    assert_eq!(stands(&two.live)[1].1, "live");
    two.clock.pass(Duration::from_secs(1));
    hearer.mark_silent_hubs();
    assert_eq!(stands(&two.live)[1], ("node-b".into(), "unreachable", T + 4_000));
    assert!(!is_elsewhere("node-b"), "nobody knows of a link");
    assert_eq!(busy(&two.live)[1], value("node-b", None));
    assert_eq!((hearer.figures().hubs, hearer.figures().refused), (0, 0));
    // The silent hub returns.
    sayer.beat(true).iter().for_each(|word| hearer.receive("one", word));
    assert_eq!(stands(&two.live)[1].1, "live");
    assert_eq!(busy(&two.live)[1], value("node-b", Some(71.0)));
}

#[test]
fn a_beat_that_was_lost_is_made_good_by_the_next_whole_one_and_bad_words_say_nothing() {
    let (one, two) = (hub(), hub());
    let (mut sayer, mut hearer) = (
        GossipSender::new(one.live.clone(), one.findings.clone()),
        GossipReceiver::new(two.live.clone(), two.findings.clone()),
    );
    let source = one.live.store().add_source("node-a".into(), 1_000, Vec::new());
    {
        let mut store = one.live.store();
        let metric = store.catalog().position(gpu::UTILIZATION.tag).expect("a row");
        store.intern(source, SeriesDef { metric, instance: "0".into() }).expect("room");
    }
    two.live.store().add_source("node-a".into(), 1_000, Vec::new());
    two.live.set_holder(0, Holder::There);
    let mut say = |value: f64, anew| {
        one.clock.pass(Duration::from_secs(1));
        tick(&one, 0, &[value]);
        sayer.beat(anew)
    };
    let mut hear = |words: Vec<Vec<u8>>| words.iter().for_each(|word| hearer.receive("one", word));
    let busy = || shown(&two.live, Grain::Sources, &GPU_BUSY)[0].2;
    hear(say(10.0, false));
    assert_eq!(busy(), Some(10.0));
    say(20.0, false);
    hear(say(30.0, false));
    assert_eq!(busy(), Some(10.0), "what does not follow is not applied");
    hear(say(40.0, true));
    assert_eq!(busy(), Some(40.0));
    hearer.receive("one", b"");
    hearer.receive("one", &[7, 255, 255, 255]);
    hearer.receive("one", &[3, 1, 1]);
    assert_eq!(hearer.figures().refused, 3);
    assert_eq!(stands(&two.live)[0].1, ConnectionState::Live.as_str());
}

#[test]
fn who_asks_for_records_is_given_them_in_order() {
    let hub = hub();
    let source = hub.live.store().add_source("host-1".into(), 1_000, Vec::new());
    for n in 1..=3 {
        hub.live.append_record_at(source, n, T, "run.begin", vec![n as u8]).expect("a record").expect("it is new");
    }
    let given = |key: &str, behind: u64| -> Vec<u64> {
        let wanted = super::message::WantedRecords { key: key.into(), behind };
        super::records::behind(&hub.live, &wanted).iter().map(|record| record.n).collect()
    };
    assert_eq!(given("host-1", 0), [1, 2, 3]);
    assert_eq!(given("host-1", 2), [3]);
    assert_eq!(given("host-2", 0), [0u64; 0]);
}
