//! The page of the training jobs that the address names.

use super::one::OnePage;
use super::side::SidePage;
use crate::address::Route;
use crate::state::Page;
use leptos::prelude::*;

/// The page of the runs that the address names: of one alone, or of several beside each other.
#[component]
pub fn RunPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let ids = Memo::new(move |_| page.view.with(|view| view.runs.clone()));
    move || {
        match &ids.get()[..] {
        [] => view! {
            <main id="page" class="fleet run-page">
                <p class="wrong">"The address contains no run. "<a href=page.address_of(Some(Route::Runs), &[])>"All runs"</a></p>
            </main>
        }
        .into_any(),
        [one] => view! { <OnePage id=one.clone()/> }.into_any(),
        several => view! { <SidePage ids=several.to_vec()/> }.into_any(),
    }
    }
}
