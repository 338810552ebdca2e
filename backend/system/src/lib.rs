//! Wrappers of the operating system: [`user`] for names and numbers of users, [`file`] to open and write files that a
//! user names, [`local_time`] for the time zone, and `socket_file` for the permissions of a socket.
//!
//! This crate depends on no other of ours, on no runtime and on no settings, and starts no program.

pub mod file;
pub mod local_time;
#[cfg(unix)]
pub mod socket_file;
pub mod user;
