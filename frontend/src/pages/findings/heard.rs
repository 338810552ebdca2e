//! Announcements of findings for screen readers: the start and the end, once each. Critical findings are announced at
//! once, all others politely.

use super::words;
use crate::state::Page;
use leptos::prelude::*;
use shared::finding::{Finding, Severity};

/// The news since the last state: the polite text, and the assertive one.
fn news(before: &[Finding], now: &[Finding]) -> (String, String) {
    let counts = |one: &&Finding| one.severity > Severity::Note && one.because.is_none();
    let open = |all: &[Finding], id: &str| all.iter().any(|one| one.id == id && one.until.is_none());
    let (mut polite, mut at_once) = (Vec::new(), Vec::new());
    for one in now.iter().filter(counts) {
        let said = |what: &str| {
            let (head, rest) = words::split_sentence(one);
            format!("{what} {head} {rest}")
        };
        match (open(before, &one.id), one.until.is_none()) {
            (false, true) if one.severity == Severity::Critical => at_once.push(said("Critical:")),
            (false, true) => polite.push(said("Warning:")),
            (true, false) => polite.push(said("Resolved:")),
            _ => {}
        }
    }
    // A live page requests open findings, so a finding that is missing from the list has ended.
    let gone = before.iter().filter(counts).filter(|one| one.until.is_none() && !now.iter().any(|n| n.id == one.id));
    polite.extend(gone.map(|one| format!("Resolved: {}", words::split_sentence(one).0)));
    (polite.join(" "), at_once.join(" "))
}

/// The elements from which it is read.
#[component]
pub fn Heard() -> impl IntoView {
    let page = expect_context::<Page>();
    let (polite, at_once) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    Effect::new(move |before: Option<Option<Vec<Finding>>>| {
        let now = page.findings.with(|findings| findings.known.then(|| findings.all.clone()));
        // A fixed span and the first response have no news.
        let live = page.view.with_untracked(|view| view.frozen.is_none()) && !page.is_recorded();
        if let (Some(Some(before)), Some(now), true) = (before, &now, live) {
            let (new, urgent) = news(&before, now);
            [(polite, new), (at_once, urgent)]
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .for_each(|(to, text)| to.set(text));
        }
        now
    });
    view! {
        <div id="heard" class="away" role="status">{polite}</div>
        <div id="alarm" class="away" role="alert">{at_once}</div>
    }
}
