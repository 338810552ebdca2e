//! What each rule can see on the machines that are here, in words.

use shared::finding::{RuleState, Watch};

/// What a rule can see, in words.
pub fn said(rule: &RuleState) -> String {
    match (rule.state, rule.words.is_empty()) {
        (Watch::Watching, true) => "watching".into(),
        (Watch::Weaker, true) => "weaker".into(),
        (Watch::Needs, true) => "needs what is not here".into(),
        (_, false) => rule.words.clone(),
    }
}

/// How many rules there are of each state: `12 watching, 2 weaker, 1 needs more`.
pub fn gist(rules: &[RuleState]) -> String {
    let of = |state: Watch, words: &str| match rules.iter().filter(|rule| rule.state == state).count() {
        0 => None,
        n => Some(format!("{n} {words}")),
    };
    let parts = [of(Watch::Watching, "watching"), of(Watch::Weaker, "weaker"), of(Watch::Needs, "need more")];
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
        assert_eq!(gist(&rules), "2 watching, 1 weaker, 1 need more");
        assert_eq!(gist(&rules[..1]), "1 watching");
        assert_eq!((said(&rules[0]), said(&rules[2])), ("watching".into(), "weaker without NVLink counters".into()));
    }
}
