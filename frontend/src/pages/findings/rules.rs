//! What each rule can see on the machines that are here.

use crate::state::Page;
use crate::widgets::icons::Triangle;
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::finding::{RuleState, Watch};

/// What a rule can see, in words.
fn said(rule: &RuleState) -> String {
    match (rule.state, rule.words.is_empty()) {
        (Watch::Watching, true) => "watching".into(),
        (Watch::Weaker, true) => "weaker".into(),
        (Watch::Needs, true) => "needs what is not here".into(),
        (_, false) => rule.words.clone(),
    }
}

/// How many rules there are of each state: `12 watching, 2 weaker, 1 needs more`.
fn gist(rules: &[RuleState]) -> String {
    let of = |state: Watch, words: &str| match rules.iter().filter(|rule| rule.state == state).count() {
        0 => None,
        n => Some(format!("{n} {words}")),
    };
    let parts = [of(Watch::Watching, "watching"), of(Watch::Weaker, "weaker"), of(Watch::Needs, "need more")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The rules in a list that folds.
#[component]
pub fn Rules() -> impl IntoView {
    let page = expect_context::<Page>();
    let rules = Memo::new(move |_| page.findings.with(|findings| findings.rules.clone()));
    let row = |rule: RuleState| {
        let (shape, state) = match rule.state {
            Watch::Watching => (("shape is-ok", "●"), "watching"),
            Watch::Weaker => (("shape is-unknown", "◐"), "weaker"),
            Watch::Needs => (("shape is-unknown", "◌"), "needs"),
        };
        let (words, name) = (said(&rule), rule.rule);
        let own = name.clone();
        view! {
            <dt data-rule=own data-state=state><span class=shape.0 aria-hidden="true">{shape.1}</span>" "{name}</dt>
            <dd>{words}</dd>
        }
    };
    view! {
        <If when=flag(move || rules.with(|rules| !rules.is_empty()))>
            <details class="fold rules">
                <summary>
                    <Triangle/>
                    <span class="name">"What is looked for"</span>
                    <span class="gist">{text(move || rules.with(|rules| gist(rules)))}</span>
                </summary>
                <dl>{move || rules.get().into_iter().map(row).collect_view()}</dl>
            </details>
        </If>
    }
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
