//! Transports of a connection: TCP, TLS over TCP, a socket in a folder, or a pipe within this process. All of them
//! serve the same paths.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::server::TlsStream;

/// A client's connection.
pub enum Transport {
    /// Plain TCP.
    Tcp(TcpStream),
    /// TLS with our certificate.
    Tls(Box<TlsStream<TcpStream>>),
    /// A Unix socket in one of our folders.
    #[cfg(unix)]
    Unix(UnixStream),
    /// From this process itself.
    Within(DuplexStream),
}

/// Calls the same method of each variant.
macro_rules! each {
    ($of:expr, $stream:ident => $call:expr) => {
        match $of {
            Transport::Tcp($stream) => $call,
            Transport::Tls($stream) => {
                let $stream = &mut **$stream;
                $call
            }
            #[cfg(unix)]
            Transport::Unix($stream) => $call,
            Transport::Within($stream) => $call,
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_read(cx, into))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(&mut *self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(&mut *self, stream => Pin::new(stream).poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Transport::Tcp(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
            #[cfg(unix)]
            Transport::Unix(stream) => stream.is_write_vectored(),
            Transport::Within(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
