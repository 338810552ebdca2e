//! A list of what a hub keeps: rows of words under their headings, each with the deeds that may be done to it. All pages of
//! people are made of it.

use crate::browser::{now, offset};
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use charts::axis;
use leptos::prelude::*;
use shared::unit::rough_duration;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What stands in one place of a row.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Words that matter less.
    Faint(String),
    /// A name, and what stands faint behind it.
    Name(String, String),
    /// A number, at the right.
    Number(String),
    /// A state: whether it is well, and its word.
    State(bool, String),
    /// How long ago something was, Unix seconds; the word for never.
    Ago(Option<i64>, &'static str),
    /// How long until something ends, Unix seconds.
    Ends(Option<i64>),
    /// A time of the clock, Unix seconds.
    At(i64),
    /// One of several words, which can be changed: the name of the deed, the words, the present one.
    Choice(&'static str, Vec<&'static str>, String),
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub struct Line {
    /// Its id.
    pub id: String,
    /// What it is called in titles and by screen readers.
    pub name: String,
    /// Its cells in the order of the headings.
    pub cells: Vec<Cell>,
    /// Names and words of what may be done with it.
    pub deeds: Vec<(&'static str, &'static str)>,
}

impl Line {
    /// A row whose content a key holds: a changed row is a new one.
    fn key(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{:x} {}", hasher.finish(), self.id)
    }
}

/// What was done with a row: the row, the deed, and the word that was chosen.
pub type Done = (Line, &'static str, String);

/// The list.
#[component]
pub fn List(
    /// Id of the table.
    id: &'static str,
    /// What it is a table of, for screen readers.
    label: &'static str,
    /// Its headings; one that begins with `>` stands at the right.
    heads: &'static [&'static str],
    /// Its rows.
    #[prop(into)]
    rows: Signal<Vec<Line>>,
    /// Whether the rows are known.
    #[prop(into)]
    known: Signal<bool>,
    /// What is said where there is no row.
    empty: &'static str,
    /// Called with what a person does.
    act: Callback<Done>,
) -> impl IntoView {
    let keys = Signal::derive(move || rows.with(|rows| rows.iter().map(Line::key).collect::<Vec<String>>()));
    let row = move |key: String| {
        let found = rows.with_untracked(|rows| rows.iter().find(|row| row.key() == key).cloned());
        found.map(|line| view! { <Row line heads act/> }).into_any()
    };
    let head = |words: &'static str| match words.strip_prefix('>') {
        Some(words) => view! { <th scope="col" class="right">{words}</th> }.into_any(),
        None => view! { <th scope="col">{words}</th> }.into_any(),
    };
    view! {
        <div class="scroll" tabindex="0" role="region" aria-label=label>
            <table class="rows list" id=id>
                <thead>
                    <tr>{heads.iter().map(|words| head(words)).collect_view()}<td></td></tr>
                </thead>
                <tbody>
                    <Each keys row=Callback::new(row)/>
                </tbody>
            </table>
        </div>
        <If when=flag(move || known.get() && rows.with(Vec::is_empty))>
            <p class="below pad">{empty}</p>
        </If>
    }
}

#[component]
fn Row(line: Line, heads: &'static [&'static str], act: Callback<Done>) -> impl IntoView {
    let own = StoredValue::new(line.clone());
    let send = move |deed: &'static str, value: String| act.run((own.get_value(), deed, value));
    let cell = |(at, cell): (usize, &Cell)| {
        let right = heads.get(at).is_some_and(|words| words.starts_with('>'));
        let content = content(cell, &line.name, send);
        match (at, right) {
            (0, _) => view! { <th scope="row">{content}</th> }.into_any(),
            (_, true) => view! { <td class="right">{content}</td> }.into_any(),
            _ => view! { <td>{content}</td> }.into_any(),
        }
    };
    let deed = |(deed, words): &(&'static str, &'static str)| {
        let (deed, label) = (*deed, format!("{words} {}", line.name));
        view! {
            <button data-do=deed aria-label=label on:click=move |_| send(deed, String::new())>{*words}</button>
        }
    };
    view! {
        <tr data-row=line.id.clone()>
            {line.cells.iter().enumerate().map(cell).collect_view()}
            <td class="deeds">{line.deeds.iter().map(deed).collect_view()}</td>
        </tr>
    }
}

fn content(cell: &Cell, name: &str, send: impl Fn(&'static str, String) + Copy + Send + 'static) -> AnyView {
    let page = expect_context::<Page>();
    let beating = move |say: Box<dyn Fn() -> String + Send + Sync>| {
        text(move || {
            page.beat.track();
            say()
        })
    };
    match cell.clone() {
        Cell::Text(words) | Cell::Number(words) => words.into_any(),
        Cell::Faint(words) => view! { <span class="u">{words}</span> }.into_any(),
        Cell::Name(name, rest) => {
            view! { <b class="source-name">{name}</b>" "<span class="u">{rest}</span> }.into_any()
        }
        Cell::State(well, words) => {
            let (glyph, class) = if well { ("●", "shape is-ok") } else { ("▲", "shape is-warn") };
            view! { <span class=class aria-hidden="true">{glyph}</span>" "{words} }.into_any()
        }
        Cell::Ago(None, never) => view! { <span class="u">{never}</span> }.into_any(),
        Cell::Ago(Some(t), _) => beating(Box::new(move || ago(t))).into_any(),
        Cell::Ends(None) => view! { <span class="u">"never"</span> }.into_any(),
        Cell::Ends(Some(t)) => beating(Box::new(move || until(t))).into_any(),
        Cell::At(t) => clock(t).into_any(),
        Cell::Choice(deed, words, is) => {
            let options = words.into_iter().map(|word| {
                let chosen = word == is;
                view! { <option value=word selected=chosen>{word}</option> }
            });
            view! {
                <select
                    name=deed
                    aria-label=format!("{deed} of {name}")
                    on:change=move |event| send(deed, event_target_value(&event))
                >
                    {options.collect_view()}
                </select>
            }
            .into_any()
        }
    }
}

/// How long ago a time was; `t` in Unix seconds.
pub fn ago(t: i64) -> String {
    match now() - t * 1_000 {
        past if past < 60_000 => "now".into(),
        past => format!("{} ago", rough_duration(past)),
    }
}

/// How long until a time; `t` in Unix seconds.
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
