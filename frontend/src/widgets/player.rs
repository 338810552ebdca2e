//! The bar of a recording: what it is, play and pause, speed, where it stands. There while one is shown.

use super::live::{when, words};
use crate::page::{now, offset, page};
use crate::player::{POSITIONS, SPEEDS};
use charts::axis;
use leptos::ev;
use leptos::prelude::*;
use shared::unit::number;
use std::cell::Cell;
use std::time::Duration;

/// Pictures a second while it runs are enough at ten.
const BEAT: Duration = Duration::from_millis(100);

/// The bar.
#[component]
pub fn PlayerBar() -> impl IntoView {
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
    let shown = Memo::new(move |_| page.player.with(Option::is_some));
    let title =
        Memo::new(move |_| page.player.with(|p| p.as_ref().map(|p| p.recorded.title.clone()).unwrap_or_default()));
    let notes =
        Memo::new(move |_| page.player.with(|p| p.as_ref().map(|p| p.recorded.notes.join("; ")).unwrap_or_default()));
    let playing = Memo::new(move |_| page.player.with(|p| p.as_ref().is_some_and(|p| p.playing)));
    let speed = Memo::new(move |_| page.player.with(|p| p.as_ref().map_or(1, |p| p.speed)));
    let position = Memo::new(move |_| page.player.with(|p| p.as_ref().map_or(0, |p| p.position())));
    let clock = Memo::new(move |_| {
        page.player.with(|p| {
            let Some(p) = p else { return String::new() };
            let local = p.t + offset(p.t);
            format!("{} {}", axis::date(local.div_euclid(86_400_000)), axis::clock(local, true))
        })
    });
    let slide = move |event: ev::Event| {
        if let Ok(position) = event_target_value(&event).parse() {
            page.play(|p| p.place(position));
        }
    };
    view! {
        {when(move || shown.get(), move || view! {
            <footer class="player" aria-label="Recording">
                <button
                    class="icon"
                    data-do="play"
                    aria-label=words(move || if playing.get() { "Pause" } else { "Play" }.to_string())
                    title="Play or pause (space)"
                    on:click=move |_| page.play(|p| p.toggle())
                >
                    <svg viewBox="0 0 16 16"><path class="fill" d=words(move || if playing.get() { "M4 3h3v10H4zM9 3h3v10H9z" } else { "M4 2.5 13 8l-9 5.5z" }.to_string())/></svg>
                </button>
                <button class="speed" title="Faster (shift: slower); keys < and >" aria-label="Speed" on:click=move |event| {
                    let slower = event.shift_key();
                    page.play(|p| if slower { p.shift(-1) } else if p.speed + 1 == SPEEDS.len() { p.speed = 0 } else { p.shift(1) });
                }>
                    {words(move || format!("{}×", number(SPEEDS[speed.get()])))}
                </button>
                <input
                    type="range"
                    min="0"
                    max=POSITIONS.to_string()
                    aria-label="Where the recording stands"
                    aria-valuetext=words(move || clock.get())
                    prop:value=move || position.get().to_string()
                    on:input=slide
                />
                <time>{words(move || clock.get())}</time>
                <span class="what">{words(move || title.get())}</span>
                {when(move || notes.with(|n| !n.is_empty()), move || view! {
                    <span class="note" role="status" title=words(move || notes.get())>{words(move || notes.get())}</span>
                }.into_any())}
            </footer>
        }.into_any())}
    }
}
