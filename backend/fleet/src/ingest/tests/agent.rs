//! An agent made of the protocol alone.

use super::NOW;
use crate::ingest::{Arrival, Ingest, socket_config};
use futures_util::{SinkExt, StreamExt};
use shared::agent::{
    AgentHello, AgentMessage, FillPart, FillState, HubMessage, Offer, Question, decode_hub, encode, encode_fill,
    encode_ticks,
};
use shared::catalog::{Metric, MetricDef, cpu};
use shared::column;
use shared::processes::{Process, ProcessTable};
use shared::series::{SeriesDef, SeriesId, Steps};
use shared::tick::TickState;
use shared::unit::Unit;
use shared::wire::ColumnBytes;
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

pub struct Agent {
    socket: Option<WebSocketStream<DuplexStream>>,
    hub: JoinHandle<()>,
    state: TickState,
}

pub fn hello(instance: u64) -> AgentHello {
    AgentHello {
        instance,
        folder: 7,
        boot: None,
        machine: None,
        host: format!("host-{instance}"),
        version: "0.1.0".into(),
        started: NOW,
        interval: 1_000,
        facts: Vec::new(),
        labels: Vec::new(),
        now: NOW,
        life: 1,
        seq: 0,
        record: 0,
        retention: 43_200_000,
        memory: false,
        offers: vec![Offer { first: 1, last: u64::MAX, from: NOW, to: i64::MAX }],
    }
}

pub fn row(tag: &'static str) -> Metric {
    match cpu::ROWS.iter().find(|row| row.tag == tag) {
        Some(row) => Metric::from(*row),
        None => Metric::from(&MetricDef::gauge(tag, Unit::Percent).title("Own").on("own", "")),
    }
}

impl Agent {
    pub fn connect(ingest: Ingest, arrival: Arrival) -> Agent {
        Self::over(|socket| async move { ingest.link(arrival, socket).await })
    }

