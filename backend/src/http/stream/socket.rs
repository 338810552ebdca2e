//! The WebSocket of one viewer. The library reads, answers pings and closes. Sent messages bypass it: a message is
//! written from the bytes that all viewers share, behind its own frame head, so a viewer needs no copy and no buffer.

use super::carrier::{Carrier, End, Opcode, SocketEvent};
use crate::http::transport::Transport;
use crate::http::upgrade::upgrade;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Response;
use futures_util::{SinkExt, StreamExt};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::time::Duration;
use stream::live::Wakes;
use team::usage::Tab;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Idle time after which a viewer gets a ping.
const PING_AFTER: Duration = Duration::from_secs(5);
/// Timeout of a viewer that sends nothing, or that reads nothing while messages are pending.
const DEAD_AFTER: Duration = Duration::from_secs(15);
/// Maximum time to send one message, even to a slow viewer.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of the closing handshake. The socket is read until then; otherwise the close frame could be lost.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of a message from a viewer, bytes; most have less than 20.
const MAX_FRAME_BYTES: usize = 64 * 1024;
/// Bytes of one read: messages of a page are shorter.
const READ_BUFFER_BYTES: usize = 128;

/// A viewer's connection.
pub(super) struct Socket<S> {
    // On the heap: it moves from task to task, and each would reserve its size.
    inner: Box<WebSocketStream<S>>,
    heard: Instant,
    /// Time of the ping, if nothing was received since.
    asked: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    /// Counter of sent bytes, in a hub.
    tab: Option<Tab>,
}

