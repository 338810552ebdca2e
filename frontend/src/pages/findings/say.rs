//! The sentence that leads the page of a machine: the finding, the waiting machines, and the link to its onset. Empty
//! without a finding.

use super::evidence::Sketch;
use super::words;
use crate::browser;
use crate::state::Page;
use crate::tools::open_chart;
use crate::widgets::parts::{If, flag, text};
use leptos::html;
use leptos::prelude::*;
use shared::finding::{Finding, Severity};
use viewer::findings::is_end;
use viewer::findings::words::more;

/// The sentence in its row.
#[component]
pub fn FindingLine() -> impl IntoView {
    let page = expect_context::<Page>();
    let lead = Memo::new(move |_| page.leads());
    let is_there = flag(move || lead.with(Option::is_some));
    Effect::new(move |was: Option<bool>| {
        let is = is_there.get();
        // The content below moves up as smoothly as it moved down.
        if was == Some(true)
            && !is
            && let Some(main) = browser::by_id("page")
        {
            browser::set(&main, "data-went", "");
        }
        is
    });
    view! { <If when=is_there><FindingSay lead/></If> }
}

/// The sentence itself. On the page of a machine its button shows the onset in the charts; elsewhere it leads to the
/// finding.
#[component]
pub fn FindingSay(
    /// The finding, and how many more there are.
    lead: Memo<Option<(Finding, usize)>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let of = move |read: fn(&Finding, i64) -> String| {
        text(move || {
            page.beat.track();
            lead.with(|lead| lead.as_ref().map(|(one, _)| read(one, page.server_now())).unwrap_or_default())
        })
    };
    let shape = move || {
        lead.with(|lead| {
            let over = |one: &Finding| one.until.is_some();
            lead.as_ref().map_or(("", ""), |(one, _)| words::shape(one.severity, over(one)))
        })
    };
    let class = text(move || {
        let of = |one: &Finding| if one.severity == Severity::Critical { "say is-critical" } else { "say" };
        lead.with(|lead| lead.as_ref().map_or("say", |(one, _)| of(one)))
    });
    let further = text(move || lead.with(|lead| lead.as_ref().map(|(_, n)| more(*n)).unwrap_or_default()));
    let has_next = flag(move || lead.with(|lead| lead.as_ref().is_some_and(|(one, _)| !one.next.is_empty())));
    let to = text(move || page.address_of_finding(lead.with(|lead| lead.as_ref().map(|(one, _)| one.id.clone()))));
    let list = text(move || page.address_of_finding(None));
    let show = move |_| {
        let Some((one, _)) = lead.get_untracked() else { return };
        let (from, to) = words::span(&one, page.newest());
        page.begin_step();
        page.show(from, to);
        page.dismiss(&one.id);
        page.proof().into_iter().next().into_iter().for_each(open_chart);
    };
    let seen = move |_| lead.with_untracked(|lead| lead.iter().for_each(|(one, _)| page.dismiss(&one.id)));
    let row = NodeRef::<html::Section>::new();
    // The content below moves down smoothly from its old position.
    row.on_load(move |row| {
        let high = row.get_bounding_client_rect().height();
        if let Some(main) = row.parent_element() {
            let _ = main.remove_attribute("data-went");
            browser::set_style(&main, "--gives-way", &format!("{high}px"));
        }
    });
    view! {
        <section
            node_ref=row
            class=class
            aria-label="Findings"
            data-finding=text(move || lead.with(|lead| lead.as_ref().map(|(one, _)| one.id.clone()).unwrap_or_default()))
        >
            <span class=text(move || shape().0) aria-hidden="true">{text(move || shape().1)}</span>
            <div>
                <p><a class="plain" href=to><b>{of(|one, _| words::split_sentence(one).0)}</b>" "{of(|one, _| words::split_sentence(one).1)}</a></p>
                <If when=has_next><p class="below" data-next="">{of(|one, _| words::next(one))}</p></If>
                <p class="below">
                    {of(words::below)}
                    <If when=flag(move || !further.get().is_empty())>" "<a href=list data-do="findings">{further}</a></If>
                </p>
            </div>
            <Sketch finding=Signal::derive(move || lead.get().map(|(one, _)| one))/>
            <If when=flag(move || lead.with(|lead| lead.as_ref().is_some_and(|(one, _)| one.until.is_some() && is_end(one))))>
                <button class="btn" data-do="seen" on:click=seen>"Got it"</button>
            </If>
            <If when=flag(move || page.is_of_one_machine())>
                <button class="btn" data-do="show-finding" on:click=show>
                    {of(|one, _| format!("Show {}", words::clock(one.since, false)))}
                </button>
            </If>
            <If when=flag(move || !page.is_of_one_machine())>
                <a class="btn" data-do="open-finding" href=to>{of(|one, _| format!("Open at {}", words::clock(one.since, false)))}</a>
            </If>
        </section>
    }
}
