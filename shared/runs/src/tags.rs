//! Tags as they were spelled become series of the catalogue, in its units; labels become machines.

use super::{Damage, ImportError, Raw, Recorded, RecordedSource, Series};
use shared::catalog::{Catalog, Draw, wandb};
use shared::series::SeriesDef;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most machines that are taken from one file.
const MOST_MACHINES: usize = 10_000;
/// Letters of a name that a note shows at most.
const LETTERS: usize = 80;

/// A machine: the run's or file's name for it, and the label of a writer.
type Key = (String, Option<String>);

/// One spelling that the catalogue knows.
struct Known {
    key: Key,
    def: SeriesDef,
    spelling: String,
    samples: Vec<(i64, f64)>,
}

/// Makes series of what a file said; `name` stands for a machine that it does not name.
pub fn assemble(mut raw: Raw, name: &str, mut catalog: Catalog) -> Result<Recorded, ImportError> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for Series { source, tag: spelling, samples } in std::mem::take(&mut raw.series) {
        match catalog.known(&spelling) {
            Some(found) => known.push(Known {
                key: (source, found.label),
                def: SeriesDef { metric: found.metric, instance: found.instance },
                spelling,
                samples,
            }),
            None => unknown.push(spelling),
        }
    }
    if known.is_empty() {
        let what = if unknown.is_empty() {
            "no reading of a machine".into()
        } else {
            format!("no known tag ({})", list(unknown))
        };
        let damage = damage(&raw.damages).map(|d| format!(": {d}")).unwrap_or_default();
        return Err(ImportError::Unknown(format!("there is {what} in the file{damage}")));
    }
    // W&B passes on what DCGM's exporter says as it is, and only there has energy this name.
    let exported: HashSet<Key> =
        known.iter().filter(|k| wandb::of_exporter(&k.spelling)).map(|k| k.key.clone()).collect();
    let mut machines: BTreeMap<Key, HashMap<SeriesDef, Vec<(i64, f64)>>> = BTreeMap::new();
    // The same order every time: of two spellings of one series the first wins where both have a sample.
    known.sort_by(|a, b| a.spelling.cmp(&b.spelling));
    for Known { key, def, spelling, samples } in known {
        let largest = samples.iter().map(|(_, v)| v.abs()).fold(0.0, f64::max);
        let (times, over) = wandb::factor(&spelling, raw.version, largest, exported.contains(&key));
        let samples = samples.into_iter().map(|(t, v)| (t, v * times / over));
        machines.entry(key).or_default().entry(def).or_default().extend(samples);
    }
    let mut notes = std::mem::take(&mut raw.notes);
    notes.extend(damage(&raw.damages));
    if raw.samples >= super::MOST {
        notes.push(format!("only the first {} samples were taken; import a shorter stretch", super::MOST));
    }
    if raw.left_out > 0 {
        let most = super::MOST_SERIES;
        notes.push(format!(
            "{} samples are left out: of more than {most} series, or of tags that are too long",
            raw.left_out
        ));
    }
    if machines.len() > MOST_MACHINES {
        notes.push(format!("only the first {MOST_MACHINES} of {} machines are taken", machines.len()));
    }
    if !unknown.is_empty() {
        let n = unknown.len();
        let (tags, are) = if n == 1 { ("tag is", "is") } else { ("tags are", "are") };
        notes.push(format!("{n} {tags} not known and {are} left out: {}", list(unknown)));
    }
    let host = raw.host.clone().unwrap_or_else(|| name.to_string());
    let single = machines.len() == 1;
    show_alone(&mut catalog, machines.values().flat_map(HashMap::keys));
    let sources = machines.into_iter().take(MOST_MACHINES).map(|((source, label), series)| {
        let name = match (source.as_str(), label) {
            ("", None) => host.clone(),
            ("", Some(label)) => label,
            (source, None) => source.to_string(),
            (source, Some(label)) => format!("{source}, {label}"),
        };
        let facts = if single { raw.facts.clone() } else { Vec::new() };
        machine(name, facts, series)
    });
    Ok(Recorded { catalog, sources: sources.collect(), about: raw.facts.clone(), notes })
}

/// Rows that stay hidden beside what draws their chart better are drawn where a file has nothing better: W&B's memory
/// in use is the only one that its files know.
fn show_alone<'a>(catalog: &mut Catalog, series: impl Iterator<Item = &'a SeriesDef>) {
    let rows: HashSet<u16> = series.map(|def| def.metric).collect();
    let of = |draw: Draw| catalog.metrics.iter().enumerate().filter(move |(_, metric)| metric.draw == draw);
    let there = |row: &usize| u16::try_from(*row).is_ok_and(|row| rows.contains(&row));
    let drawn: HashSet<&str> = of(Draw::Line).filter(|(row, _)| there(row)).map(|(_, m)| m.chart.as_str()).collect();
    let alone =
        of(Draw::Hidden).filter(|(row, m)| there(row) && !m.chart.is_empty() && !drawn.contains(m.chart.as_str()));
    let alone: Vec<usize> = alone.map(|(row, _)| row).collect();
    alone.into_iter().for_each(|row| catalog.metrics[row].draw = Draw::Line);
}

fn machine(name: String, facts: Vec<(String, String)>, series: HashMap<SeriesDef, Vec<(i64, f64)>>) -> RecordedSource {
    let mut series: Vec<(SeriesDef, Vec<(i64, f64)>)> = series.into_iter().collect();
    // Numbers by their size: GPU 10 stands behind GPU 9.
    series.sort_by_cached_key(|(def, _)| (def.metric, def.instance.parse::<u64>().ok(), def.instance.clone()));
    for (_, samples) in &mut series {
        samples.sort_by_key(|(t, _)| *t);
        samples.dedup_by_key(|(t, _)| *t);
    }
    let mut usual: Vec<i64> = series.iter().filter_map(|(_, samples)| spacing(samples)).collect();
    let interval = middle(&mut usual).unwrap_or(1000).max(1);
    RecordedSource { name, interval, facts, series }
}

/// The usual distance between two samples.
fn spacing(samples: &[(i64, f64)]) -> Option<i64> {
    middle(&mut samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect::<Vec<_>>())
}

fn middle(all: &mut [i64]) -> Option<i64> {
    let half = all.len() / 2;
    (!all.is_empty()).then(|| *all.select_nth_unstable(half).1)
}

fn damage(damages: &[Damage]) -> Option<String> {
    let first = damages.iter().map(|d| d.at).min()?;
    let bytes: u64 = damages.iter().map(|d| d.bytes).sum();
    let n = damages.len();
    let places = if n == 1 { "1 place is".to_string() } else { format!("{n} places are") };
    Some(format!("{places} damaged, the first at byte {first}; {bytes} bytes were passed over, the rest is sound"))
}

/// The first of them by name.
fn list(mut names: Vec<String>) -> String {
    names.sort();
    let more = names.len().saturating_sub(5);
    names.truncate(5);
    let short = |name: String| match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name,
    };
    let text = names.into_iter().map(short).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}
