//! Values that jobs log: the body of `POST /api/v1/values`, which is also the message on the socket of runs.

use crate::run::check_id;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of names of a process.
pub const MAX_NAMES: usize = 64;
/// Messages per second of a process; a burst may have twice as many.
pub const PER_SECOND: f64 = 10.0;
/// Maximum length of a name, bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// Maximum length of a message with values, bytes.
pub const MAX_VALUES_BYTES: usize = 8 << 10;
/// The name that means the step.
pub const STEP: &str = "step";
/// The name of the series for values that are not a number, which no job may use.
const RESERVED: &str = "not_a_number";

/// Values of a training job at one instant.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewValues {
    /// Numbers by name, at most 64. A name is a letter or `_`, then letters, digits and `_ . / -`, at most 64 bytes.
    /// `step` means the field of that name.
    pub values: BTreeMap<String, JobNumber>,
    /// The training step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// ID of the run, for a sender that the kernel does not show below one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// PID of the sender, if the request does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// A number of a job. JSON has no NaN and infinities: they are the texts `NaN`, `Infinity` and `-Infinity`.
#[derive(Clone, Copy, Debug)]
pub struct JobNumber(pub f64);

impl PartialEq for JobNumber {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for JobNumber {}

/// Numbers that JSON does not have, and their texts.
pub(crate) const TEXTS: [(&str, f64); 3] =
    [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

impl Serialize for JobNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_finite() => serializer.serialize_f64(number),
            number if number.is_nan() => serializer.serialize_str(TEXTS[0].0),
            number => serializer.serialize_str(TEXTS[if number > 0.0 { 1 } else { 2 }].0),
        }
    }
}

impl<'de> Deserialize<'de> for JobNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JobNumberVisitor)
    }
}

struct JobNumberVisitor;

