//! Transport of messages between a page and its viewer: a WebSocket, or its fallback.

use axum::body::Bytes;
use stream::live::Wakes;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Kinds of messages: the opcodes of RFC 6455.
#[derive(Clone, Copy)]
pub(super) enum Opcode {
    Text = 1,
    Binary = 2,
    Ping = 9,
}

/// The end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The viewer has disconnected: there is no receiver for a reason.
    Gone,
    /// The viewer gets the reason: a close code, and a sentence.
    Told(CloseCode, String),
}

/// Events that a viewer's connection waits for.
#[derive(Debug)]
pub(super) enum SocketEvent {
    /// Data from the viewer: text or binary.
    Said(Message),
    /// There are new ticks, or the server shuts down.
    News,
    /// The time to wake has come.
    Time,
}

/// A transport to one page, in both directions.
pub(super) trait Carrier: Send {
    /// Waits for the first event: a message of the page, news, or a time.
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
    /// [`End::Gone`]: the page has disconnected, or does not read.
    fn send(&mut self, kind: Opcode, message: &Bytes) -> impl Future<Output = Result<(), End>> + Send;

    /// Closes the connection; sent messages are still delivered.
    fn close(self, code: CloseCode, reason: &str) -> impl Future<Output = ()> + Send;
}
