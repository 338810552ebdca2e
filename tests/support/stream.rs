//! A page without a browser. It follows the stream of a server and keeps the received data.

use crate::waiting::MAX_WAIT;
use futures_util::{SinkExt, StreamExt};
use shared::catalog::Catalog;
use shared::column;
use shared::series::SeriesDef;
use shared::tick::{Applied, TickState};
use shared::wire::{self, Check, Hello, PROTOCOL, PageMessage, Received, Resume, ServerMessage};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// Data that a page has received from one source, over all connections.
#[derive(Default)]
pub struct Page {
    /// The newest hello message.
    pub hello: Option<Hello>,
    /// The catalog.
    pub catalog: Catalog,
    /// Series by id.
    pub series: Vec<SeriesDef>,
    /// The newest checks of collectors.
    pub checks: Vec<Check>,
    /// Time (ms since the epoch) and values of each tick, by sequence. Values are by series id.
    pub ticks: BTreeMap<u64, (i64, Vec<f64>)>,
    /// Number of resyncs that the server has sent.
    pub resyncs: usize,
    /// Number of repeated ticks.
    pub repeated: usize,
    /// Reason of the newest goodbye.
    pub goodbye: Option<String>,
    /// Name of the machine to show; None for the first.
    pub source: Option<String>,
    /// A key for the data of a hub; None where no key is needed.
    pub key: Option<String>,
    /// Numbers of the machines whose ticks were received.
    pub heard: BTreeSet<u16>,
    state: TickState,
    messages: u32,
}

