//! Others by whom people sign in to a hub: providers that speak OpenID Connect, and GitHub. Each is asked by itself, off the
//! async threads and within bounds, so one that is away or slow costs its own button and nothing else.
//!
//! This crate knows the [`client`] for requests, its own settings, and of the [`team`] what begins a sign-in and what proves
//! one. It has no table, no socket that listens and no page.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

mod ask;
mod github;
mod oidc;
pub mod settings;
mod token;

use crate::settings::Provider;
use ask::ProviderRequests;
use github::GitHub;
use oidc::Oidc;
use shared::provider::Refused;
use shared::secret::Secret;
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Clock;
use team::accounts::{FlowSecret, Proof};
use tokio::sync::{Semaphore, watch};
use url::Url;

/// Sign-ins of one provider that are asked about at once; more are told to try again.
const AT_ONCE: usize = 16;
/// How often addresses and keys of providers are fetched anew.
const REFRESH: Duration = Duration::from_secs(3_600);

/// Why a provider is of no use: a sentence for the log, and what the page is told.
#[derive(Debug)]
pub struct Failure {
    /// What the page is told.
    pub refused: Refused,
    /// A sentence without a full stop and without a secret.
    pub why: String,
}

impl Failure {
    fn new(refused: Refused, why: impl Into<String>) -> Self {
        Failure { refused, why: why.into() }
    }

    fn away(why: impl Into<String>) -> Self {
        Failure::new(Refused::Away, why)
    }

    fn untrusted(why: impl Into<String>) -> Self {
        Failure::new(Refused::Untrusted, why)
    }
}

/// What a provider sent a browser back with.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What is swapped for what the provider knows.
    pub code: Secret,
    /// Who answers, if it says so.
    pub issuer: Option<String>,
}

/// The providers of a hub.
pub struct Providers(Vec<Arc<Client>>);

/// The hub as a client of one provider.
struct Client {
    name: String,
    title: String,
    client_id: String,
    secret: Option<Secret>,
    /// Where people come back to.
    back: String,
    speaks: Speaks,
    questions: ProviderRequests,
    clock: Arc<dyn Clock>,
    seats: Arc<Semaphore>,
}

enum Speaks {
    Oidc(Oidc),
    GitHub(GitHub),
}

