//! Paths of requests: names are encoded, so that no name changes the path.

use crate::operation::Operation;
use crate::parameter::Parameter;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that are encoded in a part of a path.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// A part of a path or the value of a parameter.
fn encoded(name: &str) -> String {
    match name {
        "." | ".." => name.replace('.', "%2E"),
        _ => utf8_percent_encode(name, PART).to_string(),
    }
}

impl Operation {
    /// The path below the address of a server, without a slash in front. `parts` are the parts of the path that have a
    /// name, in their order.
    pub fn at(self, parts: &[&str]) -> String {
        let mut parts = parts.iter();
        let filled = self.path().trim_start_matches('/').split('/').map(|part| match part.starts_with('{') {
            true => parts.next().map_or_else(|| part.to_string(), |name| encoded(name)),
            false => part.to_string(),
        });
        let path = filled.collect::<Vec<_>>().join("/");
        debug_assert!(parts.next().is_none() && !path.contains('{'), "{}: each part once", self.path());
        path
    }

    /// The same path with the parameters that have a value.
    pub fn asking(self, parts: &[&str], parameters: &[(Parameter, Option<String>)]) -> String {
        let given = parameters.iter().filter_map(|(parameter, value)| {
            debug_assert!(self.takes(parameter.name), "{} takes no {}", self.name(), parameter.name);
            Some(format!("{}={}", parameter.name, encoded(value.as_ref()?)))
        });
        let (path, given) = (self.at(parts), given.collect::<Vec<_>>().join("&"));
        if given.is_empty() { path } else { format!("{path}?{given}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::{LIMIT, TEAM};

    #[test]
    fn a_name_never_leads_to_another_path() {
        for (name, path) in [
            ("mara", "api/v1/accounts/mara"),
            ("../teams", "api/v1/accounts/..%2Fteams"),
            ("..", "api/v1/accounts/%2E%2E"),
            ("a?b#c%d e", "api/v1/accounts/a%3Fb%23c%25d%20e"),
            ("\r\nHost: x", "api/v1/accounts/%0D%0AHost%3A%20x"),
        ] {
            assert_eq!(Operation::RemoveAccount.at(&[name]), path);
        }
        assert_eq!(Operation::EndTeamKey.at(&["a/b", "c"]), "api/v1/teams/a%2Fb/keys/c");
    }

    #[test]
    fn only_parameters_with_a_value_are_written() {
        let asked = |team: Option<&str>| {
            Operation::ListAlerts.asking(&[], &[(TEAM, team.map(String::from)), (LIMIT, Some("1".into()))])
        };
        assert_eq!(asked(None), "api/v1/alerts?limit=1");
        assert_eq!(asked(Some("a&b")), "api/v1/alerts?team=a%26b&limit=1");
    }
}
