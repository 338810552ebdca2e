//! A table of the configuration file, as one value: its keys, and the functions that read, print and describe it by
//! them.

use crate::file_error::{FileError, table_of, unknown_key, wrong};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// A table of the configuration file whose values are stored in `C`. Declared by [`table!`](crate::table!).
pub struct FileTable<C: 'static> {
    /// Its values without any key in the file.
    pub empty: fn() -> C,
    /// Its keys, in the order of the documents.
    pub keys: &'static [Key<C>],
    /// Checks whether its values are consistent.
    pub check: fn(&C) -> Result<(), Fault>,
}

/// One key of a table.
pub struct Key<C: 'static> {
    /// Its name in the file.
    pub name: &'static str,
    /// Its meaning, in one line; if its default is no value, `[default: ...]` at the end describes it.
    pub help: &'static str,
    /// A value for documents, as it is written in a file; empty: the default.
    pub example: &'static str,
    /// Whether the table needs it.
    pub is_required: bool,
    /// Its parser and printer.
    pub kind: &'static dyn KeyKind<C>,
}

/// Reads the value of a key into `C`, and prints it.
pub trait KeyKind<C>: Sync {
    /// Sets it from its value in the file.
    ///
    /// # Errors
    /// The correct form.
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError>;

    /// Its value for a file; None if nothing is set.
    fn show(&self, of: &C) -> Option<Value>;

    /// Its inner table, if it is one.
    fn inner(&self) -> Option<Inner> {
        None
    }
}

/// Reason why the values of a table are inconsistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key to change; empty: the table.
    key: &'static str,
    /// The rest of a sentence with the correct form.
    message: String,
}

impl Fault {
    /// A fault of a key, given the others.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Fault { key, message: message.into() }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Fault::new("", message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Fault::new("", message)
    }
}

/// Description of a key for documents.
pub struct KeyText {
    /// Its name in the file.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Its value if the key is missing.
    pub default: Option<Value>,
    /// A value, as it is written in a file; empty: the default.
    pub example: &'static str,
    /// Whether its table needs it.
    pub is_required: bool,
    /// Its inner table.
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
    /// An unknown key, with the nearest known one; an invalid value; a missing key.
    pub fn read(&self, value: Spanned<DeValue<'_>>) -> Result<C, FileError> {
        let (at, table) = table_of(value)?;
        self.read_keys(at, table)
    }

    /// Reads it from a text that contains nothing else.
    ///
    /// # Errors
    /// The text is not TOML; else as [`FileTable::read`].
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

    /// Its values, for a file.
    pub fn print(&self, own: &C) -> Table {
        self.keys.iter().filter_map(|row| Some((row.name.to_string(), row.kind.show(own)?))).collect()
    }

    /// Descriptions of its keys for documents.
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
