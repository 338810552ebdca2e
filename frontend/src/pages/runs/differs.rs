//! The differences of several training jobs, as a table: see [`viewer::runs::differs`].

use crate::state::Page;
use leptos::prelude::*;
use viewer::runs::Whole;
use viewer::runs::differs::{Compared, ROWS, difference, rows_of_words};

/// The table of differences: one column for each run, and one for the difference between two.
pub fn table(page: Page, names: &[String], runs: Vec<Whole>) -> impl IntoView + use<> {
    let now = page.server_now();
    let pair = runs.len() == 2;
    let heads =
        names.iter().map(|name| view! { <th scope="col" class="source-name">{name.clone()}</th> }).collect_view();
    let row = |row: &'static Compared| {
        let values: Vec<Option<f64>> = runs.iter().map(|run| (row.value)(run, now)).collect();
        // Rows without a value in any run are omitted.
        values.iter().any(Option::is_some).then(|| {
            let differs = pair.then(|| view! { <td><b>{difference(row, values[0], values[1])}</b></td> });
            let cells = runs.iter().map(|run| view! { <td>{(row.said)(run, now)}</td> }).collect_view();
            view! { <tr data-row=row.what><th scope="row" class="l">{row.what}</th>{cells}{differs}</tr> }
        })
    };
    let word_row = |(what, values): (String, Vec<String>)| {
        let differs = pair.then(|| view! { <td>{if values[0] == values[1] { "same" } else { "differs" }}</td> });
        let cells = values.into_iter().map(|value| view! { <td class="source-name">{value}</td> }).collect_view();
        let named = what.clone();
        view! { <tr data-row=named><th scope="row" class="l source-name">{what}</th>{cells}{differs}</tr> }
    };
    let rows = ROWS.iter().filter_map(row).collect_view();
    let more = rows_of_words(&runs).into_iter().map(word_row).collect_view();
    view! {
        <section class="panel flush differs" aria-label="Differences">
            <header><h2>"Differences"</h2><span class="u">"all values"</span></header>
            <div class="scroll" tabindex="0" role="region" aria-label="Table of differences">
                <table class="rows">
                    <thead><tr><th scope="col" class="l">"measure"</th>{heads}{pair.then(|| view! { <th scope="col">"difference"</th> })}</tr></thead>
                    <tbody>{rows}{more}</tbody>
                </table>
            </div>
        </section>
    }
}
