//! The tier: buckets of a column as a few bytes, so that days are drawn without reading every sample.
//!
//! ```text
//! tier   = form u8  first minute zigzag  runs list(varint)  counts list(count varint, buckets varint)
//!          scale u8  lift u8  [steps f64]  minima  spans  means
//! stream = parameter u8  bits, padded to whole bytes
//! ```
//!
//! Runs are as in a column: minutes with and without a bucket in turn, beginning with (possibly 0) present ones. Form
//! bit 0: values are integers `k` of `steps` per unit, else floats in the order of their bits (magnitude bits with the
//! value's sign) less their `scale` lowest bits, which are all zero. Form bit 1: a minimum is stored as the difference
//! from the maximum before it (a counter), else from the minimum before it; the first from 0; as zigzag, in wrapping
//! arithmetic. A span is maximum less minimum. A mean is, of integers, `(sum of k - count * minimum) >> lift`, rounded;
//! of floats the 35 highest bits in their order, rounded, as the difference from the mean before it, as zigzag. Means
//! are good to 24 bits and never outside of their bucket; minima and maxima are exact.
//!
//! A stream is Rice-coded: the part of a number above the parameter's bits is as many ones and a zero, then come the
//! parameter's bits, lowest first in each byte. After 40 ones, neither a zero nor a parameter follows, but the number's
//! 64 bits.

use super::TIER_MS;
use super::list::{put_list, take_list};
use crate::column::MAX_TICKS;
use crate::rollup::Bucket;
use crate::series::{Steps, from_steps, to_steps};
use crate::varint::{put, take, take_array, unzigzag, zigzag};

const INTEGERS: u8 = 1;
const FROM_MAXIMUM: u8 = 2;

/// Bits of a float's order that a mean keeps: sign, exponent and 23 of the fraction.
const MEAN_DROPS: u32 = 29;

/// Number of ones after which a number follows unencoded.
const ESCAPE: u32 = 40;

/// Encodes buckets of [`TIER_MS`], rising by time, of samples that are stored in `steps`. `last` is not kept.
pub fn encode(buckets: &[Bucket], steps: Steps) -> Vec<u8> {
    let minute = |b: &Bucket| b.t.div_euclid(TIER_MS);
    let first = buckets.first().map_or(0, minute);
    let ends = buckets.iter().flat_map(|b| [b.min, b.max]);
    let integers = ends.clone().map(|v| to_steps(v, steps)).collect::<Option<Vec<i64>>>();
    // Their sum must be one too.
    let integers = integers
        .filter(|ks| ks.iter().all(|k| k.unsigned_abs() < 1 << 46) && buckets.iter().all(|b| b.count < 1 << 16));
    let form = if integers.is_some() { INTEGERS } else { 0 };
    let mut ends = integers.unwrap_or_else(|| ends.map(order).collect());
    let scale = if form == 0 { ends.iter().fold(0, |all, k| all | k).trailing_zeros() % 64 } else { 0 };
    ends.iter_mut().for_each(|k| *k >>= scale);
    let (pairs, _) = ends.as_chunks::<2>();

    let above = |base: fn(&[i64; 2]) -> i64| {
        let before = [0].into_iter().chain(pairs.iter().map(base));
        let differences = pairs.iter().zip(before).map(|([min, _], before)| zigzag(min.wrapping_sub(before)));
        stream(&differences.collect::<Vec<_>>())
    };
    let (from_min, from_max) = (above(|[min, _]| *min), above(|[_, max]| *max));
    let rises = from_max.len() < from_min.len();

    let (lift, means) = if form == 0 {
        (0, stream(&means_of_floats(buckets)))
    } else {
        let (lift, means) = means_of_integers(buckets, pairs, steps);
        (lift, stream(&means))
    };

    let mut out = vec![form | if rises { FROM_MAXIMUM } else { 0 }];
    put(&mut out, zigzag(first));
    put_list(&mut out, runs(buckets.iter().map(minute)).iter(), |out, &run| put(out, run));
    put_list(&mut out, counts(buckets).iter(), |out, &(count, run)| {
        put(out, u64::from(count));
        put(out, run);
    });
    out.extend([scale as u8, lift as u8]);
    if form == INTEGERS {
        out.extend(steps.to_le_bytes());
    }
    out.extend(if rises { from_max } else { from_min });
    out.extend(stream(&pairs.iter().map(|[min, max]| max.wrapping_sub(*min) as u64).collect::<Vec<_>>()));
    out.extend(means);
    out
}