impl Visitor<'_> for JobNumberVisitor {
    type Value = JobNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or \"NaN\", \"Infinity\" or \"-Infinity\"")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<JobNumber, E> {
        Ok(JobNumber(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<JobNumber, E> {
        Ok(JobNumber(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<JobNumber, E> {
        Ok(JobNumber(number as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JobNumber, E> {
        let known = TEXTS.iter().find(|(known, _)| *known == text);
        known
            .map(|(_, number)| JobNumber(*number))
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

/// Reason why values are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadValues {
    /// A name has another form.
    Name(String),
    /// The name is used for another purpose.
    Reserved,
    /// `step` is no whole number.
    Step,
    /// The run's ID has another form.
    Run,
    /// There is no value.
    Empty,
}

impl fmt::Display for BadValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadValues::Name(name) => write!(
                f,
                "{name:?} is no name of a value: begin with a letter or \"_\", then use letters, digits, \"_\", \".\", \
                 \"/\" and \"-\", at most {MAX_NAME_BYTES} bytes"
            ),
            BadValues::Reserved => write!(f, "{RESERVED:?} is the name of another series; use another name"),
            BadValues::Step => f.write_str("step is a whole number from 0"),
            BadValues::Run => f.write_str("run is the ID of a run; `watchglass runs` lists them"),
            BadValues::Empty => f.write_str("there is no value; send one, such as {\"values\": {\"loss\": 0.41}}"),
        }
    }
}

/// Whether a job may use a name.
///
/// # Errors
/// [`BadValues::Name`] with at most 64 letters of it, or [`BadValues::Reserved`].
pub fn check_name(name: &str) -> Result<(), BadValues> {
    let fits = |(at, byte): (usize, u8)| match byte {
        b'_' => true,
        byte if byte.is_ascii_alphabetic() => true,
        byte => at > 0 && (byte.is_ascii_digit() || b"./-".contains(&byte)),
    };
    match (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().enumerate().all(fits) {
        false => Err(BadValues::Name(name.chars().take(MAX_NAME_BYTES).collect())),
        true if name == RESERVED => Err(BadValues::Reserved),
        true => Ok(()),
    }
}

/// Values by name, and the step.
pub type CheckedValues = (Vec<(String, f64)>, Option<u64>);

impl NewValues {
    /// The values with valid names and the step.
    ///
    /// # Errors
    /// [`BadValues`]: then none is stored.
    pub fn checked(mut self) -> Result<CheckedValues, BadValues> {
        if self.run.as_ref().is_some_and(|run| check_id(run).is_err()) {
            return Err(BadValues::Run);
        }
        if let Some(JobNumber(step)) = self.values.remove(STEP) {
            let is_step = step >= 0.0 && step.fract() == 0.0 && step <= (1u64 << 53) as f64;
            let step = is_step.then_some(step as u64).ok_or(BadValues::Step)?;
            self.step = self.step.or(Some(step));
        }
        if self.values.is_empty() && self.step.is_none() {
            return Err(BadValues::Empty);
        }
        self.values.keys().try_for_each(|name| check_name(name))?;
        Ok((self.values.into_iter().map(|(name, JobNumber(value))| (name, value)).collect(), self.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NewValues, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn checked(text: &str) -> Result<CheckedValues, String> {
        read(text)?.checked().map_err(|bad| bad.to_string())
    }

    #[test]
    fn values_are_kept_to_the_last_bit_and_what_json_has_not_is_a_text() {
        let sent = [("a", 0.1 + 0.2), ("b", f64::NAN), ("c", f64::NEG_INFINITY), ("d", f64::INFINITY), ("e", -0.0)];
        let values = sent.map(|(name, value)| (name.to_string(), JobNumber(value))).into();
        let text = serde_json::to_string(&NewValues { values, step: Some(7), ..NewValues::default() }).expect("JSON");
        assert!(text.contains("\"b\":\"NaN\",\"c\":\"-Infinity\""), "{text}");
        let (read, step) = checked(&text).expect("values");
        assert_eq!(step, Some(7));
        for ((_, read), (name, sent)) in read.iter().zip(sent) {
            assert_eq!(read.to_bits(), sent.to_bits(), "{name}");
        }
        assert_eq!(checked("{\"values\":{\"tokens\":12400}}"), Ok((vec![("tokens".into(), 12_400.0)], None)));
    }

    #[test]
    fn step_among_the_values_is_the_step() {
        assert_eq!(checked("{\"values\":{\"step\":9}}"), Ok((Vec::new(), Some(9))));
        assert_eq!(checked("{\"values\":{\"step\":9},\"step\":8}").map(|(_, step)| step), Ok(Some(8)));
        for wrong in ["-1", "1.5", "\"NaN\"", "1e300"] {
            let why = checked(&format!("{{\"values\":{{\"step\":{wrong}}}}}"));
            assert_eq!(why, Err("step is a whole number from 0".into()), "{wrong}");
        }
    }

    #[test]
    fn names_are_plain() {
        for name in ["loss", "_x", "train/loss", "eval.acc-1", "a".repeat(MAX_NAME_BYTES).as_str(), "stepping"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "1a", "-a", "a b", "a{b", "a\"", "é", "a:b", "a".repeat(MAX_NAME_BYTES + 1).as_str()] {
            assert!(matches!(check_name(name), Err(BadValues::Name(said)) if said.len() <= MAX_NAME_BYTES), "{name}");
        }
        assert_eq!(check_name("not_a_number"), Err(BadValues::Reserved));
    }

    #[test]
    fn what_is_no_message_says_why() {
        for (text, why) in [
            ("{\"values\":{\"a\":true}}", "expected a number"),
            ("{\"values\":{\"a\":\"nan\"}}", "expected a number"),
            ("{\"values\":{\"a\":1},\"text\":\"x\"}", "unknown field `text`"),
            ("{\"step\":1}", "missing field `values`"),
            ("{\"values\":{}}", "there is no value"),
            ("{\"values\":{\"a b\":1}}", "\"a b\" is no name of a value"),
            ("{\"values\":{\"a\":1},\"run\":\"../a\"}", "run is the ID of a run"),
        ] {
            let said = checked(text).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
