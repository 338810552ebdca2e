//! Records over an in-memory link, and remarks of the hub about a machine.

use super::*;
use shared::agent::{Offer, encode_records};
use shared::catalog::link::CLOCK_SKEW;
use shared::record::Record;

fn record(n: u64, t: i64) -> Record {
    Record { n, t: NOW + t, kind: "marker".into(), body: n.to_string().into_bytes() }
}

/// Number and time since [`NOW`] of the records that the hub has.
fn kept(hub: &Hub) -> Vec<(u64, i64)> {
    let store = hub.live.store();
    let all = store.records_since(store.named(KEY).expect("it is known"), 0);
    all.iter().map(|placed| (placed.record.n, placed.record.t - NOW)).collect()
}

fn remarks(hub: &Hub) -> Vec<String> {
    let store = hub.live.store();
    let (checks, _) = store.checks(store.named(KEY).expect("it is known"));
    checks.iter().map(|check| check.found.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn records_are_kept_once_in_order_and_those_that_cannot_be_are_counted() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.clock(0).await;
    agent.bytes(encode_records(&[record(5, 0), record(6, 1_000)])).await;
    agent.acknowledged(1).await;
    let wrong_kind = Record { kind: "No Kind".into(), ..record(8, 0) };
    agent.bytes(encode_records(&[record(6, 1_000), record(7, -14 * HOUR), wrong_kind, record(9, 2_000)])).await;
    agent.acknowledged(2).await;
    assert_eq!(kept(&hub), [(5, 0), (6, 1_000), (9, 2_000)]);
    assert_eq!((hub.refused("record"), hub.refused("time"), hub.ingest.counts().duplicates), (1, 1, 1));
    agent.bytes(encode_records(&[record(u64::MAX, 0)])).await;
    agent.acknowledged(3).await;
    assert_eq!(hub.refused("record"), 2);
    agent.cut().await;
    let mut agent = hub.connect(KEY);
    agent.send_message(&AgentMessage::Hello(Box::new(hello(1)))).await;
    let HubMessage::Welcome(welcome) = agent.receive_message().await else { panic!("no welcome") };
    assert_eq!(welcome.record, 9, "what happened behind it is sent");
}

#[tokio::test(start_paused = true)]
async fn records_wait_until_the_clock_is_known_and_move_with_it() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.bytes(encode_records(&[record(1, HOUR)])).await;
    agent.acknowledged(1).await;
    assert_eq!(kept(&hub), []);
    agent.clock(HOUR).await;
    agent.bytes(encode_records(&[record(2, HOUR + 1_000)])).await;
    agent.acknowledged(2).await;
    assert_eq!(kept(&hub), [(1, 0), (2, 1_000)]);
    assert_eq!(hub.refused("time"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_is_said_and_is_a_series_of_the_machine() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    agent.clock(HOUR).await;
    agent.tick(9, HOUR, &[1.0]).await;
    agent.acknowledged(1).await;
    let skew = hub.samples().into_iter().find(|(tag, _)| tag == CLOCK_SKEW.tag).map(|(_, samples)| samples);
    assert_eq!(skew, Some(vec![(0, 3_600.0)]));
    agent.send_message(&AgentMessage::Checks(Vec::new())).await;
    agent.tick(10, HOUR + 1_000, &[1.0]).await;
    agent.acknowledged(2).await;
    assert_eq!(remarks(&hub), ["clock 1 h ahead, corrected"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_no_longer_has_is_said() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    agent.tick(2_000_000_000, -2 * HOUR, &[1.0]).await;
    agent.acknowledged(1).await;
    agent.cut().await;
    let mut agent = hub.connect(KEY);
    let offers = vec![Offer { first: 2_000_050_000, last: u64::MAX, from: NOW - 60_000, to: i64::MAX }];
    let hello = shared::agent::AgentHello { offers, started: NOW - 3 * HOUR, ..hello(1) };
    agent.send_message(&AgentMessage::Hello(Box::new(hello))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    agent.clock(0).await;
    agent.send_message(&AgentMessage::Checks(Vec::new())).await;
    agent.tell(0, 0, "a").await;
    agent.tick(2_000_050_060, 0, &[1.0]).await;
    agent.acknowledged(1).await;
    assert_eq!(remarks(&hub), ["lost 1 h 59 min: longer than node-7 keeps"]);
    assert_eq!(hub.ingest.counts().lag_ms, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_of_a_machine_or_held_back_is_said_and_counted() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.clock(0).await;
    assert_eq!(remarks(&hub), Vec::<String>::new());
    let labels = vec![("No label".to_owned(), "x".to_owned())];
    agent.send_message(&AgentMessage::Facts { host: "host-1".into(), facts: Vec::new(), labels }).await;
    agent.tell(0, 0, "a").await;
    // More than the ticks of a minute: the acknowledgment is delayed, and arrives.
    agent.fast(1, 700).await;
    agent.acknowledged(1).await;
    assert_eq!((hub.refused("label"), hub.refused("pace")), (1, 1));
    agent.clock(0).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    agent.beat().await;
    agent.clock(0).await;
    assert_eq!(remarks(&hub), ["dropped or delayed: label 1, pace 1"]);
    hub.ingest.turned_away(crate::ingest::Cause::Handshake);
    assert_eq!(hub.refused("handshake"), 1);
}
