//! The pages of people and machines of a hub: [`gate`] signs in, [`join`] adds machines, [`machines`] lists them, from
//! the hub's list ([`agents`]); [`members`] with [`teams`] and [`accounts`], [`keys`], [`links`], [`audit`], [`usage`]
//! and [`me`] share one [`frame`], one [`List`](crate::widgets::list::List) and one [`form`], with data that [`asked`]
//! polls; [`views`] is the menu of saved views.

pub mod accounts;
pub mod agents;
pub mod asked;
pub mod audit;
pub mod form;
pub mod frame;
pub mod gate;
pub mod gpu_time;
pub mod join;
pub mod keys;
pub mod links;
pub mod machines;
pub mod me;
pub mod members;
pub mod teams;
pub mod usage;
pub mod views;

use crate::address::Route;
use crate::pages::fleet::bar::FleetBar;
use leptos::prelude::*;

/// The page of an address about people or machines of a hub, with its bar.
pub fn page(route: Route) -> AnyView {
    let content = move || match route {
        Route::Team => view! { <members::MembersPage/> }.into_any(),
        Route::Keys => view! { <keys::KeysPage/> }.into_any(),
        Route::Links => view! { <links::LinksPage/> }.into_any(),
        Route::Audit => view! { <audit::AuditPage/> }.into_any(),
        Route::Usage => view! { <usage::UsagePage/> }.into_any(),
        Route::Me => view! { <me::MePage/> }.into_any(),
        _ => view! { <machines::MachinesPage/> }.into_any(),
    };
    view! { <FleetBar/> <gate::Stripes/> <frame::Frame>{content}</frame::Frame> }.into_any()
}
