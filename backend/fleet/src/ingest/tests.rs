//! Links over in-memory sockets: an agent made of the protocol alone, and the hub's end of it.

mod agent;
mod asked;
mod fills;
mod happened;
mod hostile;
mod relayed;
mod rows;
mod steps;

use super::{Arrival, Ingest, IngestLimits};
use agent::{Agent, hello, row};
use shared::agent::{AgentHello, AgentMessage, ByeReason, HubMessage, close};
use shared::catalog::{Catalog, Kind, cpu};
use shared::connection_state::ConnectionState;
use shared::series::SeriesDef;
use shared::unit::Unit;
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Manual;
use stream::live::Live;
use stream::store::{Limits, Store};

/// 2027-01-15, milliseconds since the Unix epoch.
pub const NOW: i64 = 1_800_000_000_000;
pub const KEY: &str = "abcdefghijklmnopqrstuvwxyz";
const HOUR: i64 = 3_600_000;

pub struct Hub {
    pub live: Arc<Live>,
    pub ingest: Ingest,
    pub clock: Arc<Manual>,
}

fn arrival(source: &str) -> Arrival {
    let text = String::from;
    Arrival {
        relayed: false,
        source: source.into(),
        key: text("key"),
        from: text("10.0.0.5"),
        name: text("node-7"),
        labels: Vec::new(),
    }
}

impl Hub {
    pub fn new() -> Hub {
        Self::with(IngestLimits::default())
    }

    pub fn with(limits: IngestLimits) -> Hub {
        let clock = Arc::new(Manual::at(NOW, Duration::from_secs(1_000)));
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let store = Store::new(catalog, Limits { retention: 12 * HOUR, bytes: usize::MAX });
        let live = Live::new(store, clock.clone(), 1, 12 * HOUR);
        Hub { ingest: Ingest::new(live.clone(), limits), live, clock }
    }

    /// An agent that is linked and welcome.
    pub async fn agent(&self) -> Agent {
        let mut agent = self.connect(KEY);
        agent.send_message(&AgentMessage::Hello(Box::new(hello(1)))).await;
        assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
        agent
    }

    /// A new link without any message yet.
    pub fn connect(&self, source: &str) -> Agent {
        let arrival = arrival(source);
        Agent::connect(self.ingest.clone(), arrival)
    }

    pub fn connection_state(&self) -> ConnectionState {
        let source = self.live.store().named(KEY).expect("the source is known");
        self.live.source(source).connection_state().0
    }

    /// Tag, and samples of the first source as (time since [`NOW`], value).
    pub fn samples(&self) -> Vec<(String, Vec<(i64, f64)>)> {
        let (series, snapshot, catalog) = {
            let store = self.live.store();
            let source = store.named(KEY).expect("the source is known");
            let snapshot = store.snapshot(source, i64::MIN, i64::MAX).expect("the source is known");
            (store.series(source, 0).to_vec(), snapshot, store.catalog().clone())
        };
        let ids: Vec<u32> = (0..series.len() as u32).collect();
        let samples = snapshot.samples(&ids).into_iter();
        let samples = samples.map(|all| all.into_iter().map(|(t, v)| (t - NOW, v)).collect());
        series.iter().map(|def| catalog.tag(def)).zip(samples).collect()
    }

