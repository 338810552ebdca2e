//! The dialog of the page. It is the browser's own: the focus stays within, the rest of the page is inactive, and when
//! the dialog is closed the focus goes back to where it was.

use leptos::html;
use leptos::prelude::*;

/// A dialog that is open while `title` has a text. `closed` is called when the user or the browser closes it.
#[component]
pub fn Modal(
    /// Id of the element; a page has several dialogs.
    #[prop(default = "dialog")]
    id: &'static str,
    /// Title of the dialog; None closes the dialog.
    #[prop(into)]
    title: Signal<Option<String>>,
    /// Called once for each closing.
    closed: Callback<()>,
    /// Content below the title.
    children: Children,
) -> impl IntoView {
    let dialog = NodeRef::<html::Dialog>::new();
    let heading = format!("{id}-title");
    let labeled = heading.clone();
    Effect::new(move || {
        let Some(dialog) = dialog.get() else { return };
        match title.with(Option::is_some) {
            true if !dialog.open() => {
                // This fails only for a dialog that is already open as non-modal.
                let _ = dialog.show_modal();
            }
            false => dialog.close(),
            true => {}
        }
    });
    // The browser sends this event some time after the dialog was closed. A dialog that was opened again by then stays
    // open.
    let ended = move |_| {
        if dialog.get_untracked().is_none_or(|dialog| !dialog.open()) {
            closed.run(());
        }
    };
    view! {
        <dialog node_ref=dialog id=id class="dialog" aria-labelledby=labeled on:close=ended>
            <header>
                <h2 id=heading>{move || title.get().unwrap_or_default()}</h2>
                <button data-do="dismiss" aria-label="Close" on:click=move |_| closed.run(())>"✕"</button>
            </header>
            {children()}
        </dialog>
    }
}