/// A connection of a page.
pub struct Connection(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Page {
    /// Connects. When the page was connected to this run before, it resumes at its last tick. `window` is in ms.
    pub async fn connect(&mut self, addr: SocketAddr, window: i64) -> Connection {
        self.connect_to(&format!("ws://{addr}/api/v1/live"), window).await
    }

    /// Connects like [`connect`](Self::connect) with a complete address.
    pub async fn connect_to(&mut self, url: &str, window: i64) -> Connection {
        let mut connection = Connection::to_as(url, self.key.as_deref()).await;
        let resume = self.hello.as_ref().map(|hello| Resume {
            boot: hello.boot,
            rows: self.catalog.metrics.len() as u32,
            places: vec![(0, self.state.seq(), self.series.len() as u32)],
        });
        self.messages = 0;
        let sources = vec![self.source.clone().unwrap_or_default()];
        connection.send_message(&PageMessage::Open { protocol: PROTOCOL, window, resume, sources }).await;
        connection
    }

    /// Reads messages until the condition holds.
    ///
    /// # Panics
    /// Panics when this takes too long, or when the connection ends before.
    pub async fn until(&mut self, connection: &mut Connection, done: impl Fn(&Page) -> bool) {
        let all = async {
            while !done(self) {
                assert!(self.take(connection).await, "the stream ended: {:?}", self.goodbye);
            }
        };
        tokio::time::timeout(MAX_WAIT, all).await.expect("the page is shown it in time");
    }

    /// Reads one message. Returns false when the connection has ended.
    pub async fn take(&mut self, connection: &mut Connection) -> bool {
        let Some(bytes) = connection.next().await else { return false };
        assert!(bytes.len() <= wire::MAX_MESSAGE + 64 * 1024, "a message of {} bytes", bytes.len());
        match wire::decode_server(&bytes).expect("a message") {
            Received::Control(message) => self.control(message),
            Received::Overview(..) => panic!("it was not asked for"),
            Received::Ticks(source, frames) => {
                self.heard.insert(source);
                for frame in frames {
                    if let Applied::Tick { .. } = self.state.apply(frame).expect("a frame that follows") {
                        let tick = (self.state.t(), self.state.values().to_vec());
                        self.repeated += usize::from(self.ticks.insert(self.state.seq(), tick).is_some());
                    }
                }
                self.messages += 1;
                connection.send_message(&PageMessage::Ack { messages: self.messages }).await;
            }
        }
        true
    }

    fn control(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Hello(hello) => {
                if self.hello.as_ref().is_some_and(|before| before.boot != hello.boot) {
                    *self = Page {
                        resyncs: self.resyncs,
                        source: self.source.take(),
                        key: self.key.take(),
                        ..Page::default()
                    };
                }
                self.hello = Some(hello);
            }
            ServerMessage::Catalog(catalog) => self.catalog = catalog,
            ServerMessage::Rows { first, metrics, charts } => {
                let known = self.catalog.metrics.len();
                assert!(first as usize == known || first == 0, "rows are announced in order, or anew with their help");
                self.catalog.extend(first as usize, metrics, charts);
            }
            ServerMessage::Series { first, defs, .. } => {
                assert_eq!(first as usize, self.series.len(), "series are announced in order");
                // The id of a series that is gone has no row.
                let steps = defs.iter().map(|d| self.catalog.metric(d).map_or(0.0, |m| m.steps));
                self.state.extend(steps.collect::<Vec<_>>());
                self.series.extend(defs);
            }
            ServerMessage::Checks { checks, .. } => self.checks = checks,
            ServerMessage::Columns(columns) => {
                let times = column::decode_times(&columns.times, columns.ticks as usize).expect("a time column");
                assert_eq!(columns.last_seq - columns.first_seq + 1, u64::from(columns.ticks), "no tick was lost");
                for (i, t) in times.iter().enumerate() {
                    self.ticks.entry(columns.first_seq + i as u64).or_insert((*t, Vec::new()));
                }
            }
            ServerMessage::Resync => {
                self.resyncs += 1;
                self.series.clear();
                self.ticks.clear();
                self.state = TickState::default();
            }
            ServerMessage::Goodbye { reason } => self.goodbye = Some(reason),
            ServerMessage::Sources(_)
            | ServerMessage::Changed(_)
            | ServerMessage::Facts { .. }
            | ServerMessage::Refilled { .. }
            | ServerMessage::Cells { .. }
            | ServerMessage::Processes(_)
            | ServerMessage::Past(_)
            | ServerMessage::Runs(_)
            | ServerMessage::HistoryEnd { .. }
            | ServerMessage::Minutes(_)
            | ServerMessage::MinutesEnd { .. }
            | ServerMessage::Records { .. }
            | ServerMessage::Heartbeat { .. } => {}
        }
    }

    /// The newest value of a tag; None when it is absent in the newest tick.
    pub fn newest(&self, tag: &str) -> Option<f64> {
        let at = self.series.iter().position(|def| self.catalog.tag(def) == tag)?;
        self.ticks.values().next_back()?.1.get(at).copied().filter(|v| v.is_finite())
    }

    /// True when the sequence numbers of the ticks have no gap.
    pub fn whole(&self) -> bool {
        self.ticks.keys().zip(self.ticks.keys().skip(1)).all(|(a, b)| a + 1 == *b)
    }
}

impl Connection {
    /// Connects to a complete address without sending a message.
    pub async fn to(url: &str) -> Self {
        Self::to_as(url, None).await
    }

    /// Connects with a key.
    pub async fn to_as(url: &str, key: Option<&str>) -> Self {
        let mut request = url.into_client_request().expect("an address");
        if let Some(key) = key {
            let value = format!("Bearer {key}").parse().expect("a value");
            request.headers_mut().insert("authorization", value);
        }
        let (socket, _) = tokio_tungstenite::connect_async(request).await.expect("it listens");
        Connection(socket)
    }

    /// The next message of the server; None when the connection has ended.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Binary(bytes))) => return Some(bytes.to_vec()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Sends a message of a page.
    pub async fn send_message(&mut self, message: &PageMessage) {
        self.send(Message::Binary(wire::encode(message).into())).await;
    }

    /// Sends any message.
    pub async fn send(&mut self, message: Message) {
        // The server may have closed already. The test sees that when it reads.
        let _ = self.0.send(message).await;
    }
}
