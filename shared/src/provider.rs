//! Sign-in by a provider: the page's requests to the hub, and reasons for a failed sign-in.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// `POST /api/v1/session/oidc`: begins a sign-in by a provider, GitHub included. Answered by [`Away`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByProvider {
    /// Its name, one of the `ways` of the session.
    pub provider: String,
    /// Page to open afterwards: a path of ours with its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The code of an invitation, which a new account accepts with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Secret>,
    /// Its purpose.
    #[serde(default)]
    pub purpose: Purpose,
}

/// Purpose of a sign-in by a provider.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// To sign in.
    #[default]
    In,
    /// Adds a sign-in method to the signed-in account.
    Link,
    /// Reauthenticates the signed-in account.
    Again,
}

/// Redirection of the browser.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// An address of the provider.
    pub url: String,
}

/// Reason for a failed sign-in by a provider. The page receives only the word, at the end of its address, so that
/// nobody can put their own text onto it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It began in another browser, or not here.
    Elsewhere,
    /// It took too long, or was used before.
    Over,
    /// The person or the provider declined.
    Declined,
    /// The provider does not answer, or answers incorrectly.
    Away,
    /// The provider's answer failed validation.
    Untrusted,
    /// The person is in no allowed domain, organization or team.
    Outside,
    /// The person has no account here.
    Uninvited,
    /// The account is disabled.
    Disabled,
    /// The identity belongs to another account.
    Taken,
    /// The authenticated person is not the one who is signed in.
    Other,
    /// There were too many attempts, or the hub could not store the result.
    Busy,
}

impl Refused {
    /// All of them.
    pub const ALL: [Refused; 11] = [
        Refused::Elsewhere,
        Refused::Over,
        Refused::Declined,
        Refused::Away,
        Refused::Untrusted,
        Refused::Outside,
        Refused::Uninvited,
        Refused::Disabled,
        Refused::Taken,
        Refused::Other,
        Refused::Busy,
    ];

    /// Its word in an address.
    pub fn as_str(self) -> &'static str {
        match self {
            Refused::Elsewhere => "elsewhere",
            Refused::Over => "over",
            Refused::Declined => "declined",
            Refused::Away => "away",
            Refused::Untrusted => "untrusted",
            Refused::Outside => "outside",
            Refused::Uninvited => "uninvited",
            Refused::Disabled => "disabled",
            Refused::Taken => "taken",
            Refused::Other => "other",
            Refused::Busy => "busy",
        }
    }

    /// The problem and the remedy, in a sentence or two.
    pub fn sentence(self) -> &'static str {
        match self {
            Refused::Elsewhere => "This sign-in was started in another browser. Start it here.",
            Refused::Over => "This sign-in took longer than 10 minutes, or was used before. Start again.",
            Refused::Declined => {
                "The provider rejected the sign-in, or you went back. Try again, or use another sign-in method."
            }
            Refused::Away => {
                "The provider does not respond correctly. Try again, or use another sign-in method; the log of the \
                hub has the reason."
            }
            Refused::Untrusted => {
                "The response of the provider is invalid, so you are not signed in. The log of the hub has the \
                reason."
            }
            Refused::Outside => {
                "Your account at the provider is in no allowed domain, organization or team. Ask an admin of this \
                hub."
            }
            Refused::Uninvited => {
                "You have no account here. Accept an invitation; or sign in as before, and add this provider under \
                \"Your account\"."
            }
            Refused::Disabled => "Your account is disabled. Ask an admin of this hub.",
            Refused::Taken => "Another account here uses this sign-in. Sign in to it, or ask an admin of this hub.",
            Refused::Other => {
                "You are signed in here and at the provider as different users. Sign out at the \
                provider, and try again."
            }
            Refused::Busy => "The hub could not complete the sign-in. Try again in some minutes.",
        }
    }

    /// The reason with this word.
    pub fn from_word(word: &str) -> Option<Refused> {
        Refused::ALL.into_iter().find(|refused| refused.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_means_one() {
        for refused in Refused::ALL {
            assert_eq!(Refused::from_word(refused.as_str()), Some(refused));
            assert!(refused.sentence().ends_with('.'));
        }
        assert_eq!(Refused::from_word("<b>"), None);
    }
}
