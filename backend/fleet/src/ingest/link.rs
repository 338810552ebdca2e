//! The socket of one agent: hello and welcome, heartbeat, credit, and close.

use super::append;
use super::ask::{Desk, Questions};
use super::end::LinkEnd;
use super::intake::{Intake, Past, Taken};
use super::limits::{self, Cause};
use super::others::NoTake;
use super::presence::{LinkPlace, LinkProcess, NoPlace, Order};
use super::{Arrival, Inner};
use futures_util::{SinkExt, StreamExt};
use shared::agent::{
    self, AgentHello, AgentMessage, ByeReason, FromAgent, HEARTBEAT_MS, HubMessage, MAX_MESSAGE, SILENCE_MS, close,
};
use shared::connection_state::ConnectionState;
use shared::unit::rough_duration;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use team::accounts::Denied;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Maximum time until an agent's hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for which an agent may not read from its socket.
const SEND_TIMEOUT: Duration = Duration::from_millis(SILENCE_MS);
/// Maximum time for the agent to close its end.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of heartbeats, slightly shorter than the other end expects.
const HEARTBEAT: Duration = Duration::from_millis(HEARTBEAT_MS - 500);
const SILENCE_TIMEOUT: Duration = Duration::from_millis(SILENCE_MS);
/// Interval of the periodic work.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the periodic work while a reader waits for the data.
const AWAITED_INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which the last contact of a machine is stored.
const HEARD_INTERVAL: Duration = Duration::from_secs(60);
/// Wait time of an agent whose key another process uses, ms.
const IN_USE_WAIT_MS: u32 = 60_000;
/// Size of the read buffer, and of the write buffer before a flush, bytes.
const BUFFER_BYTES: usize = 8 << 10;

/// WebSocket configuration of agents' sockets: messages are limited to the protocol's maximum, and an idle link uses
/// little memory.
pub fn socket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_MESSAGE)
}

/// Resolves when a key is no longer valid: with one of [`close`], and a sentence.
pub type Denial<'a> = Pin<&'a mut (dyn Future<Output = (u16, String)> + Send)>;

/// An agent's socket.
struct Socket<S> {
    inner: Box<WebSocketStream<S>>,
    heard: Instant,
    said: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    fn new(inner: WebSocketStream<S>) -> Self {
        let now = Instant::now();
        Socket { inner: Box::new(inner), heard: now, said: now }
    }

    async fn send(&mut self, message: &HubMessage) -> Result<(), LinkEnd> {
        let sent = self.inner.send(Message::Binary(agent::encode_hub(message).into()));
        let sent = timeout(SEND_TIMEOUT, sent).await;
        self.said = Instant::now();
        sent.ok().and_then(Result::ok).ok_or(LinkEnd::Gone)
    }

    /// The next message. Cancel safe.
    async fn next(&mut self) -> Result<Option<Message>, LinkEnd> {
        let message = self.inner.next().await;
        self.heard = Instant::now();
        match message {
            Some(Err(Error::Capacity(_))) => {
                Err(LinkEnd::from_close(close::LIMIT, format!("a message of an agent has at most {MAX_MESSAGE} bytes")))
            }
            Some(Ok(Message::Close(_))) | Some(Err(_)) | None => Err(LinkEnd::Gone),
            Some(Ok(message @ Message::Binary(_))) => Ok(Some(message)),
            Some(Ok(Message::Text(_))) => Err(LinkEnd::frame_error("an agent's messages are binary")),
            Some(Ok(_)) => Ok(None),
        }
    }

    /// The first message, which must be a hello.
    async fn hello(&mut self) -> Result<AgentHello, LinkEnd> {
        loop {
            let Some(message) = self.next().await? else { continue };
            return match agent::decode_agent(&message.into_data()) {
                Ok(FromAgent::Control(AgentMessage::Hello(hello))) => Ok(*hello),
                _ => Err(LinkEnd::frame_error("the first message of an agent is its hello")),
            };
        }
    }

