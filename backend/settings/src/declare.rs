//! Declaration of a table of the configuration file.

/// Declares a table: the type of its values, their defaults, and its [`FileTable`](crate::FileTable) as `TABLE`. A key
/// is one row. Its comment is the help of the key in documents, in `config.example.toml` and on the type:
///
/// ```
/// use settings::{table, value};
/// use std::path::PathBuf;
///
/// table! {
///     /// `[audit]`: the audit log of a hub.
///     #[derive(Clone, Debug, PartialEq, Eq)]
///     pub struct AuditSettings, checked by no_other {
///         /// A file that each row is written to besides
///         file: Option<PathBuf> = None, text(value::absolute), like "\"/var/log/audit.jsonl\"";
///         /// The most rows that are kept
///         rows: u32 = 1000, text(value::number);
///     }
/// }
///
/// fn no_other(_: &AuditSettings) -> Result<(), settings::Fault> {
///     Ok(())
/// }
///
/// assert_eq!(AuditSettings::TABLE.read_text("rows = 5").map(|own| own.rows), Ok(5));
/// let error = AuditSettings::TABLE.read_text("row = 5").unwrap_err().to_string();
/// assert_eq!(error, "unknown key `row`; did you mean rows?");
/// ```
///
/// After the name and the type come the default, the [kind](crate::kinds) (parser and printer of the value), and `like`
/// with a value for documents. `like` is needed if there is no default or the default is a poor example;
/// `required like` if the table needs the key. A field with another name than its key is written `field as "key"`.
///
/// The second form, `table! { NAME: FileTable<Type> = { start, check } { rows } }`, is for a type that is defined
/// elsewhere; its rows have neither type nor default.
#[macro_export]
macro_rules! table {
    ($(#[$about:meta])* $vis:vis struct $own:ident $(, checked by $check:path)? {
        $($(#[doc = $help:literal])* $field:ident $(as $key:literal)?: $type:ty = $default:expr,
            $kind:ident ($($arg:expr),*) $(, like $example:literal)? $(, required like $needed:literal)?;)*
    }) => {
        $(#[$about])*
        $vis struct $own {
            $($(#[doc = $help])* pub $field: $type,)*
        }

        impl Default for $own {
            fn default() -> Self {
                $own { $($field: $default,)* }
            }
        }

        impl $own {
            /// Its keys.
            pub const TABLE: $crate::FileTable<$own> = $crate::FileTable {
                empty: <$own>::default,
                keys: &[$($crate::table!(@key $own, [$($help)*], $field, [$($key)?], $kind ($($arg),*), [$($example)?], [$($needed)?])),*],
                check: $crate::table!(@check $($check)?),
            };
        }
    };
    ($(#[$about:meta])* $vis:vis $table:ident: FileTable<$own:ty> = { $empty:path, $check:path } {
        $($(#[doc = $help:literal])* $field:ident $(as $key:literal)?:
            $kind:ident ($($arg:expr),*) $(, like $example:literal)? $(, required like $needed:literal)?;)*
    }) => {
        $(#[$about])*
        $vis const $table: $crate::FileTable<$own> = $crate::FileTable {
            empty: $empty,
            keys: &[$($crate::table!(@key $own, [$($help)*], $field, [$($key)?], $kind ($($arg),*), [$($example)?], [$($needed)?])),*],
            check: $check,
        };
    };
    (@key $own:ty, [$($help:literal)*], $field:ident, [$($key:literal)?], $kind:ident ($($arg:expr),*), [$($example:literal)?], [$($needed:literal)?]) => {
        $crate::Key {
            name: $crate::table!(@name $field $($key)?),
            help: concat!($($help),*).trim_ascii(),
            example: concat!($($example)? $($needed)?),
            is_required: !concat!($($needed)?).is_empty(),
            kind: &$crate::kinds::$kind($($arg,)* $crate::field!($own, $field)),
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:literal) => { $key };
    (@check) => { |_| Ok(()) };
    (@check $check:path) => { $check };
}
