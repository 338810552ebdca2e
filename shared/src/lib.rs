//! The vocabulary of Watchglass, in the order to read it:
//!
//! - [`catalog`]: every metric as one row (tag, title, help, unit, kind, range, chart), and the layout of the page.
//! - [`unit`]: units, their scaling and the one number formatter.
//! - [`series`]: a series is one metric on one instance of one source.
//! - [`tick`]: all samples of one source at one instant, encoded once as a delta frame.
//! - [`record`]: events of a source that are not samples.
//! - [`column`]: one series over many ticks, compressed.
//! - [`crc32c`]: the checksum of everything on disk.
//! - [`segment`]: sealed ticks of sources in one file, checked by [`crc32c`].
//! - [`recording`]: a self-contained segment, as one value.
//! - [`processes`]: the process table.
//! - [`csv`]: cells of CSV.
//! - [`date`]: times as people and files write them.
//! - [`rollup`]: buckets of min, max, mean, last and count; rates of counters.
//! - [`run`]: training jobs and their end states; [`failure`]: the classes of failures; [`output`]: their output;
//!   [`redact`]: redaction of secrets in it.
//! - [`nccl`]: the ranks that a hanging job waits for.
//! - [`run_change`]: changes of a run by people; [`note`]: their notes.
//! - [`reported`]: reports of launchers on training jobs; [`new_marker`]: markers as programs send them.
//! - [`window`]: the spans that a page shows.
//! - [`role`]: rights of people and keys on a hub.
//! - [`scope`]: sources that a reader may see.
//! - [`session`]: requests and answers of a hub about people and agents; [`people`]: about accounts and keys; [`team`]:
//!   about teams; [`me`]: about oneself; [`views`]: about saved views and share links; [`audit`]: about the audit log
//!   and usage; [`enrol`]: about a machine that joins.
//! - [`answer`]: API answers about measurements; [`json`]: numbers in answers.
//! - [`rule`]: conditions of rules: their syntax and its parser.
//! - [`alert`]: rules, alerts, silences, channels and notices, in requests and answers; [`alert_call`]: alerts from
//!   code, as they are stored.
//! - [`address`]: the query of a page as it is stored.
//! - [`connection_state`]: connection state of a source.
//! - [`wire`]: the messages between server and page; [`agent`]: those between an agent and its hub.
//! - [`xid`]: NVIDIA's critical errors, and the action that its catalog gives for each.
//!
//! Words: a *tag* is the identifier of a metric on an instance (`gpu.0.temp`); a *source* is a machine that reports; a
//! *sample* is (series, time, value), and a value that could not be read is no sample, never zero; a *tick* is all
//! samples of one source at one instant; a *record* is an event that is carried beside them.
//!
//! This crate reads no clock, no file and no socket, and builds for wasm32.

pub mod address;
pub mod agent;
pub mod alert;
pub mod alert_call;
pub mod answer;
pub mod audit;
pub mod catalog;
pub mod changed;
pub mod column;
pub mod connection_state;
pub mod controls;
pub mod crc32c;
pub mod csv;
pub mod date;
pub mod embedded;
pub mod enrol;
pub mod failure;
pub mod finding;
pub mod hub;
pub mod json;
pub mod linked;
pub mod me;
pub mod nccl;
pub mod new_marker;
pub mod new_values;
pub mod note;
pub mod output;
pub mod people;
pub mod processes;
pub mod provider;
pub mod record;
pub mod recording;
pub mod redact;
pub mod reported;
pub mod role;
pub mod rollup;
pub mod rule;
pub mod run;
pub mod run_change;
pub mod said;
#[cfg(feature = "schema")]
mod schema;
pub mod scope;
pub mod secret;
pub mod segment;
pub mod series;
pub mod session;
pub mod submission;
pub mod team;
pub mod tick;
pub mod unit;
mod varint;
pub mod views;
pub mod window;
pub mod wire;
pub mod xid;
