//! A byte stream between two hubs over the bus. Each end numbers its messages, so that a lost message ends the stream.
//! Each end acknowledges the bytes it has taken, so that the bytes in flight stay below the window.

use super::bus::{Bus, BusMessage, BusSubscription};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::watch;

/// Maximum size of one message, bytes.
const MAX_PART: usize = 64 << 10;
/// Maximum number of bytes in flight: with a round trip of 10 ms this carries 50 MB/s.
const WINDOW: u64 = 512 << 10;
/// Bytes that each end buffers until they are read.
pub(super) const BUFFER: usize = 64 << 10;

/// The kinds of messages, as their first byte.
const DATA: u8 = 0;
const TAKEN: u8 = 1;
const END: u8 = 2;

/// Counters of all pipes, bytes and lost messages.
#[derive(Debug, Default)]
pub(super) struct PipeCounts {
    pub out: AtomicU64,
    pub came: AtomicU64,
    pub lost: AtomicU64,
}

/// The number of the next expected message, and the bytes that the other end has acknowledged.
struct Came {
    next: u32,
    taken: u64,
}

/// A decoded message.
#[derive(Debug, PartialEq, Eq)]
enum PipeMessage<'a> {
    Data(&'a [u8]),
    Taken(u64),
    End,
}

fn encode(kind: u8, number: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(5 + rest.len());
    bytes.push(kind);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

impl Came {
    /// Decodes the next message; None if one before it was lost, or if it is malformed.
    fn part<'a>(&mut self, bytes: &'a [u8]) -> Option<PipeMessage<'a>> {
        let (head, rest) = bytes.split_at_checked(5)?;
        let number = u32::from_le_bytes(head[1..].try_into().ok()?);
        match head[0] {
            DATA if number == self.next => {
                self.next = self.next.wrapping_add(1);
                Some(PipeMessage::Data(rest))
            }
            // The largest acknowledgment counts: some of these may be lost.
            TAKEN => {
                self.taken = self.taken.max(u64::from_le_bytes(rest.try_into().ok()?));
                Some(PipeMessage::Taken(self.taken))
            }
            END => Some(PipeMessage::End),
            _ => None,
        }
    }
}

/// Copies bytes between a local stream and the other end of the pipe, until either ends, a message is lost, or the bus
/// disconnects. The local stream is closed then.
pub(super) async fn carry(
    bus: Bus,
    mut heard: BusSubscription,
    to: String,
    stream: DuplexStream,
    counts: Arc<PipeCounts>,
) {
    let (from_here, to_here) = split(stream);
    let (tell, taken) = watch::channel(0);
    let mut up = bus.up();
    tokio::select! {
        () = out(&bus, &to, from_here, taken, &counts) => {}
        () = bring(&bus, &to, &mut heard, to_here, tell, &counts) => {}
        _ = up.wait_for(|up| !*up) => {}
    }
    // So the other end need not wait for its timeout.
    bus.publish(&to, encode(END, 0, &[]));
}

async fn out(
    bus: &Bus,
    to: &str,
    mut from: ReadHalf<DuplexStream>,
    mut taken: watch::Receiver<u64>,
    counts: &PipeCounts,
) {
    let (mut number, mut sent, mut part) = (0_u32, 0_u64, vec![0; MAX_PART]);
    loop {
        if taken.wait_for(|taken| sent.saturating_sub(*taken) < WINDOW).await.is_err() {
            return;
        }
        let Ok(read @ 1..) = from.read(&mut part).await else { return };
        // A message that cannot be sent ends the stream: the other end detects the missing number, or times out.
        if !bus.publish(to, encode(DATA, number, &part[..read])) {
            counts.lost.fetch_add(1, Relaxed);
            return;
        }
        number = number.wrapping_add(1);
        sent += read as u64;
        counts.out.fetch_add(read as u64, Relaxed);
    }
}

async fn bring(
    bus: &Bus,
    to: &str,
    heard: &mut BusSubscription,
    mut here: WriteHalf<DuplexStream>,
    tell: watch::Sender<u64>,
    counts: &PipeCounts,
) {
    let (mut came, mut taken, mut told) = (Came { next: 0, taken: 0 }, 0_u64, 0_u64);
    while let Some(message) = heard.next().await {
        match came.part(BusMessage::bytes(&message)) {
            Some(PipeMessage::Data(bytes)) => {
                if here.write_all(bytes).await.is_err() {
                    return;
                }
                taken += bytes.len() as u64;
                counts.came.fetch_add(bytes.len() as u64, Relaxed);
                // One acknowledgment per quarter of the window: most messages are small, and the next acknowledgment
                // replaces a lost one.
                if taken - told >= WINDOW / 4 {
                    told = taken;
                    bus.publish(to, encode(TAKEN, 0, &taken.to_le_bytes()));
                }
            }
            Some(PipeMessage::Taken(bytes)) => drop(tell.send_replace(bytes)),
            Some(PipeMessage::End) => return,
            None => {
                counts.lost.fetch_add(1, Relaxed);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_lost_ends_it_and_what_was_taken_only_rises() {
        let mut came = Came { next: 0, taken: 0 };
        assert_eq!(came.part(&encode(DATA, 0, b"ab")), Some(PipeMessage::Data(b"ab")));
        assert_eq!(came.part(&encode(TAKEN, 0, &9_u64.to_le_bytes())), Some(PipeMessage::Taken(9)));
        assert_eq!(came.part(&encode(TAKEN, 0, &7_u64.to_le_bytes())), Some(PipeMessage::Taken(9)), "an older word");
        assert_eq!(came.part(&encode(DATA, 1, b"")), Some(PipeMessage::Data(b"")));
        assert_eq!(came.part(&encode(DATA, 1, b"c")), None, "twice");
        assert_eq!(came.part(&encode(DATA, 3, b"c")), None, "one lacks");
        assert_eq!(came.part(&encode(END, 0, b"")), Some(PipeMessage::End), "whatever was lost before it");
        for wrong in [&b""[..], &[DATA, 2], &[TAKEN, 0, 0, 0, 0, 1], &[9, 2, 0, 0, 0]] {
            assert_eq!(came.part(wrong), None);
        }
    }
}
