//! Changes on a machine between two spans: the comparison of the page's panel, over stored data.

use shared::catalog::{Kind, Metric};
use shared::changed::{Moved, compare};
use shared::finding::{Change, Finding};
use shared::rollup::rate;
use shared::series::{SeriesDef, SeriesId};
use shared::wire::SourceId;
use std::collections::BTreeSet;
use stream::live::Live;
use stream::store::Snapshot;

/// Maximum number of changes in a finding.
const MAX_OF_FINDING: usize = 5;

/// Length of the comparison span before the onset of a finding, milliseconds.
const BEFORE_MS: i64 = 5 * 60_000;

/// A series that changed within this time before the onset changed first, milliseconds.
const EARLY_MS: i64 = 60_000;

/// Number of series read together.
const AT_ONCE: usize = 64;

/// Maximum number of a finding's machines that are read: further ones changed like these.
const MAX_MACHINES: usize = 8;

type Compared = (SeriesId, SeriesDef, Metric);

/// Two adjacent spans, milliseconds: from the first to the second is before, to the third is after.
#[derive(Clone, Copy, Debug)]
pub struct Spans {
    #[allow(missing_docs, reason = "see above")]
    pub from: i64,
    #[allow(missing_docs, reason = "see above")]
    pub middle: i64,
    #[allow(missing_docs, reason = "see above")]
    pub to: i64,
}

/// The series of a machine for which `wants` returns true and that differ between two spans, largest difference first.
/// It reads the disk.
pub fn changes(live: &Live, source: SourceId, spans: Spans, wants: impl Fn(&Metric) -> bool) -> Vec<Change> {
    let (name, interval, wanted, snapshot) = {
        let store = live.store();
        let Some((about, _)) = store.source(source) else { return Vec::new() };
        let all = store.series(source, 0).iter().enumerate();
        let wanted: Vec<Compared> = all
            .filter_map(|(id, def)| {
                let metric = store.catalog().metric(def).filter(|metric| !metric.chart.is_empty() && wants(metric))?;
                Some((id as SeriesId, def.clone(), metric.clone()))
            })
            .collect();
        (about.name.clone(), about.interval, wanted, store.snapshot(source, spans.from, spans.to))
    };
    let Some(snapshot) = snapshot else { return Vec::new() };
    let mut found: Vec<Change> =
        wanted.chunks(AT_ONCE).flat_map(|some| of_some((&name, interval), some, &snapshot, spans)).collect();
    found.sort_by(|a, b| b.first.cmp(&a.first).then(b.score.total_cmp(&a.score)));
    found
}

fn of_some((name, interval): (&str, i64), some: &[Compared], snapshot: &Snapshot, spans: Spans) -> Vec<Change> {
    let ids: Vec<SeriesId> = some.iter().map(|(id, ..)| *id).collect();
    let one = |((_, def, metric), samples): (&Compared, Vec<(i64, f64)>)| {
        let samples = match metric.kind {
            Kind::Counter => rate(samples, interval * 3 / 2).collect(),
            _ => samples,
        };
        let place = |t: i64| samples.partition_point(|sample| sample.0 < t);
        let (early, middle) = (place(spans.middle - EARLY_MS), place(spans.middle));
        let values = |samples: &[(i64, f64)]| samples.iter().map(|(_, value)| *value).collect::<Vec<f64>>();
        let Moved { score, values: (before, after), .. } =
            compare([values(&samples[..middle]), values(&samples[middle..])])?;
        let (tag, instance) = (metric.tag.clone(), def.instance.clone());
        let first = compare([values(&samples[..early]), values(&samples[early..middle])]).is_some();
        Some(Change { source: name.into(), tag, instance, before, after, score, first })
    };
    some.iter().zip(snapshot.samples(&ids)).filter_map(one).collect()
}

/// Adds the other changes at its onset to a finding: on its machines, without the rule's own series. It reads the disk.
pub(super) fn explain(live: &Live, finding: &mut Finding) {
    let since = finding.since * 1000;
    let spans = Spans { from: since - BEFORE_MS, middle: since, to: finding.told * 1000 };
    let sources = live.store().sources();
    let of = |name: &str| sources.iter().find(|source| source.name == name).map(|source| source.id);
    let mut all: Vec<Change> = Vec::new();
    for place in finding.subject.iter().take(MAX_MACHINES) {
        let Some(source) = of(&place.source) else { continue };
        let read = |metric: &Metric| finding.evidence.iter().any(|evidence| evidence.tag == metric.tag);
        all.extend(changes(live, source, spans, |metric| !read(metric)));
    }
    all.sort_by(|a, b| b.first.cmp(&a.first).then(b.score.total_cmp(&a.score)));
    // The device with the largest change stands for all devices of a tag.
    let mut told = BTreeSet::new();
    all.retain(|change| told.insert(change.tag.clone()));
    all.truncate(MAX_OF_FINDING);
    finding.changed = all;
}
