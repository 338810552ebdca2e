//! Schemas of types with a custom serialization.

use crate::json::{Number, Seconds};
use crate::new_marker::{MAX_NEW_MARKERS, NewMarker, NewMarkers};
use crate::new_values::{JobNumber, TEXTS};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

impl JsonSchema for Seconds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "null"] })
    }
}

impl JsonSchema for JobNumber {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "JobNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "number" }, { "enum": TEXTS.map(|(text, _)| text) }] })
    }
}

impl JsonSchema for NewMarkers {
    fn schema_name() -> Cow<'static, str> {
        "NewMarkers".into()
    }

    fn json_schema(types: &mut SchemaGenerator) -> Schema {
        let one = types.subschema_for::<NewMarker>();
        json_schema!({
            "description": "One marker, or several.",
            "anyOf": [one, {
                "type": "object",
                "properties": { "markers": { "type": "array", "items": one, "maxItems": MAX_NEW_MARKERS } },
                "required": ["markers"],
                "additionalProperties": false,
            }],
        })
    }
}
