//! `[[agents.join]]`: join keys that stand in files, for machines that are set up by programs.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use toml::{Table, Value};

/// The most of them.
const MOST: usize = 50;

/// A join key that holds for as long as it is written in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingJoin {
    /// What it is called.
    pub name: String,
    /// The file that holds the key; the hub makes one where there is none.
    pub token_file: PathBuf,
    /// The team of its machines, by name; none: the first one.
    pub team: Option<String>,
    /// Labels of its machines.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// All of them, each with a name and a file of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<StandingJoin>")]
pub struct StandingJoins(pub Vec<StandingJoin>);

impl TryFrom<Vec<StandingJoin>> for StandingJoins {
    type Error = String;

    fn try_from(all: Vec<StandingJoin>) -> Result<Self, String> {
        if all.len() > MOST {
            return Err(format!("agents.join: write at most {MOST} keys"));
        }
        let (mut names, mut files) = (BTreeSet::new(), BTreeSet::new());
        for join in &all {
            if join.name.trim().is_empty() || join.name.chars().count() > 64 || join.name.contains(char::is_control) {
                return Err("agents.join.name: write a name of 1 to 64 letters".into());
            }
            if !join.token_file.is_absolute() {
                return Err(format!("agents.join {:?}: token_file: write an absolute path", join.name));
            }
            if !names.insert(&join.name) || !files.insert(&join.token_file) {
                return Err(format!(
                    "agents.join {:?}: another key has this name or file; give each its own",
                    join.name
                ));
            }
        }
        Ok(StandingJoins(all))
    }
}

impl StandingJoins {
    /// As they stand in a file; none where there are none.
    pub(super) fn print(&self) -> Option<Value> {
        let table = |join: &StandingJoin| {
            let file = join.token_file.to_string_lossy().into_owned();
            let mut table = Table::from_iter([
                ("name".to_string(), Value::from(join.name.clone())),
                ("token_file".to_string(), Value::from(file)),
            ]);
            table.extend(join.team.clone().map(|team| ("team".to_string(), Value::from(team))));
            if !join.labels.is_empty() {
                let labels = join.labels.iter().map(|(key, value)| (key.clone(), Value::from(value.clone())));
                table.insert("labels".into(), Value::Table(labels.collect()));
            }
            Value::Table(table)
        };
        (!self.0.is_empty()).then(|| Value::Array(self.0.iter().map(table).collect()))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::team::AgentLimits;
    use settings::FileTable;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<AgentLimits>(text);
        let text = "[[join]]\nname = \"slurm\"\ntoken_file = \"/etc/wg/join\"\nteam = \"vision\"\nlabels = { tier = \"gpu\" }\n\
                    [[join]]\nname = \"cpu\"\ntoken_file = \"/etc/wg/other\"";
        let own = read(text).expect("two keys");
        assert_eq!(own.join.0.len(), 2);
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        assert!(!AgentLimits::default().print().contains_key("join"));
        let one = |rest: &str| format!("[[join]]\nname = \"a\"\n{rest}\n");
        let file = "token_file = \"/etc/wg/join\"";
        for (text, sentence) in [
            (one("token_file = \"join\""), "absolute path"),
            (one(file) + &one("token_file = \"/other\""), "give each its own"),
            (one(file) + &one(file).replace("\"a\"", "\"b\""), "give each its own"),
            (format!("[[join]]\nname = \" \"\n{file}"), "1 to 64 letters"),
            (one(""), "token_file"),
            (one(&format!("{file}\nuses = 3")), "uses"),
            (one(file).repeat(51), "at most 50"),
        ] {
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }
}
