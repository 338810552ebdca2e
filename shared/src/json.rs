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

/// From this number of seconds on, in the year 5138, an instant was written in milliseconds, as alerts were stored once.
const FIRST_MS: i64 = 100_000_000_000;

/// An instant that was read as seconds, in milliseconds.
fn in_ms(read: Seconds) -> i64 {
    if read.ms() / 1_000 >= FIRST_MS { read.ms() / 1_000 } else { read.ms() }
}

/// An instant in milliseconds, for `#[serde(with)]`. Text formats such as JSON have it as [`Seconds`], others as it is.
pub mod instant {
    use super::{Deserialize, Deserializer, Seconds, Serialize, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Those of the format.
    pub fn serialize<S: Serializer>(ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => Seconds(*ms).serialize(serializer),
            false => ms.serialize(serializer),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of the format.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        match deserializer.is_human_readable() {
            true => Seconds::deserialize(deserializer).map(super::in_ms),
            false => i64::deserialize(deserializer),
        }
    }
}

/// An [`instant`] that may be absent.
pub mod instant_or_none {
    use super::{Deserialize, Deserializer, Seconds, Serialize, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Those of the format.
    pub fn serialize<S: Serializer>(ms: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => ms.map(Seconds).serialize(serializer),
            false => ms.serialize(serializer),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of the format.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
        match deserializer.is_human_readable() {
            true => Ok(Option::<Seconds>::deserialize(deserializer)?.map(super::in_ms)),
            false => Option::deserialize(deserializer),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Times {
        #[serde(with = "instant")]
        at: i64,
        #[serde(default, with = "instant_or_none")]
        to: Option<i64>,
    }

    #[test]
    fn an_instant_is_seconds_in_json_and_milliseconds_elsewhere() {
        for (times, json) in [
            (Times { at: 1_800_000_000_250, to: None }, "{\"at\":1800000000.25,\"to\":null}"),
            (Times { at: 1_800_000_000_000, to: Some(2_500) }, "{\"at\":1800000000,\"to\":2.5}"),
        ] {
            assert_eq!(serde_json::to_string(&times).expect("JSON"), json);
            assert_eq!(serde_json::from_str::<Times>(json).expect("times"), times);
            let bytes = postcard::to_stdvec(&times).expect("bytes");
            assert_eq!(postcard::from_bytes::<Times>(&bytes).expect("times"), times);
        }
        assert_eq!(serde_json::from_str::<Times>("{\"at\":1}").expect("times"), Times { at: 1_000, to: None });
        let stored_before = "{\"at\":1800000000250,\"to\":1800000000000}";
        let times = Times { at: 1_800_000_000_250, to: Some(1_800_000_000_000) };
        assert_eq!(serde_json::from_str::<Times>(stored_before).expect("times"), times);
    }
}
