//! Whether the connection to the other server was lost: it then may have been killed, and what it took last with it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use ureq::config::Config;
use ureq::http::{Response, Version, header};
// The only way to hear of a connection that was made anew without a word, as after a restart between two requests.
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectionDetails, Connector, DefaultConnector, Transport};
use ureq::{Agent, Body, Error};

/// The connection of one thread's requests.
pub struct Link {
    /// Connections that were made.
    made: Arc<AtomicU64>,
    /// As many were made when the last request was answered.
    known: AtomicU64,
    /// The one of the last request was to stay.
    stays: AtomicBool,
    losses: AtomicU64,
}

/// Counts the connections that are made.
#[derive(Debug)]
struct Counting(Arc<AtomicU64>);

impl<In: Transport> Connector<In> for Counting {
    type Out = In;

    fn connect(&self, _: &ConnectionDetails, made: Option<In>) -> Result<Option<In>, Error> {
        self.0.fetch_add(u64::from(made.is_some()), Relaxed);
        Ok(made)
    }
}

impl Link {
    /// An agent whose connections are counted.
    pub fn agent(config: Config) -> (Agent, Link) {
        let made = Arc::<AtomicU64>::default();
        let connector = DefaultConnector::default().chain(Counting(made.clone()));
        let agent = Agent::with_parts(config, connector, DefaultResolver::default());
        (agent, Link { made, known: AtomicU64::new(0), stays: AtomicBool::new(false), losses: AtomicU64::new(0) })
    }

    /// A request was answered, or, with none, was not.
    pub fn answered(&self, response: Option<&Response<Body>>) {
        let made = self.made.load(Relaxed);
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
