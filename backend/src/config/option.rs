//! What an option is: a [`Row`] that the command line, the configuration file, `--print-config` and the documents read. How
//! the value of a row is read and printed is its [`OptionKind`]; most are [`Texts`].

use super::file_error::{FileError, deserialized};
use super::written::{Takes, Written};
use toml::de::DeValue;
use toml::{Spanned, Value};

/// One option of `C`, which is the configuration, or a table in it.
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
    /// How its value is read and printed.
    pub kind: &'static dyn OptionKind<C>,
}

/// How an option of `C` is read and printed.
pub trait OptionKind<C>: Sync {
    /// What the flag takes.
    fn takes(&self) -> Takes;

    /// Whether a text fits as one value on the command line; if not, the rest of a sentence that says what to write.
    fn check(&self, text: &str) -> Result<(), String>;

    /// Sets it from texts, in place of what was set before.
    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String>;

    /// Sets it from its value in the file.
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError>;

    /// Its value as it stands in a file; none if nothing is set.
    fn show(&self, of: &C) -> Option<Value>;

    /// The keys of its own that it has if it is a table, and what each is.
    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether a value may be secret, so that no error repeats it.
    fn is_secret(&self) -> bool {
        false
    }

    /// Whether a value on the command line may begin with a minus.
    fn has_hyphens(&self) -> bool {
        false
    }
}

/// The texts of one value or of a list of them.
pub fn texts<T: Written>(value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(list) => Ok(list.into_iter().map(texts::<T>).collect::<Result<Vec<_>, _>>()?.concat()),
        other => Ok(vec![T::text(other)?]),
    }
}

/// Where a value is kept in `C`.
pub struct Field<C: 'static, T: 'static> {
    /// The value.
    pub get: fn(&C) -> &T,
    /// The value, to be changed.
    pub at: fn(&mut C) -> &mut T,
}

/// The [`Field`] of a type that has a name.
macro_rules! field {
    ($of:ty, $name:ident) => {
        $crate::config::option::Field { get: |of: &$of| &of.$name, at: |of: &mut $of| &mut of.$name }
    };
}
pub(super) use field;

/// Reads one value; its error is the rest of a sentence that says what to write instead.
pub type Parse<T> = fn(&str) -> Result<T, String>;

/// An option whose values are texts, each of which stands for a `T`. It is kept in an `S`: in a `T` itself if it always has a
/// value, in an `Option<T>` if it may have none, in a `Vec<T>` if it is a list.
pub struct Texts<C: 'static, T: 'static, S: 'static> {
    /// Reads one value.
    pub parse: Parse<T>,
    /// Where the values are kept.
    pub field: Field<C, S>,
}

/// What keeps values of type `T`.
pub trait Slot<T> {
    /// What a flag takes.
    const TAKES: Takes;

    /// Keeps what the texts stand for, in place of what was kept before.
    fn set(&mut self, parse: Parse<T>, texts: &[String]) -> Result<(), String>;

    /// What is kept, as it stands in a file; none if nothing is kept.
    fn show(&self) -> Option<Value>;
}

impl<T: Written> Slot<T> for T {
    const TAKES: Takes = T::TAKES;

    fn set(&mut self, parse: Parse<T>, texts: &[String]) -> Result<(), String> {
        *self = parse(single(texts)?)?;
        Ok(())
    }

    fn show(&self) -> Option<Value> {
        Some(Written::show(self))
    }
}

impl<T: Written> Slot<T> for Option<T> {
    const TAKES: Takes = T::TAKES;

    fn set(&mut self, parse: Parse<T>, texts: &[String]) -> Result<(), String> {
        *self = Some(parse(single(texts)?)?);
        Ok(())
    }

    fn show(&self) -> Option<Value> {
        self.as_ref().map(T::show)
    }
}

impl<T: Written> Slot<T> for Vec<T> {
    const TAKES: Takes = Takes::Many;

    fn set(&mut self, parse: Parse<T>, texts: &[String]) -> Result<(), String> {
        *self = list(parse, texts)?;
        Ok(())
    }

    fn show(&self) -> Option<Value> {
        Some(Value::Array(self.iter().map(T::show).collect()))
    }
}

impl<C, T: Written, S: Slot<T>> OptionKind<C> for Texts<C, T, S> {
    fn takes(&self) -> Takes {
        S::TAKES
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if S::TAKES == Takes::Many && text.is_empty() { Ok(()) } else { (self.parse)(text).map(drop) }
    }

    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        (self.field.at)(at).set(self.parse, texts)
    }

    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let place = value.span().start;
        let texts = texts::<T>(deserialized(value)?);
        texts.and_then(|texts| self.set(at, &texts)).map_err(|message| FileError { at: place, message })
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.field.get)(of).show()
    }
}

/// The only text of what is no list.
pub fn single(texts: &[String]) -> Result<&str, String> {
    match texts {
        [text] => Ok(text),
        _ => Err("only one value is allowed here, not a list".into()),
    }
}

/// The values of texts without repetitions, in their order. One empty text is the empty list.
pub fn list<T: PartialEq>(parse: Parse<T>, texts: &[String]) -> Result<Vec<T>, String> {
    let mut list = Vec::with_capacity(texts.len());
    for text in texts.iter().filter(|text| texts.len() > 1 || !text.is_empty()) {
        let value = parse(text)?;
        if !list.contains(&value) {
            list.push(value);
        }
    }
    Ok(list)
}

/// The row of a key.
pub fn by_key<C>(rows: &'static [Row<C>], key: &str) -> Option<&'static Row<C>> {
    rows.iter().find(|row| row.key == key)
}

/// The default of an option as it is written on the command line; none for what is off or empty.
pub fn default_text<C: Default>(row: &Row<C>) -> Option<String> {
    row.kind.show(&C::default()).as_ref().and_then(in_words)
}

fn in_words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Array(list) if !list.is_empty() => Some(list.iter().filter_map(in_words).collect::<Vec<_>>().join(",")),
        _ => None,
    }
}
