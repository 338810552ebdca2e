//! The common frame of the team pages: their navigation, and the choice of a team where there are several.

use crate::access::Access;
use crate::address::Route;
use crate::state::Page;
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::role::Role;

/// A page: its label, and the least role that may view it.
type Way = (Route, &'static str, Role);

/// The pages in their groups.
const WAYS: [(&str, &[Way]); 4] = [
    (
        "Team",
        &[
            (Route::Team, "Members", Role::Viewer),
            (Route::Usage, "Usage", Role::Member),
            (Route::Audit, "Audit", Role::Admin),
        ],
    ),
    ("Machines", &[(Route::Machines, "Machines", Role::Admin), (Route::Keys, "Keys", Role::Admin)]),
    ("Outside", &[(Route::Links, "Share links", Role::Member)]),
    ("You", &[(Route::Me, "Your account", Role::Viewer)]),
];

/// The pages that this reader may view.
pub fn ways(access: Access) -> Vec<(Route, &'static str)> {
    let role = access.team_here().map(|team| team.role);
    let may = |(route, _, least): &&Way| access.is_in() && (*route == Route::Me || role >= Some(*least));
    WAYS.iter().flat_map(|(_, ways)| ways.iter().filter(may)).map(|(route, words, _)| (*route, *words)).collect()
}

/// The navigation at the side, and the page beside it.
#[component]
pub fn Frame(
    /// The page.
    children: Children,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let group = move |(title, ways): (&'static str, &'static [Way])| {
        let may = move |least: Role| access.team_here().is_some_and(|team| team.role >= least);
        let way = move |(route, words, least): Way| {
            let to = text(move || page.address_of(Some(route), &[]));
            let current = text(move || if page.place() == route { "page" } else { "false" });
            view! {
                <If when=flag(move || may(least) || (route == Route::Me && page.accounts.get()))>
                    <a href=to aria-current=current>{words}</a>
                </If>
            }
        };
        let is_own = move |route: Route| route == Route::Me && page.accounts.get();
        let any = flag(move || ways.iter().any(|(route, _, least)| is_own(*route) || may(*least)));
        view! {
            <If when=any>
                <p>{title}</p>
                {ways.iter().map(|known| way(*known)).collect_view()}
            </If>
        }
    };
    let teams = move || {
        let here = access.team_here().map(|team| team.id);
        let all = access.session.with(|s| s.as_ref().map(|s| s.teams.clone()).unwrap_or_default());
        all.into_iter()
            .map(|team| {
                let chosen = here.as_ref() == Some(&team.id);
                view! { <option value=team.id selected=chosen>{team.name}</option> }
            })
            .collect_view()
    };
    let choose = move |event| page.step(|v| v.team = Some(event_target_value(&event)));
    view! {
        <main id="page" class="people">
            <nav class="ways" aria-label="Pages of the team">
                <If when=flag(move || access.has_teams())>
                    <label class="team">
                        <span>"Team"</span>
                        <select name="team" on:change=choose>{teams}</select>
                    </label>
                </If>
                {WAYS.into_iter().map(group).collect_view()}
            </nav>
            <div class="sheets">{children()}</div>
        </main>
    }
}

/// A card with a list or a text.
#[component]
pub fn Card(
    /// Its title.
    title: &'static str,
    /// Text after the title.
    #[prop(into, optional)]
    note: Signal<String>,
    /// Content at the right of the heading.
    #[prop(optional, into)]
    end: ViewFn,
    /// The error; empty without one.
    #[prop(into, optional)]
    wrong: Signal<String>,
    /// Its content.
    children: Children,
) -> impl IntoView {
    view! {
        <section class="panel flush" aria-label=title>
            <header>
                <h2>{title}</h2>
                <span class="u">{note}</span>
                <span class="end">{end.run()}</span>
            </header>
            <p class="wrong" role="alert">{wrong}</p>
            {children()}
        </section>
    }
}