    pub fn refused(&self, cause: &str) -> u64 {
        let counts = self.ingest.counts();
        counts.refused.into_iter().find(|(word, _)| word == cause).expect("each cause is counted").1
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_of_an_agent_are_those_of_a_source_here_under_their_own_sequences() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    assert_eq!(hub.connection_state(), ConnectionState::Live);
    agent.tell(0, 0, "a").await;
    agent.tick(100, 0, &[1.0]).await;
    agent.tell(0, 5, "b").await;
    agent.tick(101, 1_000, &[2.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN, 7.0]).await;
    assert_eq!(agent.acknowledged(2).await, 101);
    let tag = |instance| cpu::ROWS[0].tag_of(instance);
    assert_eq!(hub.samples(), [(tag("a"), vec![(0, 1.0), (1_000, 2.0)]), (tag("b"), vec![(1_000, 7.0)])]);
    let store = hub.live.store();
    let source = store.named(KEY).expect("it is known");
    assert_eq!(store.coverage(source), [(100, 101)]);
    assert_eq!(store.source(source).expect("it is known").0.name, "node-7");
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_goes_on_and_what_is_here_already_is_dropped_and_counted() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.tell(0, 0, "a").await;
    agent.tick(100, 0, &[1.0]).await;
    agent.acknowledged(1).await;
    agent.cut().await;
    assert_eq!(hub.connection_state(), ConnectionState::Unreachable);
    let mut agent = hub.connect(KEY);
    agent.send_message(&AgentMessage::Hello(Box::new(hello(1)))).await;
    let HubMessage::Welcome(welcome) = agent.receive_message().await else { panic!("no welcome") };
    assert_eq!((welcome.holds, &welcome.name[..]), (100, "node-7"));
    agent.tell(0, 3, "a").await;
    agent.tick(100, 0, &[f64::NAN, f64::NAN, f64::NAN, 5.0]).await;
    agent.tick(103, 3_000, &[f64::NAN, f64::NAN, f64::NAN, 2.0]).await;
    agent.acknowledged(2).await;
    assert_eq!(hub.samples(), [(cpu::ROWS[0].tag_of("a"), vec![(0, 1.0), (3_000, 2.0)])]);
    assert_eq!(hub.ingest.counts().duplicates, 1);
}

#[tokio::test(start_paused = true)]
async fn rows_of_the_agent_join_the_table_and_one_of_another_unit_is_refused_and_counted() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    let mut wrong = row(cpu::ROWS[0].tag);
    wrong.unit = Unit::Celsius;
    agent
        .send_message(&AgentMessage::Rows { rows: vec![(7, row("own.{x}.level")), (8, wrong)], charts: Vec::new() })
        .await;
    let def = |metric, instance: &str| SeriesDef { metric, instance: instance.into() };
    agent.series(&[(0, def(7, "k"), 100.0), (1, def(8, "0"), 100.0)]).await;
    agent.tick(5, 0, &[3.5, 4.0]).await;
    agent.acknowledged(1).await;
    assert_eq!(hub.samples(), [("own.k.level".to_owned(), vec![(0, 3.5)])]);
    assert_eq!(hub.refused("row_conflict"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_odd_row_of_one_agent_takes_its_tag_from_no_other() {
    let hub = Hub::new();
    let mut hostile = hub.connect("hostilehostilehostilehosti");
    hostile.send_message(&AgentMessage::Hello(Box::new(hello(1)))).await;
    assert!(matches!(hostile.receive_message().await, HubMessage::Welcome(_)));
    let mut odd = row("own.{x}.level");
    (odd.unit, odd.kind) = (Unit::Celsius, Kind::Counter);
    let mut agent = hub.agent().await;
    for (agent, row, value) in [(&mut hostile, odd, 9.0), (&mut agent, row("own.{x}.level"), 3.5)] {
        let steps = row.steps;
        agent.send_message(&AgentMessage::Rows { rows: vec![(7, row)], charts: Vec::new() }).await;
        agent.series(&[(0, SeriesDef { metric: 7, instance: "k".into() }, steps)]).await;
        agent.tick(5, 0, &[value]).await;
        agent.acknowledged(1).await;
    }
    assert_eq!(hub.samples(), [("own.k.level".to_owned(), vec![(0, 3.5)])]);
    assert_eq!(hub.refused("row_conflict"), 0);
    let store = hub.live.store();
    let series = store.series(store.named(KEY).expect("it is known"), 0);
    let row = store.catalog().metric(&series[0]).expect("a row");
    assert_eq!((row.unit, row.kind), (Unit::Percent, Kind::Gauge));
}

#[tokio::test(start_paused = true)]
async fn ticks_of_many_links_are_appended_together_and_a_refused_one_costs_no_other() {
    let hub = Hub::new();
    let keys = ["a", "b", "c"].map(|letter| letter.repeat(26));
    let mut agents = Vec::new();
    for key in &keys {
        let mut agent = hub.connect(key);
        agent.send_message(&AgentMessage::Hello(Box::new(hello(1)))).await;
        assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
        agent.tell(0, 0, "a").await;
        agents.push(agent);
    }
    for (n, agent) in agents.iter_mut().enumerate() {
        // The second tick of the first one has the time of an existing tick.
        agent.tick(100 + n as u64, 0, &[1.0]).await;
        agent.tick(200, if n == 0 { 0 } else { 1_000 }, &[2.0]).await;
    }
    for (n, agent) in agents.iter_mut().enumerate() {
        assert_eq!(agent.acknowledged(2).await, if n == 0 { 100 } else { 200 });
    }
    let store = hub.live.store();
    let covered = |key: &String| store.coverage(store.named(key).expect("it is known"));
    assert_eq!(
        keys.each_ref().map(covered),
        [vec![(100, 100)], vec![(101, 101), (200, 200)], vec![(102, 102), (200, 200)]]
    );
    assert_eq!(hub.ingest.counts().ticks, 5);
}

#[tokio::test(start_paused = true)]
async fn one_that_says_so_is_stopped_and_one_that_is_silent_unreachable() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.send_message(&AgentMessage::Bye(ByeReason::Stopping)).await;
    agent.ended().await;
    assert_eq!(hub.connection_state(), ConnectionState::Stopped("the agent was shut down".into()));
    // The socket stays open without messages: only heartbeats of the hub, until it gives up.
    let mut agent = hub.agent().await;
    assert_eq!(hub.connection_state(), ConnectionState::Live);
    agent.silent().await;
    assert_eq!(hub.connection_state(), ConnectionState::Unreachable);
    assert_eq!(hub.ingest.counts().links, 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_comes_back_no_more_has_ended_unless_it_is_linked() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    let ids = [KEY.to_owned(), "another".to_owned()];
    hub.ingest.ended(&ids);
    assert_eq!(hub.connection_state(), ConnectionState::Live);
    agent.cut().await;
    hub.ingest.ended(&ids);
    assert_eq!(hub.connection_state(), ConnectionState::Ended);
    let _agent = hub.agent().await;
    assert_eq!(hub.connection_state(), ConnectionState::Live, "it has come back all the same");
}

/// A file contains the bytes that agents of the first version sent.
#[tokio::test(start_paused = true)]
async fn an_agent_of_the_first_version_and_one_that_says_more_are_followed() {
    let recorded = include_str!("../../../../shared/src/agent/recorded.txt");
    let said = |n: usize| -> Vec<u8> {
        let begin = format!("agent {n} ");
        let line = recorded.lines().find_map(|line| line.strip_prefix(&begin)).expect("it was recorded");
        hex::decode(line).expect("hexadecimal digits")
    };
    let hub = Hub::new();
    let mut agent = hub.connect(KEY);
    agent.bytes(said(0)).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    // Rows, series, checks, facts, a clock question; then a message of an unknown kind.
    for n in 1..=5 {
        agent.bytes(said(n)).await;
    }
    agent.bytes(vec![0x7f, 1, 2, 3]).await;
    loop {
        if let HubMessage::Clock { id, .. } = agent.receive_message().await {
            assert_eq!(id, 2, "all before it was taken in");
            break;
        }
    }
    assert_eq!(hub.connection_state(), ConnectionState::Live);
    agent.bytes(said(8)).await;
    agent.ended().await;
    assert_eq!(hub.connection_state(), ConnectionState::Stopped("it is restarting with another version".into()));
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_does_not_follow_ends_the_link_and_the_third_within_a_minute_waits() {
    let hub = Hub::new();
    for wait in [0, 0, 60_000] {
        let mut agent = hub.agent().await;
        agent.tell(0, 0, "a").await;
        agent.tick(100, 0, &[1.0]).await;
        agent.skip(500);
        agent.tick(700, 1_000, &[1.0]).await;
        let (code, reason, waits) = agent.goodbye().await;
        assert_eq!((code, waits), (close::FRAME_ERROR, wait), "{reason}");
        assert!(reason.contains("was expected"), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_process_with_the_key_of_one_that_answers_is_refused_by_name() {
    let hub = Hub::new();
    let mut first = hub.agent().await;
    let mut second = hub.connect(KEY);
    second.send_message(&AgentMessage::Hello(Box::new(hello(2)))).await;
    first.beat().await;
    let (code, reason, wait) = second.goodbye().await;
    assert_eq!((code, wait), (close::IN_USE, 60_000));
    assert!(reason.contains("host-1") && reason.contains("--new-identity"), "{reason}");
    assert_eq!(hub.connection_state(), ConnectionState::Live);
    // The same process again: its old link is half open.
    let mut again = hub.agent().await;
    again.tell(0, 0, "a").await;
    again.tick(9, 0, &[1.0]).await;
    again.acknowledged(1).await;
    first.ended().await;
    assert_eq!(hub.connection_state(), ConnectionState::Live);
    assert_eq!(hub.ingest.counts().links, 1);
}

#[tokio::test(start_paused = true)]
async fn two_machines_that_take_turns_with_one_key_are_both_refused() {
    let hub = Hub::new();
    let link = |boot: u8| {
        let mut agent = hub.connect(KEY);
        let hello = AgentHello { boot: Some([boot; 32]), host: format!("host-{boot}"), ..hello(u64::from(boot)) };
        async move {
            agent.send_message(&AgentMessage::Hello(Box::new(hello))).await;
            agent
        }
    };
    for boot in [1, 2, 1] {
        let mut agent = link(boot).await;
        assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
        agent.send_message(&AgentMessage::Bye(ByeReason::Stopping)).await;
        agent.ended().await;
    }
    for boot in [2, 1] {
        let (code, reason, wait) = link(boot).await.goodbye().await;
        assert_eq!((code, wait), (close::IN_USE, 60_000));
        assert!(reason.contains("host-1 (10.0.0.5) and host-2 (10.0.0.5)"), "{reason}");
        assert_eq!(hub.connection_state(), ConnectionState::Refused(reason));
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_ended_ends_its_link_with_the_reason() {
    let hub = Hub::new();
    let (end, mut ended) = tokio::sync::watch::channel(false);
    let arrival = arrival(KEY);
    let ingest = hub.ingest.clone();
    let mut agent = Agent::over(|socket| async move {
        let denied = std::pin::pin!(async move {
            let _ = ended.wait_for(|end| *end).await;
            (close::REVOKED, "an admin has ended the key".to_owned())
        });
        ingest.link_until(arrival, socket, denied).await;
    });
    agent.send_message(&AgentMessage::Hello(Box::new(hello(1)))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    end.send_replace(true);
    assert_eq!(agent.goodbye().await.0, close::REVOKED);
    assert_eq!(hub.connection_state(), ConnectionState::Refused("an admin has ended the key".into()));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_ends_says_so_and_after_its_start_its_machines_are_unreachable() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    hub.ingest.drain().begin(1);
    assert_eq!(agent.goodbye().await.0, close::GOING);
    let later = Ingest::new(hub.live.clone(), IngestLimits::default());
    assert_eq!(hub.connection_state(), ConnectionState::Unreachable);
    drop(later);
}
