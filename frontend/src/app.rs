//! The root of the page. It creates the shared state, then the parts that follow this state (server, canvases, window),
//! then the elements in their order.

use crate::access::{Access, Gate};
use crate::address::{Route, Tone};
use crate::browser::{self, document, preferred, window};
use crate::gestures::roving;
use crate::keys;
use crate::link::Link;
use crate::pages;
use crate::pages::alerts::bell::Announced;
use crate::pages::alerts::follow as alerts;
use crate::pages::banner::{Banner, OpeningBar};
use crate::pages::bar::Bar;
use crate::pages::cells;
use crate::pages::findings::follow as findings;
use crate::pages::findings::heard::Heard;
use crate::pages::fleet::bar::title;
use crate::pages::notes;
use crate::pages::overview::Overview;
use crate::pages::player::PlayerBar;
use crate::pages::team::gate::{AgainDialog, Ask, Stripes};
use crate::panels::board::Board;
use crate::panels::theme::FORCED_COLORS;
use crate::recording;
use crate::state::{Dialog, LinkState, Page};
use crate::tools::changed::Changed;
use crate::tools::{self, Tool, menu, take};
use crate::widgets::clock::{Clock, Zone};
use crate::widgets::modal::Modal;
use crate::widgets::tooltip::{Said, Tooltip};
use leptos::ev;
use leptos::prelude::*;
use viewer::flow::Flow;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    charts::axis::use_twelve_hours(crate::browser::has_twelve_hours());
    let page = Page::from_address();
    let access = Access::start(page);
    let board = Board::start(page);
    let link = Link::start(page);
    provide_context(page);
    provide_context(board);
    provide_context(access);
    provide_context(Clock { beat: page.beat, ahead: page.ahead });
    mark(page);
    keys::listen(board);
    menu::listen(page);
    roving::start(board);
    recording::listen(page);
    cells::follow(page);
    findings::follow(page, access);
    alerts::follow(page, access);
    notes::follow(page, access);
    follow_window(board);
    let arrived = window_event_listener(ev::popstate, move |_| page.arrive());
    on_cleanup(move || arrived.remove());
    watch_sight(link);
    let place = Memo::new(move |_| (access.gate.get() == Gate::Open).then(|| page.place()));
    Effect::new(move |before: Option<Option<Route>>| {
        let now = place.get();
        lead_past_bar(now == Some(Route::Host));
        // Screen readers announce a page that is loaded, but not one that replaces it.
        if let (Some(Some(before)), Some(now)) = (before, now)
            && before != now
        {
            board.said.set(if now == Route::Host { page.machine() } else { title(now).to_string() });
        }
        now
    });
    // The dialog stays once it has been opened.
    let writes =
        Memo::new(move |before: Option<&bool>| before.is_some_and(|before| *before) || page.note.with(Option::is_some));
    view! {
        {move || page_of(place.get())}
        <Show when=move || !matches!(place.get(), None | Some(Route::Host | Route::Fleet))>
            <footer class="foot alone"><Zone/></footer>
        </Show>
        <PlayerBar/>
        <Banner/>
        <OpeningBar/>
        <Tooltip tip=board.tip/>
        <Said said=board.said/>
        <Heard/>
        <Announced/>
        <Dialogs/>
        {move || writes.get().then(|| pages::note_dialog(()))}
        <AgainDialog/>
        <aside class="away" aria-label="How to read charts by keys">
            <p id="how">"Left and right move between values, up and down between charts, M opens the menu, question mark lists all keys."</p>
        </aside>
        <Changed/>
    }
}

/// The view between the bar and the bottom of the window: the page of an address, or the gate while it is shut.
fn page_of(place: Option<Route>) -> AnyView {
    match place {
        None => pages::gate(Ask::Page),
        Some(Route::Host) => view! { <Bar/> <Stripes/> <Overview/> }.into_any(),
        Some(route @ (Route::Fleet | Route::Compare)) => pages::fleet(route),
        Some(route @ (Route::Runs | Route::Run)) => pages::runs(route),
        Some(Route::Alerts) => pages::alerts(()),
        Some(Route::Findings) => pages::findings(()),
        Some(route) => pages::team(route),
    }
}

/// The one dialog of the page, with its content.
#[component]
fn Dialogs() -> impl IntoView {
    let board = expect_context::<Board>();
    let page = board.page;
    let act = Callback::new(move |action| {
        let _ = keys::act(board, action, false);
    });
    let dialog = move || {
        page.dialog.get().map(|dialog| match dialog {
            Dialog::Find => pages::finder(act),
            other => tools::menus(Tool::Dialog(other)),
        })
    };
    let title = Signal::derive(move || {
        page.dialog.get().map(|dialog| match dialog {
            Dialog::Find => "Find".to_string(),
            Dialog::Layouts => "Layouts".to_string(),
            Dialog::Keys => "Keys".to_string(),
            Dialog::Table(id) | Dialog::About(id) => page.title_of(&id).unwrap_or_default(),
            Dialog::AboutSection(id) => page.title_of_section(&id).unwrap_or_default(),
        })
    });
    view! { <Modal title closed=Callback::new(move |()| page.dialog.set(None))>{dialog}</Modal> }
}

