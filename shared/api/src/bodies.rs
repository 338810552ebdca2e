//! The fields of bodies, and of the types in them, for the reference page: one row for each type.

use super::markdown::code;
use crate::Operation;
use crate::openapi::{JSON, document, referred};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const HEAD: &str = "
## Bodies

A body is a JSON object. A value of another type gets status 400, and so does an unknown field of most types. The error names the path of the field.

| type | required | optional |
| --- | --- | --- |
";

pub(crate) fn section() -> String {
    let document = document("");
    let types = &document["components"]["schemas"];
    let of_body = |operation: &Operation| {
        let described = &document["paths"][operation.path()][operation.method().text().to_ascii_lowercase()];
        referred(&described["requestBody"]["content"][JSON]["schema"]).map(str::to_string)
    };
    let mut waiting: Vec<String> = Operation::ALL.iter().filter_map(of_body).collect();
    let mut names = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if names.insert(name.clone()) {
            references(&types[&name], &mut waiting);
        }
    }
    names.iter().fold(HEAD.to_string(), |text, name| {
        let (required, optional) = columns(&types[name]);
        text + &format!("| {} | {required} | {optional} |\n", code(name))
    })
}

/// The types that a schema leads to.
fn references(schema: &Value, found: &mut Vec<String>) {
    found.extend(referred(schema).map(str::to_string));
    match schema {
        Value::Object(parts) => parts.values().for_each(|part| references(part, found)),
        Value::Array(parts) => parts.iter().for_each(|part| references(part, found)),
        _ => {}
    }
}

/// The fields that must be there, and the others; of a type without fields its values.
fn columns(schema: &Value) -> (String, String) {
    let Some(fields) = schema["properties"].as_object() else { return (words(schema), String::new()) };
    let is_required =
        |name: &String| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let (required, optional): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| is_required(name));
    let list = |fields: Vec<(&String, &Value)>| {
        fields.iter().map(|(name, schema)| format!("{}: {}", code(name), words(schema))).collect::<Vec<_>>().join("; ")
    };
    (list(required), list(optional))
}

/// The values of a schema, in words.
fn words(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        return code(name);
    }
    for several in ["anyOf", "oneOf", "allOf"] {
        if let Some(all) = schema[several].as_array() {
            return either(all.iter().filter(|one| one["type"] != "null").map(words));
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return either(values.iter().filter_map(Value::as_str).map(code));
    }
    if let Some(value) = schema["const"].as_str() {
        return code(value);
    }
    let types = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
    either(types.iter().filter_map(Value::as_str).filter(|name| *name != "null").map(|name| match name {
        "string" => "text".into(),
        "integer" => "whole number".into(),
        "boolean" => "true or false".into(),
        "array" => format!("list of {}", words(&schema["items"])),
        "object" => object(schema),
        other => other.into(),
    }))
}

fn object(schema: &Value) -> String {
    let fields: Option<&Map<String, Value>> = schema["properties"].as_object();
    match (fields, &schema["additionalProperties"]) {
        (Some(fields), _) => {
            let all = fields.iter().map(|(name, schema)| format!("{}: {}", code(name), words(schema)));
            format!("object with {}", all.collect::<Vec<_>>().join(", "))
        }
        (None, values @ Value::Object(_)) => format!("map to {}", words(values)),
        _ => "object".into(),
    }
}

fn either(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" or ")
}
