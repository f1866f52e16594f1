//! The JSON Schema of job files, for editors.

use hostler_live::limits::{ARRAY_JOBS_MAX, TASKS_MAX};
use serde_json::{Map, Value, json};

use super::fields::{FIELDS, Kind};

/// The schema.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for field in FIELDS {
        let mut property = shape(field.kind);
        property["description"] = json!(field.help);
        properties.insert(field.name.to_owned(), property.clone());
        let dashed = field.name.replace('_', "-");
        for other in [field.api, &dashed] {
            if !other.is_empty() && other != field.name {
                let mut property = property.clone();
                property["description"] = json!(format!("The same as `{}`.", field.name));
                property["deprecated"] = json!(true);
                properties.insert(other.to_owned(), property);
            }
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A job file of hostler submit",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

fn shape(kind: Kind) -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    match kind {
        Kind::Text => text,
        Kind::Texts => json!({ "anyOf": [text, texts] }),
        Kind::Command => json!({
            "anyOf": [text, { "type": "array", "items": text, "minItems": 1 }],
        }),
        Kind::Part => json!({ "type": "number", "minimum": 0 }),
        Kind::Ratio => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
        Kind::Count => json!({ "type": "integer", "minimum": 1 }),
        Kind::Signed => json!({ "type": "integer" }),
        Kind::Time => json!({
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+[smhd]?$" },
            ],
            "examples": ["90s", "15m", "12h", "2d"],
        }),
        Kind::Memory => json!({
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+([KMGTkmgt]([Ii]?[Bb])?)?$" },
            ],
            "examples": [4096, "16G"],
        }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Share => json!({ "enum": ["never", "willing"] }),
        Kind::After => {
            let job = "^((finished|over|failed|started):)?[0-9]+(_[0-9]+)?((-|\\.\\.)[0-9]+)?$";
            let one = json!({
                "anyOf": [
                    { "type": "integer", "minimum": 0 },
                    { "type": "string", "pattern": job },
                ],
            });
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        Kind::Array => json!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": ARRAY_JOBS_MAX },
                { "type": "string", "pattern": "^[0-9]+(-[0-9]+(:[0-9]+)?)?(%[0-9]+)?$" },
            ],
        }),
        Kind::Variables => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            "additionalProperties": text,
        }),
        Kind::Events => {
            let one = json!({ "enum": ["start", "end", "fail"] });
            json!({ "anyOf": [one, { "type": "array", "items": one, "maxItems": 3 }] })
        }
        Kind::Nodes => json!({ "type": "integer", "minimum": 1, "maximum": TASKS_MAX }),
    }
}
