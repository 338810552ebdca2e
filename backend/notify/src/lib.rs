//! Notices to other services: what is sent, where it may go, and what the answer means.
//!
//! A [`Settings`] is one channel, checked. Each kind of channel is one file in `sinks/` and one row of [`SINKS`]; what it
//! makes of a notice is a pure function. [`Sender`] is the only thing that connects, and only to addresses that
//! [`address`] admits. Everything blocks its thread; nothing here knows a rule, a table or a clock.

pub mod address;
mod backoff;
mod mail;
mod send;
mod settings;
mod sinks;
pub mod text;

pub use backoff::{GIVE_UP_AFTER, LONGEST_PAUSE, backoff, retry_after};
pub use mail::{Smtp, SmtpTls};
pub use send::{Attempt, Outcome, Road, Sender};
pub use settings::{MAX_ADDRESSES, MAX_RECIPIENTS, Settings, merged};
pub use sinks::{Field, Request, SINKS, Sink};
