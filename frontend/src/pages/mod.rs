//! The pages; so far there is one.

pub mod overview;
