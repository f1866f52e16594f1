//! The OpenAPI document: what the handlers say about themselves, and what holds for all of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, Info, OpenApi, OpenApiBuilder, Ref, RefOr, Response,
    ResponseBuilder, SecurityRequirement,
};
use utoipa::{PartialSchema, ToSchema};

use super::App;
use super::access::{Caller, Look};
use crate::api::Problem;

/// Name of the one way to say who one is.
const SCHEME: &str = "token";

/// The document before any handler has spoken.
pub fn head() -> OpenApi {
    let mut info = Info::new("Hostler", env!("CARGO_PKG_VERSION"));
    info.description = Some("Scheduler for machine-learning work on GPU clusters.".to_owned());
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let mut components = Components::new();
    components.add_security_scheme(SCHEME, bearer);
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let mut document = OpenApiBuilder::new().info(info).components(Some(components)).build();
    document.security = Some(vec![SecurityRequirement::new::<_, _, &str>(SCHEME, [])]);
    document
}

/// Adds what every handler may answer, and says how large numbers may be.
pub fn complete(mut document: OpenApi) -> Value {
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.post, &mut item.put, &mut item.delete].into_iter().flatten();
        for operation in operations {
            complete_operation(operation);
        }
    }
    let mut document = serde_json::to_value(document).expect("a document is plain data");
    bound_numbers(&mut document);
    document
}

/// Says of numbers without a sign how large they may be. Their usual format is that of numbers with
/// one, of half the size.
fn bound_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.get("in").is_some_and(Value::is_string) {
                never_null(map);
            }
            let unsigned = map.get("minimum").and_then(Value::as_u64).is_some();
            let largest = match map.get("format").and_then(Value::as_str) {
                Some("int32") if unsigned => Some(u64::from(u32::MAX)),
                Some("int64") if unsigned => Some(u64::MAX),
                _ => None,
            };
            if let Some(largest) = largest {
                map.remove("format");
                map.entry("maximum").or_insert(largest.into());
            }
            map.values_mut().for_each(bound_numbers);
        }
        Value::Array(list) => list.iter_mut().for_each(bound_numbers),
        _ => {}
    }
}

/// A parameter may be left out, but there is no way to write that it is nothing.
fn never_null(parameter: &mut Map<String, Value>) {
    let Some(kind) = parameter.get_mut("schema").and_then(|schema| schema.get_mut("type")) else {
        return;
    };
    if let Value::Array(kinds) = kind {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            *kind = only.clone();
        }
    }
}

fn complete_operation(operation: &mut Operation) {
    let mut answers = vec![
        ("401", "No valid token."),
        ("403", "The role may not do this."),
        ("408", "It took too long."),
        ("429", "Too many requests, or a quota is used up."),
        ("503", "The daemon cannot do it now."),
    ];
    let nobody = SecurityRequirement::default();
    if operation.security.as_ref().is_some_and(|security| security.contains(&nobody)) {
        answers.retain(|(status, _)| matches!(*status, "408" | "503"));
    }
    if operation.parameters.is_some() || operation.request_body.is_some() {
        answers.push(("400", "The request makes no sense."));
    }
    if operation.request_body.is_some() {
        answers.push(("413", "The body is too large."));
        answers.push(("415", "The body is not `application/json`."));
    }
    for (status, words) in answers {
        let entry = operation.responses.responses.entry(status.to_owned());
        entry.or_insert_with(|| RefOr::T(problem(words)));
    }
}

fn problem(words: &str) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name(Problem::name()));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(words).content("application/json", content).build()
}

/// Shows this document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "about",
    responses((status = 200, description = "OpenAPI 3.1.", body = Value)),
)]
pub async fn openapi(State(app): State<App>, _: Caller<Look>) -> Json<Arc<Value>> {
    Json(app.document.clone())
}
