//! A request that becomes a WebSocket.

use super::transport::Transport;
use super::write_timeout::WriteTimeout;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Response;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

/// A connection and the bytes already read from it; none if the client has disconnected.
pub(super) type Upgraded = Option<(Transport, Bytes)>;

/// Accepts a request for a WebSocket: the response, and the upgraded connection with the bytes already read from it.
/// There is no connection if the client has disconnected.
///
/// # Errors
/// The reason why it is no such request, as text.
pub(super) fn upgrade(request: Request) -> Result<(Response<Body>, impl Future<Output = Upgraded>), String> {
    let response = create_response_with_body(&request, Body::empty).map_err(|why| why.to_string())?;
    let upgrade = hyper::upgrade::on(request);
    let stream = async move {
        let parts = upgrade.await.ok()?.downcast::<TokioIo<WriteTimeout<Transport>>>().ok()?;
        Some((parts.io.into_inner().into_inner(), parts.read_buf))
    };
    Ok((response, stream))
}
