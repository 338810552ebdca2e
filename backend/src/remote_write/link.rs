//! Detects a lost connection to the other server: it may have been killed, and may have lost the samples it took last.

use client::Body;
use client::http::{Response, Version, header};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The connection of one thread's requests.
#[derive(Default)]
pub struct Link {
    /// Number of connections made when the last request was answered.
    known: AtomicU64,
    /// The last response kept its connection alive.
    stays: AtomicBool,
    losses: AtomicU64,
}

impl Link {
    /// Records the response to a request, or none if it failed; `made` is the number of connections made so far.
    pub fn answered(&self, made: u64, response: Option<&Response<Body>>) {
        let anew = self.known.swap(made, Relaxed) != made;
        let stayed = self.stays.swap(response.is_some_and(stays), Relaxed);
        if response.is_none() || (anew && stayed) {
            self.losses.fetch_add(1, Relaxed);
        }
    }

    /// Records that we close it: the next request makes a new one.
    pub fn given_up(&self) {
        self.stays.store(false, Relaxed);
    }

    /// Records a loss behind a connection that stands.
    pub fn lost(&self) {
        self.losses.fetch_add(1, Relaxed);
    }

    /// Number of losses.
    pub fn losses(&self) -> u64 {
        self.losses.load(Relaxed)
    }
}

/// Whether the server's response keeps the connection.
fn stays(response: &Response<Body>) -> bool {
    let closes = response.headers().get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let mut words = closes.flat_map(|value| value.split(','));
    response.version() >= Version::HTTP_11 && !words.any(|word| word.trim().eq_ignore_ascii_case("close"))
}
