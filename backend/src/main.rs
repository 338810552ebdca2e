//! The binary `watchglass`.
fn main() {}
