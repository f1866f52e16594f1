//! What the server says when it does not do as asked: one JSON shape for every fault, and
//! extractors that speak it.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::Problem;
use crate::limits::REQUEST_BYTES_MAX;

/// A refusal or a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiFault {
    /// What kind.
    pub status: StatusCode,
    /// What is wrong.
    pub error: String,
    /// What to do.
    pub hint: String,
}

impl ApiFault {
    /// A fault without advice.
    pub fn new(status: StatusCode, error: impl Into<String>) -> ApiFault {
        ApiFault { status, error: error.into(), hint: String::new() }
    }

    /// With advice.
    pub fn hint(mut self, hint: impl Into<String>) -> ApiFault {
        self.hint = hint.into();
        self
    }

    /// The request makes no sense.
    pub fn bad(error: impl Into<String>) -> ApiFault {
        ApiFault::new(StatusCode::BAD_REQUEST, error)
    }

    /// Nobody is known by what was shown.
    pub fn unknown_caller() -> ApiFault {
        ApiFault::new(StatusCode::UNAUTHORIZED, "no valid token").hint(
            "use `hostler login` with one that is good; an admin makes it with `hostler token \
                   create`",
        )
    }

    /// The caller is known but may not.
    pub fn forbidden(error: impl Into<String>) -> ApiFault {
        ApiFault::new(StatusCode::FORBIDDEN, error)
    }

    /// There is no such thing, or the caller may not know of it.
    pub fn missing(what: &str, name: impl std::fmt::Display) -> ApiFault {
        let fault = ApiFault::new(StatusCode::NOT_FOUND, format!("no such {what}: {name}"));
        fault.hint(who_lists(what))
    }

    /// Too much of something.
    pub fn too_many(error: impl Into<String>) -> ApiFault {
        ApiFault::new(StatusCode::TOO_MANY_REQUESTS, error).hint("try again later")
    }

    /// It does not work now.
    pub fn unavailable(error: impl Into<String>) -> ApiFault {
        ApiFault::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }
}

impl IntoResponse for ApiFault {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response =
            (status, Json(Problem { error: self.error, hint: self.hint })).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<JsonRejection> for ApiFault {
    fn from(rejection: JsonRejection) -> ApiFault {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ApiFault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not said to be JSON")
                    .hint("send `Content-Type: application/json`")
            }
            _ => invalid("body", &rejection.body_text()),
        }
    }
}

impl From<BytesRejection> for ApiFault {
    fn from(rejection: BytesRejection) -> ApiFault {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            _ => invalid("body", &rejection.body_text()),
        }
    }
}

fn too_large() -> ApiFault {
    ApiFault::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large")
        .hint(format!("send at most {REQUEST_BYTES_MAX} bytes"))
}

impl From<QueryRejection> for ApiFault {
    fn from(rejection: QueryRejection) -> ApiFault {
        invalid("query", &rejection.body_text())
    }
}

impl From<PathRejection> for ApiFault {
    fn from(rejection: PathRejection) -> ApiFault {
        invalid("path", &rejection.body_text())
    }
}

/// What the parser says, without its opening words.
fn invalid(part: &str, words: &str) -> ApiFault {
    let detail = words.split_once(": ").map_or(words, |(_, detail)| detail);
    ApiFault::bad(format!("invalid {part}: {detail}"))
}

/// A JSON body whose faults are told in our shape.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiFault;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, ApiFault> {
        let (parts, body) = request.into_parts();
        let limited = Request::from_parts(parts.clone(), body);
        let bytes = Bytes::from_request(limited, state).await?;
        let again = Request::from_parts(parts, axum::body::Body::from(bytes.clone()));
        let is_list = bytes.trim_ascii_start().starts_with(b"[");
        match Json::from_request(again, state).await {
            // A list would be taken for the fields in their order.
            Ok(Json(_)) if is_list => Err(ApiFault::bad("invalid body: a list, not an object")),
            Ok(Json(value)) => Ok(Body(value)),
            Err(JsonRejection::JsonDataError(fault)) if !is_list => {
                let value = with_whole_numbers(&bytes);
                value.map(Body).ok_or_else(|| JsonRejection::JsonDataError(fault).into())
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

/// The body with `2.0` read as `2`: to JSON both are the same number, and some programs write every
/// number with a point.
fn with_whole_numbers<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let mut value = serde_json::from_slice(bytes).ok()?;
    make_whole(&mut value);
    serde_json::from_value(value).ok()
}

fn make_whole(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(make_whole),
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        Value::Number(number) if number.is_f64() => {
            // The largest number below which a double holds every whole one.
            let limit = (1_u64 << f64::MANTISSA_DIGITS) as f64;
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < limit);
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        Value::Number(_) | Value::String(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Query parameters whose faults are told in our shape.
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, ApiFault> {
        let Query(value) = Query::from_request_parts(parts, state).await?;
        Ok(Params(value))
    }
}

/// What the path names, with faults told in our shape.
pub struct Named<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Named<T> {
    type Rejection = ApiFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named<T>, ApiFault> {
        let Path(value) = Path::from_request_parts(parts, state).await?;
        Ok(Named(value))
    }
}

/// The command that lists things of this sort.
pub fn who_lists(what: &str) -> &'static str {
    match what {
        "job" => "`hostler queue` and `hostler history` list them",
        "node" => "`hostler nodes` lists them",
        "tenant" => "`hostler tenant list` lists them",
        "reservation" => "`hostler reservation list` lists them",
        "token" => "`hostler token list` lists them",
        "user" => "`hostler user list` lists them",
        _ => "",
    }
}
