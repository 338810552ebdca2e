//! The project tool.
fn main() {}
