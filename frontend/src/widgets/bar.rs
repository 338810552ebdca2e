//! The top bar: machine, live or frozen, windows, tools. The page hears its buttons.

use super::{dom, live};
use crate::page::{LinkState, Page, offset, page};
use charts::axis;
use leptos::tachys::html::InertElement;
use shared::window::Window;
use shared::wire::Source;
use web_sys::Element;

const BAR: &str = "<header class=bar>\
    <div class=source>\
        <svg class=mark viewBox='0 0 20 20' aria-hidden=true><circle cx=10 cy=10 r='8.25'/><path d='M2.6 12.2h3.6l2-5 3 7.6 2-4.6h4.2'/></svg>\
        <h1 class=away></h1>\
        <slot class=machine></slot>\
        <slot class=simulation></slot>\
        <span class=source-facts></span>\
    </div>\
    <span class=stretch></span>\
    <button class=link data-do=freeze title='Freeze or go on (space)'><span class=dot></span><span role=status></span><small></small></button>\
    <div class=windows role=group aria-label=Window><slot></slot></div>\
    <div id=tools class=tools>\
        <input id=range aria-label=Span placeholder='90s, 14:00-14:20' title='A span (key /)' autocomplete=off spellcheck=false>\
        <select id=versus aria-label='Compare with' title='Compare with (key c)'>\
            <option value=''>compare …</option>\
            <option value=before>span before</option>\
            <option value=1h>1 h earlier</option>\
            <option value=1d>a day earlier</option>\
        </select>\
        <button data-do=changed title='What changed in this span (key d)'>What changed</button>\
        <span id=wrong role=alert></span>\
    </div>\
    <span class=icons>\
        <button class='icon narrow-only' data-do=tools aria-label='Span and comparison'>\
            <svg viewBox='0 0 16 16'><circle cx=8 cy=8 r='5.5'/><path d='M8 5v3l2 1.5'/></svg>\
        </button>\
        <button class='icon wide' data-do=record aria-label='Record this span' title='Record this span to a file (r)'>\
            <svg viewBox='0 0 16 16'><circle cx=8 cy=8 r='5.5'/><circle cx=8 cy=8 r='2.5' class='fill'/></svg>\
        </button>\
        <button class='icon wide' data-do=open aria-label='Open a recording' title='Open a recording (o)'>\
            <svg viewBox='0 0 16 16'><path d='M1.5 12.5v-9h4l1.5 2h7.5v7z'/></svg>\
        </button>\
        <button class='icon wide' data-do=help aria-label=Keys title='Keys (?)'>\
            <svg viewBox='0 0 16 16'><rect x=1.5 y=4 width=13 height=8.5 rx='1.5'/><path d='M4 6.7h.1M6.7 6.7h.1M9.3 6.7h.1M12 6.7h.1M5 10h6'/></svg>\
        </button>\
        <button class=icon data-do=theme aria-label=Theme title='Theme (t)'>\
            <svg viewBox='0 0 16 16'><circle cx=8 cy=8 r='5.5'/><path d='M8 2.5a5.5 5.5 0 0 1 0 11z' class='fill'/></svg>\
        </button>\
    </span>\
</header>";

/// The bar.
pub fn bar() -> InertElement {
    live::standing(BAR, "header.bar", |bar| {
        let page = page();
        let part = |selector: &str| dom::find(bar, selector);
        machine(page, bar);
        live::text(&part(".link [role]"), move || word(page).to_string());
        live::text(&part(".link small"), move || rest(page).unwrap_or_default());
        let windows = move || {
            // The first plan is made when the server has said how long it keeps history.
            page.plan.track();
            page.player.track();
            page.windows().enumerate().collect()
        };
        live::each(&part(".windows slot"), windows, |(_, window)| window.name.to_string(), choice);
    })
}

fn choice((i, window): (usize, Window)) -> Element {
    let page = page();
    let button = live::made("<button data-do=window></button>");
    button.set_text_content(Some(window.name));
    dom::set(&button, "data-window-choice", window.name);
    dom::set(&button, "title", &format!("Key {}", (i + 1) % 10));
    live::attribute(&button, "aria-pressed", move || {
        page.view.with(|v| v.frozen.map_or(v.window, |(a, b)| b - a) == window.ms).to_string()
    });
    button
}

