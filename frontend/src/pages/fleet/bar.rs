//! The bar above the pages of many machines, and its shared parts: the navigation, and the signed-in user.

use crate::access::Access;
use crate::address::Route;
use crate::pages::alerts::bell::Bell;
use crate::pages::team::views::Views;
use crate::shortcuts::{self, Action};
use crate::state::{Dialog, FEW_MACHINES, LinkState, Page};
use crate::store::fleet::hosts::hosts;
use crate::widgets::icons::{Keyboard, Mark, Theme};
use crate::widgets::list::filter::Filter;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;

/// The title of a page of many machines, and of the fleet for that of one.
pub fn title(place: Route) -> &'static str {
    match place {
        Route::Compare => "Compare",
        Route::Runs => "Runs",
        Route::Run => "Run",
        Route::Findings => "Findings",
        Route::Alerts => "Alerts",
        Route::Machines => "Machines",
        Route::Host | Route::Fleet => "Fleet",
        Route::Team => "Members",
        Route::Keys => "Keys",
        Route::Links => "Share links",
        Route::Audit => "Audit",
        Route::Usage => "Usage",
        Route::Me => "Your account",
    }
}

/// The bar above the fleet.
#[component]
pub fn FleetBar() -> impl IntoView {
    let page = expect_context::<Page>();
    let place = Memo::new(move |_| page.place());
    let title = move || title(place.get());
    Effect::new(move || crate::browser::document().set_title(&format!("{} – Watchglass", title())));
    let word = move || match page.state.get() {
        LinkState::Connecting => "CONNECTING",
        LinkState::Live if page.player.with(Option::is_some) => "RECORDED",
        LinkState::Live => "LIVE",
        LinkState::Reconnecting => "LINK LOST",
        LinkState::Lost => "NO SERVER",
    };
    let simulated = flag(move || {
        page.fleet.track();
        page.store.read_value().hello.as_ref().is_some_and(|h| h.simulated)
    });
    // Pages with charts over time have a choice of the window.
    let timed = flag(move || match place.get() {
        Route::Compare => true,
        Route::Fleet => page.machines.get().is_some_and(|n| (2..=FEW_MACHINES).contains(&n)),
        _ => false,
    });
    view! {
        <header class="bar">
            <div class="source brand">
                <Mark/>
                <h1 class="away">{text(title)}</h1>
                <span class="source-name" aria-hidden="true">"Watchglass"</span>
                <If when=simulated>
                    <span class="simulated">"simulated"</span>
                </If>
            </div>
            <Nav/>
            <span class="stretch"></span>
            <If when=flag(move || place.get() == Route::Fleet)>
                <Finder/>
            </If>
            <If when=flag(move || place.get().draws())>
                <Views/>
            </If>
            <span class="link" role="status"><span class="dot"></span><span>{text(word)}</span><Way/></span>
            <If when=timed>
                <Windows/>
            </If>
            <span class="icons">
                <OwnIcons/>
            </span>
        </header>
    }
}

/// The transport of the page where no WebSocket passes, in a sentence; None where one does.
pub fn way(page: Page) -> Option<String> {
    let live = page.state.get() == LinkState::Live && page.player.with(Option::is_none);
    page.way.with(|way| (live && !way.is_empty()).then(|| format!("live {way}: WebSockets are blocked")))
}

/// The same in the chip; where there is little room, only how.
#[component]
pub fn Way() -> impl IntoView {
    let page = expect_context::<Page>();
    let known = Memo::new(move |_| way(page).is_some());
    view! {
        <Show when=move || known.get()>
            <small data-way=page.way>{page.way} <span class="wide">": WebSockets are blocked"</span></small>
        </Show>
    }
}

/// The buttons of each page: keys, theme, and the signed-in user.
#[component]
pub fn OwnIcons() -> impl IntoView {
    let page = expect_context::<Page>();
    view! {
        <Bell/>
        <button
            class="icon wide"
            data-do="help"
            aria-label="Keys"
            title=shortcuts::title("Keys", &[Action::Keys])
            on:click=move |_| page.dialog.set(Some(Dialog::Keys))
        >
            <Keyboard/>
        </button>
        <button
            class="icon"
            data-do="theme"
            aria-label="Theme"
            title=shortcuts::title("Theme", &[Action::Theme])
            on:click=move |_| page.toggle_theme()
        >
            <Theme/>
        </button>
        <Person/>
    }
}

/// The windows of the charts of a few machines. The page reloads, because each machine's history is requested with the
/// opening message.
#[component]
fn Windows() -> impl IntoView {
    let page = expect_context::<Page>();
    let windows = Signal::derive(move || {
        page.fleet.track();
        page.plan.track();
        page.windows().take(6).map(|window| window.name.to_string()).collect::<Vec<String>>()
    });
    let choose = move |ms: i64| {
        page.view.update(|v| v.window = ms);
        let view = page.view_now();
        let machines: Vec<String> = view.source.into_iter().chain(view.with).collect();
        page.go_to(view.place, &machines);
    };
    let button = move |name: String| {
        let Some(window) = page.windows().find(|window| window.name == name) else { return ().into_any() };
        let pressed = text(move || page.view.with(|v| v.window == window.ms).to_string());
        view! {
            <button data-do="window" data-window-choice=name.clone() aria-pressed=pressed on:click=move |_| choose(window.ms)>
                {name.clone()}
            </button>
        }
        .into_any()
    };
    view! {
        <div class="windows" role="group" aria-label="Window"><Each keys=windows row=Callback::new(button)/></div>
    }
}

