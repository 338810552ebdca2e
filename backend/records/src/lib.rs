//! The tables of a hub: people, teams, keys, agents and alerts, in one SQLite file or in a PostgreSQL database. Each
//! file of this package is a group of tables. Each of its functions is one statement, run on a [`Reader`] or inside a
//! [`Change`], with the same text for both engines. The meaning of rows and the rights to change them are defined
//! elsewhere.
//!
//! Times are milliseconds since the Unix epoch. Texts that are never searched are JSON.

pub mod accounts;
pub mod alerts;
pub mod audit;
mod backup;
pub mod channels;
pub mod codes;
mod connection;
pub mod coverage;
mod database;
pub mod enrolments;
pub mod eras;
mod error;
mod file;
mod generation;
pub mod grants;
pub mod keys;
pub mod leases;
pub mod links;
pub mod meta;
mod migrate;
mod migrate_server;
pub mod notes;
pub mod outbox;
mod row;
pub mod rules;
pub mod run_edits;
mod server;
pub mod services;
pub mod sessions;
pub mod shares;
pub mod silences;
pub mod sources;
mod sql;
mod steps;
pub mod teams;
mod transfer;
pub mod usage;
pub mod views;
pub mod watched;

pub use backup::{backup, restore};
pub use connection::{Change, Connection, Reader};
pub use database::{FILE, Records};
pub use error::{Error, OpenError};
pub use migrate_server::ServerLook;
pub use server::Server;
pub use transfer::transfer;
