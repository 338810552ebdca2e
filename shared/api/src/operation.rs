//! Lookups by operation: its row, and the query parameters that it accepts.

use crate::parameter::Parameter;
use crate::row::Row;
pub use crate::table::Operation;

impl Operation {
    /// Its row in the table.
    pub fn row(self) -> &'static Row {
        &crate::table::ROWS[self as usize]
    }

    /// Whether the reference lists it: false for the page and for the fallback of unknown paths.
    pub fn is_listed(self) -> bool {
        !self.path().contains("{*")
    }

    /// Whether its query may have a parameter of this name.
    pub fn takes(self, name: &str) -> bool {
        self.takes_any() || self.row().parameters.iter().any(|parameter| parameter.name == name)
    }

    /// Whether it accepts parameters of any name, because others read them (the page or a provider).
    pub fn takes_any(self) -> bool {
        self.row().parameters.iter().any(Parameter::is_any)
    }
}
