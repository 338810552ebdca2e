//! Responses of any length: made in chunks, each after the one before was sent.
//!
//! A response holds no thread while it waits for its client, and takes a few megabytes at most. When the client
//! disconnects, the connection drops the response, and no further chunk is made. An [`AnswerSlot`] limits the number
//! of concurrent responses.

use crate::http::admit::Asker;
use crate::http::hub::counted_as;
use crate::http::pace::Seat;
use crate::http::{App, Refusal};
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Chunks that are made at once: half of the threads that read history, so pages always find a free one.
const MAX_PIECES_AT_ONCE: usize = 4;
/// Concurrent responses with stored samples: each holds up to a few megabytes.
const MAX_HISTORY_ANSWERS: usize = 16;
/// Concurrent lists (catalog, machines, processes, checks): each holds less than a megabyte.
const MAX_LISTS: usize = 32;
/// Concurrent responses of `/metrics`: each holds the current values of all series.
const MAX_METRICS_PAGES: usize = 8;
/// Concurrent recordings: each holds a block of one machine.
const MAX_RECORDINGS: usize = 2;
/// Concurrent queries to the server of remote write: they may take long, and each holds a thread.
const MAX_QUESTIONS_BACK: usize = 2;

/// Limits of the concurrent responses of one server.
pub(in crate::http) struct AnswerLimits {
    /// Responses with stored samples.
    pub history: Slots,
    /// Lists: catalog, machines, processes, checks.
    pub lists: Slots,
    /// Responses of `/metrics`.
    pub metrics: Slots,
    /// Recordings in progress.
    pub recordings: Slots,
    /// Pending queries to the server of remote write.
    pub questions_back: Arc<Semaphore>,
}

impl AnswerLimits {
    /// All slots are free.
    pub fn new() -> Self {
        let turns = Arc::new(Semaphore::new(MAX_PIECES_AT_ONCE));
        let slots = |capacity| Slots { free: Arc::new(Semaphore::new(capacity)), capacity, turns: turns.clone() };
        AnswerLimits {
            history: slots(MAX_HISTORY_ANSWERS),
            lists: slots(MAX_LISTS),
            metrics: slots(MAX_METRICS_PAGES),
            recordings: slots(MAX_RECORDINGS),
            questions_back: Arc::new(Semaphore::new(MAX_QUESTIONS_BACK)),
        }
    }
}

/// Slots of the responses of one kind.
pub(in crate::http) struct Slots {
    free: Arc<Semaphore>,
    capacity: usize,
    /// Limit of concurrent chunks over responses of all kinds.
    turns: Arc<Semaphore>,
}

impl Slots {
    /// Takes a slot, which is freed when the response is sent or its client disconnects.
    ///
    /// # Errors
    /// 429: all are taken.
    pub fn take(&self) -> Result<AnswerSlot, Refusal> {
        match self.free.clone().try_acquire_owned() {
            Ok(permit) => Ok(AnswerSlot { turns: self.turns.clone(), _permit: permit, _seat: None }),
            Err(_) => {
                let sentence = format!(
                    "the limit of {} such responses at once is reached; try again when one has ended",
                    self.capacity
                );
                Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, sentence))
            }
        }
    }
}

/// The right to make one response.
pub(in crate::http) struct AnswerSlot {
    turns: Arc<Semaphore>,
    _permit: OwnedSemaphorePermit,
    /// The caller's own slot, if there are accounts.
    _seat: Option<Seat>,
}

/// A slot for the response of a query or an export, within the limit of the caller.
///
/// # Errors
/// 429: all slots are taken, or the caller has reached its limit.
pub(in crate::http) fn history_slot(app: &App, asker: &Asker) -> Result<AnswerSlot, Refusal> {
    let seat = match (&app.hub, &asker.who) {
        (Some(hub), Some(who)) => Some(hub.queries.take(counted_as(who))?),
        _ => None,
    };
    Ok(AnswerSlot { _seat: seat, ..app.answers.history.take()? })
}

impl AnswerSlot {
    /// Runs blocking work on a separate thread, off those that serve the stream. If the client disconnects meanwhile,
    /// the work completes, and nothing follows it.
    ///
    /// # Errors
    /// The work has panicked, which was logged.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let turn = self.turns.clone().acquire_owned().await;
        // The permit moves into the task: after a disconnect it is released when the work is done.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        done.await.map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the response was aborted; see the log"))
    }

    async fn next<M: Make>(&self, mut make: M) -> Result<(Bytes, Option<M>), Refusal> {
        self.blocking(move || {
            let (text, more) = make();
            (Bytes::from(text), more.then_some(make))
        })
        .await
    }
}

/// Makes a response: returns the next chunk, and whether more follow.
pub(in crate::http) trait Make: FnMut() -> (String, bool) + Send + 'static {}
impl<F: FnMut() -> (String, bool) + Send + 'static> Make for F {}

/// A response of one chunk with its length, or a longer one in chunks.
pub(in crate::http) async fn stream(slot: AnswerSlot, mime: &'static str, make: impl Make) -> Response<Body> {
    let (first, rest) = match slot.next(make).await {
        Ok(made) => made,
        Err(broken) => return broken.into(),
    };
    let length = rest.is_none().then(|| HeaderValue::from(first.len()));
    // A response that its client does not read keeps its slot.
    let state = (Some(first), rest, slot);
    let parts = futures_util::stream::unfold(state, |(first, make, slot)| async move {
        if let Some(first) = first {
            return Some((Ok(first), (None, make, slot)));
        }
        match slot.next(make?).await {
            Ok((bytes, make)) => Some((Ok(bytes), (None, make, slot))),
            Err(_) => Some((Err(std::io::Error::other("the response was aborted; see the log")), (None, None, slot))),
        }
    });
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length);
    }
    response
}

/// A response whose last field is a list, written some items at a time. `head` is the response with an empty list;
/// `items` returns the next items, none at the end.
pub(in crate::http) fn listed<T: Serialize>(
    head: &impl Serialize,
    mut items: impl FnMut() -> Option<Vec<T>> + Send + 'static,
) -> impl Make {
    let head = written(head);
    let begin = head.strip_suffix("]}").unwrap_or_else(|| unreachable!("{head} ends with an empty list"));
    let (mut begin, mut first) = (begin.to_string(), true);
    move || {
        let mut text = std::mem::take(&mut begin);
        // A search with few matches releases its permit after a while. It is not resumed after a disconnect.
        for _ in 0..MAX_TRIES {
            let Some(some) = items() else {
                text.push_str("]}");
                return (text, false);
            };
            for item in some {
                if !std::mem::take(&mut first) {
                    text.push(',');
                }
                text.push_str(&written(&item));
            }
            if text.len() >= PIECE_BYTES {
                break;
            }
        }
        (text, true)
    }
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("answers hold only text, numbers and lists")
}

/// Bytes after which a chunk of a list is sent.
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum number of calls for items of one chunk.
const MAX_TRIES: usize = 8;
