//! Spans in which no series has a sample, and limits that hold in a span.

use crate::store::source::{Members, Source};
use crate::store::trace::Trace;
use crate::store::{Store, reading};
use charts::Limit;
use charts::reduce::Column;
use shared::series::SeriesId;

/// Finds the spans from `from` to `to` in which none of the series has a sample although one had before. `cadence` is
/// the time in ms between the samples of the sparsest series. `seen` are the columns of each series within the span.
pub fn find(
    source: &Source,
    (traces, seen): (&[(SeriesId, &Trace)], &[&[Column]]),
    (from, to): (i64, i64),
    cadence: i64,
) -> Vec<(i64, i64)> {
    let mut all = vec![(i64::MIN, i64::MAX)];
    for ((id, trace), columns) in traces.iter().zip(seen) {
        let mut gaps = Vec::new();
        let mut last = i64::MIN;
        if columns.first().is_none_or(|c| !c.joined) {
            // A trace of days has a recent earlier column, or none is known.
            let earlier = || trace.columns().iter().rev().map(|c| c.last_t).find(|t| *t < from);
            last = if trace.is_of_days() { earlier() } else { source.last_before(*id, from) }.unwrap_or(last);
        }
        for c in *columns {
            if !c.joined {
                gaps.push((last, c.first_t));
            }
            last = c.last_t;
        }
        if last == i64::MIN || to - last > cadence * 2 {
            gaps.push((last, to));
        }
        all = overlap(&all, &gaps);
        if all.is_empty() {
            break;
        }
    }
    all.retain(|gap| gap.0 > i64::MIN && gap.1 <= to);
    all
}

/// The span from `from` on for which the server has no data of these series: up to their first sample. None while that
/// is unknown, if there is no sample at all, and if the span is too short to be visible.
pub fn before(
    source: &Source,
    (traces, seen): (&[(SeriesId, &Trace)], &[&[Column]]),
    (from, to): (i64, i64),
    cadence: i64,
) -> Option<(i64, i64)> {
    let first = seen.iter().filter_map(|columns| columns.first()).map(|c| c.first_t).min()?;
    let earlier = |(id, trace): &(SeriesId, &Trace)| match trace.is_of_days() {
        true => trace.columns().first().is_some_and(|c| c.first_t < from),
        false => source.last_before(*id, from).is_some(),
    };
    let wide = first - from > (cadence * 3).max((to - from) / 200);
    (wide && source.has_all(from, first, (from, to)) && !traces.iter().any(earlier)).then_some((from, first))
}

/// The overlap of two lists of spans. Each list is in order of time.
fn overlap(a: &[(i64, i64)], b: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        let (from, to) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if from < to {
            out.push((from, to));
        }
        if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
    }
    out
}

/// The limits of a chart. Their text is the name only. A single limit, or equal limits of several instances, are listed
/// once and without an instance.
pub fn limits(source: &Source, store: &Store, members: &Members, to: i64) -> Vec<Limit> {
    // A limit holds until a newer value is known.
    let to = to.min(source.last_t().unwrap_or(to));
    let mut list: Vec<Limit> = Vec::new();
    for id in &members.limits {
        let Some(value) = reading::at(source, &store.catalog, *id, to) else { continue };
        let def = &source.defs[*id as usize];
        if value <= 0.0 {
            continue;
        }
        let same = list.iter().position(|l| l.value == value);
        // The part of the label's template after the instance.
        let after = store.catalog.metric(def).and_then(|m| m.label.rsplit_once("} "));
        let text = match after.filter(|_| same.is_some() || members.limits.len() == 1) {
            Some((_, text)) => text.to_string(),
            None => store.catalog.label(def),
        };
        match same {
            Some(i) => list[i].text = text,
            None => list.push(Limit { value, text }),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_the_chart_is_one_of_all_its_series() {
        assert_eq!(overlap(&[(0, 10), (20, 30)], &[(5, 25)]), [(5, 10), (20, 25)]);
        assert_eq!(overlap(&[(0, 10)], &[]), []);
    }
}