    /// Sends the reason of the end, and closes the link.
    async fn end(&mut self, code: u16, reason: &str, wait: u32) {
        let goodbye = HubMessage::Goodbye { code, reason: reason.into(), wait };
        let closed = async {
            self.send(&goodbye).await.ok()?;
            // A close frame has room for 123 bytes.
            let short = reason.char_indices().take_while(|(at, c)| at + c.len_utf8() <= 120).map(|(_, c)| c);
            let frame = CloseFrame { code: CloseCode::from(code), reason: short.collect::<String>().into() };
            self.inner.send(Message::Close(Some(frame))).await.ok()?;
            while self.inner.next().await?.is_ok() {}
            Some(())
        };
        let _ = timeout(CLOSING_TIMEOUT, closed).await;
    }
}

impl super::Ingest {
    /// Receives the messages of an agent until its link ends.
    pub async fn link<S: AsyncRead + AsyncWrite + Unpin>(&self, arrival: Arrival, socket: WebSocketStream<S>) {
        self.link_until(arrival, socket, std::pin::pin!(std::future::pending())).await;
    }

    /// As above, at most until its key is `denied`, which resolves with one of [`close`] and a sentence.
    pub async fn link_until<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        arrival: Arrival,
        socket: WebSocketStream<S>,
        denied: Denial<'_>,
    ) {
        let mut socket = Socket::new(socket);
        let end = match run(&self.0, &arrival, &mut socket, denied).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        if let LinkEnd::Told { code, reason, wait } = end {
            let wait = if code == close::FRAME_ERROR { self.0.strike(&arrival.source).max(wait) } else { wait };
            tracing::warn!(machine = arrival.name, code, "the link of a machine was ended: {reason}");
            socket.end(code, &reason, wait).await;
        }
    }

    /// Receives a source that another hub holds, as if its agent sent it, until the relay ends or `denied` resolves.
    /// Nothing about the machine is stored, and the rules for second links do not apply.
    pub async fn relay<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        arrival: Arrival,
        socket: WebSocketStream<S>,
        denied: Denial<'_>,
    ) {
        let mut socket = Socket::new(socket);
        let end = match bring(&self.0, &arrival, &mut socket, denied).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        if let LinkEnd::Told { code, reason, wait } = end {
            tracing::debug!(machine = arrival.name, code, "what another hub told of a machine was ended: {reason}");
            socket.end(code, &reason, wait).await;
        }
    }

    /// Refuses an agent whose key has ended, with the reason.
    pub async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(&self, socket: WebSocketStream<S>, code: u16, reason: &str) {
        Socket::new(socket).end(code, reason, 0).await;
    }
}

/// Runs a link; returns the reason of its end.
async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    ingest: &Arc<Inner>,
    arrival: &Arrival,
    socket: &mut Socket<S>,
    denied: Denial<'_>,
) -> Result<std::convert::Infallible, LinkEnd> {
    let hello = timeout(HELLO_TIMEOUT, socket.hello()).await;
    let hello = hello.unwrap_or_else(|_| Err(LinkEnd::frame_error("no hello within 10 s")));
    let hello = hello.inspect_err(|_| ingest.refusals(None).add(Cause::Link, 1))?;
    let host = if limits::is_fact(&hello.host) { hello.host.clone() } else { String::new() };
    let process = LinkProcess { instance: hello.instance, host: host.clone(), started: hello.started };
    let place = ingest.presence.enter(&arrival.source, &process).await;
    let place = place.map_err(|why| {
        ingest.refusals(None).add(Cause::Link, 1);
        no_place(why, ingest.live.clock.wall())
    })?;
    if let Some(reason) = ingest.clones.linked(arrival, hello.boot, &host, ingest.live.clock.steady()) {
        let source = ingest.live.store().named(&arrival.source);
        source
            .into_iter()
            .for_each(|source| ingest.live.set_connection_state(source, ConnectionState::Refused(reason.clone())));
        return Err(LinkEnd::Told { code: close::IN_USE, reason, wait: IN_USE_WAIT_MS });
    }
    if let Some(others) = &ingest.others {
        others.take(&arrival.source, &process).await.map_err(|why| {
            ingest.refusals(None).add(Cause::Link, 1);
            match why {
                NoTake::InUse(process) => no_place(NoPlace::InUse(process), ingest.live.clock.wall()),
                NoTake::Unavailable(why) => LinkEnd::from_close(close::GOING, why),
            }
        })?;
    }
    let past = past(ingest, &arrival.source).await?;
    let (mut intake, welcome) = Intake::begin(ingest.clone(), arrival, hello, past)?;
    note(ingest, arrival, &mut intake, true).await;
    ingest.live.set_connection_state(intake.source, ConnectionState::Live);
    let mut ended = ConnectionStateGuard { ingest, source: intake.source, place, end: LinkEnd::Gone };
    let end = match socket.send(&welcome).await {
        Ok(()) => follow(ingest, arrival, (&mut intake, socket, &mut ended.place), denied).await,
        Err(end) => Err(end),
    };
    if let Err(end) = &end {
        ended.end = end.clone();
        if matches!(end, LinkEnd::Told { code: close::FRAME_ERROR | close::LIMIT, .. }) {
            intake.ended();
        }
    }
    intake.note();
    note(ingest, arrival, &mut intake, true).await;
    end
}

