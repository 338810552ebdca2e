//! From records back to ticks.

/// What segments and logs say, put together file by file.
#[derive(Default)]
pub(crate) struct Replay {}
