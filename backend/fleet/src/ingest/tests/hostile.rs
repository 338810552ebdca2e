//! Messages of a malicious agent.

use super::agent::{hello, row};
use super::{HOUR, Hub, KEY, NOW};
use crate::ingest::IngestLimits;
use shared::agent::{
    AgentHello, AgentMessage, CONTROL, HubMessage, MAX_MESSAGE, MAX_SERIES_IDS, MAX_TEXT_BYTES, close, encode,
    encode_ticks,
};
use shared::catalog::cpu;
use shared::connection_state::ConnectionState;
use shared::series::SeriesDef;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_message_end_the_link() {
    let hub = Hub::new();
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let heartbeat_and_more = [encode(&AgentMessage::Heartbeat), vec![0]].concat();
    for bytes in
        [vec![], [&[CONTROL, 1][..], &huge].concat(), heartbeat_and_more, vec![1, 200], encode_ticks([&[255; 9][..]])]
    {
        let mut agent = hub.agent().await;
        agent.bytes(bytes.clone()).await;
        assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR, "{bytes:?}");
    }
    let mut agent = hub.connect(KEY);
    agent.send_message(&AgentMessage::Heartbeat).await;
    assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR, "a hello comes first");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_is_not_waited_for() {
    let hub = Hub::new();
    let mut agent = hub.connect(KEY);
    assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR);
}

#[tokio::test(start_paused = true)]
async fn series_beyond_the_limit_are_left_out_and_the_others_stay() {
    let hub = Hub::with(IngestLimits { series: 3, rows: 1 });
    let mut agent = hub.agent().await;
    for id in 0..5 {
        agent.tell(0, id, &format!("{id}")).await;
    }
    agent.tick(9, 0, &[1.0, 2.0, 3.0, 4.0, 5.0]).await;
    agent.acknowledged(1).await;
    assert_eq!(hub.samples().len(), 3);
    assert_eq!(hub.refused("series"), 2);
    let rows = (1..).zip(["own.a.{x}", "own.b.{x}", "own.c.{x}"].map(row)).collect();
    agent.send_message(&AgentMessage::Rows { rows, charts: Vec::new() }).await;
    agent.tick(10, 1_000, &[1.0]).await;
    agent.acknowledged(2).await;
    assert_eq!(hub.refused("rows"), 2);
}

#[tokio::test(start_paused = true)]
async fn names_that_would_fill_memory_end_the_link() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    let def = SeriesDef { metric: 0, instance: "b".into() };
    agent.send_message(&AgentMessage::Series { defs: vec![(MAX_SERIES_IDS, def)] }).await;
    assert_eq!(agent.goodbye().await.0, close::LIMIT);
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    // A slot for each ID up to this one, and then names: together they exceed the limit, each alone does not.
    let def = SeriesDef { metric: 0, instance: "b".into() };
    agent.send_message(&AgentMessage::Series { defs: vec![(MAX_SERIES_IDS - 1, def)] }).await;
    agent.tell(0, 1, "c").await;
    for part in 0..10 {
        let def = |id| (id, SeriesDef { metric: 0, instance: "x".repeat(500) });
        agent.bytes(encode(&AgentMessage::Series { defs: (part * 500..(part + 1) * 500).map(def).collect() })).await;
    }
    assert_eq!(agent.goodbye().await.0, close::LIMIT);
    assert!(matches!(hub.connection_state(), ConnectionState::Refused(_)));
}

#[tokio::test(start_paused = true)]
async fn texts_that_a_terminal_would_heed_are_left_out() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    let mut evil = row("own.{x}");
    evil.title = "\u{1b}]0;owned\u{7}".into();
    let mut aliases = row("mine.{x}");
    aliases.aliases = vec![cpu::ROWS[1].tag.into()];
    agent
        .send_message(&AgentMessage::Rows {
            rows: vec![(0, evil), (1, row(cpu::ROWS[0].tag)), (2, aliases)],
            charts: Vec::new(),
        })
        .await;
    let def = |metric, instance: &str| SeriesDef { metric, instance: instance.into() };
    agent.series(&[(0, def(0, "a"), 100.0), (1, def(1, "\u{202e}b"), 100.0), (2, def(2, "c"), 100.0)]).await;
    agent.tick(9, 0, &[1.0, 2.0, 3.0]).await;
    agent.acknowledged(1).await;
    assert_eq!(hub.samples(), [("mine.c".to_owned(), vec![(0, 3.0)])]);
    assert_eq!(hub.refused("text"), 2);
    let store = hub.live.store();
    assert!(store.catalog().metrics.iter().all(|metric| metric.tag != "mine.{x}" || metric.aliases.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn absurd_times_and_numbers_are_refused() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    for (seq, t) in [(9, -13 * HOUR), (10, HOUR), (11, -NOW), (12, i64::MAX / 2 - NOW)] {
        agent.tick(seq, t, &[1.0]).await;
    }
    agent.tick(13, 1_000, &[1.0]).await;
    assert_eq!(agent.acknowledged(5).await, 13);
    assert_eq!(hub.refused("time"), 4);
    assert_eq!(hub.samples()[0].1, [(1_000, 1.0)]);
    agent.tick(1 << 60, 2_000, &[1.0]).await;
    assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR);
}

