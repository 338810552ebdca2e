//! The top bar: machine, state of the link, windows, tools.

use super::fleet::bar::{Nav, OwnIcons, Way, way};
use super::team::views::Views;
use crate::browser::{document, offset};
use crate::range;
use crate::recording;
use crate::shortcuts::{self, Action};
use crate::state::{Dialog, LinkState, Page};
use crate::tools::span::SpanTools;
use crate::widgets::icons::{Clock, Folder, Glass, Mark, Record, Triangle};
use charts::axis;
use leptos::prelude::*;
use shared::connection_state::ConnectionState;
use shared::unit::rough_duration;
use shared::window::Window;
use shared::wire::Source;
use viewer::flow::Flow;

/// The bar above the page.
#[component]
pub fn Bar() -> impl IntoView {
    let page = expect_context::<Page>();
    let word = Memo::new(move |_| link_word(page));
    view! {
        <header class="bar">
            <Machine/>
            <Nav/>
            <span class="stretch"></span>
            <button
                class="link"
                data-do="freeze"
                title=move || way(page).unwrap_or_else(|| shortcuts::title("Pause or resume", &[Action::Freeze]))
                on:click=move |_| page.toggle_frozen()
            >
                <span class="dot"></span>
                <span role="status">{word}</span>
                <small>{move || rest(page)}</small>
                <Way/>
            </button>
            <button
                class="finder"
                data-do="find"
                title=shortcuts::title("Find", &[Action::Find])
                on:click=move |_| page.dialog.set(Some(Dialog::Find))
            >
                <Glass/>
                <span>"Find a chart, a process, a time"</span>
                <kbd>"/"</kbd>
            </button>
            <Views/>
            <Windows/>
            <SpanTools/>
            <Icons/>
        </header>
    }
}

/// The buttons that show an icon.
#[component]
fn Icons() -> impl IntoView {
    let page = expect_context::<Page>();
    let window = move || range::name(page.view.with(|v| v.frozen.map_or(v.window, |(a, b)| b - a)));
    view! {
        <span class="icons">
            <button
                class="icon"
                data-do="tools"
                aria-label=move || format!("{}: span, comparison, what changed", window())
                title="A span, a comparison, what changed"
                aria-expanded=move || page.tools.get().to_string()
                on:click=move |_| page.tools.update(|open| *open = !*open)
            >
                <Clock/>
                <small>{window}</small>
            </button>
            <button
                class="icon wide"
                data-do="record"
                aria-label="Record this span"
                title=shortcuts::title("Record this span to a file", &[Action::Record])
                on:click=move |_| recording::save(page)
            >
                <Record/>
            </button>
            <button
                class="icon wide"
                data-do="open"
                aria-label="Open a recording"
                title=shortcuts::title("Open a recording", &[Action::Open])
                on:click=move |_| recording::choose(page)
            >
                <Folder/>
            </button>
            <OwnIcons/>
        </span>
    }
}

/// The buttons for the windows.
#[component]
fn Windows() -> impl IntoView {
    let page = expect_context::<Page>();
    let windows = move || {
        // The first plan is made when the server has sent its retention.
        page.plan.track();
        page.player.track();
        page.windows().enumerate().collect::<Vec<_>>()
    };
    let shown = Memo::new(move |_| page.view.with(|v| v.frozen.map_or(v.window, |(a, b)| b - a)));
    let choice = move |(i, window): (usize, Window)| {
        view! {
            <button
                data-do="window"
                data-window-choice=window.name
                title=shortcuts::title("Window", &[Action::Window(i)])
                aria-pressed=move || (shown.get() == window.ms).to_string()
                on:click=move |_| page.choose(window.ms)
            >
                {window.name}
            </button>
        }
    };
    view! {
        <div class="windows" role="group" aria-label="Window">
            <For each=windows key=|(_, window)| window.name children=choice/>
        </div>
    }
}

/// A text about the machine that is shown; empty while there is no machine.
fn of_source(page: Page, text: impl Fn(&Source) -> String) -> String {
    page.plan.track();
    let store = page.store.read_value();
    page.view.with(|v| store.source(v.source.as_deref()).map(|s| text(&s.info)).unwrap_or_default())
}

