//! The table as an OpenAPI 3.1 document: for client generators, and for tools that try an API.

use crate::parameter::{Parameter, ParameterKind};
use crate::row::{Answer, Carries, Method, Shape};
use crate::{Operation, need::Need};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use shared::session::Problem;
use std::collections::BTreeSet;

/// Path of the types in the document.
const SCHEMAS: &str = "/components/schemas";
/// Suffix of the request schema of a type whose request and response schemas differ.
const INPUT: &str = "Input";
pub(crate) const JSON: &str = "application/json";

/// The document; `version` is that of the server.
pub fn document(version: &str) -> Value {
    let mut types = Types::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in Operation::ALL.iter().filter(|operation| operation.is_listed()) {
        let row = operation.row();
        let path = paths.entry(row.path).or_insert_with(|| json!({}));
        path[row.method.text().to_ascii_lowercase()] = described(*operation, &mut types);
    }
    let problem = types.answers.subschema_for::<Problem>();
    let (schemas, renamed) = types.together();
    for operation in paths.values_mut().flat_map(|path| path.as_object_mut().into_iter().flatten()) {
        rename(&mut operation.1["requestBody"], &renamed);
        if operation.1["requestBody"].is_null() {
            operation.1.as_object_mut().and_then(|fields| fields.remove("requestBody"));
        }
    }
    let sections = Operation::ALL.iter().filter(|operation| operation.is_listed()).map(|one| one.row().section);
    let mut tags: Vec<&str> = sections.collect();
    tags.dedup();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Watchglass",
            "version": version,
            "description": "A server without accounts needs no key. Times are Unix seconds.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        // Relative path from this document to the base path of the server.
        "servers": [{ "url": "../.." }],
        "tags": tags.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": { "Problem": {
                "description": "Error and remedy",
                "content": { JSON: { "schema": problem } },
            } },
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "A key of a hub, wg_s_... or wg_p_..." },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-wg",
                    "description": "The session of a browser; the name of the cookie ends with the ID of the hub",
                },
            },
        },
    })
}

/// Response and request schemas of the types: a field may be optional in only one of the two.
struct Types {
    answers: SchemaGenerator,
    bodies: SchemaGenerator,
}

impl Types {
    fn new() -> Types {
        let at = |settings: SchemaSettings| {
            settings.with(|settings| (settings.definitions_path, settings.meta_schema) = (SCHEMAS.into(), None))
        };
        Types {
            answers: at(SchemaSettings::draft2020_12().for_serialize()).into_generator(),
            bodies: at(SchemaSettings::draft2020_12().for_deserialize()).into_generator(),
        }
    }

    /// All schemas, and the names of types whose request and response schemas differ.
    fn together(mut self) -> (Map<String, Value>, BTreeSet<String>) {
        let mut answers = self.answers.take_definitions(true);
        let mut bodies = self.bodies.take_definitions(true);
        let is_other = |(name, body): &(&String, &Value)| answers.get(*name).is_some_and(|answer| answer != *body);
        let mut renamed: BTreeSet<String> = bodies.iter().filter(is_other).map(|(name, _)| name.clone()).collect();
        loop {
            let leads = |(name, body): &(&String, &Value)| {
                answers.contains_key(*name) && !renamed.contains(*name) && refers(body, &renamed)
            };
            let more: Vec<String> = bodies.iter().filter(leads).map(|(name, _)| name.clone()).collect();
            if more.is_empty() {
                break;
            }
            renamed.extend(more);
        }
        for (name, body) in &mut bodies {
            rename(body, &renamed);
            let name = if renamed.contains(name) { format!("{name}{INPUT}") } else { name.clone() };
            answers.insert(name, body.take());
        }
        (answers, renamed)
    }
}

/// The name of the type in a reference.
pub(crate) fn referred(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()?.strip_prefix('#')?.strip_prefix(SCHEMAS)?.strip_prefix('/')
}