/// Sums above that of as many minima, and the number of bits by which they were shifted down.
fn means_of_integers(buckets: &[Bucket], pairs: &[[i64; 2]], steps: Steps) -> (u32, Vec<u64>) {
    let sums: Vec<i64> = buckets.iter().map(|b| (b.mean * f64::from(b.count) * steps).round() as i64).collect();
    // Half a unit of the dropped part is at most a 2^-25th of the smallest sum.
    let smallest = sums.iter().map(|sum| sum.unsigned_abs().max(1).ilog2()).min().unwrap_or(0);
    let lift = smallest.saturating_sub(24);
    let means = buckets.iter().zip(pairs).zip(sums).map(|((b, [min, max]), sum)| {
        let n = i64::from(b.count);
        let above = (sum.clamp(n * min, n * max) - n * min) as u64;
        (above + ((1 << lift) >> 1)) >> lift
    });
    (lift, means.collect())
}

fn means_of_floats(buckets: &[Bucket]) -> Vec<u64> {
    let orders = buckets.iter().map(|b| (order(b.mean) + (1 << (MEAN_DROPS - 1))) >> MEAN_DROPS);
    let before = [0].into_iter().chain(orders.clone());
    orders.zip(before).map(|(order, before)| zigzag(order - before)).collect()
}

/// Decodes the bytes of [`encode`]; `last` is NaN. None if the bytes are invalid.
pub fn decode(mut bytes: &[u8]) -> Option<Vec<Bucket>> {
    let bytes = &mut bytes;
    let [form] = take_array(bytes)?;
    let first = unzigzag(take(bytes)?);
    let runs = take_list(bytes, take)?;
    let counts = take_list(bytes, |bytes| Some((u32::try_from(take(bytes)?).ok()?, take(bytes)?)))?;
    let n = runs.iter().step_by(2).try_fold(0u64, |n, run| n.checked_add(*run))?;
    if form & !(INTEGERS | FROM_MAXIMUM) != 0
        || n > MAX_TICKS as u64
        || counts.iter().try_fold(0u64, |n, (_, run)| n.checked_add(*run)) != Some(n)
    {
        return None;
    }
    let n = n as usize;
    let [scale, lift] = take_array(bytes)?;
    if scale > 63 || lift > 63 {
        return None;
    }
    let steps = if form & INTEGERS != 0 { f64::from_le_bytes(take_array(bytes)?) } else { 0.0 };
    let (minima, spans, means) = (take_stream(bytes, n)?, take_stream(bytes, n)?, take_stream(bytes, n)?);
    if !bytes.is_empty() {
        return None;
    }
    let mut counts = counts.into_iter().flat_map(|(count, run)| (0..run).map(move |_| count));
    let (mut before, mut mean_before) = ([0i64; 2], 0i64);
    let mut buckets = Vec::with_capacity(n);
    let mut minute = first;
    let mut at = 0;
    for (i, &run) in runs.iter().enumerate() {
        if i % 2 == 1 {
            minute = minute.checked_add_unsigned(run)?;
            continue;
        }
        for _ in 0..run {
            let base = before[usize::from(form & FROM_MAXIMUM != 0)];
            let min = base.wrapping_add(unzigzag(minima[at]));
            let max = min.wrapping_add(spans[at] as i64);
            before = [min, max];
            let count = counts.next()?;
            let (min, max, mean) = if form & INTEGERS != 0 {
                let above = (means[at] << lift) as f64 / f64::from(count);
                (from_steps(min, steps), from_steps(max, steps), (min as f64 + above) / steps)
            } else {
                mean_before = mean_before.wrapping_add(unzigzag(means[at]));
                (value(min << scale), value(max << scale), value(mean_before.wrapping_shl(MEAN_DROPS)))
            };
            if !(min <= max && min.is_finite() && max.is_finite()) || count == 0 {
                return None;
            }
            // A NaN, from a mean beyond the largest float, becomes the maximum.
            let mean = if mean <= max { mean.max(min) } else { max };
            buckets.push(Bucket { t: minute.checked_mul(TIER_MS)?, min, max, mean, last: f64::NAN, count });
            minute = minute.checked_add(1)?;
            at += 1;
        }
    }
    Some(buckets)
}

