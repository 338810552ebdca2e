//! A chart as a table: the values that are drawn, the newest first, as they are at the moment it is opened.

use super::picture::Picture;
use super::take;
use crate::page::{Page, offset};
use crate::widgets::{dialog, dom};
use charts::axis;
use shared::csv::plain;
use web_sys::Element;

/// Rows, at most.
const ROWS: usize = 200;
/// Series, at most.
const COLUMNS: usize = 24;

/// The text of a table.
#[derive(Debug, PartialEq)]
pub struct Sheet {
    /// What is left out, in words; empty for nothing.
    pub rest: String,
    /// Names of the columns, that of time first.
    pub head: Vec<String>,
    /// Time, then a value a series; a dash where there is none.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// The newest of these instants; `clock` writes them, `values` are those of all `names` at one.
    fn new(
        names: &[String],
        instants: &[i64],
        clock: impl Fn(i64) -> String,
        values: impl Fn(i64) -> Vec<String>,
    ) -> Self {
        let (series, count) = (names.len().min(COLUMNS), instants.len().min(ROWS));
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
        Sheet { rest, head, rows: instants.iter().rev().take(count).map(row).collect() }
    }

    /// Lines with tabs between the cells, as a spreadsheet takes them; no name is a formula to it.
    pub fn text(&self) -> String {
        let name = |cell: &String| plain(&cell.replace(|c: char| c.is_control(), " "));
        let head: Vec<String> = self.head.iter().map(name).collect();
        std::iter::once(&head).chain(&self.rows).map(|cells| cells.join("\t") + "\n").collect()
    }
}

fn sheet(picture: &Picture, (from, to): (i64, i64)) -> Sheet {
    let names: Vec<String> = picture.names.iter().map(|n| n.full.clone()).collect();
    let instants = picture.instants(from, to);
    let day = |t: i64| (t + offset(t)).div_euclid(86_400_000);
    let days = day(from) != day(to);
    let clock = |t: i64| {
        let date = if days { axis::date(day(t)) + " " } else { String::new() };
        date + &axis::clock(t + offset(t), true)
    };
    let word = |v: f64| if v.is_finite() { picture.number(v) } else { "–".to_string() };
    Sheet::new(&names, &instants, clock, |t| picture.values(Some(t), to).into_iter().map(word).collect())
}

/// Opens the table of a chart.
pub fn open(page: Page, chart: &str) {
    let span = page.span();
    let board = page.board.borrow();
    let Some(panel) = board.panels.iter().find(|p| p.id == chart) else { return };
    let sheet = sheet(&panel.picture, span);
    let title = panel.article.query_selector("h3").ok().flatten().and_then(|h| h.text_content()).unwrap_or_default();
    let note = panel.picture.note.clone();
    drop(board);
    let Some(body) = dialog::open(&title) else { return };
    let tools = dom::add(&body, "div", "take", "");
    let copy = dom::add(&tools, "button", "", "Copy table");
    dom::set(&copy, "data-do", "copy-table");
    take::offer_csv(page, &tools, chart);
    dom::set(&dom::add(&tools, "span", "did", ""), "role", "status");
    write(&body, &sheet, &format!("{}; {note}{}", take::words(page), sheet.rest));
}

fn write(body: &Element, sheet: &Sheet, caption: &str) {
    let scroll = dom::add(body, "div", "scroll", "");
    dom::set(&scroll, "tabindex", "0");
    dom::set(&scroll, "role", "region");
    dom::set(&scroll, "aria-label", "Values");
    let table = dom::add(&scroll, "table", "", "");
    dom::add(&dom::add(&table, "caption", "", ""), "span", "", caption);
    let head = dom::add(&dom::add(&table, "thead", "", ""), "tr", "", "");
    for name in &sheet.head {
        dom::set(&dom::add(&head, "th", "", name), "scope", "col");
    }
    let rows = dom::add(&table, "tbody", "", "");
    for row in &sheet.rows {
        let line = dom::add(&rows, "tr", "", "");
        for (i, cell) in row.iter().enumerate() {
            match i {
                0 => dom::set(&dom::add(&line, "th", "", cell), "scope", "row"),
                _ => drop(dom::add(&line, "td", "", cell)),
            }
        }
    }
}

/// Copies the table that is open.
pub fn copy() {
    let Some(dialog) = dom::by_id("dialog") else { return };
    let texts = |row: &Element, cells: &str| {
        let cells = row.query_selector_all(cells).ok();
        let count = cells.as_ref().map_or(0, |c| c.length());
        (0..count).filter_map(|i| cells.as_ref()?.item(i)?.text_content()).collect::<Vec<_>>()
    };
    let rows = dialog.query_selector_all("tr").ok();
    let all = (0..rows.as_ref().map_or(0, |r| r.length()))
        .filter_map(|i| wasm_bindgen::JsCast::dyn_into::<Element>(rows.as_ref()?.item(i)?).ok());
    let mut all: Vec<Vec<String>> = all.map(|row| texts(&row, "th, td")).collect();
    if all.is_empty() {
        return;
    }
    let head = all.remove(0);
    let sheet = Sheet { rest: String::new(), head, rows: all };
    let done = take::copy(&sheet.text(), &dialog);
    if let Some(place) = dialog.query_selector(".did").ok().flatten() {
        place.set_text_content(Some(if done { "Table copied" } else { "Copying was refused." }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(series: usize, rows: i64) -> Sheet {
        let names: Vec<String> = (0..series).map(|i| format!("GPU {i}")).collect();
        let instants: Vec<i64> = (0..rows).collect();
        Sheet::new(&names, &instants, |t| t.to_string(), |t| vec![(t * 2).to_string(); series])
    }

    #[test]
    fn a_table_is_bounded_and_says_what_it_leaves_out() {
        let small = sheet(2, 3);
        assert_eq!((small.rest.as_str(), &small.head[..]), ("", &["Time", "GPU 0", "GPU 1"].map(String::from)[..]));
        assert_eq!(small.rows[0], ["2", "4", "4"], "the newest first");
        let large = sheet(64, 300);
        assert_eq!((large.rows.len(), large.rows[0].len(), large.head.len()), (ROWS, COLUMNS + 1, COLUMNS + 1));
        assert_eq!(large.rest, "; the newest 200 of 300 rows, 24 of 64 series, CSV has all");
    }

    #[test]
    fn no_cell_is_a_formula_to_a_spreadsheet_and_a_negative_number_is_a_number() {
        let rows = vec![vec!["1".into(), "-4".into(), "–".into()]];
        let sheet = Sheet { rest: String::new(), head: vec!["Time".into(), "=1+1".into(), "a\tb".into()], rows };
        assert_eq!(sheet.text(), "Time\t'=1+1\ta b\n1\t-4\t–\n");
    }
}
