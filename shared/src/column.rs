//! One series over many ticks as compressed bytes; the page decodes the same bytes that the store has.
//!
//! Layout: one byte (bits 0-1 body, bit 2 gaps), with gaps the run lengths as varints (their number, then present and
//! absent in turn, beginning with present), then the body of the present values: nothing, one float for a constant, pco
//! integers (steps), or pco floats. All ticks of a source share one time column.

use crate::series::{Steps, from_steps, to_steps};
use crate::varint::{put, take, take_array, unzigzag, zigzag};
use pco::standalone::{simple_compress, simple_decompress_into};

const NONE: u8 = 0;
const CONSTANT: u8 = 1;
const INTEGERS: u8 = 2;
const FLOATS: u8 = 3;
const BODY: u8 = 3;
const GAPS: u8 = 4;

/// Maximum ticks in one column; a larger count is rejected before memory is allocated.
pub const MAX_TICKS: usize = 1 << 17;

/// The bytes are no column of that many ticks. The reader counts it and shows a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("damaged column")
    }
}
impl std::error::Error for Damaged {}

/// Encodes one value per tick; NaN and infinities are absent.
pub fn encode(values: &[f64], steps: Steps) -> Vec<u8> {
    let present: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    encoded(&present, values.len(), || runs(values), steps)
}

/// The same from only the ticks with a finite value, ascending, out of `ticks` in all: a sparse series costs little.
pub fn encode_sparse(samples: &[(usize, f64)], ticks: usize, steps: Steps) -> Vec<u8> {
    let present: Vec<f64> = samples.iter().map(|(_, v)| *v).collect();
    let runs = || {
        let (mut runs, mut end) = (vec![0], 0);
        for (tick, _) in samples {
            if *tick > end {
                runs.extend([tick - end, 0]);
            }
            *runs.last_mut().expect("runs begins with one entry") += 1;
            end = tick + 1;
        }
        runs.extend((ticks > end).then(|| ticks - end));
        runs
    };
    encoded(&present, ticks, runs, steps)
}

fn encoded(present: &[f64], ticks: usize, runs: impl FnOnce() -> Vec<usize>, steps: Steps) -> Vec<u8> {
    let mut out = vec![0u8];
    if present.is_empty() {
        return out;
    }
    if present.len() < ticks {
        out[0] |= GAPS;
        let runs = runs();
        put(&mut out, runs.len() as u64);
        runs.iter().for_each(|&run| put(&mut out, run as u64));
    }
    if present.iter().all(|v| v.to_bits() == present[0].to_bits()) {
        out[0] |= CONSTANT;
        out.extend(present[0].to_le_bytes());
    } else if let Some(integers) = present.iter().map(|&v| to_steps(v, steps)).collect::<Option<Vec<i64>>>() {
        out[0] |= INTEGERS;
        out.extend(steps.to_le_bytes());
        out.extend(compress(&integers));
    } else {
        out[0] |= FLOATS;
        out.extend(compress(present));
    }
    out
}

fn compress<T: pco::data_types::Number>(values: &[T]) -> Vec<u8> {
    simple_compress(values, &pco::ChunkConfig::default()).expect("pco compresses any numbers with its default settings")
}

/// Lengths of the runs of present and absent values in turn, beginning with present (possibly 0).
fn runs(values: &[f64]) -> Vec<usize> {
    let mut runs = vec![0];
    let mut present = true;
    for v in values {
        if v.is_finite() != present {
            present = !present;
            runs.push(0);
        }
        *runs.last_mut().expect("runs begins with one entry") += 1;
    }
    runs
}

/// Positions of the samples in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Tick of the first sample, from 0.
    pub first: usize,
    /// Tick of the last.
    pub last: usize,
    /// Number of samples.
    pub samples: usize,
}

