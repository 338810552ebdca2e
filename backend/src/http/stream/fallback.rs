//! Fallbacks of the WebSocket, for networks that block it: the same messages of the same viewer are sent by an event
//! stream, or by responses to a page that polls. Messages of the page come by POST.
//!
//! A page that polls reads a stream of bytes: each message behind its length, four bytes, little-endian. It names the
//! position up to which it has them, so a lost response is sent again. The first message of either transport is the
//! viewer's id, which is unguessable and valid only for the account that opened it.

use super::carrier::{Carrier, End, Opcode, SocketEvent};
use crate::http::Refusal;
use ::stream::live::Wakes;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use team::accounts::Principal;
use team::usage::Tab;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Maximum time that a poll waits for a message.
const POLL: Duration = Duration::from_secs(20);
/// Time to gather further messages after the first one.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// Maximum size of one response to a poll, bytes.
const MAX_ANSWER: usize = 256 << 10;
/// Timeout of a page that does not poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(45);
/// Maximum time for a page to receive one message.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(120);
/// Time that the last messages wait for a page to fetch them.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(2);
/// Queue sizes: messages to the page, and messages from the page. A full queue delays its sender.
const OUTGOING_QUEUE: usize = 2;
const INCOMING_QUEUE: usize = 16;

/// The viewers without a socket, by their ids. The limit of viewers applies to them.
#[derive(Clone, Default)]
pub(in crate::http) struct FallbackViewers(Arc<Mutex<HashMap<String, Arc<Landing>>>>);

/// Connects the requests of a page with its viewer.
pub(super) struct Landing {
    holder: Option<Principal>,
    said: mpsc::Sender<Bytes>,
    /// Messages that a polling page has not received; none for an event stream.
    mail: Option<tokio::sync::Mutex<Mail>>,
    polled: watch::Sender<Instant>,
}

/// The bytes from a position on that the page has not acknowledged yet.
struct Mail {
    from: u64,
    kept: Vec<u8>,
    out: mpsc::Receiver<Bytes>,
}

/// The viewer's end.
pub(super) struct FallbackViewer {
    id: String,
    fallbacks: FallbackViewers,
    said: mpsc::Receiver<Bytes>,
    out: mpsc::Sender<Bytes>,
    /// Time of the page's last poll; none for an event stream, whose end is detected.
    polled: Option<watch::Receiver<Instant>>,
    tab: Option<Tab>,
}

/// 404: there is no such viewer, or it belongs to another caller.
fn unknown() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "the stream does not exist (any more); open a new one")
}

impl FallbackViewers {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Landing>>> {
        self.0.lock()
    }

    /// The viewer of this id, for the account that opened it.
    ///
    /// # Errors
    /// 404.
    pub(super) fn find(&self, id: &str, who: Option<&Principal>) -> Result<Arc<Landing>, Refusal> {
        let found = self.all().get(id).cloned().ok_or_else(unknown)?;
        let own = match (&found.holder, who) {
            (None, None) => true,
            (Some(holder), Some(who)) => holder.holds_the_same(who),
            _ => false,
        };
        if own { Ok(found) } else { Err(unknown()) }
    }

    fn begin(&self, who: Option<&Principal>, tab: Option<Tab>, polls: bool) -> (FallbackViewer, mpsc::Receiver<Bytes>) {
        let (id, (to_viewer, said), (out, from_viewer)) =
            (team::accounts::random_id(), mpsc::channel(INCOMING_QUEUE), mpsc::channel(OUTGOING_QUEUE));
        // The queue has room: nothing was sent yet.
        let _ = out.try_send(Bytes::from(id.clone()));
        let (polled, seen) = watch::channel(Instant::now());
        let (mail, from_viewer) = match polls {
            true => {
                let (_, none) = mpsc::channel(1);
                (Some(tokio::sync::Mutex::new(Mail { from: 0, kept: Vec::new(), out: from_viewer })), none)
            }
            false => (None, from_viewer),
        };
        let landing = Landing { holder: who.cloned(), said: to_viewer, mail, polled };
        self.all().insert(id.clone(), Arc::new(landing));
        let polled = polls.then_some(seen);
        (FallbackViewer { id, fallbacks: self.clone(), said, out, polled, tab }, from_viewer)
    }

    /// A viewer whose messages are sent as events, base64, one each; and the response that carries them.
    pub(super) fn events(&self, who: Option<&Principal>, tab: Option<Tab>) -> (FallbackViewer, Response<Body>) {
        let (fallback, out) = self.begin(who, tab, false);
        let events = stream::unfold(out, async |mut out| {
            let message = out.recv().await?;
            Some((Ok::<_, Infallible>(Event::default().data(STANDARD.encode(&message))), out))
        });
        let mut response = Sse::new(events).into_response();
        // nginx would otherwise buffer events until it has many.
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        (fallback, response)
    }

