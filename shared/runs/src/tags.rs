//! Tags as they were spelled become series of the catalogue, in its units; labels become machines.

use super::{Damage, ImportError, Raw, Recorded, RecordedSource};
use shared::catalog::{Catalog, wandb};
use shared::series::SeriesDef;
use std::collections::{BTreeMap, HashMap};

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
pub fn assemble(mut raw: Raw, name: &str, catalog: Catalog) -> Result<Recorded, ImportError> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for ((source, spelling), samples) in std::mem::take(&mut raw.series) {
        match catalog.find(&spelling) {
            Ok(found) => known.push(Known {
                key: (source, found.label),
                def: SeriesDef { metric: found.metric, instance: found.instance },
                spelling,
                samples,
            }),
            Err(_) => unknown.push(spelling),
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
    let exported: Vec<Key> = known.iter().filter(|k| wandb::of_exporter(&k.spelling)).map(|k| k.key.clone()).collect();
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
    if !unknown.is_empty() {
        let n = unknown.len();
        let (tags, are) = if n == 1 { ("tag is", "is") } else { ("tags are", "are") };
        notes.push(format!("{n} {tags} not known and {are} left out: {}", list(unknown)));
    }
    let host = raw.host.clone().unwrap_or_else(|| name.to_string());
    let single = machines.len() == 1;
    let sources = machines.into_iter().map(|((source, label), series)| {
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
    let text = names.join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}
