//! Asks for what is wrong again and again, while somebody looks at the page and its data comes from a server.

use crate::access::{Access, Gate};
use crate::address::Route;
use crate::browser::document;
use crate::fetch::{self, Json};
use crate::range;
use crate::state::{Findings, LinkState, Page};
use charts::order;
use leptos::prelude::*;
use shared::finding::{self, Finding};

/// Seconds between two questions while the page is live.
const REFRESH_SECONDS: u32 = 5;
/// How far back the list of findings reaches, seconds.
pub const LISTED_SECONDS: i64 = 12 * 3_600;

/// What was asked last.
#[derive(Clone, Debug, Default)]
struct Asked {
    path: String,
    /// Seconds since then.
    since: u32,
    /// Rises with each question: an answer to an older one comes too late.
    turn: u32,
    /// The server does not tell, as one that is older, or by a share link.
    refused: bool,
}

/// Begins to ask, as long as the page is there.
pub fn follow(page: Page, access: Access) {
    let is_list = Memo::new(move |_| page.place() == Route::Findings);
    Effect::new(move || {
        if page.over.get() {
            of_file(page, is_list.get());
        }
    });
    let asked = StoredValue::new(Asked::default());
    Effect::new(move || {
        page.beat.track();
        let Some((machine, path)) = question(page) else { return };
        // Before the first data it is not known who may ask.
        let known = page.state.get() != LinkState::Connecting || page.player.with(|player| player.is_some());
        let open = known && access.gate.get() == Gate::Open;
        let live = page.state.get() == LinkState::Live;
        let before = asked.get_value();
        let due = before.path != path || (live && before.since >= REFRESH_SECONDS);
        if before.refused || !open || !due || document().hidden() {
            return asked.update_value(|asked| asked.since += 1);
        }
        let turn = before.turn + 1;
        asked.set_value(Asked { path: path.clone(), turn, ..Asked::default() });
        fetch::ask("GET", &path, None, move |answer| {
            if asked.with_value(|asked| asked.turn != turn) {
                return;
            }
            match answer.status {
                200 => {
                    let Ok(told) = answer.body.read::<finding::Findings>() else { return };
                    page.set_findings(Findings { machine, all: told.findings, rules: told.rules, known: true });
                }
                403 | 404 => asked.update_value(|asked| asked.refused = true),
                _ => {} // It is asked again.
            }
        });
    });
}

/// Takes in what a file tells: there is no server to be asked. The list is of all its machines.
fn of_file(page: Page, is_list: bool) {
    page.plan.track();
    // A file may be of another version: what of it is no finding is left out.
    let read = |text: &String| Json::of(js_sys::JSON::parse(text).ok()?).read::<Finding>().ok();
    let mut all: Vec<Finding> = page.file_findings.with(|told| told.iter().filter_map(read).collect());
    order::sort_by(&mut all, |a, b| (b.told, &a.id).cmp(&(a.told, &b.id)));
    let machine = if is_list { String::new() } else { page.machine() };
    page.set_findings(Findings { machine, all, rules: Vec::new(), known: true });
}

/// The machine of which the page asks, and the question; None while nobody can be asked.
fn question(page: Page) -> Option<(String, String)> {
    let place = page.place();
    let (frozen, window, shared) = page.view.with(|view| (view.frozen, view.window, view.share.is_some()));
    // A file that the page itself has opened has no server, and a share link shows charts alone.
    if page.over.get() || shared || !place.draws() {
        return None;
    }
    let recorded = page.player.with(|player| player.as_ref().map(|p| (p.recorded.from, p.recorded.to)));
    if place == Route::Findings {
        let asked = match recorded {
            Some((from, to)) => format!("from={}&to={}", range::seconds(from), range::seconds(to)),
            None => format!("from=-{LISTED_SECONDS}s"),
        };
        return Some((String::new(), format!("api/v1/findings?{asked}")));
    }
    if place != Route::Host {
        return Some((String::new(), "api/v1/findings?active=1".into()));
    }
    page.plan.track();
    let machine = Some(page.machine()).filter(|name| !name.is_empty())?;
    let span = match (recorded, frozen) {
        (Some((from, to)), _) | (None, Some((from, to))) => {
            format!("from={}&to={}", range::seconds(from), range::seconds(to))
        }
        (None, None) => format!("from=-{}s", window / 1_000),
    };
    let path = format!("api/v1/findings?source={}&{span}", String::from(js_sys::encode_uri_component(&machine)));
    Some((machine, path))
}