/// The field that filters the fleet. Enter opens the machine when one is left.
#[component]
fn Finder() -> impl IntoView {
    let page = expect_context::<Page>();
    let open = move |()| {
        let filter = page.view.with_untracked(|v| v.find.to_lowercase());
        let all = page.store.with_value(|store| hosts(&store.index, &[]));
        let mut found = all.iter().filter(|host| !filter.is_empty() && host.fits(&filter));
        if let (Some(only), None) = (found.next(), found.next()) {
            page.go_to(None, std::slice::from_ref(&only.entry.name));
        }
    };
    view! {
        <Filter
            label="Filter machines: name, rack:r01, state:lost"
            hint="name, rack:r01, state:lost"
            value=text(move || page.view.with(|v| v.find.clone()))
            put=Callback::new(move |find| page.change(|v| v.find = find))
            enter=Callback::new(open)
        />
    }
}

/// Whether there are several machines.
fn is_several(page: Page) -> bool {
    page.machines.get().is_some_and(|n| n > 1) && !page.player.with(Option::is_some)
}

/// Whether there are pages besides those of one machine and its findings.
fn has_ways(page: Page, access: Access) -> bool {
    let is_of_runs = matches!(page.place(), Route::Runs | Route::Run);
    let runs = !page.player.with(Option::is_some) && (page.has_runs.get() || is_of_runs);
    is_several(page) || runs || (access.is_in() && access.team_here().is_some())
}

/// The links to other pages; empty with only one page.
#[component]
pub fn Nav() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let several = flag(move || is_several(page));
    let signed_in = flag(move || access.is_in() && access.team_here().is_some());
    // The link leads an admin of a single team to the machines, and others to the members.
    let people = move || if access.team().is_some() && !access.has_teams() { Route::Machines } else { Route::Team };
    // A single machine has a link to its runs once there is one, and back.
    let is_of_runs = move || matches!(page.place(), Route::Runs | Route::Run);
    let runs = flag(move || !page.player.with(Option::is_some) && (page.has_runs.get() || is_of_runs()));
    let is_of_findings = move || matches!(page.place(), Route::Findings | Route::Alerts);
    let alone = flag(move || !several.get() && !signed_in.get());
    let home = flag(move || several.get() || signed_in.get());
    let host = text(move || page.address_of(None, &[]));
    let fleet = text(move || page.address_of(Some(Route::Fleet), &[]));
    let wrong = text(move || page.address_of_finding(None));
    let jobs = text(move || page.address_of(Some(Route::Runs), &[]));
    let to = text(move || page.address_of(Some(people()), &[]));
    let mark = |here: bool| if here { "page" } else { "false" };
    view! {
        <If when=flag(move || has_ways(page, access) || is_of_findings())>
            <nav class="nav" aria-label="Pages">
                <If when=home>
                    <a href=fleet aria-current=text(move || mark(page.place() == Route::Fleet))>"Fleet"</a>
                </If>
                <If when=alone>
                    <a href=host aria-current=text(move || mark(page.place() == Route::Host))>"Machine"</a>
                </If>
                <If when=flag(move || home.get() || runs.get())>
                    <a href=jobs aria-current=text(move || mark(is_of_runs()))>"Runs"</a>
                </If>
                <a href=wrong aria-current=text(move || mark(is_of_findings()))>"Findings"</a>
                <If when=signed_in>
                    <a href=to aria-current=text(move || mark(!page.place().draws()))>"Team"</a>
                </If>
            </nav>
        </If>
    }
}

/// The signed-in user, and the sign-out.
#[component]
fn Person() -> impl IntoView {
    let access = expect_context::<Access>();
    let name = move || {
        access.session.with(|s| s.as_ref().and_then(|s| s.account.as_ref()).map(|account| account.name.clone()))
    };
    let page = expect_context::<Page>();
    let me = text(move || page.address_of(Some(Route::Me), &[]));
    let initials = move || {
        name().unwrap_or_default().chars().filter(|c| c.is_alphanumeric()).take(2).collect::<String>().to_uppercase()
    };
    let role = move || {
        access.session.with(|session| {
            let Some(session) = session else { return String::new() };
            let several = session.teams.len() > 1;
            let teams = session.teams.iter().map(|team| match several {
                true => format!("{} of {}", team.role.text(), team.name),
                false => team.role.text().to_string(),
            });
            let admin =
                session.account.as_ref().filter(|account| account.hub_admin).map(|_| "admin of this hub".to_string());
            admin.into_iter().chain(teams).collect::<Vec<_>>().join(", ")
        })
    };
    view! {
        <If when=flag(move || name().is_some())>
            <details class="person">
                <summary aria-label=text(move || {
                    format!("{}, signed in as {}", initials(), name().unwrap_or_default())
                })>{text(initials)}</summary>
                <div>
                    <b>{text(move || name().unwrap_or_default())}</b>
                    <p>{text(role)}</p>
                    <p><a href=me>"Your account"</a></p>
                    <button class="btn" data-do="sign-out" on:click=move |_| access.sign_out()>"Sign out"</button>
                </div>
            </details>
        </If>
    }
}
