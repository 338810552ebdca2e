//! One tick of one source as a delta frame: the bytes that are stored, broadcast and replayed.
//!
//! Layout: flags `u8` (bit 0 keyframe, bit 1 the clock stepped, bit 2 sequences were skipped), sequence varint, number
//! of skipped ones varint (only with bit 2), time (keyframe: ms since the epoch as a varint; else zigzag of the
//! difference to the frame before), number of series varint, bitmap of the changed ones, then one token per changed
//! series in order of id. A token is 1 + zigzag of the difference in steps to the last integer value, or 0 followed by
//! 0 (the value became absent) or 1 and eight bytes (a raw little-endian float).
//!
//! The bitmap has two levels, so that idle series cost nothing: a bitmap with one bit for every 64 series, and for each
//! bit that is set the bitmap of those 64 series; the last group is as many bytes as its series need. A series whose
//! bit is clear is unchanged, even if it is absent; so absence is never mistaken for "unchanged".
//!
//! A keyframe is a frame against the empty state: all present values are "changed". It sets the state and is no tick.

use crate::series::{SeriesId, Steps, from_steps, to_steps};
use crate::varint::{put, take, take_array, take_slice, unzigzag, zigzag};

const KEYFRAME: u8 = 1;
const CLOCK_STEP: u8 = 2;
const SKIPPED: u8 = 4;
const ABSENT: u8 = 0;
const RAW: u8 = 1;
/// Series that share a bitmap in the lower level.
const GROUP: usize = 64;

/// Reason why a frame was not applied. The state is unchanged unless stated otherwise; the reader requests a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The bytes are invalid.
    Damaged,
    /// The frame does not follow the last one that was applied.
    OutOfOrder {
        /// Sequence that should follow.
        expected: u64,
        /// Sequence of the frame.
        got: u64,
    },
    /// The frame contains series that have not been announced.
    UnknownSeries,
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::Damaged => f.write_str("damaged frame"),
            FrameError::OutOfOrder { expected, got } => write!(f, "frame {got} where {expected} was expected"),
            FrameError::UnknownSeries => f.write_str("frame with series that were not announced"),
        }
    }
}
impl std::error::Error for FrameError {}

/// The values of all series of one source after a tick; the same on both ends of the stream.
#[derive(Clone, Debug, Default)]
pub struct TickState {
    steps: Vec<Steps>,
    values: Vec<f64>,
    t: i64,
    seq: u64,
}

/// Effect of an applied frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A tick: the state's values are samples at its time.
    Tick {
        /// The wall clock was set between the tick before and this one.
        clock_step: bool,
        /// Number of sequences between the tick before and this one that no tick of this stream has.
        skipped: u64,
    },
    /// A keyframe: the state is that of a tick which the reader has or does not need.
    Keyframe,
}

impl TickState {
    /// Announces further series with their stored steps per unit, in order of id. They are absent until a frame sets
    /// them.
    pub fn extend(&mut self, steps: impl IntoIterator<Item = Steps>) {
        self.steps.extend(steps);
        self.values.resize(self.steps.len(), f64::NAN);
    }

    /// Redefines an absent series as another one, with these steps.
    pub fn redefine(&mut self, id: SeriesId, steps: Steps) {
        if let (Some(known), Some(value)) = (self.steps.get_mut(id as usize), self.values.get_mut(id as usize)) {
            (*known, *value) = (steps, f64::NAN);
        }
    }

    /// Values by series id; NaN is absent.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Time of the last tick, milliseconds since the Unix epoch; 0 before the first.
    pub fn t(&self) -> i64 {
        self.t
    }

    /// Sequence of the last tick; 0 before the first, whose sequence is 1.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Steps per unit by series id.
    pub fn steps(&self) -> &[Steps] {
        &self.steps
    }

    /// A state in which every series is absent, as after a tick of that sequence and time.
    pub fn after(seq: u64, t: i64) -> Self {
        TickState { t, seq, ..TickState::default() }
    }

    /// Encodes the next tick, whose sequence follows the last one, and adopts its values. `values` are by series id;
    /// NaN and infinities are absent, as are series beyond its end. Series must have been announced with
    /// [`extend`](Self::extend).
    pub fn encode(&mut self, t: i64, clock_step: bool, values: &[f64]) -> Vec<u8> {
        self.encode_at(self.seq + 1, t, clock_step, values)
    }

