//! Reads a value of JSON, which the browser has parsed, as a type that the server wrote.
//!
//! It is a [`Deserializer`] over the browser's own values, so the page carries no parser of JSON. An error has only the
//! path of the field: texts for all possible errors would be a tenth of the page's size.

use js_sys::{Array, Object, Reflect};
use serde::Deserialize;
use serde::de::value::StringDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use wasm_bindgen::{JsCast, JsValue};

/// The value does not have the expected type. `path` leads to the first field that does not fit, as
/// `channels.0.delivery.at`.
#[derive(Debug, Default)]
pub struct WrongShape {
    path: String,
}

impl WrongShape {
    /// An error at the field with this name.
    pub fn new(name: &str) -> WrongShape {
        WrongShape::default().within(name)
    }

    /// The same, seen from the value around it.
    #[cold]
    #[inline(never)]
    fn within(mut self, name: &str) -> WrongShape {
        if !self.path.is_empty() {
            self.path.insert(0, '.');
        }
        self.path.insert_str(0, name);
        self
    }
}

impl fmt::Display for WrongShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The page cannot read the server's answer at `")?;
        f.write_str(&self.path)?;
        f.write_str("`: one of them is of another version. Reload the page.")
    }
}

impl std::error::Error for WrongShape {}

impl de::Error for WrongShape {
    fn custom<T: fmt::Display>(_: T) -> Self {
        WrongShape::default()
    }

    fn missing_field(name: &'static str) -> Self {
        WrongShape::new(name)
    }
}

/// Reads a value.
///
/// # Errors
///
/// Fails where it is of another shape.
pub fn from_json<'de, T: Deserialize<'de>>(value: JsValue) -> Result<T, WrongShape> {
    T::deserialize(Value(value))
}

struct Value(JsValue);

impl Value {
    fn number(&self) -> Result<f64, WrongShape> {
        self.0.as_f64().ok_or_else(WrongShape::default)
    }

    /// An integer; those of the browser are exact up to 2 to the power of 53. A fraction is cut: none is sent.
    fn integer(&self) -> Result<i64, WrongShape> {
        self.number().map(|number| number as i64)
    }

    fn string(&self) -> Result<String, WrongShape> {
        self.0.as_string().ok_or_else(WrongShape::default)
    }

    fn object(&self) -> Result<&Object, WrongShape> {
        self.0.dyn_ref().ok_or_else(WrongShape::default)
    }
}

/// Methods that read an integer.
macro_rules! integers {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
            visitor.visit_i64(self.integer()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Value {
    type Error = WrongShape;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        if let Some(value) = self.0.as_bool() {
            visitor.visit_bool(value)
        } else if let Some(number) = self.0.as_f64() {
            if number.fract() == 0.0 { visitor.visit_i64(number as i64) } else { visitor.visit_f64(number) }
        } else if let Some(text) = self.0.as_string() {
            visitor.visit_string(text)
        } else if self.0.is_array() {
            self.deserialize_seq(visitor)
        } else if self.0.is_object() {
            self.deserialize_map(visitor)
        } else {
            visitor.visit_unit()
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_bool(self.0.as_bool().ok_or_else(WrongShape::default)?)
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        if self.0.is_null() || self.0.is_undefined() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        let list: Array = self.0.dyn_into().map_err(|_| WrongShape::default())?;
        visitor.visit_seq(Items { list, next: 0 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, WrongShape> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        let object = self.object()?;
        visitor.visit_map(Entries { list: Object::entries(object), next: 0 })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WrongShape> {
        self.object()?;
        let mut read = Fields { object: self.0, fields: fields.iter(), missing: None };
        let made = visitor.visit_seq(&mut read);
        // For a missing required field the error is the type's own, without a name.
        made.map_err(|error| match read.missing {
            Some(name) if error.path.is_empty() => error.within(name),
            _ => error,
        })
    }

    /// One of words.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WrongShape> {
        let word: StringDeserializer<WrongShape> = self.string()?.into_deserializer();
        word.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongShape> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple_struct }
}

/// The items of a list.
struct Items {
    list: Array,
    next: u32,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = WrongShape;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, WrongShape> {
        if self.next >= self.list.length() {
            return Ok(None);
        }
        let at = self.next;
        self.next += 1;
        seed.deserialize(Value(self.list.get(at))).map(Some).map_err(|error| error.within(&at.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.length().saturating_sub(self.next) as usize)
    }
}

/// The keys and values of an object with arbitrary keys.
struct Entries {
    list: Array,
    next: u32,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = WrongShape;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, WrongShape> {
        if self.next >= self.list.length() {
            return Ok(None);
        }
        self.next += 1;
        let (key, _) = self.entry();
        seed.deserialize(Value(key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, WrongShape> {
        let (key, value) = self.entry();
        seed.deserialize(Value(value)).map_err(|error| error.within(&key.as_string().unwrap_or_default()))
    }
}

impl Entries {
    /// The key and the value that were begun last.
    fn entry(&self) -> (JsValue, JsValue) {
        let entry: Array = self.list.get(self.next.saturating_sub(1)).unchecked_into();
        (entry.get(0), entry.get(1))
    }
}

/// The fields of an object that a type has, in the order of the type; others are ignored. A type therefore reads its
/// fields in order, without names and without checks for duplicates, which halves its cost. Such a type
/// must have no alias: the derived list of fields has both names, and every later field would be read as its neighbor.
/// The integration test `answers` refuses one in `shared`.
struct Fields {
    object: JsValue,
    fields: std::slice::Iter<'static, &'static str>,
    /// The newest field that is not there and is no `Option`.
    missing: Option<&'static str>,
}

impl<'de> SeqAccess<'de> for Fields {
    type Error = WrongShape;

    /// None is a missing field: the type has a default for it, or the response has another shape.
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, WrongShape> {
        let Some(name) = self.fields.next() else { return Ok(None) };
        match Reflect::get(&self.object, &(*name).into()) {
            Ok(value) if !value.is_undefined() => {
                seed.deserialize(Value(value)).map(Some).map_err(|error| error.within(name))
            }
            // An optional field is read from `undefined`, as serde does it; any other field has a default, or the value
            // is an error.
            _ => {
                let absent = seed.deserialize(Value(JsValue::UNDEFINED)).ok();
                if absent.is_none() {
                    self.missing = Some(name);
                }
                Ok(absent)
            }
        }
    }
}
