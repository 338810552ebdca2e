//! The cells of a list as elements.

use super::line::{Cell, Mark};
use crate::widgets::clock::{Clock, ago, clock, until};
use crate::widgets::parts::text;
use crate::widgets::spark::Small;
use leptos::prelude::*;
use shared::unit::rough_duration;

/// A shape with its words.
fn mark(mark: Mark) -> AnyView {
    view! { <span class=mark.class aria-hidden="true">{mark.glyph}</span>" "{mark.words} }.into_any()
}

/// A text that is right each second.
fn beating(said: impl Fn(Clock) -> String + Send + Sync + 'static) -> AnyView {
    let clock = expect_context::<Clock>();
    text(move || {
        clock.beat.track();
        said(clock)
    })
    .into_any()
}

fn faint(words: String) -> AnyView {
    view! { <span class="u">{words}</span> }.into_any()
}

fn link(to: String, name: String, rest: String, short: Mark) -> AnyView {
    let rest = (!rest.is_empty()).then(|| faint(rest));
    let short = (!short.words.is_empty()).then(|| view! { <span class="u short">{mark(short)}</span> });
    view! { <a class="source-name" href=to>{name}</a>" "{rest}{short} }.into_any()
}

fn share(share: Option<f64>, words: String, is_much: bool) -> AnyView {
    let bar = |share: f64| view! { <i class="share"><i style:width=format!("{:.0}%", share * 100.0)></i></i>" " };
    view! { <span class=if is_much { "is-much" } else { "" }>{share.map(bar)}{words}</span> }.into_any()
}

/// Content of a cell of the row with this name. `send` is called with the action and the chosen value.
pub fn drawn(cell: Cell, name: String, send: Callback<(&'static str, String)>) -> AnyView {
    match cell {
        Cell::Text(words) | Cell::Number(words) => words.into_any(),
        Cell::Faint(words) => faint(words),
        Cell::Strong(words) => view! { <b>{words}</b> }.into_any(),
        Cell::Titled(words, title) => view! { <span title=title>{words}</span> }.into_any(),
        Cell::Name(name, rest) => view! { <b class="source-name">{name}</b>" "{faint(rest)} }.into_any(),
        Cell::Link(to, name, rest, short) => link(to, name, rest, short),
        Cell::State(true, words) => mark(Mark { class: "shape is-ok", glyph: "●".into(), words }),
        Cell::State(false, words) => mark(Mark { class: "shape is-warn", glyph: "▲".into(), words }),
        Cell::Stands(_, shown, rest) => {
            let rest = (!rest.is_empty()).then(|| view! { " "{faint(rest)} });
            view! { {mark(shown)}{rest} }.into_any()
        }
        Cell::Ago(None, never) => faint(never.into()),
        Cell::Ago(Some(t), _) => beating(move |_| ago(t)),
        Cell::Ends(None) => faint("never".into()),
        Cell::Ends(Some(t)) => beating(move |_| until(t)),
        Cell::Lasts(from, Some(to)) => rough_duration((to - from).max(0)).into_any(),
        Cell::Lasts(from, None) => beating(move |clock| rough_duration((clock.now() - from).max(0))),
        Cell::At(t) => clock(t).into_any(),
        Cell::Spark(values) => (!values.is_empty()).then(|| view! { <Small values most=100.0/> }).into_any(),
        Cell::Share(part, words, is_much) => share(part, words, is_much),
        Cell::Choice(deed, words, is) => {
            let option = |word: &'static str| view! { <option value=word selected=word == is>{word}</option> };
            let choose = move |event| send.run((deed, event_target_value(&event)));
            view! {
                <select name=deed aria-label=format!("{deed} of {name}") on:change=choose>
                    {words.into_iter().map(option).collect_view()}
                </select>
            }
            .into_any()
        }
        Cell::Group(..) => ().into_any(),
    }
}
