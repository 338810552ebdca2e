//! Notifications that a reader waits for.

use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;

/// Notifications of one or several kinds: any of them wakes the reader.
pub struct Wakes(Vec<watch::Receiver<u64>>);

impl Wakes {
    /// The notifications of all these.
    pub fn new(all: Vec<watch::Receiver<u64>>) -> Self {
        Wakes(all)
    }

    /// Waits for the next notification that was not waited for yet. Cancel-safe: no notification is lost.
    ///
    /// # Errors
    /// All senders of notifications are gone.
    pub async fn next(&mut self) -> Result<(), RecvError> {
        match &mut self.0[..] {
            // The usual case, without an allocation.
            [one] => one.changed().await,
            [] => std::future::pending().await,
            several => select_all(several.iter_mut().map(|one| Box::pin(one.changed()))).await.0,
        }
    }

    /// Whether there was a notification since the last call.
    #[cfg(test)]
    pub fn woken(&mut self) -> bool {
        let mut woken = false;
        for one in &mut self.0 {
            woken |= one.has_changed().expect("the stream is there");
            one.mark_unchanged();
        }
        woken
    }
}

impl From<watch::Receiver<u64>> for Wakes {
    fn from(one: watch::Receiver<u64>) -> Self {
        Wakes(vec![one])
    }
}
