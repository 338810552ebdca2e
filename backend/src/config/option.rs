//! An option: a [`ConfigOption`] that the command line, the configuration file, `--print-config` and the documents read. Its
//! [`KeyKind`] reads its value from the file and prints it, as for a key in a table. Its [`OptionKind`] reads its
//! flag.

use settings::kinds::{Slot, TableSlot, Tables, Texts};
use settings::{KeyKind, Takes, Written};
use toml::Value;

/// One option of `C`, which is the configuration.
pub struct ConfigOption<C: 'static> {
    /// Its flag without the two dashes; empty: it cannot be set on the command line.
    pub flag: &'static str,
    /// Its key in the file.
    pub key: &'static str,
    /// Placeholder of a value in the help, such as `PATH`.
    pub value: &'static str,
    /// The heading in the help.
    pub section: &'static str,
    /// The commands whose help lists it. Others accept it as well, so one list of flags fits all.
    pub commands: &'static [&'static str],
    /// Its effect, in one line and without a full stop.
    pub help: &'static str,
    /// A value for documents, in the syntax of a file; empty: the default.
    pub example: &'static str,
    /// Reads and prints its value.
    pub kind: &'static dyn OptionKind<C>,
}

/// Reads an option of `C` from the command line.
pub trait OptionKind<C>: KeyKind<C> {
    /// Argument of the flag.
    fn takes(&self) -> Takes;

    /// Whether a text is valid as one value on the command line. The error is the rest of a sentence with the remedy.
    fn check(&self, text: &str) -> Result<(), String>;

    /// Sets it from texts; they replace earlier ones.
    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String>;

    /// Whether a value may be secret, so that errors do not repeat it.
    fn is_secret(&self) -> bool {
        false
    }

    /// Whether a value on the command line may begin with a minus.
    fn has_hyphens(&self) -> bool {
        false
    }
}

impl<C, T: Written, S: Slot<T>> OptionKind<C> for Texts<C, T, S> {
    fn takes(&self) -> Takes {
        Texts::takes(self)
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if S::TAKES == Takes::Many && text.is_empty() { Ok(()) } else { Texts::check(self, text) }
    }

    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        Texts::set(self, at, texts)
    }
}

impl<C, T, S: TableSlot<T>> OptionKind<C> for Tables<C, T, S> {
    fn takes(&self) -> Takes {
        Takes::One
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Err(FILE_ONLY.into())
    }

    fn set(&self, _: &mut C, _: &[String]) -> Result<(), String> {
        Err(FILE_ONLY.into())
    }
}

/// Error of a key without a flag.
pub const FILE_ONLY: &str = "this key belongs in the configuration file";

/// The row of a key.
pub fn by_key<C>(rows: &'static [ConfigOption<C>], key: &str) -> Option<&'static ConfigOption<C>> {
    rows.iter().find(|row| row.key == key)
}

/// The default of an option in the syntax of the command line; none if it is off or empty.
pub fn default_text<C: Default>(row: &ConfigOption<C>) -> Option<String> {
    let shown = row.kind.show(&C::default()).filter(|_| row.kind.takes() != Takes::Switch);
    shown.as_ref().and_then(in_words)
}

/// A default in the form of a document; none if it is empty.
pub fn in_words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Array(list) => {
            Some(list.iter().filter_map(in_words).collect::<Vec<_>>().join(",")).filter(|all| !all.is_empty())
        }
        Value::Table(_) => None,
        other => Some(other.to_string()),
    }
}

/// The help without its default in words, and those words, which are at its end.
pub fn split_default(help: &str) -> (&str, &str) {
    help.split_once(" [default: ").map_or((help, ""), |(help, words)| (help, words.trim_end_matches(']')))
}
