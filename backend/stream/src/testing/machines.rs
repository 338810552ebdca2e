//! Two machines over more than two hours, and all of their samples.

use crate::store::{Limits, Store};
use shared::catalog::Catalog;
use shared::series::SeriesDef;
use std::sync::Arc;

/// Samples by machine and tag.
pub type Samples = Vec<(String, String, Vec<(i64, f64)>)>;

/// Time of the first tick, milliseconds since the Unix epoch.
pub const START: i64 = 1_714_566_896_000;

fn def(catalog: &Catalog, tag: &str) -> SeriesDef {
    let found = catalog.find(tag).expect("known");
    SeriesDef { metric: found.metric, instance: found.instance }
}

/// Two machines over more than two hours, with a gap, a series that starts late, and the clock set back once.
///
/// # Panics
/// If the catalog lacks a row of theirs.
pub fn two(catalog: Catalog) -> Store {
    let catalog = Arc::new(catalog);
    let mut store = Store::new(catalog.clone(), Limits { retention: i64::MAX, bytes: usize::MAX });
    for (machine, tags) in
        [("a", ["gpu.0.temp", "cpu", "disk./mnt/x.usageGB"]), ("b", ["cpu", "memory_percent", "network.recv"])]
    {
        let source = store.add_source(machine.into(), 1000, vec![("os".into(), "Linux".into())]);
        let mut t = START;
        for second in 0..8000i64 {
            if second == 300 {
                for tag in tags {
                    store.intern(source, def(&catalog, tag));
                }
            } else if second == 0 {
                store.intern(source, def(&catalog, tags[0]));
            }
            let step = second == 5000;
            t += if step { -60_000 } else { 1000 };
            let known = store.series(source, 0).len();
            let values: Vec<f64> =
                (0..known)
                    .map(|i| {
                        if second % 900 < 10 && i == 1 { f64::NAN } else { (second * 7 % 1000) as f64 + i as f64 / 4.0 }
                    })
                    .collect();
            store.append(source, t, step, &values);
            if second % 900 == 899 {
                store.seal(source);
            }
        }
    }
    store
}

/// All samples by machine and tag; with two of one instant, the first.
///
/// # Panics
/// If a source of the store is missing.
pub fn samples(store: &Store, from: i64, to: i64) -> Samples {
    let mut all = Vec::new();
    for source in store.sources() {
        for (id, def) in store.series(source.id, 0).iter().enumerate() {
            let mut samples = store.snapshot(source.id, from, to).expect("a source").samples(&[id as u32]).remove(0);
            samples.dedup_by_key(|(t, _)| *t);
            all.push((source.name.clone(), store.catalog().tag(def), samples));
        }
    }
    all
}
