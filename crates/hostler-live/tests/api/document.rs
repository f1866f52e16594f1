//! The OpenAPI document is whole: what it refers to is there, and it tells of every refusal.

use serde_json::Value;

use crate::daemon::Daemon;

fn document() -> Value {
    Daemon::plain().admin().get("/openapi.json").expect("a document")
}

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("references stay in the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn every_operation_tells_who_is_refused_and_names_itself() {
    let document = document();
    let mut names = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let at = format!("{method} {path}");
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{at}: `{name}` is taken");
            assert!(operation["summary"].is_string(), "{at} has no summary");
            let answers = operation["responses"].as_object().unwrap();
            let open = ["/healthz", "/readyz"].contains(&path.as_str());
            for status in ["401", "403", "429"] {
                assert_eq!(answers.contains_key(status), !open, "{at}: {status}");
            }
            assert_eq!(answers.contains_key("413"), operation.get("requestBody").is_some(), "{at}");
        }
    }
}
