//! By which names people work on machines: runs of these users are theirs. An admin of a team sets some by hand; a provider or
//! the proxy may say another, which is set anew each time that somebody comes by it.

use super::Denied;
use records::{Connection, accounts};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a user on a machine, bytes.
const LOGIN: usize = 64;

/// What is kept with an identity.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Said {
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<String>,
}

/// Whether a text can be the name of a user on a machine.
pub(super) fn is_login(text: &str) -> bool {
    (1..=LOGIN).contains(&text.len()) && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace())
}

fn written(login: Option<&str>) -> String {
    // What is none is as if nothing was said: nobody else's runs become theirs by it.
    let login = login.filter(|login| is_login(login)).map(String::from);
    serde_json::to_string(&Said { login }).expect("a text")
}

/// Keeps the login that who vouches says now; none: it says none any longer.
pub(super) async fn set(on: &mut Connection, who: (&str, &str), login: Option<&str>) -> Result<(), Denied> {
    Ok(accounts::set_said(on, who, &written(login)).await?)
}

/// Whether that would change anything of what an account's identities say, where somebody says one.
pub(super) async fn differs(on: &mut Connection, account: &str, login: Option<&str>) -> Result<bool, Denied> {
    let Some(login) = login.filter(|login| is_login(login)) else { return Ok(false) };
    Ok(!said(on, Some(account)).await?.values().flatten().any(|known| known == login))
}

/// The logins that those say who vouch for an account, by its id; of all accounts with none.
///
/// # Errors
/// [`Denied`], where the database cannot be asked.
pub async fn said(on: &mut Connection, account: Option<&str>) -> Result<BTreeMap<String, BTreeSet<String>>, Denied> {
    let mut logins = BTreeMap::<_, BTreeSet<String>>::new();
    for (account, row) in accounts::said(on, account).await? {
        let login = serde_json::from_str::<Said>(&row).ok().and_then(|said| said.login);
        logins.entry(account).or_default().extend(login);
    }
    Ok(logins)
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
