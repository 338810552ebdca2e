//! Answers that may be long: made piece by piece, each when the one before has gone.
//!
//! So an answer holds no thread while it waits for its reader, takes a few megabytes at most however long it is, and ends
//! with its reader: when a caller has hung up the connection drops its answer, and nothing more is made. A [`Room`] bounds
//! how many there are at once.

use super::error;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Pieces that are made at once: half of the threads that read history, so that pages always find one.
static TURNS: Semaphore = Semaphore::const_new(4);

/// Answers of one kind that may be made and read at once.
pub(super) struct Room {
    open: Semaphore,
    most: usize,
}

/// Stored samples: each answer holds up to a few megabytes.
pub(super) static HISTORY: Room = Room::of(16);
/// Lists of what there is: each holds less than a megabyte.
pub(super) static LISTS: Room = Room::of(32);
/// Pages for Prometheus: each holds the current values of all series.
pub(super) static METRICS: Room = Room::of(8);

impl Room {
    const fn of(most: usize) -> Self {
        Room { open: Semaphore::const_new(most), most }
    }

    /// A place in it, given back when the answer has been read, or its reader is gone.
    ///
    /// # Errors
    /// All are taken.
    pub fn enter(&'static self) -> Result<SemaphorePermit<'static>, Full> {
        self.open.try_acquire().map_err(|_| Full(self.most))
    }
}

/// So many answers are being read already.
pub(super) struct Full(usize);

impl From<Full> for Response<Body> {
    fn from(Full(most): Full) -> Self {
        let sentence = format!("{most} such answers are being read; try again when one has ended");
        error(StatusCode::TOO_MANY_REQUESTS, sentence)
    }
}

/// Work that may take long, done off the threads that serve the stream.
///
/// # Errors
/// It has panicked, which the log has told of.
pub(super) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Response<Body>> {
    let turn = TURNS.acquire().await;
    let done = tokio::task::spawn_blocking(work).await;
    drop(turn);
    done.map_err(|_| error(StatusCode::INTERNAL_SERVER_ERROR, "the answer broke off; the log says why"))
}

/// What makes an answer: the next piece of it, and whether more follow.
pub(super) trait Make: FnMut() -> (String, bool) + Send + 'static {}
impl<F: FnMut() -> (String, bool) + Send + 'static> Make for F {}

async fn next<M: Make>(mut make: M) -> Result<(Bytes, Option<M>), Response<Body>> {
    apart(move || {
        let (text, more) = make();
        (Bytes::from(text), more.then_some(make))
    })
    .await
}

/// An answer of one piece with its length, a longer one in parts.
pub(super) async fn stream(open: SemaphorePermit<'static>, mime: &'static str, make: impl Make) -> Response<Body> {
    let (first, rest) = match next(make).await {
        Ok(made) => made,
        Err(broken) => return broken,
    };
    let length = rest.is_none().then(|| HeaderValue::from(first.len()));
    // One that is not read holds its place as well.
    let state = (Some(first), rest, open);
    let parts = futures_util::stream::unfold(state, |(first, make, open)| async move {
        if let Some(first) = first {
            return Some((Ok(first), (None, make, open)));
        }
        match next(make?).await {
            Ok((bytes, make)) => Some((Ok(bytes), (None, make, open))),
            Err(_) => Some((Err(std::io::Error::other("the answer broke off; the log says why")), (None, None, open))),
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

/// A list as JSON, behind what it begins with, `{"NAME":[`: some of its items at a time. `items` gives the next of them, none at the end.
pub(super) fn listed(
    begin: String,
    mut items: impl FnMut() -> Option<Vec<serde_json::Value>> + Send + 'static,
) -> impl Make {
    let (mut begin, mut first) = (begin, true);
    move || {
        let mut text = std::mem::take(&mut begin);
        // A search that finds little gives its turn away after a while, and is not resumed when its caller is gone.
        for _ in 0..TRIES {
            let Some(some) = items() else {
                text.push_str("]}");
                return (text, false);
            };
            for item in some {
                if !std::mem::take(&mut first) {
                    text.push(',');
                }
                text.push_str(&item.to_string());
            }
            if text.len() >= PIECE {
                break;
            }
        }
        (text, true)
    }
}

/// Bytes after which a piece of a list is handed out.
const PIECE: usize = 64 * 1024;
/// Times that a piece of a list asks for more items.
const TRIES: usize = 8;
