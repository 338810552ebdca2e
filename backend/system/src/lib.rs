//! Small faces of the operating system: [`user`] names and numbers its users, [`file`] opens and writes files that a user
//! names, [`local_time`] is its time zone, and `socket_file` sets who may enter a socket.
//!
//! This crate knows no other of ours, no runtime and no settings, and starts no program.

pub mod file;
pub mod local_time;
#[cfg(unix)]
pub mod socket_file;
pub mod user;