/// Receives a relay of another hub, until it ends.
async fn bring<S: AsyncRead + AsyncWrite + Unpin>(
    ingest: &Arc<Inner>,
    arrival: &Arrival,
    socket: &mut Socket<S>,
    denied: Denial<'_>,
) -> Result<std::convert::Infallible, LinkEnd> {
    let hello = timeout(HELLO_TIMEOUT, socket.hello()).await;
    let hello = hello.unwrap_or_else(|_| Err(LinkEnd::frame_error("no hello within 10 s")))?;
    let place = ingest.presence.enter_relay(&arrival.source);
    let mut place = place.ok_or_else(|| LinkEnd::from_close(close::GOING, "its agent is connected here"))?;
    // Timestamps of a relay are already corrected.
    let erased = past(ingest, &arrival.source).await.map(|past| past.erased).unwrap_or_default();
    let past = Past { eras: Vec::new(), erased };
    let (mut intake, welcome) = Intake::begin(ingest.clone(), arrival, hello, past)?;
    let brought = Brought { ingest, source: intake.source };
    socket.send(&welcome).await?;
    let end = follow(ingest, arrival, (&mut intake, socket, &mut place), denied).await;
    drop(brought);
    end
}

/// Marks a relay as ended when it is dropped.
struct Brought<'a> {
    ingest: &'a Inner,
    source: shared::wire::SourceId,
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        self.ingest.live.set_brought(self.source, false);
    }
}

/// Reads the stored state of a source.
async fn past(ingest: &Inner, source: &str) -> Result<Past, LinkEnd> {
    let Some(accounts) = &ingest.accounts else { return Ok(Past::default()) };
    let read = async { Ok(Past { eras: accounts.eras(source).await?, erased: accounts.erased(source).await? }) };
    // Without it, a tick that arrives twice could get two timestamps.
    read.await.map_err(|why: Denied| LinkEnd::from_close(close::GOING, why.to_string()))
}

/// Stores the last contact of a machine if it was `heard`, and a new era of its clock.
async fn note(ingest: &Inner, arrival: &Arrival, intake: &mut Intake, heard: bool) {
    let Some(accounts) = ingest.accounts.as_ref().filter(|_| !arrival.relayed) else { return };
    let written = async {
        if let Some(era) = intake.era {
            accounts.put_era(&arrival.source, &era).await?;
            intake.era = None;
        }
        if heard {
            accounts.store_report(&arrival.source, &intake.report()).await?;
        }
        Ok::<_, Denied>(())
    };
    if let Err(why) = written.await {
        tracing::warn!(machine = arrival.name, %why, "what a machine told could not be written down");
    }
}

/// Sets the state of a source when its link ends for any reason, unless another link has replaced it.
struct ConnectionStateGuard<'a> {
    ingest: &'a Inner,
    source: shared::wire::SourceId,
    place: LinkPlace,
    end: LinkEnd,
}

impl Drop for ConnectionStateGuard<'_> {
    fn drop(&mut self) {
        let connection_state = match &self.end {
            _ if self.place.is_taken() => return,
            LinkEnd::Bye(ByeReason::Stopping) => ConnectionState::Stopped("the agent was shut down".into()),
            LinkEnd::Bye(ByeReason::Restarting) => ConnectionState::Stopped("it is restarting".into()),
            LinkEnd::Bye(ByeReason::Upgrading) => {
                ConnectionState::Stopped("it is restarting with another version".into())
            }
            LinkEnd::Told { code: close::LIMIT | close::REVOKED | close::IN_USE, reason, .. } => {
                ConnectionState::Refused(reason.clone())
            }
            LinkEnd::Told { .. } | LinkEnd::Gone => ConnectionState::Unreachable,
        };
        self.ingest.live.set_connection_state(self.source, connection_state);
    }
}