/// The window of a button was chosen.
pub fn choose(page: Page, button: &Element) {
    let name = button.get_attribute("data-window-choice");
    let window = page.windows().find(|window| Some(window.name) == name.as_deref());
    if let Some(window) = window {
        page.choose(window.ms);
    }
}

/// What the machine that is shown says of itself; of none its text is empty.
fn of_source(page: Page, text: impl Fn(&Source) -> String) -> String {
    page.plan.track();
    let store = page.store.borrow();
    page.view.with(|v| store.source(v.source.as_deref()).map(|s| text(&s.info)).unwrap_or_default())
}

/// Its name and what does not change about it.
fn machine(page: Page, bar: &Element) {
    let part = |selector: &str| dom::find(bar, selector);
    let name = move || Some(of_source(page, |s| s.name.clone())).filter(|name| !name.is_empty());
    live::text(&part("h1"), move || shown(page));
    live::each(&part("slot.machine"), move || vec![names(page).len() > 1], bool::to_string, choice_of_machine);
    let simulated = move || {
        page.plan.track();
        page.store.borrow().hello.as_ref().is_some_and(|h| h.simulated)
    };
    live::when(&part("slot.simulation"), simulated, || live::made("<span class=simulated>simulated</span>"));
    let all = |s: &Source| s.facts.iter().map(|(k, v)| format!("{k}: {v}")).collect::<Vec<_>>().join("\n");
    live::attribute(&part(".source"), "title", move || of_source(page, all));
    // A bare number says nothing without its name.
    let fact = |(k, v): &(String, String)| match v.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("{v} {k}"),
        false => v.clone(),
    };
    let facts =
        move |s: &Source| s.facts.iter().filter(|(_, v)| !v.is_empty()).map(fact).collect::<Vec<_>>().join(", ");
    live::text(&part(".source-facts"), move || of_source(page, facts));
    live::follow(move || {
        if let Some(name) = name() {
            dom::document().set_title(&format!("{name} – Watchglass"));
        }
    });
}

/// Its name, or ours while there is none.
fn shown(page: Page) -> String {
    Some(of_source(page, |s| s.name.clone())).filter(|name| !name.is_empty()).unwrap_or_else(|| "Watchglass".into())
}

/// Of all machines.
fn names(page: Page) -> Vec<String> {
    page.plan.track();
    page.store.borrow().sources.values().map(|s| s.info.name.clone()).collect()
}

/// The name of the machine, or the choice among several. It stays when another one comes, and so do the keys in it.
fn choice_of_machine(several: bool) -> Element {
    let page = page();
    if !several {
        let name = live::made("<span class=source-name aria-hidden=true></span>");
        live::text(&name, move || shown(page));
        return name;
    }
    let select = live::made("<select id=machine class=source-name aria-label=Machine></select>");
    let (place, mut before) = (select.clone(), None);
    live::follow(move || {
        let now = Some((shown(page), names(page)));
        let Some((shown, names)) = now.as_ref().filter(|_| now != before) else { return };
        place.set_text_content(None);
        for name in names {
            // Without a value of its own an option's text is its value.
            let option = dom::add(&place, "option", "", name);
            if name == shown {
                dom::set(&option, "selected", "");
            }
        }
        before = now;
    });
    select
}

/// Live, or frozen.
fn word(page: Page) -> &'static str {
    match (page.state.get(), page.view.with(|v| v.frozen)) {
        (LinkState::Reconnecting, _) => "RECONNECTING",
        (LinkState::Lost, _) => "NO SERVER",
        (_, Some(_)) => "FROZEN",
        (LinkState::Connecting, None) => "CONNECTING",
        (LinkState::Live, None) if page.player.with(Option::is_some) => "RECORDED",
        (LinkState::Live, None) if page.silent.get() => "SILENT",
        (LinkState::Live, None) => "LIVE",
    }
}

/// What is shown of a frozen page.
fn rest(page: Page) -> Option<String> {
    let (from, to) = page.view.with(|v| v.frozen)?;
    page.beat.track();
    let (a, b, now) = (from + offset(from), to + offset(to), page.server_now());
    let day = |local: i64| local.div_euclid(86_400_000);
    let date = if day(a) == day(now + offset(now)) { String::new() } else { axis::date(day(a)) + " " };
    let new = now - to;
    let since = if new < 1000 { String::new() } else { format!(", {} new", axis::duration(new)) };
    Some(format!("{date}{}–{}{since}", axis::clock(a, true), axis::clock(b, true)))
}
