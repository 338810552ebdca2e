//! Decisions of the admins of a team and of the hub: admission and names of machines, accounts of people, and keys of
//! programs.

pub(super) mod agents;
pub(super) mod join;
pub(super) mod keys;
pub(super) mod people;
pub(super) mod services;
pub(super) mod teams;
