//! The dialog of the page. The browser's own: the keys stay within, the rest of the page is still, and where it is closed
//! they go back to where they were.

use leptos::html;
use leptos::prelude::*;

/// A dialog that is open while `title` has a text; `closed` is called when a person or the browser closes it.
#[component]
pub fn Modal(
    /// What it is of.
    #[prop(into)]
    title: Signal<Option<String>>,
    /// Called once for each closing.
    closed: Callback<()>,
    /// The rest, below its title.
    children: Children,
) -> impl IntoView {
    let dialog = NodeRef::<html::Dialog>::new();
    Effect::new(move || {
        let Some(dialog) = dialog.get() else { return };
        match title.with(Option::is_some) {
            true if !dialog.open() => {
                // Refused only for one that is open in another way.
                let _ = dialog.show_modal();
            }
            false => dialog.close(),
            true => {}
        }
    });
    view! {
        <dialog node_ref=dialog id="dialog" class="dialog" aria-labelledby="dialog-title" on:close=move |_| closed.run(())>
            <header>
                <h2 id="dialog-title">{move || title.get().unwrap_or_default()}</h2>
                <button data-do="dismiss" aria-label="Close" on:click=move |_| closed.run(())>"✕"</button>
            </header>
            {children()}
        </dialog>
    }
}