    /// Likewise with a given sequence above the last one. The frame contains the number of skipped sequences, so that
    /// followers continue over the gap, and readers that lost a frame notice.
    pub fn encode_at(&mut self, seq: u64, t: i64, clock_step: bool, values: &[f64]) -> Vec<u8> {
        debug_assert!(seq > self.seq, "sequences rise");
        let skipped = seq.saturating_sub(self.seq).saturating_sub(1);
        let mut out = Vec::with_capacity(24 + self.steps.len().div_ceil(512) + values.len() / 2);
        out.push(if clock_step { CLOCK_STEP } else { 0 } | if skipped > 0 { SKIPPED } else { 0 });
        self.seq = seq;
        put(&mut out, seq);
        if skipped > 0 {
            put(&mut out, skipped);
        }
        put(&mut out, zigzag(t - self.t));
        self.t = t;
        let mut changes = Changes::begin(&mut out, self.values.len());
        for (i, old) in self.values.iter_mut().enumerate() {
            let new = values.get(i).copied().filter(|v| v.is_finite()).unwrap_or(f64::NAN);
            if !same(new, *old) {
                changes.put(i, *old, new, self.steps[i]);
                *old = new;
            }
        }
        changes.end(&mut out);
        out
    }

    /// The present state as a keyframe.
    pub fn keyframe(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.steps.len() * 4);
        out.push(KEYFRAME);
        put(&mut out, self.seq);
        put(&mut out, self.t.max(0) as u64);
        let mut changes = Changes::begin(&mut out, self.values.len());
        for (i, &value) in self.values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            changes.put(i, f64::NAN, value, self.steps[i]);
        }
        changes.end(&mut out);
        out
    }

    /// Applies a frame from the other end.
    ///
    /// # Errors
    /// [`FrameError`]; after `Damaged` the state may be partly changed and needs a keyframe.
    pub fn apply(&mut self, mut bytes: &[u8]) -> Result<Applied, FrameError> {
        use FrameError::Damaged;
        let bytes = &mut bytes;
        let [flags] = take_array::<1>(bytes).ok_or(Damaged)?;
        let key = flags & KEYFRAME != 0;
        if flags & !(KEYFRAME | CLOCK_STEP | SKIPPED) != 0 || key && flags & SKIPPED != 0 {
            return Err(Damaged);
        }
        let seq = take(bytes).ok_or(Damaged)?;
        let skipped = if flags & SKIPPED != 0 { take(bytes).ok_or(Damaged)? } else { 0 };
        let time = take(bytes).ok_or(Damaged)?;
        if !key && seq.checked_sub(skipped).and_then(|after| after.checked_sub(1)) != Some(self.seq) {
            return Err(FrameError::OutOfOrder { expected: self.seq.saturating_add(1), got: seq });
        }
        let t = if key { i64::try_from(time).map_err(|_| Damaged)? } else { self.t.wrapping_add(unzigzag(time)) };
        let n = take(bytes).ok_or(Damaged)?;
        if n > self.values.len() as u64 {
            return Err(FrameError::UnknownSeries);
        }
        let n = n as usize;
        let groups = take_slice(bytes, n.div_ceil(GROUP).div_ceil(8)).ok_or(Damaged)?;
        let groups = || (0..n.div_ceil(GROUP)).filter(|g| groups[g / 8] & 1 << (g % 8) != 0);
        let (mut bitmaps, mut whole) = (*bytes, 0);
        groups().for_each(|g| whole += width(g, n));
        take_slice(bytes, whole).ok_or(Damaged)?;
        if key {
            self.values.fill(f64::NAN);
        }
        for group in groups() {
            let mut bits = [0; 8];
            let part = take_slice(&mut bitmaps, width(group, n)).ok_or(Damaged)?;
            bits[..part.len()].copy_from_slice(part);
            let mut bits = u64::from_le_bytes(bits);
            while bits != 0 {
                let i = group * GROUP + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if i >= n {
                    return Err(Damaged);
                }
                self.values[i] = match take(bytes).ok_or(Damaged)? {
                    0 => match take_array::<1>(bytes).ok_or(Damaged)? {
                        [ABSENT] => f64::NAN,
                        [RAW] => Some(f64::from_le_bytes(take_array(bytes).ok_or(Damaged)?))
                            .filter(|v| v.is_finite())
                            .ok_or(Damaged)?,
                        _ => return Err(Damaged),
                    },
                    token if self.steps[i] != 0.0 => {
                        let from = to_steps(self.values[i], self.steps[i]).unwrap_or(0);
                        from_steps(from.wrapping_add(unzigzag(token - 1)), self.steps[i])
                    }
                    _ => return Err(Damaged),
                };
            }
        }
        if !bytes.is_empty() {
            return Err(Damaged);
        }
        (self.t, self.seq) = (t, seq);
        Ok(if key { Applied::Keyframe } else { Applied::Tick { clock_step: flags & CLOCK_STEP != 0, skipped } })
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Bytes of the bitmap of a group among `n` series.
fn width(group: usize, n: usize) -> usize {
    (n - group * GROUP).min(GROUP).div_ceil(8)
}

/// Changes of a tick while it is written: both levels of the bitmap, and the tokens.
struct Changes {
    n: usize,
    groups: Vec<u8>,
    bitmaps: Vec<u8>,
    /// The group whose bitmap is the last one, and the position of that bitmap.
    group: Option<(usize, usize)>,
    tokens: Vec<u8>,
}

impl Changes {
    fn begin(out: &mut Vec<u8>, n: usize) -> Self {
        put(out, n as u64);
        let groups = vec![0; n.div_ceil(GROUP).div_ceil(8)];
        Changes { n, groups, bitmaps: Vec::new(), group: None, tokens: Vec::new() }
    }

    /// Call it for series in order of id.
    fn put(&mut self, i: usize, old: f64, new: f64, steps: Steps) {
        let group = i / GROUP;
        let start = match self.group {
            Some((last, start)) if last == group => start,
            _ => {
                let start = self.bitmaps.len();
                self.groups[group / 8] |= 1 << (group % 8);
                self.bitmaps.resize(start + width(group, self.n), 0);
                self.group = Some((group, start));
                start
            }
        };
        self.bitmaps[start + i % GROUP / 8] |= 1 << (i % 8);
        if new.is_nan() {
            self.tokens.extend([0, ABSENT]);
        } else if let Some(k) = to_steps(new, steps) {
            put(&mut self.tokens, 1 + zigzag(k - to_steps(old, steps).unwrap_or(0)));
        } else {
            self.tokens.extend([0, RAW]);
            self.tokens.extend(new.to_le_bytes());
        }
    }

    fn end(self, out: &mut Vec<u8>) {
        out.extend(self.groups);
        out.extend(self.bitmaps);
        out.extend(self.tokens);
    }
}

/// The sequence of a frame; None if the bytes are invalid. For readers without a state to apply it to.
pub fn sequence(frame: &[u8]) -> Option<u64> {
    take(&mut frame.get(1..)?)
}

/// The sequence of the tick that a tick's frame follows; None if the bytes are invalid.
pub fn follows(frame: &[u8]) -> Option<u64> {
    let (flags, rest) = frame.split_first()?;
    let rest = &mut &*rest;
    let seq = take(rest)?;
    let skipped = if flags & SKIPPED != 0 { take(rest)? } else { 0 };
    seq.checked_sub(skipped)?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::quantize;
    use proptest::prelude::*;

    fn alike(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
    }

    const STEPS: [Steps; 5] = [0.0, 1.0, 100.0, 256.0, 1.0 / 1024.0];

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            3 => Just(f64::NAN),
            3 => (0..500u32).prop_map(|k| f64::from(k) / 100.0),
            3 => (0..1u64 << 54).prop_map(|k| k as f64),
            1 => any::<f64>().prop_filter("finite", |v| v.is_finite()),
            1 => Just(-0.0),
        ]
    }

    proptest! {
        #[test]
        fn every_tick_comes_back_bit_for_bit(
            ticks in prop::collection::vec(
                (prop::collection::vec(value(), 0..150), 0i64..5_000, any::<bool>(), prop_oneof![Just(0), 0u64..1 << 40]),
                1..12,
            ),
            late in 0usize..12,
        ) {
            let (mut ours, mut theirs, mut joined) = (TickState::default(), TickState::default(), None::<TickState>);
            let mut t = 1_700_000_000_000;
            for (i, (values, wait, step, skipped)) in ticks.iter().enumerate() {
                let new = values.len().saturating_sub(ours.steps().len());
                for state in [Some(&mut ours), Some(&mut theirs), joined.as_mut()].into_iter().flatten() {
                    let at = state.steps().len();
                    state.extend((at..at + new).map(|i| STEPS[i % STEPS.len()]));
                }
                t += wait - 1_000;
                let before = ours.seq();
                let frame = ours.encode_at(before + 1 + skipped, t, *step, values);
                let applied = Ok(Applied::Tick { clock_step: *step, skipped: *skipped });
                prop_assert_eq!((sequence(&frame), follows(&frame)), (Some(ours.seq()), Some(before)));
                prop_assert_eq!(theirs.apply(&frame), applied);
                prop_assert!(alike(ours.values(), theirs.values()));
                prop_assert_eq!((ours.t(), ours.seq()), (theirs.t(), theirs.seq()));
                if let Some(joined) = &mut joined {
                    prop_assert_eq!(joined.apply(&frame), applied);
                    prop_assert!(alike(ours.values(), joined.values()));
                }
                if i == late {
                    let mut state = TickState::default();
                    state.extend(ours.steps().iter().copied());
                    prop_assert_eq!(state.apply(&ours.keyframe()), Ok(Applied::Keyframe));
                    prop_assert!(alike(ours.values(), state.values()));
                    joined = Some(state);
                }
            }
        }

        #[test]
        fn any_bytes_are_refused_or_applied_but_never_panic(seq: u64, bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut state = TickState { seq, ..TickState::default() };
            state.extend(STEPS);
            let _ = state.apply(&bytes);
        }

        #[test]
        fn a_cut_frame_is_refused(values in prop::collection::vec(value(), 5), cut in 0usize..200) {
            let mut ours = TickState::default();
            ours.extend(STEPS);
            let frame = ours.encode(1_700_000_000_000, false, &values);
            if cut < frame.len() {
                let mut theirs = TickState::default();
                theirs.extend(STEPS);
                prop_assert!(theirs.apply(&frame[..cut]).is_err());
            }
        }
    }

    #[test]
    fn a_lost_frame_is_noticed() {
        let (mut ours, mut theirs) = (TickState::default(), TickState::default());
        assert_eq!(sequence(&[]), None);
        ours.extend([1.0]);
        theirs.extend([1.0]);
        ours.encode(1_000, false, &[1.0]);
        let second = ours.encode(2_000, false, &[2.0]);
        assert_eq!(sequence(&second), Some(2));
        assert_eq!(theirs.apply(&second), Err(FrameError::OutOfOrder { expected: 1, got: 2 }));
        assert_eq!(theirs.apply(&ours.keyframe()), Ok(Applied::Keyframe));
        assert_eq!(theirs.values(), [2.0]);
    }

    #[test]
    fn a_lost_frame_is_noticed_behind_a_gap_too() {
        let (mut ours, mut theirs) = (TickState::default(), TickState::default());
        ours.encode(1_000, false, &[]);
        let second = ours.encode_at(50, 2_000, false, &[]);
        assert!(matches!(theirs.apply(&second), Err(FrameError::OutOfOrder { expected: 1, got: 50 })));
        assert!(theirs.apply(&ours.keyframe()).is_ok());
        let third = ours.encode_at(u64::MAX, 3_000, false, &[]);
        assert!(matches!(theirs.apply(&third), Ok(Applied::Tick { skipped, .. }) if skipped == u64::MAX - 51));
    }

    #[test]
    fn idle_series_cost_a_bit_for_64_of_them() {
        let mut ours = TickState::default();
        ours.extend([100.0; 500]);
        let values: Vec<f64> = (0..500).map(|i| quantize(f64::from(i) / 7.0, 100.0)).collect();
        ours.encode(1_700_000_000_000, false, &values);
        assert!(ours.encode(1_700_000_001_000, false, &values).len() <= 1 + 8);
        // Series that appeared and disappeared: 60,000 of them, and one that remains.
        let (mut ours, mut theirs) = (TickState::default(), TickState::default());
        ours.extend(vec![100.0; 60_001]);
        theirs.extend(vec![100.0; 60_001]);
        let mut values = vec![1.0; 60_001];
        theirs.apply(&ours.encode(1_700_000_000_000, false, &values)).unwrap();
        values[..60_000].fill(f64::NAN);
        theirs.apply(&ours.encode(1_700_000_001_000, false, &values)).unwrap();
        values[60_000] = 2.0;
        let frame = ours.encode(1_700_000_002_000, false, &values);
        assert!(frame.len() < 140, "{} bytes", frame.len());
        theirs.apply(&frame).unwrap();
        assert!(alike(ours.values(), theirs.values()));
        assert!(ours.keyframe().len() < 140, "what is absent costs no more in a keyframe");
    }

    #[test]
    fn a_bit_beyond_the_last_series_is_damage() {
        let (mut ours, mut theirs) = (TickState::default(), TickState::default());
        ours.extend([1.0; 65]);
        theirs.extend([1.0; 65]);
        let mut values = [f64::NAN; 65];
        values[64] = 1.0;
        let frame = ours.encode(0, false, &values);
        // flags, sequence, time, number, groups, the one byte of the second group, its token
        assert_eq!(frame, [0, 1, 0, 65, 2, 1, 3]);
        for beyond in [[0, 1, 0, 65, 4, 1, 3], [0, 1, 0, 65, 2, 2, 3]] {
            assert_eq!(theirs.clone().apply(&beyond), Err(FrameError::Damaged));
        }
    }
}
