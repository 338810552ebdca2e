//! The uplink against a test hub: a listener that implements the hub's side of the protocol message by message.

mod damage;
mod roads;

use super::*;
use futures_util::{SinkExt, StreamExt};
use shared::agent::{
    AgentHello, AgentMessage, ByeReason, CREDIT, FillDamage, FillPart, FillState, FromAgent, HubMessage, PROTOCOL_NAME,
    decode_agent, encode,
};
use shared::catalog::{Catalog, cpu};
use shared::column;
use shared::record::Record;
use shared::series::SeriesDef;
use shared::tick::{Applied, TickState};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use stream::clock::Manual;
use stream::store::{Limits, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

/// Maximum time of each wait in a test.
const MAX_WAIT: Duration = Duration::from_secs(60);

async fn soon<T>(what: &str, of: impl Future<Output = T>) -> T {
    timeout(MAX_WAIT, of).await.unwrap_or_else(|_| panic!("{what} has not come"))
}

/// A hub whose agents join with one key, and each get another one.
struct Hub<S> {
    incoming: tokio::sync::mpsc::Receiver<S>,
    /// Number of joined machines.
    joined: u32,
    /// Bodies of the join requests.
    requests: Vec<String>,
}

const JOIN: &str = "wg_j_join";

fn agent_key(number: u32) -> String {
    format!("wg_a_{number}")
}

async fn plain() -> (Hub<TcpStream>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (give, incoming) = tokio::sync::mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if give.send(stream).await.is_err() {
                return;
            }
        }
    });
    (Hub { incoming, joined: 0, requests: Vec::new() }, address)
}

impl<S: road::Wire> Hub<S> {
    fn from_wires(incoming: tokio::sync::mpsc::Receiver<S>) -> Self {
        Hub { incoming, joined: 0, requests: Vec::new() }
    }

    /// Answers a join request.
    async fn join(&mut self, status: &str) {
        let mut stream = soon("one who joins", self.incoming.recv()).await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon("a head", stream.read_u8()).await.expect("a byte"));
        }
        let head = String::from_utf8(head).expect("text");
        assert!(head.starts_with("POST /api/v1/ingest/enrol HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("Authorization: Bearer {JOIN}\r\n")), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        soon("a body", stream.read_exact(&mut body)).await.expect("read");
        self.requests.push(String::from_utf8(body).expect("text"));
        let body = if status.starts_with("201") {
            self.joined += 1;
            let key = agent_key(self.joined);
            format!("{{\"source\":\"source{}\",\"name\":\"node-7\",\"key\":\"{key}\"}}", self.joined)
        } else {
            "{\"error\":\"no, since the test says so\"}".into()
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\r\n{body}",
            body.len()
        );
        soon("an answer", stream.write_all(answer.as_bytes())).await.expect("written");
    }

    /// Accepts a link, and checks its key.
    pub(super) async fn link(&mut self, key: &str) -> (HubLink<S>, AgentHello) {
        let stream = soon("a link", self.incoming.recv()).await.expect("a connection");
        let wanted = format!("Bearer {key}");
        #[allow(clippy::result_large_err, reason = "the library's own type")]
        let check = |request: &Request, mut response: Response| {
            assert_eq!(request.uri().path(), "/api/v1/ingest");
            assert_eq!(request.headers()["authorization"], wanted.as_str());
            assert_eq!(request.headers()["sec-websocket-protocol"], PROTOCOL_NAME);
            let protocol = PROTOCOL_NAME.parse().expect("a value");
            response.headers_mut().insert("sec-websocket-protocol", protocol);
            Ok(response)
        };
        let socket = tokio_tungstenite::accept_hdr_async(stream, check);
        let socket = soon("an upgrade", socket).await.expect("a WebSocket");
        let mut link = HubLink { socket, state: TickState::default(), series: BTreeMap::new(), messages: 0 };
        match link.next().await {
            ReceivedMessage::Control(AgentMessage::Hello(hello)) => (link, *hello),
            other => panic!("{other:?}"),
        }
    }
}

/// The hub's end of a link.
struct HubLink<S> {
    socket: WebSocketStream<S>,
    state: TickState,
    series: BTreeMap<u32, SeriesDef>,
    /// Received messages with ticks or records.
    messages: u32,
}

