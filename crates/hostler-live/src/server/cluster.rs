//! Nodes and the policy that decides over them.

#![expect(unused_qualifications, reason = "the macro for paths writes them")]

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use utoipa::{IntoParams, IntoResponses};

use super::App;
use super::access::{Caller, Look, Operate};
use super::fault::{ApiFault, Body, Named};
use crate::api::{PolicyText, Problem};
use crate::host::{Answer, Command, NodeView};
use crate::reservation::DrainRequest;

/// Lists nodes.
#[utoipa::path(
    get, path = "/nodes", tag = "cluster",
    responses((status = 200, description = "Every node.", body = Vec<NodeView>)),
)]
pub async fn nodes(
    State(app): State<App>,
    caller: Caller<Look>,
) -> Result<Json<Vec<NodeView>>, ApiFault> {
    let who = caller.who;
    let nodes = app.host.read(move |host| {
        let mut nodes = host.nodes();
        for node in &mut nodes {
            // Jobs of other tenants do not exist for those who do not see them.
            node.jobs.retain(|job| host.job_tenant(*job).is_some_and(|tenant| who.sees(tenant)));
        }
        nodes
    });
    Ok(Json(nodes.await?))
}

/// A node by its name, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it is read by the document only")]
struct NodeName {
    /// Its name.
    #[param(min_length = 1, max_length = 128, pattern = "^[^/\\u0000-\\u001f\\u007f-\\u009f]+$")]
    name: String,
}

/// Answers to a change of a node, for the document.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is read by the document only")]
#[expect(clippy::large_enum_variant, reason = "nobody makes one")]
enum NodeChanged {
    /// The node as it is now.
    #[response(status = 200)]
    Now(NodeView),
    /// There is none.
    #[response(status = 404)]
    Missing(Problem),
}

/// Lets a node take nothing new.
#[utoipa::path(
    post,
    path = "/nodes/{name}/drain",
    tag = "cluster",
    params(NodeName),
    request_body = Option<DrainRequest>,
    responses(NodeChanged)
)]
pub async fn drain(
    state: State<App>,
    caller: Caller<Operate>,
    node: Named<String>,
    body: Bytes,
) -> Result<Json<NodeView>, ApiFault> {
    // Whoever has nothing to say about it may send nothing.
    let how = match body.trim_ascii() {
        b"" | b"null" => DrainRequest::default(),
        text => serde_json::from_slice(text)
            .map_err(|fault| ApiFault::bad(format!("invalid body: {fault}")))?,
    };
    set_draining(state, caller, node, Some(how)).await
}

/// Lets a node take jobs again.
#[utoipa::path(
    post,
    path = "/nodes/{name}/undrain",
    tag = "cluster",
    params(NodeName),
    responses(NodeChanged)
)]
pub async fn undrain(
    state: State<App>,
    caller: Caller<Operate>,
    node: Named<String>,
) -> Result<Json<NodeView>, ApiFault> {
    set_draining(state, caller, node, None).await
}

async fn set_draining(
    State(app): State<App>,
    caller: Caller<Operate>,
    Named(node): Named<String>,
    how: Option<DrainRequest>,
) -> Result<Json<NodeView>, ApiFault> {
    let (draining, how) = (how.is_some(), how.unwrap_or_default());
    match app.host.command(&caller.who, Command::Drain { node, draining, how }).await? {
        Answer::Node(node) => Ok(Json(*node)),
        _ => Err(super::wrong_answer()),
    }
}

/// Shows the policy that decides.
#[utoipa::path(
    get, path = "/policy", tag = "cluster",
    responses((status = 200, description = "Its settings.", body = PolicyText)),
)]
pub async fn policy(State(app): State<App>, _: Caller<Look>) -> Result<Json<PolicyText>, ApiFault> {
    policy_now(&app).await
}

async fn policy_now(app: &App) -> Result<Json<PolicyText>, ApiFault> {
    let text = app.host.read(|host| PolicyText {
        toml: host.policy().to_owned(),
        violation: host.policy_fault().map(|broke| broke.fault.to_string()),
        nobody_decides: host.policy_fault().is_some_and(|broke| broke.nobody_decides),
    });
    Ok(Json(text.await?))
}

/// Lets another policy decide from now on.
#[utoipa::path(
    put, path = "/policy", tag = "cluster", request_body = PolicyText,
    responses((status = 200, description = "It decides now.", body = PolicyText)),
)]
pub async fn set_policy(
    State(app): State<App>,
    caller: Caller<Operate>,
    Body(policy): Body<PolicyText>,
) -> Result<Json<PolicyText>, ApiFault> {
    let settings = policy.toml;
    app.host.command(&caller.who, Command::SetPolicy { settings }).await?;
    // The daemon may have said more than the caller: it knows no true run times.
    policy_now(&app).await
}
