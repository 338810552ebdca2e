//! The table tests itself: invariants of every row, so that a new row is covered without a new test.

use super::{Catalog, Draw, Kind, Metric, Note, tag};
use crate::series::{from_steps, quantize, to_steps};
use crate::unit::{Dimension, Unit};
use std::collections::{HashMap, HashSet};

/// Faults of a table, a sentence each; empty if there are none. A chart without a row is a fault too, so the table must
/// be complete.
pub fn faults(catalog: &Catalog) -> Vec<String> {
    let mut faults = Vec::new();
    for metric in &catalog.metrics {
        text(metric, &mut faults);
        if !survives(metric.steps) {
            faults.push(format!("{}: values do not survive {} steps per unit", metric.tag, metric.steps));
        }
    }
    spellings(catalog, &mut faults);
    charts(catalog, &mut faults);
    layout(catalog, &mut faults);
    faults
}

fn text(metric: &Metric, faults: &mut Vec<String>) {
    let tag = &metric.tag;
    let mut must = |holds: bool, what: &str| {
        if !holds {
            faults.push(format!("{tag}: {what}"));
        }
    };
    let placeholder = placeholder(tag);
    must(tag.matches('{').count() <= 1 && tag.matches('}').count() <= 1, "a tag has at most one placeholder");
    must(is_title(&metric.title), "a title is in sentence case and has no full stop");
    must(!metric.label.ends_with('.') && !metric.label.is_empty(), "a label is a name without a full stop");
    must(
        metric.label.matches('{').count() <= 1
            && match (&placeholder, self::placeholder(&metric.label)) {
                (_, None) => true,
                (tag, label) => *tag == label,
            },
        "a label has no placeholder but its tag's",
    );
    must(
        placeholder.is_none() || placeholder == self::placeholder(&metric.label),
        "a label names the instance, or lines could not be told apart",
    );
    must(are_sentences(&metric.help), "a help is full sentences, each with a capital and a full stop");
    must((metric.kind == Kind::State) == (metric.unit == Unit::State), "states, and nothing else, have the unit state");
    for alias in &metric.aliases {
        must(alias.contains(" => ") || self::placeholder(alias) == placeholder, "an alias has its tag's placeholder");
    }
}

fn placeholder(text: &str) -> Option<&str> {
    let (before, after, _) = tag::split(text)?;
    Some(&text[before.len()..text.len() - after.len()])
}

fn begins_well(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_uppercase() || c.is_ascii_digit())
}

// Sentence case cannot be proved without knowing names; a second word such as `Utilization` is the usual mistake.
fn is_title(title: &str) -> bool {
    const NAMES: &[&str] = &[
        "Watchglass",
        "Apple",
        "Neuron",
        "NeuronCore",
        "NVLink",
        "PCIe",
        "SMs",
        "PIDs",
        "NVIDIA",
        "Linux",
        "InfiniBand",
        "RoCE",
        "NVLinks",
    ];
    let mut words = title.split(' ');
    begins_well(words.next().unwrap_or(""))
        && !title.ends_with('.')
        && words.all(|word| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            NAMES.contains(&word) || word.chars().all(|c| !c.is_lowercase()) || !word.starts_with(char::is_uppercase)
        })
}

fn are_sentences(help: &str) -> bool {
    let words = help.split_whitespace().count();
    help.ends_with('.')
        && words >= 4
        && help.trim() == help
        && !help.contains("  ")
        && help
            .split_inclusive(". ")
            .all(|s| begins_well(s) || s.starts_with(|c: char| c.is_lowercase() && s.contains('_')))
}

/// Steps are powers of two or ten, see [`Steps`](crate::series::Steps); tested with values between the steps.
fn survives(steps: f64) -> bool {
    let power = |of: f64| (-60..=60).any(|n| of.powi(n) == steps);
    let exact = |value: f64| {
        let kept = quantize(value, steps);
        to_steps(kept, steps).is_some_and(|k| from_steps(k, steps) == kept)
    };
    let values = [0.0, 0.1, -1.0 / 3.0, 1.005, 99.999, 12_345.678_9, 7.3e9];
    steps == 0.0 || (power(2.0) || power(10.0)) && values.into_iter().all(exact)
}

