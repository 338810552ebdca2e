//! The state of each rule on the present machines, in words.

use shared::finding::{RuleState, Watch};

/// The state of a rule, in words.
pub fn describe_state(rule: &RuleState) -> String {
    match (rule.state, rule.words.is_empty()) {
        (Watch::Watching, true) => "active".into(),
        (Watch::Weaker, true) => "weaker".into(),
        (Watch::Needs, true) => "no data".into(),
        (_, false) => rule.words.clone(),
    }
}

/// Number of rules in each state: `12 active, 2 weaker, 1 without data`.
pub fn gist(rules: &[RuleState]) -> String {
    let of = |state: Watch, words: &str| match rules.iter().filter(|rule| rule.state == state).count() {
        0 => None,
        n => Some(format!("{n} {words}")),
    };
    let parts = [of(Watch::Watching, "active"), of(Watch::Weaker, "weaker"), of(Watch::Needs, "without data")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_counted_by_what_they_can_see() {
        let rule = |state, words: &str| RuleState { rule: "hang.spin".into(), state, words: words.into() };
        let rules = [
            rule(Watch::Watching, ""),
            rule(Watch::Watching, ""),
            rule(Watch::Weaker, "weaker without NVLink counters"),
            rule(Watch::Needs, "needs gpu.{i}.pcieLinkWidth"),
        ];
        assert_eq!(gist(&rules), "2 active, 1 weaker, 1 without data");
        assert_eq!(gist(&rules[..1]), "1 active");
        assert_eq!(
            (describe_state(&rules[0]), describe_state(&rules[2])),
            ("active".into(), "weaker without NVLink counters".into())
        );
    }
}