/// A float as an integer that is ordered as floats are.
fn order(v: f64) -> i64 {
    let magnitude = (v.to_bits() & (u64::MAX >> 1)) as i64;
    if v.is_sign_negative() { -magnitude } else { magnitude }
}

/// The float with that order.
fn value(order: i64) -> f64 {
    let v = f64::from_bits(order.unsigned_abs() & (u64::MAX >> 1));
    if order < 0 { -v } else { v }
}

fn runs(minutes: impl Iterator<Item = i64>) -> Vec<u64> {
    let mut runs = vec![0];
    let mut next = None;
    for minute in minutes {
        if next.is_some_and(|next| next != minute) {
            runs.extend([minute.abs_diff(next.unwrap_or(minute)), 0]);
        }
        if let Some(last) = runs.last_mut() {
            *last += 1;
        }
        next = Some(minute + 1);
    }
    runs
}

fn counts(buckets: &[Bucket]) -> Vec<(u32, u64)> {
    let chunks = buckets.chunk_by(|a, b| a.count == b.count);
    chunks.map(|chunk| (chunk[0].count, chunk.len() as u64)).collect()
}

fn cost(values: &[u64], parameter: u32) -> u64 {
    let one = |v: &u64| match v >> parameter {
        ones if ones < u64::from(ESCAPE) => ones + 1 + u64::from(parameter),
        _ => u64::from(ESCAPE) + 64,
    };
    values.iter().map(one).sum()
}

fn stream(values: &[u64]) -> Vec<u8> {
    let mean = values.iter().map(|&v| u128::from(v)).sum::<u128>() / values.len().max(1) as u128;
    let near = mean.max(1).ilog2();
    let parameter = (near.saturating_sub(4)..=(near + 1).min(63)).min_by_key(|&k| cost(values, k)).unwrap_or(0);
    let mut out = vec![parameter as u8];
    let (mut bits, mut held) = (0u128, 0u32);
    for &v in values {
        let ones = v >> parameter;
        if ones < u64::from(ESCAPE) {
            let low = u128::from(v & ((1 << parameter) - 1));
            bits |= (((1u128 << ones) - 1) | low << (ones + 1)) << held;
            held += ones as u32 + 1 + parameter;
        } else {
            bits |= (((1u128 << ESCAPE) - 1) | (u128::from(v) << ESCAPE)) << held;
            held += ESCAPE + 64;
        }
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(bits as u8);
    }
    out
}

