//! What a hub keeps, asked for now and then while a page of it is seen.

use crate::access::Access;
use crate::fetch::Json;
use leptos::prelude::*;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use wasm_bindgen::JsValue;

/// How often the hub is asked while the page is seen.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// An answer of a hub that is asked for anew; a copy is the same.
#[derive(Clone, Copy)]
pub struct Polled {
    access: Access,
    path: StoredValue<Arc<dyn Fn() -> Option<String> + Send + Sync>>,
    /// The newest answer; None before the first.
    pub body: RwSignal<Option<Json>, LocalStorage>,
    /// What the hub said to the last change that it refused; empty when there is nothing to say.
    pub wrong: RwSignal<String>,
}

impl Polled {
    /// Asks for a path as long as the component that calls this is there. Where there is no path, nothing is asked: who
    /// looks may not see it.
    pub fn follow(access: Access, path: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        let asked = Polled {
            access,
            path: StoredValue::new(Arc::new(path)),
            body: RwSignal::new_local(None),
            wrong: RwSignal::default(),
        };
        // Nothing is asked before it is known who asks, and again when that or the path changes.
        Effect::new(move || {
            access.session.track();
            asked.path.with_value(|path| path());
            asked.ask();
        });
        if let Ok(handle) = set_interval_with_handle(move || asked.ask(), ASK_EVERY) {
            on_cleanup(move || handle.clear());
        }
        asked
    }

    /// Asks now.
    pub fn ask(self) {
        let Some(Some(path)) = self.path.try_with_value(|path| untrack(|| path())) else { return };
        self.access.ask("GET", path, Vec::new(), move |answer| {
            // The component may be gone. A list that is there stays when the hub is away for a moment.
            if answer.is_ok() {
                let _ = self.body.try_update(|body| {
                    if body.is_none() {
                        let _ = self.wrong.try_set(String::new());
                    }
                    if body.as_ref() != Some(&answer.body) {
                        *body = Some(answer.body);
                    }
                });
            } else if self.body.try_with_untracked(Option::is_none) == Some(true) {
                let _ = self.wrong.try_set(answer.problem());
            }
        });
    }

    /// Changes something, and asks again.
    pub fn change(self, method: &'static str, path: String, body: Vec<(&'static str, JsValue)>) {
        self.access.ask(method, path, body, move |answer| {
            let _ = self.wrong.try_set(if answer.is_ok() { String::new() } else { answer.problem() });
            self.ask();
        });
    }

    /// The newest answer as a type that the hub wrote; the default of that before the first.
    pub fn read_as<T: Default + DeserializeOwned>(self) -> T {
        self.read(|body| body.read().unwrap_or_default())
    }

    /// Reads something of the newest answer; the default of it before the first.
    pub fn read<T: Default>(self, read: impl FnOnce(&Json) -> T) -> T {
        self.body.with(|body| body.as_ref().map(read).unwrap_or_default())
    }

    /// True once an answer has come.
    pub fn known(self) -> bool {
        self.body.with(Option::is_some)
    }
}
