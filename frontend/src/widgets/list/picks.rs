//! A list of sentences. The chosen entry is shown beside it, or in its place on narrow windows. Arrows and `j`, `k`
//! move in it.

use crate::browser::{self, document};
use crate::widgets::parts::{Each, If, flag, text};
use leptos::attr::any_attribute::{AnyAttribute, IntoAnyAttribute};
use leptos::attr::custom::custom_attribute;
use leptos::ev::{KeyboardEvent, MouseEvent};
use leptos::prelude::*;

/// Above this width the chosen entry is shown beside the list, in CSS pixels; the stylesheet has the same value.
const WIDE_PX: f64 = 900.0;

/// An entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pick {
    /// Its id; no other entry has it.
    pub id: String,
    /// The address that shows it.
    pub to: String,
    /// Values of the attributes that [`Picks`] names.
    pub marks: Vec<String>,
    /// The class of its shape, and the shape.
    pub shape: (&'static str, &'static str),
    /// The emphasized begin of its sentence.
    pub head: String,
    /// The rest of it.
    pub rest: String,
    /// Text below it.
    pub below: String,
}

/// Entries of the list, and the callback for a choice; copies share the same signals.
#[derive(Clone, Copy)]
pub struct Picks {
    /// The attribute that names an entry.
    pub kind: &'static str,
    /// Further attributes of entries.
    pub marks: &'static [&'static str],
    /// Open entries.
    pub open: Signal<Vec<Pick>>,
    /// Ended entries.
    pub over: Signal<Vec<Pick>>,
    /// The id of the entry that is shown beside the list.
    pub shown: Signal<Option<String>>,
    /// Called with an entry that is pressed.
    pub choose: Callback<String>,
}

impl Picks {
    fn ids(self) -> Vec<String> {
        let ids = |all: &Vec<Pick>| all.iter().map(|one| one.id.clone()).collect::<Vec<String>>();
        [self.open, self.over].into_iter().flat_map(|part| part.with_untracked(ids)).collect()
    }

    /// Moves to another entry by a key; true for a key that moves. Where the chosen entry is shown beside the list,
    /// `follow` is called with it.
    pub fn walk(self, event: &KeyboardEvent, follow: impl FnOnce(String)) -> bool {
        let by: isize = match event.key().to_ascii_lowercase().as_str() {
            "arrowdown" | "j" => 1,
            "arrowup" | "k" => -1,
            _ => return false,
        };
        let ids = self.ids();
        let active = document().active_element().and_then(|element| element.get_attribute(self.kind));
        let chosen = active.or_else(|| self.shown.get_untracked());
        let at = chosen.and_then(|id| ids.iter().position(|other| *other == id));
        let next = at.map_or(0, |at| at.saturating_add_signed(by).min(ids.len().saturating_sub(1)));
        let Some(id) = ids.get(next) else { return true };
        event.prevent_default();
        if is_wide() {
            follow(id.clone());
        }
        let rows = browser::all(&format!(".findings-list [{}]", self.kind));
        if let Some(row) = rows.iter().find(|row| row.get_attribute(self.kind).as_ref() == Some(id)) {
            browser::focus(row);
        }
        true
    }
}

/// Whether the chosen entry is shown beside the list.
pub fn is_wide() -> bool {
    browser::viewport().0 > WIDE_PX
}

/// The list.
#[component]
pub fn PickList(
    /// Entries of the list.
    picks: Picks,
    /// Label for screen readers.
    label: &'static str,
    /// Ids of its two parts.
    parts: [&'static str; 2],
    /// Whether the entries are known.
    #[prop(into)]
    known: Signal<bool>,
    /// Text until the entries are known.
    asking: &'static str,
    /// Text where nothing is open; None where something is.
    #[prop(into)]
    calm: Signal<Option<&'static str>>,
    /// Text where no entry matches the filter.
    #[prop(optional, into)]
    none: Signal<Option<&'static str>>,
    /// The heading of the ended entries.
    #[prop(into)]
    ended: Signal<String>,
    /// Content at the right of an entry.
    #[prop(optional)]
    aside: Option<Callback<String, AnyView>>,
    /// Content below the list.
    #[prop(optional, into)]
    foot: ViewFn,
) -> impl IntoView {
    let row = Callback::new(move |id: String| view! { <EntryRow id picks aside/> }.into_any());
    let keys = |part: Signal<Vec<Pick>>| {
        Signal::derive(move || part.with(|all| all.iter().map(|one| one.id.clone()).collect::<Vec<String>>()))
    };
    let said = move |of: Signal<Option<&'static str>>| text(move || of.get().unwrap_or_default());
    view! {
        <section class="panel flush findings-list" aria-label=label>
            <If when=flag(move || known.get() && calm.get().is_some())>
                <p class="calm-line"><span class="shape is-ok" aria-hidden="true">"●"</span>" "{said(calm)}</p>
            </If>
            <If when=flag(move || known.get() && none.get().is_some())><p class="calm-line u">{said(none)}</p></If>
            <If when=flag(move || !known.get())><p class="calm-line u">{asking}</p></If>
            <div id=parts[0]><Each keys=keys(picks.open) row/></div>
            <If when=flag(move || picks.over.with(|all| !all.is_empty()))><h3 class="below">{ended}</h3></If>
            <div id=parts[1]><Each keys=keys(picks.over) row/></div>
            {foot.run()}
        </section>
    }
}

#[component]
fn EntryRow(id: String, picks: Picks, aside: Option<Callback<String, AnyView>>) -> impl IntoView {
    let own = StoredValue::new(id.clone());
    let entry = Memo::new(move |before: Option<&Pick>| {
        let find = |all: &Vec<Pick>| all.iter().find(|one| own.with_value(|id| one.id == *id)).cloned();
        // A removed entry keeps its last content.
        picks.open.with(find).or_else(|| picks.over.with(find)).or_else(|| before.cloned()).unwrap_or_default()
    });
    let of = move |read: fn(&Pick) -> &str| text(move || entry.with(|entry| read(entry).to_string()));
    let mark = |(at, name): (usize, &&'static str)| -> AnyAttribute {
        let value = text(move || entry.with(|entry| entry.marks.get(at).cloned().unwrap_or_default()));
        custom_attribute(*name, value).into_any_attr()
    };
    let marks: Vec<AnyAttribute> = picks.marks.iter().enumerate().map(mark).collect();
    let current = text(move || (picks.shown.with(|shown| own.with_value(|id| shown.as_ref() == Some(id)))).to_string());
    let press = move |event: MouseEvent| {
        // With a modifier key the browser opens the link itself.
        if !(event.ctrl_key() || event.meta_key() || event.shift_key()) {
            event.prevent_default();
            picks.choose.run(own.get_value());
        }
    };
    let aside = aside.map(|aside| aside.run(id.clone()));
    view! {
        <a {..custom_attribute(picks.kind, id)} {..marks} class="finding" href=of(|entry| &entry.to) aria-current=current on:click=press>
            <span class=of(|entry| entry.shape.0) aria-hidden="true">{of(|entry| entry.shape.1)}</span>
            <span class="words">
                <span class="sentence"><b>{of(|entry| &entry.head)}</b>" "{of(|entry| &entry.rest)}</span>
                <span class="below">{of(|entry| &entry.below)}</span>
            </span>
            {aside}
        </a>
    }
}
