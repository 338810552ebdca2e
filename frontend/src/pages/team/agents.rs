//! The machines of a team as the hub lists them.

use crate::access::Access;
use crate::fetch::Json;
use leptos::prelude::*;
use shared::session::{self, Agent};
use std::time::Duration;
use wasm_bindgen::JsValue;

/// Poll interval of the list while it is visible.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// The machines of a team as the hub lists them; copies share the same signals.
#[derive(Clone, Copy)]
pub struct Agents {
    access: Access,
    /// The list, sorted by name.
    pub list: RwSignal<Vec<Agent>>,
    /// The hub's error for the last refused change; empty without one.
    pub wrong: RwSignal<String>,
    /// True once the list has arrived.
    pub known: RwSignal<bool>,
}

impl Agents {
    /// Polls the list as long as the calling component exists.
    pub fn follow(access: Access) -> Self {
        let list = RwSignal::new(Vec::new());
        let agents = Agents { access, list, wrong: RwSignal::default(), known: RwSignal::new(false) };
        // Polling starts after the session is known, and again when it changes.
        Effect::new(move || {
            access.session.track();
            agents.ask();
        });
        if let Ok(handle) = set_interval_with_handle(move || agents.ask(), ASK_EVERY) {
            on_cleanup(move || handle.clear());
        }
        agents
    }

    /// The path of the list; None for users who may not change it.
    pub fn path(self) -> Option<String> {
        Some(format!("api/v1/teams/{}/agents", untrack(|| self.access.team())?.id))
    }

    fn ask(self) {
        let Some(path) = self.path() else { return };
        crate::fetch::ask("GET", &path, None, move |answer| {
            match answer.read::<session::Agents>() {
                Ok(session::Agents { agents }) => {
                    // The component may be gone.
                    let _ = self.list.try_update(|list| {
                        if *list != agents {
                            *list = agents;
                        }
                    });
                    let _ = self.known.try_set(true);
                }
                Err(_) if answer.status == 401 => self.access.request_session(),
                Err(why) if answer.is_ok() => drop(self.wrong.try_set(why)),
                Err(_) => {}
            }
        });
    }

    /// Sends a change, and polls the list at once.
    pub fn change(self, method: &'static str, path: String, body: Vec<(&'static str, JsValue)>) {
        self.access.ask(method, path, body, move |answer| {
            let _ = self.wrong.try_set(if answer.is_ok() { String::new() } else { answer.problem() });
            self.ask();
        });
    }

    /// Approves a machine that requested to join.
    pub fn approve(self, id: &str) {
        if let Some(path) = self.path() {
            self.change("POST", format!("{path}/{id}/approve"), Vec::new());
        }
    }
}

/// Texts under their names, as JSON.
pub fn texts(pairs: &[(String, String)]) -> JsValue {
    Json::object(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str().into())))
}
