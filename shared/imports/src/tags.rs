//! Turns tags as they are spelled in a file into series of the catalog, in its units, and labels into machines.

use super::{Damage, ImportError, Raw, Recorded, RecordedSource, Series};
use shared::catalog::{Catalog, Draw, wandb};
use shared::series::SeriesDef;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Largest number of machines that are taken from one file.
const MAX_MACHINES: usize = 10_000;
/// Largest number of characters of a name that a note shows.
const MAX_NAME_CHARS: usize = 80;

/// A machine: the name of its run or file, and the label of a writer.
type Key = (String, Option<String>);

/// The samples of a spelling that the catalog knows.
struct KnownTag {
    key: Key,
    def: SeriesDef,
    spelling: String,
    samples: Vec<(i64, f64)>,
}

/// Turns the content of a file into series. `name` is used for a machine that the file does not name.
pub fn assemble(mut raw: Raw, name: &str, mut catalog: Catalog) -> Result<Recorded, ImportError> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for Series { source, tag: spelling, samples } in std::mem::take(&mut raw.series) {
        match catalog.known(&spelling) {
            Some(found) => known.push(KnownTag {
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
    // W&B passes on the values of the DCGM exporter unchanged. Only this exporter has energy under this name.
    let exported: HashSet<Key> =
        known.iter().filter(|k| wandb::of_exporter(&k.spelling)).map(|k| k.key.clone()).collect();
    let mut machines: BTreeMap<Key, HashMap<SeriesDef, Vec<(i64, f64)>>> = BTreeMap::new();
    // Sorting makes the result the same every time. When two spellings of a series have a sample at the same time, the
    // first spelling wins.
    known.sort_by(|a, b| a.spelling.cmp(&b.spelling));
    for KnownTag { key, def, spelling, samples } in known {
        let largest = samples.iter().map(|(_, v)| v.abs()).fold(0.0, f64::max);
        let (times, over) = wandb::factor(&spelling, raw.version, largest, exported.contains(&key));
        let samples = samples.into_iter().map(|(t, v)| (t, v * times / over));
        machines.entry(key).or_default().entry(def).or_default().extend(samples);
    }
    let mut notes = std::mem::take(&mut raw.notes);
    notes.extend(damage(&raw.damages));
    if raw.samples >= super::MAX_SAMPLES {
        notes.push(format!("only the first {} samples were taken; import a shorter stretch", super::MAX_SAMPLES));
    }
    if raw.left_out > 0 {
        let most = super::MAX_SERIES;
        notes.push(format!(
            "{} samples are left out: of more than {most} series, or of tags that are too long",
            raw.left_out
        ));
    }
    if machines.len() > MAX_MACHINES {
        notes.push(format!("only the first {MAX_MACHINES} of {} machines are taken", machines.len()));
    }
    if !unknown.is_empty() {
        let n = unknown.len();
        let (tags, are) = if n == 1 { ("tag is", "is") } else { ("tags are", "are") };
        notes.push(format!("{n} {tags} not known and {are} left out: {}", list(unknown)));
    }
    let host = raw.host.clone().unwrap_or_else(|| name.to_string());
    let single = machines.len() == 1;
    show_alone(&mut catalog, machines.values().flat_map(HashMap::keys));
    let sources = machines.into_iter().take(MAX_MACHINES).map(|((source, label), series)| {
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

/// Draws hidden rows whose chart would otherwise be empty. For example, the only memory figure in W&B's files is a row
/// that is hidden if a better one exists.
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
    // Numbers are sorted by value, so that GPU 10 comes after GPU 9.
    series.sort_by_cached_key(|(def, _)| (def.metric, def.instance.parse::<u64>().ok(), def.instance.clone()));
    for (_, samples) in &mut series {
        samples.sort_by_key(|(t, _)| *t);
        samples.dedup_by_key(|(t, _)| *t);
    }
    let mut usual: Vec<i64> = series.iter().filter_map(|(_, samples)| spacing(samples)).collect();
    let interval = middle(&mut usual).unwrap_or(1000).max(1);
    RecordedSource { name, interval, facts, series }
}

/// The median time between two samples in ms; None for fewer than two samples.
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

/// The first five names, and the number of the others.
fn list(mut names: Vec<String>) -> String {
    names.sort();
    let more = names.len().saturating_sub(5);
    names.truncate(5);
    let short = |name: String| match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name,
    };
    let text = names.into_iter().map(short).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}