    /// A viewer whose messages are sent by responses to polls, and the handle that answers its first poll.
    pub(super) fn polled(&self, who: Option<&Principal>, tab: Option<Tab>) -> (FallbackViewer, Arc<Landing>) {
        let (fallback, _) = self.begin(who, tab, true);
        let landing = self.all().get(&fallback.id).cloned().expect("it was put there just now");
        (fallback, landing)
    }
}

impl Landing {
    /// Bytes after a position in the stream: at most 256 KiB, as soon as there are any, empty after 20 s.
    ///
    /// # Errors
    /// 404: it has ended, or this position was dropped. 400: it is an event stream.
    pub async fn poll(&self, place: u64) -> Result<Response<Body>, Refusal> {
        let mail = self
            .mail
            .as_ref()
            .ok_or_else(|| Refusal::bad("this stream uses server-sent events and cannot be polled"))?;
        // An abandoned poll ends by itself.
        let mut mail = mail.lock().await;
        self.polled.send_replace(Instant::now());
        let had = place.checked_sub(mail.from).and_then(|had| usize::try_from(had).ok());
        let had = had.filter(|had| *had <= mail.kept.len()).ok_or_else(unknown)?;
        mail.kept.drain(..had);
        mail.from = place;
        let mut wait = POLL;
        while mail.kept.len() < MAX_ANSWER {
            match timeout(if mail.kept.is_empty() { wait } else { GATHER_TIME }, mail.out.recv()).await {
                Ok(Some(message)) => {
                    mail.kept.extend((message.len() as u32).to_le_bytes());
                    mail.kept.extend_from_slice(&message);
                }
                Ok(None) if mail.kept.is_empty() => return Err(unknown()),
                Ok(None) | Err(_) => break,
            }
            wait = GATHER_TIME;
        }
        self.polled.send_replace(Instant::now());
        let answer = mail.kept[..mail.kept.len().min(MAX_ANSWER)].to_vec();
        let mut response = Response::new(Body::from(answer));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        Ok(response)
    }

    /// Passes on messages of the page; waits while the queue is full.
    ///
    /// # Errors
    /// 404: it has ended.
    pub async fn pass_messages(&self, messages: Vec<Bytes>) -> Result<(), Refusal> {
        for message in messages {
            self.said.send_timeout(message, MESSAGE_TIMEOUT).await.map_err(|_| unknown())?;
        }
        Ok(())
    }
}

impl Carrier for FallbackViewer {
    async fn next(&mut self, news: &mut Wakes, wake: Option<Instant>) -> Result<SocketEvent, End> {
        loop {
            let last = self.polled.as_ref().map(|polled| *polled.borrow());
            let gone = last.map(|last| last + POLL_TIMEOUT);
            let due = gone.into_iter().chain(wake).min();
            tokio::select! {
                // In this order, as for a socket.
                biased;
                said = self.said.recv() => {
                    return said.map(|bytes| SocketEvent::Said(Message::Binary(bytes))).ok_or(End::Gone);
                }
                () = self.out.closed() => return Err(End::Gone),
                changed = news.next() => return changed.map(|()| SocketEvent::News).map_err(|_| End::Gone),
                () = until(due) => {
                    let now = Instant::now();
                    if wake.is_some_and(|wake| wake <= now) {
                        return Ok(SocketEvent::Time);
                    }
                    // It may have polled meanwhile.
                    if self.polled.as_ref().is_some_and(|polled| *polled.borrow() + POLL_TIMEOUT <= now) {
                        return Err(End::Gone);
                    }
                }
            }
        }
    }

    async fn send(&mut self, _: Opcode, message: &Bytes) -> Result<(), End> {
        self.out.send_timeout(message.clone(), MESSAGE_TIMEOUT).await.map_err(|_| End::Gone)?;
        if let Some(tab) = &self.tab {
            tab.sent(message.len());
        }
        Ok(())
    }

    async fn close(self, _: CloseCode, _: &str) {
        // The last messages are queued already. The id stays valid until they are fetched.
        let _ = timeout(CLOSING_TIMEOUT, self.out.reserve_many(OUTGOING_QUEUE)).await;
    }
}

impl Drop for FallbackViewer {
    fn drop(&mut self) {
        self.fallbacks.all().remove(&self.id);
    }
}