/// Positions of the samples in a column of `ticks` values, without decoding them; None if there are none.
///
/// # Errors
/// [`Damaged`] when the bytes do not begin as a column of that length.
pub fn presence(mut bytes: &[u8], ticks: usize) -> Result<Option<Presence>, Damaged> {
    let (_, runs) = take_runs(&mut bytes, ticks)?;
    let (mut at, mut found) = (0, None::<Presence>);
    for (i, &run) in runs.iter().enumerate() {
        if i % 2 == 0 && run > 0 {
            let before = found.unwrap_or(Presence { first: at, last: 0, samples: 0 });
            found = Some(Presence { last: at + run - 1, samples: before.samples + run, ..before });
        }
        at += run;
    }
    Ok(found)
}

/// Whether all samples of a column are the same value.
pub fn is_constant(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|head| head & BODY == CONSTANT)
}

/// Body and runs of a column; no runs in one without samples.
fn take_runs(bytes: &mut &[u8], ticks: usize) -> Result<(u8, Vec<usize>), Damaged> {
    if ticks > MAX_TICKS {
        return Err(Damaged);
    }
    let [head] = take_array::<1>(bytes).ok_or(Damaged)?;
    if head & !(BODY | GAPS) != 0 {
        return Err(Damaged);
    }
    if head & BODY == NONE {
        return if head == NONE && bytes.is_empty() { Ok((NONE, Vec::new())) } else { Err(Damaged) };
    }
    let mut runs = vec![ticks];
    if head & GAPS != 0 {
        let n = take(bytes).ok_or(Damaged)?;
        if n > ticks as u64 + 1 {
            return Err(Damaged);
        }
        runs = (0..n)
            .map(|_| take(bytes).map(|r| r.min(MAX_TICKS as u64 + 1) as usize))
            .collect::<Option<_>>()
            .ok_or(Damaged)?;
    }
    // As u64: on a 32-bit page the sum of damaged runs could wrap round to `ticks`.
    if runs.iter().map(|&run| run as u64).sum::<u64>() != ticks as u64 {
        return Err(Damaged);
    }
    Ok((head & BODY, runs))
}

/// Decodes a column of `ticks` values; NaN is absent.
///
/// # Errors
/// [`Damaged`] when the bytes are not a column of exactly that length.
pub fn decode(mut bytes: &[u8], ticks: usize) -> Result<Vec<f64>, Damaged> {
    let bytes = &mut bytes;
    let (body, runs) = take_runs(bytes, ticks)?;
    if body == NONE {
        return Ok(vec![f64::NAN; ticks]);
    }
    let n: usize = runs.iter().step_by(2).sum();
    let present = match body {
        CONSTANT => {
            let value = f64::from_le_bytes(take_array(bytes).ok_or(Damaged)?);
            if !bytes.is_empty() {
                return Err(Damaged);
            }
            vec![value; n]
        }
        INTEGERS => {
            let steps = f64::from_le_bytes(take_array(bytes).ok_or(Damaged)?);
            decompress::<i64>(bytes, n)?.into_iter().map(|k| from_steps(k, steps)).collect()
        }
        _ => decompress::<f64>(bytes, n)?,
    };
    if present.iter().any(|v| !v.is_finite()) {
        return Err(Damaged);
    }
    if runs.len() == 1 {
        return Ok(present);
    }
    let mut values = Vec::with_capacity(ticks);
    let mut next = present.into_iter();
    for (i, &run) in runs.iter().enumerate() {
        if i % 2 == 0 {
            values.extend(next.by_ref().take(run));
        } else {
            values.resize(values.len() + run, f64::NAN);
        }
    }
    Ok(values)
}

fn decompress<T: pco::data_types::Number + Default>(bytes: &[u8], n: usize) -> Result<Vec<T>, Damaged> {
    let mut values = vec![T::default(); n];
    let progress = simple_decompress_into(bytes, &mut values).map_err(|_| Damaged)?;
    if progress.n_processed == n && progress.finished { Ok(values) } else { Err(Damaged) }
}

