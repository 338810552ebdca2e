//! The top bar: machine, live or frozen, windows, theme.

use super::live::{when, words};
use crate::page::{LinkState, offset, page};
use charts::axis;
use leptos::prelude::*;

/// The bar.
#[component]
pub fn Bar() -> impl IntoView {
    let page = page();
    let windows = Memo::new(move |_| {
        // The first plan is made when the server has said how long it keeps history.
        page.plan.track();
        page.player.track();
        page.windows().collect::<Vec<_>>()
    });
    view! {
        <header class="bar">
            <Machine/>
            <span class="stretch"></span>
            <LinkButton/>
            <div class="windows" role="group" aria-label="Window">
                {move || windows.get()
                    .into_iter()
                    .enumerate()
                    .map(|(i, window)| {
                        view! {
                            <button
                                data-window-choice=window.name
                                title=format!("Key {}", (i + 1) % 10)
                                aria-pressed=words(move || {
                                    page.view.with(|v| v.frozen.map_or(v.window, |(a, b)| b - a) == window.ms).to_string()
                                })
                                on:click=move |_| page.choose(window.ms)
                            >
                                {window.name}
                            </button>
                        }
                    })
                    .collect_view()}
            </div>
            <div id="tools" class="tools">
                <input id="range" aria-label="Span" placeholder="90s, 14:00-14:20" title="A span (key /)" autocomplete="off" spellcheck="false"/>
                <select id="versus" aria-label="Compare with" title="Compare with (key c)">
                    <option value="">"compare …"</option>
                    <option value="before">"span before"</option>
                    <option value="1h">"1 h earlier"</option>
                    <option value="1d">"a day earlier"</option>
                </select>
                <button data-do="changed" title="What changed in this span (key d)">"What changed"</button>
                <span id="wrong" role="alert"></span>
            </div>
            <span class="icons">
                <button class="icon narrow-only" data-do="tools" aria-label="Span and comparison">
                    <svg viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.5"/><path d="M8 5v3l2 1.5"/></svg>
                </button>
                <button class="icon wide" data-do="record" aria-label="Record this span" title="Record this span to a file (r)">
                    <svg viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.5"/><circle cx="8" cy="8" r="2.5" class="fill"/></svg>
                </button>
                <button class="icon wide" data-do="open" aria-label="Open a recording" title="Open a recording (o)">
                    <svg viewBox="0 0 16 16"><path d="M1.5 12.5v-9h4l1.5 2h7.5v7z"/></svg>
                </button>
                <button class="icon wide" data-do="help" aria-label="Keys" title="Keys (?)">
                    <svg viewBox="0 0 16 16"><rect x="1.5" y="4" width="13" height="8.5" rx="1.5"/><path d="M4 6.7h.1M6.7 6.7h.1M9.3 6.7h.1M12 6.7h.1M5 10h6"/></svg>
                </button>
                <button class="icon" aria-label="Theme" title="Theme (t)" on:click=move |_| page.toggle_theme()>
                    <svg viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.5"/><path d="M8 2.5a5.5 5.5 0 0 1 0 11z" class="fill"/></svg>
                </button>
            </span>
        </header>
    }
}

/// Its name and what does not change about it.
#[component]
fn Machine() -> impl IntoView {
    let page = page();
    let facts = Memo::new(move |_| {
        page.plan.track();
        let view = page.view.get();
        let store = page.store.borrow();
        let simulated = store.hello.as_ref().is_some_and(|h| h.simulated);
        let source = store.source(view.source.as_deref())?;
        // A bare number says nothing without its name.
        let fact = |(k, v): &(String, String)| match v.bytes().all(|b| b.is_ascii_digit()) {
            true => format!("{v} {k}"),
            false => v.clone(),
        };
        let facts: Vec<String> = source.info.facts.iter().filter(|(_, v)| !v.is_empty()).map(fact).collect();
        let all: Vec<String> = source.info.facts.iter().map(|(k, v)| format!("{k}: {v}")).collect();
        Some((source.info.name.clone(), facts.join(", "), all.join("\n"), simulated))
    });
    let name = move || facts.get().map(|w| w.0);
    let names = Memo::new(move |_| {
        page.plan.track();
        page.store.borrow().sources.values().map(|s| s.info.name.clone()).collect::<Vec<_>>()
    });
    Effect::new(move |_| {
        if let (Some(name), Some(document)) = (name(), crate::page::browser().document()) {
            document.set_title(&format!("{name} – Watchglass"));
        }
    });
    view! {
        <div class="source" title=words(move || facts.get().map_or_else(String::new, |w| w.2))>
            <svg class="mark" viewBox="0 0 20 20" aria-hidden="true">
                <circle cx="10" cy="10" r="8.25"/>
                <path d="M2.6 12.2h3.6l2-5 3 7.6 2-4.6h4.2"/>
            </svg>
            <h1 class="away">{words(move || name().unwrap_or_else(|| "Watchglass".into()))}</h1>
            <Show
                when=move || names.with(|names| names.len() > 1)
                fallback=move || {
                    view! { <span class="source-name" aria-hidden="true">{words(move || name().unwrap_or_else(|| "Watchglass".into()))}</span> }
                }
            >
                <select
                    class="source-name"
                    aria-label="Machine"
                    on:change=move |event| page.show_source(event_target_value(&event))
                >
                    {move || {
                        let shown = name();
                        let option = |one: String| {
                            let selected = shown.as_ref() == Some(&one);
                            // Without a value of its own an option's text is its value.
                            view! { <option selected=selected>{one}</option> }
                        };
                        names.get().into_iter().map(option).collect_view()
                    }}
                </select>
            </Show>
            {when(
                move || facts.get().is_some_and(|w| w.3),
                || view! { <span class="simulated">"simulated"</span> }.into_any(),
            )}
            <span class="source-facts">{words(move || facts.get().map_or_else(String::new, |w| w.1))}</span>
        </div>
    }
}

/// Live, or frozen and what is shown.
#[component]
fn LinkButton() -> impl IntoView {
    let page = page();
    let word = move || match (page.state.get(), page.view.with(|v| v.frozen)) {
        (LinkState::Reconnecting, _) => "RECONNECTING",
        (LinkState::Lost, _) => "NO SERVER",
        (_, Some(_)) => "FROZEN",
        (LinkState::Connecting, None) => "CONNECTING",
        (LinkState::Live, None) if page.player.with(Option::is_some) => "RECORDED",
        (LinkState::Live, None) if page.silent.get() => "SILENT",
        (LinkState::Live, None) => "LIVE",
    };
    let rest = move || {
        let (from, to) = page.view.with(|v| v.frozen)?;
        page.beat.track();
        let (a, b, now) = (from + offset(from), to + offset(to), page.server_now());
        let day = |local: i64| local.div_euclid(86_400_000);
        let date = if day(a) == day(now + offset(now)) { String::new() } else { axis::date(day(a)) + " " };
        let new = now - to;
        let since = if new < 1000 { String::new() } else { format!(", {} new", axis::duration(new)) };
        Some(format!("{date}{}–{}{since}", axis::clock(a, true), axis::clock(b, true)))
    };
    view! {
        <button class="link" title="Freeze or go on (space)" on:click=move |_| page.toggle_frozen()>
            <span class="dot"></span>
            <span role="status">{words(move || word().to_string())}</span>
            <small>{words(move || rest().unwrap_or_default())}</small>
        </button>
    }
}