/// Makes the first link of the page skip the bar: to the charts of a machine, else to the content of the page.
fn lead_past_bar(to_charts: bool) {
    let Ok(Some(link)) = document().query_selector(".skip") else { return };
    let (to, words) = if to_charts { ("#charts", "Skip to the charts") } else { ("#page", "Skip to the page") };
    browser::set(&link, "href", to);
    link.set_text_content(Some(words));
}

/// Writes the state of the link and the theme to the root element, for the stylesheet, tests and the scripts of users.
fn mark(page: Page) {
    let Some(root) = document().document_element() else { return };
    let link = Memo::new(move |_| {
        let frozen = page.view.with(|v| v.frozen.is_some());
        match page.state.get() {
            LinkState::Connecting => "connecting",
            LinkState::Live if frozen => "frozen",
            LinkState::Live if page.player.with(Option::is_some) => "recorded",
            LinkState::Live => match page.flow.get() {
                Flow::Loading => "loading",
                Flow::Live => "live",
                Flow::Behind => "behind",
                Flow::Silent => "silent",
            },
            LinkState::Reconnecting => "reconnecting",
            LinkState::Lost => "lost",
        }
    });
    let element = root.clone();
    Effect::new(move || browser::set(&element, "data-link", link.get()));
    let element = root.clone();
    Effect::new(move || browser::set(&element, "data-history", if page.loading.get() { "loading" } else { "" }));
    let element = root.clone();
    Effect::new(move || {
        let view = page.view.with(|v| match (v.compact, v.kernel.is_some()) {
            (false, _) => "",
            (true, false) => "compact",
            (true, true) => "compact kernel",
        });
        browser::set(&element, "data-view", view);
    });
    Effect::new(move || {
        browser::set(&root, "data-theme", page.tone.get().name());
        page.redraw();
    });
}

/// Follows the window: its size, fonts that were loaded, and printing.
fn follow_window(board: Board) {
    let resize = window_event_listener(ev::resize, move |_| board.resized());
    let print = |board: Board, paper: bool| move |_| self::print(board, paper);
    let before = window_event_listener_untyped("beforeprint", print(board, true));
    let after = window_event_listener_untyped("afterprint", print(board, false));
    on_cleanup(move || [resize, before, after].into_iter().for_each(|handle| handle.remove()));
    let colors = Closure::<dyn FnMut()>::new(move || board.resized());
    let forced = window().match_media(FORCED_COLORS).ok().flatten();
    // The browser always accepts a listener.
    let _ = forced.map(|query| query.add_event_listener_with_callback("change", colors.as_ref().unchecked_ref()));
    // It is needed as long as the page exists.
    colors.forget();
    let fonts = Closure::<dyn FnMut()>::new(move || board.retype());
    // The browser always accepts a listener.
    let _ = document().fonts().add_event_listener_with_callback("loadingdone", fonts.as_ref().unchecked_ref());
    // The closure is needed as long as the page exists.
    fonts.forget();
}

/// Prepares the page for paper, or for the screen again. Paper is always bright, has its own width, and names the
/// machine and the span.
fn print(board: Board, paper: bool) {
    let page = board.page;
    let own = page.view.with_untracked(|v| v.theme).unwrap_or_else(preferred);
    let tone = if paper { Tone::Light } else { own };
    page.tone.set(tone);
    // The printer takes its picture before effects run, so the theme is set here at once.
    if let Some(root) = document().document_element() {
        browser::set(&root, "data-theme", tone.name());
    }
    if let Some(body) = document().body() {
        // The attribute's name is valid, so this cannot fail.
        let _ = if paper {
            body.set_attribute("data-paper", &take::title(page))
        } else {
            body.remove_attribute("data-paper")
        };
    }
    board.print(paper);
}

/// Tells the link when the page is hidden, by the tab or by a frame around it. `visibilitychange` does not notice a
/// covered or collapsed frame.
fn watch_sight(link: Link) {
    let (tab, frame) = (StoredValue::new(true), StoredValue::new(true));
    let seen = move || link.set_hidden(!(tab.get_value() && frame.get_value()));
    let changed = Closure::<dyn FnMut()>::new(move || {
        tab.set_value(!document().hidden());
        seen();
    });
    // The browser always accepts a listener.
    let _ = document().add_event_listener_with_callback("visibilitychange", changed.as_ref().unchecked_ref());
    let crossing = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
        let last = entries.get(entries.length().saturating_sub(1));
        if let Ok(entry) = last.dyn_into::<web_sys::IntersectionObserverEntry>() {
            frame.set_value(entry.is_intersecting());
            seen();
        }
    });
    let observer = web_sys::IntersectionObserver::new(crossing.as_ref().unchecked_ref());
    if let (Ok(observer), Some(root)) = (observer, window().document().and_then(|d| d.document_element())) {
        observer.observe(&root);
    }
    // Both closures are needed as long as the page exists.
    changed.forget();
    crossing.forget();
}