/// No text may have two meanings: two templates may both match a text only if the known text decides between them.
fn spellings(catalog: &Catalog, faults: &mut Vec<String>) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for metric in &catalog.metrics {
        let aliases = metric.aliases.iter().map(|a| a.split_once(" => ").map_or(a.as_str(), |(text, _)| text));
        for spelling in std::iter::once(metric.tag.as_str()).chain(aliases) {
            if let Some(other) = seen.insert(spelling, &metric.tag) {
                faults.push(format!("{spelling}: written at {other} and at {}", metric.tag));
            }
        }
    }
    for (i, metric) in catalog.metrics.iter().enumerate() {
        let mut reads = |text: String, instance: &str, spelling: &str| match catalog.find(&text) {
            Ok(found) if usize::from(found.metric) == i && found.instance == instance => {}
            Ok(found) => {
                let other = &catalog.metrics[usize::from(found.metric)].tag;
                faults.push(format!("{spelling}: {text:?} is read as {other} with {:?}", found.instance));
            }
            Err(error) => faults.push(format!("{spelling}: {error}")),
        };
        for instance in instances(&metric.tag) {
            reads(tag::fill(&metric.tag, instance), instance, &metric.tag);
        }
        for alias in &metric.aliases {
            match alias.split_once(" => ") {
                Some((text, instance)) => reads(text.to_string(), instance, alias),
                None => instances(alias).iter().for_each(|x| reads(tag::fill(alias, x), x, alias)),
            }
        }
    }
}

/// Awkward instances, as real systems have them.
pub(super) fn instances(template: &str) -> &'static [&'static str] {
    match tag::split(template) {
        None => &[""],
        Some((.., true)) => numbers(template),
        // A labeled sample may have no label.
        Some((.., false)) if placeholder(template) == Some("{labels}") => {
            &["", "{run=\"a\"}", "{name=\"n.m/k\",rank=\"0\",run=\"/l:}\"}"]
        }
        Some((.., false)) if placeholder(template) == Some("{kernel}") => {
            &["0a1b2c3d", "12345678", "v2-29684vbBrK2x9QmZt", "x_1"]
        }
        Some((.., false)) if placeholder(template) == Some("{kernel.gpu.i}") => {
            &["0a1b2c3d.gpu.0", "12345678.gpu.17", "v2-29684vbBrK2x9QmZt.gpu.0"]
        }
        Some((.., false)) => {
            &["7", "/", "/mnt/data.v2", "/mnt/a b", "eth0.100", "nvme0n1", "é", "7.a (%)", "n.m{b=\"c.d/e\",f=\"g\"}"]
        }
    }
}

/// Instances of a template whose placeholder stands for numbers.
pub(super) fn numbers(template: &str) -> &'static [&'static str] {
    match placeholder(template) {
        Some("{i.mig.j}") => &["0.mig.0", "17.mig.13"],
        Some("{i.xgmi.j}") => &["0.xgmi.0", "17.xgmi.7"],
        Some("{i.xcc.j}") => &["0.xcc.0", "17.xcc.7"],
        Some("{i.proc.j}") => &["0.proc.1", "17.proc.4194304"],
        _ => &["0", "17", "4294967295"],
    }
}

/// Dimension that a row adds to its chart's axis: a counter is drawn as its rate.
fn dimension(metric: &Metric) -> Dimension {
    match metric.kind {
        Kind::Counter => metric.unit.per_second().dimension(),
        Kind::Gauge | Kind::State => metric.unit.dimension(),
    }
}

fn charts(catalog: &Catalog, faults: &mut Vec<String>) {
    let layout = &catalog.layout;
    for chart in &layout.charts {
        let rows = || catalog.metrics.iter().filter(|m| m.chart == chart.id);
        if !rows().any(|m| m.draw == Draw::Line) {
            faults.push(format!("chart {}: no row draws a line on it", chart.id));
        }
        if let Some(first) = rows().next() {
            for other in rows().filter(|m| dimension(m) != dimension(first)) {
                faults.push(format!("chart {}: {} and {} cannot share an axis", chart.id, first.tag, other.tag));
            }
        }
        if !layout.sections.iter().any(|s| s.id == chart.section) {
            faults.push(format!("chart {}: there is no section {}", chart.id, chart.section));
        }
        if !is_title(&chart.title) {
            faults.push(format!("chart {}: a title is in sentence case and has no full stop", chart.id));
        }
    }
    for metric in &catalog.metrics {
        if !layout.charts.iter().any(|c| c.id == metric.chart) {
            faults.push(format!("{}: there is no chart {:?}", metric.tag, metric.chart));
        }
    }
}