/// Sequence, time and values of each tick of a message.
type Ticks = Vec<(u64, i64, Vec<f64>)>;

/// A message of an agent.
#[derive(Debug)]
enum ReceivedMessage {
    Control(AgentMessage),
    Ticks(Ticks),
    Fill(FillPart),
    Damage(FillDamage),
    Records(Vec<Record>),
    Closed,
}

impl<S: road::Wire> HubLink<S> {
    async fn send_message(&mut self, message: &HubMessage) {
        soon("room", self.socket.send(Message::Binary(encode(message).into()))).await.expect("sent");
    }

    async fn welcome(&mut self, holds: u64, record: u64) {
        let welcome = Welcome {
            version: "0".into(),
            name: "node-7".into(),
            now: 0,
            holds,
            record,
            spread: 0,
            max_series: 100,
            max_rows: 100,
        };
        self.send_message(&HubMessage::Welcome(welcome)).await;
    }

    async fn ack(&mut self) {
        let messages = self.messages;
        self.send_message(&HubMessage::Ack { messages, seq: 0, record: 0 }).await;
    }

    /// The next message; clock questions, checks and heartbeats are skipped.
    async fn next(&mut self) -> ReceivedMessage {
        loop {
            let bytes = match soon("a message", self.socket.next()).await {
                Some(Ok(Message::Binary(bytes))) => bytes,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return ReceivedMessage::Closed,
                Some(Ok(_)) => continue,
            };
            match decode_agent(&bytes).expect("a message") {
                FromAgent::Control(AgentMessage::Clock { id, sent, .. }) => {
                    // An agent does not read it after its goodbye.
                    let answer = encode(&HubMessage::Clock { id, sent, received: 0, answered: 0 });
                    drop(soon("room", self.socket.send(Message::Binary(answer.into()))).await);
                }
                FromAgent::Control(AgentMessage::Checks(_) | AgentMessage::Heartbeat | AgentMessage::Rows { .. }) => {}
                FromAgent::Control(AgentMessage::Series { defs }) => {
                    for (id, def) in defs {
                        let new = (id as usize + 1).saturating_sub(self.state.steps().len());
                        self.state.extend((0..new).map(|_| 100.0));
                        self.series.insert(id, def);
                    }
                }
                FromAgent::Control(message) => return ReceivedMessage::Control(message),
                FromAgent::Ticks(frames) => {
                    self.messages += 1;
                    let mut ticks = Vec::new();
                    for frame in frames {
                        let applied = self.state.apply(frame.expect("a frame")).expect("it follows the last");
                        if let Applied::Tick { .. } = applied {
                            ticks.push((self.state.seq(), self.state.t(), self.state.values().to_vec()));
                        }
                    }
                    return ReceivedMessage::Ticks(ticks);
                }
                FromAgent::Fill(part) => return ReceivedMessage::Fill(part),
                FromAgent::Damage(damage) => return ReceivedMessage::Damage(damage),
                FromAgent::Records(records) => {
                    self.messages += 1;
                    return ReceivedMessage::Records(records);
                }
                FromAgent::Unknown => panic!("a kind that nobody knows"),
            }
        }
    }

    async fn ticks(&mut self) -> Ticks {
        match self.next().await {
            ReceivedMessage::Ticks(ticks) => ticks,
            other => panic!("{other:?}"),
        }
    }
}

/// A machine whose ticks the test makes.
struct Agent {
    live: Arc<Live>,
    file: Arc<AgentFile>,
    settings: UplinkSettings,
    n: i64,
}

const NOW: i64 = 1_790_000_000_000;

impl Agent {
    fn connect(hub: SocketAddr, folder: Option<&std::path::Path>) -> Self {
        Self::with(HubEntry::parse(&format!("http://{hub}")).expect("a hub"), folder)
    }

