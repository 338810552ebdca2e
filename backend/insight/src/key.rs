//! Key of a finding: subject and kind, by which its rule checks whether it is open.

use crate::Source;
use crate::signal::Family;

/// Subject of a finding on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Device(Family, u32),
    /// The group with this id.
    Group(u64),
    /// The disk, port or link of this name.
    Named(String),
    /// The machine itself, by one of its signals.
    Machine(&'static str),
}

/// Key of an open finding. Rules look it up at each tick, so it avoids text where possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub kind: &'static str,
    pub source: Source,
    pub what: What,
}

impl Key {
    pub fn new(kind: &'static str, source: Source, what: What) -> Self {
        Key { kind, source, what }
    }
}