fn parts(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.values_mut()),
        Value::Array(list) => Box::new(list.iter_mut()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Whether any part of a schema refers to one of these types.
fn refers(value: &Value, names: &BTreeSet<String>) -> bool {
    let inner = match value {
        Value::Object(fields) => fields.values().any(|inner| refers(inner, names)),
        Value::Array(list) => list.iter().any(|inner| refers(inner, names)),
        _ => false,
    };
    inner || referred(value).is_some_and(|name| names.contains(name))
}

/// Redirects references to these types to their request schemas.
fn rename(value: &mut Value, names: &BTreeSet<String>) {
    if let Some(name) = referred(value).filter(|name| names.contains(*name)) {
        value["$ref"] = format!("#{SCHEMAS}/{name}{INPUT}").into();
    }
    parts(value).for_each(|inner| rename(inner, names));
}

fn described(operation: Operation, types: &mut Types) -> Value {
    let row = operation.row();
    let path = row.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = path.map(|name| {
        let schema = json!({ "type": "string" });
        json!({ "name": name, "in": "path", "required": true, "schema": schema, "description": part_meaning(name) })
    });
    let query = row.parameters.iter().filter(|parameter| !parameter.is_any()).map(parameter);
    let mut described = json!({
        "operationId": operation_id(operation),
        "summary": row.meaning,
        "description": format!("For {}.", row.need.words()),
        "tags": [row.section],
        "parameters": path.chain(query).collect::<Vec<_>>(),
        "responses": responses(row.answer, types),
        "security": security(row.need),
    });
    let body = match (row.body.shape, row.body.carries) {
        (Some(shape), Carries::Json(_)) => (shape.schema)(&mut types.bodies).to_value(),
        // Every change needs the JSON content type, which a form of another site cannot send.
        (_, Carries::Nothing) if row.method != Method::Get => json!({ "type": "object", "maxProperties": 0 }),
        _ => return described,
    };
    described["requestBody"] = json!({ "required": true, "content": { JSON: { "schema": body } } });
    described
}

/// Operation ID as client generators expect it: the name with a lower-case first letter.
fn operation_id(operation: Operation) -> String {
    let (first, rest) = operation.name().split_at(1);
    format!("{}{rest}", first.to_ascii_lowercase())
}

/// Description of a path parameter.
pub(crate) fn part_meaning(name: &str) -> &'static str {
    match name {
        "team" => "ID or name of a team",
        "person" => "ID or name of an account",
        "source" => "ID or name of a machine",
        "service" => "ID or name of the account of a program",
        "provider" => "Name of a provider",
        "viewer" => "ID of the viewer, which the stream has sent",
        _ => "ID",
    }
}

fn parameter(parameter: &Parameter) -> Value {
    let value = match parameter.kind {
        ParameterKind::Text | ParameterKind::Instant | ParameterKind::Length => json!({ "type": "string" }),
        ParameterKind::Number(least) => json!({ "type": "integer", "minimum": least }),
        ParameterKind::Choice(words) => json!({ "type": "string", "enum": words }),
    };
    let schema = if parameter.repeated { json!({ "type": "array", "items": value }) } else { value };
    let meaning = match parameter.kind {
        ParameterKind::Instant => format!(
            "{}: Unix seconds, a date and time (UTC without a zone), or a span before now as -1h",
            parameter.meaning
        ),
        _ => parameter.meaning.into(),
    };
    json!({ "name": parameter.name, "in": "query", "schema": schema, "description": meaning })
}

fn responses(answer: Answer, types: &mut Types) -> Value {
    let mut content = |shape: Shape| json!({ JSON: { "schema": (shape.schema)(&mut types.answers) } });
    let (status, answer) = match answer {
        Answer::Json(shape) => ("200", json!({ "description": "The answer", "content": content(shape) })),
        Answer::Made(shape) => ("201", json!({ "description": "Created object", "content": content(shape) })),
        Answer::Taken(shape) => {
            ("2XX", json!({ "description": "Accepted object; 201 if it is new", "content": content(shape) }))
        }
        Answer::Text(media, shape) => {
            let mut all = shape.map_or_else(|| json!({}), content);
            media.iter().for_each(|media| all[*media] = json!({}));
            ("200", json!({ "description": "The answer", "content": all }))
        }
        Answer::Redirect => ("303", json!({ "description": "The page" })),
        Answer::Socket(media) => {
            let all: Map<String, Value> = media.iter().map(|media| (media.to_string(), json!({}))).collect();
            let answer = json!({ "description": "The stream without a WebSocket", "content": all });
            let socket = json!({ "description": "The WebSocket begins" });
            let problem = json!({ "$ref": "#/components/responses/Problem" });
            return match media {
                [] => json!({ "101": socket, "default": problem }),
                _ => json!({ "101": socket, "200": answer, "default": problem }),
            };
        }
    };
    json!({ status: answer, "default": { "$ref": "#/components/responses/Problem" } })
}

fn security(need: Need) -> Value {
    let scopes: Vec<&str> = need.scope().map(|scope| scope.text()).into_iter().collect();
    match need {
        Need::Open | Need::Session => json!([]),
        Need::Own | Need::Person(_) => json!([{ "session": [] }]),
        Need::Key(_) => json!([{ "key": scopes }]),
        _ => json!([{ "key": scopes }, { "session": [] }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_is_sent_and_answered_in_two_forms_has_two_names() {
        let all = document("1");
        let schemas = all["components"]["schemas"].as_object().expect("types");
        // The ID of a rule is always answered, and need not be sent.
        assert_ne!(schemas["Rule"], schemas["RuleInput"]);
        let sent = |path: &str, method: &str| {
            all["paths"][path][method]["requestBody"]["content"][JSON]["schema"]["$ref"].as_str().unwrap_or_default()
        };
        assert_eq!(sent("/api/v1/rules", "post"), "#/components/schemas/RuleInput");
        assert_eq!(sent("/api/v1/session", "post"), "#/components/schemas/SignIn");
        let check = &schemas["RuleCheck"]["properties"]["rule"]["$ref"];
        assert_eq!(check, "#/components/schemas/RuleInput", "also inside of a type");
    }
}