/// Accepts a request for a WebSocket: the response, and the socket, unless the client has disconnected.
///
/// # Errors
/// The reason why it is no such request, as text.
pub(super) fn accept(
    request: Request,
) -> Result<(Response<Body>, impl Future<Output = Option<Socket<Transport>>>), String> {
    let (response, stream) = upgrade(request)?;
    let socket = async move {
        let (stream, read) = stream.await?;
        Some(Socket::new(stream, &read).await)
    };
    Ok((response, socket))
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket<S> {
    /// The socket over a stream from which these bytes were already read.
    pub async fn new(stream: S, read: &[u8]) -> Self {
        // The library itself sends only pongs and close frames.
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME_BYTES))
            .max_frame_size(Some(MAX_FRAME_BYTES))
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(4096);
        let inner = WebSocketStream::from_partially_read(stream, read.to_vec(), Role::Server, Some(config)).await;
        let heard = Instant::now();
        Socket {
            inner: Box::new(inner),
            heard,
            asked: None,
            timer: Box::pin(sleep_until(heard + PING_AFTER)),
            tab: None,
        }
    }

    /// Counts bytes from now on for this tab.
    pub fn counts_for(&mut self, tab: Tab) {
        self.tab = Some(tab);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Carrier for Socket<S> {
    // A silent viewer gets a ping.
    async fn next(&mut self, news: &mut Wakes, wake: Option<Instant>) -> Result<SocketEvent, End> {
        loop {
            // It may have been silent while a long message was sent; without a ping it has not timed out.
            let due = self.asked.map_or(self.heard + PING_AFTER, |asked| asked + (DEAD_AFTER - PING_AFTER));
            let due = wake.map_or(due, |wake| wake.min(due));
            // Usually the timer is set to an earlier time, and is reset when it elapses.
            if self.timer.deadline() > due || self.timer.is_elapsed() {
                self.timer.as_mut().reset(due);
            }
            tokio::select! {
                // In this order: messages that arrived while a long history was sent count before the idle timeout.
                biased;
                message = self.inner.next() => {
                    self.heard = Instant::now();
                    self.asked = None;
                    match message {
                        Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) => return Ok(SocketEvent::Said(message)),
                        Some(Ok(Message::Close(_))) => {
                            // The library has queued its close frame.
                            let _ = timeout(CLOSING_TIMEOUT, self.inner.flush()).await;
                            return Err(End::Gone);
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return Err(end(&error)),
                        None => return Err(End::Gone),
                    }
                }
                changed = news.next() => return changed.map(|()| SocketEvent::News).map_err(|_| End::Gone),
                () = self.timer.as_mut() => {
                    let now = Instant::now();
                    if wake.is_some_and(|wake| wake <= now) {
                        return Ok(SocketEvent::Time);
                    }
                    match self.asked {
                        Some(asked) if now >= asked + (DEAD_AFTER - PING_AFTER) => {
                            return Err(End::Told(CloseCode::Away, "no message for 15 s".into()));
                        }
                        None if now >= self.heard + PING_AFTER => {
                            self.send(Opcode::Ping, &Bytes::new()).await?;
                            self.asked = Some(now);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    async fn send(&mut self, kind: Opcode, message: &Bytes) -> Result<(), End> {
        let sent = async {
            // A pong may be partly written.
            self.inner.flush().await.map_err(|_| End::Gone)?;
            write(self.inner.get_mut(), kind, message).await.map_err(|_| End::Gone)
        };
        timeout(MESSAGE_TIMEOUT, sent).await.unwrap_or(Err(End::Gone))?;
        if let Some(tab) = &self.tab {
            tab.sent(message.len());
        }
        Ok(())
    }

    async fn close(mut self, code: CloseCode, reason: &str) {
        let mut short = reason;
        while short.len() > MAX_REASON_BYTES {
            short = &short[..short.floor_char_boundary(short.len() - 1)];
        }
        let close = Message::Close(Some(CloseFrame { code, reason: short.into() }));
        let said = async {
            self.inner.send(close).await.map_err(io::Error::other)?;
            let stream = self.inner.get_mut();
            stream.shutdown().await?;
            // Unread bytes at the close of a socket make the kernel discard sent ones (RST).
            let mut rest = [0; 4096];
            while stream.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        // If it cannot be sent, there is no receiver.
        let _ = timeout(CLOSING_TIMEOUT, said).await;
    }
}

/// Maximum size of a close reason, bytes: a control frame holds 125, two of which are the code.
const MAX_REASON_BYTES: usize = 123;

/// Close code and reason of an error.
fn end(error: &Error) -> End {
    let (code, reason) = match error {
        Error::Capacity(_) => (CloseCode::Size, format!("a message has at most {MAX_FRAME_BYTES} bytes")),
        Error::Utf8(_) => (CloseCode::Invalid, "a text message is not UTF-8".into()),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return End::Gone,
        Error::Protocol(why) => (CloseCode::Protocol, format!("WebSocket protocol error: {why}")),
        _ => return End::Gone,
    };
    End::Told(code, reason)
}

/// Writes a whole message as one frame.
async fn write(stream: &mut (impl AsyncWrite + Unpin), kind: Opcode, message: &[u8]) -> io::Result<()> {
    let (head, length) = head(kind, message.len());
    let (mut head, mut message) = (&head[..length], message);
    while !head.is_empty() || !message.is_empty() {
        let pieces = [IoSlice::new(head), IoSlice::new(message)];
        let written = timeout(DEAD_AFTER, stream.write_vectored(&pieces)).await??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let of_head = written.min(head.len());
        (head, message) = (&head[of_head..], &message[written - of_head..]);
    }
    Ok(())
}

/// The head of an unfragmented frame, without a mask as a server's frames are; and the head's length.
fn head(kind: Opcode, length: usize) -> ([u8; 10], usize) {
    let mut head = [0x80 | kind as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let bytes = (length as u64).to_be_bytes();
    match length {
        0..126 => {
            head[1] = length as u8;
            (head, 2)
        }
        126..0x1_0000 => {
            head[1] = 126;
            head[2..4].copy_from_slice(&bytes[6..]);
            (head, 4)
        }
        _ => {
            head[1] = 127;
            head[2..].copy_from_slice(&bytes);
            (head, 10)
        }
    }
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
