//! Polling of findings, alerts, rules and training jobs while the page is visible.

use crate::access::{Access, Gate};
use crate::browser::document;
use crate::fetch::{self, FetchAnswer, Json};
use crate::state::{LinkState, Page};
use leptos::prelude::*;
use std::rc::Rc;

/// Result of a poll.
pub enum PollAnswer<'a> {
    /// The answer.
    Told(&'a Json),
    /// The server refuses the request: it is older, or the page uses a share link. Polling stops.
    Refused,
    /// The request failed, with the reason. It is retried.
    Failed(String),
}

/// State of the last request.
#[derive(Clone, Debug, Default)]
struct Asked {
    path: String,
    /// Seconds since then.
    since: u32,
    /// Number of changes until then.
    changes: u32,
    /// Increases with each request: the response to an older one is dropped.
    turn: u32,
    refused: bool,
}

/// Polls a path every `every` seconds, as long as the calling component exists. A new path or a change by the user is
/// polled at once. Without a path no request is sent.
pub fn poll(
    page: Page,
    access: Access,
    every: u32,
    path: impl Fn() -> Option<String> + 'static,
    take: impl Fn(PollAnswer<'_>) + 'static,
) {
    // All of it is compiled once, not for each caller.
    follow(page, access, every, Box::new(path), Rc::new(take));
}

fn follow(
    page: Page,
    access: Access,
    every: u32,
    path: Box<dyn Fn() -> Option<String>>,
    take: Rc<dyn Fn(PollAnswer<'_>)>,
) {
    let asked = StoredValue::new(Asked::default());
    Effect::new(move || {
        page.beat.track();
        let changes = page.alert_changes.get();
        let Some(path) = path() else { return };
        // Before the first data the user's permissions are unknown.
        let known = page.state.get() != LinkState::Connecting || page.player.with(Option::is_some);
        let (open, live) = (known && access.gate.get() == Gate::Open, page.state.get() == LinkState::Live);
        let last = asked.get_value();
        let due = last.path != path || last.changes != changes || (live && last.since >= every);
        if last.refused || !open || !due || document().hidden() {
            return asked.update_value(|asked| asked.since += 1);
        }
        let turn = last.turn + 1;
        asked.set_value(Asked { path: path.clone(), turn, changes, ..Asked::default() });
        let take = take.clone();
        fetch::ask("GET", &path, None, move |answer: FetchAnswer| {
            // The component may have gone.
            if asked.try_with_value(|asked| asked.turn == turn) != Some(true) {
                return;
            }
            match answer.status {
                200 => take(PollAnswer::Told(&answer.body)),
                403 | 404 => {
                    asked.update_value(|asked| asked.refused = true);
                    take(PollAnswer::Refused);
                }
                _ => take(PollAnswer::Failed(answer.problem())),
            }
        });
    });
}
