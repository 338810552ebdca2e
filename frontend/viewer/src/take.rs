//! Exports of a chart: its values as a table, the tags for its samples in the API, and a file name.

use shared::catalog::Catalog;
use shared::csv::plain;
use shared::series::SeriesDef;

/// Largest number of rows in the table.
const MAX_ROWS: usize = 200;
/// Largest number of series in the table.
const MAX_COLUMNS: usize = 24;

/// The texts of a table.
#[derive(Debug, PartialEq)]
pub struct ChartText {
    /// Text about rows and columns left out of the table; empty if it is complete.
    pub rest: String,
    /// Names of the columns; the first is that of the time.
    pub head: Vec<String>,
    /// Rows of time and a value for each series; a dash means no value.
    pub rows: Vec<Vec<String>>,
}

impl ChartText {
    /// Makes a table of the newest instants. `clock` formats an instant, `values` returns the texts of all series at
    /// one.
    pub fn new(
        names: &[String],
        instants: &[i64],
        clock: impl Fn(i64) -> String,
        values: impl Fn(i64) -> Vec<String>,
    ) -> Self {
        let (series, count) = (names.len().min(MAX_COLUMNS), instants.len().min(MAX_ROWS));
        let mut rest = Vec::new();
        if instants.len() > count {
            rest.push(format!("the last {count} of {} rows", instants.len()));
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
        let rest = if rest.is_empty() { String::new() } else { format!("; {}, use CSV for all", rest.join(", ")) };
        ChartText { rest, head, rows: instants.iter().rev().take(count).map(row).collect() }
    }

    /// The table as lines with tabs between the cells, for spreadsheets. A name that would be a formula is converted to
    /// plain text.
    pub fn text(&self) -> String {
        let name = |cell: &String| plain(&cell.replace(|c: char| c.is_control(), " "));
        let head: Vec<String> = self.head.iter().map(name).collect();
        std::iter::once(&head).chain(&self.rows).map(|cells| cells.join("\t") + "\n").collect()
    }
}

/// The tags of series. Numbered devices share one pattern, so that 64 of them fit into an address.
pub fn tags<'a>(catalog: &Catalog, defs: impl Iterator<Item = &'a SeriesDef>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for def in defs {
        let numbered = def.instance.bytes().all(|b| b.is_ascii_digit()) && !def.instance.is_empty();
        let instance = if numbered { "*".to_string() } else { def.instance.clone() };
        let tag = catalog.tag(&SeriesDef { metric: def.metric, instance });
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// Joins parts to a file name. Characters that a file system may not accept become dashes.
pub fn file_name(parts: &[&str], kind: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let parts = parts.iter().filter(|p| !p.is_empty());
    let parts: Vec<String> = parts.map(|p| p.chars().map(plain).collect()).collect();
    format!("{}.{kind}", parts.join("-").trim_start_matches(['.', '-']))
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
        assert_eq!(large.rest, "; the last 200 of 300 rows, 24 of 64 series, use CSV for all");
    }

    #[test]
    fn no_cell_is_a_formula_to_a_spreadsheet_and_a_negative_number_is_a_number() {
        let rows = vec![vec!["1".into(), "-4".into(), "–".into()]];
        let sheet = ChartText { rest: String::new(), head: vec!["Time".into(), "=1+1".into(), "a\tb".into()], rows };
        assert_eq!(sheet.text(), "Time\t'=1+1\ta b\n1\t-4\t–\n");
    }

    #[test]
    fn devices_are_asked_for_by_one_pattern_and_names_one_by_one() {
        let catalog = Catalog::new(shared::catalog::VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let def = |tag: &str| {
            let found = catalog.find(tag).expect("a known tag");
            SeriesDef { metric: found.metric, instance: found.instance }
        };
        let defs = ["gpu.0.gpu", "gpu.7.gpu", "gpu.0.temp", "disk./.usagePercent"].map(def);
        assert_eq!(tags(&catalog, defs.iter()), ["gpu.*.gpu", "gpu.*.temp", "disk./.usagePercent"]);
    }

    #[test]
    fn a_file_has_a_name_that_every_system_takes() {
        assert_eq!(file_name(&["node/7", "gpu.power", "17"], "png"), "node-7-gpu.power-17.png");
        assert_eq!(file_name(&["..", "", "disk C:\\", "1"], "svg"), "disk-C---1.svg");
    }
}
