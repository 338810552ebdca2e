//! Parts of views with one type each: a text, a choice and a list that follow signals. Content built from them is
//! compiled once, not once for each use.

use leptos::prelude::*;

/// A text that updates with the signals it reads.
pub fn text<S: Into<String>>(of: impl Fn() -> S + Send + Sync + 'static) -> Signal<String> {
    Signal::derive(move || of().into())
}

/// A condition that updates with the signals it reads.
pub fn flag(of: impl Fn() -> bool + Send + Sync + 'static) -> Signal<bool> {
    Signal::derive(of)
}

/// Shows its content while a condition holds.
#[component]
pub fn If(
    /// The condition.
    #[prop(into)]
    when: Signal<bool>,
    /// The content.
    children: ChildrenFn,
) -> impl IntoView {
    // Only a change of the condition rebuilds the content.
    let when = Memo::new(move |_| when.get());
    view! { <Show when=move || when.get()>{children()}</Show> }
}

/// A list with an entry for each key.
#[component]
pub fn Each(
    /// The keys in their order; none of them twice.
    #[prop(into)]
    keys: Signal<Vec<String>>,
    /// Makes the entry of a key.
    row: Callback<String, AnyView>,
) -> impl IntoView {
    view! { <For each=move || keys.get() key=Clone::clone children=move |key| row.run(key)/> }
}
