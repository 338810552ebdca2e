//! Answers that may be long: made piece by piece, each when the one before has gone.
//!
//! So an answer holds no thread while it waits for its reader, takes a few megabytes at most however long it is, and ends
//! with its reader: when a caller has hung up the connection drops its answer, and nothing more is made. A [`AnswerSlot`] bounds
//! how many there are at once.

use crate::http::admit::Asker;
use crate::http::hub::counted_as;
use crate::http::pace::Seat;
use crate::http::{App, Refusal};
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pieces that are made at once: half of the threads that read history, so that pages always find one.
const MAX_PIECES_AT_ONCE: usize = 4;
/// Answers with stored samples: each holds up to a few megabytes.
const MAX_HISTORY_ANSWERS: usize = 16;
/// Lists of what there is: each holds less than a megabyte.
const MAX_LISTS: usize = 32;
/// Pages for Prometheus: each holds the current values of all series.
const MAX_METRICS_PAGES: usize = 8;
/// Recordings: each holds a block of one machine.
const MAX_RECORDINGS: usize = 2;
/// Questions to the server of remote write: it may take long, and each holds one of the threads.
const MAX_QUESTIONS_BACK: usize = 2;

/// How many answers one server makes and has read at once.
pub(in crate::http) struct AnswerLimits {
    /// Answers with stored samples.
    pub history: Slots,
    /// Lists of what there is: the table, machines, processes, checks.
    pub lists: Slots,
    /// Answers of `/metrics`.
    pub metrics: Slots,
    /// Recordings that are being made.
    pub recordings: Slots,
    /// Questions to the server of remote write that wait for their answer.
    pub questions_back: Arc<Semaphore>,
}

impl AnswerLimits {
    /// Nothing is taken.
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

/// Answers of one kind that may be made and read at once.
pub(in crate::http) struct Slots {
    free: Arc<Semaphore>,
    capacity: usize,
    /// Pieces of answers of all kinds that may be made at once.
    turns: Arc<Semaphore>,
}

impl Slots {
    /// One of them, given back when the answer has been read, or its reader is gone.
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

/// The right to make one answer.
pub(in crate::http) struct AnswerSlot {
    turns: Arc<Semaphore>,
    _permit: OwnedSemaphorePermit,
    /// Of who asks, where there are accounts.
    _seat: Option<Seat>,
}

/// The right to make an answer of a query or an export, of those that who asks may have at once.
///
/// # Errors
/// 429: all are taken, or who asks has as many as one may.
pub(in crate::http) fn history_slot(app: &App, asker: &Asker) -> Result<AnswerSlot, Refusal> {
    let seat = match (&app.hub, &asker.who) {
        (Some(hub), Some(who)) => Some(hub.queries.take(counted_as(who))?),
        _ => None,
    };
    Ok(AnswerSlot { _seat: seat, ..app.answers.history.take()? })
}

impl AnswerSlot {
    /// Does work that may take long on a thread of its own, not on those that serve the stream. Where the caller goes
    /// meanwhile the work is done to its end, and nothing after it.
    ///
    /// # Errors
    /// It has panicked, which the log has told of.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let turn = self.turns.clone().acquire_owned().await;
        // The turn goes along: where the caller has gone, it is given back when the work is done.
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

/// What makes an answer: the next piece of it, and whether more follow.
pub(in crate::http) trait Make: FnMut() -> (String, bool) + Send + 'static {}
impl<F: FnMut() -> (String, bool) + Send + 'static> Make for F {}

/// An answer of one piece with its length, a longer one in parts.
pub(in crate::http) async fn stream(slot: AnswerSlot, mime: &'static str, make: impl Make) -> Response<Body> {
    let (first, rest) = match slot.next(make).await {
        Ok(made) => made,
        Err(broken) => return broken.into(),
    };
    let length = rest.is_none().then(|| HeaderValue::from(first.len()));
    // One that is not read holds its place as well.
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

/// An answer whose last field is a list, which is written some of its items at a time. `head` is the answer with an empty
/// list; `items` gives the next items, none at the end.
pub(in crate::http) fn listed<T: Serialize>(
    head: &impl Serialize,
    mut items: impl FnMut() -> Option<Vec<T>> + Send + 'static,
) -> impl Make {
    let head = written(head);
    let begin = head.strip_suffix("]}").unwrap_or_else(|| unreachable!("{head} ends with an empty list"));
    let (mut begin, mut first) = (begin.to_string(), true);
    move || {
        let mut text = std::mem::take(&mut begin);
        // A search that finds little gives its turn away after a while, and is not resumed when its caller is gone.
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

/// Bytes after which a piece of a list is handed out.
const PIECE_BYTES: usize = 64 * 1024;
/// Times that a piece of a list asks for more items.
const MAX_TRIES: usize = 8;