fn layout(catalog: &Catalog, faults: &mut Vec<String>) {
    let layout = &catalog.layout;
    let mut once = |what: &str, ids: Vec<&String>| {
        let mut seen = HashSet::new();
        for id in ids.into_iter().filter(|id| !seen.insert(*id)) {
            faults.push(format!("{what} {id} is there twice"));
        }
    };
    once("chart", layout.charts.iter().map(|c| &c.id).collect());
    once("section", layout.sections.iter().map(|s| &s.id).collect());
    once("tile", layout.tiles.iter().map(|t| &t.id).collect());
    once("leading chart", layout.lead.iter().collect());
    for section in &layout.sections {
        if !layout.charts.iter().any(|c| c.section == section.id) {
            faults.push(format!("section {}: it has no chart", section.id));
        }
    }
    for id in layout
        .wide
        .iter()
        .chain(&layout.beside)
        .chain(&layout.lead)
        .filter(|id| !layout.charts.iter().any(|c| c.id == **id))
    {
        faults.push(format!("the layout leads with {id}, which is no chart"));
    }
    for tile in &layout.tiles {
        let note: Vec<&String> = match &tile.note {
            Note::Highest(tag, _) | Note::Lowest(tag, _) => vec![tag],
            Note::Parts(parts) => parts.iter().map(|(tag, _)| tag).collect(),
            Note::Share(_, part, whole) => vec![part, whole],
        };
        let corner = Some(&tile.corner.1).filter(|tag| !tag.is_empty());
        for tag in tile.metrics.iter().chain(&tile.of).chain(corner).chain(note) {
            if catalog.position(tag).is_none() {
                faults.push(format!("tile {}: there is no tag {tag}", tile.id));
            }
        }
        let units: Vec<Dimension> = (tile.metrics.iter().chain(&tile.of))
            .filter_map(|tag| catalog.position(tag))
            .map(|i| dimension(&catalog.metrics[usize::from(i)]))
            .collect();
        if units.windows(2).any(|pair| pair[0] != pair[1]) {
            faults.push(format!("tile {}: its metrics cannot be added or compared", tile.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MetricDef, VOCABULARY};
    use super::*;

    fn catalog() -> Catalog {
        Catalog::new(VOCABULARY.iter().copied().flatten().copied())
    }

    // Rows that are not W&B's are defined with their collectors, so that some charts have no row here; tests/catalog.rs
    // checks the whole table.
    #[test]
    fn the_vocabulary_has_no_fault() {
        let of_collectors = |fault: &String| fault.ends_with("no row draws a line on it");
        let faults: Vec<_> = faults(&catalog()).into_iter().filter(|fault| !of_collectors(fault)).collect();
        assert_eq!(faults, Vec::<String>::new());
    }

    #[test]
    fn every_rule_can_fail() {
        let good = MetricDef::gauge("x.{i}.y", Unit::Percent)
            .title("Some title")
            .on("gpu", "X {i}")
            .help("It says what is read and where. Read from a file.");
        let check = |row: MetricDef, part: &str| {
            let mut catalog = catalog();
            catalog.metrics.push(Metric::from(&row));
            let found = faults(&catalog);
            assert!(found.iter().any(|f| f.contains(part)), "{part:?} is not among {found:#?}");
        };
        let mut clean = catalog();
        clean.metrics.push(Metric::from(&good));
        assert_eq!(faults(&clean), faults(&catalog()));

        check(MetricDef { tag: "gpu.{i}.temp", ..good }, "gpu.{i}.temp: written at");
        check(good.aliases(&["memory"]), "memory: written at memory_percent and at x.{i}.y");
        check(MetricDef { tag: "gpu.{name}.temp", ..good.on("gpu", "{name}") }, "is read as gpu.{i}.temp");
        check(MetricDef { tag: "x.{i}.{j}", ..good }, "at most one placeholder");
        check(good.on("gpu", "X"), "a label names the instance");
        check(good.on("gpu", "X {k}"), "no placeholder but its tag's");
        check(good.aliases(&["x.{k}.z"]), "an alias has its tag's placeholder");
        check(good.title("Some Title"), "sentence case");
        check(good.title("some title"), "sentence case");
        check(good.title("Some title."), "no full stop");
        check(good.help("It says what is read"), "full sentences");
        check(good.help("It says what is read. and where it is."), "full sentences");
        check(good.steps(3.0), "do not survive 3 steps");
        check(good.on("nowhere", "X {i}"), "there is no chart \"nowhere\"");
        check(good.on("gpu.temp", "X {i}"), "cannot share an axis");
        check(MetricDef { kind: Kind::State, ..good }, "have the unit state");
        check(
            MetricDef::counter("x.{i}.y", Unit::Watts).title("A").on("gpu.power", "X {i}").help(good.help),
            "cannot share an axis",
        );
    }

    #[test]
    fn every_rule_of_the_layout_can_fail() {
        let check = |spoil: fn(&mut Catalog), part: &str| {
            let mut catalog = catalog();
            spoil(&mut catalog);
            let found = faults(&catalog);
            assert!(found.iter().any(|f| f.contains(part)), "{part:?} is not among {found:#?}");
        };
        check(|c| c.metrics.retain(|m| m.chart != "load"), "chart load: no row draws a line");
        check(|c| c.layout.sections.retain(|s| s.id != "cpu"), "there is no section cpu");
        check(|c| c.layout.charts.retain(|c| c.section != "pressure"), "section pressure: it has no chart");
        check(|c| c.layout.lead.push("nothing".into()), "leads with nothing");
        check(|c| c.layout.tiles[0].metrics.push("nothing".into()), "there is no tag nothing");
        check(|c| c.layout.tiles[0].metrics.push("memory.used".into()), "cannot be added or compared");
        check(|c| c.layout.charts.push(c.layout.charts[0].clone()), "chart gpu is there twice");
        check(|c| c.layout.charts[0].title = "GPU Utilization".into(), "chart gpu: a title is in sentence case");
    }
}
