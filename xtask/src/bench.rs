//! `cargo xtask bench`.

use crate::Failure;
pub fn bench(_args: &[String]) -> Result<(), Failure> {
    Ok(())
}