/// Due times of a link's work.
struct Timers {
    /// Number of acknowledged messages, and the time to acknowledge the others.
    acknowledged: u32,
    credit: Option<Instant>,
    /// Reading is paused until this time.
    held: Option<Instant>,
    upkeep: Instant,
    /// Next time at which the last contact of the machine is stored.
    heard: Instant,
}

impl Timers {
    fn new() -> Timers {
        let now = Instant::now();
        Timers { acknowledged: 0, credit: None, held: None, upkeep: now, heard: now + HEARD_INTERVAL }
    }

    /// The earliest due time; `fetch` is the time of the next possible request.
    fn next<S>(&self, socket: &Socket<S>, fetch: Option<Instant>) -> Instant {
        let ends = [socket.said + HEARTBEAT, socket.heard + SILENCE_TIMEOUT];
        ends.into_iter().chain(self.credit).chain(self.held).chain(fetch).fold(self.upkeep, Instant::min)
    }

    /// A message must be acknowledged after this time.
    fn add_credit(&mut self, wait: Option<Duration>) {
        if let Some(wait) = wait {
            let at = Instant::now() + wait;
            self.credit = Some(self.credit.map_or(at, |known| known.max(at)));
        }
    }

    /// Runs the work that is due.
    async fn keep_up<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        ingest: &Inner,
        arrival: &Arrival,
        intake: &mut Intake,
        socket: &mut Socket<S>,
    ) -> Result<(), LinkEnd> {
        let now = Instant::now();
        if self.held.is_some() {
            // Unread messages do not count as silence.
            socket.heard = now;
        }
        self.held = self.held.filter(|until| *until > now);
        if self.credit.is_some_and(|at| at <= now) {
            self.credit = None;
            let acknowledgement = intake.acknowledgement();
            self.acknowledged = intake.messages;
            socket.send(&acknowledgement).await?;
        }
        if now >= socket.heard + SILENCE_TIMEOUT {
            return Err(LinkEnd::Gone);
        }
        if now >= socket.said + HEARTBEAT {
            socket.send(&HubMessage::Heartbeat).await?;
        }
        if now >= self.upkeep {
            // A reader waits for data of another hub.
            self.upkeep = now + if intake.is_awaited() { AWAITED_INTERVAL } else { UPKEEP_INTERVAL };
            intake.upkeep()?;
            let due = now >= self.heard;
            if due || intake.era.is_some() {
                self.heard = now + HEARD_INTERVAL;
                note(ingest, arrival, intake, due).await;
            }
        }
        Ok(())
    }
}

/// Processes one message, and answers it.
async fn take<S: AsyncRead + AsyncWrite + Unpin>(
    ingest: &Arc<Inner>,
    intake: &mut Intake,
    socket: &mut Socket<S>,
    questions: &mut Questions,
    message: Message,
) -> Result<Taken, LinkEnd> {
    let mut taken = intake.receive(&message.into_data())?;
    if let Some(answer) = &taken.answer {
        socket.send(answer).await?;
    }
    if !taken.ticks.is_empty() {
        append::append(ingest, intake.source, std::mem::take(&mut taken.ticks)).await;
    }
    if let Some(block) = taken.block.take() {
        let span = (block.first, block.last);
        // Long work, so it must not block the other tasks of this thread.
        let checked = tokio::task::spawn_blocking(move || block.check()).await;
        intake.filled(span, checked.ok().flatten());
    }
    if let Some((id, bytes)) = taken.told.take() {
        questions.answered(id, bytes, intake.shift());
    }
    Ok(taken)
}

