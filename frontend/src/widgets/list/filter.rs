//! Fields and choices above a list.

use crate::widgets::icons::Glass;
use crate::widgets::parts::text;
use leptos::prelude::*;

/// The field that filters a list. The key `/` leads to the one that is `main`.
#[component]
pub fn Filter(
    /// Label for screen readers.
    label: &'static str,
    /// Placeholder.
    hint: &'static str,
    /// Its text.
    #[prop(into)]
    value: Signal<String>,
    /// Called with each change.
    put: Callback<String>,
    /// Called when the user presses Enter.
    #[prop(optional)]
    enter: Option<Callback<()>>,
    /// Its name, where a page has several.
    #[prop(optional)]
    name: &'static str,
    /// Whether it is the field of the page's own list.
    #[prop(default = true)]
    main: bool,
) -> impl IntoView {
    let pressed = move |event: leptos::ev::KeyboardEvent| {
        if let (Some(enter), "Enter") = (enter, event.key().as_str()) {
            enter.run(());
        }
    };
    view! {
        <label class=if main { "filter" } else { "filter small" }>
            {main.then(|| view! { <Glass/> })}
            <input
                id=main.then_some("filter")
                type="search"
                name=(!name.is_empty()).then_some(name)
                aria-label=label
                placeholder=hint
                autocomplete="off"
                spellcheck="false"
                prop:value=value
                on:input=move |event| put.run(event_target_value(&event))
                on:keydown=pressed
            />
            {main.then(|| view! { <kbd aria-hidden="true">"/"</kbd> })}
        </label>
    }
}

/// A row of words with one chosen.
#[component]
pub fn Choice(
    /// Label for screen readers.
    label: &'static str,
    /// Text before it.
    #[prop(optional)]
    before: &'static str,
    /// Name of its buttons in `data-do`.
    deed: &'static str,
    /// Values and words.
    #[prop(into)]
    options: Signal<Vec<(String, String)>>,
    /// The value that is chosen.
    #[prop(into)]
    is: Signal<String>,
    /// Called with another one.
    choose: Callback<String>,
) -> impl IntoView {
    let option = move |(value, words): (String, String)| {
        let value = StoredValue::new(value);
        let pressed = text(move || is.with(|is| value.with_value(|value| value == is)).to_string());
        view! {
            <button data-do=deed data-choice=value.get_value() aria-pressed=pressed on:click=move |_| choose.run(value.get_value())>{words}</button>
        }
    };
    let before = (!before.is_empty()).then(|| view! { <span class="u">{before}</span> });
    view! {
        <span class="choice" role="group" aria-label=label>
            {before}
            {move || options.get().into_iter().map(option).collect_view()}
        </span>
    }
}

/// Values and words that never change.
pub fn options(all: &[(&str, &str)]) -> Signal<Vec<(String, String)>> {
    Signal::stored(all.iter().map(|(value, words)| (value.to_string(), words.to_string())).collect())
}
