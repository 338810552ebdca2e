//! Positions of the names and values of lines at the right edge. A label is at the height of its line, and lines that
//! are close together share one. Values change every second, so the order and the grouping of labels change only after
//! a clear move of the values.

use crate::frame::Hue;

/// The name and value of a series at the shown instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Name of the series; empty when it is the only series.
    pub name: String,
    /// Value in base units; NaN if there is none, which `text` then shows.
    pub value: f64,
    /// The value as it is written on the chart.
    pub text: String,
    /// Color of the series.
    pub hue: Hue,
    /// False when the series is hidden, or when another series is highlighted.
    pub bright: bool,
}

/// A label on a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelPlace {
    /// The series that the label names, as positions in the list of labels.
    pub series: Vec<usize>,
    /// Middle of the label in CSS pixels from the top.
    pub y: f64,
}

/// The space for labels, in units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Middle of the highest label that has space.
    pub top: i32,
    /// Middle of the lowest label that has space.
    pub bottom: i32,
    /// Least distance between the middles of two labels.
    pub pitch: i32,
}

/// The order of labels changes when two of them have changed places by more than this share of the axis.
const REORDER_AXIS_SHARE: f64 = 0.05;
/// Lines within this many pitches share one label.
const JOIN_PITCHES: f64 = 1.0;
/// Lines with a shared label keep it until they are this many pitches apart.
const PART_PITCHES: f64 = 1.6;

/// Positions of labels from the largest value to the smallest; those without a value are last. The order `before` is
/// kept while it is nearly right; `span` is the height of the axis.
pub(crate) fn ordered(labels: &[Label], span: f64, before: &[LabelPlace]) -> Vec<usize> {
    let mut order: Vec<usize> = before.iter().flat_map(|place| place.series.iter().copied()).collect();
    let known = order.len() == labels.len() && (0..labels.len()).all(|i| order.contains(&i));
    let value = |i: usize| if labels[i].value.is_finite() { labels[i].value } else { f64::NEG_INFINITY };
    let right = |order: &[usize]| {
        let mut least = f64::INFINITY;
        order.iter().all(|i| {
            let fits = value(*i) <= least + span * REORDER_AXIS_SHARE;
            least = least.min(value(*i));
            fits
        })
    };
    if !known || !right(&order) {
        order = (0..labels.len()).collect();
        crate::order::sort_by(&mut order, |a, b| value(*b).total_cmp(&value(*a)));
    }
    order
}

/// Joins adjacent labels in an order if their lines are close together. `y` returns the height of a label's line in
/// units.
pub(crate) fn joined(
    order: &[usize],
    labels: &[Label],
    y: impl Fn(&Label) -> i32,
    pitch: i32,
    before: &[LabelPlace],
) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &i in order {
        let label = &labels[i];
        let fits = groups.last().is_some_and(|group| {
            let first = &labels[group[0]];
            let together = before.iter().any(|place| place.series.contains(&i) && place.series.contains(&group[0]));
            let reach = f64::from(pitch) * if together { PART_PITCHES } else { JOIN_PITCHES };
            first.bright == label.bright
                // A marked series keeps its own name.
                && ![first, label].iter().any(|one| matches!(one.hue, Hue::Odd(_)))
                && first.value.is_finite() == label.value.is_finite()
                && f64::from((y(label) - y(first)).abs()) <= reach
        });
        match groups.last_mut() {
            Some(group) if fits => group.push(i),
            _ => groups.push(vec![i]),
        }
    }
    groups
}

/// Moves the heights of texts, given from top to bottom, so that they do not overlap.
pub(crate) fn apart(room: Room, mut ys: Vec<i32>) -> Vec<i32> {
    let pitch = room.pitch.min((room.bottom - room.top) / (ys.len() as i32 - 1).max(1));
    let mut least = room.top;
    for y in &mut ys {
        *y = (*y).max(least);
        least = *y + pitch;
    }
    let mut most = room.bottom;
    for y in ys.iter_mut().rev() {
        *y = (*y).min(most);
        most = *y - pitch;
    }
    ys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<Label> {
        let label = |value: &f64| Label {
            name: String::new(),
            value: *value,
            text: String::new(),
            hue: Hue::Ink,
            bright: true,
        };
        values.iter().map(label).collect()
    }

    fn places(groups: &[&[usize]]) -> Vec<LabelPlace> {
        groups.iter().map(|series| LabelPlace { series: series.to_vec(), y: 0.0 }).collect()
    }

    #[test]
    fn labels_keep_their_order_until_two_have_clearly_changed_places() {
        let start = ordered(&labels(&[98.0, 99.0, f64::NAN, 78.0]), 100.0, &[]);
        assert_eq!(start, [1, 0, 3, 2], "the largest first, what has no value last");
        let before = places(&[&[1], &[0], &[3], &[2]]);
        assert_eq!(ordered(&labels(&[99.5, 98.0, f64::NAN, 78.0]), 100.0, &before), start, "within a twentieth");
        assert_eq!(ordered(&labels(&[99.5, 60.0, f64::NAN, 78.0]), 100.0, &before), [0, 3, 1, 2]);
        // No step is large, but their sum is.
        let rising = labels(&[90.0, 94.0, 98.0]);
        assert_eq!(ordered(&rising, 100.0, &places(&[&[0], &[1], &[2]])), [2, 1, 0]);
        assert_eq!(ordered(&rising, 100.0, &places(&[&[0], &[1]])), [2, 1, 0], "another list of series");
    }

    #[test]
    fn lines_that_lie_together_have_one_label_and_keep_it_for_a_while() {
        let y = |label: &Label| if label.value.is_finite() { (100.0 - label.value) as i32 } else { 100 };
        let seen = labels(&[99.0, 98.0, 97.0, 77.0, f64::NAN]);
        let order = ordered(&seen, 100.0, &[]);
        let groups = joined(&order, &seen, y, 12, &[]);
        assert_eq!(groups, [vec![0, 1, 2], vec![3], vec![4]]);
        let moved = labels(&[99.0, 98.0, 84.0, 77.0, f64::NAN]);
        assert_eq!(joined(&order, &moved, y, 12, &[])[0], [0, 1]);
        assert_eq!(joined(&order, &moved, y, 12, &places(&[&[0, 1, 2], &[3], &[4]]))[0], [0, 1, 2]);
        let mut hidden = labels(&[99.0, 98.0]);
        hidden[1].bright = false;
        assert_eq!(joined(&[0, 1], &hidden, y, 12, &[]).len(), 2, "what is hidden stands alone");
        let mut marked = labels(&[99.0, 98.0, 97.0]);
        marked[1].hue = Hue::Odd(0);
        assert_eq!(joined(&[0, 1, 2], &marked, y, 12, &[]), [vec![0], vec![1], vec![2]], "what is marked has its name");
    }

    #[test]
    fn texts_lie_apart_and_within_the_room() {
        let room = Room { top: 10, bottom: 100, pitch: 14 };
        assert_eq!(apart(room, vec![0, 12, 50, 99, 100]), [10, 24, 50, 86, 100]);
        let many = apart(room, vec![50; 20]);
        assert!(many.windows(2).all(|w| w[1] > w[0]) && many[0] >= 10 && many[19] <= 100, "{many:?}");
    }
}
