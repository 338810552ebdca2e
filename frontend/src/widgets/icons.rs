//! The icons of buttons. The stylesheet has their colors and line widths.

use leptos::prelude::*;

/// The logo of the program.
#[component]
pub fn Mark() -> impl IntoView {
    view! {
        <svg class="mark" viewBox="0 0 20 20" aria-hidden="true">
            <circle cx="10" cy="10" r="8.25"/>
            <path d="M2.6 12.2h3.6l2-5 3 7.6 2-4.6h4.2"/>
        </svg>
    }
}

/// The mark of a section that folds.
#[component]
pub fn Triangle() -> impl IntoView {
    view! { <svg class="tri" viewBox="0 0 10 10" aria-hidden="true"><path d="M3.5 2 6.5 5l-3 3"/></svg> }
}

/// The icon of a magnifying glass.
#[component]
pub fn Glass() -> impl IntoView {
    view! { <svg viewBox="0 0 16 16"><circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/></svg> }
}

/// The icon of a clock.
#[component]
pub fn Clock() -> impl IntoView {
    view! { <svg viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.5"/><path d="M8 5v3l2 1.5"/></svg> }
}

/// The icon for recording.
#[component]
pub fn Record() -> impl IntoView {
    view! { <svg viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.5"/><circle cx="8" cy="8" r="2.5" class="fill"/></svg> }
}

/// The icon of a folder.
#[component]
pub fn Folder() -> impl IntoView {
    view! { <svg viewBox="0 0 16 16"><path d="M1.5 12.5v-9h4l1.5 2h7.5v7z"/></svg> }
}

/// The icon of a keyboard.
#[component]
pub fn Keyboard() -> impl IntoView {
    view! {
        <svg viewBox="0 0 16 16">
            <rect x="1.5" y="4" width="13" height="8.5" rx="1.5"/>
            <path d="M4 6.7h.1M6.7 6.7h.1M9.3 6.7h.1M12 6.7h.1M5 10h6"/>
        </svg>
    }
}

/// The icon for the theme: half dark, half bright.
#[component]
pub fn Theme() -> impl IntoView {
    view! {
        <svg viewBox="0 0 16 16">
            <circle cx="8" cy="8" r="5.5"/>
            <path d="M8 2.5a5.5 5.5 0 0 1 0 11z" class="fill"/>
        </svg>
    }
}

/// The icon for pause while a recording plays, else for play.
#[component]
pub fn Play(
    /// True while the recording plays.
    #[prop(into)]
    playing: Signal<bool>,
) -> impl IntoView {
    let shape = move || if playing.get() { "M4 3h3v10H4zM9 3h3v10H9z" } else { "M4 2.5 13 8l-9 5.5z" };
    view! { <svg viewBox="0 0 16 16"><path class="fill" d=shape/></svg> }
}

/// The icon of a bell.
#[component]
pub fn Bell() -> impl IntoView {
    view! { <svg viewBox="0 0 16 16"><path d="M8 2a4 4 0 0 0-4 4c0 3.6-1.5 5-1.5 5h11S12 9.6 12 6a4 4 0 0 0-4-4ZM6.7 13.2a1.4 1.4 0 0 0 2.6 0"/></svg> }
}
