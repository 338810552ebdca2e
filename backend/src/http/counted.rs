//! Responses whose bytes are counted for their caller.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use team::usage::Tab;

/// A response with samples; its bytes are counted as they are sent.
pub(super) fn counted(response: Response<Body>, tab: Tab) -> Response<Body> {
    tab.query();
    response.map(|body| Body::new(CountedBody { body, tab }))
}

struct CountedBody {
    body: Body,
    tab: Tab,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            self.tab.sent(bytes.len());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
