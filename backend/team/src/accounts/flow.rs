//! Pending sign-ins by a provider. Each depends on one secret, in a cookie of the browser. All values sent to the
//! provider are derived from it, so an answer without the cookie is worthless.

use super::attempts::Limit;
use super::{Accounts, Denied, MINUTE, Network, Principal, Who, random};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use records::codes::{self, Code};
use serde::{Deserialize, Serialize};
use shared::provider::{Purpose, Refused};
use shared::secret::Secret;

/// Lifetime of a pending sign-in.
const SIGN_IN_LIFETIME: i64 = 10 * MINUTE;
/// Maximum number of pending sign-ins of the hub.
const MAX_SIGN_INS: i64 = 10_000;

/// The secret of one pending sign-in.
#[derive(Clone, Debug)]
pub struct FlowSecret(Secret);

impl FlowSecret {
    /// A secret returned by a browser.
    pub fn new(secret: Secret) -> Self {
        FlowSecret(secret)
    }

    /// The value of the cookie.
    pub fn cookie(&self) -> &Secret {
        &self.0
    }

    /// The `state` parameter, which the answer contains.
    pub fn state(&self) -> String {
        self.derived("state")
    }

    /// The `nonce`, which the provider's token repeats.
    pub fn nonce(&self) -> String {
        self.derived("nonce")
    }

    /// The verifier that binds the end of the sign-in to its start (PKCE).
    pub fn verifier(&self) -> Secret {
        Secret::new(self.derived("verifier"))
    }

    /// The challenge sent to the provider: the SHA-256 of the verifier (`S256`).
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(random::hash(self.verifier().reveal()))
    }

    fn derived(&self, what: &str) -> String {
        hex::encode(random::hash(&format!("{what} {}", self.0.reveal())))
    }
}

/// A pending sign-in, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Name of the provider.
    pub provider: String,
    /// Address of the page afterwards.
    pub next: String,
    /// Purpose of the sign-in.
    pub purpose: Purpose,
    /// Hash of the code of an invitation.
    pub(super) invite: Option<Vec<u8>>,
    /// The account signed in at its start, and the hash of the session.
    pub(super) of: Option<(String, [u8; 32])>,
    /// Its start, milliseconds since the Unix epoch.
    pub began: i64,
}

impl Accounts {
    /// Begins a sign-in.
    ///
    /// # Errors
    /// [`Denied::Again`]: adding a way to sign in needs a fresh sign-in. [`Denied::Throttled`], [`Denied::Conflict`].
    pub async fn begin_flow(
        &self,
        by: Option<&Principal>,
        (provider, next): (&str, String),
        (purpose, invite): (Purpose, Option<&Secret>),
        network: &Network,
    ) -> Result<FlowSecret, Denied> {
        self.attempt(&[(Limit::Network, network.text())])?;
        let of = match (purpose, by) {
            (Purpose::In, _) => None,
            (_, Some(Principal { who: Who::Account { id, .. }, session: Some(session), .. })) => {
                Some((id.clone(), *session))
            }
            _ => return Err(Denied::invalid("sign in first, without the proxy")),
        };
        if let (Purpose::Link, Some(by)) = (purpose, by) {
            self.need_fresh(by)?;
        }
        let (secret, now) = (FlowSecret(Secret::new(random::base62(43))), self.now());
        let invite = invite.map(|code| random::hash(code.reveal().trim()).to_vec());
        let account = of.as_ref().map(|(account, _)| account.clone());
        let flow = Flow { provider: provider.into(), next, purpose, invite, of, began: now };
        let mut change = self.begin_change().await?;
        if codes::count(&mut change, "oidc", now).await? >= MAX_SIGN_INS {
            return Err(Denied::conflict("too many sign-ins with a provider at once; retry in some minutes"));
        }
        let row = Code {
            hash: random::hash(&secret.state()).into(),
            id: random::id(),
            kind: "oidc".into(),
            account,
            team: None,
            role: None,
            owner: None,
            maker: provider.into(),
            email: None,
            data: serde_json::to_string(&flow).map_err(|_| Denied::invalid("the address to return to is too long"))?,
            made: now,
            ends: now + SIGN_IN_LIFETIME,
        };
        codes::add(&mut change, &row).await?;
        change.commit().await?;
        Ok(secret)
    }

    /// Takes a pending sign-in after the browser returned; it can be taken once.
    ///
    /// # Errors
    /// It began in another browser, has expired, or was used; or there were too many attempts.
    pub async fn take_flow(
        &self,
        secret: Option<&FlowSecret>,
        state: &str,
        network: &Network,
    ) -> Result<Flow, Refused> {
        let own = secret.filter(|secret| secret.state() == state).ok_or(Refused::Elsewhere)?;
        // Only requests with the cookie count: no foreign page can make a network's browsers reach the limit.
        let by = [(Limit::Answer, network.text())];
        self.attempt(&by).map_err(|_| Refused::Busy)?;
        let taken = async {
            let mut change = self.begin_change().await?;
            let code = codes::take(&mut change, &random::hash(&own.state()), "oidc", self.now()).await?;
            change.commit().await?;
            Ok::<_, Denied>(code)
        };
        let code = taken.await.map_err(|_| Refused::Busy)?.ok_or(Refused::Over)?;
        self.0.attempts.succeeded(&by);
        serde_json::from_str(&code.data).map_err(|_| Refused::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_tells_nothing_of_the_rest() {
        let secret = FlowSecret::new(Secret::new("x".repeat(43)));
        let all = [secret.state(), secret.nonce(), secret.verifier().reveal().to_string()];
        assert!(all.iter().all(|one| one.len() == 64), "a verifier has 43 to 128 letters");
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
        let challenge = secret.challenge();
        assert!(
            challenge.len() == 43 && !challenge.contains(['=', '+', '/']) && !all.contains(&challenge),
            "{challenge}"
        );
        assert!(!format!("{secret:?}").contains("xxx"));
    }
}
