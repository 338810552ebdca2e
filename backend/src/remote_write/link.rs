//! Whether the connection to the other server was lost: it then may have been killed, and what it took last with it.

use client::Body;
use client::http::{Response, Version, header};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The connection of one thread's requests.
#[derive(Default)]
pub struct Link {
    /// As many connections were made when the last request was answered.
    known: AtomicU64,
    /// The one of the last request was to stay.
    stays: AtomicBool,
    losses: AtomicU64,
}

impl Link {
    /// A request was answered, or, with none, was not; so many connections were made by then.
    pub fn answered(&self, made: u64, response: Option<&Response<Body>>) {
        let anew = self.known.swap(made, Relaxed) != made;
        let stayed = self.stays.swap(response.is_some_and(stays), Relaxed);
        if response.is_none() || (anew && stayed) {
            self.losses.fetch_add(1, Relaxed);
        }
    }

    /// It ends from our side: the next request makes a new one.
    pub fn given_up(&self) {
        self.stays.store(false, Relaxed);
    }

    /// It stands, and what is behind it was lost.
    pub fn lost(&self) {
        self.losses.fetch_add(1, Relaxed);
    }

    /// How often it was lost.
    pub fn losses(&self) -> u64 {
        self.losses.load(Relaxed)
    }
}

/// Whether the server says that it keeps the connection.
fn stays(response: &Response<Body>) -> bool {
    let closes = response.headers().get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let mut words = closes.flat_map(|value| value.split(','));
    response.version() >= Version::HTTP_11 && !words.any(|word| word.trim().eq_ignore_ascii_case("close"))
}
