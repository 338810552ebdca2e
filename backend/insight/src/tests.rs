//! Traces, and what is said of them.

mod hangs;
mod losses;
mod throttles;
mod trace;
