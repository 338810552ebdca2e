//! The columns of the list of runs: content, sort order, and selection by a person.

use super::Listed;
use super::words::{energy, figure, percent, size, where_it_ran};
use shared::run::RunState;
use std::cmp::Ordering;

/// Content of a cell.
pub enum Shown {
    /// State of a run, with its shape.
    State(RunState),
    /// Name of the run as a link, with its details.
    Name,
    /// Sparkline of its GPU use; empty if there is none.
    Spark(Vec<Option<f64>>),
    /// Text.
    Words(String),
    /// Emphasized text.
    Strong(String),
    /// Text and its tooltip.
    Titled(String, String),
    /// An idle share, 0 to 1.
    Idle(Option<f64>),
    /// A time of the clock, ms since the epoch.
    At(i64),
    /// Duration: start and end, ms since the epoch.
    Lasted(i64, Option<i64>),
}

/// A column.
pub struct RunColumn {
    /// Its name in the address.
    pub id: &'static str,
    /// Its heading.
    pub words: &'static str,
    /// Whether it is left-aligned.
    pub left: bool,
    /// Whether it is shown by default.
    usual: bool,
    /// Its content.
    pub cell: fn(&Listed) -> Shown,
    /// Its sort order: largest and newest first, names from A. None: not sortable.
    pub order: Option<fn(&Listed, &Listed, i64) -> Ordering>,
}

const fn column(id: &'static str, words: &'static str, cell: fn(&Listed) -> Shown) -> RunColumn {
    RunColumn { id, words, left: false, usual: false, cell, order: None }
}

impl RunColumn {
    const fn left(self) -> RunColumn {
        RunColumn { left: true, ..self }
    }

    const fn usual(self) -> RunColumn {
        RunColumn { usual: true, ..self }
    }

    const fn sorts(self, order: fn(&Listed, &Listed, i64) -> Ordering) -> RunColumn {
        RunColumn { order: Some(order), ..self }
    }

    /// Whether the smallest value is first.
    pub fn rises(&self) -> bool {
        self.left
    }
}

/// The column that is always shown.
pub const NAME: &str = "name";
/// The default sort column.
pub const BEGAN: &str = "began";

/// Largest first; unknown values last.
fn largest(a: Option<f64>, b: Option<f64>) -> Ordering {
    b.unwrap_or(f64::MIN).total_cmp(&a.unwrap_or(f64::MIN))
}

/// From A to Z; empty names last.
fn named(a: &str, b: &str) -> Ordering {
    (a.is_empty(), a.to_lowercase()).cmp(&(b.is_empty(), b.to_lowercase()))
}

fn plain(text: &str) -> Shown {
    Shown::Words(if text.is_empty() { "–".into() } else { text.to_string() })
}

