//! Counts the connections that a client makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ureq::Error;
use ureq::unversioned::transport::{ConnectionDetails, Connector, Transport};

/// Wraps the connector, and counts its connections.
#[derive(Debug)]
pub(crate) struct Counted(pub Arc<AtomicU64>);

impl<In: Transport> Connector<In> for Counted {
    type Out = In;

    fn connect(&self, _: &ConnectionDetails, made: Option<In>) -> Result<Option<In>, Error> {
        self.0.fetch_add(u64::from(made.is_some()), Ordering::Relaxed);
        Ok(made)
    }
}
