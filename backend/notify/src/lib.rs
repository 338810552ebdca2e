//! Notices to other services: what is sent, where it may go, and what the answer means.
//!
//! A [`Settings`] is one channel, checked. Each kind of channel is one file in `sinks/` and one row of [`SINKS`]; what it
//! makes of a notice is a pure function. [`Sender`] is the only thing that connects, and only to addresses that
//! [`address`] admits. Everything blocks its thread; nothing here knows a rule, a table or a clock.

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