impl Providers {
    /// Those of a configuration; `public` is the hub's address, with a slash at its end.
    ///
    /// # Errors
    /// A secret cannot be read; a sentence.
    pub fn of<'a>(
        providers: impl Iterator<Item = Provider<'a>>,
        public: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let client = |provider: Provider<'_>| {
            let speaks = match provider {
                Provider::Oidc(own) => Speaks::Oidc(Oidc::new(own)),
                Provider::GitHub(own) => Speaks::GitHub(GitHub::new(own)),
            };
            Ok(Arc::new(Client {
                back: format!("{public}auth/{}/callback", provider.name()),
                name: provider.name().into(),
                title: provider.title().into(),
                client_id: provider.client_id().into(),
                secret: provider.secret()?,
                speaks,
                questions: ProviderRequests::new(),
                clock: clock.clone(),
                seats: Arc::new(Semaphore::new(AT_ONCE)),
            }))
        };
        providers.map(client).collect::<Result<_, String>>().map(Providers)
    }

    /// Their names, in the order of their buttons.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|client| client.name.as_str())
    }

    /// What people call each of them, by its name.
    pub fn titles(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|client| (client.name.as_str(), client.title.as_str()))
    }

    /// What people call who vouches under this name; none: it is no provider of this hub.
    pub fn title_of(&self, issuer: &str) -> Option<&str> {
        self.0.iter().find(|client| client.issuer() == issuer).map(|client| client.title.as_str())
    }

    /// Who vouches for people: what stands in their identities.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|client| client.issuer())
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&Arc<Client>> {
        self.0.iter().find(|client| client.name == name)
    }

    /// Where a browser is to go for a sign-in by a provider; `again`: the person is to prove themselves there anew.
    ///
    /// # Errors
    /// It is away.
    pub async fn place(&self, name: &str, flow: &FlowSecret, again: bool) -> Result<String, Failure> {
        let flow = flow.clone();
        self.ask(name, move |client| client.place(&flow, again)).await
    }

    /// Who somebody is, by what a provider sent them back with.
    ///
    /// # Errors
    /// What did not stand the test.
    pub async fn proof(&self, name: &str, flow: &FlowSecret, answer: Answer) -> Result<Proof, Failure> {
        let flow = flow.clone();
        self.ask(name, move |client| client.proof(&flow, &answer)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        name: &str,
        what: impl FnOnce(&Client) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let client = self.find(name).ok_or_else(|| Failure::away("there is no such provider"))?.clone();
        let busy = |_| Failure::new(Refused::Busy, format!("{AT_ONCE} sign-ins are in progress already"));
        let seat = client.seats.clone().try_acquire_owned().map_err(busy)?;
        let asked = tokio::task::spawn_blocking(move || {
            let answer = what(&client);
            drop(seat);
            answer
        });
        asked.await.unwrap_or_else(|_| Err(Failure::away("the request was aborted")))
    }

    /// Looks at all providers at once and from then on every hour, and says in the log what is wrong with one.
    pub async fn keep(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        for client in &self.0 {
            tracing::info!(
                "people sign in by {:?} and come back to {}; register that address there, to the letter",
                client.name,
                client.back
            );
        }
        let mut due = tokio::time::interval(REFRESH);
        loop {
            tokio::select! {
                _ = due.tick() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            for client in &self.0 {
                let client = client.clone();
                // One that hangs delays no other.
                tokio::task::spawn_blocking(move || {
                    if let Err(failure) = client.look() {
                        tracing::warn!("sign-in by {:?} does not work now: {}", client.name, failure.why);
                    }
                });
            }
        }
    }
}

impl Client {
    fn issuer(&self) -> &str {
        match &self.speaks {
            Speaks::Oidc(oidc) => oidc.issuer(),
            Speaks::GitHub(github) => github.issuer(),
        }
    }

    /// Fetches anew what is known of the provider.
    fn look(&self) -> Result<(), Failure> {
        match &self.speaks {
            Speaks::Oidc(oidc) => oidc.look(self),
            // Its addresses are known, and its keys are not needed.
            Speaks::GitHub(_) => Ok(()),
        }
    }

    fn place(&self, flow: &FlowSecret, again: bool) -> Result<String, Failure> {
        let (address, scopes) = match &self.speaks {
            Speaks::Oidc(oidc) => (oidc.authorization(self)?, oidc.scopes()),
            Speaks::GitHub(github) => (github.authorization(), github.scopes()),
        };
        let mut url = Url::parse(&address)
            .map_err(|_| Failure::away(format!("its authorization_endpoint {address:?} is not an address")))?;
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", &self.back)
            .append_pair("scope", &scopes)
            .append_pair("state", &flow.state())
            .append_pair("code_challenge", &flow.challenge())
            .append_pair("code_challenge_method", "S256");
        if let Speaks::Oidc(_) = self.speaks {
            query.append_pair("nonce", &flow.nonce());
            if again {
                query.append_pair("prompt", "login").append_pair("max_age", "0");
            }
        }
        drop(query);
        Ok(url.into())
    }

    fn proof(&self, flow: &FlowSecret, answer: &Answer) -> Result<Proof, Failure> {
        match &self.speaks {
            Speaks::Oidc(oidc) => oidc.proof(self, flow, answer),
            Speaks::GitHub(github) => github.proof(self, flow, answer),
        }
    }

    /// The fields by which a code is swapped for a token.
    fn swap<'a>(&'a self, answer: &'a Answer, verifier: &'a Secret) -> Vec<(&'static str, &'a str)> {
        vec![
            ("grant_type", "authorization_code"),
            ("code", answer.code.reveal()),
            ("redirect_uri", &self.back),
            ("code_verifier", verifier.reveal()),
        ]
    }
}
