//! `[[agents.keep]]`: machines that are kept for another time than the others, by their labels.

use super::value;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::{Table, Value};

/// The most of them: each makes files of its own.
const MOST: usize = 8;

/// Machines with these labels are kept so long.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawRule")]
pub struct KeepRule {
    /// Labels that a machine has, all of them; those alone count that its join key or an admin gave it.
    pub labels: BTreeMap<String, String>,
    /// How long its samples are kept.
    pub retention: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    #[serde(rename = "match")]
    labels: BTreeMap<String, String>,
    retention: String,
}

impl TryFrom<RawRule> for KeepRule {
    type Error = String;

    fn try_from(raw: RawRule) -> Result<Self, String> {
        if raw.labels.is_empty() {
            return Err("agents.keep.match: write a label, such as { tier = \"gpu\" }; --retention applies to all \
                machines"
                .into());
        }
        let retention = value::retention(&raw.retention).map_err(|why| format!("agents.keep.retention: {why}"))?;
        Ok(KeepRule { labels: raw.labels, retention })
    }
}

/// All of them, in order: the first that fits counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<KeepRule>")]
pub struct KeepRules(Vec<KeepRule>);

impl TryFrom<Vec<KeepRule>> for KeepRules {
    type Error = String;

    fn try_from(all: Vec<KeepRule>) -> Result<Self, String> {
        match all.len() {
            ..=MOST => Ok(KeepRules(all)),
            _ => Err(format!("agents.keep: write at most {MOST} tables")),
        }
    }
}

impl KeepRules {
    /// How long a machine with these labels is kept; none: as long as all.
    pub fn of(&self, labels: &BTreeMap<String, String>) -> Option<Duration> {
        let fits = |rule: &&KeepRule| rule.labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        self.0.iter().find(fits).map(|rule| rule.retention)
    }

    /// The longest time of any; none without rules.
    pub fn longest(&self) -> Option<Duration> {
        self.0.iter().map(|rule| rule.retention).max()
    }

    /// As they stand in a file; none where there are none.
    pub(super) fn print(&self) -> Option<Value> {
        let table = |rule: &KeepRule| {
            let labels = rule.labels.iter().map(|(key, value)| (key.clone(), Value::from(value.clone())));
            Value::Table(Table::from_iter([
                ("match".to_string(), Value::Table(labels.collect())),
                ("retention".to_string(), Value::from(value::show_duration(rule.retention))),
            ]))
        };
        (!self.0.is_empty()).then(|| Value::Array(self.0.iter().map(table).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::team::AgentLimits;
    use settings::FileTable;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<AgentLimits>(text);
        let text = "[[keep]]\nmatch = { tier = \"gpu\" }\nretention = \"30d\"\n\
                    [[keep]]\nmatch = { tier = \"cpu\", zone = \"a\" }\nretention = \"1h30m\"";
        let own = read(text).expect("two rules");
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        assert!(!AgentLimits::default().print().contains_key("keep"));
        let one = "[[keep]]\nmatch = { a = \"b\" }\nretention = \"1d\"\n";
        for (text, sentence) in [
            ("[[keep]]\nretention = \"1d\"".to_string(), "match"),
            ("[[keep]]\nmatch = {}\nretention = \"1d\"".to_string(), "--retention applies to all"),
            (one.replace("1d", "1 day"), "agents.keep.retention"),
            (one.replace("1d", "1s"), "out of range"),
            (format!("{one}for = 3"), "for"),
            (one.repeat(9), "at most 8"),
        ] {
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }

    #[test]
    fn the_first_that_fits_with_all_of_its_labels_counts() {
        let rule = |labels: &[(&str, &str)], hours: u64| KeepRule {
            labels: labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            retention: Duration::from_secs(3_600 * hours),
        };
        let rules = KeepRules(vec![
            rule(&[("tier", "gpu"), ("zone", "b")], 2),
            rule(&[("tier", "gpu")], 720),
            rule(&[("zone", "b")], 1),
        ]);
        let hours = |labels: &[(&str, &str)]| rules.of(&rule(labels, 0).labels).map(|length| length.as_secs() / 3_600);
        assert_eq!(hours(&[("tier", "gpu"), ("zone", "b"), ("x", "")]), Some(2));
        assert_eq!(hours(&[("tier", "gpu"), ("zone", "a")]), Some(720));
        assert_eq!(hours(&[("tier", "cpu"), ("zone", "b")]), Some(1));
        assert_eq!((hours(&[("tier", "cpu")]), hours(&[])), (None, None));
        assert_eq!(rules.longest(), Some(Duration::from_secs(720 * 3_600)));
    }
}
