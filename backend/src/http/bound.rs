//! Answers that go on for a while break off when what admitted them ends.

use super::rights::Rights;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// An answer that is made piece by piece: no piece is given any more once who asked may not have it. One that is whole
/// already goes as it is.
pub(super) fn bound(response: Response<Body>, rights: impl FnOnce() -> Rights) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let ended = Some(Box::pin(rights().ended()) as Pin<Box<dyn Future<Output = String> + Send>>);
    response.map(|body| Body::new(BoundBody { body, ended }))
}

struct BoundBody {
    body: Body,
    /// Resolves with why it breaks off; none once it has.
    ended: Option<Pin<Box<dyn Future<Output = String> + Send>>>,
}

impl HttpBody for BoundBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(ended) = &mut self.ended else { return Poll::Ready(None) };
        if let Poll::Ready(why) = ended.as_mut().poll(cx) {
            self.ended = None;
            return Poll::Ready(Some(Err(axum::Error::new(io::Error::other(why)))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
