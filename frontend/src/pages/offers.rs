//! Results of the search beside those of the machine: training jobs, and pages of settings.

use super::runs::parts::listed;
use super::team::frame::ways;
use crate::access::Access;
use crate::address::Route;
use crate::fetch;
use crate::shortcuts::Action;
use crate::state::Page;
use crate::tools::find::{Find, Offer};
use leptos::prelude::*;
use viewer::runs::Listed;

/// Most training jobs that are searched, the newest.
const MAX_RUNS: usize = 200;

/// The content of the dialog of the search. `act` carries out the action of a key.
pub fn finder(act: Callback<Action>) -> AnyView {
    let (page, access) = (expect_context::<Page>(), expect_context::<Access>());
    view! { <Find act offered=offers(page, access)/> }.into_any()
}

/// All offers: the settings at once, the training jobs when the server has sent them. Without a server, and for readers
/// of a share link, there are none.
fn offers(page: Page, access: Access) -> RwSignal<Vec<Offer>> {
    let is_shared = page.view.with_untracked(|view| view.share.is_some());
    if page.is_recorded() || page.over.get_untracked() || is_shared {
        return RwSignal::new(Vec::new());
    }
    let offered = RwSignal::new(untrack(|| settings(page, access)));
    fetch::ask("GET", &format!("api/v1/runs?limit={MAX_RUNS}"), None, move |answer| {
        if let Ok(runs) = answer.read_by(listed) {
            // The dialog may be closed by now.
            let _ = offered.try_update(|all| all.extend(runs.iter().map(|run| of_run(page, run))));
        }
    });
    offered
}

/// A training job, found by name, project, group, user, tags and state.
fn of_run(page: Page, run: &Listed) -> Offer {
    let tags = run.tags.iter().map(|(name, value)| format!("{name}:{value}"));
    let names = [&run.id, &run.project, &run.group, &run.user, &run.sentence].into_iter().cloned();
    Offer {
        kind: "run",
        title: run.name.clone(),
        detail: run.sentence.clone(),
        others: names.chain(tags).collect::<Vec<_>>().join(" "),
        address: page.address_of_runs(std::slice::from_ref(&run.id)),
    }
}

/// Search words of a page besides its name.
fn others(route: Route) -> &'static str {
    match route {
        Route::Team => "settings, people, users, invite, roles, team",
        Route::Usage => "settings, GPU-hours, idle, energy, costs, money, storage, queries, viewers",
        Route::Audit => "settings, log, changes",
        Route::Machines => "settings, agents, add a machine, join, rename, labels",
        Route::Keys => "settings, API keys, tokens, service accounts",
        Route::Links => "settings, share, public, guests",
        Route::Me => "settings, profile, password, sessions, sign out, name",
        _ => "settings",
    }
}

/// The pages of the team and of the account that the reader may view.
fn settings(page: Page, access: Access) -> Vec<Offer> {
    let offer = |(route, words): (Route, &str)| Offer {
        kind: "settings",
        title: words.into(),
        detail: String::new(),
        others: others(route).into(),
        address: page.address_of(Some(route), &[]),
    };
    ways(access).into_iter().map(offer).collect()
}
