//! Long lines in short strokes, wide bands in narrow strips.
//!
//! A browser that rasterises without a GPU takes two to five times as long for one noisy line of 300 points that is wider
//! than a pixel as for the same line in pieces: what a shape costs grows with the points in it times the height that it
//! covers.

/// Width of a strip, device pixels.
const STRIP: f32 = 16.0;
/// A band of fewer columns is quick as it is.
const COLUMNS: usize = 64;
/// Segments of a piece: of 4 to 16, which are much alike, the middle.
const SEGMENTS: usize = 8;

/// Calls `stroke` with the pieces of lines: x and y in turn, and where in `points` each line ends. Pieces meet in the
/// middle of a segment, where one reaches a pixel into the other, so that corners keep their joins and no seam shows: of
/// an opaque line.
pub fn each(points: &[f32], ends: &[usize], mut stroke: impl FnMut(&[f32])) {
    let mut piece: Vec<f32> = Vec::with_capacity(SEGMENTS * 2 + 6);
    let mut start = 0;
    for &end in ends {
        piece.clear();
        for p in points[start..end].chunks_exact(2) {
            if let (true, &[.., x, y]) = (piece.len() > SEGMENTS * 2, &piece[..]) {
                let (dx, dy) = (p[0] - x, p[1] - y);
                piece.extend([x + dx / 2.0, y + dy / 2.0]);
                stroke(&piece);
                let back = 0.5 - (1.0 / dx.hypot(dy).max(2.0));
                piece.clear();
                piece.extend([x + dx * back, y + dy * back]);
            }
            piece.extend(p);
        }
        stroke(&piece);
        start = end;
    }
}

/// Calls `fill` with strips of a band: a shape whose second half goes back under the first. They meet at whole pixels,
/// so that no seam shows however faint the colour is. Any other shape goes over as it is.
pub fn strips(points: &[f32], mut fill: impl FnMut(&[f32])) {
    let (n, len) = (points.len() / 4, points.len());
    let column = |i: usize| [points[i * 2], points[i * 2 + 1], points[len - 1 - i * 2]];
    let under = |i: usize| points[i * 2] == points[len - 2 - i * 2] && (i == 0 || points[i * 2 - 2] <= points[i * 2]);
    if len % 4 != 0 || n < COLUMNS || !(0..n).all(under) {
        return fill(points);
    }
    let mut end = (points[0] / STRIP).floor() * STRIP + STRIP;
    let (mut strip, mut shape) = (Vec::new(), Vec::new());
    let mut send = |strip: &[[f32; 3]]| {
        shape.clear();
        shape.extend(strip.iter().flat_map(|c| [c[0], c[1]]));
        shape.extend(strip.iter().rev().flat_map(|c| [c[0], c[2]]));
        fill(&shape);
    };
    for i in 0..n {
        let c = column(i);
        while c[0] > end {
            let before = column(i - 1);
            let share = (end - before[0]) / (c[0] - before[0]);
            let cut = [0, 1, 2].map(|k| before[k] + (c[k] - before[k]) * share);
            strip.push(cut);
            send(&strip);
            strip.clear();
            strip.push(cut);
            end += STRIP;
        }
        strip.push(c);
    }
    send(&strip);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(line: &[f32]) -> Vec<Vec<f32>> {
        let mut all = Vec::new();
        each(line, &[line.len()], |piece| all.push(piece.to_vec()));
        all
    }

    #[test]
    fn what_is_no_band_stays_as_it_is() {
        let area: Vec<f32> = (0..200).flat_map(|i| [i as f32, 9.0]).chain([199.0, 50.0, 0.0, 50.0]).collect();
        let mut all = Vec::new();
        strips(&area, |strip| all.push(strip.to_vec()));
        assert_eq!(all, [area]);
    }

    #[test]
    fn short_lines_stay_as_they_are() {
        let mut all = Vec::new();
        each(&[0.0, 0.0, 1.0, 1.0, 5.0, 5.0, 6.0, 5.0], &[4, 8], |piece| all.push(piece.to_vec()));
        assert_eq!(all, [[0.0, 0.0, 1.0, 1.0], [5.0, 5.0, 6.0, 5.0]]);
    }

    /// Twice the area, with its sign.
    fn area(shape: &[f32]) -> f64 {
        let points: Vec<(f64, f64)> = shape.chunks_exact(2).map(|p| (p[0].into(), p[1].into())).collect();
        let next = points.iter().cycle().skip(1);
        points.iter().zip(next).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum()
    }

    proptest! {
        #[test]
        fn strips_are_the_band_and_meet_at_whole_pixels(
            columns in prop::collection::vec((0.0f32..3.0, 0.0f32..100.0, 0.0f32..50.0), COLUMNS..200),
        ) {
            let mut x = 40.25;
            let columns: Vec<[f32; 3]> =
                columns.into_iter().map(|(step, y, high)| { x += step; [x, y, y + high] }).collect();
            let mut shape: Vec<f32> = columns.iter().flat_map(|c| [c[0], c[1]]).collect();
            shape.extend(columns.iter().rev().flat_map(|c| [c[0], c[2]]));
            let mut all: Vec<Vec<f32>> = Vec::new();
            strips(&shape, |strip| all.push(strip.to_vec()));
            let sum: f64 = all.iter().map(|strip| area(strip)).sum();
            prop_assert!((sum - area(&shape)).abs() < 1.0, "{} is not {}", sum, area(&shape));
            for pair in all.windows(2) {
                let edge = pair[1][0];
                prop_assert_eq!(edge.fract(), 0.0);
                prop_assert!(pair[0].chunks_exact(2).all(|p| p[0] <= edge) && edge - pair[0][0] <= STRIP);
            }
        }

        #[test]
        fn every_corner_is_within_a_piece_and_pieces_overlap_by_a_pixel(
            line in prop::collection::vec((0.0f32..600.0, 0.0f32..200.0), 2..100),
        ) {
            let flat: Vec<f32> = line.iter().flat_map(|(x, y)| [*x, *y]).collect();
            let all = pieces(&flat);
            let corners: Vec<&[f32]> = all.iter().flat_map(|piece| piece.chunks_exact(2)).collect();
            let (first, last) = (corners[0], corners[corners.len() - 1]);
            prop_assert_eq!((first, last), (&flat[..2], &flat[flat.len() - 2..]));
            for corner in line[1..line.len() - 1].iter() {
                let inside = |piece: &Vec<f32>| {
                    piece[2..piece.len() - 2].chunks_exact(2).any(|p| (p[0], p[1]) == *corner)
                };
                prop_assert!(all.iter().any(inside), "{:?} lies between two pieces", corner);
            }
            for pair in all.windows(2) {
                let (end, next) = (&pair[0][pair[0].len() - 2..], &pair[1][..2]);
                prop_assert!((end[0] - next[0]).hypot(end[1] - next[1]) < 1.01);
                prop_assert!(pair[0].len() <= SEGMENTS * 2 + 6);
            }
        }
    }
}
