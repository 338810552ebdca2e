//! The combined table of several files. If two machines define a tag or a chart differently, each has its own row and
//! chart.

use shared::catalog::{Chart, Kind, Metric};
use shared::unit::Unit;
use std::collections::HashMap;

/// Rows, and the charts that they use.
#[derive(Default)]
pub(crate) struct JoinedTable {
    pub rows: Vec<Metric>,
    pub charts: Vec<Chart>,
    /// Rows of a tag, kind and unit.
    row_of: HashMap<(String, Kind, Unit), Vec<u16>>,
}

impl JoinedTable {
    /// The position of a row of a file with these charts; none if the table is full.
    pub fn place(&mut self, row: &Metric, charts: &[Chart]) -> Option<u16> {
        let chart = charts.iter().find(|chart| chart.id == row.chart);
        let chart = chart.map(|chart| chart.clone().distinct(&self.charts));
        let row = Metric { chart: chart.as_ref().map_or(&row.chart, |chart| &chart.id).clone(), ..row.clone() };
        let known = self.row_of.entry((row.tag.clone(), row.kind, row.unit)).or_default();
        if let Some(known) = known.iter().find(|known| self.rows[usize::from(**known)] == row) {
            return Some(*known);
        }
        let position = u16::try_from(self.rows.len()).ok()?;
        known.push(position);
        self.rows.push(row);
        self.charts.extend(chart.filter(|chart| !self.charts.contains(chart)));
        Some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::MetricDef;

    #[test]
    fn what_two_machines_say_differently_of_one_tag_and_chart_stays_apart() {
        let row = |help: &'static str| {
            let row = MetricDef::gauge("own.{x}", Unit::Count).title("Own").on("own", "").help(help);
            Metric::from(&row)
        };
        let chart = |title: &str| Chart { id: "own".into(), title: title.into(), section: String::new() };
        let mut table = JoinedTable::default();
        let placed = [("a", "A"), ("b", "A"), ("a", "B"), ("a", "A"), ("b", "B")];
        let placed = placed.map(|(help, title)| table.place(&row(help), &[chart(title)]));
        assert_eq!(placed, [Some(0), Some(1), Some(2), Some(0), Some(3)]);
        assert_eq!(table.rows.iter().map(|row| &row.chart[..]).collect::<Vec<_>>(), ["own", "own", "own~2", "own~2"]);
        assert_eq!(table.charts, [chart("A"), Chart { id: "own~2".into(), ..chart("B") }]);
        // Another file with this very table changes nothing.
        let all = table.rows.clone();
        let charts = table.charts.clone();
        assert_eq!(all.iter().map(|row| table.place(row, &charts)).collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
    }
}