/// Encodes the times of ticks (milliseconds since the Unix epoch); an even cadence costs a few bytes.
pub fn encode_times(times: &[i64]) -> Vec<u8> {
    let step = times.get(1).map_or(0, |t| t - times[0]);
    if times.windows(2).all(|w| w[1] - w[0] == step) {
        let mut out = vec![0];
        put(&mut out, zigzag(times.first().copied().unwrap_or(0)));
        put(&mut out, zigzag(step));
        return out;
    }
    let mut out = vec![1];
    out.extend(compress(times));
    out
}

/// Decodes the times of `ticks` ticks.
///
/// # Errors
/// [`Damaged`] when the bytes are not a time column of that length.
pub fn decode_times(mut bytes: &[u8], ticks: usize) -> Result<Vec<i64>, Damaged> {
    let bytes = &mut bytes;
    if ticks > MAX_TICKS {
        return Err(Damaged);
    }
    match take_array::<1>(bytes).ok_or(Damaged)? {
        [0] => {
            let first = unzigzag(take(bytes).ok_or(Damaged)?);
            let step = unzigzag(take(bytes).ok_or(Damaged)?);
            (0..ticks as i64)
                .map(|i| step.checked_mul(i).and_then(|d| first.checked_add(d)))
                .collect::<Option<_>>()
                .ok_or(Damaged)
        }
        [1] => decompress::<i64>(bytes, ticks),
        _ => Err(Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            2 => Just(f64::NAN),
            4 => (0..10_000i32).prop_map(|k| f64::from(k) / 100.0),
            2 => any::<u32>().prop_map(f64::from),
            1 => any::<f64>().prop_filter("finite", |v| v.is_finite()),
            1 => Just(-0.0),
        ]
    }

    proptest! {
        #[test]
        fn a_column_comes_back_bit_for_bit(values in prop::collection::vec(value(), 0..300), steps in 0usize..4) {
            let bytes = encode(&values, [0.0, 1.0, 100.0, 256.0][steps]);
            let sparse: Vec<(usize, f64)> = values.iter().copied().enumerate().filter(|(_, v)| v.is_finite()).collect();
            prop_assert_eq!(&encode_sparse(&sparse, values.len(), [0.0, 1.0, 100.0, 256.0][steps]), &bytes);
            let back = decode(&bytes, values.len()).unwrap();
            prop_assert_eq!(values.len(), back.len());
            for (a, b) in values.iter().zip(&back) {
                prop_assert!(a.to_bits() == b.to_bits() || (!a.is_finite() && b.is_nan()), "{} {}", a, b);
            }
            let there = |(i, v): (usize, &f64)| v.is_finite().then_some(i);
            let ticks: Vec<usize> = values.iter().enumerate().filter_map(there).collect();
            let expected = ticks.first().map(|&first| Presence { first, last: ticks[ticks.len() - 1], samples: ticks.len() });
            prop_assert_eq!(presence(&bytes, values.len()), Ok(expected));
        }

        #[test]
        fn times_come_back(times in prop::collection::vec(0i64..2_000_000_000_000, 0..200)) {
            prop_assert_eq!(decode_times(&encode_times(&times), times.len()), Ok(times));
        }

        #[test]
        fn any_bytes_are_refused_or_decoded_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), n in 0usize..2_000) {
            let _ = decode(&bytes, n);
            let _ = decode_times(&bytes, n);
        }

        #[test]
        fn a_flipped_byte_never_panics(at in 0usize..400, bit in 0u8..8) {
            let values: Vec<f64> = (0..300).map(|i| if i % 50 == 7 { f64::NAN } else { f64::from(i * i % 97) / 100.0 }).collect();
            let mut bytes = encode(&values, 100.0);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            if let Ok(back) = decode(&bytes, values.len()) {
                prop_assert_eq!(back.len(), values.len());
            }
        }
    }

    #[test]
    fn constants_and_an_even_cadence_are_nearly_free() {
        assert!(encode(&[7.0; 900], 1.0).len() <= 9);
        assert!(encode_times(&(0..900).map(|i| 1_700_000_000_000 + i * 1_000).collect::<Vec<_>>()).len() <= 12);
        assert_eq!(encode(&[f64::NAN; 900], 1.0).len(), 1);
    }
}
