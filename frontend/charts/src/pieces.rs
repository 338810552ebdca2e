//! A long line in short strokes.
//!
//! A browser that rasterises without a GPU takes five times as long for one noisy line of 300 points that is wider than a
//! pixel as for the same line in pieces: what a stroke costs grows with the points in it times the height that it covers.

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
    fn short_lines_stay_as_they_are() {
        let mut all = Vec::new();
        each(&[0.0, 0.0, 1.0, 1.0, 5.0, 5.0, 6.0, 5.0], &[4, 8], |piece| all.push(piece.to_vec()));
        assert_eq!(all, [[0.0, 0.0, 1.0, 1.0], [5.0, 5.0, 6.0, 5.0]]);
    }

    proptest! {
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
