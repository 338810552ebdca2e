//! A request that becomes a WebSocket.

use super::transport::Transport;
use super::write_timeout::WriteTimeout;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Response;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

/// A connection, and what was read of it already; none where the caller has gone.
pub(super) type Upgraded = Option<(Transport, Bytes)>;

/// Takes a request for a WebSocket: the answer, and the connection that comes of it with what was read of it already, unless
/// the caller has gone.
///
/// # Errors
/// Why it is no such request, in words.
pub(super) fn upgrade(request: Request) -> Result<(Response<Body>, impl Future<Output = Upgraded>), String> {
    let response = create_response_with_body(&request, Body::empty).map_err(|why| why.to_string())?;
    let upgrade = hyper::upgrade::on(request);
    let stream = async move {
        let parts = upgrade.await.ok()?.downcast::<TokioIo<WriteTimeout<Transport>>>().ok()?;
        Some((parts.io.into_inner().into_inner(), parts.read_buf))
    };
    Ok((response, stream))
}
