//! The lease of the hub that makes the notices of all hubs.

use records::{Change, leases};
use team::accounts::Denied;

/// Name of the lease.
const NAME: &str = "alerts";

/// Duration of the lease, milliseconds.
pub(super) const LEASE_MS: i64 = 15_000;

/// This hub as a candidate for the lease.
pub(super) struct TellingLease {
    /// Id of the hub.
    pub hub: String,
}

impl TellingLease {
    /// Takes or renews the lease within a change; false: another hub holds it.
    pub async fn take(&self, change: &mut Change, now: i64) -> Result<bool, Denied> {
        Ok(leases::take(change, NAME, &self.hub, (now, now + LEASE_MS)).await?)
    }

    /// Releases the lease.
    pub async fn give_back(&self, change: &mut Change) -> Result<(), Denied> {
        Ok(leases::give_back(change, NAME, &self.hub).await?)
    }
}
