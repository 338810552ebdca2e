//! A statement for either engine: one text with `$1`, and values whose types are the same for both. Each value carries
//! its type, so that PostgreSQL knows the type in `$1 IS NULL`. SQLite treats an unbound value as NULL; a test that
//! runs every statement on both engines finds that.

use crate::connection::{Connection, Engine};
use crate::error::Error;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, FromRow};
use std::borrow::Cow;
use std::marker::PhantomData;

/// A value for a `$1`.
pub(crate) enum Value<'q> {
    Integer(Option<i64>),
    Real(f64),
    Flag(bool),
    Text(Option<&'q str>),
    Bytes(Option<&'q [u8]>),
}

/// A type that can be read from a row of either engine.
pub(crate) trait ReadRow: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl<T> ReadRow for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// A statement whose rows become `T`.
pub(crate) struct Query<'q, T> {
    text: &'static str,
    /// The text for PostgreSQL, if it needs another one.
    on_postgres: Option<&'static str>,
    values: Vec<Value<'q>>,
    rows: PhantomData<fn() -> T>,
}

/// A statement whose rows have one column.
pub(crate) struct QueryScalar<'q, T>(Query<'q, (T,)>);

/// Result of a statement.
pub(crate) struct Executed(u64);

impl Executed {
    /// Rows that were added, set or removed.
    pub(crate) fn rows_affected(&self) -> u64 {
        self.0
    }
}

/// A statement without rows.
pub(crate) fn query<'q>(text: &'static str) -> Query<'q, ()> {
    query_as(text)
}

/// A statement with rows.
pub(crate) fn query_as<'q, T>(text: &'static str) -> Query<'q, T> {
    Query { text, on_postgres: None, values: Vec::new(), rows: PhantomData }
}

/// A statement with rows of one column.
pub(crate) fn query_scalar<'q, T>(text: &'static str) -> QueryScalar<'q, T> {
    QueryScalar(query_as(text))
}

/// The values as arguments of an engine.
macro_rules! arguments {
    ($kind:ty, $values:expr, $text:expr) => {{
        let mut arguments = <$kind>::default();
        for value in $values {
            match value {
                Value::Integer(value) => arguments.add(value),
                Value::Real(value) => arguments.add(value),
                Value::Flag(value) => arguments.add(value),
                Value::Text(value) => arguments.add(value.map($text)),
                Value::Bytes(value) => arguments.add(value),
            }
            .map_err(sqlx::Error::Encode)?;
        }
        arguments
    }};
}

/// PostgreSQL's texts hold no NUL; a search for a text with one finds nothing, as in SQLite.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

impl<'q, T> Query<'q, T> {
    /// Binds the next value.
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Another text for PostgreSQL, for syntax that only one engine has.
    pub(crate) fn on_postgres(mut self, text: &'static str) -> Self {
        self.on_postgres = Some(text);
        self
    }

    fn for_sqlite(values: Vec<Value<'_>>) -> Result<SqliteArguments, Error> {
        Ok(arguments!(SqliteArguments, values, Cow::Borrowed))
    }

    fn for_postgres(values: Vec<Value<'_>>) -> Result<PgArguments, Error> {
        Ok(arguments!(PgArguments, values, without_nul))
    }

    /// Runs it.
    pub(crate) async fn execute(self, on: &mut Connection) -> Result<Executed, Error> {
        Ok(Executed(match on.engine() {
            Engine::Sqlite(on) => {
                sqlx::query_with(self.text, Self::for_sqlite(self.values)?).execute(on).await?.rows_affected()
            }
            Engine::Postgres(on) => {
                sqlx::query_with(self.on_postgres.unwrap_or(self.text), Self::for_postgres(self.values)?)
                    .execute(on)
                    .await?
                    .rows_affected()
            }
        }))
    }
}

impl<T: ReadRow> Query<'_, T> {
    /// All rows.
    pub(crate) async fn fetch_all(self, on: &mut Connection) -> Result<Vec<T>, Error> {
        Ok(match on.engine() {
            Engine::Sqlite(on) => sqlx::query_as_with(self.text, Self::for_sqlite(self.values)?).fetch_all(on).await?,
            Engine::Postgres(on) => {
                sqlx::query_as_with(self.on_postgres.unwrap_or(self.text), Self::for_postgres(self.values)?)
                    .fetch_all(on)
                    .await?
            }
        })
    }

    /// The first row, if there is one.
    pub(crate) async fn fetch_optional(self, on: &mut Connection) -> Result<Option<T>, Error> {
        Ok(match on.engine() {
            Engine::Sqlite(on) => {
                sqlx::query_as_with(self.text, Self::for_sqlite(self.values)?).fetch_optional(on).await?
            }
            Engine::Postgres(on) => {
                sqlx::query_as_with(self.on_postgres.unwrap_or(self.text), Self::for_postgres(self.values)?)
                    .fetch_optional(on)
                    .await?
            }
        })
    }
}

impl<'q, T> QueryScalar<'q, T>
where
    (T,): ReadRow,
{
    /// Binds the next value.
    pub(crate) fn bind(self, value: impl Into<Value<'q>>) -> Self {
        QueryScalar(self.0.bind(value))
    }

    /// Another text for PostgreSQL, for facts of an engine itself.
    pub(crate) fn on_postgres(self, text: &'static str) -> Self {
        QueryScalar(self.0.on_postgres(text))
    }

    /// The column of the one row.
    pub(crate) async fn fetch_one(self, on: &mut Connection) -> Result<T, Error> {
        Ok(self.fetch_optional(on).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// The column of the first row, if there is one.
    pub(crate) async fn fetch_optional(self, on: &mut Connection) -> Result<Option<T>, Error> {
        Ok(self.0.fetch_optional(on).await?.map(|(value,)| value))
    }

    /// The column of all rows.
    pub(crate) async fn fetch_all(self, on: &mut Connection) -> Result<Vec<T>, Error> {
        Ok(self.0.fetch_all(on).await?.into_iter().map(|(value,)| value).collect())
    }
}

/// Conversions of Rust's types to values.
macro_rules! values {
    ($($kind:ty => |$value:ident| $made:expr;)*) => {
        $(impl<'q> From<$kind> for Value<'q> {
            fn from($value: $kind) -> Self {
                $made
            }
        })*
    };
}

values! {
    i64 => |value| Value::Integer(Some(value));
    Option<i64> => |value| Value::Integer(value);
    f64 => |value| Value::Real(value);
    bool => |value| Value::Flag(value);
    &'q str => |value| Value::Text(Some(value));
    &'q String => |value| Value::Text(Some(value));
    Option<&'q str> => |value| Value::Text(value);
    &'q Option<String> => |value| Value::Text(value.as_deref());
    &'q [u8] => |value| Value::Bytes(Some(value));
    &'q Vec<u8> => |value| Value::Bytes(Some(value));
    Option<&'q [u8]> => |value| Value::Bytes(value);
}
