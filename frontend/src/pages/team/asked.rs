//! Data of a hub, polled while its page is visible.

use crate::access::Access;
use crate::fetch::{FetchAnswer, Json, WrongShape};
use leptos::prelude::*;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wasm_bindgen::JsValue;

/// Poll interval while the page is visible.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// A response of any type: the polling code is thus compiled once, not for each type.
type AnyAnswer = Rc<dyn Any>;

/// A polled response of a hub, as the type that the hub serialized; copies share the same signals.
pub struct Polled<T> {
    asked: Asked,
    /// The hub's error for the last refused change, or the reason why it did not respond; empty without one.
    pub wrong: RwSignal<String>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Polled<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Polled<T> {}

impl<T: DeserializeOwned + 'static> Polled<T> {
    /// Polls a path as long as the calling component exists. Without a path, which means without permission, no request
    /// is sent.
    pub fn follow(access: Access, path: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        let asked = Asked::follow(access, Arc::new(path), |body| Ok(Rc::new(body.read::<T>()?)));
        Polled { asked, wrong: asked.wrong, of: PhantomData }
    }

    /// Asks now.
    pub fn ask(self) {
        self.asked.ask();
    }

    /// Sends a change, and polls at once.
    pub fn change(self, method: &'static str, path: String, body: Vec<(&'static str, JsValue)>) {
        self.asked.change(method, path, body);
    }

    /// Reads a value from the newest response; its default before the first.
    pub fn read<R: Default>(self, read: impl FnOnce(&T) -> R) -> R {
        let of = |(_, kept): &(Json, AnyAnswer)| kept.downcast_ref().map(read);
        self.asked.newest.with(|newest| newest.as_ref().and_then(of)).unwrap_or_default()
    }

    /// True after the first response.
    pub fn known(self) -> bool {
        self.asked.newest.with(Option::is_some)
    }
}

#[derive(Clone, Copy)]
struct Asked {
    access: Access,
    path: StoredValue<Arc<dyn Fn() -> Option<String> + Send + Sync>>,
    read: fn(&Json) -> Result<AnyAnswer, WrongShape>,
    /// None before the first.
    newest: RwSignal<Option<(Json, AnyAnswer)>, LocalStorage>,
    wrong: RwSignal<String>,
}

impl Asked {
    fn follow(
        access: Access,
        path: Arc<dyn Fn() -> Option<String> + Send + Sync>,
        read: fn(&Json) -> Result<AnyAnswer, WrongShape>,
    ) -> Self {
        let path = StoredValue::new(path);
        let asked = Asked { access, path, read, newest: RwSignal::new_local(None), wrong: RwSignal::default() };
        // Polling starts after the session is known, and again when the session or the path changes.
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

    fn ask(self) {
        let Some(Some(path)) = self.path.try_with_value(|path| untrack(|| path())) else { return };
        self.access.ask("GET", path, Vec::new(), move |answer| self.take(answer));
    }

    fn take(self, answer: FetchAnswer) {
        // The component may be gone.
        let Some(before) = self.newest.try_with_untracked(|newest| newest.as_ref().map(|(body, _)| body.clone()))
        else {
            return;
        };
        if answer.is_ok() && before.as_ref() == Some(&answer.body) {
            return;
        }
        match answer.read_by(self.read) {
            Ok(kept) => {
                if before.is_none() {
                    let _ = self.wrong.try_set(String::new());
                }
                let _ = self.newest.try_set(Some((answer.body, kept)));
            }
            // A list that is there stays when the hub is away for a moment.
            Err(why) if before.is_none() || answer.is_ok() => drop(self.wrong.try_set(why)),
            Err(_) => {}
        }
    }

    fn change(self, method: &'static str, path: String, body: Vec<(&'static str, JsValue)>) {
        self.access.ask(method, path, body, move |answer| {
            let _ = self.wrong.try_set(if answer.is_ok() { String::new() } else { answer.problem() });
            self.ask();
        });
    }
}