fn take_stream(bytes: &mut &[u8], n: usize) -> Option<Vec<u64>> {
    let [parameter] = take_array(bytes)?;
    // A number takes at least a bit: no memory is allocated for more numbers than can exist.
    if parameter > 63 || n > bytes.len().checked_mul(8)? {
        return None;
    }
    let (bytes_left, parameter) = (*bytes, u32::from(parameter));
    // At least the next 57 bits; zeros after the end, which is checked afterwards.
    let window = |at: usize| {
        let rest = bytes_left.get(at / 8..).unwrap_or_default();
        let eight = rest.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut eight = [0; 8];
            eight[..rest.len()].copy_from_slice(rest);
            eight
        });
        u64::from_le_bytes(eight) >> (at % 8)
    };
    let bits = |at: usize, count: u32| match count {
        0..=56 => window(at) & ((1 << count) - 1),
        _ => (window(at) & u64::from(u32::MAX)) | ((window(at + 32) & ((1 << (count - 32)) - 1)) << 32),
    };
    let mut at = 0usize;
    let mut values = Vec::with_capacity(n);
    for _ in 0..n {
        let next = window(at);
        let ones = next.trailing_ones();
        if ones < ESCAPE {
            let head = ones + 1;
            // Nearly always, all of it is in the bits that were read.
            let low = match head + parameter {
                0..=57 => (next >> head) & ((1 << parameter) - 1),
                _ => bits(at + head as usize, parameter),
            };
            values.push(u64::from(ones) << parameter | low);
            at += (head + parameter) as usize;
        } else {
            at += ESCAPE as usize;
            values.push(bits(at, 64));
            at += 64;
        }
        if at > bytes_left.len() * 8 {
            return None;
        }
    }
    *bytes = bytes.get(at.div_ceil(8)..)?;
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::roll;
    use crate::series::quantize;
    use proptest::prelude::*;

    fn check(samples: &[(i64, f64)], steps: Steps) {
        let rolled = roll(samples.iter().copied(), TIER_MS);
        let back = decode(&encode(&rolled, steps)).expect("a tier");
        assert_eq!(rolled.len(), back.len());
        for (a, b) in rolled.iter().zip(&back) {
            assert_eq!((a.t, a.min, a.max, a.count), (b.t, b.min, b.max, b.count));
            let mean = a.mean.clamp(a.min, a.max);
            assert!((mean - b.mean).abs() <= mean.abs() * f64::from(f32::EPSILON), "{a:?} {b:?}");
        }
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            3 => (0..10_000i32).prop_map(|k| f64::from(k) / 100.0),
            1 => (-10_000..10_000i32).prop_map(|k| f64::from(k) / 100.0),
            1 => any::<u64>().prop_map(|k| k as f64),
            1 => any::<f32>().prop_filter("finite", |v| v.is_finite()).prop_map(f64::from),
            1 => -1e300..1e300f64,
            1 => Just(f64::NAN),
            1 => Just(-0.0),
        ]
    }

    proptest! {
        #[test]
        fn any_samples_keep_their_extremes_counts_and_means(
            of_one_kind in any::<bool>(),
            values in prop::collection::vec((1i64..100_000, value()), 0..300),
            steps in 0usize..3,
            start in -1_000_000i64..1_900_000_000_000,
        ) {
            let (mut t, steps) = (start, [0.0, 100.0, 256.0][steps]);
            let samples: Vec<(i64, f64)> = values
                .into_iter()
                .map(|(wait, v)| {
                    t += wait;
                    (t, if of_one_kind { quantize(v % 1e6, steps) } else { v })
                })
                .collect();
            check(&samples, steps);
        }

        #[test]
        fn any_bytes_are_refused_or_decoded_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn a_flipped_bit_never_panics(at in 0usize..400, bit in 0u8..8, steps in 0usize..2) {
            let samples = (0..3_600).map(|i| (i * 1_000, (i * i % 977) as f64 / 100.0));
            let mut bytes = encode(&roll(samples, TIER_MS), [0.0, 100.0][steps]);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_counter_of_many_bytes_costs_little() {
        let mut total = 1e12;
        let samples: Vec<(i64, f64)> = (0..3_600i64)
            .map(|i| {
                total += (i * 7_919 % 100_000) as f64;
                (i * 1_000, total)
            })
            .collect();
        check(&samples, 1.0);
        let bytes = encode(&roll(samples.iter().copied(), TIER_MS), 1.0);
        assert!(bytes.len() < 60 * 10, "{} bytes", bytes.len());
    }
}
