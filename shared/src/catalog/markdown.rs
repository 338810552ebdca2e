//! The table as a document.

use super::{Catalog, Draw, Kind, Metric, prometheus};

/// All rows as Markdown, a table for each section of the page, in order on screen.
pub fn metrics_markdown(catalog: &Catalog) -> String {
    let mut text = String::from(
        "# Metrics\n\nEvery metric that Watchglass knows, from the one table in `shared/src/catalog`. This file is generated: \
         `UPDATE=1 cargo test -p watchglass-tests catalog` writes it.\n\n\
         A tag names a metric on an instance: `{i}` stands for a number, any other word in braces for text. Other \
         spellings work wherever a tag can be written, and so do W&B's prefix `system.` and its suffix `/l:` with a \
         label. MB and GB in a tag mean 2^20 and 2^30 bytes. A counter holds the total and is drawn as a rate; a limit \
         is drawn dashed; hidden metrics are in the API and the exports only.\n\n\
         Prometheus gets base units (shares are ratios, 0 to 1; sizes are bytes) under the name in the last column, with \
         the labels in its braces and `source`, the machine. A part of a GPU has `mig`, `partition`, `link`, `xcc`, `block` or `pid` too. What was scraped keeps \
         its own name and labels, with `endpoint`.\n\n\
         Of `cpu`, `proc.cpu.cores`, `proc.cpu.threads` and `proc.memory.rssMB` there is a series for each rank of a training job too, read anew every 5 s: \
         `cpu/l:rank_3`, with the label that the rank has instead of its number, where it has one. In Prometheus these have \
         the label `rank`, and `watchglass_rank_run{source,rank,run}` says whose it is.\n",
    );
    for section in &catalog.layout.sections {
        text += &format!("\n## {}\n\n", section.title);
        text += "| tag | unit | kind | title | what it is | other spellings | Prometheus |\n";
        text += "| --- | --- | --- | --- | --- | --- | --- |\n";
        for chart in catalog.layout.charts.iter().filter(|c| c.section == section.id) {
            for metric in catalog.metrics.iter().filter(|m| m.chart == chart.id) {
                text += &row(metric);
            }
        }
    }
    text
}

fn row(metric: &Metric) -> String {
    let kind = match (metric.kind, metric.draw) {
        (Kind::Gauge, Draw::Line) => "gauge",
        (Kind::Gauge, Draw::Limit) => "gauge, limit",
        (Kind::Gauge, Draw::Hidden) => "gauge, hidden",
        (Kind::Counter, Draw::Hidden) => "counter, hidden",
        (Kind::Counter, _) => "counter",
        (Kind::State, _) => "state",
    };
    let aliases: Vec<String> = metric
        .aliases
        .iter()
        .map(|alias| match alias.split_once(" => ") {
            Some((spelling, instance)) => format!("`{spelling}` (of `{instance}`)"),
            None => format!("`{alias}`"),
        })
        .collect();
    let unit = metric.unit.name().replace('_', " ");
    format!(
        "| `{}` | {unit} | {kind} | {} | {} | {} | `{}` |\n",
        cell(&metric.tag),
        cell(&metric.title),
        cell(&metric.help),
        cell(&aliases.join(", ")),
        prometheus::written(metric)
    )
}

// A bar ends a cell. A star or an underscore would start emphasis; a tag in a help must not do so.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::super::{Catalog, VOCABULARY};
    use super::*;

    #[test]
    fn every_row_is_there_once() {
        let catalog = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
        let text = metrics_markdown(&catalog);
        for metric in &catalog.metrics {
            assert_eq!(text.matches(&format!("\n| `{}` |", metric.tag)).count(), 1, "{}", metric.tag);
        }
    }
}