    /// An agent whose socket is served by this future.
    pub fn over<F: Future<Output = ()> + Send + 'static>(
        serve: impl FnOnce(WebSocketStream<DuplexStream>) -> F + Send + 'static,
    ) -> Agent {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let hub = tokio::spawn(async move {
            serve(WebSocketStream::from_raw_socket(theirs, Role::Server, Some(socket_config())).await).await;
        });
        let socket = futures_util::FutureExt::now_or_never(WebSocketStream::from_raw_socket(ours, Role::Client, None));
        Agent { socket, hub, state: TickState::default() }
    }

    fn socket(&mut self) -> &mut WebSocketStream<DuplexStream> {
        self.socket.as_mut().expect("the link was not cut")
    }

    pub async fn bytes(&mut self, bytes: Vec<u8>) {
        // The hub may have ended the link by now: its goodbye has the reason.
        let _ = self.socket().send(Message::Binary(bytes.into())).await;
    }

    pub async fn send_message(&mut self, message: &AgentMessage) {
        self.bytes(encode(message)).await;
    }

    pub async fn beat(&mut self) {
        self.send_message(&AgentMessage::Heartbeat).await;
    }

    /// The next message of the hub except heartbeats; None after it has closed the link.
    async fn next(&mut self) -> Option<HubMessage> {
        loop {
            match self.socket().next().await?.ok()? {
                Message::Binary(bytes) => match decode_hub(&bytes).expect("a hub speaks the protocol")? {
                    HubMessage::Heartbeat => {}
                    message => return Some(message),
                },
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    pub async fn receive_message(&mut self) -> HubMessage {
        self.next().await.expect("the hub says something")
    }

    /// Waits until this number of messages is acknowledged; returns the last tick up to which everything is in the log.
    pub async fn acknowledged(&mut self, wanted: u32) -> u64 {
        loop {
            if let HubMessage::Ack { messages, seq, .. } = self.receive_message().await
                && messages >= wanted
            {
                return seq;
            }
        }
    }

    /// The hub's reason for the end of the link; checks that it is closed afterwards.
    pub async fn goodbye(&mut self) -> (u16, String, u32) {
        loop {
            if let HubMessage::Goodbye { code, reason, wait } = self.receive_message().await {
                assert_eq!(self.next().await, None, "nothing follows a goodbye");
                return (code, reason, wait);
            }
        }
    }

    /// Waits until the hub has finished the link.
    pub async fn ended(&mut self) {
        (&mut self.hub).await.expect("the link does not panic");
    }

    /// Closes the socket without a goodbye.
    pub async fn cut(&mut self) {
        self.socket = None;
        self.ended().await;
    }

    /// Neither sends nor reads.
    pub async fn silent(&mut self) {
        self.ended().await;
    }

    /// Sends the row `cpu::ROWS[row]` and a series of it.
    pub async fn tell(&mut self, row: u16, id: SeriesId, instance: &str) {
        let metric = Metric::from(cpu::ROWS[usize::from(row)]);
        let steps = metric.steps;
        self.send_message(&AgentMessage::Rows { rows: vec![(row, metric)], charts: Vec::new() }).await;
        self.series(&[(id, SeriesDef { metric: row, instance: instance.into() }, steps)]).await;
    }

    pub async fn series(&mut self, series: &[(SeriesId, SeriesDef, Steps)]) {
        self.send_message(&AgentMessage::Series {
            defs: series.iter().map(|(id, def, _)| (*id, def.clone())).collect(),
        })
        .await;
        for (id, _, steps) in series {
            let gap = (*id as usize + 1).saturating_sub(self.state.steps().len());
            self.state.extend(std::iter::repeat_n(0.0, gap));
            self.state.redefine(*id, *steps);
        }
    }

    /// Sends a tick of this number, at a time since [`NOW`]. The first one has a keyframe before it.
    pub async fn tick(&mut self, seq: u64, t: i64, values: &[f64]) {
        let t = NOW.wrapping_add(t);
        let mut frames = Vec::new();
        if self.state.seq() == 0 {
            let mut before = TickState::after(seq - 1, t - 1_000);
            before.extend(self.state.steps().iter().copied());
            frames.push(before.keyframe());
            self.state = before;
        }
        frames.push(self.state.encode_at(seq, t, false, values));
        self.bytes(encode_ticks(frames.iter().map(Vec::as_slice))).await;
    }

    /// Sends these ticks in one message, a millisecond apart.
    pub async fn fast(&mut self, first: u64, last: u64) {
        let mut before = TickState::after(first - 1, NOW);
        before.extend(self.state.steps().iter().copied());
        let mut frames = vec![before.keyframe()];
        self.state = before;
        frames.extend((first..=last).map(|seq| self.state.encode_at(seq, NOW + seq as i64, false, &[1.0])));
        self.bytes(encode_ticks(frames.iter().map(Vec::as_slice))).await;
    }

    /// The next range that the hub requests, with its number; None if it requests nothing within 20 s of its time.
    pub async fn wanted(&mut self) -> Option<(u32, u64, u64)> {
        let wanted = async {
            loop {
                if let HubMessage::Want { id, first, last } = self.next().await? {
                    return Some((id, first, last));
                }
            }
        };
        // The other end is silent, too: a hub that receives nothing ends the link before that.
        tokio::time::timeout(std::time::Duration::from_secs(12), wanted).await.ok().flatten()
    }

    /// As above, within 3 s.
    pub async fn wanted_soon(&mut self) -> Option<(u32, u64, u64)> {
        let wanted = self.wanted();
        tokio::time::timeout(std::time::Duration::from_secs(3), wanted).await.ok().flatten()
    }

    /// The next question of a page, and its number.
    pub async fn asked(&mut self) -> (u32, Question) {
        loop {
            if let HubMessage::Ask { id, what } = self.receive_message().await {
                return (id, what);
            }
        }
    }

    /// Answers a question with a table of one process of this name, read at a time since [`NOW`].
    pub async fn answer(&mut self, id: u32, name: &str, t: i64) {
        let row = Process { pid: 7, name: name.into(), ..Process::default() };
        let table = ProcessTable { t: NOW + t, total: 1, whole: true, rows: vec![row] };
        let bytes = postcard::to_stdvec(&table).expect("a table is encoded");
        self.send_message(&AgentMessage::Answer { id, bytes }).await;
    }

    /// Asks this number of clock questions, by a clock that is `ahead` milliseconds ahead.
    pub async fn clock(&mut self, ahead: i64) {
        let mut arrived = None;
        for id in 1..=9 {
            self.send_message(&AgentMessage::Clock { id, sent: NOW + ahead, arrived }).await;
            loop {
                if let HubMessage::Clock { id: answered, .. } = self.receive_message().await {
                    assert_eq!(answered, id);
                    break;
                }
            }
            arrived = Some(NOW + ahead);
        }
    }

    /// A block of the series 0, one tick per second from a time since [`NOW`] on; its values are the sequences.
    pub fn block(id: u32, first: u64, last: u64, from: i64) -> FillPart {
        let times: Vec<i64> = (first..=last).map(|seq| NOW + from + (seq - first) as i64 * 1_000).collect();
        let values: Vec<f64> = (first..=last).map(|seq| seq as f64).collect();
        FillPart {
            id,
            first,
            last,
            clock_step: false,
            more: false,
            times: column::encode_times(&times),
            columns: vec![(0, ColumnBytes(column::encode(&values, 100.0)))],
        }
    }

    pub async fn fill(&mut self, part: &FillPart) {
        self.bytes(encode_fill(part)).await;
    }

    pub async fn fill_end(&mut self, id: u32, state: FillState) {
        self.send_message(&AgentMessage::FillEnd { id, state }).await;
    }

    /// Ticks up to this number are lost in transit.
    pub fn skip(&mut self, seq: u64) {
        let t = self.state.t();
        let _ = self.state.encode_at(seq, t + 500, false, &[]);
    }
}
