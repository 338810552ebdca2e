//! Parser and printer of a key's value: a function for each kind, whose result is in a [`Key`](crate::Key).

use crate::file_error::{FileError, deserialized, misplaced};
use crate::nearest;
use crate::table::{FileTable, Inner, KeyKind};
use crate::written::{HIDDEN, Takes, Written};

use std::collections::BTreeMap;
use toml::de::DeValue;
use toml::{Spanned, Value};

/// Accessors of a value in `C`.
pub struct Field<C: 'static, T: 'static> {
    /// The value.
    pub get: fn(&C) -> &T,
    /// The value, mutable.
    pub at: fn(&mut C) -> &mut T,
}

/// The [`Field`] for a named field of a type.
#[macro_export]
macro_rules! field {
    ($of:ty, $name:ident) => {
        $crate::Field { get: |of: &$of| &of.$name, at: |of: &mut $of| &mut of.$name }
    };
}

/// Parses one value; its error is the rest of a sentence with the correct form.
pub type Parse<T> = fn(&str) -> Result<T, String>;

/// Prints a stored value for a file; None if nothing is stored.
pub type Show<S> = fn(&S) -> Option<Value>;

/// Values that are texts, each of which is parsed to a `T`. They are stored in an `S`: a `T` if there always is one, an
/// `Option<T>` if there may be none, a `Vec<T>` if they are a list.
pub struct Texts<C: 'static, T: 'static, S: 'static> {
    parse: Parse<T>,
    show: Show<S>,
    field: Field<C, S>,
}

/// Texts that are parsed to values.
pub const fn text<C, T: Written, S: Slot<T>>(parse: Parse<T>, field: Field<C, S>) -> Texts<C, T, S> {
    Texts { parse, show: S::show, field }
}

/// The same with another printer, because a part of them is secret.
pub const fn text_shown<C, T: Written, S: Slot<T>>(
    parse: Parse<T>,
    show: Show<S>,
    field: Field<C, S>,
) -> Texts<C, T, S> {
    Texts { parse, show, field }
}

/// Storage of values of type `T`.
pub trait Slot<T> {
    /// Number of values.
    const TAKES: Takes;

    /// Stores the parsed texts, in place of the previous values.
    ///
    /// # Errors
    /// The correct form.
    fn set(&mut self, parse: Parse<T>, texts: &[String]) -> Result<(), String>;

    /// The stored values, for a file; None if nothing is stored.
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

impl<C, T: Written, S: Slot<T>> Texts<C, T, S> {
    /// Number of allowed values.
    pub fn takes(&self) -> Takes {
        S::TAKES
    }

    /// Whether a text is valid as one value.
    ///
    /// # Errors
    /// The correct form.
    pub fn check(&self, text: &str) -> Result<(), String> {
        (self.parse)(text).map(drop)
    }

    /// Sets it from texts, in place of the previous values.
    ///
    /// # Errors
    /// The correct form.
    pub fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        (self.field.at)(at).set(self.parse, texts)
    }
}

impl<C, T: Written, S: Slot<T>> KeyKind<C> for Texts<C, T, S> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let place = value.span().start;
        let texts = texts::<T>(deserialized(value)?);
        texts.and_then(|texts| self.set(at, &texts)).map_err(|message| FileError::new(place, message))
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.show)((self.field.get)(of))
    }
}

/// The texts of one value or of a list of them.
///
/// # Errors
/// The correct form.
pub fn texts<T: Written>(value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(list) => Ok(list.into_iter().map(texts::<T>).collect::<Result<Vec<_>, _>>()?.concat()),
        other => Ok(vec![T::text(other)?]),
    }
}

/// The only text of a value that is not a list.
///
/// # Errors
/// There are several, or none.
pub fn single(texts: &[String]) -> Result<&str, String> {
    match texts {
        [text] => Ok(text),
        _ => Err("only one value is allowed here, not a list".into()),
    }
}

/// The values of texts without repetitions, in their order. One empty text is the empty list.
///
/// # Errors
/// Reason why one of them is invalid.
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

/// A value with its own functions for reading and printing.
pub struct Own<C: 'static, S: 'static> {
    read: fn(Value) -> Result<S, String>,
    show: Show<S>,
    field: Field<C, S>,
}

/// A value that no other kind can represent.
pub const fn own<C, S>(read: fn(Value) -> Result<S, String>, show: Show<S>, field: Field<C, S>) -> Own<C, S> {
    Own { read, show, field }
}

impl<C, S> KeyKind<C> for Own<C, S> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let place = value.span().start;
        let own = (self.read)(deserialized(value)?).map_err(|message| FileError::new(place, message))?;
        *(self.field.at)(at) = own;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.show)((self.field.get)(of))
    }
}

/// The words of a choice, and their values.
pub type Words<T> = &'static [(&'static str, T)];

/// One word of a few.
pub struct Choice<C: 'static, T: 'static> {
    words: Words<T>,
    field: Field<C, T>,
}

/// One word of a few.
pub const fn word<C, T>(words: Words<T>, field: Field<C, T>) -> Choice<C, T> {
    Choice { words, field }
}

