//! A row as a struct, read by the names of its columns.

/// Declares a struct whose fields are the columns of a row.
macro_rules! row {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: $kind,)* }

        impl sqlx::FromRow<'_, sqlx::sqlite::SqliteRow> for $name {
            fn from_row(row: &sqlx::sqlite::SqliteRow) -> sqlx::Result<Self> {
                Ok($name { $($field: sqlx::Row::try_get(row, stringify!($field))?,)* })
            }
        }
    };
}

pub(crate) use row;
