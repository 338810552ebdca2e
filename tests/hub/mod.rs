//! Tests of the hub itself, attacks first: permissions, forged requests of a foreign page, ends of sessions.

mod administer;
mod admission;
mod alerts;
mod ask;
mod audit;
mod begin;
mod control;
mod downloads;
mod drain;
mod erase;
mod fallback;
mod findings;
mod forgery;
#[cfg(target_os = "linux")]
mod found;
#[cfg(target_os = "linux")]
mod full_disk;
#[cfg(target_os = "linux")]
mod hang;
mod healing;
mod hostile;
mod leaks;
mod links;
mod lives;
mod machine;
mod matrix;
mod messages;
mod nameless;
#[cfg(target_os = "linux")]
mod notes;
mod own;
#[cfg(unix)]
mod postgresql;
#[cfg(target_os = "linux")]
mod printed;
mod providers;
mod proxies;
mod readme;
mod revoked;
mod roads;
#[cfg(target_os = "linux")]
mod run_edits;
mod sessions;
mod shares;
pub mod sockets;
mod strangers;
#[cfg(target_os = "linux")]
mod submit;
mod tls;
mod usage;
mod vouched;

/// Content type of every request with JSON.
const JSON: &str = "Content-Type: application/json";
