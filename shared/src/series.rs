//! A series is one metric on one instance of one source.

use serde::{Deserialize, Serialize};

/// The number of a series within its source: dense, given in order of first appearance. A number without stored samples
/// is reassigned to another series, which is announced. Samples, frames and columns carry this number, never text.
pub type SeriesId = u32;

/// Definition of a series. Its tag is the metric's template with the instance in the placeholder's place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SeriesDef {
    /// Position of the metric in the catalog.
    pub metric: u16,
    /// Text in the placeholder's place (`0`, `/mnt/data.v2`, `eth0`); empty if the template has no placeholder.
    pub instance: String,
}

/// Integer steps per unit in which a series is stored, or 0 for values that are stored unchanged.
///
/// A value `v` is stored as the integer `k` if `k / steps` is exactly `v`; any other value is stored as a raw float.
/// Steps are either a power of two (for pages in MiB) or a power of ten (0.01 of a percent): both survive the round
/// trip exactly when the collector rounded with [`quantize`].
pub type Steps = f64;

/// The value rounded to a whole number of steps; unchanged when `steps` is 0.
pub fn quantize(value: f64, steps: Steps) -> f64 {
    // Adding zero turns -0 into 0, because no integer represents -0.
    if steps == 0.0 { value } else { (value * steps).round() / steps + 0.0 }
}

/// The largest magnitude that is stored as an integer; beyond it not every integer is a float of its own.
const MAX_INTEGER: f64 = (1u64 << 53) as f64;

/// The integer for `value`, if it represents it exactly.
pub(crate) fn to_steps(value: f64, steps: Steps) -> Option<i64> {
    if steps == 0.0 {
        return None;
    }
    let scaled = (value * steps).round();
    // The comparison is by bits so that -0.0 stays what it was.
    (scaled.abs() <= MAX_INTEGER && (scaled as i64 as f64 / steps).to_bits() == value.to_bits())
        .then_some(scaled as i64)
}

/// The value of an integer number of steps.
pub(crate) fn from_steps(k: i64, steps: Steps) -> f64 {
    k as f64 / steps
}
