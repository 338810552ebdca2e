//! `[[agents.join]]`: join keys in files, for machines that programs set up.

use settings::kinds::any_pair;
use settings::{Fault, table, value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Maximum number of keys.
const MAX_KEYS: usize = 50;

table! {
    /// A join key that holds for as long as it is written in the configuration.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ConfiguredJoin {
        /// Name of the key
        name: String = String::new(), text(name), required like "\"slurm\"";
        /// File with the key, for the agents' `--key-file`; the hub creates it if it is missing
        token_file: PathBuf = PathBuf::new(), text(value::absolute), required like "\"/etc/watchglass/join\"";
        /// Team of its machines, by name [default: the first one]
        team: Option<String> = None, text(value::any), like "\"vision\"";
        /// Labels of its machines
        labels: BTreeMap<String, String> = BTreeMap::new(), map(any_pair), like "{ tier = \"gpu\" }";
    }
}

fn name(text: &str) -> Result<String, String> {
    match text.trim().is_empty() || text.chars().count() > 64 || text.contains(char::is_control) {
        true => Err("write a name of 1 to 64 letters".into()),
        false => Ok(text.into()),
    }
}

/// Refuses keys with equal names.
pub(super) fn check(all: &[ConfiguredJoin]) -> Result<(), Fault> {
    if all.len() > MAX_KEYS {
        return Err(Fault::new("join", format!("at most {MAX_KEYS} keys")));
    }
    let (mut names, mut files) = (BTreeSet::new(), BTreeSet::new());
    match all.iter().find(|join| !names.insert(&join.name) || !files.insert(&join.token_file)) {
        Some(join) => {
            Err(Fault::new("join", format!("{:?}: another key has this name or file; give each its own", join.name)))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::team::AgentLimits;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| AgentLimits::TABLE.read_text(text);
        let text = "[[join]]\nname = \"slurm\"\ntoken_file = \"/etc/wg/join\"\nteam = \"vision\"\nlabels = { tier = \"gpu\" }\n\
                    [[join]]\nname = \"cpu\"\ntoken_file = \"/etc/wg/other\"";
        let own = read(text).expect("two keys");
        assert_eq!(own.join.len(), 2);
        assert_eq!(read(&AgentLimits::TABLE.print(&own).to_string()).expect("a table"), own);
        assert!(!AgentLimits::TABLE.print(&AgentLimits::default()).contains_key("join"));
        let one = |rest: &str| format!("[[join]]\nname = \"a\"\n{rest}\n");
        let file = "token_file = \"/etc/wg/join\"";
        for (text, sentence) in [
            (one("token_file = \"join\""), "join.token_file: write the whole path"),
            (one(file) + &one("token_file = \"/other\""), "give each its own"),
            (one(file) + &one(file).replace("\"a\"", "\"b\""), "give each its own"),
            (format!("[[join]]\nname = \" \"\n{file}"), "1 to 64 letters"),
            (one(""), "join.token_file: it is missing"),
            (one(&format!("{file}\nuses = 3")), "unknown key `uses`"),
            (one(file).repeat(51), "at most 50"),
        ] {
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }
}
