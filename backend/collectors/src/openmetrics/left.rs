//! Single samples of a page that are dropped: above a limit, or not valid.

use super::MAX_SERIES;
use super::key::{Labels, Odd};
use inventory::MAX_OTHER_MACHINES;
use shared::unit::size;
use std::fmt;

/// Maximum number of labels of a sample.
const MAX_LABELS: usize = 32;
/// Maximum length of the name of a sample or of a label, bytes.
const MAX_NAME_BYTES: usize = 256;
/// Maximum length of a label's value, bytes.
const MAX_VALUE_BYTES: usize = 1024;
/// Maximum total length of the keys of an endpoint's series, bytes.
pub(super) const MAX_KEY_BYTES: usize = 8 << 20;

/// Reason why a sample is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Series,
    Labels,
    Name,
    Value,
    Odd,
    Again,
    Native,
    Machines,
}

const ALL: [Why; 8] =
    [Why::Series, Why::Labels, Why::Name, Why::Value, Why::Odd, Why::Again, Why::Native, Why::Machines];

impl Why {
    /// Reason to drop a sample by its name and labels alone.
    pub(super) fn from_sample(name: &str, labels: &Labels<'_>, odd: Option<Odd>) -> Option<Why> {
        let long = |name: &str| name.len() > MAX_NAME_BYTES;
        match () {
            () if labels.len() > MAX_LABELS => Some(Why::Labels),
            () if long(name) || labels.iter().any(|(name, _)| long(name)) => Some(Why::Name),
            () if labels.iter().any(|(_, value)| value.len() > MAX_VALUE_BYTES) => Some(Why::Value),
            () => odd.map(|_| Why::Odd),
        }
    }

    fn into_sentence(self) -> String {
        match self {
            Why::Series => format!(
                "over the limit of {MAX_SERIES} series in a quarter of an hour, or of {} of their names and labels: \
                set the endpoint's `filters`",
                size(MAX_KEY_BYTES as u64)
            ),
            Why::Labels => format!("with more than {MAX_LABELS} labels"),
            Why::Name => format!("with a name of more than {MAX_NAME_BYTES} bytes"),
            Why::Value => format!("with a label of more than {MAX_VALUE_BYTES} bytes"),
            Why::Odd => {
                "with an invalid name or label (repeated, empty, or beginning with `__`): correct the exporter".into()
            }
            Why::Again => "of a series that the page already has: correct the exporter".into(),
            Why::Native => "that are native histograms: configure the exporter to print classic buckets too".into(),
            Why::Machines => format!(
                "of hosts over the limit of {MAX_OTHER_MACHINES} in an hour, or without a valid name: set the endpoint's \
                `filters`, or scrape from several machines"
            ),
        }
    }
}

/// Number of dropped samples of a page by reason, and the line of the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left([(usize, usize); ALL.len()]);

impl Left {
    pub(super) fn add(&mut self, why: Why, line: impl FnOnce() -> usize) {
        let (count, first) = &mut self.0[why as usize];
        *count += 1;
        if *count == 1 {
            *first = line();
        }
    }

    /// Number over all reasons.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|(count, _)| count).sum()
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = ALL.iter().zip(&self.0).filter(|(_, (count, _))| *count > 0);
        for (i, (why, (count, line))) in some.enumerate() {
            let comma = if i > 0 { "; " } else { "" };
            write!(f, "{comma}{count} {} (the first in line {line})", why.into_sentence())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_met_exactly() {
        let label = |name: usize, value: usize| ("l".repeat(name).into(), "v".repeat(value));
        let many = |n: usize| -> Labels<'static> { (0..n).map(|i| (format!("l{i}").into(), String::new())).collect() };
        for (name, labels, why) in [
            (256, many(32), None),
            (257, many(0), Some(Why::Name)),
            (1, many(33), Some(Why::Labels)),
            (1, vec![label(256, 1024)], None),
            (1, vec![label(257, 0)], Some(Why::Name)),
            (1, vec![label(1, 1025)], Some(Why::Value)),
        ] {
            assert_eq!(Why::from_sample(&"n".repeat(name), &labels, None), why);
        }
        assert_eq!(Why::from_sample("x", &many(1), Some(Odd::Twice)), Some(Why::Odd));
    }

    #[test]
    fn each_reason_is_told_with_its_count_and_its_first_line() {
        let mut left = Left::default();
        assert_eq!((left.count(), left.to_string()), (0, String::new()));
        left.add(Why::Value, || 7);
        left.add(Why::Native, || 8);
        left.add(Why::Value, || 9);
        assert_eq!(left.count(), 3);
        let said = left.to_string();
        assert!(
            said.starts_with("2 with a label of more than 1024 bytes (the first in line 7); 1 that are native"),
            "{said}"
        );
    }
}