/// The facts of a machine in one line. A value that is a bare number gets its name, which would else be unclear.
fn facts(source: &Source) -> String {
    let fact = |(k, v): &(String, String)| match v.bytes().all(|b| b.is_ascii_digit()) {
        // A configured name and a different host name are both shown.
        _ if k == "host.name" => format!("host {v}"),
        true => format!("{v} {k}"),
        false => v.clone(),
    };
    // The name of the host is beside it already.
    source.facts.iter().filter(|(_, v)| !v.is_empty() && *v != source.name).map(fact).collect::<Vec<_>>().join(", ")
}

/// The name of the machine, or the choice among several machines, and the machine's facts.
#[component]
fn Machine() -> impl IntoView {
    let page = expect_context::<Page>();
    let name = Memo::new(move |_| of_source(page, |s| s.name.clone()));
    let shown = move || Some(name.get()).filter(|name| !name.is_empty()).unwrap_or_else(|| "Watchglass".into());
    let several = Memo::new(move |_| {
        page.plan.track();
        page.store.read_value().sources.len() > 1
    });
    let simulated = Memo::new(move |_| {
        page.plan.track();
        page.store.read_value().hello.as_ref().is_some_and(|h| h.simulated)
    });
    Effect::new(move || {
        if name.with(|name| !name.is_empty()) {
            document().set_title(&format!("{} – Watchglass", name.get()));
        }
    });
    let all = |s: &Source| s.facts.iter().map(|(k, v)| format!("{k}: {v}")).collect::<Vec<_>>().join("\n");
    view! {
        <div class="source" title=move || of_source(page, all)>
            <Mark/>
            <h1 class="away">{shown}</h1>
            <Show
                when=move || several.get()
                fallback=move || view! { <span class="source-name" aria-hidden="true">{shown}</span> }
            >
                <button
                    class="source-name"
                    data-do="machines"
                    aria-label=move || format!("{}: choose a machine", shown())
                    aria-haspopup="dialog"
                    on:click=move |_| page.dialog.set(Some(Dialog::Find))
                >
                    {shown}
                    <Triangle/>
                </button>
            </Show>
            <Show when=move || simulated.get()>
                <span class="simulated">"simulated"</span>
            </Show>
            <span class="source-facts">{move || of_source(page, facts)}</span>
        </div>
    }
}

/// The state of the link in one word.
fn link_word(page: Page) -> &'static str {
    match (page.state.get(), page.view.with(|v| v.frozen)) {
        (LinkState::Reconnecting, _) => "RECONNECTING",
        (LinkState::Lost, _) => "NO SERVER",
        (_, Some(_)) => "FROZEN",
        (LinkState::Connecting, None) => "CONNECTING",
        (LinkState::Live, None) if page.player.with(Option::is_some) => "RECORDED",
        (LinkState::Live, None) => match (page.flow.get(), page.connection_state()) {
            (Flow::Live, _) => "LIVE",
            (Flow::Loading, _) => "LOADING",
            (Flow::Behind, _) => "BEHIND",
            (Flow::Silent, Some((ConnectionState::Unreachable, _))) => "LOST",
            (Flow::Silent, Some((ConnectionState::Stopped(_), _))) => "STOPPED",
            (Flow::Silent, Some((ConnectionState::Refused(_), _))) => "REFUSED",
            (Flow::Silent, Some((ConnectionState::Ended, _))) => "ENDED",
            (Flow::Silent, _) => "SILENT",
        },
    }
}

/// For a frozen page: the span that is shown, and how much newer data there are. None while the page is live.
fn rest(page: Page) -> Option<String> {
    let (from, to) = page.view.with(|v| v.frozen)?;
    page.beat.track();
    let (a, b, now) = (from + offset(from), to + offset(to), page.server_now());
    let day = |local: i64| local.div_euclid(86_400_000);
    let date = if day(a) == day(now + offset(now)) { String::new() } else { axis::date(day(a)) + " " };
    let new = now - to;
    let since = if new < 1000 { String::new() } else { format!(", {} new", rough_duration(new)) };
    Some(format!("{date}{}–{}{since}", axis::clock(a, true), axis::clock(b, true)))
}