    fn with(hub: HubEntry, folder: Option<&std::path::Path>) -> Self {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 1 << 40, bytes: usize::MAX });
        let source = store.add_source("host".into(), 1_000, vec![("os".into(), "linux".into())]);
        store.begin_life(source, NOW);
        for metric in 0..2 {
            store.intern(source, SeriesDef { metric, instance: String::new() }).expect("room");
        }
        let live = Live::new(store, Arc::new(Manual::at(NOW, Duration::ZERO)), 1, 1 << 40);
        Self::of_live(live, hub, folder)
    }

    fn of_live(live: Arc<Live>, hub: HubEntry, folder: Option<&std::path::Path>) -> Self {
        let hub = HubEntry { key: Some(KeyFrom::Given(JOIN.into())), ..hub };
        let settings = UplinkSettings { hubs: vec![hub], memory: true, ..UplinkSettings::default() };
        let file = Arc::new(AgentFile::open(folder, 7).expect("a file"));
        Agent { live, file, settings, n: 0 }
    }

    /// Appends the next tick; returns its sequence.
    fn tick(&mut self) -> u64 {
        self.n += 1;
        let values = [self.n as f64, if self.n % 2 == 0 { 7.25 } else { f64::NAN }];
        let seq = self.live.append(0, NOW + self.n * 1_000, false, &values).expect("a tick");
        self.live.announce(&[0]);
        seq
    }

    fn start(&self) -> Arc<Uplink> {
        let uplink =
            Uplink::all(&self.settings, &self.live, (0, &Arc::default()), &self.file).expect("a road").remove(0);
        tokio::spawn(uplink.clone().run());
        uplink
    }
}

/// Waits until a link has the wanted state.
async fn until(uplink: &Uplink, what: impl FnMut(&LinkState) -> bool) -> LinkState {
    let mut state = uplink.state();
    soon("the state", state.wait_for(what)).await.expect("it runs").clone()
}

#[tokio::test]
async fn who_has_joined_is_live_at_once_and_each_tick_comes_as_it_was() {
    let (mut hub, address) = plain().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut agent = Agent::connect(address, Some(folder.path()));
    let before = [agent.tick(), agent.tick(), agent.tick()];
    let uplink = agent.start();
    hub.join("201 Created").await;
    assert!(hub.requests[0].contains("\"request\":"), "{:?}", hub.requests);
    let (mut link, hello) = hub.link("wg_a_1").await;
    assert_eq!((hello.seq, hello.life, hello.folder, hello.interval), (before[2], before[0], 7, 1_000));
    assert_eq!(hello.offers.len(), 1);
    assert_eq!((hello.offers[0].first, hello.offers[0].last), (before[0], u64::MAX));
    link.welcome(0, 0).await;
    let first = link.ticks().await;
    assert_eq!(first.len(), 1, "the newest alone");
    assert_eq!((first[0].0, first[0].1), (before[2], NOW + 3_000));
    assert!(first[0].2[0] == 3.0 && first[0].2[1].is_nan());
    assert_eq!(link.series.len(), 2);
    for n in 4..30 {
        let seq = agent.tick();
        let came = link.ticks().await;
        assert_eq!((came.len(), came[0].0, came[0].2[0]), (1, seq, f64::from(n)));
        link.ack().await;
    }
    let linked = until(&uplink, |state| matches!(state, LinkState::Linked { .. })).await;
    assert_eq!(linked, LinkState::Linked { url: format!("http://{address}"), name: "node-7".into() });
    // It sends a goodbye; a restarted agent needs no join key.
    let stopping = tokio::spawn(async move { uplink.stop().await });
    assert!(matches!(link.next().await, ReceivedMessage::Control(AgentMessage::Bye(ByeReason::Stopping))));
    soon("the end", stopping).await.expect("ended");
    let again = Agent::connect(address, Some(folder.path()));
    let uplink = again.start();
    hub.link("wg_a_1").await;
    uplink.stop().await;
}

#[test]
fn who_ends_since_its_program_was_replaced_says_so() {
    use std::path::Path;
    let bye = |program: Option<&str>| serve::bye(program.map(Path::new));
    assert_eq!(bye(Some("/usr/bin/watchglass (deleted)")), ByeReason::Upgrading);
    assert_eq!((bye(Some("/usr/bin/watchglass")), bye(None)), (ByeReason::Stopping, ByeReason::Stopping));
}

