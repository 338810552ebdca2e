//! Spans without a sample of any series, and limits that hold in a span.

use crate::store::source::{Members, Source};
use crate::store::trace::Trace;
use crate::store::{Store, reading};
use charts::Limit;

/// Spans from `from` to `to` in which none of the series has a sample. `interval` is the time between samples, ms.
pub fn find<'a>(traces: impl Iterator<Item = &'a Trace>, from: i64, to: i64, interval: i64) -> Vec<(i64, i64)> {
    let mut all: Option<Vec<(i64, i64)>> = None;
    for trace in traces {
        let columns = trace.within(from, to);
        let mut gaps: Vec<(i64, i64)> =
            columns.windows(2).filter(|w| !w[1].joined).map(|w| (w[0].last_t, w[1].first_t)).collect();
        let before = trace.columns().iter().rev().find(|c| c.last_t < from);
        if let (Some(first), Some(before)) = (columns.first().filter(|c| !c.joined), before) {
            gaps.insert(0, (before.last_t, first.first_t));
        }
        match columns.last().or(before) {
            Some(last) if to - last.last_t > interval * 2 => gaps.push((last.last_t, to)),
            _ => {}
        }
        all = Some(match all {
            None => gaps,
            Some(others) => overlap(&others, &gaps),
        });
    }
    all.unwrap_or_default()
}

/// What two lists of spans, each in order, have in common.
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

/// Limits with the name alone as their text. Equal ones of several instances stand there once, without an instance.
pub fn limits(source: &Source, store: &Store, members: &Members, to: i64) -> Vec<Limit> {
    // They hold as long as nothing newer is known.
    let to = to.min(source.last_t().unwrap_or(to));
    let mut list: Vec<Limit> = Vec::new();
    for id in &members.limits {
        let Some(value) = reading::at(source, &store.catalog, *id, to) else { continue };
        let def = &source.defs[*id as usize];
        if value <= 0.0 {
            continue;
        }
        match list.iter_mut().find(|l| l.value == value) {
            // What the template says behind the instance.
            Some(same) => {
                let after = store.catalog.metric(def).and_then(|m| m.label.rsplit_once("} "));
                same.text = after.map_or_else(|| same.text.clone(), |(_, text)| text.to_string());
            }
            None => list.push(Limit { value, text: store.catalog.label(def) }),
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
