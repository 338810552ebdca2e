//! One process over time as a line.

/// Width and height of the drawing, in its own units.
const SIZE: (f64, f64) = (1000.0, 56.0);
/// A pause that is longer than this multiple of the usual one is drawn as a gap.
const GAP_FACTOR: f64 = 3.5;

/// The SVG path of a line through points (ms, value); `most` is the upper edge.
pub fn path(points: &[(i64, f64)], (from, to): (i64, i64), most: f64) -> String {
    let mut pauses: Vec<i64> = points.windows(2).map(|two| two[1].0 - two[0].0).collect();
    pauses.sort_unstable();
    let gap = pauses.get(pauses.len() / 2).map_or(0, |usual| (*usual as f64 * GAP_FACTOR) as i64);
    let mut before = i64::MIN / 2;
    let mut text = String::new();
    for (t, v) in points {
        let x = (t - from) as f64 / (to - from).max(1) as f64 * SIZE.0;
        let y = SIZE.1 - 2.0 - v / most.max(f64::MIN_POSITIVE) * (SIZE.1 - 4.0);
        let begins = t - before > gap;
        text += &format!("{}{x:.1} {y:.1}", if begins { "M" } else { "L" });
        if begins {
            // A single point is drawn as a dot.
            text += &format!("l.5 0M{x:.1} {y:.1}");
        }
        before = *t;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn a_pause_is_a_gap() {
        let line = path(&[(0, 0.0), (5_000, 10.0), (10_000, 10.0), (60_000, 10.0)], (0, 100_000), 10.0);
        assert_eq!(line, "M0.0 54.0l.5 0M0.0 54.0L50.0 2.0L100.0 2.0M600.0 2.0l.5 0M600.0 2.0");
        assert_eq!(path(&[(50_000, 5.0)], (0, 100_000), 10.0), "M500.0 28.0l.5 0M500.0 28.0");
    }
}
