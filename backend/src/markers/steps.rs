//! How fast a training job goes, by the markers that carry a step.

use super::marker::Marker;
use super::{MAX_READ, between};
use crate::live::Live;
use shared::wire::Source;
use std::sync::Arc;

/// Where a training job stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// The newest step that a marker names.
    pub step: u64,
    /// Steps a second since the first marker of this stretch; None with one marker alone.
    pub per_second: Option<f64>,
}

/// The steps of a run, by its markers between two times, milliseconds since the Unix epoch. It may read the disk.
pub fn of_run(live: &Live, sources: &[Arc<Source>], run: &str, span: (i64, i64)) -> Option<Steps> {
    let fits = |marker: &Marker| marker.step.is_some() && marker.run.as_deref() == Some(run);
    let of = |source: &Arc<Source>| between(live, source.id, span, MAX_READ, fits);
    let all = sources.iter().flat_map(of).filter_map(|(_, t, marker)| Some((marker.rank, t, marker.step?)));
    steps(all.collect())
}

/// Where several ranks name their steps, those of the lowest count: the others go in step with it. A step that is lower than
/// the one before begins a new stretch, as a job does that goes on from a checkpoint.
fn steps(mut all: Vec<(Option<u32>, i64, u64)>) -> Option<Steps> {
    let lowest = all.iter().map(|(rank, ..)| *rank).min()?;
    all.retain(|(rank, ..)| *rank == lowest);
    all.sort_by_key(|(_, t, _)| *t);
    let begin = all.windows(2).rposition(|pair| pair[1].2 < pair[0].2).map_or(0, |at| at + 1);
    let ((_, from, first), (_, to, last)) = (all.get(begin)?, all.last()?);
    let per_second = (to > from).then(|| (last - first) as f64 * 1_000.0 / (to - from) as f64);
    Some(Steps { step: *last, per_second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_a_second_are_those_of_one_rank_since_it_went_on() {
        assert_eq!(steps(Vec::new()), None);
        assert_eq!(steps(vec![(None, 5, 9)]), Some(Steps { step: 9, per_second: None }));
        let all = vec![
            (Some(1), 0, 7),
            (Some(0), 4_000, 140),
            (Some(0), 0, 500),
            (Some(0), 2_000, 100),
            (Some(1), 9_000, 900),
        ];
        assert_eq!(steps(all), Some(Steps { step: 140, per_second: Some(20.0) }));
    }
}