#[tokio::test]
async fn without_acknowledgements_ticks_are_held_and_come_joined_then() {
    let (mut hub, address) = plain().await;
    let mut agent = Agent::connect(address, None);
    agent.tick();
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, _) = hub.link("wg_a_1").await;
    link.welcome(0, 0).await;
    let mut last = link.ticks().await[0].0;
    for _ in 1..CREDIT {
        agent.tick();
        let came = link.ticks().await;
        assert_eq!(came[0].0, last + 1);
        last = came[0].0;
    }
    let wanted: Vec<u64> = (0..40).map(|_| agent.tick()).collect();
    link.ack().await;
    let mut came = Vec::new();
    while came.len() < 40 {
        came.extend(link.ticks().await.iter().map(|tick| tick.0));
        link.ack().await;
    }
    assert_eq!(came, wanted);
    assert!(link.messages < CREDIT + 20, "{} messages", link.messages);
    uplink.stop().await;
}

#[tokio::test]
async fn what_the_hub_lacks_is_given_whole_beside_the_ticks() {
    let (mut hub, address) = plain().await;
    let mut agent = Agent::connect(address, None);
    let seqs: Vec<u64> = (0..200).map(|_| agent.tick()).collect();
    agent.live.store().seal(0);
    let newer: Vec<u64> = (0..50).map(|_| agent.tick()).collect();
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, _) = hub.link("wg_a_1").await;
    link.welcome(0, 0).await;
    link.ticks().await;
    let (first, last) = (seqs[10], newer[40]);
    link.send_message(&HubMessage::Want { id: 1, first, last }).await;
    let mut values = BTreeMap::new();
    let state = loop {
        match link.next().await {
            ReceivedMessage::Fill(part) => {
                let ticks = part.ticks().expect("bounded");
                let (_, bytes) = part.columns.iter().find(|(id, _)| *id == 0).expect("the first series");
                let column = column::decode(&bytes.0, ticks).expect("a column");
                values.extend((part.first..=part.last).zip(column));
            }
            ReceivedMessage::Control(AgentMessage::FillEnd { id: 1, state }) => break state,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(state, FillState::Whole);
    let wanted: BTreeMap<u64, f64> = (first..=last).map(|seq| (seq, (seq - seqs[0] + 1) as f64)).collect();
    assert_eq!(values, wanted);
    link.send_message(&HubMessage::Want { id: 2, first: 1, last: 9 }).await;
    assert!(matches!(
        link.next().await,
        ReceivedMessage::Control(AgentMessage::FillEnd { id: 2, state: FillState::Gone })
    ));
    uplink.stop().await;
}

#[tokio::test]
async fn records_come_from_where_the_hub_is() {
    let (mut hub, address) = plain().await;
    let mut agent = Agent::connect(address, None);
    agent.tick();
    let record = || agent.live.append_record(0, NOW, "marker", b"{}".to_vec()).expect("a record");
    let (first, second, third) = (record(), record(), record());
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, hello) = hub.link("wg_a_1").await;
    assert_eq!(hello.record, third);
    link.welcome(0, first).await;
    let mut numbers = Vec::new();
    while numbers.len() < 2 {
        if let ReceivedMessage::Records(records) = link.next().await {
            numbers.extend(records.iter().map(|record| record.n));
        }
    }
    assert_eq!(numbers, [second, third]);
    uplink.stop().await;
}

#[tokio::test]
async fn what_waits_is_sent_before_the_goodbye() {
    let (mut hub, address) = plain().await;
    let mut agent = Agent::connect(address, None);
    agent.tick();
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, _) = hub.link("wg_a_1").await;
    link.welcome(0, 0).await;
    link.ticks().await;
    until(&uplink, |state| matches!(state, LinkState::Linked { .. })).await;
    // More than the credit of a link, and records that no tick follows.
    let records: Vec<u64> = (0..u64::from(CREDIT) * 3)
        .map(|_| agent.live.append_record(0, NOW, "end", vec![b' '; 60 << 10]).expect("a record"))
        .collect();
    let (stopping, mut came) = (tokio::spawn(async move { uplink.stop().await }), Vec::new());
    loop {
        match link.next().await {
            ReceivedMessage::Records(records) => {
                came.extend(records.iter().map(|record| record.n));
                link.ack().await;
            }
            ReceivedMessage::Control(AgentMessage::Bye(_)) => break,
            _ => {}
        }
    }
    assert_eq!(came, records);
    soon("the end", stopping).await.expect("ended");
}

