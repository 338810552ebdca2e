//! Unary gRPC calls over HTTP/2 on a connection that its caller opened. Answers are bounded, and never awaited for ever.

use h2::client::SendRequest;
use http::{HeaderMap, Request, StatusCode};
use prost::Message;
use prost::bytes::{BufMut, Bytes, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// Maximum size of an answer.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Size of the prefix of each message: compression flag and length.
const PREFIX_BYTES: usize = 5;

/// Reason why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RpcFailure {
    /// Nothing listens on the address.
    Refused,
    /// The program does not support the call or its argument.
    Unknown,
    /// It answered with an error, or not in time.
    Answer(String),
    /// The connection is unusable.
    Broken(String),
}

impl std::fmt::Display for RpcFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RpcFailure::Refused => write!(f, "connection refused"),
            RpcFailure::Unknown => write!(f, "the program does not support the call"),
            RpcFailure::Answer(text) | RpcFailure::Broken(text) => write!(f, "{text}"),
        }
    }
}

impl From<h2::Error> for RpcFailure {
    fn from(error: h2::Error) -> Self {
        RpcFailure::Broken(format!("the connection broke: {error}"))
    }
}

/// A connection to a service, shared by clones.
#[derive(Clone)]
pub(crate) struct Rpc {
    /// `http://HOST/SERVICE`.
    service: String,
    sender: SendRequest<Bytes>,
    call_timeout: Duration,
}

impl Rpc {
    /// Begins to speak HTTP/2. `host` is the name that the server is called by. Call it with a timeout.
    ///
    /// # Errors
    /// The other end does not speak HTTP/2.
    pub async fn start(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        host: &str,
        service: &str,
        call_timeout: Duration,
    ) -> Result<Rpc, RpcFailure> {
        let (sender, connection) = h2::client::Builder::new().enable_push(false).handshake(stream).await?;
        // The task ends with the connection; calls get the error themselves.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Rpc { service: format!("http://{host}/{service}"), sender, call_timeout })
    }

    /// Calls a method of the service.
    ///
    /// # Errors
    /// There is no answer in time, or it is an error or no message.
    pub async fn call<A: Message + Default>(&self, method: &str, request: &impl Message) -> Result<A, RpcFailure> {
        let late = |_| RpcFailure::Answer(format!("{method} timed out after {} ms", self.call_timeout.as_millis()));
        timeout(self.call_timeout, self.exchange(method, request)).await.map_err(late)?
    }

    async fn exchange<A: Message + Default>(&self, method: &str, message: &impl Message) -> Result<A, RpcFailure> {
        let request = Request::post(format!("{}/{method}", self.service))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", "watchglass")
            .body(())
            .map_err(|error| RpcFailure::Answer(error.to_string()))?;
        let mut sender = self.sender.clone().ready().await?;
        let (response, mut body) = sender.send_request(request, false)?;
        body.send_data(framed(message), true)?;
        let (head, mut body) = response.await?.into_parts();
        if head.status != StatusCode::OK {
            return Err(RpcFailure::Answer(format!("{method} failed with HTTP status {}", head.status)));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk?;
            if bytes.len() + chunk.len() > MAX_MESSAGE_BYTES {
                return Err(RpcFailure::Answer(format!(
                    "the response to {method} is longer than {MAX_MESSAGE_BYTES} bytes"
                )));
            }
            bytes.extend_from_slice(&chunk);
            body.flow_control().release_capacity(chunk.len())?;
        }
        // An answer without a body has its status in the headers.
        status(method, &body.trailers().await?.unwrap_or(head.headers))?;
        unframed(&bytes).ok_or_else(|| RpcFailure::Answer(format!("the response to {method} cannot be decoded")))
    }
}

fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + message.encoded_len());
    bytes.put_u8(0);
    bytes.put_u32(message.encoded_len() as u32);
    bytes.extend_from_slice(&message.encode_to_vec());
    bytes.freeze()
}

/// The single message of an answer. None if it is incomplete, or compressed (which we never request).
pub(crate) fn unframed<A: Message + Default>(bytes: &[u8]) -> Option<A> {
    let (prefix, message) = bytes.split_at_checked(PREFIX_BYTES)?;
    let length = u32::from_be_bytes(prefix[1..].try_into().ok()?) as usize;
    (prefix[0] == 0 && message.len() == length).then(|| A::decode(message).ok())?
}

/// Result of gRPC's status.
fn status(method: &str, headers: &HeaderMap) -> Result<(), RpcFailure> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        Some("0") => Ok(()),
        // Invalid argument, not found, not implemented: versions differ in the status for what they do not support.
        Some("3" | "5" | "12") => Err(RpcFailure::Unknown),
        Some(code) => {
            let message = crate::read::exec::short(text("grpc-message").unwrap_or("no reason given"));
            Err(RpcFailure::Answer(format!("{method} failed with gRPC status {code}: {message}")))
        }
        None => Err(RpcFailure::Answer(format!("the response to {method} is not from a gRPC service"))),
    }
}
