//! In the place of collectors that only Linux has. Their rows of the table say so, so nobody opens them elsewhere.

use crate::{OpenError, Options, Part, Roots};

pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    Err(OpenError::absent([], "only on Linux", ""))
}
