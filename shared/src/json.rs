//! Numbers in JSON answers: without a fraction if there is none.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant (since the Unix epoch) or a length of time, in milliseconds. In JSON it is a number of seconds, with a
/// fraction of at most three digits only if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub i64);

impl Seconds {
    /// The milliseconds.
    pub const fn ms(self) -> i64 {
        self.0
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % 1_000 {
            0 => serializer.serialize_i64(self.0 / 1_000),
            _ => serializer.serialize_f64(self.0 as f64 / 1_000.0),
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|seconds| Seconds((seconds * 1_000.0).round() as i64))
    }
}

/// A number. In JSON it has a fraction only if it is no integer; one that is not finite is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Number(pub f64);

/// Integers below this are exact as `f64` (2 to the power of 53 is 9.007e15).
const MAX_EXACT: f64 = 9e15;

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.fract() == 0.0 && self.0.abs() < MAX_EXACT {
            true => serializer.serialize_i64(self.0 as i64),
            false => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Number)
    }
}
