//! What admins of a team and of the hub decide: which machines may join, and what they are called.

pub(super) mod agents;
pub(super) mod join;
