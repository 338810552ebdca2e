//! The lease of the one of several hubs that makes the notices of all.

use records::{Change, leases};
use team::accounts::Denied;

/// What it is called.
const NAME: &str = "alerts";

/// How long it holds, milliseconds.
pub(super) const LEASE_MS: i64 = 15_000;

/// This hub, as who would have it.
pub(super) struct TellingLease {
    /// Id of the hub.
    pub hub: String,
}

impl TellingLease {
    /// Takes or keeps it within a change; false: another hub has it.
    pub async fn take(&self, change: &mut Change, now: i64) -> Result<bool, Denied> {
        Ok(leases::take(change, NAME, &self.hub, (now, now + LEASE_MS)).await?)
    }

    /// Gives it back.
    pub async fn give_back(&self, change: &mut Change) -> Result<(), Denied> {
        Ok(leases::give_back(change, NAME, &self.hub).await?)
    }
}
