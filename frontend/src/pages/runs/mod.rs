//! Training jobs: [`list`] of all of them, the [`page`] of `one` with its ranks, which `edit` changes, several beside each other in `side`,
//! and those of one machine in its [`panel`]. [`read`] parses the server's responses.

mod columns;
mod differs;
mod edit;
pub mod fleet;
pub mod list;
mod one;
mod page;
pub mod panel;
pub mod parts;
mod printed;
mod ranks;
mod side;

use crate::address::Route;
use crate::pages::fleet::bar::FleetBar;
use crate::pages::team::gate::Stripes;
use leptos::prelude::*;

/// The page of all training jobs, or of those that the address names, with its bar.
pub fn page(route: Route) -> AnyView {
    match route {
        Route::Run => view! { <FleetBar/> <Stripes/> <page::RunPage/> }.into_any(),
        _ => view! { <FleetBar/> <Stripes/> <list::RunsPage/> }.into_any(),
    }
}
