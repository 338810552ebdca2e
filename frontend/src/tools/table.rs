//! A chart as a table: the drawn values at the moment of opening, the newest first.

use super::take::{self, CsvOffer};
use crate::browser::{self, offset};
use crate::panels::board::Board;
use charts::axis;
use leptos::html;
use leptos::prelude::*;
use shared::csv::plain;
use viewer::picture::Picture;

/// Largest number of rows in the table.
const MAX_ROWS: usize = 200;
/// Largest number of series in the table.
const MAX_COLUMNS: usize = 24;

/// The texts of a table.
#[derive(Debug, PartialEq)]
pub struct ChartText {
    /// What the table leaves out, in words; empty when it has everything.
    pub rest: String,
    /// Names of the columns; the first is that of the time.
    pub head: Vec<String>,
    /// Rows of time and a value for each series; a dash stands for no value.
    pub rows: Vec<Vec<String>>,
}

impl ChartText {
    /// Makes a table of the newest instants. `clock` writes an instant, `values` gives the texts of all series at one.
    fn new(
        names: &[String],
        instants: &[i64],
        clock: impl Fn(i64) -> String,
        values: impl Fn(i64) -> Vec<String>,
    ) -> Self {
        let (series, count) = (names.len().min(MAX_COLUMNS), instants.len().min(MAX_ROWS));
        let mut rest = Vec::new();
        if instants.len() > count {
            rest.push(format!("the newest {count} of {} rows", instants.len()));
        }
        if names.len() > series {
            rest.push(format!("{series} of {} series", names.len()));
        }
        let row = |t: &i64| {
            let mut row = vec![clock(*t)];
            row.extend(values(*t).into_iter().take(series));
            row
        };
        let mut head = vec!["Time".to_string()];
        head.extend(names.iter().take(series).cloned());
        let rest = if rest.is_empty() { String::new() } else { format!("; {}, CSV has all", rest.join(", ")) };
        ChartText { rest, head, rows: instants.iter().rev().take(count).map(row).collect() }
    }

    /// The table as lines with tabs between the cells, for spreadsheets. A name that would be a formula is made plain
    /// text.
    pub fn text(&self) -> String {
        let name = |cell: &String| plain(&cell.replace(|c: char| c.is_control(), " "));
        let head: Vec<String> = self.head.iter().map(name).collect();
        std::iter::once(&head).chain(&self.rows).map(|cells| cells.join("\t") + "\n").collect()
    }
}

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
    let (text, did) = (sheet.text(), RwSignal::new(""));
    let body = NodeRef::<html::Div>::new();
    let copy = move |_| {
        let done = body.get_untracked().is_some_and(|body| browser::copy(&text, &body));
        did.set(if done { "Table copied" } else { "Copying was refused." });
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
                <CsvOffer chart/>
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(series: usize, rows: i64) -> ChartText {
        let names: Vec<String> = (0..series).map(|i| format!("GPU {i}")).collect();
        let instants: Vec<i64> = (0..rows).collect();
        ChartText::new(&names, &instants, |t| t.to_string(), |t| vec![(t * 2).to_string(); series])
    }

    #[test]
    fn a_table_is_bounded_and_says_what_it_leaves_out() {
        let small = sheet(2, 3);
        assert_eq!((small.rest.as_str(), &small.head[..]), ("", &["Time", "GPU 0", "GPU 1"].map(String::from)[..]));
        assert_eq!(small.rows[0], ["2", "4", "4"], "the newest first");
        let large = sheet(64, 300);
        assert_eq!(
            (large.rows.len(), large.rows[0].len(), large.head.len()),
            (MAX_ROWS, MAX_COLUMNS + 1, MAX_COLUMNS + 1)
        );
        assert_eq!(large.rest, "; the newest 200 of 300 rows, 24 of 64 series, CSV has all");
    }

    #[test]
    fn no_cell_is_a_formula_to_a_spreadsheet_and_a_negative_number_is_a_number() {
        let rows = vec![vec!["1".into(), "-4".into(), "–".into()]];
        let sheet = ChartText { rest: String::new(), head: vec!["Time".into(), "=1+1".into(), "a\tb".into()], rows };
        assert_eq!(sheet.text(), "Time\t'=1+1\ta b\n1\t-4\t–\n");
    }
}
