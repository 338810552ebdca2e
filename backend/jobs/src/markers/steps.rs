//! Speed of a training job, from markers with a step.

use super::{MAX_READ, between};
use shared::answer::markers::Marker;
use shared::wire::Source;
use std::sync::Arc;
use stream::live::Live;

/// Progress of a training job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// The newest step that a marker names.
    pub step: u64,
    /// Steps per second since the first marker of this stretch; None with a single marker.
    pub per_second: Option<f64>,
}

/// Time and step of a run's markers between two times, milliseconds since the Unix epoch, sorted by time. It may read
/// the disk.
///
/// If several ranks name their steps, the lowest rank counts: the others run in step with it.
pub fn read_steps(live: &Live, sources: &[Arc<Source>], run: &str, span: (i64, i64)) -> Vec<(i64, u64)> {
    let fits = |marker: &Marker| marker.step.is_some() && marker.run.as_deref() == Some(run);
    let of = |source: &Arc<Source>| between(live, source.id, span, MAX_READ, fits);
    let all = sources.iter().flat_map(of).filter_map(|(_, t, marker)| Some((marker.rank, t, marker.step?)));
    of_lowest(all.collect())
}

fn of_lowest(mut all: Vec<(Option<u32>, i64, u64)>) -> Vec<(i64, u64)> {
    let Some(lowest) = all.iter().map(|(rank, ..)| *rank).min() else { return Vec::new() };
    all.retain(|(rank, ..)| *rank == lowest);
    let mut told: Vec<(i64, u64)> = all.into_iter().map(|(_, t, step)| (t, step)).collect();
    told.sort_unstable();
    told
}

/// The newest step at the end of each of `points` columns of `step` milliseconds from `from` on; None before the first
/// marker and after the last.
pub fn line(told: &[(i64, u64)], from: i64, step: i64, points: usize) -> Vec<Option<f64>> {
    let last = told.last().map_or(i64::MIN, |(t, _)| *t);
    let mut rest = told.iter().peekable();
    let mut now = None;
    let mut column = |at: usize| {
        let begin = from + at as i64 * step;
        while let Some((_, newest)) = rest.next_if(|(t, _)| *t < begin + step) {
            now = Some(*newest as f64);
        }
        now.filter(|_| begin <= last)
    };
    (0..points).map(&mut column).collect()
}

/// Progress of a job. A lower step than the one before begins a new stretch, as when a job resumes from a checkpoint.
pub fn steps(all: &[(i64, u64)]) -> Option<Steps> {
    let begin = all.windows(2).rposition(|pair| pair[1].1 < pair[0].1).map_or(0, |at| at + 1);
    let ((from, first), (to, last)) = (all.get(begin)?, all.last()?);
    let per_second = (to > from).then(|| (last - first) as f64 * 1_000.0 / (to - from) as f64);
    Some(Steps { step: *last, per_second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_a_second_are_those_of_one_rank_since_it_went_on() {
        assert_eq!(steps(&of_lowest(Vec::new())), None);
        assert_eq!(steps(&of_lowest(vec![(None, 5, 9)])), Some(Steps { step: 9, per_second: None }));
        let all = vec![
            (Some(1), 0, 7),
            (Some(0), 4_000, 140),
            (Some(0), 0, 500),
            (Some(0), 2_000, 100),
            (Some(1), 9_000, 900),
        ];
        assert_eq!(steps(&of_lowest(all)), Some(Steps { step: 140, per_second: Some(20.0) }));
    }

    #[test]
    fn a_line_of_steps_holds_the_newest_and_ends_with_the_last() {
        let told = [(1_500, 10), (3_100, 20), (3_900, 30)];
        assert_eq!(line(&told, 0, 1_000, 6), [None, Some(10.0), Some(10.0), Some(30.0), None, None]);
        assert_eq!(line(&[], 0, 1_000, 2), [None, None]);
    }
}
