//! The list of layouts: folded and hidden parts and the charts on top, under names in this browser's storage. The link
//! of the page has the shown layout, so that its readers see the same and can store it too.

use crate::state::Page;
use leptos::html;
use leptos::prelude::*;

/// The content of the dialog.
#[component]
pub fn Layouts() -> impl IntoView {
    let page = expect_context::<Page>();
    let (kept, said) = (RwSignal::new(page.layouts()), RwSignal::new(String::new()));
    let field = NodeRef::<html::Input>::new();
    let shown = move || page.view.with(|v| v.layout.clone()).unwrap_or_default();
    let keep = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let name = field.get_untracked().map(|field| field.value()).unwrap_or_default();
        said.set(match page.keep_layout(&name, true) {
            true => format!("Saved in this browser. Copy the link of the page to share it: {}", name.trim()),
            false => "Not saved: give it a name; at most 24; storage must be allowed".into(),
        });
        kept.set(page.layouts());
    };
    let row = move |layout: (String, String)| {
        let (name, own, this) = (layout.0.clone(), layout.0.clone(), layout.0.clone());
        let forget = move |_| {
            page.keep_layout(&own, false);
            kept.set(page.layouts());
        };
        view! {
            <li>
                <button class="name" data-do="layout" aria-pressed=move || (shown() == this).to_string() on:click=move |_| page.show_layout(Some(layout.clone()))>
                    {name.clone()}
                </button>
                <button data-do="forget" aria-label=format!("Delete {name}") on:click=forget>"Delete"</button>
            </li>
        }
    };
    view! {
        <div class="body layouts">
            <p>"A layout saves which sections are open, hidden and first."</p>
            <ul>
                <li><button class="name" data-do="layout" aria-pressed=move || shown().is_empty().to_string() on:click=move |_| page.show_layout(None)>"Default"</button></li>
                <For each=move || kept.get() key=Clone::clone children=row/>
            </ul>
            <form class="take" on:submit=keep>
                <input node_ref=field id="layout" aria-label="Name" placeholder="name of this layout" maxlength="40" autocomplete="off" value=shown/>
                <button data-do="keep-layout">"Save"</button>
            </form>
            <p class="did" role="status">{said}</p>
        </div>
    }
}
