//! External sign-in to a hub: providers with OpenID Connect, and GitHub. Each has its own requests, off the async
//! threads and within limits, so that an unreachable or slow one affects only its own button.
//!
//! This crate uses the [`client`] for requests, its own settings, and the start and the proof of a sign-in from
//! [`team`]. It has no table, no listening socket and no page.

// A lock taken in the head of a `match` or `for` is held to its end, where it may be taken again.
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

/// Maximum concurrent sign-ins of one provider; further ones are rejected with a request to try again.
const AT_ONCE: usize = 16;
/// Interval for refreshing addresses and keys of providers.
const REFRESH: Duration = Duration::from_secs(3_600);

/// Failure of a provider: a sentence for the log, and the reason for the page.
#[derive(Debug)]
pub struct Failure {
    /// The reason for the page.
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

/// Parameters with which a provider redirected a browser back.
#[derive(Clone, Debug)]
pub struct RedirectAnswer {
    /// The code to exchange for the provider's token.
    pub code: Secret,
    /// The issuer of the answer, if it is named.
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
    /// Redirect address of the hub.
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
    /// The providers of a configuration; `public` is the hub's address, with a slash at its end.
    ///
    /// # Errors
    /// A secret cannot be read; a sentence.
    pub fn new<'a>(
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

    /// Display names of the providers, by their names.
    pub fn titles(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|client| (client.name.as_str(), client.title.as_str()))
    }

    /// Display name of the provider with this issuer; None: it is no provider of this hub.
    pub fn title_of(&self, issuer: &str) -> Option<&str> {
        self.0.iter().find(|client| client.issuer() == issuer).map(|client| client.title.as_str())
    }

    /// Issuers of the providers, as stored in identities.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|client| client.issuer())
    }

    /// Whether there is a provider with this name.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&Arc<Client>> {
        self.0.iter().find(|client| client.name == name)
    }

    /// Address of the provider for a sign-in; `again`: the person has to authenticate there again.
    ///
    /// # Errors
    /// The provider is unreachable.
    pub async fn place(&self, name: &str, flow: &FlowSecret, again: bool) -> Result<String, Failure> {
        let flow = flow.clone();
        self.ask(name, move |client| client.place(&flow, again)).await
    }

    /// The identity of a person, from the parameters of a provider's redirect.
    ///
    /// # Errors
    /// The failed check.
    pub async fn proof(&self, name: &str, flow: &FlowSecret, answer: RedirectAnswer) -> Result<Proof, Failure> {
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

    /// Fetches the metadata of all providers at once and then every hour, and logs failures.
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
                // A provider that hangs delays no other.
                tokio::task::spawn_blocking(move || {
                    if let Err(failure) = client.refetch() {
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

    /// Fetches the provider's metadata again.
    fn refetch(&self) -> Result<(), Failure> {
        match &self.speaks {
            Speaks::Oidc(oidc) => oidc.refetch(self),
            // Its addresses are fixed, and its keys are not needed.
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

    fn proof(&self, flow: &FlowSecret, answer: &RedirectAnswer) -> Result<Proof, Failure> {
        match &self.speaks {
            Speaks::Oidc(oidc) => oidc.proof(self, flow, answer),
            Speaks::GitHub(github) => github.proof(self, flow, answer),
        }
    }

    /// The form fields for exchanging a code for a token.
    fn swap<'a>(&'a self, answer: &'a RedirectAnswer, verifier: &'a Secret) -> Vec<(&'static str, &'a str)> {
        vec![
            ("grant_type", "authorization_code"),
            ("code", answer.code.reveal()),
            ("redirect_uri", &self.back),
            ("code_verifier", verifier.reveal()),
        ]
    }
}
