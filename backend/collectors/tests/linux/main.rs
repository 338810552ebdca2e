//! Golden tests of the Linux collectors with machines made of files: folders that look like /proc and /sys.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "what a test builds for itself is there")]

mod cpu;
mod disk;
mod infiniband;
mod machine;
mod memory;
mod mount;
mod network;
mod power;
mod pressure;
mod process;
mod real;
mod table;
