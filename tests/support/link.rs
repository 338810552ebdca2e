//! An agent made of the protocol alone, over a real socket: it can say what no agent of ours would.

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

/// A link of one machine.
pub struct Link {
    socket: WebSocketStream<TcpStream>,
    state: TickState,
    /// Messages that the hub has acknowledged.
    acknowledged: u32,
}

/// Why a link was not let in: the status of the answer, and how many seconds to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After` in seconds, 0 where there is none.
    pub wait: u64,
}

/// What this agent says first. It keeps nothing but what it sends.
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
    /// Opens one with an agent's key (`wg_a_...`), over which nothing has been said yet.
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

    /// Opens one and is welcome.
    ///
    /// # Panics
    /// Panics when it is turned away.
    pub async fn welcome(hub: SocketAddr, key: &str) -> (Link, Welcome) {
        let mut link = Link::open(hub, key).await.expect("it is let in");
        link.say(&AgentMessage::Hello(Box::new(hello()))).await;
        match link.heard().await {
            Some(HubMessage::Welcome(welcome)) => (link, welcome),
            other => panic!("no welcome but {other:?}"),
        }
    }

    /// Sends bytes as one message. That the hub has ended the link meanwhile is found when it is listened to.
    pub async fn bytes(&mut self, bytes: Vec<u8>) {
        let _ = self.socket.send(Message::Binary(bytes.into())).await;
    }

    /// Sends bytes below the WebSocket.
    pub async fn raw(&mut self, bytes: &[u8]) {
        use tokio::io::AsyncWriteExt;
        let _ = self.socket.get_mut().write_all(bytes).await;
    }

    /// Says something.
    pub async fn say(&mut self, message: &AgentMessage) {
        self.bytes(encode(message)).await;
    }

    /// Tells a series of the CPU's first row, instance `instance`, as the one of number 0.
    pub async fn tell(&mut self, instance: &str) {
        let metric = Metric::from(cpu::ROWS[0]);
        if self.state.steps().is_empty() {
            self.state.extend([metric.steps]);
        }
        self.say(&AgentMessage::Rows { rows: vec![(0, metric)], charts: Vec::new() }).await;
        let defs = vec![(0, SeriesDef { metric: 0, instance: instance.into() })];
        self.say(&AgentMessage::Series { defs }).await;
    }

    /// Sends a tick of this number, now.
    pub async fn tick(&mut self, seq: u64, value: f64) {
        // One instant has one tick.
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

    /// What the hub says next, its heartbeats apart; none where it has closed the link.
    ///
    /// # Panics
    /// Panics when that takes too long.
    pub async fn heard(&mut self) -> Option<HubMessage> {
        let heard = async {
            loop {
                match self.socket.next().await?.ok()? {
                    Message::Binary(bytes) => match decode_hub(&bytes).expect("a hub speaks the protocol")? {
                        HubMessage::Heartbeat => self.say(&AgentMessage::Heartbeat).await,
                        message => return Some(message),
                    },
                    Message::Close(_) => return None,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(3 * MAX_WAIT, heard).await.expect("the hub says something in time")
    }

    /// Waits until all of so many messages of ticks are acknowledged; through which tick all is in the log.
    ///
    /// # Panics
    /// Panics when the link ends before that, or it takes too long.
    pub async fn acknowledged(&mut self, messages: u32) -> u64 {
        let mut seq = 0;
        while self.acknowledged < messages {
            match self.heard().await {
                Some(HubMessage::Ack { messages, seq: logged, .. }) => (self.acknowledged, seq) = (messages, logged),
                Some(HubMessage::Goodbye { reason, .. }) => panic!("the link was ended: {reason}"),
                Some(_) => {}
                None => panic!("the link has ended"),
            }
        }
        seq
    }

    /// Waits until the hub ends the link: with which code, and why. None where it is closed without a word.
    pub async fn goodbye(&mut self) -> Option<(u16, String)> {
        loop {
            if let HubMessage::Goodbye { code, reason, .. } = self.heard().await? {
                return Some((code, reason));
            }
        }
    }
}

/// Links a machine, coming back as a hub with much to do asks for.
///
/// # Panics
/// Panics when it is turned away for another reason.
pub async fn patient(hub: SocketAddr, key: &str) -> (Link, u32) {
    let mut turned_away = 0;
    loop {
        match Link::open(hub, key).await {
            Ok(mut link) => {
                link.say(&AgentMessage::Hello(Box::new(hello()))).await;
                let welcome = link.heard().await;
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
