//! A table of the configuration file, as one value: which keys it has, and how it is read, printed and described by them.

use crate::file_error::{FileError, table_of, unknown_key, wrong};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// A table of the configuration file whose values are kept in `C`. [`table!`](crate::table!) writes one down.
pub struct FileTable<C: 'static> {
    /// Its values where nothing is written.
    pub empty: fn() -> C,
    /// Its keys, in the order of the documents.
    pub keys: &'static [Key<C>],
    /// Whether its values can stand together.
    pub check: fn(&C) -> Result<(), Fault>,
}

/// One key of a table.
pub struct Key<C: 'static> {
    /// As it is written.
    pub name: &'static str,
    /// What it is, in one line; where its default is no value, `[default: ...]` at the end says it.
    pub help: &'static str,
    /// A value for documents, as it is written in a file; empty: the default.
    pub example: &'static str,
    /// Whether the table is nothing without it.
    pub is_required: bool,
    /// How its value is read and printed.
    pub kind: &'static dyn KeyKind<C>,
}

/// How the value of a key is read into `C`, and printed.
pub trait KeyKind<C>: Sync {
    /// Sets it from its value in the file.
    ///
    /// # Errors
    /// What to write instead.
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError>;

    /// Its value as it stands in a file; none if nothing is set.
    fn show(&self, of: &C) -> Option<Value>;

    /// The table that it is, if it is one.
    fn inner(&self) -> Option<Inner> {
        None
    }
}

/// Why the values of a table cannot stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key to change; empty: the table.
    key: &'static str,
    /// The rest of a sentence that says what to write instead.
    message: String,
}

impl Fault {
    /// What is wrong with a key, in view of the others.
    pub fn of(key: &'static str, message: impl Into<String>) -> Self {
        Fault { key, message: message.into() }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Fault::of("", message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Fault::of("", message)
    }
}

/// What documents say of a key.
pub struct KeyText {
    /// As it is written.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Its value where nothing is written.
    pub default: Option<Value>,
    /// A value, as it is written in a file; empty: the default.
    pub example: &'static str,
    /// Whether its table is nothing without it.
    pub is_required: bool,
    /// The table that it is.
    pub inner: Option<Inner>,
}

/// A table in a table.
pub struct Inner {
    /// Whether there may be several.
    pub is_list: bool,
    /// Its keys.
    pub keys: Vec<KeyText>,
}

impl<C> FileTable<C> {
    /// Reads it from a file.
    ///
    /// # Errors
    /// An unknown key, with the nearest known one; a value that cannot be; a key that is missing.
    pub fn read(&self, value: Spanned<DeValue<'_>>) -> Result<C, FileError> {
        let (at, table) = table_of(value)?;
        self.read_keys(at, table)
    }

    /// Reads it from a text that has nothing else in it.
    ///
    /// # Errors
    /// The text is no TOML; else as [`FileTable::read`].
    pub fn read_text(&self, text: &str) -> Result<C, FileError> {
        let table = DeTable::parse(text).map_err(|error| wrong(&error, 0))?.into_inner();
        self.read_keys(0, table)
    }

    fn read_keys(&self, at: usize, table: DeTable<'_>) -> Result<C, FileError> {
        let mut own = (self.empty)();
        let mut places = Vec::with_capacity(table.len());
        for (key, value) in table {
            let place = key.span().start;
            let Some(row) = self.keys.iter().find(|row| row.name == key.get_ref()) else {
                let known: Vec<&str> = self.keys.iter().map(|row| row.name).collect();
                return Err(FileError::new(place, unknown_key(key.get_ref(), &known)));
            };
            row.kind.read(&mut own, value).map_err(|error| error.below(row.name))?;
            places.push((row.name, place));
        }
        let place_of = |key: &str| places.iter().find(|(given, _)| *given == key).map(|(_, place)| *place);
        if let Some(row) = self.keys.iter().find(|row| row.is_required && place_of(row.name).is_none()) {
            return Err(
                FileError::new(at, format!("it is missing; write {} = {}", row.name, row.example)).below(row.name)
            );
        }
        let fault = |Fault { key, message }: Fault| {
            let error = FileError::new(place_of(key).unwrap_or(at), message);
            if key.is_empty() { error } else { error.below(key) }
        };
        (self.check)(&own).map_err(fault).map(|()| own)
    }

    /// Its values as they stand in a file.
    pub fn print(&self, own: &C) -> Table {
        self.keys.iter().filter_map(|row| Some((row.name.to_string(), row.kind.show(own)?))).collect()
    }

    /// What documents say of its keys.
    pub fn texts(&self) -> Vec<KeyText> {
        let empty = (self.empty)();
        let text = |row: &Key<C>| KeyText {
            name: row.name,
            help: row.help,
            default: row.kind.show(&empty).filter(|_| !row.is_required),
            example: row.example,
            is_required: row.is_required,
            inner: row.kind.inner(),
        };
        self.keys.iter().map(text).collect()
    }
}