impl<C, T: Copy + PartialEq + Sync> KeyKind<C> for Choice<C, T> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let place = value.span().start;
        let text = String::text(deserialized(value)?).map_err(|message| FileError::new(place, message))?;
        let Some((_, meant)) = self.words.iter().find(|(word, _)| *word == text) else {
            let known: Vec<&str> = self.words.iter().map(|(word, _)| *word).collect();
            return Err(FileError::new(place, format!("there is no {text:?} to choose{}", nearest(&text, &known))));
        };
        *(self.field.at)(at) = *meant;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let meant = (self.field.get)(of);
        self.words.iter().find(|(_, known)| known == meant).map(|(word, _)| Value::from(*word))
    }
}

/// A table from names to texts that its writer chooses.
pub struct Map<C: 'static, S: 'static> {
    check: fn(&str, &str) -> Result<(), String>,
    is_secret: bool,
    field: Field<C, S>,
}

/// A table from names to texts; the check gets both.
pub const fn map<C, S: Pairs>(check: fn(&str, &str) -> Result<(), String>, field: Field<C, S>) -> Map<C, S> {
    Map { check, is_secret: false, field }
}

/// The same, whose texts are secret: they are never printed.
pub const fn secret_map<C, S: Pairs>(check: fn(&str, &str) -> Result<(), String>, field: Field<C, S>) -> Map<C, S> {
    Map { check, is_secret: true, field }
}

/// Accepts every pair of a name and a text.
///
/// # Errors
/// None.
pub fn any_pair(_: &str, _: &str) -> Result<(), String> {
    Ok(())
}

/// Storage of pairs of names and texts.
pub trait Pairs: FromIterator<(String, String)> + 'static {
    /// All of them.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)>;
}

impl Pairs for BTreeMap<String, String> {
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

impl Pairs for Vec<(String, String)> {
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

impl<C, S: Pairs> KeyKind<C> for Map<C, S> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let place = value.span().start;
        let pair = |(name, value): (String, Value)| match value {
            Value::String(text) => (self.check)(&name, &text).map(|()| (name, text)),
            other => Err(format!("{name:?}: {}", misplaced(other.type_str(), "it in quotation marks"))),
        };
        let pairs = match deserialized(value)? {
            Value::Table(table) => table.into_iter().map(pair).collect::<Result<_, _>>(),
            other => Err(misplaced(other.type_str(), "a table, like { NAME = \"...\" }")),
        };
        *(self.field.at)(at) = pairs.map_err(|message| FileError::new(place, message))?;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let shown = |text: &str| Value::from(if self.is_secret { HIDDEN } else { text });
        let own: toml::Table =
            (self.field.get)(of).pairs().map(|(name, text)| (name.to_string(), shown(text))).collect();
        (!own.is_empty()).then_some(Value::Table(own))
    }
}

/// A table, stored in a `T`, in an `Option<T>` if there may be none, in a `Vec<T>` if there may be several.
pub struct Tables<C: 'static, T: 'static, S: 'static> {
    table: &'static FileTable<T>,
    field: Field<C, S>,
}

/// A table or a list of them.
pub const fn table<C, T, S: TableSlot<T>>(table: &'static FileTable<T>, field: Field<C, S>) -> Tables<C, T, S> {
    Tables { table, field }
}

/// Storage of tables of type `T`.
pub trait TableSlot<T> {
    /// Whether there may be several.
    const IS_LIST: bool;

    /// Stores the value from the file.
    ///
    /// # Errors
    /// The fault of the value.
    fn read_tables(&mut self, table: &FileTable<T>, value: Spanned<DeValue<'_>>) -> Result<(), FileError>;

    /// The stored tables; None if there are none.
    fn show_tables(&self, table: &FileTable<T>) -> Option<Value>;
}

impl<T: PartialEq> TableSlot<T> for T {
    const IS_LIST: bool = false;

    fn read_tables(&mut self, table: &FileTable<T>, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        *self = table.read(value)?;
        Ok(())
    }

    fn show_tables(&self, table: &FileTable<T>) -> Option<Value> {
        (*self != (table.empty)()).then(|| Value::Table(table.print(self)))
    }
}

impl<T> TableSlot<T> for Option<T> {
    const IS_LIST: bool = false;

    fn read_tables(&mut self, table: &FileTable<T>, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        *self = Some(table.read(value)?);
        Ok(())
    }

    fn show_tables(&self, table: &FileTable<T>) -> Option<Value> {
        self.as_ref().map(|own| Value::Table(table.print(own)))
    }
}

impl<T> TableSlot<T> for Vec<T> {
    const IS_LIST: bool = true;

    fn read_tables(&mut self, table: &FileTable<T>, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let at = value.span().start;
        *self = match value.into_inner() {
            DeValue::Array(list) => list.into_iter().map(|one| table.read(one)).collect::<Result<_, _>>()?,
            other => {
                return Err(FileError::new(at, misplaced(other.type_str(), "a list of tables, each below [[...]]")));
            }
        };
        Ok(())
    }

    fn show_tables(&self, table: &FileTable<T>) -> Option<Value> {
        (!self.is_empty()).then(|| Value::Array(self.iter().map(|own| Value::Table(table.print(own))).collect()))
    }
}

impl<C, T, S: TableSlot<T>> KeyKind<C> for Tables<C, T, S> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        (self.field.at)(at).read_tables(self.table, value)
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.field.get)(of).show_tables(self.table)
    }

    fn inner(&self) -> Option<Inner> {
        Some(Inner { is_list: S::IS_LIST, keys: self.table.texts() })
    }
}
