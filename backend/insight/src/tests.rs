//! Traces, and the findings about them.

mod beside;
mod endings;
mod hangs;
mod holds;
mod losses;
mod machines;
mod stragglers;
mod throttles;
mod trace;
