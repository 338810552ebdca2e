//! `[[agents.keep]]`: retention of machines by their labels.

use super::value;
use settings::kinds::any_pair;
use settings::{Fault, table};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of rules: each makes its own files.
const MAX_RULES: usize = 8;

table! {
    /// Machines with these labels are kept so long.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct KeepRule, checked by KeepRule::check {
        /// Labels that must all match; only labels set by the join key or an admin count
        labels as "match": BTreeMap<String, String> = BTreeMap::new(), map(any_pair), required like "{ tier = \"gpu\" }";
        /// Retention of their samples
        retention: Duration = Duration::ZERO, text(value::retention), required like "\"30d\"";
    }
}

impl KeepRule {
    fn check(&self) -> Result<(), Fault> {
        match self.labels.is_empty() {
            true => Err(Fault::new("match", "write a label, such as { tier = \"gpu\" }; --retention applies to all")),
            false => Ok(()),
        }
    }
}

/// All rules, in order: the first match applies.
#[derive(Clone, Debug)]
pub struct KeepRules(pub Vec<KeepRule>);

impl KeepRules {
    /// Retention of a machine with these labels; none: the general one.
    pub fn retention_for(&self, labels: &BTreeMap<String, String>) -> Option<Duration> {
        let fits = |rule: &&KeepRule| rule.labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        self.0.iter().find(fits).map(|rule| rule.retention)
    }

    /// The longest retention; none without rules.
    pub fn longest(&self) -> Option<Duration> {
        self.0.iter().map(|rule| rule.retention).max()
    }
}

/// Refuses more rules than the maximum.
pub(super) fn check(all: &[KeepRule]) -> Result<(), Fault> {
    match all.len() {
        ..=MAX_RULES => Ok(()),
        _ => Err(Fault::new("keep", format!("at most {MAX_RULES} tables"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::team::AgentLimits;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| AgentLimits::TABLE.read_text(text);
        let text = "[[keep]]\nmatch = { tier = \"gpu\" }\nretention = \"30d\"\n\
                    [[keep]]\nmatch = { tier = \"cpu\", zone = \"a\" }\nretention = \"1h30m\"";
        let own = read(text).expect("two rules");
        assert_eq!(read(&AgentLimits::TABLE.print(&own).to_string()).expect("a table"), own);
        assert!(!AgentLimits::TABLE.print(&AgentLimits::default()).contains_key("keep"));
        let one = "[[keep]]\nmatch = { a = \"b\" }\nretention = \"1d\"\n";
        for (text, sentence) in [
            ("[[keep]]\nretention = \"1d\"".to_string(), "keep.match: it is missing; write match = { tier"),
            ("[[keep]]\nmatch = {}\nretention = \"1d\"".to_string(), "--retention applies to all"),
            (one.replace("1d", "soon"), "keep.retention: "),
            (one.replace("1d", "1s"), "out of range"),
            (format!("{one}for = 3"), "unknown key `for`"),
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
        let hours = |labels: &[(&str, &str)]| {
            rules.retention_for(&rule(labels, 0).labels).map(|length| length.as_secs() / 3_600)
        };
        assert_eq!(hours(&[("tier", "gpu"), ("zone", "b"), ("x", "")]), Some(2));
        assert_eq!(hours(&[("tier", "gpu"), ("zone", "a")]), Some(720));
        assert_eq!(hours(&[("tier", "cpu"), ("zone", "b")]), Some(1));
        assert_eq!((hours(&[("tier", "cpu")]), hours(&[])), (None, None));
        assert_eq!(rules.longest(), Some(Duration::from_secs(720 * 3_600)));
    }
}
