//! Missing ticks are requested, checked, and stored once.

use super::*;
use shared::agent::{AgentHello, FillDamage, FillPart, FillState, Offer, encode_damage};
use shared::wire::ColumnBytes;

/// A linked agent with these ranges, of which the last is open; its newest tick is 1,000, at [`NOW`]. Its clock is
/// `ahead` milliseconds ahead.
async fn offering(hub: &Hub, offers: Vec<Offer>, ahead: i64) -> Agent {
    let mut agent = hub.connect(KEY);
    agent.send_message(&AgentMessage::Hello(Box::new(AgentHello { offers, seq: 1_000, ..hello(1) }))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    agent.tell(0, 0, "a").await;
    agent.clock(ahead).await;
    agent.tick(1_000, ahead, &[1_000.0]).await;
    agent
}

fn open(first: u64) -> Vec<Offer> {
    vec![Offer { first, last: u64::MAX, from: NOW - 1_000 * (1_000 - first as i64), to: i64::MAX }]
}

fn covered(hub: &Hub) -> Vec<(u64, u64)> {
    let store = hub.live.store();
    store.coverage(store.named(KEY).expect("it is known"))
}

/// Waits until the hub has processed everything sent so far, because it answers the last message.
async fn settled(agent: &mut Agent) {
    agent.clock(0).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_lacking_is_asked_for_and_can_be_read_at_once() {
    let hub = Hub::new();
    let mut agent = offering(&hub, open(900), 0).await;
    let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
    assert_eq!((first, last), (900, 999));
    assert!(matches!(hub.connection_state(), ConnectionState::Filling { .. } | ConnectionState::Live));
    let told = |hub: &Hub| {
        let source = hub.live.store().named(KEY).expect("it is known");
        hub.live.source(source).figures().holes
    };
    settled(&mut agent).await;
    assert_eq!(told(&hub), [(NOW - 100_000, NOW - 1_000)], "readers are told what is on its way");
    // In two blocks, the first in two parts; live ticks go on between them.
    let whole = Agent::block(id, 900, 949, -100_000);
    agent.fill(&FillPart { columns: Vec::new(), more: true, ..whole.clone() }).await;
    agent.tick(1_001, 1_000, &[1_001.0]).await;
    agent.fill(&FillPart { times: Vec::new(), ..whole }).await;
    agent.fill(&Agent::block(id, 950, 999, -50_000)).await;
    agent.fill_end(id, FillState::Whole).await;
    assert_eq!(agent.wanted().await, None, "nothing is lacking");
    assert_eq!(covered(&hub), [(900, 1_001)]);
    assert_eq!(told(&hub), []);
    let samples = hub.samples().remove(0).1;
    assert_eq!(samples, (900..=1_001).map(|seq| ((seq - 1_000) * 1_000, seq as f64)).collect::<Vec<_>>());
    assert_eq!(hub.connection_state(), ConnectionState::Live);
    let counts = hub.ingest.counts();
    assert_eq!((counts.fills, counts.ticks, counts.duplicates), (1, 102, 0));
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_does_not_have_is_asked_for_once_and_again_over_the_next_link() {
    let hub = Hub::new();
    let offers = vec![Offer { first: 10, last: 19, from: NOW - 7_200_000, to: NOW - 7_191_000 }, open(990).remove(0)];
    let mut agent = offering(&hub, offers.clone(), 0).await;
    let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
    assert_eq!((first, last), (990, 999), "the last hour comes first");
    agent.fill_end(id, FillState::Gone).await;
    let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
    assert_eq!((first, last), (10, 19));
    agent.fill(&Agent::block(id, 10, 12, -7_200_000)).await;
    agent.fill_end(id, FillState::Whole).await;
    assert_eq!(agent.wanted().await, None, "the rest did not come");
    agent.cut().await;
    let mut agent = offering(&hub, offers, 0).await;
    let asked = [agent.wanted().await, agent.wanted().await];
    assert_eq!(asked.map(|want| want.map(|(_, first, last)| (first, last))), [Some((990, 999)), None]);
}

#[tokio::test(start_paused = true)]
async fn after_an_hour_or_nearly_twelve_without_a_link_live_comes_first_and_then_all_once() {
    for away in [3_600, 12 * 3_600 - 60] {
        let hub = Hub::new();
        let mut agent = offering(&hub, open(1_000), 0).await;
        agent.acknowledged(1).await;
        agent.cut().await;
        hub.clock.pass(Duration::from_secs(away));
        let (newest, ms) = (1_000 + away, away as i64 * 1_000);
        let mut agent = hub.connect(KEY);
        let said = AgentHello { offers: open(1_000), seq: newest, now: NOW + ms, ..hello(1) };
        agent.send_message(&AgentMessage::Hello(Box::new(said))).await;
        assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
        agent.tell(0, 0, "a").await;
        agent.tick(newest, ms, &[newest as f64]).await;
        agent.clock(ms).await;
        assert_eq!(covered(&hub), [(1_000, 1_000), (newest, newest)], "the newest is there before what is lacking");
        let mut asked = 0;
        while let Some((id, first, last)) = agent.wanted().await {
            assert!(last - first < 3_600, "an hour at once");
            agent.fill(&Agent::block(id, first, last, (first as i64 - 1_000) * 1_000)).await;
            agent.fill_end(id, FillState::Whole).await;
            asked += 1;
        }
        assert!(asked >= away / 3_600, "{asked} ranges of {away} s");
        assert_eq!(covered(&hub), [(1_000, newest)]);
        let wanted: Vec<(i64, f64)> = (1_000..=newest).map(|seq| ((seq as i64 - 1_000) * 1_000, seq as f64)).collect();
        assert_eq!(hub.samples().remove(0).1, wanted);
        let counts = hub.ingest.counts();
        assert_eq!((counts.ticks, counts.duplicates, counts.missing_ms), (away + 1, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_damaged_block_is_asked_for_once_more_and_then_left_as_a_gap() {
    let hub = Hub::new();
    let mut agent = offering(&hub, open(990), 0).await;
    for _ in 0..2 {
        let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
        assert_eq!((first, last), (990, 999));
        let damaged =
            FillPart { columns: vec![(0, ColumnBytes(vec![0xff; 9]))], ..Agent::block(id, 990, 999, -10_000) };
        agent.fill(&damaged).await;
        agent.fill_end(id, FillState::Whole).await;
    }
    assert_eq!(agent.wanted().await, None);
    assert_eq!(hub.refused("fill"), 2);
    assert_eq!(covered(&hub), [(1_000, 1_000)]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_is_corrected_live_and_in_what_is_fetched() {
    const AHEAD: i64 = 3_600_000;
    let hub = Hub::new();
    let mut agent = offering(&hub, open(998), AHEAD).await;
    let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
    assert_eq!((first, last), (998, 999));
    agent.fill(&Agent::block(id, 998, 999, AHEAD - 2_000)).await;
    agent.fill_end(id, FillState::Whole).await;
    settled(&mut agent).await;
    assert_eq!(hub.samples()[0].1, [(-2_000, 998.0), (-1_000, 999.0), (0, 1_000.0)]);
    assert_eq!(hub.refused("time"), 0);
}

#[tokio::test(start_paused = true)]
async fn fills_of_other_ranges_of_other_numbers_or_too_slow_end_the_link() {
    let hub = Hub::new();
    for wrong in [(7, 990, 999), (1, 980, 989), (1, 1_000, 1_000)] {
        let mut agent = offering(&hub, open(990), 0).await;
        assert_eq!(agent.wanted().await, Some((1, 990, 999)));
        agent.fill(&Agent::block(wrong.0, wrong.1, wrong.2, -10_000)).await;
        assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR);
        agent.cut().await;
    }
    assert_eq!((hub.refused("fill"), covered(&hub)), (3, vec![(1_000, 1_000)]));
    let mut agent = offering(&hub, open(990), 0).await;
    assert_eq!(agent.wanted().await, Some((1, 990, 999)));
    for _ in 0..7 {
        hub.clock.pass(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_secs(10)).await;
        agent.beat().await;
    }
    let (code, reason, _) = agent.goodbye().await;
    assert_eq!(code, close::FRAME_ERROR);
    assert!(reason.contains("slower"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn nothing_below_the_numbers_of_clocks_is_asked_for_where_the_hub_has_ticks() {
    let hub = Hub::new();
    let mut agent = offering(&hub, open(1_000), 0).await;
    assert_eq!(agent.wanted().await, None);
    agent.cut().await;
    let mut agent = hub.connect(KEY);
    let offers = vec![Offer { first: 3, last: 9, from: NOW - 9_000, to: NOW - 3_000 }];
    let hello = AgentHello { offers, life: 2_000_000_000, seq: 2_000_000_000, ..hello(1) };
    agent.send_message(&AgentMessage::Hello(Box::new(hello))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    agent.tell(0, 0, "a").await;
    agent.clock(0).await;
    agent.tick(2_000_000_000, 9_000, &[1.0]).await;
    assert_eq!(agent.wanted().await, None);
}

#[tokio::test(start_paused = true)]
async fn the_last_tick_of_an_earlier_life_that_comes_without_values_is_fetched() {
    let hub = Hub::new();
    let mut agent = offering(&hub, open(900), 0).await;
    agent.acknowledged(1).await;
    agent.cut().await;
    // It was killed after the tick 1,002, which has not arrived, and an old agent begins with that one.
    let mut agent = hub.connect(KEY);
    let said = AgentHello { offers: open(1_000), seq: 1_002, ..hello(1) };
    agent.send_message(&AgentMessage::Hello(Box::new(said))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    agent.tell(0, 0, "a").await;
    agent.tick(1_002, 2_000, &[f64::NAN]).await;
    agent.clock(0).await;
    assert_eq!(covered(&hub), [(1_000, 1_000)], "nothing is known of it");
    agent.tick(1_050, 5_000, &[1_050.0]).await;
    agent.acknowledged(2).await;
    let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
    assert_eq!((first, last), (1_001, 1_049));
    agent.fill(&Agent::block(id, 1_001, 1_002, 1_000)).await;
    agent.fill_end(id, FillState::Whole).await;
    settled(&mut agent).await;
    let samples = hub.samples().remove(0).1;
    assert_eq!(samples, [(0, 1_000.0), (1_000, 1_001.0), (2_000, 1_002.0), (5_000, 1_050.0)]);
    // A tick without values among others is valid: nothing could be read.
    agent.tick(1_051, 6_000, &[f64::NAN]).await;
    agent.acknowledged(3).await;
    assert_eq!(covered(&hub), [(1_000, 1_002), (1_050, 1_051)]);
}

#[tokio::test(start_paused = true)]
async fn a_column_without_a_name_is_asked_for_once_more_and_the_others_are_kept_then() {
    let hub = Hub::new();
    let mut agent = offering(&hub, open(980), 0).await;
    let with_unnamed = |id, first, last| {
        let block = Agent::block(id, first, last, (first as i64 - 1_000) * 1_000);
        let column = block.columns[0].1.clone();
        FillPart { columns: vec![block.columns[0].clone(), (7, column)], ..block }
    };
    let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
    assert_eq!((first, last), (980, 999));
    agent.fill(&with_unnamed(id, 980, 989)).await;
    agent.fill(&with_unnamed(id, 990, 999)).await;
    agent.fill_end(id, FillState::Whole).await;
    let (id, first, last) = agent.wanted().await.expect("ticks are lacking");
    assert_eq!(((first, last), hub.refused("unnamed")), ((980, 999), 2));
    // The name of one has arrived meanwhile.
    agent.fill(&with_unnamed(id, 980, 989)).await;
    agent.tell(0, 7, "b").await;
    agent.fill(&with_unnamed(id, 990, 999)).await;
    agent.fill_end(id, FillState::Whole).await;
    assert_eq!(agent.wanted().await, None);
    assert_eq!((covered(&hub), hub.refused("unnamed")), (vec![(980, 1_000)], 3));
    let own = hub.samples().into_iter().filter(|(tag, _)| *tag == cpu::ROWS[0].tag_of("a"));
    let values: Vec<f64> = own.flat_map(|(_, samples)| samples.into_iter().map(|(_, value)| value)).collect();
    assert_eq!(values, (980..=1_000).chain(990..1_000).map(f64::from).collect::<Vec<_>>(), "those of a, and of b");
}

#[tokio::test(start_paused = true)]
async fn what_is_damaged_on_the_disk_of_an_agent_is_counted_and_said() {
    let hub = Hub::new();
    let mut agent = offering(&hub, open(990), 0).await;
    let (id, ..) = agent.wanted().await.expect("ticks are lacking");
    agent.fill(&Agent::block(id, 990, 999, -10_000)).await;
    agent.bytes(encode_damage(&FillDamage { id, places: 3 })).await;
    agent.fill_end(id, FillState::Whole).await;
    assert_eq!(agent.wanted().await, None, "nobody has it");
    assert_eq!(hub.refused("damaged"), 3);
    let source = hub.live.store().named(KEY).expect("it is known");
    let checks = hub.live.store().checks(source).0;
    let said = checks.iter().find(|check| check.id == "damaged").map(|check| check.found.clone());
    assert_eq!(said.as_deref(), Some("missing: 3 damaged parts of the history of node-7"));
    agent.bytes(encode_damage(&FillDamage { id, places: 3 })).await;
    assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR, "nothing was asked for");
}
