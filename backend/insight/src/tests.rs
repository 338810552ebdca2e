//! Traces, and what is said of them.

mod endings;
mod hangs;
mod holds;
mod losses;
mod machines;
mod stragglers;
mod throttles;
mod trace;
