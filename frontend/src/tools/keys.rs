//! The list of all keys.

use crate::shortcuts::{self, KEYS};
use leptos::prelude::*;

/// The list of all keys, with those of recordings while a recording is shown.
#[component]
pub fn KeyList(
    /// True while a recording is shown.
    recorded: bool,
) -> impl IntoView {
    let names = |names: &'static str| names.split(' ').map(|key| view! { <kbd>{key}</kbd> }).collect_view();
    let row = move |row: &'static shortcuts::Shortcut| view! { <dt>{names(row.names)}</dt><dd>{row.words}</dd> };
    let group = move |group: &'static shortcuts::Group| {
        view! {
            <section>
                <h3>{group.title}</h3>
                <dl>{group.rows.iter().map(row).collect_view()}</dl>
            </section>
        }
    };
    let shown = KEYS.iter().filter(|group| recorded || !group.recorded);
    view! {
        <div class="body keys" tabindex="0" role="region" aria-label="All keys">
            {shown.map(group).collect_view()}
            <section>
                <h3>"More"</h3>
                <p><a href="docs/index.html" target="_blank">"Documentation"</a></p>
            </section>
        </div>
    }
}
