//! Polls the findings while the page is visible and its data come from a server.

use crate::access::Access;
use crate::address::Route;
use crate::fetch::Json;
use crate::pages::poll::{PollAnswer, poll};
use crate::range;
use crate::state::{Findings, Page};
use charts::order;
use leptos::prelude::*;
use shared::finding::{self, Finding};
use viewer::findings::evidence::Subjects;

/// Seconds between two polls while the page is live.
const REFRESH_SECONDS: u32 = 5;
/// Span of the list of findings, in seconds.
pub const LISTED_SECONDS: i64 = 12 * 3_600;

/// Starts the polling, which lasts as long as the page.
pub fn follow(page: Page, access: Access) {
    let is_list = Memo::new(move |_| page.place() == Route::Findings);
    Effect::new(move || {
        if page.over.get() {
            of_file(page, is_list.get());
        }
    });
    let subjects = Memo::new(move |_| {
        let machine = page.findings.with(|findings| findings.machine.clone());
        page.leads().filter(|_| page.place() == Route::Host).map(|(one, _)| Subjects::from_finding(&one, &machine))
    });
    Effect::new(move || page.set_subjects(subjects.get().unwrap_or_default()));
    // The machine of the last request.
    let machine = StoredValue::new(String::new());
    let path = move || {
        let (of, path) = question(page)?;
        machine.set_value(of);
        Some(path)
    };
    poll(page, access, REFRESH_SECONDS, path, move |polled| match polled {
        PollAnswer::Told(body) => {
            let Ok(finding::Findings { findings: all, rules, .. }) = body.read() else { return };
            page.set_findings(Findings { machine: machine.get_value(), all, rules, known: true, refused: false });
        }
        PollAnswer::Refused => page.set_findings(Findings { refused: true, ..Findings::default() }),
        PollAnswer::Failed(_) => {}
    });
}

/// Reads the findings from a file. The list has all its machines.
fn of_file(page: Page, is_list: bool) {
    page.plan.track();
    // A file may be of another version: entries that cannot be parsed are omitted.
    let read = |text: &String| Json::from_value(js_sys::JSON::parse(text).ok()?).read::<Finding>().ok();
    let mut all: Vec<Finding> = page.file_findings.with(|told| told.iter().filter_map(read).collect());
    order::sort_by(&mut all, |a, b| (b.told, &a.id).cmp(&(a.told, &b.id)));
    let machine = if is_list { String::new() } else { page.machine() };
    page.set_findings(Findings { machine, all, rules: Vec::new(), known: true, refused: false });
}

/// The machine and the path of the request; None without a server.
fn question(page: Page) -> Option<(String, String)> {
    let place = page.place();
    let (frozen, window) = page.view.with(|view| (view.frozen, view.window));
    // A file that the page itself has opened has no server. A share link has the findings of its machines.
    if page.over.get() || !place.draws() {
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
        // The end of a job is shown until the user has seen it.
        (None, None) => format!("from=-{}s", LISTED_SECONDS.max(window / 1_000)),
    };
    let path = format!("api/v1/findings?source={}&{span}", String::from(js_sys::encode_uri_component(&machine)));
    Some((machine, path))
}
