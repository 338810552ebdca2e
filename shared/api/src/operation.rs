//! What the name of an operation leads to.

use crate::parameter::Parameter;
use crate::row::Row;
pub use crate::table::Operation;

impl Operation {
    /// Its row in the table.
    pub fn row(self) -> &'static Row {
        &crate::table::ROWS[self as usize]
    }

    /// Whether it is one of the API's own: not the page, and not the answer to a path that is none.
    pub fn is_listed(self) -> bool {
        !self.path().contains("{*")
    }

    /// Whether its query may have a parameter of this name.
    pub fn takes(self, name: &str) -> bool {
        self.takes_any() || self.row().parameters.iter().any(|parameter| parameter.name == name)
    }

    /// Whether its query is for others, who may write what they like.
    pub fn takes_any(self) -> bool {
        self.row().parameters.iter().any(Parameter::is_any)
    }
}
