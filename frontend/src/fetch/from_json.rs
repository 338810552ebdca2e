//! Reads a value of JSON, which the browser has parsed, as a type that the server wrote.
//!
//! It is a [`Deserializer`] over the browser's own values, so the page carries no parser of JSON. An error is one word without
//! a text: the same types wrote the answer, and the words of every possible fault would be a tenth of the page's weight.

use js_sys::{Array, Object, Reflect};
use serde::Deserialize;
use serde::de::value::StringDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use wasm_bindgen::{JsCast, JsValue};

/// The value is none of that type.
#[derive(Debug)]
pub struct NoSuchValue;

impl fmt::Display for NoSuchValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is of another shape")
    }
}

impl std::error::Error for NoSuchValue {}

impl de::Error for NoSuchValue {
    fn custom<T: fmt::Display>(_: T) -> Self {
        NoSuchValue
    }
}

/// Reads a value; None where it is of another shape.
pub fn from_json<'de, T: Deserialize<'de>>(value: JsValue) -> Option<T> {
    T::deserialize(Value(value)).ok()
}

struct Value(JsValue);

impl Value {
    fn number(&self) -> Result<f64, NoSuchValue> {
        self.0.as_f64().ok_or(NoSuchValue)
    }

    /// An integer; those of the browser are exact up to 2 to the power of 53. A fraction is cut: none is sent.
    fn integer(&self) -> Result<i64, NoSuchValue> {
        self.number().map(|number| number as i64)
    }

    fn string(&self) -> Result<String, NoSuchValue> {
        self.0.as_string().ok_or(NoSuchValue)
    }

    fn object(&self) -> Result<&Object, NoSuchValue> {
        self.0.dyn_ref().ok_or(NoSuchValue)
    }
}

/// Methods that read an integer.
macro_rules! integers {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
            visitor.visit_i64(self.integer()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Value {
    type Error = NoSuchValue;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
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

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        visitor.visit_bool(self.0.as_bool().ok_or(NoSuchValue)?)
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        if self.0.is_null() || self.0.is_undefined() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, NoSuchValue> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        let list: Array = self.0.dyn_into().map_err(|_| NoSuchValue)?;
        visitor.visit_seq(Items { list, next: 0 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, NoSuchValue> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
        let object = self.object()?;
        visitor.visit_map(Entries { list: Object::entries(object), next: 0, value: JsValue::NULL })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoSuchValue> {
        self.object()?;
        visitor.visit_seq(Fields { object: self.0, fields: fields.iter() })
    }

    /// One of words.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoSuchValue> {
        let word: StringDeserializer<NoSuchValue> = self.string()?.into_deserializer();
        word.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSuchValue> {
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
    type Error = NoSuchValue;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, NoSuchValue> {
        if self.next >= self.list.length() {
            return Ok(None);
        }
        let item = self.list.get(self.next);
        self.next += 1;
        seed.deserialize(Value(item)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.length().saturating_sub(self.next) as usize)
    }
}

/// The keys and values of an object whose keys are anything.
struct Entries {
    list: Array,
    next: u32,
    value: JsValue,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = NoSuchValue;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, NoSuchValue> {
        if self.next >= self.list.length() {
            return Ok(None);
        }
        let entry: Array = self.list.get(self.next).unchecked_into();
        self.next += 1;
        self.value = entry.get(1);
        seed.deserialize(Value(entry.get(0))).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, NoSuchValue> {
        seed.deserialize(Value(std::mem::replace(&mut self.value, JsValue::NULL)))
    }
}

/// The fields of an object that a type has, in the order of the type; others are not looked at. So a type reads one after the
/// other, without their names and without a place for those that may come twice, which halves what it takes. What it must
/// not have for that is an alias.
struct Fields {
    object: JsValue,
    fields: std::slice::Iter<'static, &'static str>,
}

impl<'de> SeqAccess<'de> for Fields {
    type Error = NoSuchValue;

    /// None is a field that is left out: the type has a default for it, or the answer is of another shape.
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, NoSuchValue> {
        let Some(name) = self.fields.next() else { return Ok(None) };
        match Reflect::get(&self.object, &(*name).into()) {
            Ok(value) if !value.is_undefined() => seed.deserialize(Value(value)).map(Some),
            _ => Ok(None),
        }
    }
}
