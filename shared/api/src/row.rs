//! A row of the table of operations, and the macro that makes the table of them.

use crate::need::Need;
use crate::parameter::Parameter;

/// One operation.
pub struct Row {
    /// The heading below which the reference page lists it.
    pub section: &'static str,
    /// Its method; HEAD is answered where GET is.
    pub method: Method,
    /// Its path below the base; `{NAME}` is one part of it.
    pub path: &'static str,
    /// Its access rule.
    pub need: Need,
    /// The body of a request.
    pub body: Body,
    /// The parameters of its query.
    pub parameters: &'static [Parameter],
    /// The answer, when it succeeds.
    pub answer: Answer,
    /// Its effect, without a full stop.
    pub meaning: &'static str,
}

/// A method of HTTP.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Its name in a request.
    pub const fn text(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// Content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Nothing that is read.
    Nothing,
    /// JSON of at most this many bytes.
    Json(usize),
    /// It becomes a WebSocket.
    Socket,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub struct Body {
    /// Its content and maximum size.
    pub carries: Carries,
    /// The type of its JSON.
    pub shape: Option<Shape>,
}

/// Default limit: most bodies hold a few names and labels.
const MAX_BODY_BYTES: usize = 64 << 10;

impl Body {
    /// No body.
    pub(crate) const NOTHING: Body = Body { carries: Carries::Nothing, shape: None };
    /// An upgrade to a WebSocket.
    pub(crate) const SOCKET: Body = Body { carries: Carries::Socket, shape: None };

    /// JSON of a type.
    pub(crate) const fn json<T: Described>() -> Body {
        Body::at_most::<T>(MAX_BODY_BYTES)
    }

    /// JSON of a type, of at most this many bytes.
    pub(crate) const fn at_most<T: Described>(bytes: usize) -> Body {
        Body { carries: Carries::Json(bytes), shape: Some(Shape::described::<T>()) }
    }
}

/// The answer of an operation that succeeds.
#[derive(Clone, Copy)]
pub enum Answer {
    /// 200 and JSON.
    Json(Shape),
    /// 201 and JSON.
    Made(Shape),
    /// JSON; the status is 201 if the object is new.
    Taken(Shape),
    /// 200 and one of these media types, selected by `format`. The shape describes the JSON one, if any.
    Text(&'static [&'static str], Option<Shape>),
    /// A redirection to the page.
    Redirect,
    /// A WebSocket; without one, 200 and one of these media types.
    Socket(&'static [&'static str]),
}

/// JSON that no type describes.
pub struct Free;

/// A type that can be described, if descriptions are compiled.
#[cfg(not(feature = "schema"))]
pub(crate) trait Described {}
#[cfg(not(feature = "schema"))]
impl<T> Described for T {}
#[cfg(feature = "schema")]
pub(crate) use schemars::JsonSchema as Described;

/// A type of JSON.
#[derive(Clone, Copy)]
pub struct Shape {
    path: fn() -> &'static str,
    #[cfg(feature = "schema")]
    pub(crate) schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

impl Shape {
    pub(crate) const fn described<T: Described>() -> Shape {
        Shape {
            path: std::any::type_name::<T>,
            #[cfg(feature = "schema")]
            schema: schemars::SchemaGenerator::subschema_for::<T>,
        }
    }

    /// The name of the type.
    pub fn name(self) -> &'static str {
        let path = (self.path)();
        path.rsplit("::").next().unwrap_or(path)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Free {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Free".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

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