/// Processes messages until the link ends.
async fn follow<S: AsyncRead + AsyncWrite + Unpin>(
    ingest: &Arc<Inner>,
    arrival: &Arrival,
    (intake, socket, place): (&mut Intake, &mut Socket<S>, &mut LinkPlace),
    mut denied: Denial<'_>,
) -> Result<std::convert::Infallible, LinkEnd> {
    let mut going = std::pin::pin!(going(ingest, &place.source));
    let mut questions: Questions = if arrival.relayed { Desk::none() } else { ingest.desk.open(intake.source) };
    let mut timers = Timers::new();
    // Turn to fetch: one queue for all links, and each answer releases the turn.
    let mut turn = None::<OwnedSemaphorePermit>;
    let mut queued = None::<Pin<Box<dyn Future<Output = OwnedSemaphorePermit> + Send + '_>>>;
    loop {
        let mut fetch = None;
        if intake.is_fetching() {
            // The answer ends the turn.
        } else if !intake.wants_turn() {
            (turn, queued) = (None, None);
        } else if turn.is_none() {
            queued.get_or_insert_with(|| Box::pin(ingest.turns.take()));
        } else {
            let wait = ingest.turns.wait(Instant::now());
            if !wait.is_zero() {
                fetch = Some(Instant::now() + wait);
            } else if let Some(want) = intake.ask() {
                socket.send(&want).await?;
            }
        }
        let due = timers.next(socket, fetch);
        tokio::select! {
            biased;
            end = &mut going => return Err(end),
            (code, reason) = &mut denied => return Err(LinkEnd::from_close(code, reason)),
            order = ordered(&mut place.orders) => match order {
                Order::Leave => return Err(LinkEnd::Gone),
                Order::Ask => socket.ask().await?,
                Order::Stay => {}
            },
            message = socket.next(), if timers.held.is_none() => {
                place.mark_alive();
                let hold = if let Some(message) = message? {
                    let taken = take(ingest, intake, socket, &mut questions, message).await?;
                    if taken.fetched {
                        turn = None;
                    }
                    timers.add_credit(taken.credit);
                    taken.hold
                } else {
                    intake.count_bytes(0)
                };
                timers.held = (!hold.is_zero()).then(|| Instant::now() + hold);
                if intake.messages.wrapping_sub(timers.acknowledged) > agent::CREDIT {
                    return Err(LinkEnd::from_close(close::LIMIT, "more data was sent than acknowledged"));
                }
            }
            question = questions.next(intake.shift()) => socket.send(&question).await?,
            permit = next_turn(&mut queued) => (turn, queued) = (Some(permit), None),
            () = tokio::time::sleep_until(due) => {}
        }
        timers.keep_up(ingest, arrival, intake, socket).await?;
    }
}

/// Resolves when the queued fetch has its turn; never without a queued one.
async fn next_turn<F: Future<Output = OwnedSemaphorePermit> + Unpin>(queued: &mut Option<F>) -> OwnedSemaphorePermit {
    match queued {
        Some(queued) => queued.await,
        None => std::future::pending().await,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Sends a ping, which a live agent answers.
    async fn ask(&mut self) -> Result<(), LinkEnd> {
        let asked = timeout(SEND_TIMEOUT, self.inner.send(Message::Ping(Vec::new().into()))).await;
        asked.ok().and_then(Result::ok).ok_or(LinkEnd::Gone)
    }
}

/// Resolves when the hub shuts down.
async fn going(ingest: &Inner, source: &str) -> LinkEnd {
    // Each machine has a fixed place in the drain. Agents that can only reconnect to this hub keep that order: the
    // first one waits until the last one has been closed.
    let wait = ingest.drain.turn(shared::crc32c::crc32c(source.as_bytes())).await;
    let wait = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
    LinkEnd::Told { code: close::GOING, reason: "the hub is shutting down or restarting".into(), wait }
}

/// Resolves with the next order.
async fn ordered(orders: &mut watch::Receiver<Order>) -> Order {
    match orders.changed().await {
        Ok(()) => *orders.borrow_and_update(),
        Err(_) => Order::Leave,
    }
}

fn no_place(why: NoPlace, now: i64) -> LinkEnd {
    match why {
        NoPlace::Full => LinkEnd::from_close(close::LIMIT, "the limit of links on this hub is reached; retry later"),
        NoPlace::InUse(process) => LinkEnd::Told {
            code: close::IN_USE,
            reason: format!(
                "this key is in use by {}, started {} ago; if this is another machine, start it with --new-identity",
                if process.host.is_empty() { "another process" } else { &process.host },
                rough_duration(now.saturating_sub(process.started))
            ),
            wait: IN_USE_WAIT_MS,
        },
    }
}
