//! The field for a typed span, and the choice of an earlier period to compare with.

use crate::browser::{now, offset};
use crate::range::{self, Asked};
use crate::shortcuts::{self, Action};
use crate::state::Page;
use leptos::html;
use leptos::prelude::*;
use web_sys::HtmlInputElement;

/// Both, beside what changed.
#[component]
pub fn SpanTools() -> impl IntoView {
    let page = expect_context::<Page>();
    let wrong = RwSignal::new(String::new());
    let field = NodeRef::<html::Input>::new();
    let typed = move |_| {
        if let Some(field) = field.get_untracked() {
            wrong.set(typed(page, &field));
        }
    };
    let class = move || if page.tools.get() { "tools open" } else { "tools" };
    view! {
        <div id="tools" class=class>
            <input
                node_ref=field
                id="range"
                aria-label="Span"
                placeholder="90s, 14:00-14:20"
                title=shortcuts::title("A span", &[Action::Type])
                autocomplete="off"
                spellcheck="false"
                aria-invalid=move || wrong.with(|w| !w.is_empty()).to_string()
                on:change=typed
            />
            <Compare/>
            <button
                data-do="changed"
                title=shortcuts::title("What changed in this span", &[Action::Changed])
                on:click=move |_| page.sheet.update(|open| *open = !*open)
            >
                "What changed"
            </button>
            <span id="wrong" role="alert">{wrong}</span>
        </div>
    }
}

/// What is compared with: the address may also name what is not in the list.
#[component]
fn Compare() -> impl IntoView {
    let page = expect_context::<Page>();
    let select = NodeRef::<html::Select>::new();
    let name = |ms: i64| if ms == 0 { "before".to_string() } else { range::name(ms) };
    Effect::new(move || {
        if let Some(select) = select.get() {
            select.set_value(&page.view.with(|v| v.versus).map_or_else(String::new, name));
        }
    });
    let chosen = move |event| {
        let value = event_target_value(&event);
        page.change(|v| v.versus = if value == "before" { Some(0) } else { range::length(&value) });
    };
    view! {
        <select
            node_ref=select
            id="versus"
            aria-label="Compare with"
            title=shortcuts::title("Compare with", &[Action::Compare])
            on:change=chosen
        >
            <option value="">"compare …"</option>
            <option value="before">"span before"</option>
            <option value="1h">"1 h earlier"</option>
            <option value="1d">"a day earlier"</option>
        </select>
    }
}

/// A span was typed; answers with what is wrong with it.
fn typed(page: Page, field: &HtmlInputElement) -> String {
    let text = field.value();
    if text.trim().is_empty() {
        return String::new();
    }
    match range::read(&text, now() + page.ahead.get_value(), page.longest(), &offset) {
        Err(words) => {
            // What is typed next takes its place.
            field.select();
            words
        }
        Ok(asked) => {
            page.remember();
            match asked {
                Asked::Last(ms) => page.change(|v| (v.window, v.frozen) = (ms, None)),
                Asked::Span(from, to) => page.show(from, to),
            }
            // Keys mean the page again.
            let _ = field.blur();
            String::new()
        }
    }
}