#[tokio::test(start_paused = true)]
async fn what_comes_faster_than_256_kib_a_second_waits_and_none_of_it_is_lost() {
    const RATE: f64 = (256 << 10) as f64;
    const BURST: f64 = (1 << 20) as f64;
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "0").await;
    let defs: Vec<_> = (1..2_000).map(|id| (id, SeriesDef { metric: 0, instance: format!("{id}") }, 0.0)).collect();
    agent.series(&defs).await;
    let told = hub.ingest.counts().bytes;
    let (mut seq, mut waited) = (0, 0.0);
    while waited < 2.0 {
        seq += 1;
        // Values without a pattern take eight bytes each.
        let value =
            |id: u64| f64::from_bits(0x3ff0_0000_0000_0000 | (id * seq).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12);
        let begin = tokio::time::Instant::now();
        agent.tick(seq, seq as i64, &(0..2_000).map(value).collect::<Vec<_>>()).await;
        agent.acknowledged(seq as u32).await;
        waited = begin.elapsed().as_secs_f64();
        // The hub's clock does not advance, so no debt is paid.
        let due = (((hub.ingest.counts().bytes - told) as f64 - BURST) / RATE).max(0.0);
        assert!((waited - due).abs() < 0.1, "message {seq} waited {waited} s, not {due}");
    }
    assert!(hub.refused("pace") > 0);
    assert_eq!(hub.samples().len(), 2_000);
    let kept: Vec<u64> = hub.samples().iter().map(|(_, samples)| samples.len() as u64).collect();
    assert!(kept.iter().all(|kept| *kept == seq), "{seq}: {kept:?}");
}

#[tokio::test(start_paused = true)]
async fn more_than_is_acknowledged_ends_the_link() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    // Beyond the rate nothing is acknowledged; an agent that waits loses nothing.
    agent.fast(1, 700).await;
    for seq in 701..720 {
        agent.tick(seq, seq as i64, &[1.0]).await;
    }
    assert_eq!(agent.goodbye().await.0, close::LIMIT);
}

#[tokio::test(start_paused = true)]
async fn a_fill_that_was_not_asked_for_ends_the_link() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.send_message(&AgentMessage::FillEnd { id: 1, state: shared::agent::FillState::Whole }).await;
    assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR);
    assert_eq!(hub.refused("fill"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_beyond_the_bound_ends_the_link_and_is_counted() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.bytes(vec![CONTROL; MAX_MESSAGE + 1]).await;
    let (code, reason, _) = agent.goodbye().await;
    assert_eq!(code, close::LIMIT);
    assert!(reason.contains("524288 bytes"), "{reason}");
    assert_eq!(hub.refused("ended"), 1);
}

#[tokio::test(start_paused = true)]
async fn each_link_that_ends_for_what_came_is_counted_on_its_source() {
    let hub = Hub::new();
    for n in 1..=3 {
        let mut agent = hub.agent().await;
        agent.bytes(vec![CONTROL, 200]).await;
        assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR);
        agent.ended().await;
        assert_eq!(hub.refused("ended"), n);
    }
    let source = hub.live.store().named(KEY).expect("it is known");
    assert_eq!(hub.live.source(source).figures().refused, [("ended".to_owned(), 3)]);
    let mut agent = hub.connect(KEY);
    agent.send_message(&AgentMessage::Heartbeat).await;
    assert_eq!(agent.goodbye().await.0, close::FRAME_ERROR);
    assert_eq!((hub.refused("link"), hub.refused("ended")), (1, 3), "one without a hello was never taken in");
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_has_as_many_machines_as_it_can_keep_takes_those_that_it_knows() {
    let hub = Hub::new();
    {
        let mut store = hub.live.store();
        store.add_source(KEY.into(), 1_000, Vec::new());
        for n in 1..crate::ingest::limits::MAX_SOURCES {
            store.add_source(format!("other {n}"), 1_000, Vec::new());
        }
    }
    hub.agent().await;
    let mut new = hub.connect("bbcdefghijklmnopqrstuvwxyz");
    new.send_message(&AgentMessage::Hello(Box::new(hello(2)))).await;
    let (code, reason, _) = new.goodbye().await;
    assert!(code == close::LIMIT && reason.contains("remove some"), "{code}: {reason}");
    assert_eq!(hub.refused("link"), 1);
}

#[tokio::test(start_paused = true)]
async fn of_words_without_end_no_more_are_read_than_a_link_may_say() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    let bytes = || hub.ingest.counts().bytes;
    // The hub's clock does not advance, so the link is paused for good.
    let facts = AgentMessage::Facts {
        host: "h".into(),
        facts: vec![("a".repeat(200), "b".repeat(200)); 1_000],
        labels: Vec::new(),
    };
    let message = encode(&facts);
    let most = (8 << 20) as u64;
    let flood = async {
        for _ in 0..2 * most / message.len() as u64 {
            agent.bytes(message.clone()).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(500), flood).await.is_err(), "it is made to wait");
    assert!(bytes() > 4 << 20 && bytes() < most, "{} bytes", bytes());
    assert!(hub.refused("pace") > 0);
}

