//! Wrappers of the operating system: [`user`] for names and numbers of users, [`file`] to open and write files that a
//! user names, [`local_time`] for the time zone, `socket_file` for the permissions of a socket, and on Linux `boot` for
//! the time since its start and `cgroup` for the folders of control groups.
//!
//! This crate depends on no other of ours, on no runtime and on no settings, and starts no program.

#[cfg(target_os = "linux")]
pub mod boot;
#[cfg(unix)]
pub mod cgroup;
pub mod file;
pub mod local_time;
#[cfg(unix)]
pub mod socket_file;
pub mod user;