#[tokio::test]
async fn a_hub_that_accepts_nothing_more_delays_the_end_for_seconds_alone() {
    let (mut hub, address) = plain().await;
    let mut agent = Agent::connect(address, None);
    agent.tick();
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, _) = hub.link("wg_a_1").await;
    link.welcome(0, 0).await;
    link.ticks().await;
    for _ in 0..CREDIT * 3 {
        agent.live.append_record(0, NOW, "end", vec![b' '; 60 << 10]).expect("a record");
    }
    let (begin, stopping) = (Instant::now(), tokio::spawn(async move { uplink.stop().await }));
    while !matches!(link.next().await, ReceivedMessage::Control(AgentMessage::Bye(_))) {}
    soon("the end", stopping).await.expect("ended");
    assert!(begin.elapsed() < END_TIMEOUT + Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_link_that_is_lost_comes_back_and_a_key_that_is_unknown_is_made_anew() {
    let (mut hub, address) = plain().await;
    let mut agent = Agent::connect(address, None);
    agent.tick();
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, _) = hub.link("wg_a_1").await;
    link.welcome(0, 0).await;
    link.ticks().await;
    drop(link);
    let (mut link, _) = hub.link("wg_a_1").await;
    link.send_message(&HubMessage::Goodbye { code: close::UNKNOWN, reason: "unknown".into(), wait: 0 }).await;
    drop(link);
    hub.join("201 Created").await;
    assert_ne!(hub.requests[0], hub.requests[1], "another request");
    let (mut link, hello) = hub.link("wg_a_2").await;
    // Samples from an earlier identity belong to that machine; those of this life are its own.
    assert_eq!(hello.offers[0].first, hello.life);
    link.send_message(&HubMessage::Goodbye { code: close::REVOKED, reason: "revoked".into(), wait: 0 }).await;
    let refused = until(&uplink, |state| matches!(state, LinkState::Refused(why) if why.contains("revoked"))).await;
    assert!(matches!(&refused, LinkState::Refused(why) if why.contains("new join line")), "{refused:?}");
    uplink.stop().await;
}

#[tokio::test]
async fn a_hub_that_does_not_let_in_is_asked_again_and_its_sentence_is_told() {
    let (mut hub, address) = plain().await;
    let agent = Agent::connect(address, None);
    let uplink = agent.start();
    hub.join("503 Busy\r\nRetry-After: 0").await;
    let away = until(&uplink, |state| matches!(state, LinkState::Away(_))).await;
    assert_eq!(away, LinkState::Away("no, since the test says so".into()));
    hub.join("202 Accepted").await;
    until(&uplink, |state| *state == LinkState::Pending).await;
    uplink.stop().await;
}

#[tokio::test]
async fn ticks_of_a_clock_that_was_wrong_get_other_numbers() {
    let (mut hub, address) = plain().await;
    let mut agent = Agent::connect(address, None);
    let (first, last) = (agent.tick(), agent.tick());
    let uplink = agent.start();
    hub.join("201 Created").await;
    let (mut link, _) = hub.link("wg_a_1").await;
    let holds = first + 1_000;
    link.welcome(holds, 0).await;
    link.ticks().await;
    let next = agent.tick();
    assert!(next > holds + (last - first) + 1, "{next} above {holds} and those so far");
    assert_eq!(link.ticks().await[0].0, next);
    drop(link);
    let (mut link, hello) = hub.link("wg_a_1").await;
    assert_eq!((hello.offers[0].first, hello.offers[0].last), (holds + 1, holds + 2));
    link.welcome(next, 0).await;
    link.ticks().await;
    link.send_message(&HubMessage::Want { id: 1, first: holds + 1, last: holds + 2 }).await;
    let ReceivedMessage::Fill(part) = link.next().await else { panic!("no fill") };
    assert_eq!((part.first, part.last), (holds + 1, holds + 2));
    uplink.stop().await;
}
