//! Ticked rows of a list, and the link that compares them.

use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;

/// Ticked ids, in the order of their ticks; copies share the same signal.
#[derive(Clone, Copy)]
pub struct Ticks(pub RwSignal<Vec<String>>);

impl Ticks {
    /// Ticks a row, or removes its tick.
    pub fn toggle(self, id: String) {
        self.0.update(|chosen| match chosen.iter().position(|known| *known == id) {
            Some(at) => drop(chosen.remove(at)),
            None => chosen.push(id),
        });
    }

    /// Whether a row is ticked.
    pub fn has(self, id: &str) -> bool {
        self.0.with(|chosen| chosen.iter().any(|known| known == id))
    }
}

/// The ticked rows, and the link that compares them; empty without ticks.
#[component]
pub fn Ticked(
    /// The ticks.
    ticks: Ticks,
    /// The most that can be compared.
    most: usize,
    /// Their number, in words: `2 runs`.
    #[prop(into)]
    count: Signal<String>,
    /// Their names.
    #[prop(into)]
    names: Signal<String>,
    /// Address of the comparison.
    #[prop(into)]
    to: Signal<String>,
) -> impl IntoView {
    let n = move || ticks.0.with(Vec::len);
    let why = text(move || match n() {
        1 => "select another run to compare".to_string(),
        n if n > most => format!("at most {most} can be compared"),
        _ => String::new(),
    });
    view! {
        <If when=flag(move || n() > 0)>
            <div class="ticked" role="status">
                <b>{count}</b>
                <span class="source-name u">{names}</span>
                <If when=flag(move || (2..=most).contains(&n()))>
                    <a class="btn primary" data-do="compare" href=to>"Compare"</a>
                </If>
                <If when=flag(move || why.with(|why| !why.is_empty()))>
                    <span class="u">{why}</span>
                </If>
                <button class="plain" data-do="untick" on:click=move |_| ticks.0.set(Vec::new())>"Clear"</button>
            </div>
        </If>
    }
}
