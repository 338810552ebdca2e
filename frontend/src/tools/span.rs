//! The field for a typed span, and the choice of an earlier period to compare with.

use crate::browser::{now, offset};
use crate::range;
use crate::shortcuts::{self, Action};
use crate::state::{Page, Sheet};
use leptos::html;
use leptos::prelude::*;
use web_sys::HtmlInputElement;

/// The field and the choice, and the button for the list of changes.
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
                title="A span"
                autocomplete="off"
                spellcheck="false"
                aria-invalid=move || wrong.with(|w| !w.is_empty()).to_string()
                on:change=typed
            />
            <Compare/>
            <button
                data-do="changed"
                title=shortcuts::title("Changes in this span", &[Action::Changed])
                on:click=move |_| page.toggle_sheet(Sheet::Changed)
            >
                "Changes"
            </button>
            <span id="wrong" role="alert">{wrong}</span>
        </div>
    }
}

/// The choice of the period to compare with. The address may name a period that is not in the list.
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
        page.step(|v| v.versus = if value == "before" { Some(0) } else { range::length(&value) });
    };
    // A period that history cannot hold is not offered.
    let earlier = move || {
        page.plan.track();
        let kept = page.store.read_value().hello.as_ref().map_or(0, |hello| hello.retention);
        let fits = |ms: i64| kept > ms || page.view.with(|v| v.versus == Some(ms));
        let hour = fits(3_600_000).then(|| view! { <option value="1h">"1 h earlier"</option> });
        let day = fits(86_400_000).then(|| view! { <option value="1d">"a day earlier"</option> });
        view! { {hour}{day} }
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
            {earlier}
        </select>
    }
}

/// Shows the typed span. Returns its error, or an empty text.
fn typed(page: Page, field: &HtmlInputElement) -> String {
    let text = field.value();
    if text.trim().is_empty() {
        return String::new();
    }
    match range::read(&text, now() + page.ahead.get_value(), page.longest(), &offset) {
        Err(words) => {
            // The selected text is replaced when the user types again.
            field.select();
            words
        }
        Ok(asked) => {
            page.go(asked);
            // Without the focus in the field, keys mean the page again.
            let _ = field.blur();
            String::new()
        }
    }
}
