//! The bar of a recording: what it is, play and pause, speed, where it stands. There while one is shown.

use super::{dom, live};
use crate::page::{Page, now, offset, page};
use crate::player::{POSITIONS, Player, SPEEDS};
use charts::axis;
use leptos::prelude::*;
use leptos::tachys::html::InertElement;
use shared::unit::number;
use std::cell::Cell;
use std::time::Duration;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlInputElement};

/// Pictures a second while it runs are enough at ten.
const BEAT: Duration = Duration::from_millis(100);

const BAR: &str = "<footer class=player aria-label=Recording>\
    <button class=icon data-do=play title='Play or pause (space)'><svg viewBox='0 0 16 16'><path class='fill'/></svg></button>\
    <button class=speed data-do=speed title='Faster (shift: slower); keys &lt; and &gt;' aria-label=Speed></button>\
    <input type=range min=0 aria-label='Where the recording stands'>\
    <time></time>\
    <span class=what></span>\
    <slot></slot>\
</footer>";

/// Its place.
pub fn player_bar() -> InertElement {
    live::standing("<slot id=player></slot>", "#player", |slot| {
        let page = page();
        let before = Cell::new(now());
        set_interval(
            move || {
                let passed = now() - before.replace(now());
                if page.player.with_untracked(|p| p.as_ref().is_some_and(|p| p.playing)) {
                    page.play(|p| {
                        p.pass(passed as f64);
                    });
                }
            },
            BEAT,
        );
        live::when(slot, move || page.player.with(Option::is_some), bar);
    })
}

fn bar() -> Element {
    let (page, bar) = (page(), live::made(BAR));
    let part = |selector: &str| dom::find(&bar, selector);
    let of = |text: fn(&Player) -> String| move || self::of(page, text);
    live::attribute(&part("[data-do=play]"), "aria-label", of(|p| if p.playing { "Pause" } else { "Play" }.into()));
    let shape: fn(&Player) -> String =
        |p| if p.playing { "M4 3h3v10H4zM9 3h3v10H9z" } else { "M4 2.5 13 8l-9 5.5z" }.into();
    live::attribute(&part("path"), "d", of(shape));
    live::text(&part(".speed"), of(|p| number(SPEEDS[p.speed]) + "×"));
    let slider: HtmlInputElement = part("input").unchecked_into();
    slider.set_max(&POSITIONS.to_string());
    live::attribute(&slider, "aria-valuetext", of(clock));
    live::text(&part("time"), of(clock));
    live::text(&part(".what"), of(|p| p.recorded.title.clone()));
    live::when(
        &part("slot"),
        move || !notes(page).is_empty(),
        || {
            let note = live::made("<span class=note role=status></span>");
            let page = crate::page::page();
            live::attribute(&note, "title", move || notes(page));
            live::text(&note, move || notes(page));
            note
        },
    );
    let shown = slider.clone();
    live::follow(move || shown.set_value(&self::of(page, |p| p.position().to_string())));
    let place = slider.clone();
    live::hear(&slider, "input", move |_| {
        if let Ok(position) = place.value().parse() {
            page.play(|p| p.place(position));
        }
    });
    bar
}

/// What the clock of the recording says, if one is shown.
fn of(page: Page, text: fn(&Player) -> String) -> String {
    page.player.with(|p| p.as_ref().map(text).unwrap_or_default())
}

fn notes(page: Page) -> String {
    of(page, |p| p.recorded.notes.join("; "))
}

fn clock(p: &Player) -> String {
    let local = p.t + offset(p.t);
    format!("{} {}", axis::date(local.div_euclid(86_400_000)), axis::clock(local, true))
}

/// The next speed, or (`slower`) the one before; after the last the first.
pub fn change_speed(page: Page, slower: bool) {
    page.play(|p| match slower {
        true => p.shift(-1),
        false if p.speed + 1 == SPEEDS.len() => p.speed = 0,
        false => p.shift(1),
    });
}
