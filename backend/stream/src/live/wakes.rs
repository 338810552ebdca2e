//! What a reader waits for.

use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;

/// Announcements of one or several kinds: a reader is woken by any of them.
pub struct Wakes(Vec<watch::Receiver<u64>>);

impl Wakes {
    /// Those of all these.
    pub fn new(all: Vec<watch::Receiver<u64>>) -> Self {
        Wakes(all)
    }

    /// Resolves with the next announcement that was not waited for yet. It may be dropped before that, and nothing is
    /// lost.
    ///
    /// # Errors
    /// Nobody is left who could announce anything.
    pub async fn next(&mut self) -> Result<(), RecvError> {
        match &mut self.0[..] {
            // Nearly always; then it costs no memory.
            [one] => one.changed().await,
            [] => std::future::pending().await,
            several => select_all(several.iter_mut().map(|one| Box::pin(one.changed()))).await.0,
        }
    }

    /// Whether there was one since this was asked last.
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
