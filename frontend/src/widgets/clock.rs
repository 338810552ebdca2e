//! Times for display, and the timer that updates them.

use crate::browser::{has_own_zone, is_utc, now, offset, show_utc};
use charts::axis;
use leptos::prelude::*;
use shared::unit::rough_duration;

/// The second hand of the page. Widgets find it in their context.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Changes once a second.
    pub beat: RwSignal<u32>,
    /// Offset of the server's clock against this machine's, in ms; positive when it is ahead.
    pub ahead: StoredValue<i64>,
}

impl Clock {
    /// The server's time in ms since the epoch; its readers update with it.
    pub fn now(self) -> i64 {
        self.beat.track();
        now() + self.ahead.get_value()
    }
}

/// The zone of all times on the page, and the switch between the reader's own and UTC.
#[component]
pub fn Zone(
    /// An instant of the charts, because a zone may have another offset then; now for None and before the first sample.
    #[prop(into, optional)]
    at: Option<Signal<i64>>,
    /// Whether a file is shown. The switch reloads the page, and the file would be closed, so that there is none.
    #[prop(into, optional)]
    is_file: Option<Signal<bool>>,
) -> impl IntoView {
    let shown = move || at.map(|at| at.get()).filter(|at| *at > 0).unwrap_or_else(now);
    let zone = Memo::new(move |_| axis::zone(offset(shown())));
    let words = move || format!("Times in {}", zone.get());
    // In UTC there is no other zone to choose.
    let has_choice = move || has_own_zone(shown()) && !is_file.is_some_and(|is_file| is_file.get());
    let title = if is_utc() { "Show times in your own zone" } else { "Show times in UTC" };
    view! {
        <Show when=has_choice fallback=move || view! { <span data-zone=move || zone.get()>{words}</span> }>
            <button data-do="zone" data-zone=move || zone.get() title=title on:click=move |_| show_utc(!is_utc())>{words}</button>
        </Show>
    }
}

/// Age of a time; `t` in Unix seconds.
pub fn ago(t: i64) -> String {
    match now() - t * 1_000 {
        past if past < 60_000 => "now".into(),
        past => format!("{} ago", rough_duration(past)),
    }
}

/// Remaining time until `t`, in Unix seconds.
pub fn until(t: i64) -> String {
    match t * 1_000 - now() {
        left if left <= 0 => "ended".into(),
        left => format!("in {}", rough_duration(left)),
    }
}

/// A time with its day, on this machine's clock; `t` in Unix seconds.
pub fn clock(t: i64) -> String {
    let (t, now) = (t * 1_000, now());
    let day = |t: i64| (t + offset(t)).div_euclid(86_400_000);
    let clock = axis::clock(t + offset(t), true);
    match day(now) - day(t) {
        0 => clock,
        1 => format!("yesterday {clock}"),
        _ => format!("{} {clock}", axis::date(day(t))),
    }
}