#[tokio::test(start_paused = true)]
async fn links_that_come_again_and_again_get_no_more_than_one() {
    let hub = Hub::with(IngestLimits { series: 20_000, rows: 3 });
    for link in 0..4 {
        let mut agent = hub.agent().await;
        let tags = ["own.a.{x}", "own.b.{x}", "own.c.{x}", "own.d.{x}", "own.e.{x}", "own.f.{x}"];
        let rows = (1..).zip(tags[link..link + 2].iter().map(|tag| row(tag))).collect();
        agent.send_message(&AgentMessage::Rows { rows, charts: Vec::new() }).await;
        agent.tell(0, 0, "a").await;
        // All ticks of a minute at once, each time.
        agent.fast(1 + link as u64 * 600, 600 + link as u64 * 600).await;
        if link == 0 {
            agent.acknowledged(1).await;
        }
        agent.cut().await;
    }
    assert_eq!(hub.refused("rows"), 3, "three are its own; the fourth was told twice, the fifth once");
    assert_eq!(hub.refused("pace"), 3);
}

#[tokio::test(start_paused = true)]
async fn series_that_are_told_anew_in_place_of_others_are_no_more_than_a_source_may_have() {
    let hub = Hub::with(IngestLimits { series: 10, rows: 1 });
    let mut agent = hub.agent().await;
    for n in 0..30u64 {
        agent.tell(0, 0, &format!("{n}")).await;
        agent.tick(9 + n, n as i64 * 1_000, &[1.0]).await;
        agent.acknowledged(1 + n as u32).await;
    }
    assert_eq!((hub.samples().len(), hub.refused("series")), (10, 20));
}

#[tokio::test(start_paused = true)]
async fn after_five_minutes_500_new_series_a_minute_are_taken() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    agent.tick(9, 0, &[1.0]).await;
    agent.acknowledged(1).await;
    hub.clock.pass(Duration::from_secs(301));
    agent.cut().await;
    // A new link does not get another five minutes.
    let mut agent = hub.connect(KEY);
    agent.send_message(&AgentMessage::Hello(Box::new(AgentHello { now: NOW + 301_000, ..hello(1) }))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    agent.tell(0, 0, "a").await;
    for id in 1..=600 {
        agent.tell(0, id, &format!("{id}")).await;
    }
    agent.tick(400, 300_000, &[1.0; 601]).await;
    agent.acknowledged(1).await;
    assert_eq!((hub.samples().len(), hub.refused("series_rate")), (501, 100));
}

#[tokio::test(start_paused = true)]
async fn long_texts_are_left_out_and_those_that_just_fit_are_taken() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    let (mut long, mut fits) = (row("own.a.{x}"), row("own.b.{x}"));
    long.help = "x".repeat(MAX_TEXT_BYTES + 1);
    fits.help = "x".repeat(MAX_TEXT_BYTES);
    agent.send_message(&AgentMessage::Rows { rows: vec![(0, long), (1, fits)], charts: Vec::new() }).await;
    let def = |metric, instance: &str| SeriesDef { metric, instance: instance.into() };
    let (whole, more) = ("y".repeat(1 << 10), "y".repeat((1 << 10) + 1));
    agent.series(&[(0, def(0, "k"), 100.0), (1, def(1, &whole), 100.0), (2, def(1, &more), 100.0)]).await;
    agent.tick(9, 0, &[1.0, 2.0, 3.0]).await;
    agent.acknowledged(1).await;
    assert_eq!(hub.samples(), [(format!("own.b.{whole}"), vec![(0, 2.0)])]);
    assert_eq!(hub.refused("text"), 2);
}
