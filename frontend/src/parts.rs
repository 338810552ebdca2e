//! The parts of the page that are loaded when they are first shown: the pages other than that of one machine, the
//! sign-in, dialogs and menus. The page of one machine starts without their code.
//!
//! With the feature `parts`, each of them is a file of its own, which `xtask/bindgen` makes of the linked module. Without
//! it, as under `trunk serve`, the page is one module, and a part is there at once.

use crate::browser::{document, window};
use crate::fetch;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::SplitLoaderError;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Makes the view of a part from what the part is given.
pub type Make<A> = fn(A) -> AnyView;
/// The load of a part: an error where the part's file does not arrive. Another try begins anew.
pub type Load<A> = Pin<Box<dyn Future<Output = Result<Make<A>, SplitLoaderError>>>>;

/// Key in the storage of the tab: when a part of a newer server last made the page reload, in ms.
const RELOADED_KEY: &str = "watchglass.updated";
/// Least time between two such reloads in ms.
const RELOAD_PAUSE: f64 = 300_000.0;

/// Declares parts: a name, the type that the part is given, and the function that makes its view.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident($given:ty) = $make:path;)*) => {$(
        $(#[$doc])*
        pub fn $name(given: $given) -> leptos::prelude::AnyView {
            #[cfg(feature = "parts")]
            #[leptos::wasm_split::wasm_split($name, wasm_split_path = ::leptos::wasm_split, fallible)]
            fn $name() -> Result<$crate::parts::Make<$given>, leptos::wasm_split::SplitLoaderError> {
                Ok($make)
            }
            #[cfg(not(feature = "parts"))]
            async fn $name() -> Result<$crate::parts::Make<$given>, leptos::wasm_split::SplitLoaderError> {
                Ok($make)
            }
            $crate::parts::show(given, || Box::pin($name()))
        }
    )*};
}
pub(crate) use parts;

/// PartState of a part that is not loaded yet.
#[derive(Clone)]
enum PartState<A: 'static> {
    Loading,
    Failed,
    There(Make<A>),
}

/// The view of a part: at once where it was loaded before, else when it is loaded. Meanwhile a line says that it loads,
/// or that this failed.
pub fn show<A: Clone + Send + Sync + 'static>(given: A, load: fn() -> Load<A>) -> AnyView {
    let mut first = load();
    let state = RwSignal::new(PartState::Loading);
    match first.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(make)) => return make(given),
        Poll::Ready(Err(_)) => state.set(PartState::Failed),
        Poll::Pending => follow(state, first),
    }
    let again = move |_| {
        state.set(PartState::Loading);
        follow(state, load());
    };
    (move || match state.get() {
        PartState::There(make) => make(given.clone()),
        PartState::Loading => view! { <p class="part" role="status">"Loading …"</p> }.into_any(),
        PartState::Failed => view! {
            <p class="part failed" role="alert">
                "This part of the page did not load. Check that the server runs, and try again. "
                <button class="btn" data-do="load-part" on:click=again>"Try again"</button>
            </p>
        }
        .into_any(),
    })
    .into_any()
}

/// Sets the state when the load ends.
fn follow<A: 'static>(state: RwSignal<PartState<A>>, load: Load<A>) {
    spawn_local(async move {
        let new = match load.await {
            Ok(make) => PartState::There(make),
            Err(_) => {
                reload_if_newer();
                PartState::Failed
            }
        };
        // The part may have been closed meanwhile.
        let _ = state.try_set(new);
    });
}

/// Reloads the page if the server has another page by now: that server has no parts of this one. A reload that does not
/// help is not repeated.
fn reload_if_newer() {
    let own = document().query_selector("link[rel=modulepreload]").ok().flatten().and_then(|l| l.get_attribute("href"));
    fetch::text("./", move |html| {
        let has_other =
            own.is_some_and(|own| html.is_some_and(|html| html.contains("modulepreload") && !html.contains(&own)));
        let Some(kept) = window().session_storage().ok().flatten().filter(|_| has_other) else { return };
        let last = kept.get_item(RELOADED_KEY).ok().flatten().and_then(|at| at.parse::<f64>().ok());
        let now = js_sys::Date::now();
        if last.is_some_and(|last| (now - last).abs() < RELOAD_PAUSE)
            || kept.set_item(RELOADED_KEY, &now.to_string()).is_err()
        {
            return;
        }
        // Where the browser refuses, the line with the button stays.
        let _ = window().location().reload();
    });
}