/// All columns.
pub static COLUMNS: [RunColumn; 23] = [
    column("state", "state", |run| Shown::State(run.state)).left().usual().sorts(|a, b, _| a.state.cmp(&b.state)),
    column(NAME, "run", |_| Shown::Name).left().usual().sorts(|a, b, _| named(&a.name, &b.name)),
    column("spark", "GPU utilization over time", |run| Shown::Spark(run.spark.clone())).left().usual(),
    column("use", "mean", |run| Shown::Strong(figure(run.figures.utilization.map(f64::round), "%")))
        .usual()
        .sorts(|a, b, _| largest(a.figures.utilization, b.figures.utilization)),
    column("lasted", "lasted", |run| Shown::Lasted(run.began, run.ended))
        .usual()
        .sorts(|a, b, now| b.lasted(now).cmp(&a.lasted(now))),
    column("ranks", "ranks", |run| {
        let ranks = if run.ranks > 0 { run.ranks.to_string() } else { "–".into() };
        Shown::Titled(ranks, where_it_ran(run))
    })
    .usual()
    .sorts(|a, b, _| b.ranks.cmp(&a.ranks)),
    column("gpu_hours", "GPU-h", |run| Shown::Words(figure(run.figures.gpu_hours, "")))
        .usual()
        .sorts(|a, b, _| largest(a.figures.gpu_hours, b.figures.gpu_hours)),
    column("energy", "GPU energy", |run| {
        let (number, unit) = energy(&run.figures);
        Shown::Words(format!("{number} {unit}"))
    })
    .usual()
    .sorts(|a, b, _| largest(a.figures.energy_kwh, b.figures.energy_kwh)),
    column("idle", "idle", |run| Shown::Idle(run.figures.idle))
        .usual()
        .sorts(|a, b, _| largest(a.figures.idle, b.figures.idle)),
    column(BEGAN, "began", |run| Shown::At(run.began)).usual().sorts(|a, b, _| b.began.cmp(&a.began)),
    column("ended", "ended", |run| run.ended.map_or_else(|| Shown::Words("now".into()), Shown::At))
        .sorts(|a, b, _| b.ended.unwrap_or(i64::MAX).cmp(&a.ended.unwrap_or(i64::MAX))),
    column("user", "who", |run| plain(&run.user)).left().sorts(|a, b, _| named(&a.user, &b.user)),
    column("project", "project", |run| plain(&run.project)).left().sorts(|a, b, _| named(&a.project, &b.project)),
    column("group", "group", |run| plain(&run.group)).left().sorts(|a, b, _| named(&a.group, &b.group)),
    column("type", "type", |run| plain(&run.job_type)).left().sorts(|a, b, _| named(&a.job_type, &b.job_type)),
    column("how", "state", |run| plain(&run.sentence)).left(),
    column("failure", "failure", |run| plain(run.failure_words()))
        .left()
        .sorts(|a, b, _| named(a.failure_words(), b.failure_words())),
    column("where", "where", |run| plain(&run.hosts.join(", "))).left(),
    column("tags", "tags", |run| {
        let tag = |(name, value): &(String, String)| match value.is_empty() {
            true => name.clone(),
            false => format!("{name}={value}"),
        };
        plain(&run.tags.iter().map(tag).collect::<Vec<_>>().join(", "))
    })
    .left(),
    column("gpus", "GPUs", |run| Shown::Titled(figure(run.figures.gpus, ""), run.gpu_models.join(", ")))
        .sorts(|a, b, _| largest(a.figures.gpus, b.figures.gpus)),
    column("memory", "peak memory", |run| Shown::Words(size(run.figures.memory_peak)))
        .sorts(|a, b, _| largest(a.figures.memory_peak, b.figures.memory_peak)),
    column("cost", "cost", |run| {
        Shown::Words(figure(run.figures.cost.map(|cost| (cost * 100.0).round() / 100.0), &run.figures.currency))
    })
    .sorts(|a, b, _| largest(a.figures.cost, b.figures.cost)),
    column("coverage", "measured", |run| Shown::Words(percent(run.figures.coverage)))
        .sorts(|a, b, _| largest(a.figures.coverage, b.figures.coverage)),
];

/// The columns in an address, in order; the default ones if it has no known column. The name is always included.
pub fn chosen(names: &str) -> Vec<&'static RunColumn> {
    let find = |name: &str| COLUMNS.iter().find(|column| column.id == name);
    let mut own: Vec<&RunColumn> = Vec::new();
    for column in names.split(',').filter_map(find) {
        if !own.iter().any(|known| known.id == column.id) {
            own.push(column);
        }
    }
    if own.is_empty() {
        return COLUMNS.iter().filter(|column| column.usual).collect();
    }
    if !own.iter().any(|column| column.id == NAME) {
        own.insert(0, find(NAME).expect("a column of the table above"));
    }
    own
}

/// The text for the address after a column is added at the end, or removed; empty for the default ones.
pub fn toggled(names: &str, id: &str) -> String {
    let mut own: Vec<&str> = chosen(names).iter().map(|column| column.id).collect();
    match own.iter().position(|known| *known == id) {
        Some(at) => drop(own.remove(at)),
        None => own.push(id),
    }
    let usual = COLUMNS.iter().filter(|column| column.usual).map(|column| column.id);
    if own.iter().copied().eq(usual) { String::new() } else { own.join(",") }
}

/// Sorts by a column; a leading `-` reverses the order.
pub fn sort(runs: &mut [Listed], by: &str, now: i64) {
    let (by, turned) = by.strip_prefix('-').map_or((by, false), |by| (by, true));
    let order = |by: &str| COLUMNS.iter().find(|column| column.id == by).and_then(|column| column.order);
    let order = order(by).or_else(|| order(BEGAN)).expect("the list sorts by its begin");
    charts::order::sort_by(runs, |a, b| order(a, b, now));
    if turned {
        runs.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &str) -> Vec<&'static str> {
        chosen(names).iter().map(|column| column.id).collect()
    }

    #[test]
    fn columns_are_those_of_the_address_and_the_name_is_always_there() {
        assert_eq!(ids("").len(), 10);
        assert_eq!(ids("user,use,nothing,use"), ["name", "user", "use"]);
        assert_eq!(ids("use,name"), ["use", "name"]);
        assert_eq!(ids("nothing"), ids(""));
        let with = toggled("", "user");
        assert!(with.ends_with(",began,user") && toggled(&with, "user").is_empty(), "{with}");
        assert_eq!(toggled("name,use", "use"), "name");
    }

    #[test]
    fn a_column_has_a_name_of_its_own() {
        for (at, one) in COLUMNS.iter().enumerate() {
            assert!(COLUMNS[..at].iter().all(|other| other.id != one.id), "{}", one.id);
        }
    }
}
