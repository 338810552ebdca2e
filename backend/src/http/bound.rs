//! Streamed responses end when the rights of their caller end.

use super::rights::Rights;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A streamed response: it sends no chunk after the caller has lost the right to it. A complete response is passed
/// unchanged.
pub(super) fn bound(response: Response<Body>, rights: impl FnOnce() -> Rights) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let ended = Some(Box::pin(rights().ended()) as Pin<Box<dyn Future<Output = String> + Send>>);
    response.map(|body| Body::new(BoundBody { body, ended }))
}

struct BoundBody {
    body: Body,
    /// Resolves with the reason why the response ends; none afterwards.
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
