//! An agent made of the protocol alone, over a real socket. It can send messages that no agent of ours would.

use crate::waiting::MAX_WAIT;
use api::Operation;
use futures_util::{SinkExt, StreamExt};
use shared::agent::{
    AgentHello, AgentMessage, HubMessage, Offer, PROTOCOL_NAME, Welcome, decode_hub, encode, encode_ticks,
};
use shared::catalog::{Metric, cpu};
use shared::series::SeriesDef;
use shared::tick::TickState;
use std::net::SocketAddr;
use std::time::Duration;
use stream::clock::{Clock, System};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::{Error, Message};

/// A connection of one machine.
pub struct Link {
    socket: WebSocketStream<TcpStream>,
    state: TickState,
    /// Messages that the hub has acknowledged.
    acknowledged: u32,
}

/// Rejection of a connection: the HTTP status of the answer, and the wait before a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After` in seconds; 0 when it is absent.
    pub wait: u64,
}

/// Hello message of this agent. It stores nothing.
pub fn hello() -> AgentHello {
    let now = System.wall();
    let first = (now / 100) as u64;
    AgentHello {
        instance: 1,
        folder: 1,
        boot: None,
        machine: None,
        host: "bare".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started: now,
        interval: 1_000,
        facts: Vec::new(),
        labels: Vec::new(),
        now,
        life: first,
        seq: 0,
        record: 0,
        retention: 43_200_000,
        memory: false,
        offers: vec![Offer { first: u64::MAX / 2, last: u64::MAX, from: now, to: i64::MAX }],
    }
}

impl Link {
    /// Opens a connection with an agent's key (`wg_a_...`), without sending a message.
    ///
    /// # Errors
    /// [`TurnedAway`].
    ///
    /// # Panics
    /// Panics when the hub does not answer.
    pub async fn open(hub: SocketAddr, key: &str) -> Result<Link, TurnedAway> {
        let mut request =
            format!("ws://{hub}{}", Operation::LinkAgent.path()).into_client_request().expect("an address");
        let key = HeaderValue::try_from(format!("Bearer {key}")).expect("a key is plain text");
        request.headers_mut().insert(header::AUTHORIZATION, key);
        request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL_NAME));
        let stream = TcpStream::connect(hub).await.expect("it listens");
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Link { socket, state: TickState::default(), acknowledged: 0 }),
            Err(Error::Http(answer)) => {
                let wait = answer.headers().get(header::RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
                Err(TurnedAway { status: answer.status().as_u16(), wait: wait.unwrap_or(0) })
            }
            Err(error) => panic!("the hub does not answer: {error}"),
        }
    }

    /// Opens a connection and completes the handshake.
    ///
    /// # Panics
    /// Panics when it is rejected.
    pub async fn welcome(hub: SocketAddr, key: &str) -> (Link, Welcome) {
        let mut link = Link::open(hub, key).await.expect("it is let in");
        link.send_message(&AgentMessage::Hello(Box::new(hello()))).await;
        match link.receive_message().await {
            Some(HubMessage::Welcome(welcome)) => (link, welcome),
            other => panic!("no welcome but {other:?}"),
        }
    }

    /// Sends bytes as one message. If the hub has closed the connection meanwhile, a later read finds that.
    pub async fn bytes(&mut self, bytes: Vec<u8>) {
        let _ = self.socket.send(Message::Binary(bytes.into())).await;
    }

    /// Sends raw bytes below the WebSocket layer.
    pub async fn raw(&mut self, bytes: &[u8]) {
        use tokio::io::AsyncWriteExt;
        let _ = self.socket.get_mut().write_all(bytes).await;
    }

    /// Sends a message.
    pub async fn send_message(&mut self, message: &AgentMessage) {
        self.bytes(encode(message)).await;
    }

    /// Sends the definition of one series with number 0: the CPU's first row, with this instance.
    pub async fn tell(&mut self, instance: &str) {
        let metric = Metric::from(cpu::ROWS[0]);
        if self.state.steps().is_empty() {
            self.state.extend([metric.steps]);
        }
        self.send_message(&AgentMessage::Rows { rows: vec![(0, metric)], charts: Vec::new() }).await;
        let defs = vec![(0, SeriesDef { metric: 0, instance: instance.into() })];
        self.send_message(&AgentMessage::Series { defs }).await;
    }

    /// Sends a tick with this sequence number and the current time.
    pub async fn tick(&mut self, seq: u64, value: f64) {
        // Times of ticks must differ.
        let t = System.wall().max(self.state.t() + 1);
        let mut frames = Vec::new();
        if self.state.seq() == 0 {
            let mut before = TickState::after(seq - 1, t - 1_000);
            before.extend(self.state.steps().iter().copied());
            frames.push(before.keyframe());
            self.state = before;
        }
        frames.push(self.state.encode_at(seq, t, false, &[value]));
        self.bytes(encode_ticks(frames.iter().map(Vec::as_slice))).await;
    }

    /// The next message of the hub other than a heartbeat. None when it has closed the connection.
    ///
    /// # Panics
    /// Panics when that takes too long.
    pub async fn receive_message(&mut self) -> Option<HubMessage> {
        let heard = async {
            loop {
                match self.socket.next().await?.ok()? {
                    Message::Binary(bytes) => match decode_hub(&bytes).expect("a hub speaks the protocol")? {
                        HubMessage::Heartbeat => self.send_message(&AgentMessage::Heartbeat).await,
                        message => return Some(message),
                    },
                    Message::Close(_) => return None,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(3 * MAX_WAIT, heard).await.expect("the hub says something in time")
    }

    /// Waits until this many messages of ticks are acknowledged. Returns the sequence number up to which all ticks are
    /// in the log.
    ///
    /// # Panics
    /// Panics when the connection ends before that, or it takes too long.
    pub async fn acknowledged(&mut self, messages: u32) -> u64 {
        let mut seq = 0;
        while self.acknowledged < messages {
            match self.receive_message().await {
                Some(HubMessage::Ack { messages, seq: logged, .. }) => (self.acknowledged, seq) = (messages, logged),
                Some(HubMessage::Goodbye { reason, .. }) => panic!("the link was ended: {reason}"),
                Some(_) => {}
                None => panic!("the link has ended"),
            }
        }
        seq
    }

    /// Waits until the hub ends the connection, and returns code and reason. None when it closes without a goodbye
    /// message.
    pub async fn goodbye(&mut self) -> Option<(u16, String)> {
        loop {
            if let HubMessage::Goodbye { code, reason, .. } = self.receive_message().await? {
                return Some((code, reason));
            }
        }
    }
}

/// Connects a machine, with retries after the time in a busy hub's `Retry-After`. Returns the number of rejections too.
///
/// # Panics
/// Panics when it is rejected for another reason.
pub async fn patient(hub: SocketAddr, key: &str) -> (Link, u32) {
    let mut turned_away = 0;
    loop {
        match Link::open(hub, key).await {
            Ok(mut link) => {
                link.send_message(&AgentMessage::Hello(Box::new(hello()))).await;
                let welcome = link.receive_message().await;
                assert!(matches!(welcome, Some(HubMessage::Welcome(_))), "no welcome but {welcome:?}");
                return (link, turned_away);
            }
            Err(TurnedAway { status: 503, wait }) => {
                assert!((1..=10).contains(&wait), "{wait} s");
                turned_away += 1;
                tokio::time::sleep(Duration::from_secs(wait)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}
