//! Replaces collectors that only Linux has. Their entries in the table name only Linux, so they are never opened
//! elsewhere.

use crate::{OpenError, Options, Part, Roots};

#[cfg(not(target_os = "linux"))]
use crate::OptionRow;

/// Options exist where the collector does.
#[cfg(not(target_os = "linux"))]
pub(crate) const OPTIONS: &[&OptionRow] = &[];

pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    Err(OpenError::absent([], "only on Linux", ""))
}
