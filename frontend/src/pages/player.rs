//! The bar of a recording, shown while a recording is open: play and pause, speed, position and title.

use crate::browser::{now, offset};
use crate::player::{Player, SLIDER_POSITIONS, SPEEDS};
use crate::recording;
use crate::shortcuts::{self, Action};
use crate::state::Page;
use crate::widgets::icons::Play;
use charts::axis;
use leptos::ev::MouseEvent;
use leptos::prelude::*;
use shared::unit::number;
use std::time::Duration;

/// Time between two steps of a recording that plays; ten steps a second are enough.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// The bar, while a recording is shown.
#[component]
pub fn PlayerBar() -> impl IntoView {
    let page = expect_context::<Page>();
    let before = StoredValue::new(now());
    let run = move || {
        let passed = now() - std::mem::replace(&mut *before.write_value(), now());
        if page.player.with_untracked(|p| p.as_ref().is_some_and(|p| p.playing)) {
            page.play(|p| {
                p.pass(passed as f64);
            });
        }
    };
    if let Ok(beat) = set_interval_with_handle(run, FRAME_INTERVAL) {
        on_cleanup(move || beat.clear());
    }
    let shown = Memo::new(move |_| page.player.with(Option::is_some));
    view! { <Show when=move || shown.get()><Controls/></Show> }
}

#[component]
fn Controls() -> impl IntoView {
    let page = expect_context::<Page>();
    let of = move |text: fn(&Player) -> String| {
        Memo::new(move |_| page.player.with(|p| p.as_ref().map(text).unwrap_or_default()))
    };
    let playing = Memo::new(move |_| page.player.with(|p| p.as_ref().is_some_and(|p| p.playing)));
    let (clock, position) = (of(clock), of(|p| p.position().to_string()));
    let (speed, what) = (of(|p| number(SPEEDS[p.speed]) + "×"), of(|p| p.recorded.title.clone()));
    let notes = of(|p| p.recorded.notes.join("; "));
    let place = move |event| {
        if let Ok(position) = event_target_value(&event).parse() {
            page.play(|p| p.place(position));
        }
    };
    let keys = shortcuts::title("Faster, with shift slower", &[Action::Speed(-1), Action::Speed(1)]);
    view! {
        <footer class="player" aria-label="Recording">
            <button
                class="icon"
                data-do="play"
                title=shortcuts::title("Play or pause", &[Action::Play])
                aria-label=move || if playing.get() { "Pause" } else { "Play" }
                on:click=move |_| page.play(Player::toggle)
            >
                <Play playing/>
            </button>
            <button class="speed" data-do="speed" title=keys aria-label="Speed" on:click=move |e| change_speed(page, &e)>
                {speed}
            </button>
            <input
                type="range"
                min="0"
                max=SLIDER_POSITIONS
                aria-label="Position in the recording"
                aria-valuetext=clock
                prop:value=position
                on:input=place
            />
            <time>{clock}</time>
            <span class="what">{what}</span>
            <Show when=move || notes.with(|notes| !notes.is_empty())>
                <span class="note" role="status" title=notes>{notes}</span>
            </Show>
            <Show when=move || page.over.get()>
                // The rest of a file that is still being read would come into the live data.
                <button
                    class="speed"
                    data-do="compare-file"
                    title="Compare live data with this recording, once all of it is read"
                    disabled=move || page.opening.with(Option::is_some)
                    on:click=move |_| page.compare_with_live()
                >
                    "Compare with live"
                </button>
                <button class="speed" data-do="close-file" title="Close the file and go back to the server" on:click=move |_| recording::close()>
                    "Close"
                </button>
            </Show>
        </footer>
    }
}

fn clock(p: &Player) -> String {
    axis::moment(p.t + offset(p.t))
}

/// Goes to the next speed, after the last to the first; with shift to the speed before.
fn change_speed(page: Page, event: &MouseEvent) {
    page.play(|p| match event.shift_key() {
        true => p.shift(-1),
        false if p.speed + 1 == SPEEDS.len() => p.speed = 0,
        false => p.shift(1),
    });
}
