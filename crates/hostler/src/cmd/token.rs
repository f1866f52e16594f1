//! `hostler token`.

use anyhow::Result;
use hostler_live::api::{MadeToken, NewToken};
use hostler_live::client::{Access, Ask, Method};
use hostler_live::host::TokenView;
use hostler_live::server::reset_admin;
use hostler_live::store::Role;
use serde_json::json;

use crate::cli::{RoleName, Standing, TokenCommand, TokenCreate};
use crate::live::{access, client, moment, print_json, table};
use crate::say::{print, say};

/// Makes, lists or revokes tokens.
pub fn run(command: &TokenCommand) -> Result<()> {
    match command {
        TokenCommand::Create(args) => create(args),
        TokenCommand::List { json } => {
            let tokens: Vec<TokenView> = client()?.get("/tokens")?;
            if *json { print_json(&tokens) } else { show(&tokens) }
        }
        TokenCommand::Revoke { token, json } => {
            let path = format!("/tokens/{token}");
            let ask = Ask { method: Method::DELETE, path: &path, headers: &[], body: None };
            client()?.call::<()>(&ask)?;
            if *json {
                return print_json(&json!({ "revoked": token }));
            }
            Ok(print(format_args!("token {token} is revoked"))?)
        }
        TokenCommand::Reset { data, store } => {
            let file = reset_admin(data, store.as_deref())?;
            Ok(print(format_args!("a token for an admin is in {}", file.display()))?)
        }
    }
}

fn create(args: &TokenCreate) -> Result<()> {
    let Standing { role: named, tenant, new_tenant } = &args.standing;
    let role = role(*named);
    let new = NewToken {
        role,
        name: args.name.clone(),
        tenant: Some(tenant.clone()),
        new_tenant: *new_tenant,
        unix_user: args.unix_user.clone(),
    };
    let made: MadeToken = client()?.post("/tokens", &new)?;
    if args.json {
        return print_json(&made);
    }
    say(format_args!("token {} for {}; it is not shown again:", made.id, args.name));
    print(&made.token)?;
    let Access { server, fingerprint, .. } = access()?;
    let pin = fingerprint.map(|pin| format!(" --fingerprint {pin}")).unwrap_or_default();
    // Whoever came by the socket does not know how others come.
    let (server, pin) = match server.socket {
        Some(_) => ("https://HOST:PORT".to_owned(), " --fingerprint sha256:..".to_owned()),
        None => (server.to_string(), pin),
    };
    say(match role {
        Role::Agent => format!(
            "next, on {0}, with the token in a file that only you can read: hostler agent \
             --server {server}{pin} --name {0} --token-file FILE",
            args.name
        ),
        Role::Admin | Role::User | Role::Viewer => format!(
            "next, as {}, with the token in a file that only you can read: hostler login \
             {server}{pin} < FILE",
            args.name
        ),
    });
    Ok(())
}

/// A role as the interface has it.
pub fn role(name: RoleName) -> Role {
    match name {
        RoleName::Admin => Role::Admin,
        RoleName::User => Role::User,
        RoleName::Viewer => Role::Viewer,
        RoleName::Agent => Role::Agent,
    }
}

fn show(tokens: &[TokenView]) -> Result<()> {
    let row = |token: &TokenView| {
        let note = match (token.revoked, token.one_time) {
            (None, _) if token.local => "comes by the socket".to_owned(),
            (None, false) if token.person.is_some() => {
                format!("Unix user {}", token.person.as_deref().unwrap_or_default())
            }
            (Some(at), false) => format!("revoked {}", moment(at)),
            (Some(at), true) => format!("spent {}", moment(at)),
            (None, true) => "enrols one node".to_owned(),
            (None, false) => String::new(),
        };
        let (id, role) = (token.id.to_string(), token.role.to_string());
        [id, token.name.clone(), role, token.tenant.clone(), moment(token.created), note]
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    Ok(print(table(["TOKEN", "NAME", "ROLE", "TENANT", "CREATED", "NOTE"], &rows))?)
}
