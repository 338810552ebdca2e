//! What admins of a team and of the hub decide: which machines may join, and what they are called,
//! who may sign in, and which programs may ask.

pub(super) mod agents;
pub(super) mod join;
pub(super) mod keys;
pub(super) mod people;
pub(super) mod services;
pub(super) mod teams;
