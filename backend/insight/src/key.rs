//! What a finding is about: by this its rule asks whether it is open.

use crate::Source;
use crate::signal::Family;

/// What of a machine a finding is about.
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

/// What a finding is about, while it is open. Rules ask by it at each tick, so it holds no text where it can do without.
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
