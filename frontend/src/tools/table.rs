//! A chart as a table: the drawn values at the moment of opening, the newest first.

use super::take::{self, CsvOffer};
use crate::browser::{self, offset};
use crate::panels::board::Board;
use charts::axis;
use leptos::html;
use leptos::prelude::*;
use viewer::picture::Picture;
use viewer::take::ChartText;

fn sheet(picture: &Picture, (from, to): (i64, i64)) -> ChartText {
    let names: Vec<String> = picture.names.iter().map(|n| n.full.clone()).collect();
    let instants = picture.instants(from, to);
    let day = |t: i64| (t + offset(t)).div_euclid(86_400_000);
    let days = day(from) != day(to);
    let clock = |t: i64| {
        let date = if days { axis::date(day(t)) + " " } else { String::new() };
        date + &axis::clock(t + offset(t), true)
    };
    let word = |v: f64| if v.is_finite() { picture.number(v) } else { "–".to_string() };
    ChartText::new(&names, &instants, clock, |t| picture.values(Some(t), to).into_iter().map(word).collect())
}

/// The table of a chart at the moment of opening; None when the chart is not on the page.
#[component]
pub fn ChartTable(
    /// Id of the chart.
    chart: String,
) -> impl IntoView {
    let board = expect_context::<Board>();
    let span = board.page.span();
    let drawn = board.drawn();
    let panel = drawn.panels.iter().find(|p| p.id == chart)?;
    let sheet = sheet(&panel.picture, span);
    let caption = format!("{}; {}{}", take::words(board.page), panel.picture.note, sheet.rest);
    let (text, did) = (sheet.text(), RwSignal::new(String::new()));
    let body = NodeRef::<html::Div>::new();
    let copy = move |_| {
        let done = body.get_untracked().is_some_and(|body| browser::copy(&text, &body));
        did.set(if done { "Table copied" } else { "Copying was blocked by the browser." }.into());
    };
    let column = |name: String| view! { <th scope="col">{name}</th> };
    let row = |row: Vec<String>| {
        let mut cells = row.into_iter();
        let time = cells.next();
        view! { <tr><th scope="row">{time}</th>{cells.map(|cell| view! { <td>{cell}</td> }).collect_view()}</tr> }
    };
    Some(view! {
        <div node_ref=body class="body">
            <div class="take">
                <button data-do="copy-table" on:click=copy>"Copy table"</button>
                <CsvOffer chart did/>
                <span class="did" role="status">{did}</span>
            </div>
            <div class="scroll" tabindex="0" role="region" aria-label="Values">
                <table>
                    <caption><span>{caption}</span></caption>
                    <thead><tr>{sheet.head.into_iter().map(column).collect_view()}</tr></thead>
                    <tbody>{sheet.rows.into_iter().map(row).collect_view()}</tbody>
                </table>
            </div>
        </div>
    })
}
