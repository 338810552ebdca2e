//! The macro of the table, and what a name of an operation leads to.

use crate::parameter::Parameter;
use crate::row::Row;
pub use crate::table::Operation;

/// Rows by section: meaning, name, method, path, right, body, parameters, answer.
macro_rules! operations {
    ($($section:literal { $(
        #[doc = $meaning:literal]
        $name:ident = $method:ident $path:literal, $need:expr, $body:expr, [$($parameter:expr),*], $answer:expr;
    )* })*) => {
        /// An operation of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Operation { $($(
            #[doc = $meaning]
            $name,
        )*)* }

        impl Operation {
            /// All, in the order of the reference page.
            pub const ALL: &[Operation] = &[$($(Operation::$name,)*)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $($(Operation::$name => stringify!($name),)*)* }
            }

            /// Its method.
            pub const fn method(self) -> Method {
                match self { $($(Operation::$name => Method::$method,)*)* }
            }

            /// Its path below the base; `{NAME}` is one part of it.
            pub const fn path(self) -> &'static str {
                match self { $($(Operation::$name => $path,)*)* }
            }
        }

        pub(crate) static ROWS: &[Row] = &[$($(Row {
            operation: Operation::$name,
            section: $section,
            method: Method::$method,
            path: $path,
            need: $need,
            body: $body,
            parameters: &[$($parameter),*],
            answer: $answer,
            meaning: $meaning.trim_ascii(),
        },)*)*];
    };
}
pub(crate) use operations;

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
