//! Coverage of each rule on the known machines.

use crate::state::Page;
use crate::widgets::icons::Triangle;
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::finding::{RuleState, Watch};
use viewer::findings::rules::{describe_state, gist};

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
        let (words, name) = (describe_state(&rule), rule.rule);
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
                    <span class="name">"Checks"</span>
                    <span class="gist">{text(move || rules.with(|rules| gist(rules)))}</span>
                </summary>
                <dl>{move || rules.get().into_iter().map(row).collect_view()}</dl>
            </details>
        </If>
    }
}
