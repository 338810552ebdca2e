//! What an option is: a [`Row`] that the command line, the configuration file, `--print-config` and the documents read. How
//! its value is read from the file and printed is its [`KeyKind`], as of a key in a table; what a flag says is its
//! [`OptionKind`].

use settings::kinds::{Slot, TableSlot, Tables, Texts};
use settings::{KeyKind, Takes, Written};
use toml::Value;

/// One option of `C`, which is the configuration.
pub struct Row<C: 'static> {
    /// Its flag without the two dashes; empty: it cannot be set on the command line.
    pub flag: &'static str,
    /// Its key in the file.
    pub key: &'static str,
    /// What stands for a value in the help, such as `PATH`.
    pub value: &'static str,
    /// The heading in the help that it stands below.
    pub section: &'static str,
    /// The commands in whose help it stands. Others accept it, too, so that one list of flags fits all.
    pub commands: &'static [&'static str],
    /// What it does, in one line and without a full stop.
    pub help: &'static str,
    /// A value for documents, as it is written in a file; empty: the default.
    pub example: &'static str,
    /// How its value is read and printed.
    pub kind: &'static dyn OptionKind<C>,
}

/// How an option of `C` is read from the command line.
pub trait OptionKind<C>: KeyKind<C> {
    /// What the flag takes.
    fn takes(&self) -> Takes;

    /// Whether a text fits as one value on the command line; if not, the rest of a sentence that says what to write.
    fn check(&self, text: &str) -> Result<(), String>;

    /// Sets it from texts, in place of what was set before.
    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String>;

    /// Whether a value may be secret, so that no error repeats it.
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

/// That no flag says it.
pub const FILE_ONLY: &str = "this key belongs in the configuration file";

/// The row of a key.
pub fn by_key<C>(rows: &'static [Row<C>], key: &str) -> Option<&'static Row<C>> {
    rows.iter().find(|row| row.key == key)
}

/// The default of an option as it is written on the command line; none for what is off or empty.
pub fn default_text<C: Default>(row: &Row<C>) -> Option<String> {
    let shown = row.kind.show(&C::default()).filter(|_| row.kind.takes() != Takes::Switch);
    shown.as_ref().and_then(in_words)
}

/// A default as a document says it; none for what is empty.
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

/// The words for a default that is no value, which stand at the end of the help, and the help without them.
pub fn split_default(help: &str) -> (&str, &str) {
    help.split_once(" [default: ").map_or((help, ""), |(help, words)| (help, words.trim_end_matches(']')))
}