/// Resolves at a time; never without one.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    /// The messages in the bytes of a response, all of them complete.
    fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
            let (message, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
            all.push(message.to_vec());
            bytes = rest;
        }
        all
    }

    async fn poll(landing: &Landing, place: u64) -> Result<Vec<u8>, u16> {
        let answer = landing.poll(place).await.map_err(|refusal| refusal.status.as_u16())?;
        Ok(to_bytes(answer.into_body(), MAX_ANSWER).await.expect("a bounded answer").to_vec())
    }

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_lost_comes_again_and_what_was_had_does_not() {
        let fallbacks = FallbackViewers::default();
        let (mut fallback, landing) = fallbacks.polled(None, None);
        let first = poll(&landing, 0).await.expect("its id");
        assert_eq!(messages(&first), [fallback.id.as_bytes().to_vec()]);
        let place = first.len() as u64;
        fallback.send(Opcode::Binary, &bytes("one")).await.expect("room");
        fallback.send(Opcode::Binary, &bytes("two")).await.expect("room");
        let second = poll(&landing, place).await.expect("both");
        assert_eq!(messages(&second), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(poll(&landing, place).await.expect("once more"), second);
        let place = place + second.len() as u64;
        let begun = Instant::now();
        assert_eq!(poll(&landing, place).await.expect("nothing"), b"");
        assert_eq!(begun.elapsed(), POLL);
        assert_eq!(poll(&landing, place - 1).await, Err(404), "what it said that it has is gone");
        assert_eq!(poll(&landing, place + 1).await, Err(404));
        let id = fallback.id.clone();
        assert!(fallbacks.find(&id, None).is_ok() && fallbacks.find("0", None).is_err());
        assert!(fallbacks.find(&id, Some(&Principal::local(1))).is_err(), "another's");
        drop(fallback);
        assert!(fallbacks.find(&id, None).is_err());
        assert_eq!(poll(&landing, place).await, Err(404));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_message_goes_in_pieces_and_a_page_that_does_not_poll_holds_up_its_viewer_alone() {
        let fallbacks = FallbackViewers::default();
        let (mut fallback, landing) = fallbacks.polled(None, None);
        let long = Bytes::from(vec![7; MAX_ANSWER + 10]);
        let mut place = poll(&landing, 0).await.expect("its id").len() as u64;
        fallback.send(Opcode::Binary, &long).await.expect("room");
        fallback.send(Opcode::Binary, &long).await.expect("room");
        let waits = tokio::time::timeout(Duration::from_secs(1), fallback.send(Opcode::Binary, &long)).await;
        assert!(waits.is_err(), "it waits for the page");
        let mut got = Vec::new();
        while got.len() < 2 * (long.len() + 4) {
            let answer = poll(&landing, place).await.expect("a piece");
            assert!(!answer.is_empty() && answer.len() <= MAX_ANSWER);
            place += answer.len() as u64;
            got.extend(answer);
        }
        assert_eq!(messages(&got), [long.to_vec(), long.to_vec()]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_has_gone_is_noticed_and_one_that_polls_is_not() {
        let fallbacks = FallbackViewers::default();
        let (mut fallback, landing) = fallbacks.polled(None, None);
        let mut news = Wakes::new(Vec::new());
        let mut place = 0;
        for _ in 0..5 {
            place += poll(&landing, place).await.expect("alive").len() as u64;
            let wake = Some(Instant::now() + Duration::from_secs(5));
            assert!(matches!(fallback.next(&mut news, wake).await, Ok(SocketEvent::Time)));
        }
        let begun = Instant::now();
        assert_eq!(fallback.next(&mut news, None).await.expect_err("gone"), End::Gone);
        assert!(begun.elapsed() <= POLL_TIMEOUT);
        // The end of an event stream is detected.
        let (mut fallback, answer) = fallbacks.events(None, None);
        drop(answer);
        assert_eq!(fallback.next(&mut news, None).await.expect_err("gone"), End::Gone);
    }

    #[tokio::test]
    async fn events_are_the_same_messages_in_letters() {
        let fallbacks = FallbackViewers::default();
        let (mut fallback, answer) = fallbacks.events(None, None);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/event-stream");
        let id = fallback.id.clone();
        fallback.send(Opcode::Binary, &bytes("one")).await.expect("room");
        let landing = fallbacks.find(&id, None).expect("it is there");
        assert_eq!(poll(&landing, 0).await, Err(400), "cannot be polled");
        landing.pass_messages(vec![bytes("hello")]).await.expect("heard");
        let said = fallback.next(&mut Wakes::new(Vec::new()), None).await.expect("a word");
        assert!(matches!(said, SocketEvent::Said(Message::Binary(word)) if word == "hello"));
        drop(fallback);
        let body = to_bytes(answer.into_body(), 1 << 16).await.expect("it ends");
        assert_eq!(String::from_utf8_lossy(&body), format!("data: {}\n\ndata: b25l\n\n", STANDARD.encode(id)));
    }
}
