//! What carries messages between a page and its viewer: a WebSocket, or what stands in for one.

use axum::body::Bytes;
use stream::live::Wakes;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Kinds of what is sent: the opcodes of RFC 6455.
#[derive(Clone, Copy)]
pub(super) enum Opcode {
    Text = 1,
    Binary = 2,
    Ping = 9,
}

/// How a connection ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The viewer is gone: there is nobody to tell.
    Gone,
    /// The viewer is told why: a close code, and a sentence.
    Told(CloseCode, String),
}

/// What a viewer's connection has waited for.
#[derive(Debug)]
pub(super) enum SocketEvent {
    /// Data from the viewer: text or binary.
    Said(Message),
    /// There are new ticks, or the server ends.
    News,
    /// The time has come that was waited for.
    Time,
}

/// A way to one page, both directions.
pub(super) trait Carrier: Send {
    /// Waits for what comes first: a word of the page, news, or a time.
    ///
    /// # Errors
    /// The connection ends.
    fn next(
        &mut self,
        news: &mut Wakes,
        wake: Option<Instant>,
    ) -> impl Future<Output = Result<SocketEvent, End>> + Send;

    /// Sends a message, when the page has room for it.
    ///
    /// # Errors
    /// [`End::Gone`]: the page is, or it does not take it.
    fn send(&mut self, kind: Opcode, message: &Bytes) -> impl Future<Output = Result<(), End>> + Send;

    /// Ends it; what was sent is still delivered.
    fn close(self, code: CloseCode, reason: &str) -> impl Future<Output = ()> + Send;
}
