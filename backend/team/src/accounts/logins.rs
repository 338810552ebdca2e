//! Logins of people on machines: runs of these users belong to them. An admin of a team sets some by hand. A provider
//! or the proxy may supply another, which is updated at each sign-in through it.

use super::Denied;
use records::{Connection, accounts, teams};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a user's name on a machine, bytes.
const LOGIN: usize = 64;

/// Data stored with an identity.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LoginData {
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<String>,
}

/// Whether a text can be the name of a user on a machine.
pub(super) fn is_login(text: &str) -> bool {
    (1..=LOGIN).contains(&text.len()) && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace())
}

fn written(login: Option<&str>) -> String {
    // An invalid login counts as absent, so that it cannot claim runs of others.
    let login = login.filter(|login| is_login(login)).map(String::from);
    serde_json::to_string(&LoginData { login }).expect("a text")
}

/// Stores the login that an identity provider supplies now; none removes it.
pub(super) async fn set(on: &mut Connection, who: (&str, &str), login: Option<&str>) -> Result<(), Denied> {
    Ok(accounts::set_said(on, who, &written(login)).await?)
}

/// Whether that would change the login of an account's identities, if one is supplied.
pub(super) async fn differs(on: &mut Connection, account: &str, login: Option<&str>) -> Result<bool, Denied> {
    let Some(login) = login.filter(|login| is_login(login)) else { return Ok(false) };
    Ok(!list_logins(on, Some(account)).await?.values().flatten().any(|known| known == login))
}

/// The logins supplied by the identity providers of an account, by its id; with none, of all accounts.
///
/// # Errors
/// [`Denied`], if the database is unreachable.
pub async fn list_logins(
    on: &mut Connection,
    account: Option<&str>,
) -> Result<BTreeMap<String, BTreeSet<String>>, Denied> {
    let mut logins = BTreeMap::<_, BTreeSet<String>>::new();
    for (account, row) in accounts::list_claims(on, account).await? {
        let login = serde_json::from_str::<LoginData>(&row).ok().and_then(|said| said.login);
        logins.entry(account).or_default().extend(login);
    }
    Ok(logins)
}

/// The logins of an account that nobody else has in the same team, each with the team's id.
///
/// # Errors
/// [`Denied`], if the database is unreachable.
pub(super) async fn logins_of(on: &mut Connection, account: &str) -> Result<Vec<(String, String)>, Denied> {
    let said = list_logins(on, None).await?;
    let mut own = Vec::new();
    for membership in teams::memberships(on, Some(account)).await? {
        let (mut theirs, mut of_others) = (BTreeSet::new(), BTreeSet::new());
        for member in teams::members(on, &membership.team).await? {
            let logins = if member.id == account { &mut theirs } else { &mut of_others };
            logins.extend(serde_json::from_str::<BTreeSet<String>>(&member.logins).unwrap_or_default());
            logins.extend(said.get(&member.id).into_iter().flatten().cloned());
        }
        own.extend(theirs.difference(&of_others).map(|login| (membership.team.clone(), login.clone())));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_user_of_a_machine_is_not_kept() {
        assert_eq!(written(Some("mara")), r#"{"login":"mara"}"#);
        for none in [None, Some(""), Some("mara root"), Some("mara\nroot"), Some(&*"m".repeat(65))] {
            assert_eq!(written(none), "{}", "{none:?}");
        }
    }
}
