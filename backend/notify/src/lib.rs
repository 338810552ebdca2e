//! Notices to other services: requests, allowed targets, and the meaning of responses.
//!
//! A [`Settings`] is one validated channel. Each kind of channel is one file in `sinks/` and one row of [`SINKS`]; its
//! conversion of a notice is a pure function. [`Sender`] alone connects, and only to addresses that [`address`] admits.
//! All calls block their thread; nothing here knows rules, tables or clocks.

pub mod address;
mod backoff;
mod check;
mod mail;
mod send;
mod settings;
mod sinks;
mod text;

pub use backoff::{GIVE_UP_AFTER, LONGEST_PAUSE, backoff, retry_after};
pub use check::{MAX_ADDRESSES, MAX_RECIPIENTS, merged};
pub use mail::{Smtp, SmtpTls};
pub use send::{Attempt, Outcome, Road, Sender};
pub use settings::Settings;
pub use sinks::{Field, Request, SINKS, Sink};

#[cfg(test)]
mod address_tests;
#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod mail_tests;
#[cfg(test)]
mod sample_tests;
#[cfg(test)]
mod send_tests;
#[cfg(test)]
mod text_tests;
